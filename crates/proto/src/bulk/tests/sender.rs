//! Which slices are sent, on a simulated link.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use haulier_control::{Known, PathId, Rate, Urgency};

use super::*;
use crate::bulk::cut::SliceSize;

use crate::bulk::{Credit, NewBlock, SenderConfig};
use crate::transit::{Arrivals, ChunkAt, ReceivedDatagrams, Symbol};

const CONFIG: SenderConfig = SenderConfig {
    urgency: Urgency::LoadScreen,
    max_rate_bps: u64::MAX,
    min_rate_bps: 0,
    give_up_after: Duration::from_secs(15),
    // These peers say nothing but what a test is about: silence counts.
    idle_timeout_ms: 0,
    first_number: 0,
    slice_room: 1036,
    max_slice: SliceSize::SMALLEST_OF_FULL_CHUNK,
    max_open: 1024,
    has_repair: true,
    receive_buffer: 0,
    credit: Credit::new(u64::MAX),
};

/// A datagram on its way: when it arrives, its number, and its slice with the slices that its chunk has.
type Arriving = (u64, u64, ChunkAt, Symbol, usize);

/// 10 Mbit/s and 20 ms each way, with a queue that is long enough.
struct Link {
    now: u64,
    sending: Sending,
    /// What the receiver has of chunks that are not done.
    here: BTreeMap<ChunkAt, BTreeSet<Symbol>>,
    received: ReceivedDatagrams,
    arrivals: Arrivals,
    free_at: u64,
    arriving: VecDeque<Arriving>,
    done: BTreeSet<ChunkAt>,
    /// Those of them that a repair slice was needed for.
    decoded: BTreeSet<ChunkAt>,
    room: usize,
    last_sent: u64,
    /// A sum over what was sent, when, and of which chunk and slice.
    order: u64,
    /// Slices that waited to be sent when the first repair slice was composed.
    before_repair: Option<u32>,
}

impl Link {
    fn new(chunks: usize) -> Self {
        Self::with(chunks, CONFIG)
    }

    fn with(chunks: usize, config: SenderConfig) -> Self {
        let mut sending = Sending::new(config, Known::NOTHING);
        let Sending { sender, path, .. } = &mut sending;
        sender.set_rtt(path, ms(40));
        let data: bytes::Bytes = chunk_of(262_144 * chunks).into();
        sender.push(micros(0), NewBlock::of(0, data));
        sender.set_ready(0, u32::MAX);
        let (received, arrivals) = (ReceivedDatagrams::new(), Arrivals::new());
        Self {
            now: 0,
            sending,
            here: BTreeMap::new(),
            received,
            arrivals,
            free_at: 0,
            arriving: VecDeque::new(),
            done: BTreeSet::new(),
            decoded: BTreeSet::new(),
            room: config.slice_room,
            last_sent: 0,
            order: 0,
            before_repair: None,
        }
    }

    fn failed(&self) -> bool {
        self.sending.sender.has_failed()
    }

    /// Runs for some milliseconds; `loses` decides the fate of each datagram.
    fn run(&mut self, millis: u64, mut loses: impl FnMut(u64) -> bool) {
        for _ in 0..millis {
            self.now += 1_000;
            let now = micros(self.now);
            while self.arriving.front().is_some_and(|&(at, ..)| at <= self.now) {
                let arrival = self.arriving.pop_front().unwrap();
                self.arrive(arrival);
            }
            // Acks arrive at once: the delay of both directions is in `free_at + 40_000` below.
            if let Some(ack) = self.received.ack_frame(now) {
                self.received.on_ack_sent(now, false);
                self.sending.handle_ack(now, &ack);
                if let Some(arrivals) = self.arrivals.frame() {
                    let Sending { sender, ledger, path, .. } = &mut self.sending;
                    sender.on_arrivals(path, &arrivals, ledger);
                }
            }
            let whole: Vec<ChunkAt> =
                self.here.keys().filter(|&at| self.done.contains(at)).copied().collect();
            for at in whole {
                self.here.remove(&at);
                self.sending.sender.on_done(now, at);
            }
            self.sending.settle(now);
            let Sending { sender, ledger, path, .. } = &mut self.sending;
            sender.handle_timeout(path, now, ledger);
            self.send(now, &mut loses);
            self.sending.sender.check_invariants();
            self.sending.ledger.check_invariants();
        }
    }

    fn send(&mut self, now: Instant, loses: &mut impl FnMut(u64) -> bool) {
        let mut batch = 0;
        loop {
            let Sending { sender, ledger, path, .. } = &mut self.sending;
            let Some(chosen) = sender.poll_slice(path, now, ledger, (self.room, batch > 0)) else {
                if core::mem::take(&mut batch) > 0 {
                    continue; // It is on its way, and there may be more.
                }
                return;
            };
            if chosen.symbol.index().1 {
                self.before_repair.get_or_insert(batch);
            }
            batch += 1;
            let (at, symbol, count) = (chosen.at, chosen.symbol, chosen.cut.count());
            let wire_bytes = chosen.data.len() + 92;
            let number = self.sending.send(now, wire_bytes, (at, symbol));
            self.last_sent = self.now;
            self.free_at = self.free_at.max(self.now) + wire_bytes as u64 * 8 / 10 + 1;
            for part in [self.now, at.index.into(), symbol.get() as u64] {
                self.order = (self.order ^ part).wrapping_mul(0x100_0000_01b3).rotate_left(5);
            }
            if !loses(number) {
                self.arriving.push_back((self.free_at + 40_000, number, at, symbol, count));
            }
        }
    }

    fn arrive(&mut self, (at, number, chunk, symbol, count): Arriving) {
        self.received.on_verified(micros(at), number, true);
        self.arrivals.on_datagram(micros(at), number);
        let here = self.here.entry(chunk).or_default();
        here.insert(symbol);
        if here.len() >= count && self.done.insert(chunk) && here.iter().any(|it| it.index().1) {
            self.decoded.insert(chunk);
        }
    }
}

/// To encode a chunk takes as long as a fast link takes for some dozen slices: what is composed goes before.
#[test]
fn nothing_waits_while_a_chunk_is_encoded() {
    let mut link = Link::new(1);
    link.sending.path.set_hint(Rate::from_kbps(100_000));
    link.run(3_000, |_| false);
    assert_eq!(link.before_repair, Some(0), "of ten in a tick");
}

/// The prior causes some repair for the first chunk; without losses there is no more after that.
#[test]
fn a_link_without_loss_gets_no_repair_after_the_first_chunk() {
    let mut link = Link::new(1);
    link.run(3_000, |_| false);
    let first = link.sending.sender.stats();
    assert_eq!((link.done.len(), first.slices - first.repairs - first.resent), (1, 256));
    assert!(first.repairs <= 40, "{first:?}");
    let mut link = Link::new(8);
    link.run(10_000, |_| false);
    let all = link.sending.sender.stats();
    assert_eq!(link.done.len(), 8);
    assert!(all.repairs + all.resent <= first.repairs + first.resent + 2, "{all:?}");
}

#[test]
fn losses_are_repaired_and_then_sending_stops() {
    let mut link = Link::new(4);
    link.run(10_000, |number| number % 10 == 3);
    assert_eq!(link.done.len(), 4);
    let stats = link.sending.sender.stats();
    // 10 % are lost: 1138 have to be sent, plus a margin.
    assert!((1_100..1_400).contains(&stats.slices), "{stats:?}");
    assert!(stats.repairs > 20 && stats.resent <= 90, "at the end repair goes: {stats:?}");
    link.run(5_000, |_| false);
    assert_eq!(link.sending.sender.stats(), stats, "nothing more is sent");
    assert!(!link.failed());
}

/// A slice lost in the middle of a long transfer is sent again as it is, so that neither end computes
/// anything. At the end repair slices are sent in advance. Runs of losses are no different.
#[test]
fn only_the_last_chunks_of_a_long_transfer_are_decoded() {
    let bursts = |number| number % 1_500 < 30;
    for loses in [|number| number % 100 == 3, bursts] {
        let mut link = Link::new(40);
        link.run(20_000, loses);
        assert_eq!(link.done.len(), 40);
        let stats = link.sending.sender.stats();
        assert!(link.decoded.iter().all(|at| at.index >= 36), "{:?} {stats:?}", link.decoded);
        assert!(stats.repairs > 0 && stats.resent > 80, "{stats:?}");
    }
}

/// Without an answer everything is sent once (a connection stops that after a second), then some slices
/// after each timeout, at growing intervals, until the transfer fails.
#[test]
fn a_transfer_without_answers_probes_and_fails() {
    let mut link = Link::new(2);
    link.run(3_500, |_| true);
    let before = link.sending.sender.stats().slices;
    link.run(11_400, |_| true);
    let asked = link.sending.sender.stats().slices - before;
    assert!(!link.failed() && (3..60).contains(&asked), "{asked} slices into 11 s of silence");
    link.run(200, |_| true);
    assert!(link.failed());
}

/// A transfer makes no progress while it waits for its turn on the server's uplink: its timeout starts anew
/// after that.
#[test]
fn a_transfer_does_not_fail_while_it_waits_for_the_uplink() {
    let mut link = Link::new(3);
    link.run(100, |_| false);
    link.sending.sender.set_uplink_open(micros(link.now), false);
    link.run(20_000, |_| false);
    assert!(!link.failed() && link.sending.sender.awaits_uplink());
    link.sending.sender.set_uplink_open(micros(link.now), true);
    link.run(10_000, |_| false);
    assert!(link.done.len() == 3 && !link.failed());
}

#[test]
fn a_transfer_survives_an_outage() {
    let mut link = Link::new(3);
    link.run(150, |_| false);
    link.run(4_000, |_| true);
    link.run(6_000, |_| false);
    assert!(link.done.len() == 3 && !link.failed());
}

/// The rate and the share of the old path are not used on a new one.
#[test]
fn a_new_path_is_measured_from_the_start() {
    let mut link = Link::new(8);
    link.run(800, |_| false);
    let rate = link.sending.path.known().rate.unwrap();
    assert!((1.0..1.6).contains(&rate.0) && link.sending.path.has_share(), "{rate:?}");
    link.sending.measure_anew(micros(link.now), PathId::FIRST.next());
    assert_eq!((link.sending.path.known().rate, link.sending.path.has_share()), (None, false));
    link.run(10_000, |_| false);
    assert_eq!(link.done.len(), 8);
}

/// What was on the old path when it changed says nothing of the new one: its arrivals gave a rate and a base
/// delay there.
#[test]
fn what_was_on_the_old_path_does_not_count_on_the_new_one() {
    let mut link = Link::new(8);
    link.run(800, |_| false);
    link.sending.measure_anew(micros(link.now), PathId::FIRST.next());
    link.run(60, |_| true);
    assert_eq!(link.sending.path.known().rate, None);
    link.run(10_000, |_| false);
    assert_eq!(link.done.len(), 8);
}

/// Many chunks in flight are repaired with the same few slices, and the slices that are sent do not depend on
/// how many chunks may be open.
#[test]
fn the_order_of_one_block_is_a_sequence() {
    let run = |max_open| {
        let mut link = Link::with(12, SenderConfig { max_open, ..CONFIG });
        link.run(4_000, |number| number % 20 == 3 || (900..960).contains(&number));
        assert_eq!(link.done.len(), 12);
        (link.order, link.sending.sender.stats())
    };
    let (order, stats) = run(16);
    assert_eq!((order, stats), run(1024));
    assert_eq!(order, 481_533_826_926_090_024, "{stats:?}");
}

/// What follows the size of a datagram: slices of 1434 bytes and of 8934 on a link that carries them. The
/// rate is found, and nothing is sent in vain.
#[test]
fn larger_datagrams_are_paced_alike() {
    for (room, size, slices) in [(1443, 1434, 183), (8943, 8934, 30)] {
        let max_slice = SliceSize::new(65_472).unwrap();
        let mut link = Link::with(8, SenderConfig { slice_room: room, max_slice, ..CONFIG });
        link.run(6_000, |_| false);
        assert_eq!(link.done.len(), 8, "{size}");
        let (stats, rate) = (link.sending.sender.stats(), link.sending.path.known().rate.unwrap());
        assert!((1.0..1.6).contains(&rate.0), "{size}: {rate:?}");
        assert!((8 * slices..8 * slices + 45).contains(&stats.slices), "{size}: {stats:?}");
        // 2.1 MB at 1.25 MB/s are 1.7 s.
        assert!(link.last_sent < 2_000_000, "{size}: {} us", link.last_sent);
    }
}

/// Behind 8 KiB both trains lose all but their first datagrams, and few acks come at a low guess: the trains
/// have failed when that is known, and not when 32 slices are acknowledged. Until then what had arrived read
/// as an eighth of the rate.
#[test]
fn trains_that_are_lost_are_given_up_as_soon_as_that_is_known() {
    let mut link = Link::new(1);
    link.sending.path.set_hint(Rate::from_kbps(2_000));
    link.run(98, |number| (5..40).contains(&number));
    assert!(link.sending.ledger.acked() < 32, "{}", link.sending.ledger.acked());
    let rate = link.sending.path.known().rate.expect("that of five arrivals");
    assert!((1.0..1.6).contains(&rate.0), "{rate:?}");
}

/// A path is found to carry more while a chunk is open, which keeps its cut: what arrives of it is full for
/// the laws. When larger ones were awaited at once, a start that had lost half of a first flight stayed at
/// four tenths of the rate for all of a join.
#[test]
fn a_full_datagram_is_as_large_as_chunks_are_cut() {
    let mut link = Link::new(20);
    link.run(60, |_| false);
    let Sending { sender, path, .. } = &mut link.sending;
    sender.set_slice_room(path, 1_443);
    let small = path.packet();
    link.run(50, |_| false);
    assert_eq!(link.sending.path.packet(), small, "no chunk is cut anew");
    link.run(400, |_| false);
    assert!(link.sending.path.packet() > small, "the next ones are cut larger");
    let Sending { sender, path, .. } = &mut link.sending;
    sender.set_slice_room(path, CONFIG.slice_room);
    assert_eq!(path.packet(), small, "what is too large is not sent any more");
}

/// Beside a game no slice takes longer than 5 ms at the rate that is known, if it can be cut smaller: at
/// first, and at 7 Mbit/s those of 8934 bytes. Its packets wait behind it.
#[test]
fn beside_a_game_slices_are_small_where_large_ones_are_slow() {
    let slices = |room, max_slice| {
        let urgency = Urgency::DuringPlay;
        let max_slice = SliceSize::new(max_slice).unwrap();
        let config = SenderConfig { urgency, slice_room: room, max_slice, ..CONFIG };
        let mut link = Link::with(8, config);
        link.run(20_000, |_| false);
        assert_eq!(link.done.len(), 8);
        link.sending.sender.stats().slices
    };
    let (jumbo, ethernet) = (slices(8943, 65_472), slices(1443, 65_472));
    assert!((8 * 256..8 * 256 + 45).contains(&jumbo), "{jumbo}");
    assert!((256 + 7 * 183..4 * 256 + 4 * 183).contains(&ethernet), "{ethernet}");
}

/// A program that reads once in 50 ms, from a buffer of 40 kB: half of that each time.
#[test]
fn a_late_reader_with_a_small_buffer_is_not_flooded() {
    let mut link = Link::with(3, SenderConfig { receive_buffer: 40_000, ..CONFIG });
    link.sending.sender.set_lateness(ms(50));
    link.run(1_000, |_| false);
    let sent = link.sending.sender.stats().slices * 1116;
    assert!((350_000..425_000).contains(&sent), "{sent}");
    link.sending.sender.set_lateness(ms(0));
    link.run(1_000, |_| false);
    assert_eq!(link.done.len(), 3);
}

/// More chunks are open the more bytes are on the way: 16 at any rate, and 3 round trips of it.
#[test]
fn the_window_follows_rate_and_round_trip() {
    let window = |mbit: u32, rtt_ms, max_open| {
        let known = Known { rate: Some(Rate::from_kbps(mbit * 1_000)), ..Known::NOTHING };
        let mut it = Sending::new(SenderConfig { max_open, ..CONFIG }, known);
        it.sender.set_rtt(&mut it.path, ms(rtt_ms));
        it.sender.open_at_most(&it.path)
    };
    assert_eq!(window(1, 40, 1024), 16);
    assert_eq!(window(1_000, 100, 1024), 16 + 157);
    assert_eq!(window(1_000, 100, 16), 16);
    assert_eq!(window(10_000, 300, 1024), 1024);
    let unknown = Sending::new(CONFIG, Known::NOTHING);
    assert_eq!(unknown.sender.open_at_most(&unknown.path), 16);
}
