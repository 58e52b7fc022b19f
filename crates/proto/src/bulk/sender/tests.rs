//! The counts that change with each datagram are those of all that is in flight.

use alloc::vec::Vec;
use core::time::Duration;

use haulier_control::{Known, PathId, Rate, Urgency};
use proptest::prelude::*;

use super::super::chunk::OpenChunk;
use super::super::credit::Credit;
use super::super::cut::SliceSize;
use super::*;
use crate::bulk::{NewBlock, SenderConfig};
use crate::transit::{AckFrame, ArrivalsFrame, ChunkAt, KEPT, Outgoing, Timing};

const CONFIG: SenderConfig = SenderConfig {
    urgency: Urgency::LoadScreen,
    max_rate_bps: u64::MAX,
    min_rate_bps: 200_000,
    give_up_after: Duration::from_secs(15),
    idle_timeout_ms: 0,
    first_number: 0,
    slice_room: 1036,
    max_slice: SliceSize::SMALLEST_OF_FULL_CHUNK,
    max_open: 1024,
    has_repair: true,
    receive_buffer: 0,
    credit: Credit::new(u64::MAX),
};

const CHUNK: usize = 16 * 1024;

/// What may happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time passes, and as many slices go as may.
    Send { micros: u64 },
    /// All datagrams in flight except the newest `back` are acknowledged, without one in `lost`; they arrived
    /// `apart` microseconds apart.
    Ack { back: u64, lost: u64, apart: u64 },
    /// A block of this number of chunks.
    Block { chunks: usize },
    /// The receiver has the oldest open chunk.
    Done,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..30_000_u64).prop_map(|micros| Step::Send { micros }),
        1 => (100_000..900_000_u64).prop_map(|micros| Step::Send { micros }),
        6 => (0..60_u64, 1..9_u64, 0..3_000_u64)
            .prop_map(|(back, lost, apart)| Step::Ack { back, lost, apart }),
        1 => (1..40_usize).prop_map(|chunks| Step::Block { chunks }),
        3 => Just(Step::Done),
    ]
}

struct Line {
    now: Instant,
    /// The receiver's clock.
    clock: Instant,
    sender: Sender,
    ledger: Ledger,
    timing: Timing,
    path: Controller,
    blocks: u32,
    acked: Vec<u64>,
}

impl Line {
    fn new(known: Option<u32>) -> Self {
        let known = Known { rate: known.map(Rate::from_kbps), ..Known::NOTHING };
        let now = Instant::from_millis(1);
        let id = PathId::FIRST;
        let mut path = Controller::new(now, id, 0, CONFIG.min_rate_bps, known);
        let mut sender = Sender::new(now, CONFIG, &mut path);
        sender.set_rtt(&mut path, Duration::from_millis(40));
        let (clock, ledger) = (Instant::from_millis(70_000), Ledger::new());
        let timing = Timing::new(id);
        Self { now, clock, sender, ledger, timing, path, blocks: 0, acked: Vec::new() }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Send { micros } => {
                self.now = self.now + Duration::from_micros(micros);
                self.sender.handle_timeout(&mut self.path, self.now, &mut self.ledger);
                self.settle();
                self.send();
            }
            Step::Ack { back, lost, apart } => self.ack(back, lost, apart),
            Step::Block { chunks } => {
                let data: bytes::Bytes = alloc::vec![7; chunks * CHUNK].into();
                let number = self.blocks;
                self.sender.push(self.now, NewBlock::of(number, data));
                self.sender.set_ready(number, u32::MAX);
                self.blocks += 1;
            }
            Step::Done => {
                if let Some(at) = self.chunks().first().map(|chunk| chunk.at) {
                    self.sender.on_done(self.now, at);
                }
            }
        }
        self.settle();
    }

    fn send(&mut self) {
        for _ in 0..200 {
            let chosen =
                self.sender.poll_slice(&mut self.path, self.now, &self.ledger, (1_100, false));
            let Some(chosen) = chosen else { return };
            let (wire_bytes, slice) = (chosen.data.len() + 92, Some((chosen.at, chosen.symbol)));
            let number = self.ledger.next_number();
            self.sender.on_sent(&mut self.path, self.now, number, wire_bytes, slice);
            let (is_ack_eliciting, is_marked) = (true, false);
            let outgoing = Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice };
            self.ledger.on_sent(self.now, &mut self.timing, outgoing);
        }
    }

    fn ack(&mut self, back: u64, lost: u64, apart: u64) {
        let from = self.acked.last().map_or(0, |last| last + 1);
        let to = self.ledger.next_number().saturating_sub(back);
        let mut arrivals = None::<ArrivalsFrame>;
        for number in (from..to).filter(|number| lost == 1 || number % lost > 0) {
            self.clock = self.clock + Duration::from_micros(apart);
            let ack = AckFrame::new(number, Duration::ZERO, 0);
            let mut walk = self.ledger.begin_ack(&ack).unwrap();
            while let Some(acked) = self.ledger.poll_acked(self.now, &mut self.timing, &mut walk) {
                self.sender.on_acked(&mut self.path, self.now, &acked);
            }
            self.ledger.end_ack(&mut self.timing, &walk);
            self.acked.push(number);
            arrivals = Some(ArrivalsFrame::new(number, self.clock));
        }
        let reordering = self.timing.reordering();
        self.sender.end_ack(&mut self.path, self.now, &self.ledger, reordering);
        if let Some(arrivals) = arrivals {
            self.sender.on_arrivals(&mut self.path, &arrivals, &self.ledger);
        }
    }

    fn settle(&mut self) {
        let Self { sender, ledger, timing, path, .. } = self;
        while let Some(settled) = ledger.poll_fate(timing) {
            sender.on_settled(path, &settled);
        }
        self.check();
        while self.ledger.poll_lost(self.now, &mut self.timing).is_some() {}
        self.ledger.trim(KEPT);
        self.sender.check_invariants();
        self.ledger.check_invariants();
    }

    /// The chunks that are open and of which the receiver has not enough.
    fn chunks(&self) -> Vec<&OpenChunk> {
        let chunks = &self.sender.chunks;
        let active = chunks.classes.iter().flat_map(|class| &class.active);
        active.filter_map(|at| chunks.get(*at)).collect()
    }

    /// Compares with the records.
    fn check(&self) {
        let in_flight = self.ledger.iter_from(0).filter(|datagram| datagram.fate == Fate::InFlight);
        let sent: Vec<_> = in_flight.filter_map(|it| Some((it.number, it.slice?.0))).collect();
        for chunk in self.chunks() {
            let counts = |it: &&(u64, ChunkAt)| it.1 == chunk.at && chunk.counts(it.0);
            assert_eq!(chunk.in_flight() as usize, sent.iter().filter(counts).count());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_counts_are_those_of_the_records(
        known in proptest::option::of(1_000_u32..200_000),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut line = Line::new(known);
        line.act(Step::Block { chunks: 3 });
        for step in steps {
            line.act(step);
        }
    }
}
