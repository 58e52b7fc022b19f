//! Pacing of slices: three laws, of which one applies at a time.
//!
//! Without a known rate an initial guess is used ([`blind`]), with one the modelled queue of the
//! bottleneck ([`model`]). A long transfer is paced by a window, and so is one beside a game, with another
//! objective ([`windowed`]). Each law is a variant with its own state, and this file selects
//! it. All but the first have a [`flow`], which takes arrivals and fates and decides when the next slice may
//! be sent.

mod blamed;
mod blind;
mod cubic;
mod drains;
mod flow;
mod model;
mod pairs;
mod seen;
mod start;
#[cfg(test)]
mod tests;
mod windowed;

use alloc::boxed::Box;

pub(crate) use blind::Blind;
pub(crate) use model::Queue;

use self::blamed::Blamed;
use self::blind::Guess;
use self::flow::Flow;
use self::start::{Begin, Start};
use self::windowed::Windowed;
use super::samples::{BaseDelay, Sample};
use super::tuning::flow::DECREASE;
use super::tuning::{FULL_PACKET, NEARLY_FULL, TICK};
use super::units::{Bytes, Rate, Span};
use crate::Instant;
use crate::urgency::Urgency;

/// What decides when the next slice goes.
#[derive(Clone, Debug)]
enum Law {
    /// No rate is known.
    Blind(Blind),
    /// The modelled queue.
    Model(Box<Start>),
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
    /// A router has marked a datagram before there was a rate of its own: the number after the last datagram
    /// sent when it was heard of, for those before say nothing new.
    marked: Option<u64>,
    /// A guess that losses have reduced.
    cut: Option<(Guess, Blamed)>,
    /// The first datagram sent at the transfer's own rate.
    own_from: u64,
    /// The datagrams in flight, those with a slice, the minimum round trip, and by how much later than that
    /// fates are heard.
    in_flight: (u32, u32),
    rtt: Span,
    later: Span,
}

impl Pacing {
    /// Starts with the known rate, if any. Once a transfer has its own rate it is never below `floor`.
    pub(crate) fn new(floor: Rate, known: Option<Rate>) -> Self {
        let law = Law::Blind(Blind::new(floor, None));
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
            marked: None,
            cut: None,
            own_from: u64::MAX,
            in_flight: (0, 0),
            rtt: Span::ZERO,
            later: Span::ZERO,
        };
        if let Some(rate) = known {
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
        if let Law::Windowed(law) = &mut self.law {
            law.set_in_flight(in_flight.0, in_flight.1);
        }
    }

    /// Whether as much is in flight as may be.
    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.law, Law::Windowed(law) if law.is_full())
    }

    /// What was used beside a game, where that has shown no queue.
    pub(crate) fn least_rate(&self) -> Option<Rate> {
        match &self.law {
            Law::Windowed(law) => law.least_rate(),
            _ => None,
        }
    }

    /// The model decides, and what the start shows is measured, also by what was sent on a guess behind the
    /// first train. The floor is what an application asks for,
    /// and not what a link has to bear that is slower.
    fn start(&mut self, rate: Rate) {
        let first = match &self.law {
            Law::Blind(blind) => blind.next_after_train().min(self.next),
            _ => self.next,
        };
        let flow = Flow::new(rate, self.floor.min(rate), self.next);
        self.law = Law::Model(Box::new(Start::new(flow, first)));
    }

    /// The size of a full datagram, which takes so much longer than before.
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
            Law::Model(_) => {}
        }
    }

    /// Selects the law for this urgency, length of transfer and known rate.
    pub(crate) fn follow(&mut self, urgency: Urgency, is_long: bool, known: Option<Rate>) {
        if urgency == Urgency::DuringPlay {
            if self.is_beside_game() {
                return known.map_or((), |known| self.learn(known));
            }
            let (rtt, packet) = (self.rtt + self.later, self.full + NEARLY_FULL);
            let (next, is_least) = (self.next, self.is_least);
            let mut law = Windowed::beside_game(next, known, is_least, rtt, self.in_flight, packet);
            if let Some(hint) = self.hint {
                law.set_hint(hint);
            }
            self.law = Law::Windowed(Box::new(law));
            self.own_from = self.next;
            return;
        }
        if self.is_beside_game() {
            self.law = Law::Blind(Blind::new(self.floor, self.hint));
            (self.own_from, self.cut) = (u64::MAX, None);
        }
        let Some(rate) = known else { return };
        if let Law::Blind(blind) = &self.law {
            match blind.share() {
                Some(_) if !blind.is_calm() => return,
                Some(share) => {
                    let flow = Flow::new(share, self.floor.min(share), self.next);
                    self.law = self.begin(flow, rate, Begin::Beside(share.min(rate)), None);
                    self.own_from = self.next;
                    return;
                }
                None => self.start(rate),
            }
        }
        let Law::Model(start) = &self.law else { return };
        let begin = start.begin(rate);
        // A near path holds less than one tick sends: a window cannot pace it.
        let is_near = self.sent_at != Instant::ZERO;
        let is_modelled = is_near && begin == Begin::Alone;
        if is_long && !is_modelled || self.marked.is_some() || start.is_crowded() {
            let mut flow = start.flow.clone();
            flow.begin(self.sent_at);
            self.law = self.begin(flow, rate, begin, start.arrived());
            self.own_from = self.next;
        }
    }

    /// A long transfer begins on a link that is known to have this rate. Where losses alone show others, a
    /// window begins with the rate that `arrived`: the losses may be the path's own.
    fn begin(&self, mut flow: Flow, rate: Rate, begin: Begin, arrived: Option<Rate>) -> Law {
        let share = match begin {
            Begin::Alone => rate,
            Begin::Beside(share) => share,
            Begin::Trial(share) => arrived.unwrap_or(share),
        };
        let part = if self.marked.is_some() { 1.0 - DECREASE } else { 1.0 };
        flow.restart(part * share);
        let packet = self.full + NEARLY_FULL;
        let law = Windowed::new(flow, rate, self.rtt + self.later, self.in_flight, packet);
        Law::Windowed(Box::new(law))
    }

    /// The link is known to have this rate.
    pub(crate) fn learn(&mut self, known: Rate) {
        let packet = self.full + NEARLY_FULL;
        if let Law::Windowed(law) = &mut self.law {
            law.learn(known, packet);
        }
    }

    /// Whether the modelled queue paces the transfer.
    pub(crate) const fn is_modelled(&self) -> bool {
        matches!(self.law, Law::Model(_))
    }

    /// From which number on datagrams are sent at the transfer's own rate. It has measured what the queue
    /// takes: a tick of it is more than the model grants on fast links.
    pub(crate) const fn own_from(&self) -> u64 {
        self.own_from
    }

    /// Whether the transfer has its own rate, independent of the model.
    #[cfg(test)]
    pub(crate) const fn has_own_rate(&self) -> bool {
        !matches!(self.law, Law::Blind(_) | Law::Model(_))
    }

    /// The pacing rate; `None` while no rate is known.
    pub(crate) fn rate(&self, queue: &Queue) -> Option<Rate> {
        match &self.law {
            Law::Blind(_) => None,
            Law::Model(_) => queue.rate(),
            _ => self.flow().map(Flow::rate),
        }
    }

    /// Whether a game's packets go first, and nothing may wait in their way.
    pub(crate) fn is_beside_game(&self) -> bool {
        matches!(&self.law, Law::Windowed(law) if law.gives_way())
    }

    /// The rate, also one that is only guessed.
    pub(crate) fn asks(&self, queue: &Queue) -> Rate {
        match &self.law {
            Law::Blind(blind) => blind.rate(),
            _ => self.rate(queue).unwrap_or(Rate::ZERO),
        }
    }

    /// When the next slice may be sent; `None` if now.
    pub(crate) fn opens_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        match &self.law {
            Law::Blind(blind) if queue.is_train && !blind.is_slow() => None,
            Law::Windowed(law) if queue.is_train && law.has_train() => None,
            Law::Blind(blind) if blind.is_unsure(now, queue.rtt) => Some(now + TICK),
            // A tick's worth is sent as one batch.
            Law::Blind(blind) => {
                blind.is_early(now, queue.lateness_at(blind.rate())).then(|| now + TICK)
            }
            Law::Model(start) => start.opens_at(now, queue),
            _ => self.flow().and_then(|flow| flow.opens_at(now, queue)),
        }
    }

    /// A slice was sent; `limit` is the configured maximum rate.
    pub(crate) fn on_slice_sent(&mut self, now: Instant, bytes: Bytes, queue: &Queue, limit: Rate) {
        match &mut self.law {
            Law::Blind(blind) if queue.is_train => blind.on_train_sent(now, self.next),
            Law::Blind(blind) => blind.on_sent(now, bytes, queue.rtt, limit),
            Law::Windowed(law) => law.on_slice_sent(),
            _ => {}
        }
    }

    /// The next slice waits for the server's uplink.
    pub(crate) const fn on_held_back(&mut self) {
        if let Law::Blind(blind) = &mut self.law {
            blind.on_held_back();
        }
    }

    /// A datagram was sent, with or without a slice.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, queue: &Queue) {
        self.next = number + 1;
        self.sent_at = if queue.is_near { now } else { Instant::ZERO };
        match &mut self.law {
            Law::Blind(_) => {}
            Law::Model(start) => start.on_sent(now, number, bytes, queue),
            Law::Windowed(law) => law.on_sent(now, number, bytes, queue),
        }
    }

    /// Whether to send another train to measure the rate, now that slices arrive.
    pub(crate) fn poll_train(&mut self, now: Instant) -> bool {
        if let Law::Blind(blind) = &mut self.law { blind.poll_train(now) } else { false }
    }

    /// The fate of a datagram is settled.
    pub(crate) fn on_settled(&mut self, number: u64, is_lost: bool, rtt: Span) {
        if let Law::Windowed(law) = &mut self.law {
            law.on_settled(number, is_lost);
        }
        let next = self.next;
        if let Law::Blind(blind) = &mut self.law {
            let guess = blind.guess();
            blind.on_settled(number, is_lost, next, rtt);
            if blind.is_cut_from(&guess) {
                self.cut = Some((guess, Blamed::new(next, guess.lost() + 1.0)));
            }
        } else if let Some(flow) = self.flow_mut() {
            flow.on_settled(number, is_lost);
        }
    }

    /// One that was taken for lost has arrived: what that has changed is undone.
    pub(crate) fn on_spurious(&mut self, number: u64) {
        if let Law::Windowed(law) = &mut self.law {
            law.on_spurious();
        }
        if let Law::Blind(blind) = &mut self.law {
            blind.on_spurious(number);
            if let Some((guess, _)) = self.cut.take_if(|(_, losses)| losses.is_refuted_by(number)) {
                blind.take_back(&guess);
            }
        } else if let Some(flow) = self.flow_mut() {
            flow.on_spurious(number);
        }
    }

    /// Datagrams overtake others that were sent so much earlier.
    pub(crate) fn set_disorder(&mut self, disorder: Span) {
        if let Some(flow) = self.flow_mut() {
            flow.set_disorder(disorder);
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
        self.base.on_delay(sample.at, sample.delay);
        let delay = self.base.get().map_or(Span::ZERO, |base| sample.delay - base);
        let fell = (before - sample.delay).max(Span::ZERO);
        let packet = self.full + NEARLY_FULL;
        if let Law::Windowed(law) = &mut self.law {
            law.on_delay(now.into(), sample, delay, fell, packet);
            if let Some(longer) = law.poll_longer() {
                self.base.shift(longer);
                self.rise = Some(longer);
            }
        }
        let Some(lasts) = self.flow_mut().and_then(|flow| flow.on_arrival(*sample, delay)) else {
            return;
        };
        match &mut self.law {
            Law::Model(start) if start.is_round(lasts) => start.judge(),
            _ => {}
        }
    }

    /// By how much the delay without a queue has risen, if that was just found out: the path is longer.
    pub(crate) const fn poll_rise(&mut self) -> Option<Span> {
        self.rise.take()
    }

    /// A datagram, no older than `number`, was marked by a router whose queue is too long. It ends the start
    /// of a transfer, in which the queue is filled on purpose: from then on it has a rate of its own, which
    /// is reduced, and a guess is halved once a round trip until there is one.
    pub(crate) fn on_congestion_mark(&mut self, now: Instant, number: u64) {
        let is_news = self.marked.is_none_or(|before| number >= before);
        match &mut self.law {
            Law::Blind(blind) if is_news => blind.on_mark(now),
            Law::Blind(_) | Law::Model(_) => {}
            Law::Windowed(law) => return law.on_mark(number, self.next),
        }
        if is_news {
            self.marked = Some(self.next);
        }
    }

    fn flow(&self) -> Option<&Flow> {
        match &self.law {
            Law::Blind(_) => None,
            Law::Model(start) => Some(&start.flow),
            Law::Windowed(law) => Some(&law.flow),
        }
    }

    fn flow_mut(&mut self) -> Option<&mut Flow> {
        match &mut self.law {
            Law::Blind(_) => None,
            Law::Model(start) => Some(&mut start.flow),
            Law::Windowed(law) => Some(&mut law.flow),
        }
    }
}
