//! Unit tests of the bulk sender and receiver.

mod sender;

use alloc::vec::Vec;
use core::time::Duration;

use haulier_control::{Controller, Known, PathId};

use crate::Instant;

use crate::bulk::{Sender, SenderConfig};
use crate::transit::{AckFrame, ChunkAt, KEPT, Ledger, Outgoing, Symbol, Timing};

const fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Bytes that differ from slice to slice.
fn chunk_of(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A sender with its ledger, and the path that it sends on.
struct Sending {
    sender: Sender,
    ledger: Ledger,
    timing: Timing,
    path: Controller,
}

impl Sending {
    fn new(config: SenderConfig, known: Known) -> Self {
        let id = PathId::FIRST;
        let mut path = Controller::new(micros(0), id, 0, config.min_rate_bps, known);
        let sender = Sender::new(micros(0), config, &mut path);
        Self { sender, ledger: Ledger::new(), timing: Timing::new(id), path }
    }

    /// The path is another one from now on, or what is measured of this one begins anew.
    fn measure_anew(&mut self, now: Instant, id: PathId) {
        let from = self.ledger.next_number();
        self.path = Controller::new(now, id, from, 0, Known::NOTHING);
        self.timing = Timing::new(id);
        self.sender.set_rtt(&mut self.path, ms(40));
        self.sender.begin_path(&mut self.path);
    }

    /// A slice of a chunk is sent with this many bytes.
    fn send(&mut self, now: Instant, wire_bytes: usize, slice: (ChunkAt, Symbol)) -> u64 {
        let (number, slice) = (self.ledger.next_number(), Some(slice));
        self.sender.on_sent(&mut self.path, now, number, wire_bytes, slice);
        let (is_ack_eliciting, is_marked) = (true, false);
        let outgoing = Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice };
        self.ledger.on_sent(now, &mut self.timing, outgoing);
        number
    }

    fn handle_ack(&mut self, now: Instant, ack: &AckFrame) {
        let Self { sender, ledger, timing, path } = self;
        let mut walk = ledger.begin_ack(ack).unwrap();
        while let Some(acked) = ledger.poll_acked(now, timing, &mut walk) {
            sender.on_acked(path, now, &acked);
        }
        ledger.end_ack(timing, &walk);
        sender.end_ack(path, now, ledger, timing.reordering());
    }

    /// Settles fates as a connection does.
    fn settle(&mut self, now: Instant) {
        let Self { sender, ledger, timing, path } = self;
        while let Some(settled) = ledger.poll_fate(timing) {
            sender.on_settled(path, &settled);
        }
        sender.note_in_flight(path, ledger);
        while ledger.poll_lost(now, timing).is_some() {}
        ledger.trim(KEPT);
    }
}
