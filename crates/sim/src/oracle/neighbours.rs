//! Honest clients among liars: behind the address of a liar that was there before, and beside hoarders.
//!
//! What a server learns from one client must not harm another, and neither must the memory that one makes it
//! hold. The invariant: two runs that are compared differ only in the liar.

use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::server::ServerLimits;

use super::{Lie, LyingClient};
use crate::attack::Attacker;
use crate::hosts::{ClientHost, Keyed, Script, ServerHost, configs, secret};
use crate::{Access, LinkConfig, Rng, World, address};

/// How much longer a join may take, as a factor, because of a liar that was there before.
const MAX_SLOW_DOWN: f64 = 2.0;

/// How many more bytes may be sent to an honest client, as a factor, because of that liar: a train at the
/// rate that the liar's address took is lost if the queue is shorter, and then sent again.
const MAX_MORE_BYTES: f64 = 2.0;

/// What each client gets: two chunks.
const BLOCK_BYTES: usize = 512 << 10;

/// The queue of the honest client's link: datagrams that are sent too early are lost.
const QUEUE_BYTES: u64 = 32 << 10;

/// The memory that the server has for all its clients, and the number of hoarders: each holds up to a chunk.
const MEMORY_BYTES: usize = 4 << 20;
const HOARDERS: u16 = 24;

/// How long the upload beside them may take; alone it takes a second.
const MAX_UPLOAD: Duration = Duration::from_secs(30);

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

/// An honest client uploads a block while many clients of one other address fill the server's memory.
///
/// # Errors
/// How the honest client was harmed.
pub fn hoarders(seed: u64) -> Result<(), String> {
    let mut rng = Rng::stream(seed, 97);
    let mut world = World::new(seed);
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let limits = ServerLimits::default().with_memory_bytes(MEMORY_BYTES);
    let host = ServerHost::new(|_, _| Script::idle(), server.with_limits(limits), seed);
    world.add(host, address(1), &Access::default());
    for number in 0..HOARDERS {
        let liar = LyingClient {
            lie: Lie::Hoarding,
            server: address(1),
            secret: Some(secret()),
            every: Duration::from_millis(rng.between(5, 15)),
            at_once: 1,
            from: Instant::from_millis(rng.below(1_000)),
            until: END,
            seed: rng.next_u64(),
        };
        let mut own = address(8);
        own.set_port(5_000 + number);
        world.add(Attacker::new(liar.mind()), own, &Access::default());
    }
    let link = LinkConfig::new(10_000_000, Duration::from_millis(20));
    let script = Script::idle().sending(Block::new(1, rng.bytes(2 * BLOCK_BYTES)), 1);
    let honest = ClientHost::new(script, client, HONEST_COMES, seed);
    let honest = world.add(honest, address(7), &link.into());
    let is_sent = |event: &Event| matches!(event, Event::BlockSent { .. });
    let is_closed = |event: &Event| matches!(event, Event::Closed(_));
    world.run_until(HONEST_COMES + MAX_UPLOAD, |world| {
        let app = &world.host(honest).app;
        app.first(is_sent).or_else(|| app.first(is_closed)).is_some()
    });
    let app = &world.host(honest).app;
    match app.first(is_sent) {
        Some(_) => Ok(()),
        None => Err(format!("the upload failed: {:?}", app.heard.last())),
    }
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
            at_once: 1,
            from: Instant::ZERO,
            until: LIAR_LEAVES,
            seed,
        };
        let mut neighbour = home;
        neighbour.set_port(5_000);
        // The liar's link is no better: any report beyond it is a lie.
        world.add(Attacker::new(liar.mind()), neighbour, &link.clone().into());
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
