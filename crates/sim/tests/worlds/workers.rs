//! A server of several workers has the same results as one worker: the clients that it admits and refuses,
//! and the data that arrives, in any interleaving, with addresses that change, copies of requests that reach
//! other workers, and attacks.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, CloseReason, ConnectionConfig, Event};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerLimits};
use haulier_sim::attack::{Attacker, Hostile, HostileKind};
use haulier_sim::hosts::{
    ClientHost, Crew, Keyed, PROTOCOL_ID, Script, UNIX_TIME, configs, secret,
};
use haulier_sim::{Access, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0015;

struct Town {
    world: World,
    server: HostId<Crew>,
    clients: Vec<HostId<ClientHost>>,
}

/// What became of a client.
#[derive(Debug, PartialEq)]
struct Fate {
    blocks: usize,
    end: Option<CloseReason>,
}

impl Town {
    /// A server, and clients that start 20 ms after each other.
    fn new(seed: u64, workers: usize, config: ServerConfig, clients: Vec<ClientConfig>) -> Self {
        println!("seed {seed:#x}, {workers} workers");
        let mut world = World::new(seed);
        let block = Block::new(1, Rng::stream(seed, 1).bytes(1_000_000));
        let crew = Crew::new(workers, block, config, seed);
        let server = world.add(crew, address(1), &Access::default());
        let start = |(n, config): (u32, ClientConfig)| {
            let starts = Instant::from_millis(20 * u64::from(n));
            let host = ClientHost::new(Script::idle(), config, starts, seed + u64::from(n));
            let link = LinkConfig::new(20_000_000, Duration::from_millis(15)).with_queue(256 << 10);
            world.add(host, address(n), &Access::from(link))
        };
        let clients = (2..).zip(clients).map(start).collect();
        Self { world, server, clients }
    }

    fn crew(&self) -> &Crew {
        self.world.host(self.server)
    }

    fn fates(&self) -> Vec<Fate> {
        let fate = |&id: &HostId<ClientHost>| {
            let app = &self.world.host(id).app;
            let end = app.heard.iter().find_map(|(_, event)| match event {
                Event::Closed(reason) => Some(reason.clone()),
                _ => None,
            });
            Fate { blocks: app.received.len(), end }
        };
        self.clients.iter().map(fate).collect()
    }

    fn run_to(&mut self, millis: u64) {
        self.world.run_to(Instant::from_millis(millis));
    }

    /// Hostile clients that do this every `millis`, from 20 addresses on.
    fn besiege(&mut self, kind: HostileKind, count: u32, millis: u64) {
        for n in 100..100 + count {
            let every = Duration::from_millis(millis);
            let until = Instant::from_millis(3_000);
            let mind = Hostile::new(kind, address(1), secret(), u64::from(n), every, until);
            self.world.add(Attacker::new(mind), address(n), &Access::default());
        }
    }
}

fn with_secret() -> (ServerConfig, ClientConfig) {
    let mut connection = ConnectionConfig::default();
    connection.idle_timeout = Duration::from_secs(5);
    configs(Keyed::Secret, connection)
}

/// Twelve seats and sixteen clients; every other one changes its address in the middle of its block, and each
/// fifth datagram reaches any worker. Which worker has a client is chance: of four one has none of twelve on
/// every eighth seed, and all have some of 48 on four.
#[test]
fn many_workers_give_what_one_gives() {
    let mut served = [0; 4];
    for seed in SEED..SEED + 4 {
        let fates = [1, 4].map(|workers| {
            let (server, client) = with_secret();
            let limits = ServerLimits::default().with_connections(12);
            let server = server.with_limits(limits.with_answers_per_second(5_000));
            let mut town = Town::new(seed, workers, server, vec![client; 16]);
            town.world.act(town.server, |crew, _| crew.scatters = 5);
            town.besiege(HostileKind::Forger, 4, 7);
            town.besiege(HostileKind::Junk, 4, 3);
            town.run_to(420);
            for (n, &client) in town.clients.clone().iter().enumerate().step_by(2) {
                town.world.rebind(client, address(500 + n as u32));
            }
            town.run_to(3_000);
            let (stats, shares) = (town.crew().stats(), town.crew().shares());
            println!("{stats:?}, {shares:?}");
            assert_eq!((stats.strays > 0, stats.strays_dropped), (workers > 1, 0));
            assert_eq!(shares.iter().sum::<usize>(), 12, "{shares:?}");
            if workers > 1 {
                served.iter_mut().zip(shares).for_each(|(served, share)| *served += share);
            }
            assert_eq!(stats.connections, 12);
            town.fates()
        });
        assert_eq!(fates[0], fates[1]);
        let has_block = |fate: &&Fate| fate.blocks == 1 && fate.end.is_none();
        assert_eq!(fates[0].iter().filter(has_block).count(), 12, "{:?}", fates[0]);
    }
    assert!(served.iter().all(|&share| share > 0), "{served:?}");
}

/// A token is one admission, whichever worker it reaches first, and whichever next.
#[test]
fn a_token_is_used_once_at_all_workers() {
    for workers in [1, 4] {
        let key = TokenKey { id: 1, key: Secret::from_bytes([5; 32]) };
        let credentials = ServerCredentials::default().with_token_key(key.clone());
        let server = ServerConfig::new(PROTOCOL_ID, credentials).with_addresses(vec![address(1)]);
        let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 60, TokenServers::One(address(1)));
        let token = key.issue(PROTOCOL_ID, &claims, Secret::from_bytes([6; 32]), [7; 24]).unwrap();
        let client = ClientConfig::new(address(1), PROTOCOL_ID, Credentials::Token(token));
        let mut town = Town::new(SEED, workers, server, vec![client; 12]);
        town.world.act(town.server, |crew, _| crew.scatters = 2);
        town.run_to(3_000);
        let fates = town.fates();
        assert_eq!(fates.iter().filter(|fate| fate.blocks > 0).count(), 1, "{fates:?}");
        assert_eq!(fates.iter().filter(|fate| fate.end.is_none()).count(), 1, "{fates:?}");
    }
}

/// After a restart with more workers or fewer, every client learns of it: its data may reach any worker.
#[test]
fn every_client_hears_of_a_restart() {
    for (before, after) in [(1, 1), (4, 4), (4, 3), (3, 5)] {
        let (mut server, client) = with_secret();
        server.credentials.reset_secret = Some(Secret::from_bytes([8; 32]));
        let mut town = Town::new(SEED, before, server, vec![client; 12]);
        town.run_to(1_000);
        town.world.act(town.server, |crew, now| {
            crew.scatters = 3;
            crew.restart(now, after);
        });
        town.run_to(4_900);
        let fates = town.fates();
        let heard = |fate: &Fate| fate.end == Some(CloseReason::ConnectionUnknown);
        assert!(fates.iter().all(heard), "{before} and {after}: {fates:?}");
    }
}

/// Clients that have the secret and never complete a handshake fill all places: a client that comes takes one
/// of them, also if that place is at another worker. The limits hold at each moment.
#[test]
fn uncompleted_handshakes_at_other_workers_make_room() {
    for seed in SEED..SEED + 2 {
        for workers in [1, 4] {
            let (server, client) = with_secret();
            let limits =
                ServerLimits::default().with_handshakes(8).with_handshakes_without_cookie(4);
            let mut town = Town::new(seed, workers, server.with_limits(limits), vec![client; 8]);
            town.besiege(HostileKind::Holder, 3, 20);
            town.run_to(3_000);
            let fates = town.fates();
            println!("{:?}", town.crew().stats());
            assert!(fates.iter().all(|fate| fate.blocks == 1), "{workers} workers: {fates:?}");
        }
    }
}

/// One budget for the uplink of all: it is kept, used, and no worker has it alone.
#[test]
fn workers_share_one_uplink() {
    const UPLINK_BPS: u64 = 16_000_000;
    for seed in SEED..SEED + 2 {
        let ends = [1, 4].map(|workers| {
            let (server, client) = with_secret();
            let server = server.with_max_uplink_bps(UPLINK_BPS);
            let mut town = Town::new(seed, workers, server, vec![client; 12]);
            let mut least = usize::MAX;
            loop {
                let (now, sent) = (town.world.now(), town.crew().stats().bytes_sent);
                let allowed = UPLINK_BPS / 8 * now.as_nanos() / 1_000_000_000;
                // 2 ms ahead, and what each worker's turn has begun with.
                assert!(sent <= allowed + 64_000, "{sent} bytes until {now:?}, of {allowed}");
                let done = town.fates().iter().filter(|fate| fate.blocks == 1).count();
                if done == 0 {
                    least = town.crew().sent().into_iter().min().unwrap_or_default() as usize;
                }
                if done == 12 {
                    let last = now.as_nanos() / 1_000_000;
                    println!("{workers} workers: all at {last} ms, {least} bytes of the last one");
                    assert!(least > 100_000, "one worker had {least} bytes");
                    return last;
                }
                town.run_to(now.as_nanos() / 1_000_000 + 50);
                assert!(now < Instant::from_millis(12_000), "{done} are done");
            }
        });
        assert!(ends[1] <= ends[0] * 11 / 10, "{ends:?} ms");
    }
}

/// One limit for the memory of all workers: uploads at one worker count at the others.
#[test]
fn memory_is_limited_over_all_workers() {
    const LIMIT: usize = 4 << 20;
    for workers in [1, 4] {
        let (server, client) = with_secret();
        let server = server.with_limits(ServerLimits::default().with_memory_bytes(LIMIT));
        let mut town = Town::new(SEED, workers, server, vec![client; 12]);
        for (n, &client) in town.clients.clone().iter().enumerate() {
            let block = Block::new(1, Rng::stream(SEED, n as u64).bytes(1 << 20));
            town.world.act(client, |host, _| host.app.blocks = Some((block, 1)));
        }
        let mut most = 0;
        for millis in (100..6_000).step_by(5) {
            town.run_to(millis);
            most = most.max(town.crew().held().iter().sum());
        }
        println!("{workers} workers: {most} bytes at most, {:?}", town.crew().stats());
        // What arrives in a round before the others know of it.
        assert!(most <= LIMIT + workers * (64 << 10), "{most}");
        assert!(town.crew().received.len() > 2, "some are done");
    }
}
