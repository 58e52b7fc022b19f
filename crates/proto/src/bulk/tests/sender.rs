//! Which slices are sent, on a simulated link.

use alloc::collections::VecDeque;

use super::*;
use crate::bulk::repair::BlockRepair;
use crate::bulk::{Chunk, Known, Receiver, Sender, SenderConfig, SenderEvent, WireSlice};
use crate::chunk::ChunkId;
use crate::transit::{Arrivals, Ledger, Outgoing, ReceivedDatagrams};
use crate::urgency::Urgency;

const CONFIG: SenderConfig = SenderConfig {
    urgency: Urgency::LoadScreen,
    max_rate_bps: u64::MAX,
    min_rate_bps: 0,
    give_up_after: Duration::from_secs(15),
    first_chunk_id: ChunkId::new(0),
    first_number: 0,
};

/// 10 Mbit/s and 20 ms each way, with a queue that is long enough.
struct Link {
    now: u64,
    sender: Sender,
    ledger: Ledger,
    receiver: Receiver,
    received: ReceivedDatagrams,
    arrivals: Arrivals,
    free_at: u64,
    arriving: VecDeque<(u64, u64, ChunkId, u16)>,
    done: usize,
    failed: bool,
}

impl Link {
    fn new(chunks: usize) -> Self {
        let mut sender = Sender::new(micros(0), CONFIG, Known::NOTHING);
        sender.set_rtt(ms(40));
        let bytes = chunk_of(262_144 * chunks);
        let repair = BlockRepair::of_block(bytes.len());
        for (place, bytes) in bytes.chunks(262_144).enumerate() {
            let bytes = bytes.to_vec().into();
            sender.send(micros(0), Chunk { bytes, repair: repair.clone(), place });
        }
        let receiver = Receiver::new(Duration::from_secs(30));
        let (received, arrivals) = (ReceivedDatagrams::new(), Arrivals::new());
        Self {
            now: 0,
            sender,
            ledger: Ledger::new(),
            receiver,
            received,
            arrivals,
            free_at: 0,
            arriving: VecDeque::new(),
            done: 0,
            failed: false,
        }
    }

    /// Runs for some milliseconds; `loses` decides the fate of each datagram.
    fn run(&mut self, millis: u64, mut loses: impl FnMut(u64) -> bool) {
        for _ in 0..millis {
            self.now += 1_000;
            let now = micros(self.now);
            while self.arriving.front().is_some_and(|&(at, ..)| at <= self.now) {
                let (at, number, id, symbol) = self.arriving.pop_front().unwrap();
                self.arrive(at, number, id, symbol);
            }
            // Acks arrive at once: the delay of both directions is in `free_at + 40_000` below.
            if let Some(ack) = self.received.ack_frame(now) {
                self.received.on_ack_sent(now, false);
                handle_ack(&mut self.ledger, Some(&mut self.sender), now, &ack);
                if let Some(arrivals) = self.arrivals.frame() {
                    self.sender.on_arrivals(&arrivals, &self.ledger);
                }
            }
            while let Some(ack) = self.receiver.poll_ack(now) {
                self.sender.on_chunk_ack(now, &ack);
            }
            settle(&mut self.ledger, &mut self.sender, now);
            self.sender.handle_timeout(now, &mut self.ledger);
            while let Some(chosen) = self.sender.poll_slice(now, &self.ledger) {
                let (id, symbol) = (chosen.chunk_id, chosen.symbol);
                let number = self.ledger.next_number();
                let (wire_bytes, slice) = (1116, Some((id, symbol)));
                let backlog = self.sender.on_sent(now, number, wire_bytes, slice);
                let is_ack_eliciting = true;
                let is_marked = false;
                let outgoing =
                    Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice, backlog };
                self.ledger.on_sent(now, outgoing);
                self.free_at = self.free_at.max(self.now) + 893;
                if !loses(number) {
                    self.arriving.push_back((self.free_at + 40_000, number, id, symbol));
                }
            }
            self.sender.check_invariants();
            self.ledger.check_invariants();
            while let Some(event) = self.sender.poll_event() {
                match event {
                    SenderEvent::Done(_) => self.done += 1,
                    SenderEvent::Failed => self.failed = true,
                }
            }
        }
    }

    fn arrive(&mut self, at: u64, number: u64, id: ChunkId, symbol: u16) {
        self.received.on_verified(micros(at), number, true);
        self.arrivals.on_datagram(micros(at), number);
        let _duplicate = match self.sender.chunk(id).and_then(|chunk| chunk.slice(symbol)) {
            Some(WireSlice::Source(slice)) => self.receiver.on_slice(micros(at), &slice),
            Some(WireSlice::Repair(slice)) => self.receiver.on_repair(micros(at), &slice),
            None => return,
        };
        while self.receiver.pop().is_some() {}
    }
}

/// The prior causes some repair for the first chunk; without losses there is no more after that.
#[test]
fn a_link_without_loss_gets_no_repair_after_the_first_chunk() {
    let mut link = Link::new(1);
    link.run(3_000, |_| false);
    let first = link.sender.stats();
    assert_eq!((link.done, first.slices - first.repairs - first.resent), (1, 256));
    assert!(first.repairs <= 40, "{first:?}");
    let mut link = Link::new(8);
    link.run(10_000, |_| false);
    let all = link.sender.stats();
    assert_eq!(link.done, 8);
    assert!(all.repairs + all.resent <= first.repairs + first.resent + 2, "{all:?}");
}

#[test]
fn losses_are_repaired_and_then_sending_stops() {
    let mut link = Link::new(4);
    link.run(10_000, |number| number % 10 == 3);
    assert_eq!(link.done, 4);
    let stats = link.sender.stats();
    // 10 % are lost: 1138 have to be sent, plus a margin.
    assert!((1_100..1_400).contains(&stats.slices), "{stats:?}");
    assert!(stats.resent <= 8, "repair slices replace any slice: {stats:?}");
    link.run(5_000, |_| false);
    assert_eq!(link.sender.stats(), stats, "nothing more is sent");
    assert!(!link.failed);
}

/// Without an answer everything is sent once (a connection stops that after a second), then some slices
/// after each timeout, at growing intervals, until the transfer fails.
#[test]
fn a_transfer_without_answers_probes_and_fails() {
    let mut link = Link::new(2);
    link.run(3_500, |_| true);
    let before = link.sender.stats().slices;
    link.run(11_400, |_| true);
    let asked = link.sender.stats().slices - before;
    assert!(!link.failed && (3..60).contains(&asked), "{asked} slices into 11 s of silence");
    link.run(200, |_| true);
    assert!(link.failed);
}

#[test]
fn a_transfer_survives_an_outage() {
    let mut link = Link::new(3);
    link.run(150, |_| false);
    link.run(4_000, |_| true);
    link.run(6_000, |_| false);
    assert!(link.done == 3 && !link.failed);
}

/// The rate and the share of the old path are not used on a new one.
#[test]
fn a_new_path_is_measured_from_the_start() {
    let mut link = Link::new(8);
    link.run(800, |_| false);
    let rate = link.sender.known().rate.unwrap();
    assert!((1.0..1.6).contains(&rate.0) && link.sender.has_share(), "{rate:?}");
    link.sender.forget_path();
    assert_eq!((link.sender.known().rate, link.sender.has_share()), (None, false));
    link.run(10_000, |_| false);
    assert_eq!(link.done, 8);
}
