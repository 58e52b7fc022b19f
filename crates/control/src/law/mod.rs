//! Pacing of slices: three laws, of which one applies at a time.
//!
//! Without a known rate an initial guess is used ([`blind`]), and with one, at first, the rate of the link
//! ([`start`]). A long transfer is paced by a window, and so is one beside a game, with another objective
//! ([`windowed`]). Each law is a variant with its own state, and this file selects it. All but the first have
//! a [`pace`], which says when the next slice may be sent.

mod allowance;
mod blind;
mod cubic;
mod drains;
mod link;
mod pace;
mod pairs;
pub(crate) mod recalled;
mod seen;
mod start;
mod stretch;
#[cfg(test)]
mod tests;
pub(crate) mod trains;
mod windowed;

use alloc::boxed::Box;

pub(crate) use blind::Blind;
pub(crate) use link::Link;

use self::allowance::Allowance;
use self::pace::Pace;
use self::start::Start;
use self::windowed::Windowed;
use crate::belief::samples::{BaseDelay, Sample};
use crate::tuning::blind::AT_ONCE_RATE;
use crate::tuning::flow::DECREASE;
use crate::tuning::{ACK_DELAY, FULL_PACKET, NEARLY_FULL, TICK};
use crate::units::{Bytes, Rate, Span};
use crate::urgency::Urgency;
use haulier_core::Instant;

/// What decides when the next slice goes.
#[derive(Clone, Debug)]
enum Law {
    /// No rate is known.
    Blind(Box<Blind>),
    /// The beginning of a transfer, at the rate of the link.
    Start(Box<Start>),
    /// A long transfer, or one beside a game.
    Windowed(Box<Windowed>),
}

/// The current law, and the state that all of them share.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    law: Law,
    floor: Rate,
    /// The initial rate, measured on the reverse path.
    hint: Option<Rate>,
    /// A known rate is what was used beside a game, and no more.
    is_least: bool,
    /// The base delay of full datagrams, and how large these are at least.
    base: BaseDelay,
    /// The last rise of it.
    rise: Option<Span>,
    full: Bytes,
    /// The number after the last datagram sent, and when that was on a near path: there a law that begins
    /// makes up for nothing from before.
    next: u64,
    sent_at: Instant,
    /// Bytes that the bottleneck's queue can hold.
    room: Bytes,
    /// A router has marked a datagram before there was a rate of its own: the number after the last datagram
    /// sent when it was heard of, for those before say nothing new.
    marked: Option<u64>,
    /// What may be in flight before there is a window.
    allowance: Allowance,
    /// The datagrams in flight, those with a slice, the minimum round trip, and by how much later than that
    /// fates are heard.
    in_flight: (u32, u32),
    rtt: Span,
    later: Span,
}

impl Pacing {
    /// Starts with the known rate, if any. Once a transfer has its own rate it is never below `floor`.
    pub(crate) fn new(floor: Rate, known: Option<Rate>) -> Self {
        let law = Law::Blind(Box::new(Blind::new(None)));
        let floor = floor.max(Rate::MIN);
        let full = Bytes(FULL_PACKET.0 - NEARLY_FULL.0);
        let base = BaseDelay::new();
        let mut pacing = Self {
            law,
            floor,
            hint: None,
            is_least: false,
            base,
            rise: None,
            full,
            next: 0,
            sent_at: Instant::ZERO,
            room: Bytes::ZERO,
            marked: None,
            allowance: Allowance::new(),
            in_flight: (0, 0),
            rtt: Span::ZERO,
            later: Span::ZERO,
        };
        if let Some(rate) = known {
            pacing.allowance.trust();
            pacing.start(rate);
        }
        pacing
    }

    /// Sets whether the known rate is what was used beside a game, and no more.
    pub(crate) const fn at_least(mut self, is_least: bool) -> Self {
        self.is_least = is_least;
        self
    }

    /// Sets the number of datagrams in flight, and of those with a slice; the round trip, and by how much
    /// later than that the caller hears of fates.
    pub(crate) fn set_in_flight(&mut self, in_flight: (u32, u32), rtt: Span, later: Span) {
        (self.in_flight, self.later) = (in_flight, later);
        if rtt < self.rtt || self.rtt == Span::ZERO {
            self.rtt = rtt;
        }
        match &mut self.law {
            Law::Blind(blind) => {
                let holds = blind.rate() * self.trip() / (self.full + NEARLY_FULL);
                self.allowance.guess(in_flight.0, holds);
            }
            Law::Start(_) => {}
            Law::Windowed(law) => law.set_in_flight(in_flight.0, in_flight.1),
        }
    }

    /// Arrivals show nothing of others: no part of a transfer is kept back for them.
    pub(crate) const fn trust(&mut self) {
        self.allowance.trust();
    }

    /// The transfer has this many bytes.
    pub(crate) fn set_total(&mut self, bytes: Bytes) {
        self.allowance.set_total(bytes);
    }

    /// How long after a datagram its fate is heard of.
    fn trip(&self) -> Span {
        self.rtt + self.later + ACK_DELAY
    }

    /// The number of datagrams in flight.
    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight.0
    }

    /// Whether as much is in flight as may be.
    pub(crate) fn is_full(&self) -> bool {
        match &self.law {
            Law::Windowed(law) => law.is_full(),
            Law::Start(_) | Law::Blind(_) => self.allowance.is_spent(self.in_flight.0),
        }
    }

    /// What was used beside a game, where that has shown no queue.
    pub(crate) fn least_rate(&self) -> Option<Rate> {
        match &self.law {
            Law::Windowed(law) => law.least_rate(),
            _ => None,
        }
    }

    /// A rate is known. What the start shows is measured, also by what was sent on a guess behind the first
    /// train.
    fn start(&mut self, rate: Rate) {
        let (first, guess, passed_at) = match &self.law {
            Law::Blind(blind) => {
                let first = blind.next_after_train().min(self.next);
                (first, blind.rate(), blind.passed_at(rate))
            }
            _ => (self.next, rate, Span::ZERO),
        };
        let mut start = Start::new(rate, guess, first, self.next);
        if self.is_near() {
            start.hold(passed_at, self.room);
        }
        self.law = Law::Start(Box::new(start));
    }

    /// Sets the size of a full datagram, whose delay is `longer` than before by this time.
    pub(crate) fn set_packet(&mut self, packet: Bytes, longer: Span) {
        if let Law::Windowed(law) = &mut self.law {
            law.set_packet((self.full + NEARLY_FULL) / packet);
        }
        self.full = packet - NEARLY_FULL;
        self.base.shift(longer);
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) fn set_hint(&mut self, rate: Rate) {
        self.hint = Some(rate);
        match &mut self.law {
            Law::Blind(blind) => blind.set_hint(rate),
            Law::Windowed(law) => law.set_hint(rate),
            Law::Start(_) => {}
        }
    }

    /// Selects the law for this urgency, length of transfer and known rate.
    pub(crate) fn follow(&mut self, urgency: Urgency, is_long: bool, known: Option<Rate>) {
        if urgency == Urgency::DuringPlay {
            if self.is_beside_game() {
                return known.map_or((), |known| self.learn(known));
            }
            let (rtt, packet) = (self.rtt + self.later, self.full + NEARLY_FULL);
            let is_least = self.is_least;
            let mut law = Windowed::beside_game(known, is_least, rtt, self.in_flight, packet);
            if let Some(hint) = self.hint {
                law.set_hint(hint);
            }
            self.law = Law::Windowed(Box::new(law));
            return;
        }
        if self.is_beside_game() {
            self.law = Law::Blind(Box::new(Blind::new(self.hint)));
            self.allowance = Allowance::new();
        }
        let Some(rate) = known else { return };
        if let Law::Blind(_) = &self.law {
            self.start(rate);
        }
        let (is_near, trip) = (self.is_near(), self.trip());
        let Law::Start(start) = &mut self.law else { return };
        let trip = trip + start.disorder();
        self.allowance.set_holds(rate * trip / (self.full + NEARLY_FULL));
        start.set_rate(rate);
        let (mut pace, share) = (start.pace, start.share(rate));
        let is_in_order = start.is_in_order();
        // A near path holds less than one tick sends: a window cannot pace it.
        let stays = is_near && share.is_none();
        let flood = start.flood();
        let is_shared = start.is_crowded() || flood.is_some();
        let ramp = self.allowance.ramp();
        let free = ramp.map_or(rate, |most| rate.min(most * (self.full + NEARLY_FULL) / trip));
        let is_ready = is_long && !stays && !self.allowance.is_rising();
        if is_ready || self.marked.is_some() || is_shared {
            pace.begin(self.sent_at);
            pace.set(share.unwrap_or(free));
            self.begin(pace, rate, is_in_order);
            if let Some(arrivals) = flood {
                self.overrun(rate, &arrivals);
            }
        }
    }

    /// A window begins, at this pace, on a link that is known to have this rate.
    fn begin(&mut self, mut pace: Pace, rate: Rate, is_in_order: bool) {
        let part = if self.marked.is_some() { 1.0 - DECREASE } else { 1.0 };
        pace.set((part * pace.rate()).max(self.floor.min(rate)));
        let packet = self.full + NEARLY_FULL;
        let mut law = Windowed::new(pace, rate, self.rtt + self.later, self.in_flight, packet);
        if is_in_order {
            law.set_passed(packet);
        }
        self.law = Law::Windowed(Box::new(law));
    }

    /// What was sent at a guess has overrun the link: a window begins, at the pace of what arrives.
    fn end_guess(&mut self) {
        let Law::Blind(blind) = &self.law else { return };
        let Some((first, last)) = blind.arrivals() else { return };
        let guess = blind.rate();
        let arrives = (last.received - first.received) / (last.at - first.at).max(Span(1.0));
        let least = (self.full + NEARLY_FULL) / self.trip();
        let rate = arrives.min(guess).max(least);
        self.begin(Pace::new(rate), rate, false);
        // What arrived of its train may show that the link is faster than the guess.
        self.overrun(guess.max(AT_ONCE_RATE), &(first, last));
    }

    /// The datagrams in flight have overrun the link: what arrives is the pace, up to this rate.
    fn overrun(&mut self, most: Rate, arrivals: &(Sample, Sample)) {
        if let Law::Windowed(law) = &mut self.law {
            law.overrun(self.next, most, arrivals);
        }
    }

    /// Whether the round trip is short.
    fn is_near(&self) -> bool {
        self.sent_at != Instant::ZERO
    }

    /// On a near path: the newest of the reported datagrams had passed the bottleneck at this time.
    pub(crate) fn hold(&mut self, passed_at: Span) {
        if let Law::Start(start) = &mut self.law {
            let behind = f64::from(self.in_flight.0) * (self.full + NEARLY_FULL);
            start.hold(passed_at + behind / start.pace.rate(), self.room);
        }
    }

    /// The link is known to have this rate.
    pub(crate) fn learn(&mut self, known: Rate) {
        let packet = self.full + NEARLY_FULL;
        if let Law::Windowed(law) = &mut self.law {
            law.learn(known, packet);
        }
    }

    /// Whether the transfer has just begun, on a link of a known rate.
    pub(crate) const fn is_start(&self) -> bool {
        matches!(self.law, Law::Start(_))
    }

    /// Whether a window paces the transfer.
    pub(crate) const fn has_own_rate(&self) -> bool {
        !matches!(self.law, Law::Blind(_) | Law::Start(_))
    }

    /// The pacing rate; `None` while no rate is known.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.pace().map(Pace::rate)
    }

    /// Whether a game's packets go first, and nothing may wait in their way.
    pub(crate) fn is_beside_game(&self) -> bool {
        matches!(&self.law, Law::Windowed(law) if law.gives_way())
    }

    /// The rate, also one that is only guessed.
    pub(crate) fn asks(&self) -> Rate {
        match &self.law {
            Law::Blind(blind) => blind.rate(),
            _ => self.rate().unwrap_or(Rate::ZERO),
        }
    }

    /// When the next slice may be sent; `None` if now.
    pub(crate) fn opens_at(&self, now: Instant, link: &Link) -> Option<Instant> {
        match &self.law {
            Law::Blind(blind) if link.is_train && !blind.is_slow() => None,
            Law::Windowed(law) if link.is_train && law.has_train() => None,
            Law::Blind(blind) if blind.is_unsure(now, link.rtt) => Some(now + TICK),
            // A tick's worth is sent as one batch.
            Law::Blind(blind) => {
                blind.is_early(now, link.lateness_at(blind.rate())).then(|| now + TICK)
            }
            _ => self.pace().and_then(|pace| pace.opens_at(now, link)),
        }
    }

    /// A slice was sent.
    pub(crate) fn on_slice_sent(&mut self, now: Instant, bytes: Bytes, link: &Link) {
        match &mut self.law {
            Law::Blind(blind) if link.is_train => blind.on_train_sent(now, bytes, self.next),
            Law::Blind(blind) => blind.on_sent(now, bytes),
            Law::Windowed(law) => law.on_slice_sent(),
            _ => {}
        }
    }

    /// A datagram was sent, with or without a slice.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, link: &Link) {
        self.next = number + 1;
        self.sent_at = if link.is_near { now } else { Instant::ZERO };
        self.room = link.room;
        if link.is_near {
            self.allowance.trust();
        }
        match &mut self.law {
            Law::Blind(_) => {}
            Law::Start(start) => start.on_sent(now, bytes, link),
            Law::Windowed(law) => law.on_sent(now, bytes, link),
        }
    }

    /// The fate of a datagram is settled.
    pub(crate) fn on_settled(&mut self, number: u64, is_lost: bool) {
        self.allowance.on_settled(is_lost);
        match &mut self.law {
            Law::Blind(blind) => {
                if blind.on_settled(number, is_lost) {
                    self.end_guess();
                }
            }
            Law::Start(start) => start.on_settled(number, is_lost),
            Law::Windowed(law) => law.on_settled(number, is_lost),
        }
    }

    /// One that was taken for lost has arrived: what that has changed is undone.
    pub(crate) fn on_spurious(&mut self, number: u64) {
        self.allowance.on_spurious();
        match &mut self.law {
            Law::Blind(blind) => blind.on_spurious(number),
            Law::Start(start) => start.on_spurious(number),
            Law::Windowed(law) => law.on_spurious(),
        }
    }

    /// Datagrams overtake others that were sent up to `disorder` earlier.
    pub(crate) fn set_disorder(&mut self, disorder: Span) {
        if let Law::Start(start) = &mut self.law {
            start.set_disorder(disorder);
        }
    }

    /// It was heard at `now` that a datagram arrived.
    pub(crate) fn on_arrival(&mut self, now: Instant, sample: &Sample) {
        if let Law::Blind(blind) = &mut self.law {
            blind.on_arrival(now, sample);
        }
        if sample.bytes < self.full {
            return;
        }
        let before = self.base.get().unwrap_or(sample.delay);
        self.base.on_delay(sample.at, sample.delay + sample.saved);
        let delay = self.base.get().map_or(Span::ZERO, |base| sample.delay - base).max(Span::ZERO);
        let fell = (before - sample.delay).max(Span::ZERO);
        let packet = self.full + NEARLY_FULL;
        match &mut self.law {
            Law::Blind(_) => {}
            Law::Start(start) => {
                self.allowance.on_arrival(delay > start::target(start.pace.rate()));
                if let Some(found) = start.on_arrival(sample, delay) {
                    self.allowance.on_found(found);
                }
            }
            Law::Windowed(law) => {
                law.on_delay(now.into(), sample, delay, fell, packet);
                if let Some(longer) = law.poll_longer() {
                    self.base.shift(longer);
                    self.rise = Some(longer);
                }
            }
        }
    }

    /// By how much the delay without a queue has risen, if that was just found out: the path is longer.
    pub(crate) const fn poll_rise(&mut self) -> Option<Span> {
        self.rise.take()
    }

    /// A datagram, no older than `number`, was marked by a router whose queue is too long. It ends the start
    /// of a transfer, in which the queue is filled on purpose: from then on it has a rate of its own, which
    /// is reduced, and a guess is halved once a round trip until there is one.
    pub(crate) fn on_congestion_mark(&mut self, number: u64) {
        let is_news = self.marked.is_none_or(|before| number >= before);
        match &mut self.law {
            Law::Blind(blind) if is_news => blind.on_mark(),
            Law::Blind(_) | Law::Start(_) => {}
            Law::Windowed(law) => return law.on_mark(number, self.next),
        }
        if is_news {
            self.marked = Some(self.next);
        }
    }

    fn pace(&self) -> Option<&Pace> {
        match &self.law {
            Law::Blind(_) => None,
            Law::Start(start) => Some(&start.pace),
            Law::Windowed(law) => Some(&law.pace),
        }
    }
}
