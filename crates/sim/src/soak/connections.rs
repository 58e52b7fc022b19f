//! Soak of the whole connection: clients that join a server over bad links, with blocks, messages and packets
//! both ways, addresses that change, servers that restart and clients that crash.
//!
//! A client's *session* is one connection with a plan of what crosses it. While the faults last, safety: what
//! is delivered is right, messages and blocks in order and once, and who was told that everything of his is
//! acknowledged is believed. A session that ends early ends with a reason, and the client begins another.
//! Then the faults stop, and liveness: every client finishes a session, and the server forgets them all.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{ConnectionConfig, Urgency};
use haulier_proto::crypto::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};

use super::connection_ends::{ClientEnd, ServerEnd, SoakHost};
use super::scenario::draw_link;
use super::{Outcome, Verdict};
use crate::join::{PROTOCOL_ID, address};
use crate::{Access, HostId, Internet, LinkConfig, Probability, Rng};

/// Virtual time without a client that gets further, after the faults, that counts as a hang. An idle time-out
/// of 15 s, a new handshake and a transfer at half a megabit fit.
const HANG: Duration = Duration::from_secs(90);

/// After the last client has finished: how long its server may take to forget it.
const FORGET: Duration = Duration::from_secs(40);

/// Something that happens to a host while the faults last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    /// The server crashes and comes back.
    ServerRestarts,
    /// A client's NAT gives it another port.
    AddressChanges(usize),
    /// A client's program crashes and begins again.
    ClientCrashes(usize),
}

/// What a scenario of connections is made of.
#[derive(Clone, Debug)]
pub struct ConnectionScenario {
    seed: u64,
    is_open: bool,
    connection: ConnectionConfig,
    clients: Vec<[LinkConfig; 2]>,
    copies: u8,
    faults_until: Instant,
    blows: Vec<(Instant, Blow)>,
}

impl ConnectionScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 900);
        let faults = Duration::from_millis(rng.between(1_000, 30_000));
        let connection = ConnectionConfig {
            max_rate_bps: *rng.pick(&[500_000, 1_000_000, 4_000_000]),
            urgency: *rng.pick(&[Urgency::LoadScreen, Urgency::DuringPlay]),
            idle_timeout: Duration::from_millis(rng.between(2_000, 15_000)),
            datagrams_per_key: *rng.pick(&[10, 100, 1 << 22]),
            key_lifetime: Duration::from_secs(*rng.pick(&[1, 120])),
            ..ConnectionConfig::default()
        };
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
        blows.sort_unstable();
        Self {
            seed,
            is_open: rng.chance(Probability::percent(25)),
            connection,
            clients,
            copies: rng.between(1, 5) as u8,
            faults_until: Instant::ZERO + faults,
            blows,
        }
    }

    fn server_config(&self) -> ServerConfig {
        let credentials = ServerCredentials {
            secret: Some(Secret::from_bytes([5; 32])),
            open: true,
            ..ServerCredentials::default()
        };
        let config = ServerConfig::new(PROTOCOL_ID, credentials);
        ServerConfig { connection: self.connection, ..config }
    }

    fn client_config(&self) -> ClientConfig {
        let credentials = match self.is_open {
            true => Credentials::Open,
            false => Credentials::Secret { secret: Secret::from_bytes([5; 32]), identity: None },
        };
        let config = ClientConfig::new(address(1), PROTOCOL_ID, credentials);
        ClientConfig { connection: self.connection, copies: self.copies, ..config }
    }

    /// Runs it.
    ///
    /// # Panics
    /// If a machine does, or if the server breaks the rule of three.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let mut internet = Internet::new(self.seed);
        let server = ServerEnd::new(self.server_config(), self.seed, 0);
        let server =
            internet.add(SoakHost::Server(Box::new(server)), address(1), &Access::default());
        let clients: Vec<_> = (0..)
            .zip(&self.clients)
            .map(|(n, [up, down])| {
                let client = ClientEnd::new(self.client_config(), self.seed, n);
                let access = Access { up: up.clone(), down: down.clone() };
                internet.add(SoakHost::Client(Box::new(client)), address(10 + n), &access)
            })
            .collect();
        let mut run = Run { scenario: self, internet, server, clients };
        let verdict = run.until_the_end();
        let (mut transfers, mut packets, mut restarts) = (0, 0, 0);
        for (_, host) in run.internet.hosts() {
            let tally = host.tally();
            transfers += tally.blocks;
            packets += tally.packets;
            restarts += tally.sessions_ended;
        }
        Outcome {
            verdict,
            transfers,
            packets,
            restarts,
            virtual_time: run.internet.now().since(Instant::ZERO),
            trace_hash: run.internet.trace().hash(),
        }
    }
}

struct Run<'s> {
    scenario: &'s ConnectionScenario,
    internet: Internet<SoakHost>,
    server: HostId,
    clients: Vec<HostId>,
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
        let (mut moved_at, mut moved) = (self.internet.now(), self.progress());
        while !self.is_done() {
            let step = self.internet.now() + Duration::from_millis(200);
            if let Some(what) = self.run_to(step) {
                return Verdict::Mismatch(what);
            }
            if self.progress() != moved {
                (moved_at, moved) = (self.internet.now(), self.progress());
            }
            if self.internet.now() - moved_at > HANG {
                return Verdict::Hang(self.describe());
            }
        }
        let end = self.internet.now() + FORGET;
        if let Some(what) = self.run_to(end) {
            return Verdict::Mismatch(what);
        }
        match self.internet.host(self.server).connections() {
            0 => Verdict::Finished,
            left => Verdict::Hang(format!("{left} connections are not forgotten")),
        }
    }

    /// Runs on; returns what went wrong.
    fn run_to(&mut self, end: Instant) -> Option<String> {
        let wrong = |internet: &Internet<SoakHost>| {
            internet.hosts().find_map(|(_, host)| host.wrong().cloned())
        };
        self.internet.run_until(end, |internet| wrong(internet).is_some());
        wrong(&self.internet)
    }

    fn strike(&mut self, number: usize, blow: Blow) {
        match blow {
            Blow::ServerRestarts => {
                let (config, seed) = (self.scenario.server_config(), self.scenario.seed);
                let life = 1 + number as u64;
                self.internet.act(self.server, |host, now| {
                    host.restart_server(now, config, seed, life);
                });
            }
            Blow::AddressChanges(client) => {
                let mut new = self.internet.address(self.clients[client]);
                new.set_port(new.port() + 1);
                self.internet.rebind(self.clients[client], new);
            }
            Blow::ClientCrashes(client) => {
                self.internet.act(self.clients[client], SoakHost::crash_client);
            }
        }
    }

    /// The faults stop: what is left are links that keep their promises.
    fn heal(&mut self) {
        let healthy = |sick: &LinkConfig| LinkConfig {
            rate_bps: sick.rate_bps,
            queue_bytes: sick.queue_bytes,
            delay: sick.delay,
            ..LinkConfig::default()
        };
        for &id in &self.clients {
            let (up, down) = self.internet.links(id);
            let access = Access { up: healthy(up.config()), down: healthy(down.config()) };
            self.internet.set_access(id, &access);
        }
    }

    fn is_done(&self) -> bool {
        self.clients.iter().all(|&id| self.internet.host(id).is_done())
    }

    /// A number that grows as long as anything of use happens.
    fn progress(&self) -> u64 {
        self.internet.hosts().map(|(_, host)| host.tally().progress()).sum()
    }

    fn describe(&self) -> String {
        let hosts = self.internet.hosts().map(|(_, host)| host.describe());
        hosts.collect::<Vec<_>>().join("; ")
    }
}
