//! A hostile peer with the right keys, against a server or a client.

use std::time::Duration;

use haulier_core::{Batch, Instant};
use haulier_proto::connection::{Block, ConnectionConfig, Urgency};
use haulier_proto::internals::Role;

use crate::oracle::{Finding, Victim};

/// The number of datagrams at one instant that counts as a flood.
const FLOOD: usize = 600;

/// The longest plaintext of a datagram.
const MAX_PLAINTEXT_BYTES: usize = 1171;

/// A script of frames, sealed as the peer would, of time steps and of calls, against a server (if its first
/// byte is even) or a client (if it is odd) that is itself sending; everything is checked after each step,
/// the bounds on memory and work too.
///
/// # Panics
/// If an invariant does not hold, a deadline is left behind, the machine floods, or it exceeds a bound that
/// no known fault breaks.
pub fn connection(script: &[u8]) {
    let Some((&first, script)) = script.split_first() else { return };
    let mut now = Instant::from_millis(100_000);
    let Some(mut run) = Run::new(first, now) else { return };
    let mut rest = script;
    while let Some((&op, after)) = rest.split_first() {
        rest = after;
        match op {
            0..=199 => {
                // The next bytes are a plaintext, so that the fuzzer makes frames.
                let length = usize::from(op) * 6;
                let (plaintext, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                run.give(now, plaintext);
            }
            200..=235 => now = now + Duration::from_millis(1 << ((op - 200) / 3)),
            // The clock is set back, by up to a second.
            236..=239 => {
                let back = 1_000_000 * 10u64.pow(u32::from(op - 236));
                now = Instant::from_nanos(now.as_nanos().saturating_sub(back));
            }
            _ => run.act(now, op),
        }
        run.settle(now);
    }
}

struct Run {
    victim: Victim,
    reads: bool,
    batch: Batch,
}

impl Run {
    fn new(first: u8, now: Instant) -> Option<Self> {
        let connection = ConnectionConfig::default()
            .with_urgency(if first & 2 != 0 { Urgency::LoadScreen } else { Urgency::DuringPlay })
            .with_max_unread_block_bytes(1 << 16)
            .with_max_block_bytes(1 << 20);
        let role = if first & 1 == 0 { Role::Server } else { Role::Client };
        let mut victim = Victim::new(role, now, connection)?;
        victim.send_block(now, Block::new(1, vec![3; 70_000]));
        Some(Self { victim, reads: true, batch: Batch::new(FLOOD + 1) })
    }

    fn give(&mut self, now: Instant, plaintext: &[u8]) {
        let plaintext = &plaintext[..plaintext.len().min(MAX_PLAINTEXT_BYTES)];
        let mut datagram = self.victim.link.seal(plaintext);
        demand_none(self.victim.give(now, &mut datagram));
    }

    fn act(&mut self, now: Instant, op: u8) {
        self.reads = op & 1 != 0;
        match op & 6 {
            0 => self.victim.act(3000, |connection| {
                let _full = connection.send_packet(vec![op; 3000]);
            }),
            2 => self.victim.act(100, |connection| {
                let _full = connection.send_message(vec![op; 100]);
            }),
            4 => self.victim.send_block(now, Block::new(2, vec![op; 2000])),
            _ => {}
        }
    }

    fn settle(&mut self, now: Instant) {
        self.victim.handle_timeout(now);
        self.batch.clear();
        for _ in 0..2 {
            if self.reads {
                self.victim.read(now);
            }
            self.victim.poll_transmit(now, &mut self.batch);
        }
        assert!(!self.batch.is_full(), "a flood at one moment");
        assert!(self.batch.iter().all(|(_, datagram)| datagram.len() <= 1200));
        self.victim.check_invariants();
        demand_none(self.victim.exceeded());
        // Reading events may have woken it once more; any other deadline in the past would spin.
        if !self.reads {
            let deadline = self.victim.poll_timeout();
            assert!(deadline.is_none_or(|at| at > now), "a deadline left behind: {deadline:?}");
        }
    }
}

fn demand_none(finding: Option<Finding>) {
    if let Some(finding) = finding.filter(|finding| !finding.bound.is_broken()) {
        panic!("{}", finding.what);
    }
}
