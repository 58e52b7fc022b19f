//! How soon a block arrives that is sent beside a game, where nothing else uses the link.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig, Urgency};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0714;

/// How long a client's blocks of this size took, one after the other, from its start on.
fn times(link: &LinkConfig, bytes: usize, blocks: usize) -> Vec<Duration> {
    times_with(link, bytes, blocks, Urgency::DuringPlay)
}

/// How long a client's blocks of this size took with this urgency, one after the other, from its start on.
fn times_with(link: &LinkConfig, bytes: usize, blocks: usize, urgency: Urgency) -> Vec<Duration> {
    let connection = ConnectionConfig::default().with_urgency(urgency);
    let (server, client) = configs(Keyed::Secret, connection);
    let block = Block::new(1, Rng::stream(SEED, 1).bytes(bytes));
    let script = move |_, _: &_| Script::idle().sending(block.clone(), blocks);
    let mut world = World::new(SEED);
    world.add(ServerHost::new(script, server, SEED), address(1), &Access::default());
    let client = ClientHost::new(Script::idle(), client, Instant::ZERO, SEED + 1);
    let client = world.add(client, address(2), &Access::from(link.clone()));
    world.run_to(Instant::from_millis(20_000));
    let ends = &world.host(client).app.received;
    let begins = [Instant::ZERO].into_iter().chain(ends.iter().copied());
    ends.iter().zip(begins).map(|(end, begin)| end.since(begin)).collect()
}

/// Loopback, or a LAN: it took 1.7 and 2.0 s, for the rate grew by a seventh in each round.
#[test]
fn a_near_link_without_a_queue_is_used_soon() {
    let link = LinkConfig::new(1_000_000_000, Duration::from_micros(50)).with_queue(256 << 10);
    for (bytes, millis) in [(256 << 10, 300), (1 << 20, 400)] {
        let took = times(&link, bytes, 1)[0];
        println!("{bytes} bytes: {took:?}");
        assert!(took < Duration::from_millis(millis), "{bytes} bytes: {took:?}");
    }
}

/// A block begins, with caution, at the rate that the block before it has shown.
#[test]
fn the_next_block_begins_with_what_the_path_showed() {
    let link = LinkConfig::new(20_000_000, Duration::from_millis(20)).with_queue(128 << 10);
    let took = times(&link, 256 << 10, 4);
    println!("{took:?}");
    let [first, .., last] = took[..] else { panic!("no blocks") };
    assert!(first < Duration::from_millis(350) && last < Duration::from_millis(200), "{took:?}");
}

/// On an idle link a block takes at most twice as long as on a load screen, from the first block on. It once
/// took 1.8 s over fiber, where a load screen's takes 0.05 s, because the rate began at 400 kbit/s and grew
/// by a seventh in each round.
#[test]
fn an_idle_link_is_used_as_soon_as_by_a_load_screen() {
    for (mbit, rtt_ms) in [(100, 20), (50, 40), (40, 60), (200, 10), (20, 30)] {
        let link = LinkConfig::new(mbit * 1_000_000, Duration::from_micros(rtt_ms * 500));
        let link = link.with_queue(256 << 10);
        let [play, load] = [Urgency::DuringPlay, Urgency::LoadScreen]
            .map(|urgency| times_with(&link, 300 << 10, 3, urgency));
        println!("{mbit} Mbit/s, {rtt_ms} ms: {play:?}, as a load screen {load:?}");
        let is_as_soon = play.iter().zip(&load).all(|(play, load)| *play < 2 * *load);
        assert!(is_as_soon, "{mbit} Mbit/s, {rtt_ms} ms");
    }
}
