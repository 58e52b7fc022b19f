//! Drills: one liar against one machine, with nothing else in the way.
//!
//! What a drill finds is the lie's doing, so it is the precise half of the oracles; the other half is the
//! soak, where liars, honest clients and faults of links meet. The invariant: a drill depends on the lie, the
//! role and the seed alone.

use std::time::Duration;

use haulier_core::{Batch, Instant};
use haulier_proto::connection::{Block, Connection, ConnectionConfig};
use haulier_proto::internals::Role;

use super::{Bound, Finding, Liar, Lie, Victim};
use crate::{Probability, Rng};

/// Datagrams of a liar in one drill: the window of datagrams, of 8192, is passed.
const DATAGRAMS: u64 = 9_000;

/// The block that a machine sends while its peer lies about what arrived.
const BLOCK_BYTES: usize = 4 << 20;

/// The maximum number of datagrams that a machine may send at one moment.
const FLOOD: usize = 600;

/// Runs a drill. Returns what it found, if anything.
///
/// # Errors
/// The first bound that the machine exceeded.
///
/// # Panics
/// If the machine does, or floods, or closes the connection of a liar that obeys the wire.
pub fn drill(lie: Lie, role: Role, seed: u64) -> Result<(), Finding> {
    let mut rng = Rng::stream(seed, 92);
    let steps = rng.chance(Probability::percent(50));
    // The clock starts late enough to be set back.
    let mut now = Instant::from_millis(100_000);
    let mut true_now = now;
    let mut victim = Victim::new(role, now, config(lie)).expect("a handshake without loss");
    if lie.needs_a_block() {
        victim.send_block(now, Block::new(1, rng.bytes(BLOCK_BYTES)));
    }
    let mut liar = Liar::new(lie, seed);
    let mut batch = Batch::new(FLOOD);
    for _ in 0..DATAGRAMS {
        let mut datagram = liar.next(true_now, &mut victim.link);
        if let Some(finding) = victim.give(now, &mut datagram) {
            return Err(finding);
        }
        let passed = Duration::from_micros(500);
        (now, true_now) = (now + passed, true_now + passed);
        if steps && rng.below(1_000) == 0 {
            now = step(&mut rng, now);
        }
        if lie == Lie::AckFlood {
            victim.act(0, Connection::ping);
        }
        victim.handle_timeout(now);
        if !lie.is_unread() {
            victim.read(now);
        }
        batch.clear();
        victim.poll_transmit(now, &mut batch);
        assert!(!batch.is_full(), "a flood at one moment");
        for (_, datagram) in batch.iter() {
            if let Some(plaintext) = victim.link.open_data(true_now, datagram) {
                liar.hear(&plaintext);
            }
        }
        if let Some(finding) = judge(lie, &mut victim) {
            return Err(finding);
        }
    }
    let is_open = victim.connection().is_some_and(|connection| connection.state().is_open());
    assert!(is_open || lie.breaks_the_wire(), "{lie:?}: closed, so that it shows nothing");
    victim.check_invariants();
    Ok(())
}

/// Whether the victim announces to its peer that it takes no blocks: nothing is admitted from the liar then.
const fn admits_nothing(lie: Lie) -> bool {
    matches!(lie, Lie::UnannouncedBombs | Lie::UnannouncedSlices)
}

fn config(lie: Lie) -> ConnectionConfig {
    let config = ConnectionConfig::default();
    if admits_nothing(lie) { config.with_max_block_bytes(0) } else { config }
}

fn judge(lie: Lie, victim: &mut Victim) -> Option<Finding> {
    if !admits_nothing(lie) {
        return victim.exceeded();
    }
    victim.exceeded_with(0).map(|finding| match finding.bound {
        Bound::Uncounted => Finding { bound: Bound::Unadmitted, ..finding },
        _ => finding,
    })
}

/// Ahead by up to 5 s, a third of the idle timeout, or back by up to a second.
fn step(rng: &mut Rng, now: Instant) -> Instant {
    if rng.chance(Probability::percent(50)) {
        now + Duration::from_millis(rng.below(5_000))
    } else {
        let nanos = now.as_nanos() - rng.below(1_000_000_000);
        Instant::from_nanos(nanos)
    }
}
