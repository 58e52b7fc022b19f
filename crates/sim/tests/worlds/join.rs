//! Joins over haulier/1 in virtual time: how long they take, and what they send before they may.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::ClientConfig;
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::server::ServerConfig;
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Profile, Rng, World, address};

fn server_config() -> ServerConfig {
    configs(Keyed::Secret, ConnectionConfig::default()).0
}

fn client_config() -> ClientConfig {
    configs(Keyed::Secret, ConnectionConfig::default()).1
}

fn block(bytes: usize) -> Block {
    Block::new(1, Rng::new(9).bytes(bytes))
}

/// A link of `rate` with a round trip of `rtt`, all of it on the client's side.
fn access(rate_bps: u64, rtt: Duration) -> Access {
    LinkConfig::new(rate_bps, rtt / 2).into()
}

/// A server with a block for each client, and a client that wants it.
struct Join {
    world: World,
    server: HostId<ServerHost>,
    client: HostId<ClientHost>,
}

impl Join {
    fn new(server: ServerConfig, client: ClientConfig, block: Block, access: &Access) -> Self {
        let mut world = World::new(1);
        let host = ServerHost::giving(block, server, 1);
        let server = world.add(host, address(1), &Access::default());
        let host = ClientHost::new(Script::idle().leaving_after(1), client, Instant::ZERO, 2);
        let client = world.add(host, address(2), access);
        Self { world, server, client }
    }

    fn client(&self) -> &ClientHost {
        self.world.host(self.client)
    }

    /// Until the block is there; how long that took.
    fn run(&mut self) -> Option<Duration> {
        let client = self.client;
        self.world.run_until(Instant::from_millis(120_000), |world| {
            world.host(client).app.joined_after().is_some()
        });
        self.client().app.joined_after()
    }
}

#[test]
fn the_first_slice_arrives_after_one_round_trip() {
    let rtt = Duration::from_millis(50);
    let mut server = server_config();
    server.connection.max_rate_bps = 9_000_000;
    let link = access(10_000_000, rtt);
    let mut join = Join::new(server, client_config(), block(256 << 10), &link);
    let all = join.run().expect("a block");
    // Three requests up and one response down at 10 Mbit/s.
    let serialized = Duration::from_nanos((1228 * 3 + 1228) * 800);
    let is_first = |event: &Event| matches!(event, Event::BlockProgress { .. });
    let first = join.client().app.first(is_first).unwrap();
    assert!(first <= rtt + serialized, "{first:?}");
    println!("first {first:?}, all {all:?}");
}

/// H-3.5a from outside, after every datagram, and that all of them end: the hosts check it in each step.
#[test]
fn joins_keep_the_rule_of_three_on_every_profile() {
    for profile in Profile::ALL {
        for copies in [1, 3, 10] {
            let link = profile.link();
            let mut server = server_config();
            server.connection.max_rate_bps = link.rate_bps.unwrap_or(10_000_000) * 9 / 10;
            let client = client_config().with_copies(copies);
            let mut join = Join::new(server, client, block(256 << 10), &link.into());
            let took = join.run();
            assert!(took.is_some(), "{} with {copies} copies", profile.name);
            let meter = &join.world.host(join.server).meter;
            meter.check();
            println!(
                "{:8} {copies:2} copies: {:.2} s, at worst {:.2} bytes out for one in",
                profile.name,
                took.unwrap_or_default().as_secs_f64(),
                meter.worst_bytes(),
            );
        }
    }
}

#[test]
fn everything_ends_well() {
    let rtt = Duration::from_millis(50);
    let link = access(10_000_000, rtt);
    let mut join = Join::new(server_config(), client_config(), block(600_000), &link);
    join.world.run_to(Instant::from_millis(60_000));
    let last = join.client().app.heard.last();
    assert!(matches!(last, Some((_, Event::Closed(_)))), "{last:?}");
    let server = join.world.host(join.server);
    let last = server.past.last().and_then(|app| app.heard.last());
    assert_eq!(server.server.stats().connections, 0, "{last:?}");
}

/// An end that only receives knows the round trip too, and over a long path nothing is retransmitted that
/// was not lost.
#[test]
fn both_ends_measure_and_a_long_way_costs_no_resends() {
    for rtt in [20, 200, 600] {
        let mut server = server_config();
        server.connection.max_rate_bps = 20_000_000;
        let link = access(25_000_000, Duration::from_millis(rtt));
        let mut join = Join::new(server, client_config(), block(1 << 20), &link);
        join.run();
        let connection = join.client().client.as_ref().and_then(|client| client.connection());
        let measured = connection.unwrap().stats().rtt.expect("a sample").as_millis();
        let stats = join.world.host(join.server).connection().unwrap().stats();
        println!(
            "{rtt} ms: {measured} ms, {} resent of {}",
            stats.slices_resent, stats.slices_sent
        );
        assert!(measured >= u128::from(rtt), "{measured} ms on a way of {rtt} ms");
        assert!(stats.slices_resent <= 12, "{} of {}", stats.slices_resent, stats.slices_sent);
    }
}
