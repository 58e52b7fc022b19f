//! Joins over haulier/1 in virtual time: how long they take, and what they send before they may.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, Event};
use haulier_proto::crypto::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::join::{Answer, ClientHost, JoinHost, PROTOCOL_ID, ServerHost, address};
use haulier_sim::{Access, HostId, Internet, LinkConfig, Profile, Rng};

fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

fn server_config() -> ServerConfig {
    let credentials = ServerCredentials { secret: Some(secret()), ..ServerCredentials::default() };
    ServerConfig::new(PROTOCOL_ID, credentials)
}

fn client_config() -> ClientConfig {
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    ClientConfig::new(address(1), PROTOCOL_ID, credentials)
}

fn world(bytes: usize) -> Block {
    Block::new(1, Rng::new(9).bytes(bytes))
}

/// A link of `rate` with a round trip of `rtt`, all of it on the client's side.
fn access(rate_bps: u64, rtt: Duration) -> Access {
    let link = LinkConfig { rate_bps: Some(rate_bps), delay: rtt / 2, ..LinkConfig::default() };
    Access { up: link.clone(), down: link }
}

fn join(
    server: ServerConfig,
    client: ClientConfig,
    block: Block,
    access: &Access,
) -> (Internet<JoinHost>, HostId, HostId) {
    let mut internet = Internet::new(1);
    let host = ServerHost::new(server, Answer::Block(block), 1);
    let server = internet.add(JoinHost::Server(Box::new(host)), address(1), &Access::default());
    let host = ClientHost::new(client, Instant::ZERO, 2);
    let client = internet.add(JoinHost::Client(Box::new(host)), address(2), access);
    (internet, server, client)
}

#[test]
fn the_first_slice_arrives_after_one_round_trip() {
    let rtt = Duration::from_millis(50);
    let mut server = server_config();
    server.connection.max_rate_bps = 9_000_000;
    let (mut internet, _, client) =
        join(server, client_config(), world(256 << 10), &access(10_000_000, rtt));
    let done = internet.run_until(Instant::from_millis(20_000), |internet| {
        internet.host(client).client().joined_after().is_some()
    });
    let host = internet.host(client).client();
    assert!(done, "{} events", host.events.len());
    // Three requests up and one response down at 10 Mbit/s.
    let serialized = Duration::from_nanos((1228 * 3 + 1228) * 800);
    let first = host.first(|event| matches!(event, Event::BlockProgress { .. })).unwrap();
    assert!(first <= rtt + serialized, "{first:?}");
    println!("first {first:?}, all {:?}", host.joined_after());
}

/// H-3.4a from outside, after every datagram, and that all of them end: the hosts check it in each step.
#[test]
fn joins_keep_the_rule_of_three_on_every_profile() {
    for profile in Profile::ALL {
        for copies in [1, 3, 10] {
            let link = profile.link();
            let mut server = server_config();
            server.connection.max_rate_bps = link.rate_bps.unwrap_or(10_000_000) * 9 / 10;
            let access = Access { up: link.clone(), down: link };
            let client = ClientConfig { copies, ..client_config() };
            let (mut internet, server, client) = join(server, client, world(256 << 10), &access);
            let joined = internet.run_until(Instant::from_millis(120_000), |internet| {
                internet.host(client).client().joined_after().is_some()
            });
            assert!(joined, "{} with {copies} copies", profile.name);
            let meter = &internet.host(server).server().meter;
            meter.check();
            println!(
                "{:8} {copies:2} copies: {:.2} s, at worst {:.2} bytes out for one in",
                profile.name,
                internet.host(client).client().joined_after().unwrap_or_default().as_secs_f64(),
                meter.worst_bytes(),
            );
        }
    }
}

#[test]
fn everything_ends_well() {
    let rtt = Duration::from_millis(50);
    let (mut internet, server, client) =
        join(server_config(), client_config(), world(600_000), &access(10_000_000, rtt));
    internet.run_to(Instant::from_millis(60_000));
    let events = &internet.host(client).client().events;
    assert!(matches!(events.last().unwrap().1, Event::Closed(_)), "{:?}", events.last());
    let server = internet.host(server).server();
    assert_eq!(server.server.stats().connections, 0, "{:?}", server.events.last());
}

/// Who only receives knows the round trip all the same, and who sends over a long way sends nothing twice
/// that was not lost.
#[test]
fn both_ends_measure_and_a_long_way_costs_no_resends() {
    for rtt in [20, 200, 600] {
        let mut server = server_config();
        server.connection.max_rate_bps = 20_000_000;
        let link = access(25_000_000, Duration::from_millis(rtt));
        let (mut internet, server, client) = join(server, client_config(), world(1 << 20), &link);
        internet.run_until(Instant::from_millis(60_000), |internet| {
            internet.host(client).client().joined_after().is_some()
        });
        let host = internet.host(client).client();
        let connection = host.client.as_ref().and_then(|client| client.connection()).unwrap();
        let measured = connection.rtt().smoothed_rtt().expect("a sample").as_millis();
        let server = &internet.host(server).server().server;
        let id = server.connections().next().unwrap();
        let stats = server.connection(id).unwrap().stats();
        println!(
            "{rtt} ms: {measured} ms, {} resent of {}",
            stats.slices_resent, stats.slices_sent
        );
        assert!(measured >= u128::from(rtt), "{measured} ms on a way of {rtt} ms");
        assert!(stats.slices_resent <= 12, "{} of {}", stats.slices_resent, stats.slices_sent);
    }
}
