//! Which slice goes next, and when (`docs/SENDER.md`).
//!
//! When: while the modelled backlog at the bottleneck is short. Which: the source slices of each chunk in
//! order; repair for what is known to be missing; and at the end of all, repair for what may yet get lost,
//! until enough is expected to arrive with a margin for how wrong that may be. Never more: what is enough
//! cannot be known before a round trip, and what is sent meanwhile would be waste.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::SEND_WINDOW;
use super::blind::{self, Blind};
use super::bottleneck::Bottleneck;
use super::chunk::{Chunk, OpenChunk};
use super::config::{SenderConfig, SenderEvent, SenderStats};
use super::known::Known;
use super::lateness::Lateness;
use super::limit::Limit;
use super::loss::LossEstimate;
use super::share::Share;
use super::units::{instant, micros, micros_of};
use crate::Instant;
use crate::chunk::{Ack, ChunkId};
use crate::time::earliest;
use crate::transit::{Acked, ArrivalsFrame, Datagram, Fate, Ledger, Symbol};
use crate::urgency::Urgency;

/// Packets sent back to back to measure the rate: they fit a queue of 32 KiB.
const TRAIN: usize = 20;

/// Their bytes, when all are full.
const TRAIN_BYTES: f64 = 20.0 * 1228.0;

/// Where a rate is known, a train may wait at the bottleneck for so long at most.
const TRAIN_MICROS: f64 = 15_000.0;

/// Trains of a transfer at most: the first may be cut short by the credit of an address that is not proven.
const TRAINS: u8 = 2;

/// The backlog a sender allows itself at the bottleneck: 4 ms and two packets, but no more than 12 packets
/// or, on links so fast that these are less, two ticks. Less leaves the link idle when a timer is late; more
/// is delay for others.
const BACKLOG_MICROS: f64 = 4_000.0;
const BACKLOG_PACKETS: f64 = 2.0;
const MOST_BACKLOG_PACKETS: f64 = 12.0;
const MOST_BACKLOG_MICROS: f64 = 2_000.0;

/// How often slices go out, as a batch.
const TICK: Duration = Duration::from_millis(1);

/// While a rate that was brought along is not confirmed, so much of it is left out where the round trip is as
/// long as the chunk: an error shows late there.
const SHYNESS: f64 = 0.1;

/// Bytes that a chunk is taken for in that.
const CHUNK_BYTES: f64 = 256.0 * 1088.0;

/// Standard deviations of margin that are sent at the full rate, and up to which it goes on at half of it: at
/// least, and more in proportion to what a round trip would cost. Found on the grid: more of it buys seldom
/// runs a round trip, and every run some percent of waste.
const MARGIN: (f64, f64) = (0.6, 1.0);
const TAIL_MARGIN: (f64, f64) = (1.0, 2.0);
const TAIL_SHARE: f64 = 0.5;
const MOST_STAKE: f64 = 1.1;

/// Of what a time-out gives up so many packets count as lost: a run of losses, and not the end of the path.
const MOST_BLAMED: usize = 16;

/// Slices that may follow a time-out, and each later one without an answer.
const AFTER_TIMEOUT: usize = 12;
const AFTER_TIMEOUTS: usize = 4;

/// What goes next.
#[derive(Clone, Copy)]
struct Want {
    /// Of which open chunk; one beyond the last opens the next.
    open: usize,
    is_tail: bool,
}

/// Sends the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    rtt: Duration,
    waiting: VecDeque<Chunk>,
    open: VecDeque<OpenChunk>,
    next_id: ChunkId,
    bottleneck: Bottleneck,
    loss: LossEstimate,
    share: Share,
    /// Where the next replay begins.
    replayed: (u64, f64),
    /// Slices acknowledged.
    acked: usize,
    /// Decides while no rate is known.
    blind: Blind,
    /// Packets of the train that may still go back to back.
    train_left: usize,
    trains: u8,
    /// Nothing goes out before this: the end of the tick, or of the space between two slices.
    resume_at: Instant,
    next_tail: Instant,
    lateness: Lateness,
    /// The size of the last datagram.
    last_bytes: f64,
    /// When the last slice went out, and when the bottleneck was to be done with it.
    last_slice: Option<(Instant, f64)>,
    limit: Limit,
    /// When there was news last, or everything was given up.
    progress: Instant,
    /// There was news since the last call.
    has_news: bool,
    /// When a chunk came further last.
    moved: Instant,
    timeouts: u32,
    after_timeout: usize,
    probe: bool,
    /// A slice was named by the ack that is being handled.
    has_progress: bool,
    is_stale: bool,
    has_failed: bool,
    events: VecDeque<SenderEvent>,
    stats: SenderStats,
}

impl Sender {
    pub(crate) fn new(now: Instant, config: SenderConfig, known: Known) -> Self {
        Self {
            config,
            rtt: Duration::from_millis(333),
            waiting: VecDeque::new(),
            open: VecDeque::new(),
            next_id: config.first_chunk_id,
            bottleneck: Bottleneck::new(known.rate, config.first_number),
            loss: known.loss,
            share: Share::new(config.floor_bps),
            replayed: (config.first_number, 0.0),
            acked: 0,
            blind: Blind::new(config.floor_bps),
            train_left: TRAIN,
            trains: 1,
            resume_at: Instant::ZERO,
            next_tail: Instant::ZERO,
            lateness: Lateness::new(),
            last_bytes: 1228.0,
            last_slice: None,
            limit: Limit::new(config.most_bps),
            progress: now,
            has_news: false,
            moved: now,
            timeouts: 0,
            after_timeout: 0,
            probe: false,
            has_progress: false,
            is_stale: false,
            has_failed: false,
            events: VecDeque::new(),
            stats: SenderStats::default(),
        }
    }

    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    pub(crate) const fn next_chunk_id(&self) -> ChunkId {
        self.next_id
    }

    /// What was learned of the path.
    pub(crate) const fn known(&self) -> Known {
        Known { rate: self.bottleneck.rate(), loss: self.loss, at: self.progress }
    }

    /// Whether the transfer keeps to a share of the link by now.
    #[cfg(test)]
    pub(crate) fn has_share(&self) -> bool {
        self.share.is_on()
    }

    /// The path is another one: it is measured anew.
    pub(crate) fn forget_path(&mut self) {
        self.bottleneck = Bottleneck::new(None, self.config.first_number);
        self.loss = LossEstimate::new();
        // The model decides again, as at the beginning of a transfer.
        (self.share, self.acked) = (Share::new(self.config.floor_bps), 0);
        (self.blind, self.train_left, self.trains) = (Blind::new(self.config.floor_bps), TRAIN, 1);
        self.is_stale = true;
    }

    pub(crate) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// What the way back can carry: to begin with, while nothing better is known.
    pub(crate) const fn set_hint(&mut self, rate: f64) {
        self.blind.set_hint(rate);
    }

    pub(crate) fn set_most_bps(&mut self, most_bps: u64) {
        self.limit.set(most_bps);
    }

    pub(crate) const fn set_urgency(&mut self, urgency: Urgency) {
        self.config.urgency = urgency;
    }

    /// Chunks handed in whose first slice was not sent.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Hands in the next chunk.
    pub(crate) fn send(&mut self, now: Instant, chunk: Chunk) {
        if self.open.is_empty() && self.waiting.is_empty() {
            (self.progress, self.moved) = (now, now);
        }
        self.waiting.push_back(chunk);
    }

    /// Bytes that are with the peer, of chunks that are not done.
    pub(crate) fn bytes_with_peer(&self) -> usize {
        self.open.iter().map(OpenChunk::bytes_with_peer).sum()
    }

    pub(crate) fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// The slice to send now. What it is carried in must be reported by [`on_sent`](Self::on_sent).
    pub(crate) fn poll_slice(
        &mut self,
        now: Instant,
        ledger: &Ledger,
    ) -> Option<(ChunkId, Symbol)> {
        self.on_call(now);
        self.share.set(self.config.urgency, false, self.bottleneck.rate());
        let want = self.want();
        self.lateness.set_due(want.map(|_| self.resume_at.max(now)));
        let want = want.filter(|_| now >= self.resume_at)?;
        if let Some(later) = self.not_before(now, want) {
            self.resume_at = later;
            self.lateness.set_due(Some(later));
            return None;
        }
        if want.open >= self.open.len() {
            let chunk = self.waiting.pop_front()?;
            let id = self.next_id;
            self.next_id = id.next();
            self.open.push_back(OpenChunk::new(id, chunk)?);
        }
        if want.is_tail {
            let paced_at =
                micros(self.next_tail).clamp(micros(now) - self.lateness.micros(), micros(now));
            self.next_tail = instant(paced_at + self.tail_gap());
        }
        self.probe = false;
        let chunk = self.open.get_mut(want.open)?;
        let symbol = chunk.next_unsent().unwrap_or_else(|| {
            self.stats.resent += 1;
            chunk.next_repeated(ledger)
        });
        Some((chunk.id, symbol))
    }

    /// No slice may go, for other reasons than its own: whoever calls later is not late.
    pub(crate) const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// The chunk with this number, while it is open.
    pub(crate) fn chunk(&self, id: ChunkId) -> Option<&OpenChunk> {
        self.open.iter().find(|chunk| chunk.id == id)
    }

    /// A datagram of so many bytes (with UDP and IP) was sent, with a slice in it or without. Returns the
    /// backlog that it met, for its record.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkId, Symbol)>,
    ) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "at most some kilobytes")]
        let bytes = bytes as f64;
        let (backlog, passes) = self.bottleneck.on_sent(now, bytes);
        self.limit.on_sent(now, bytes);
        self.share.on_sent(now, number, bytes, self.late_at(self.share.pace()));
        self.last_bytes = bytes;
        let Some((id, symbol)) = slice else { return backlog };
        if !passes && !self.share.is_on() {
            // It finds no room, if the model is right: whatever comes next must wait for some.
            self.resume_at = now + TICK;
        }
        self.last_slice = Some((now, self.bottleneck.idle_at()));
        if self.bottleneck.rate().is_none() && !self.share.is_on() {
            match self.train_left {
                0 => self.blind.on_sent(now, bytes, self.rtt, self.limit.rate()),
                _ => self.blind.on_train_sent(now),
            }
        }
        self.train_left = self.train_left.saturating_sub(1);
        self.stats.slices += 1;
        self.stats.repairs += u64::from(usize::from(symbol) >= crate::chunk::MAX_SLICES);
        self.after_timeout = self.after_timeout.saturating_sub(1);
        let share = self.loss.share();
        if passes && let Some(chunk) = self.open.iter_mut().find(|chunk| chunk.id == id) {
            chunk.expect(share);
        }
        backlog
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.is_stale = true;
        if matches!(acked.before, Fate::Lost | Fate::GivenUp) {
            self.loss.on_late();
        }
        let Some((id, symbol)) = acked.datagram.slice else { return };
        // Not what else goes this way: a game would hide that nothing more is heard of a chunk.
        self.has_progress = true;
        self.acked += 1;
        if let Some(chunk) = self.open.iter_mut().find(|chunk| chunk.id == id) {
            // Once there is enough, only its chunk ack is progress: who acknowledges what follows a
            // time-out, and never says that it has the chunk, is not waited for.
            let was_enough = chunk.is_enough();
            if chunk.on_received(symbol) && !was_enough {
                self.moved = now;
            }
        }
    }

    /// All of an ack was handed to [`on_acked`](Self::on_acked).
    pub(crate) fn end_ack(&mut self, now: Instant, ledger: &Ledger) {
        self.lateness.on_news(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        (self.progress, self.has_news) = (now, true);
        self.timeouts = 0;
        if self.trains < TRAINS && !self.bottleneck.has_train(TRAIN / 2) {
            self.trains += 1;
            self.train_left = TRAIN;
        }
        if self.bottleneck.rate().is_none()
            && self.is_getting_through(ledger)
            && self.blind.poll_train(now)
        {
            self.train_left = TRAIN;
        }
    }

    /// The peer tells when datagrams arrived. Comes after the ack that names them.
    pub(crate) fn on_arrivals(&mut self, frame: &ArrivalsFrame, ledger: &Ledger) {
        let is_long = self.acked > crate::chunk::MAX_SLICES;
        let news = self.bottleneck.on_arrivals(frame, ledger, &self.loss, is_long);
        self.share.set(self.config.urgency, is_long, self.bottleneck.rate());
        for sample in self.bottleneck.newest(news) {
            self.share.on_arrival(sample, micros_of(self.rtt));
        }
        self.is_stale = true;
    }

    /// The peer tells what it has of a chunk.
    pub(crate) fn on_chunk_ack(&mut self, now: Instant, ack: &Ack) {
        let Some(chunk) = self.open.iter_mut().find(|chunk| chunk.id == ack.chunk_id) else {
            return;
        };
        if chunk.on_ack(&ack.received) {
            (self.progress, self.moved) = (now, now);
            self.timeouts = 0;
            (self.is_stale, self.has_news) = (true, true);
        }
        self.lateness.on_news(now);
        while self.open.front().is_some_and(|chunk| chunk.is_done) {
            if let Some(chunk) = self.open.pop_front() {
                self.events.push_back(SenderEvent::Done(chunk.id));
            }
        }
    }

    /// Before fates are settled: after news, the backlog of each datagram is corrected, which says what became
    /// of those that are lost.
    pub(crate) fn begin_settling(&mut self, ledger: &mut Ledger) {
        let largest = ledger.largest_acked().filter(|&number| number >= self.config.first_number);
        if self.is_stale
            && let Some(largest) = largest
        {
            self.bottleneck.replay_settled(self.replayed, largest, ledger);
            self.replayed = self.bottleneck.anchor();
        }
    }

    /// Where this datagram was lost: behind the bottleneck, or in front of it.
    pub(crate) fn lost_as(&self, datagram: &Datagram) -> Fate {
        self.bottleneck.fate_of(datagram)
    }

    /// The fate of the next datagram is settled.
    pub(crate) fn on_settled(&mut self, datagram: &Datagram) {
        let fate = datagram.fate;
        if datagram.number < self.config.first_number {
            return;
        }
        if fate != Fate::Acked {
            self.is_stale = true;
            self.bottleneck.on_lost(datagram);
        }
        self.share.on_settled(datagram.number, fate != Fate::Acked);
        // What was dropped at the bottleneck and what was lost behind it cannot be told apart before.
        if self.bottleneck.rate().is_some() && fate != Fate::Dropped {
            self.loss.on_packet(fate == Fate::Lost);
        }
    }

    /// After fates are settled, if there was news: what is expected of what is in flight, and when the
    /// bottleneck will be idle.
    pub(crate) fn end_settling(&mut self, ledger: &Ledger) {
        if !core::mem::take(&mut self.is_stale) {
            return;
        }
        let Self { bottleneck, loss, open, .. } = self;
        open.iter_mut().for_each(OpenChunk::expect_nothing);
        let share = loss.share();
        bottleneck.replay_in_flight(ledger, |datagram, passes| {
            if passes
                && let Some((id, _)) = datagram.slice
                && let Some(chunk) = open.iter_mut().find(|chunk| chunk.id == id)
            {
                chunk.expect(share);
            }
        });
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ledger: &mut Ledger) {
        self.on_call(now);
        if self.fails_at().is_some_and(|at| at <= now) && !self.has_failed {
            self.has_failed = true;
            self.events.push_back(SenderEvent::Failed);
        }
        if self.timeout_at().is_some_and(|at| at <= now) {
            let given_up = ledger.give_up(self.config.first_number);
            (0..given_up.min(MOST_BLAMED)).for_each(|_| self.loss.on_packet(true));
            self.timeouts = self.timeouts.saturating_add(1);
            self.after_timeout = if self.timeouts == 1 { AFTER_TIMEOUT } else { AFTER_TIMEOUTS };
            self.probe = true;
            self.progress = now;
            self.is_stale = true;
            self.begin_settling(ledger);
            self.end_settling(ledger);
        }
    }

    /// Whether what goes out now follows a time-out: few slices, to hear whether the peer is there.
    pub(crate) const fn is_probing(&self) -> bool {
        self.timeouts > 0
    }

    /// When there is something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let slice = self.want().map(|_| self.resume_at);
        earliest(earliest(slice, self.timeout_at()), self.fails_at())
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.open.len() <= SEND_WINDOW);
    }

    /// Whether the newest datagrams that are settled were all received, as many as a train has.
    fn is_getting_through(&self, ledger: &Ledger) -> bool {
        let Some(first) = ledger.settled().checked_sub(TRAIN) else { return false };
        first >= ledger.place(self.config.first_number)
            && ledger.from(first).take(TRAIN).all(|datagram| datagram.fate == Fate::Acked)
    }

    /// It is called, perhaps late.
    fn on_call(&mut self, now: Instant) {
        if core::mem::take(&mut self.has_news) {
            // It may have waited for this call, and what it answers could not go out before.
            self.progress = self.progress.max(now);
        }
        self.lateness.on_call(now);
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        self.bottleneck.try_more(is_alone && self.lateness.is_frame());
    }

    /// What the caller may send for being late, in microseconds of this rate: no more than fits the queue
    /// beside what may wait there anyway.
    fn late_at(&self, rate: f64) -> f64 {
        self.lateness.micros().min((self.bottleneck.room() / rate - BACKLOG_MICROS).max(0.0))
    }

    /// What should go next, if anything.
    fn want(&self) -> Option<Want> {
        if self.timeouts > 0 && self.after_timeout == 0 {
            return None;
        }
        let at = |open| Some(Want { open, is_tail: false });
        let find = |test: &dyn Fn(&OpenChunk) -> bool| self.open.iter().position(test);
        let probe = if self.probe { find(&|chunk| !chunk.is_done) } else { None };
        if let Some(open) = probe {
            return at(open);
        }
        if let Some(open) = find(&|chunk| chunk.is_sent() && chunk.lacks_slices()) {
            return at(open);
        }
        if let Some(open) = find(&|chunk| !chunk.is_sent()) {
            return at(open);
        }
        if !self.waiting.is_empty() && self.open.len() < SEND_WINDOW {
            return at(self.open.len());
        }
        // What a round trip more would cost, as a part of all: there is the more to be won by a margin.
        let rtt = micros_of(self.rtt);
        let chunk = self.bottleneck.rate().map_or(rtt, |rate| CHUNK_BYTES / rate);
        let stake = (rtt / (rtt / 2.0 + chunk)).min(MOST_STAKE);
        let margin = |(least, more): (f64, f64)| least + more * stake;
        if let Some(open) = find(&|chunk| chunk.is_short(&self.loss, margin(MARGIN))) {
            return at(open);
        }
        let open = find(&|chunk| chunk.is_short(&self.loss, margin(TAIL_MARGIN)))?;
        Some(Want { open, is_tail: true })
    }

    /// When that may go, if not now.
    fn not_before(&self, now: Instant, want: Want) -> Option<Instant> {
        let late = self.late_at(self.limit.rate());
        if let Some(opens_at) = self.limit.opens_at(now, self.train_over_limit(), late) {
            return Some(instant(opens_at).max(now + TICK));
        }
        if self.share.is_on() {
            let paced_at = self.share.not_before(now);
            return paced_at.or(Some(self.next_tail).filter(|&next| want.is_tail && next > now));
        }
        let Some(rate) = self.rate() else {
            if self.train_left > 0 {
                return None;
            }
            // As much as a tick is worth goes out together.
            let late = self.late_at(self.blind.rate());
            return self.blind.is_early(now, late).then(|| now + TICK);
        };
        let packet = self.packet_bytes() / rate;
        let most = (MOST_BACKLOG_PACKETS * packet).max(MOST_BACKLOG_MICROS);
        let mut backlog = (BACKLOG_MICROS + BACKLOG_PACKETS * packet).min(most);
        if self.train_left > 0 {
            backlog = backlog.max(TRAIN_MICROS);
        }
        // Never more than is believed to fit, a packet and the one to be sent left out.
        let fits = (self.bottleneck.room_micros() - 2.0 * packet).max(packet);
        let backlog = (backlog + self.lateness.micros()).min(fits);
        let free_at = self.bottleneck.idle_at() - backlog;
        if free_at > micros(now) {
            return Some(instant(free_at).max(now + TICK));
        }
        Some(self.next_tail).filter(|&next| want.is_tail && next > now)
    }

    /// Bytes per microsecond that slices may use now; `None` while nothing is known.
    fn rate(&self) -> Option<f64> {
        if self.share.is_on() {
            return Some(self.share.pace());
        }
        let rate = self.bottleneck.rate()?;
        let bdp = (rate * micros_of(self.rtt) / CHUNK_BYTES).min(1.0);
        let gain = if self.bottleneck.is_measured() { 1.0 } else { 1.0 - SHYNESS * bdp };
        Some(rate * gain)
    }

    /// Bytes of a train that has to go in spite of the limit; none where that is below the guess.
    fn train_over_limit(&self) -> f64 {
        let is_train = self.train_left > 0 && self.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE { TRAIN_BYTES } else { 0.0 }
    }

    fn tail_gap(&self) -> f64 {
        self.rate().map_or(0.0, |rate| self.packet_bytes() / (rate * TAIL_SHARE))
    }

    fn packet_bytes(&self) -> f64 {
        self.last_bytes.max(200.0)
    }

    /// When what is in flight counts as gone.
    pub(crate) fn timeout_at(&self) -> Option<Instant> {
        self.open.front()?;
        let (sent_at, idle_at) = self.last_slice?;
        let idle_at = instant(idle_at);
        let base = self.progress.max(sent_at).max(idle_at.min(sent_at + Duration::from_secs(2)));
        let wait = self.rtt + self.rtt / 4 + Duration::from_millis(20);
        Some(base + wait.saturating_mul(1 << self.timeouts.min(4)).min(Duration::from_secs(2)))
    }

    /// When it fails, if nothing moves before.
    fn fails_at(&self) -> Option<Instant> {
        let is_open = !self.has_failed && (!self.open.is_empty() || !self.waiting.is_empty());
        is_open.then(|| self.moved + self.config.give_up_after)
    }
}
