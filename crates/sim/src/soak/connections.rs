//! Soak of the whole connection: clients that join a server over bad links, with blocks, messages and
//! packets in both directions, address changes, server restarts and client crashes.
//!
//! Liars may be behind the same addresses, the server's clock may step, and its program stall ([`Company`]).
//! The server is under the bounds of the [oracles](crate::oracle) all the time.
//!
//! A client's *session* is one connection with planned traffic. While the faults last, safety: data is
//! delivered unchanged, messages and blocks in order and once, and if an end reports everything as
//! acknowledged, all of it has arrived. A session that ends early has a reason, and the client begins
//! another. Then the faults stop, and liveness: every client finishes a session, and the server forgets them
//! all.

use std::time::Duration;

use bytes::Bytes;
use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{ConnectionConfig, Urgency};
use haulier_proto::credentials::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};

use super::company::{AHEAD, Company};
use super::connection_ends::{Session, Sessions, Tally};
use super::scenario::draw_link;
use super::{Outcome, Verdict};
use crate::hosts::{ClientHost, PROTOCOL_ID, ServerHost};
use crate::oracle::Watch;
use crate::{Access, HostId, LinkConfig, Probability, Rng, World, address};

/// Virtual time without progress of any client, after the faults, that counts as a hang. An idle timeout of
/// 15 s, a new handshake and a transfer at half a megabit fit.
const HANG: Duration = Duration::from_secs(90);

/// How long the server may take to forget the last client after it has finished.
const FORGET: Duration = Duration::from_secs(40);

/// A fault of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    /// The server crashes and restarts.
    ServerRestarts,
    /// A client's NAT changes its port.
    AddressChanges(usize),
    /// A client's program crashes and restarts.
    ClientCrashes(usize),
    /// The server's program stalls for this time.
    ServerStalls(Duration),
    /// The server's clock steps, and is then ahead of the true time by this.
    ClockSteps(Duration),
}

/// A scenario of connections.
#[derive(Clone, Debug)]
pub struct ConnectionScenario {
    seed: u64,
    is_open: bool,
    connection: ConnectionConfig,
    clients: Vec<[LinkConfig; 2]>,
    copies: u8,
    faults_until: Instant,
    blows: Vec<(Instant, Blow)>,
    company: Company,
}

impl ConnectionScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 900);
        let faults = Duration::from_millis(rng.between(1_000, 30_000));
        let connection = ConnectionConfig::default()
            .with_max_rate_bps(*rng.pick(&[500_000, 1_000_000, 4_000_000]))
            .with_urgency(*rng.pick(&[Urgency::LoadScreen, Urgency::DuringPlay]))
            .with_idle_timeout(Duration::from_millis(rng.between(2_000, 15_000)))
            .with_datagrams_per_key(*rng.pick(&[10, 100, 1 << 22]))
            .with_key_lifetime(Duration::from_secs(*rng.pick(&[1, 120])));
        let clients: Vec<_> = (0..rng.between(1, 4))
            .map(|_| [draw_link(&mut rng, faults), draw_link(&mut rng, faults)])
            .collect();
        let mut blows: Vec<_> = (0..rng.below(6))
            .map(|_| {
                let at = Instant::ZERO + Duration::from_nanos(rng.below(faults.as_nanos() as u64));
                let client = rng.below(clients.len() as u64) as usize;
                let blow = match rng.below(4) {
                    0 => Blow::ServerRestarts,
                    1 => Blow::ClientCrashes(client),
                    _ => Blow::AddressChanges(client),
                };
                (at, blow)
            })
            .collect();
        let company = Company::draw(seed, clients.len(), faults);
        blows.extend(company.steps.iter().map(|&(at, ahead)| (at, Blow::ClockSteps(ahead))));
        blows.extend(company.stall.map(|(at, time)| (at, Blow::ServerStalls(time))));
        blows.sort_unstable();
        Self {
            seed,
            is_open: rng.chance(Probability::percent(25)),
            connection,
            clients,
            copies: rng.between(1, 5) as u8,
            faults_until: Instant::ZERO + faults,
            blows,
            company,
        }
    }

    fn server_config(&self) -> ServerConfig {
        let credentials = ServerCredentials::default()
            .with_secret(Secret::from_bytes([5; 32]))
            .with_open_access();
        let config = ServerConfig::new(PROTOCOL_ID, credentials);
        config.with_connection(self.connection)
    }

    fn client_config(&self) -> ClientConfig {
        let credentials = match self.is_open {
            true => Credentials::Open,
            false => Credentials::Secret { secret: Secret::from_bytes([5; 32]), identity: None },
        };
        let config = ClientConfig::new(address(1), PROTOCOL_ID, credentials);
        config.with_connection(self.connection).with_copies(self.copies)
    }

    /// Runs it.
    ///
    /// # Panics
    /// If a machine does, or if the server exceeds the amplification limit.
    #[must_use]
    pub fn run(&self) -> Outcome {
        // Tables of 9 MB, once per process, which would count as held by the first server to need them.
        haulier_proto::prepare();
        let mut world = World::new(self.seed);
        let (seed, key) = (self.seed, server_key(self.seed, 0));
        let accept = move |now, request: &Bytes| Session::of_request(seed, request, now);
        let mut server = ServerHost::with_seed(accept, self.server_config(), key);
        server.is_checked = true;
        server.watch = Some(Watch::default());
        server.ahead = AHEAD;
        let server = world.add(server, address(1), &Access::default());
        let clients = (0..).zip(&self.clients).map(|(n, [up, down])| {
            let app = Sessions::new(self.seed, n);
            let client = ClientHost::new(app, self.client_config(), Instant::ZERO, 0);
            let access = Access { up: up.clone(), down: down.clone() };
            world.add(client, address(10 + n), &access)
        });
        let clients = clients.collect();
        let secret = Secret::from_bytes([5; 32]);
        let secret = Some(&secret).filter(|_| !self.is_open);
        let refusing = self.company.add_refusing(&mut world, self.server_config(), seed);
        self.company.join(&mut world, secret, self.faults_until);
        let mut run = Run { scenario: self, world, server, refusing, clients };
        let verdict = run.until_the_end();
        Outcome {
            verdict,
            transfers: run.tallies().map(|tally| tally.blocks).sum(),
            packets: run.tallies().map(|tally| tally.packets).sum(),
            restarts: run.tallies().map(|tally| tally.sessions_ended).sum(),
            virtual_time: run.world.now().since(Instant::ZERO),
            trace_hash: run.world.trace().hash(),
        }
    }
}

/// The server's configuration after this restart.
fn server_key(seed: u64, life: u64) -> [u8; 32] {
    Rng::stream(seed, 2_000_000 + life).key()
}

struct Run<'s> {
    scenario: &'s ConnectionScenario,
    world: World,
    server: HostId<ServerHost<Session>>,
    /// Another server, which takes no blocks.
    refusing: Option<HostId<ServerHost<Session>>>,
    clients: Vec<HostId<ClientHost<Sessions>>>,
}

impl Run<'_> {
    fn until_the_end(&mut self) -> Verdict {
        for (number, &(at, blow)) in self.scenario.blows.iter().enumerate() {
            if let Some(what) = self.run_to(at) {
                return Verdict::Mismatch(what);
            }
            self.strike(number, blow);
        }
        if let Some(what) = self.run_to(self.scenario.faults_until) {
            return Verdict::Mismatch(what);
        }
        self.heal();
        let (mut moved_at, mut moved) = (self.world.now(), self.progress());
        while !self.is_done() {
            let step = self.world.now() + Duration::from_millis(200);
            if let Some(what) = self.run_to(step) {
                return Verdict::Mismatch(what);
            }
            if self.progress() != moved {
                (moved_at, moved) = (self.world.now(), self.progress());
            }
            if self.world.now() - moved_at > HANG {
                return Verdict::Hang(self.describe());
            }
        }
        let end = self.world.now() + FORGET;
        if let Some(what) = self.run_to(end) {
            return Verdict::Mismatch(what);
        }
        match self.world.host(self.server).server.stats().connections {
            0 => Verdict::Finished,
            left => Verdict::Hang(format!("{left} connections are not forgotten")),
        }
    }

    /// Continues the run. Returns what went wrong.
    fn run_to(&mut self, end: Instant) -> Option<String> {
        let (server, refusing, clients) = (self.server, self.refusing, self.clients.clone());
        let wrong = |world: &World| {
            let of_server = world.host(server).all_apps().find_map(|app| app.wrong.as_ref());
            let mut of_clients = (0..).zip(&clients).filter_map(|(number, &id)| {
                Some((number, world.host(id).app.session.wrong.as_ref()?))
            });
            for server in [Some(server), refusing].into_iter().flatten() {
                let watch = world.host(server).watch.as_ref();
                if let Some(finding) = watch.and_then(Watch::finding) {
                    return Some(format!("server: {}", finding.what));
                }
            }
            of_server
                .map(|what| format!("server: {what}"))
                .or_else(|| of_clients.next().map(|(n, what)| format!("client {n}: {what}")))
        };
        self.world.run_until(end, |world| wrong(world).is_some());
        wrong(&self.world)
    }

    fn strike(&mut self, number: usize, blow: Blow) {
        match blow {
            Blow::ServerRestarts => {
                let config = self.scenario.server_config();
                let key = server_key(self.scenario.seed, 1 + number as u64);
                self.world.act(self.server, |host, now| host.restart(now, config, key));
            }
            Blow::AddressChanges(client) => {
                let mut new = self.world.address(self.clients[client]);
                new.set_port(new.port() + 1);
                self.world.rebind(self.clients[client], new);
            }
            Blow::ServerStalls(time) => {
                self.world.act(self.server, |host, now| {
                    host.stalls_until = now + host.ahead + time;
                });
            }
            Blow::ClockSteps(ahead) => {
                self.world.act(self.server, |host, _| host.ahead = ahead);
            }
            Blow::ClientCrashes(client) => {
                self.world.act(self.clients[client], ClientHost::crash_early);
            }
        }
    }

    /// The faults stop: links without faults remain.
    fn heal(&mut self) {
        for &id in &self.clients {
            for link in self.world.links_mut(self.world.segment_of(id)) {
                link.set_config(link.config().healed());
            }
        }
    }

    fn is_done(&self) -> bool {
        self.clients.iter().all(|&id| self.world.host(id).is_done())
    }

    fn tallies(&self) -> impl Iterator<Item = Tally> {
        let of_server = self.world.host(self.server).all_apps().map(|app| app.tally);
        of_server.chain(self.clients.iter().map(|&id| self.world.host(id).app.session.tally))
    }

    /// A number that grows with every useful progress.
    fn progress(&self) -> u64 {
        self.tallies().map(|tally| tally.progress()).sum()
    }

    fn describe(&self) -> String {
        let clients = self.clients.iter().map(|&id| self.world.host(id).describe());
        let clients = clients.collect::<Vec<_>>().join("; ");
        format!("server {:?}; {clients}", self.world.host(self.server).server.stats())
    }
}
