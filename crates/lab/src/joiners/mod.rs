//! Thousands who join one server at once, each behind a link of its own, in virtual time.
//!
//! The links are the ten profiles, drawn by the seed. The server has an uplink of a rate, with a queue, and
//! may know of it (`max_uplink_bps`) or not. A join is compared with the later of its own link's limit and
//! of when it would end if all shared the uplink equally ([`shares`]); beside it are the same clients served
//! one after the other, in the order of their numbers. Nothing computes in virtual time.

mod server;
pub mod shares;

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::Credentials;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::credentials::{ConnectToken, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{ServerLimits, UnknownUplink};
use haulier_sim::attack::{Attacker, Hostile, HostileKind};
use haulier_sim::hosts::{Keyed, PROTOCOL_ID, UNIX_TIME, configs, secret};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Access, LinkConfig, Profile, Rng, World, address};

use crate::rush::Client;
use server::Server;
use shares::Flow;

/// What waits at the server's uplink at most: 20 ms of it.
const UPLINK_QUEUE: Duration = Duration::from_millis(20);

/// Hostile clients act this often.
const HOSTILE_EVERY: Duration = Duration::from_millis(500);

/// The number of hosts that send junk.
const JUNK_HOSTS: u32 = 100;

/// The first address of the clients.
const FIRST_CLIENT: u32 = 10;

/// The first addresses of hostile clients and of junk.
const FIRST_HOSTILE: u32 = 1 << 20;

/// What a client joins by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinBy {
    /// A token that has its address, as from a matchmaker: the server may send at once.
    Token,
    /// A ticket, the same for all: the server sends three times what it received until the address is
    /// validated.
    Ticket,
}

/// What a server knows of its uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Its rate.
    Rate,
    /// Nothing: it takes the uplink for unlimited.
    Nothing,
    /// That it has to find out the rate.
    ToFindOut,
}

/// A run of a crowd.
#[derive(Clone, Debug)]
pub struct Joiners {
    /// Clients.
    pub clients: u32,
    /// Bytes of the block that each gets.
    pub bytes: u64,
    /// The rate of the server's uplink, in bits per second.
    pub uplink_bps: u64,
    /// What the server knows of that rate.
    pub told: Told,
    /// Connections at a time; `None` for all.
    pub seats: Option<usize>,
    /// What clients join by.
    pub by: JoinBy,
    /// Hostile clients, of all kinds in turn.
    pub hostile: u32,
    /// Junk and forged datagrams a second.
    pub junk_per_s: u32,
    /// The seed of the links and of all else.
    pub seed: u64,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct JoinersReport {
    /// The link of each client.
    pub profiles: Vec<&'static str>,
    /// How long each client took; `None` if it did not get its block.
    pub times: Vec<Option<Duration>>,
    /// What each link allows, were it alone.
    pub alone: Vec<Duration>,
    /// What each link and a fair share of the uplink allow.
    pub limits: Vec<Duration>,
    /// When each would be done if they were served one after the other.
    pub in_turn: Vec<Duration>,
    /// Bytes that the server sent, with headers.
    pub sent_bytes: u64,
    /// Of these, bytes that its own uplink's queue dropped.
    pub dropped_bytes: u64,
    /// Connections at a time, at most.
    pub most_connections: usize,
    /// Datagrams that reached the server.
    pub datagrams: u64,
    /// Events of the simulation.
    pub steps: u64,
    /// Why the first of those that failed did.
    pub why: Option<String>,
}

impl Joiners {
    /// Runs it until all have joined, or `lasts` is over. Now and then `progress` gets the number of clients
    /// that have joined.
    #[must_use]
    pub fn run(&self, lasts: Duration, mut progress: impl FnMut(usize)) -> JoinersReport {
        let mut world = World::new(self.seed).for_measuring();
        let mut rng = Rng::stream(self.seed, 101);
        let all = (self.clients + self.hostile) as usize;
        let seats = self.seats.unwrap_or(all);
        let connection = ConnectionConfig::default().with_max_block_bytes(self.bytes);
        let (mut server, client) = configs(Keyed::Secret, connection);
        server.limits = ServerLimits::default().with_connections(seats);
        let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
        server.credentials = server.credentials.with_token_key(key.clone());
        match self.told {
            Told::Rate => server.max_uplink_bps = self.uplink_bps,
            Told::Nothing => {}
            Told::ToFindOut => server.unknown_uplink = UnknownUplink::FoundOut,
        }
        let queue_bytes = (self.uplink_bps as f64 / 8.0 * UPLINK_QUEUE.as_secs_f64()) as u64;
        let up = LinkConfig::new(self.uplink_bps, Duration::ZERO).with_queue(queue_bytes);
        let access = Access { up, down: LinkConfig::default() };
        let block = Block::new(1, rng.bytes(self.bytes as usize));
        let host = Server::new(block, server, rng.key());
        let server = world.add(host, address(1), &access);
        let (mut joiners, mut flows, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..self.clients {
            let profile: &Profile = rng.pick(&Profile::ALL);
            let mut client = client.clone();
            if self.by == JoinBy::Token {
                client.credentials = Credentials::Token(token(&key, n));
            }
            let host = Client::with_config(client, Instant::ZERO, rng.key());
            joiners.push(world.add(host, address(FIRST_CLIENT + n), &profile.link().into()));
            flows.push(self.flow(&profile.link()));
            profiles.push(profile.name);
        }
        let end = Instant::ZERO + lasts;
        self.add_attackers(&mut world, end, &mut rng);
        let mut next = Instant::ZERO;
        while world.now() < end {
            next = next + Duration::from_millis(100);
            world.run_to(next.min(end));
            let done = joiners.iter().filter(|&&id| world.host(id).done_at.is_some()).count();
            progress(done);
            if joiners.iter().all(|&id| world.host(id).is_over()) {
                break;
            }
        }
        let rate = self.uplink_bps as f64;
        let uplink = world.links(world.segment_of(server)).0.stats();
        let machine = world.host(server);
        JoinersReport {
            profiles,
            times: joiners
                .iter()
                .map(|&id| Some(world.host(id).done_at?.since(Instant::ZERO)))
                .collect(),
            alone: flows.iter().map(Flow::alone).collect(),
            limits: shares::equal(&flows, rate),
            in_turn: shares::in_turn(&flows, rate),
            sent_bytes: uplink.offered_bytes,
            dropped_bytes: uplink.dropped_bytes,
            most_connections: machine.most_connections,
            datagrams: machine.server.stats().datagrams_received,
            steps: world.steps(),
            why: joiners.iter().find_map(|&id| world.host(id).why.clone()),
        }
    }

    /// Bytes of the block on the wire, in full datagrams.
    fn wire_bytes(&self) -> f64 {
        (self.bytes + self.bytes.div_ceil(1200) * UDP_IP_OVERHEAD) as f64
    }

    /// What is lost behind the uplink has to pass it again.
    fn flow(&self, link: &LinkConfig) -> Flow {
        let max_bps = link.rate_bps.map_or(f64::INFINITY, |bps| bps as f64);
        let arrives = 1.0 - link.loss.mean().as_f64();
        Flow { delay: link.delay, max_bps, bytes: self.wire_bytes() / arrives }
    }

    fn add_attackers(&self, world: &mut World, until: Instant, rng: &mut Rng) {
        let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
        let mut add = |at: u32, kind, every| {
            let mind = Hostile::new(kind, address(1), secret(), rng.next_u64(), every, until);
            world.add(Attacker::new(mind), address(FIRST_HOSTILE + at), &link.clone().into());
        };
        for n in 0..self.hostile {
            let kind = HostileKind::ALL[n as usize % HostileKind::ALL.len()];
            add(n, kind, HOSTILE_EVERY);
        }
        if self.junk_per_s > 0 {
            let every = Duration::from_secs(1) * JUNK_HOSTS / self.junk_per_s;
            for n in 0..JUNK_HOSTS {
                let kind = [HostileKind::Junk, HostileKind::Forger][n as usize % 2];
                add(self.hostile + n, kind, every);
            }
        }
    }
}

/// A token for this client at its address.
fn token(key: &TokenKey, client: u32) -> ConnectToken {
    let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 3600, TokenServers::One(address(1)))
        .with_client_address(Some(address(FIRST_CLIENT + client)));
    let mut nonce = [1; 24];
    nonce[..4].copy_from_slice(&client.to_le_bytes());
    key.issue(PROTOCOL_ID, &claims, Secret::from_bytes([9; 32]), nonce)
        .expect("claims that fit a token")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of the thousand is behind a link that loses in runs, and loses its first twenty requests.
    #[test]
    fn all_of_a_thousand_are_heard_over_every_link() {
        let crowd = Joiners {
            clients: 1_000,
            bytes: 4 << 10,
            uplink_bps: 1_000_000_000,
            told: Told::Rate,
            seats: None,
            by: JoinBy::Ticket,
            hostile: 0,
            junk_per_s: 0,
            seed: 1,
        };
        let report = crowd.run(Duration::from_secs(60), |_| ());
        assert_eq!(report.times.iter().flatten().count(), 1_000, "{:?}", report.why);
    }

    /// A tenth of what CI runs as a program.
    #[test]
    fn a_crowd_behind_its_own_links_joins_within_what_they_allow() {
        let crowd = Joiners {
            clients: 100,
            bytes: 64 << 10,
            uplink_bps: 100_000_000,
            told: Told::Rate,
            seats: None,
            by: JoinBy::Ticket,
            hostile: 0,
            junk_per_s: 0,
            seed: 1,
        };
        let report = crowd.run(Duration::from_secs(60), |_| ());
        assert_eq!(report.times.iter().flatten().count(), 100, "{:?}", report.why);
        assert_eq!(report.dropped_bytes, 0, "a server that knows its uplink fills no queue");
        let attacked = Joiners { hostile: 14, junk_per_s: 1_000, ..crowd };
        let report = attacked.run(Duration::from_secs(60), |_| ());
        assert_eq!(report.times.iter().flatten().count(), 100, "{:?}", report.why);
    }
}
