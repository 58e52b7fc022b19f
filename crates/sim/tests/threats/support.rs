//! What the tests share: a server, a client, their configurations, and a world with both.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::credentials::Secret;
use haulier_proto::internals::Frame;
use haulier_proto::server::{ServerConfig, ServerMachine};
use haulier_proto::{Batch, DropReason, Instant, Machine};
use haulier_sim::attack::raw::RawClient;
use haulier_sim::attack::{Attacker, Mind};
use haulier_sim::hosts::{ClientHost, Script, ServerHost, configs};
pub(crate) use haulier_sim::hosts::{Keyed, secret};
use haulier_sim::{Access, HostId, LinkConfig, Rng, Shot, World, address};

pub(crate) const SERVER: u32 = 1;
pub(crate) const CLIENT: u32 = 2;
pub(crate) const ATTACKER: u32 = 3;

pub(crate) const BOTH: [Keyed; 2] = [Keyed::Open, Keyed::Secret];

/// 8 Mbit/s and everything else as it usually is.
pub(crate) fn connection() -> ConnectionConfig {
    ConnectionConfig::default().with_max_rate_bps(8_000_000)
}

pub(crate) fn server_config(keyed: Keyed) -> ServerConfig {
    let mut config = configs(keyed, connection()).0;
    if keyed == Keyed::Secret {
        // The secret that a server keeps over restarts, and that only it has.
        config.credentials.reset_secret = Some(Secret::from_bytes([9; 32]));
    }
    config
}

pub(crate) fn client_config(keyed: Keyed) -> ClientConfig {
    configs(keyed, connection()).1
}

pub(crate) fn block(bytes: usize) -> Block {
    Block::new(1, Rng::new(9).bytes(bytes))
}

/// 10 Mbit/s, 40 ms there and back.
pub(crate) fn dsl() -> Access {
    LinkConfig::new(10_000_000, Duration::from_millis(20)).into()
}

pub(crate) fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A world with a server that gives each client `bytes`, and one honest client.
pub(crate) struct Town {
    pub(crate) world: World,
    pub(crate) server: HostId<ServerHost>,
    pub(crate) client: HostId<ClientHost>,
    pub(crate) bytes: usize,
}

impl Town {
    pub(crate) fn new(keyed: Keyed, bytes: usize) -> Self {
        Self::with(server_config(keyed), client_config(keyed), bytes)
    }

    pub(crate) fn with(server: ServerConfig, client: ClientConfig, bytes: usize) -> Self {
        Self::seeded(server, client, bytes, 1)
    }

    pub(crate) fn seeded(
        server: ServerConfig,
        client: ClientConfig,
        bytes: usize,
        seed: u64,
    ) -> Self {
        let mut world = World::new(seed);
        let host = ServerHost::giving(block(bytes), server, seed);
        let server = world.add(host, address(SERVER), &Access::default());
        let host = ClientHost::new(Script::idle(), client, Instant::ZERO, seed + 1);
        let client = world.add(host, address(CLIENT), &dsl());
        Self { world, server, client, bytes }
    }

    /// Adds an attacker with a link of no limits.
    pub(crate) fn attacker<M: Mind + 'static>(&mut self, at: u32, mind: M) -> HostId<Attacker<M>> {
        self.world.add(Attacker::new(mind), address(at), &Access::default())
    }

    /// Adds an attacker on all paths: it may change the datagrams that pass, and send.
    pub(crate) fn on_path(
        &mut self,
        meddle: impl FnMut(SocketAddr, SocketAddr, &mut Vec<u8>, &mut Vec<Shot>) + 'static,
    ) {
        let id = self.attacker(ATTACKER, Meddler(meddle));
        self.world.observe(id);
    }

    pub(crate) fn client(&self) -> &ClientHost {
        self.world.host(self.client)
    }

    pub(crate) fn server(&self) -> &ServerHost {
        self.world.host(self.server)
    }

    /// How often the server found a client at another address.
    pub(crate) fn address_changes(&self) -> usize {
        let events = self.server().all_apps().flat_map(|app| &app.heard);
        events.filter(|(_, event)| matches!(event, Event::AddressChanged)).count()
    }

    /// The client gets another port.
    pub(crate) fn rebind(&mut self, port: u16) {
        let mut new = address(CLIENT);
        new.set_port(port);
        self.world.rebind(self.client, new);
    }

    /// The server crashes and comes back.
    pub(crate) fn restart_server(&mut self, keyed: Keyed, seed: u64) {
        let key = Rng::stream(seed, 78).key();
        self.world.act(self.server, |host, now| host.restart(now, server_config(keyed), key));
    }

    /// Runs until the client has its block, and checks that it is the right one and came once.
    pub(crate) fn assert_joins(&mut self, by: Instant) {
        let client = self.client;
        let done =
            self.world.run_until(by, |world| world.host(client).app.joined_after().is_some());
        assert!(done, "no block by {by:?}: {:?}", last(self.client()));
        self.assert_one_block();
    }

    pub(crate) fn assert_one_block(&self) {
        let blocks: Vec<_> = self
            .client()
            .app
            .heard
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Block { data, .. } => Some(data),
                _ => None,
            })
            .collect();
        assert_eq!(blocks.len(), 1, "a block is delivered once");
        assert_eq!(blocks[0], block(self.bytes).data(), "another block");
    }

    pub(crate) fn is_open(&self) -> bool {
        let connection = self.client().client.as_ref().and_then(ClientMachine::connection);
        connection.is_some_and(|connection| connection.state().is_open())
    }
}

pub(crate) fn last(client: &ClientHost) -> Option<&Event> {
    client.app.heard.last().map(|(_, event)| event)
}

/// Everything that an outsider could change in a server, except its counters of refusals.
fn fingerprint(server: &ServerMachine) -> String {
    let mut stats = server.stats();
    (stats.datagrams_received, stats.bytes_received) = (0, 0);
    // One id in 65,536 looks like one from before a restart.
    stats.datagrams_sent -= stats.resets;
    stats.bytes_sent -= 17 * stats.resets;
    stats.resets = 0;
    let mut all = format!("{stats:?} {:?}", server.poll_timeout());
    for id in server.connections() {
        let connection = server.connection(id).unwrap();
        let mut stats = connection.stats();
        stats.datagrams_refused = 0;
        all += &format!("\n{id} {:?} {:?}", connection.state(), connection.address());
        all += &format!("{stats:?} {:?}", connection.sending());
    }
    all
}

/// Everything that an outsider could change in a client, except its counters of refusals.
fn client_fingerprint(client: &ClientMachine) -> String {
    let mut all = format!("{:?}", client.poll_timeout());
    if let Some(connection) = client.connection() {
        let mut stats = connection.stats();
        stats.datagrams_refused = 0;
        all += &format!("{:?} {stats:?}", connection.state());
        all += &format!("{:?}", connection.receiving());
    }
    all
}

/// Everything a machine wants to send now.
pub(crate) fn drain(machine: &mut impl Machine, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut batch = Batch::new(usize::MAX);
    machine.poll_transmit(now, &mut batch);
    batch.iter().map(|(to, datagram)| (to.remote, datagram.to_vec())).collect()
}

/// Everything a client wants to send now.
pub(crate) fn drain_client(client: &mut ClientMachine, now: Instant) -> Vec<Vec<u8>> {
    drain(client, now).into_iter().map(|(_, datagram)| datagram).collect()
}

/// A client that seals what it is given requests a connection, and completes it if it gets an answer. Returns
/// whether the server accepted the request, and its answers.
pub(crate) fn knock(
    server: &mut ServerMachine,
    raw: &mut RawClient,
    now: Instant,
    from: SocketAddr,
) -> (Result<(), DropReason>, Vec<Vec<u8>>) {
    let taken = server.handle_datagram(now, from, &mut raw.request());
    while server.poll_event(now).is_some() {}
    let answer: Vec<_> = drain(server, now).into_iter().map(|(_, datagram)| datagram).collect();
    for datagram in &answer {
        let _plaintext = raw.handle(now, datagram);
    }
    if let Some(link) = &mut raw.link {
        let mut ping = link.frames(&[Frame::Ping]);
        server.handle_datagram(now, from, &mut ping).unwrap();
        let _acks = drain(server, now);
    }
    (taken, answer)
}

/// A server and a connected client, without a world: for what is asked of the machines directly.
pub(crate) struct Pair {
    pub(crate) server: ServerMachine,
    pub(crate) client: ClientMachine,
    pub(crate) now: Instant,
    /// Every datagram so far: whether it went to the server, and its bytes.
    pub(crate) wire: Vec<(bool, Vec<u8>)>,
}

impl Pair {
    pub(crate) fn connected(keyed: Keyed) -> Self {
        let now = ms(1000);
        let server = ServerMachine::new(now, 1_795_219_200, server_config(keyed), [1; 32]).unwrap();
        let client = ClientMachine::new(now, client_config(keyed), [2; 32]).unwrap();
        let mut pair = Self { server, client, now, wire: Vec::new() };
        (0..8).for_each(|_| pair.round());
        assert!(pair.client.connection().is_some());
        assert_eq!(pair.server.stats().accepted, 1);
        pair
    }

    /// What an outsider could change in both ends, once neither has anything to send.
    pub(crate) fn settled(&mut self) -> [String; 2] {
        let _last = (drain(&mut self.server, self.now), drain(&mut self.client, self.now));
        [fingerprint(&self.server), client_fingerprint(&self.client)]
    }

    /// Neither end has anything to send, and nothing changed.
    pub(crate) fn assert_untouched(&mut self, before: &[String; 2]) {
        assert_eq!(drain(&mut self.server, self.now), []);
        assert_eq!(drain(&mut self.client, self.now), []);
        assert_eq!(self.settled(), *before);
    }

    /// A datagram from outside reaches one of them. Returns whether it was taken.
    pub(crate) fn takes(&mut self, to_server: bool, datagram: &[u8]) -> bool {
        let datagram = &mut datagram.to_vec();
        let taken = match to_server {
            true => self.server.handle_datagram(self.now, address(CLIENT), datagram),
            false => self.client.handle_datagram(self.now, address(SERVER), datagram),
        };
        taken.is_ok()
    }

    /// The datagrams of both ends go over, 10 ms each way.
    pub(crate) fn round(&mut self) {
        for mut datagram in drain_client(&mut self.client, self.now) {
            self.wire.push((true, datagram.clone()));
            let _counted = self.server.handle_datagram(self.now, address(CLIENT), &mut datagram);
        }
        while self.server.poll_event(self.now).is_some() {}
        self.now = self.now + Duration::from_millis(10);
        self.server.handle_timeout(self.now);
        for (_, mut datagram) in drain(&mut self.server, self.now) {
            self.wire.push((false, datagram.clone()));
            let _counted =
                self.client.handle_datagram(self.now, self.client.server(), &mut datagram);
        }
        self.now = self.now + Duration::from_millis(10);
        self.client.handle_timeout(self.now);
        while self.client.poll_event(self.now).is_some() {}
    }
}

/// A mind that is one function of the datagrams that pass.
struct Meddler<F>(F);

impl<F> Mind for Meddler<F>
where
    F: FnMut(SocketAddr, SocketAddr, &mut Vec<u8>, &mut Vec<Shot>),
{
    fn meddle(
        &mut self,
        _now: Instant,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &mut Vec<u8>,
        out: &mut Vec<Shot>,
    ) {
        (self.0)(from, to, datagram, out);
    }
}

/// A mind that acts `left` times, at intervals of `every`.
pub(crate) struct Ticker<F> {
    pub(crate) every: Duration,
    pub(crate) next: Instant,
    pub(crate) left: u32,
    pub(crate) act: F,
}

impl<F: FnMut(Instant, &mut Vec<Shot>)> Mind for Ticker<F> {
    fn wakes_at(&self) -> Option<Instant> {
        Some(self.next).filter(|_| self.left > 0)
    }

    fn wake(&mut self, now: Instant, out: &mut Vec<Shot>) {
        if now >= self.next && self.left > 0 {
            self.left -= 1;
            self.next = now + self.every;
            (self.act)(now, out);
        }
    }
}
