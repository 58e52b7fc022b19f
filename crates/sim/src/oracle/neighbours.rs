//! Neighbours: an honest client behind the address of a liar, with and without him.
//!
//! What a server learns from one client must not be held against another. The invariant: the two runs differ
//! in the liar alone, and he has left when the honest client comes.

use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::{Block, ConnectionConfig};

use super::{Lie, LyingClient};
use crate::attack::Attacker;
use crate::hosts::{ClientHost, Keyed, Script, ServerHost, configs, secret};
use crate::{Access, LinkConfig, Rng, World, address};

/// How much longer a join may take because of a liar who was there before.
const MAX_SLOW_DOWN: f64 = 2.0;

/// How many more bytes may be sent to an honest client because of him.
const MAX_MORE_BYTES: f64 = 1.5;

/// What each client gets: two chunks.
const BLOCK_BYTES: usize = 512 << 10;

/// The queue of the honest client's link: what is sent too early is lost.
const QUEUE_BYTES: u64 = 32 << 10;

const LIAR_LEAVES: Instant = Instant::from_millis(3_000);
const HONEST_COMES: Instant = Instant::from_millis(4_000);
const END: Instant = Instant::from_millis(300_000);

/// A join: how long it took, and the bytes that the server sent for it.
#[derive(Clone, Copy, Debug)]
struct Join {
    time: Duration,
    bytes: u64,
}

/// Runs both, and compares them.
///
/// # Errors
/// How the honest client was harmed.
pub fn neighbours(lie: Lie, seed: u64) -> Result<(), String> {
    let quiet = join(None, seed).ok_or("the honest client alone never joined")?;
    let Some(harmed) = join(Some(lie), seed) else {
        return Err(format!("with a liar before him ({lie:?}) the honest client never joined"));
    };
    let slow_down = harmed.time.as_secs_f64() / quiet.time.as_secs_f64();
    let more_bytes = harmed.bytes as f64 / quiet.bytes as f64;
    if slow_down > MAX_SLOW_DOWN || more_bytes > MAX_MORE_BYTES {
        return Err(format!("{lie:?}: {harmed:?} after a liar, {quiet:?} without"));
    }
    Ok(())
}

fn join(lie: Option<Lie>, seed: u64) -> Option<Join> {
    let mut rng = Rng::stream(seed, 94);
    let mut world = World::new(seed);
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let block = Block::new(1, rng.bytes(BLOCK_BYTES));
    let host = ServerHost::giving(block, server, seed);
    let server = world.add(host, address(1), &Access::default());
    let home = address(7);
    let rate = *rng.pick(&[2_000_000, 5_000_000, 20_000_000]);
    let mut link = LinkConfig::new(rate, Duration::from_millis(rng.between(5, 40)));
    link.queue_bytes = Some(QUEUE_BYTES);
    if let Some(lie) = lie {
        let liar = LyingClient {
            lie,
            server: address(1),
            secret: Some(secret()),
            every: Duration::from_millis(rng.between(5, 20)),
            from: Instant::ZERO,
            until: LIAR_LEAVES,
            seed,
        };
        let mut neighbour = home;
        neighbour.set_port(5_000);
        world.add(Attacker::new(liar.mind()), neighbour, &Access::default());
    }
    // One copy: the spacing of several would show the server the link.
    let script = Script::idle().leaving_after(1);
    let honest = ClientHost::new(script, client.with_copies(1), HONEST_COMES, seed);
    let honest = world.add(honest, home, &link.into());
    world.run_to(HONEST_COMES);
    let before = world.host(server).server.stats().bytes_sent;
    world.run_until(END, |world| world.host(honest).app.joined_after().is_some());
    let time = world.host(honest).app.joined_after()?;
    Some(Join { time, bytes: world.host(server).server.stats().bytes_sent - before })
}
