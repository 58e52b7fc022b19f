//! A game that calls the machine once a frame, and one that calls it whenever it asks for that: a block takes
//! hardly longer.
//!
//! Both ends are those of a join, and the block that is timed goes over the connection that stands then. A host
//! behind a [`SlowSocket`] reads, and sends, once a frame. `FRAMES_SEED` replays it.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::join::{Answer, ClientHost, JoinHost, PROTOCOL_ID, ServerHost, address};
use haulier_sim::odd::{Reading, SlowSocket};
use haulier_sim::{Access, Host, HostId, Internet, LinkConfig, Loss, Probability, Rng};

/// The first seed: 1, or what the environment says.
fn seed() -> u64 {
    std::env::var("FRAMES_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Seeds that a median is taken over. Each has its own phases of the frames.
const RUNS: u64 = 5;

/// How much longer a block may take by frames.
const LONGER: f64 = 1.15;

const CAP_BPS: u64 = 5_000_000;

/// How the two ends are called; zero is whenever they ask for it.
#[derive(Clone, Copy, Debug)]
struct Frames {
    server: Duration,
    client: Duration,
}

impl Frames {
    const NONE: Self = Self { server: Duration::ZERO, client: Duration::ZERO };

    fn of_server(hz: u64) -> Self {
        Self { server: Duration::from_nanos(1_000_000_000 / hz), ..Self::NONE }
    }

    fn of_both(hz: u64) -> Self {
        Self { client: Self::of_server(hz).server, ..Self::of_server(hz) }
    }
}

#[derive(Clone, Debug)]
struct Link {
    name: &'static str,
    config: LinkConfig,
}

fn link(name: &'static str, mbit: u64, rtt_ms: u64, queue_kib: u64, loss_percent: u64) -> Link {
    let loss = match loss_percent {
        0 => Loss::None,
        percent => Loss::Independent(Probability::percent(percent)),
    };
    let config = LinkConfig {
        rate_bps: Some(mbit * 1_000_000),
        delay: Duration::from_millis(rtt_ms) / 2,
        queue_bytes: Some(queue_kib << 10),
        loss,
        ..LinkConfig::default()
    };
    Link { name, config }
}

/// Where a frame's worth is no more than a queue holds that nobody knows yet.
fn links() -> [Link; 4] {
    [
        link("2 Mbit/s, 50 ms", 2, 50, 256, 0),
        link("6 Mbit/s, 140 ms, 3 % lost", 6, 140, 96, 3),
        link("10 Mbit/s, 50 ms", 10, 50, 64, 0),
        link("10 Mbit/s, 100 ms, 5 % lost", 10, 100, 256, 5),
    ]
}

type World = Internet<SlowSocket<JoinHost>>;

fn world(link: &Link, rate_bps: u64, frames: Frames, seed: u64) -> (World, HostId, HostId) {
    let connection = ConnectionConfig { rate_bps, ..ConnectionConfig::default() };
    let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
    let config = ServerConfig { connection, ..ServerConfig::new(PROTOCOL_ID, credentials) };
    let visit = Answer::Block(Block::new(1, vec![1; 64 << 10]));
    let server = JoinHost::Server(Box::new(ServerHost::new(config, visit, seed)));
    let config = ClientConfig::new(address(1), PROTOCOL_ID, Credentials::Open);
    let mut client = ClientHost::new(config, Instant::ZERO, seed);
    client.leaves_after_blocks = None;
    let client = JoinHost::Client(Box::new(client));
    let behind = |host, every, purpose| {
        let phase = Rng::stream(seed, purpose).next_u64();
        SlowSocket::new(host, Reading { every, holds: None }, phase)
    };
    let mut world = Internet::new(seed);
    let server = world.add(behind(server, frames.server, 1), address(1), &Access::default());
    let access = Access { up: link.config.clone(), down: link.config.clone() };
    let client = world.add(behind(client, frames.client, 2), address(2), &access);
    (world, server, client)
}

fn blocks(world: &World, client: HostId) -> usize {
    let events = &world.host(client).host.client().events;
    events.iter().filter(|(_, event)| matches!(event, Event::Block { .. })).count()
}

/// From the frame in which the server hands the block over to the one in which the client has it.
fn time(link: &Link, bytes: usize, rate_bps: u64, frames: Frames, seed: u64) -> f64 {
    let (mut world, server, client) = world(link, rate_bps, frames, seed);
    let patience = Duration::from_secs(60);
    let visited = world.run_until(Instant::ZERO + patience, |world| blocks(world, client) == 1);
    assert!(visited, "{}: no visit, seed {seed}", link.name);
    world.run_to(world.now() + Duration::from_secs(2));
    if !frames.server.is_zero() {
        let frame = world.host(server).poll_timeout().unwrap();
        world.run_to(Instant::from_nanos(frame.as_nanos() - 1));
    }
    let begins = world.now();
    let block = Block::new(2, Rng::stream(seed, 3).bytes(bytes));
    world.act(server, |socket, _| {
        let server = &mut socket.host.server_mut().server;
        let id = server.connections().next().unwrap();
        server.connection_mut(id).unwrap().send_block(&block).unwrap();
    });
    let is_there = world.run_until(begins + patience, |world| blocks(world, client) == 2);
    assert!(is_there, "{}: no block by {frames:?}, seed {seed}", link.name);
    world.now().since(begins).as_secs_f64()
}

fn median(link: &Link, bytes: usize, rate_bps: u64, frames: Frames) -> f64 {
    let mut times: Vec<f64> =
        (0..RUNS).map(|n| time(link, bytes, rate_bps, frames, seed() + n)).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Each size, with a limit and without one; `by` says how the ends are called, and `waits` how long what has
/// arrived may wait for a frame.
fn hardly_longer(links: &[Link], longer: f64, by: Frames) {
    let mut failed = Vec::new();
    for link in links {
        for bytes in [256 << 10, 1 << 20] {
            for rate_bps in [u64::MAX, CAP_BPS] {
                let in_time = median(link, bytes, rate_bps, Frames::NONE);
                let framed = median(link, bytes, rate_bps, by);
                let limit = if rate_bps == CAP_BPS { "5 Mbit/s" } else { "no limit" };
                let line = format!(
                    "{}, {} KiB, {limit}: {:.0} ms in time, {:.0} by {by:?}, {:.2}, seed {}",
                    link.name,
                    bytes >> 10,
                    in_time * 1e3,
                    framed * 1e3,
                    framed / in_time,
                    seed(),
                );
                println!("{line}");
                if framed > longer * in_time + by.client.as_secs_f64() {
                    failed.push(line);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_server_at_60_hz_sends_as_fast() {
    hardly_longer(&links(), LONGER, Frames::of_server(60));
}

#[test]
fn a_server_at_30_hz_sends_as_fast() {
    hardly_longer(&links(), LONGER, Frames::of_server(30));
}

/// What has arrived waits for the client's frame, too.
#[test]
fn both_ends_by_frames_are_as_fast() {
    for hz in [60, 30] {
        hardly_longer(&links(), LONGER, Frames::of_both(hz));
    }
}
