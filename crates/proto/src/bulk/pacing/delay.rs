//! The rate of a long transfer beside others that yield as well: the law that keeps the queue short.
//!
//! Each round trip the rate follows what was delivered, toward a queueing delay of c / sqrt(R): the larger of
//! two flows accepts less, so all of them come to equal rates, whatever their round trips. Every few seconds
//! all flows of a queue drain it in step, because each drains so long after it last saw it become empty: so
//! all know the delay without a queue, and what is lost then is the link's own. If the queue does not become
//! empty, others fill it, and the flow competes as TCP does ([`BesideTcp`](super::beside_tcp::BesideTcp)).

use libm::sqrt;

use super::super::tuning::FULL_PACKET;
use super::super::tuning::delay::{
    CAP_GROWTH, DRAIN_MARGIN, DRAIN_PACKETS, DRAIN_PART, DRAINED, EMPTY_PART, FEW_HELD_UP,
    FULL_CAP, GAIN, HELD_UP_WEIGHT, HOT, HOT_ROUNDS, JITTER, LEFT_MARGIN, MAX_CUT, MAX_DELIVERED,
    MAX_DRAIN_TIME, MAX_FAILED, MAX_GROWTH, MAX_HOT, MAX_JUMP, MAX_NOISE, MAX_OVERSHOOT, MIN_APART,
    MIN_CUT, MIN_EMPTY, MIN_FALL, MIN_HOT, MIN_INTERVAL, MIN_ROOT, MIN_TARGET, OVERSHOT,
    OVERSHOT_PACKETS, REFERENCE, ROUNDS, SEARCH, SEARCHED_ARRIVALS, SHORT_ROUND, STEADY, TARGET,
    TEST_AFTER, TRIAL_CUT, YIELDED,
};
use super::super::tuning::flow::{DECREASE, MIN_ROUND, USED};
use super::super::tuning::near::is_fast;
use super::super::tuning::rate_finder::TRAIN_ABOVE;
use super::super::tuning::start::PART;
use super::super::tuning::usual::{
    CONFIRM_PACKETS, CONFIRMED, ENDED, HEAVY, MAX_RETURN, MAX_TRIAL, MIN_SEEN, MIN_TRIAL,
    TRIAL_LOST, TRIAL_PACKETS, TRIES, WINDOW,
};
use super::super::units::{Bytes, Rate, Span};
use super::beside_tcp::BesideTcp;
use super::drains::Drains;
use super::flow::Flow;
use super::start::Begin;
use super::usual::Usual;
use super::varied::Varied;
use super::varying::Varying;

/// A lower rate, tried because more is lost than usual.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The rate, and the excess, before it.
    rate: Rate,
    excess: f64,
    /// How often it has been lowered, and whether a queue was seen since.
    tries: u32,
    is_queued: bool,
    since: Span,
    /// The longest queueing delay then, and how much wider those losses spread than independent ones.
    delay: Span,
    inflation: f64,
}

/// Half is sent for a while.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// The queueing delay before it.
    before: Span,
    until: Span,
}

/// A flow that keeps the queue short.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) flow: Flow,
    pub(super) usual: Usual,
    pub(super) varied: Varied,
    trial: Option<Trial>,
    /// The delivered rate at the last standing queue.
    ceiling: Rate,
    /// The relative growth above that in the last round.
    growth: f64,
    /// The delay at which a queue was full that is too short for the usual target.
    cap: Span,
    /// When all drain, and the present drain.
    pub(super) drains: Drains,
    drain: Option<Drain>,
    /// Drains since then that did not empty it, and how many of them began with a queue far above the target.
    failed: u32,
    blamed: u32,
    /// Rounds with a queue far above the target, and the rate when it was last at the target.
    hot: u32,
    rate_before: Rate,
    test_at: Span,
    /// The queueing delay of the last round.
    delay: Span,
    /// The largest rate that the link was known to have.
    known: Rate,
    /// The caller was late in this round: what it sends at once is a queue that is gone before the next call.
    is_framed: bool,
    /// The known rate may be too low: arrivals were in disorder, and no queue was seen since.
    is_searching: bool,
    /// The part of arrivals that are held up behind the bottleneck, and by how much the delays of a round
    /// differ.
    held_up: f64,
    spread: Span,
    /// Rounds in succession in which the link showed no other rate.
    steady: u32,
    /// Drains in which losses that were taken for usual have to be seen.
    unsure: u32,
}

/// The queueing delay at which a flow of this rate neither grows nor yields.
pub(super) fn target(rate: Rate) -> Span {
    MIN_TARGET + TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)
}

impl Delay {
    /// Begins with a link of this rate.
    pub(super) fn begin(mut flow: Flow, known: Rate, begin: Begin) -> Self {
        let lost = flow.seen.share();
        let (rate, trial) = match begin {
            Begin::Alone { .. } => (known, None),
            Begin::Beside(rate) => (rate, None),
            Begin::Trial(rate) => (
                rate,
                Some(Trial {
                    rate: known,
                    excess: lost,
                    delay: Span::ZERO,
                    tries: TRIES,
                    since: flow.now(),
                    is_queued: false,
                    inflation: flow.seen.inflation(),
                }),
            ),
        };
        let mut usual = Usual::new();
        if begin == (Begin::Alone { is_sure: true }) {
            usual.learn(flow.seen);
        }
        flow.restart(rate);
        let rate_before = rate.max(PART * known);
        let is_searching = matches!(begin, Begin::Alone { .. });
        let law = Self { unsure: CONFIRMED, is_searching, ..Self::new(flow, known, usual) };
        Self { trial, rate_before, ceiling: rate.min(known), ..law }
    }

    /// Continues after others have left the queue to this rate.
    pub(super) fn after(law: &BesideTcp, rate: Rate) -> Self {
        let BesideTcp { mut flow, usual, drains, varied, .. } = law.clone();
        flow.restart(rate);
        Self { drains, varied, ..Self::new(flow, rate, usual) }
    }

    /// Continues at this rate on a link that no longer varies.
    pub(super) fn after_variation(law: &Varying, rate: Rate) -> Self {
        let Varying { mut flow, usual, drains, varied, .. } = law.clone();
        flow.restart(rate);
        Self { drains, varied, ..Self::new(flow, rate, usual) }
    }

    /// Continues a flow; `ceiling` is the known rate of the link.
    fn new(flow: Flow, ceiling: Rate, usual: Usual) -> Self {
        let (now, flow_rate) = (flow.now(), flow.rate());
        Self {
            flow,
            usual,
            varied: Varied::new(),
            trial: None,
            ceiling,
            growth: 0.0,
            cap: Span::INFINITY,
            drains: Drains::new(now),
            drain: None,
            failed: 0,
            blamed: 0,
            hot: 0,
            rate_before: flow_rate,
            test_at: now,
            delay: Span::ZERO,
            known: ceiling,
            is_framed: false,
            is_searching: false,
            held_up: 0.0,
            spread: Span::ZERO,
            steady: 0,
            unsure: 0,
        }
    }

    /// The link has this rate, by trains. A fast link is learned in steps, and a flow may have begun before
    /// the last of them; what it gave way to since is not taken back.
    pub(super) fn learn(&mut self, known: Rate, packet: Bytes) {
        if known > TRAIN_ABOVE * self.known && is_fast(self.known, packet) {
            (self.known, self.ceiling, self.growth) = (known, known, 0.0);
            self.flow.adjust(known.max(self.flow.rate()));
        }
    }

    /// This was found to be the link's rate, after more was tried.
    pub(super) fn settle(&mut self, rate: Rate) {
        (self.known, self.ceiling, self.growth) = (rate, rate, 0.0);
        self.flow.restart(rate);
    }

    /// A datagram was sent: perhaps it is time to drain.
    pub(super) fn on_sent(&mut self, rtt: Span, is_framed: bool) {
        self.is_framed |= is_framed;
        let is_unsure = self.unsure > 0;
        if self.drains.poll(self.flow.now(), is_unsure) && self.drain.is_none() {
            self.begin_drain(self.delay, rtt);
        }
    }

    /// Less is sent until this flow's part of such a queue is gone, and that of others who do the same.
    fn begin_drain(&mut self, queue: Span, rtt: Span) {
        let deeper = f64::from(1 << self.failed.min(2));
        let packets = if self.unsure > 0 { CONFIRM_PACKETS } else { DRAIN_PACKETS };
        let packets = packets * (FULL_PACKET / self.flow.rate());
        let lasts = (deeper * (queue + DRAIN_MARGIN) / (1.0 - DRAIN_PART)).max(packets);
        let lasts = lasts.min(MAX_DRAIN_TIME.max(rtt));
        self.flow.slow_for(lasts, DRAIN_PART);
        self.drain = Some(Drain { before: self.delay, until: self.flow.now() + lasts });
    }

    /// A round has ended: what it shows of how datagrams are held up behind the bottleneck. Delays that
    /// differ by much more than that jitter are of a link that delivers in bursts.
    fn note_held_up(&mut self) {
        let round = &self.flow.round;
        self.held_up += HELD_UP_WEIGHT * (round.held_up() - self.held_up);
        let spread = round.max_delay - round.min_delay;
        self.spread += HELD_UP_WEIGHT * (spread - self.spread);
        self.steady = if self.varied.is_steady() { self.steady.saturating_add(1) } else { 0 };
    }

    /// How long the jitter of a path is that keeps datagrams in order. Where none may overtake another, one
    /// that is held up holds up those behind it, and these arrive at once, which no queue of a link lets
    /// them. How many do tells how long the jitter is, in intervals of sending, whatever queue stands
    /// beside it.
    fn jitter(&self) -> Span {
        let apart = 1.0 - self.held_up;
        JITTER / (apart * apart).max(MIN_APART) * (FULL_PACKET / self.flow.rate())
    }

    /// The least delay that such jitter makes of a round's datagrams, which is no queue: the more are sent,
    /// the later is the earliest of them.
    fn noise(&self) -> Span {
        let is_told_apart = FULL_PACKET / self.flow.rate() > MIN_INTERVAL;
        if self.steady < STEADY || !is_told_apart {
            return Span::ZERO;
        }
        let least = (self.held_up - FEW_HELD_UP).max(0.0) * self.jitter();
        least.min(self.spread).min(MAX_NOISE)
    }

    /// A datagram arrived. `fell`: its delay is so much less than the least before.
    pub(super) fn on_delay(&mut self, sent: Span, delay: Span, fell: Span) {
        let delay = delay - self.noise();
        if delay <= self.empty_below() {
            self.drains.on_empty(sent, fell);
        }
        if let (Some(trial), true) = (&mut self.trial, fell > MIN_FALL) {
            trial.is_queued = true;
        }
    }

    fn empty_below(&self) -> Span {
        MIN_EMPTY.max(EMPTY_PART * target(self.flow.rate()))
    }

    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        match self.drain {
            Some(drain) => self.flow.newest_sent() >= drain.until && self.flow.round.arrivals > 1,
            None => {
                let round = (rtt / ROUNDS).max(rtt.min(SHORT_ROUND));
                self.flow.is_round(lasts, round) || self.is_searched(lasts, round)
            }
        }
    }

    /// Whether enough was seen of a step of the search.
    fn is_searched(&self, lasts: Span, round: Span) -> bool {
        let disorder = self.flow.disorder();
        self.is_searching
            && 2.0 * disorder > round
            && self.flow.round.arrivals >= SEARCHED_ARRIVALS
            && (lasts >= disorder || self.is_overshot())
    }

    /// The newest arrivals of a step are later than all that are held up by chance.
    fn is_overshot(&self) -> bool {
        let packets = OVERSHOT_PACKETS * (FULL_PACKET / self.flow.rate());
        self.flow.round.newest_delay() > OVERSHOT * self.flow.disorder() + packets
    }

    /// Judges a round. If others fill the queue, returns the rate from before this flow yielded.
    pub(super) fn judge(&mut self, rtt: Span) -> Option<Rate> {
        let rate = self.flow.rate();
        self.note_held_up();
        let sent = self.flow.delivered().min(MAX_DELIVERED * rate);
        let delay = (self.flow.round.min_delay - self.noise()).max(Span::ZERO);
        self.delay = delay;
        if let Some(drain) = self.drain.take() {
            return self.end_drain(drain, delay);
        }
        if self.flow.round.is_marked {
            self.varied = Varied::new();
            (self.ceiling, self.growth) = (sent, 0.0);
            let longest = self.flow.round.max_delay;
            self.flow.restart(sent * (1.0 - DECREASE));
            self.begin_drain(longest, rtt);
            return None;
        }
        self.usual.bound(self.flow.seen);
        let excess = self.usual.excess(self.flow.seen);
        if let Some(mut trial) = self.trial {
            trial.is_queued |= self.is_hot(delay);
            self.judge_trial(trial);
            return None;
        }
        if self.flow.seen.total() > WINDOW {
            self.flow.seen.halve();
        }
        let Some(excess) = excess else {
            // So much of a queue was not full.
            self.cap = (CAP_GROWTH * self.cap).max(FULL_CAP * self.flow.round.max_delay);
            self.follow(sent, delay, rtt);
            return self.test(delay, rtt);
        };
        let is_unqueued = self.flow.round.max_delay < HOT * target(rate);
        let delivered = if is_unqueued { rate } else { sent } * self.kept();
        self.ceiling = delivered;
        self.growth = 0.0;
        let mut cut = MIN_CUT.max(TRIAL_CUT * excess);
        if is_unqueued {
            // No queue that explains them.
            let inflation = self.flow.seen.inflation();
            let delay = self.flow.round.max_delay;
            let (tries, is_queued, since) = (1, false, self.flow.now());
            self.trial = Some(Trial { rate, excess, delay, inflation, tries, is_queued, since });
        } else {
            cut = cut.max(self.pull(delay, rtt).abs());
        }
        self.flow.restart((delivered * (1.0 - cut)).max(MIN_TRIAL * rate));
        None
    }

    /// Judges what was lost at the lower rate, once that is enough. Until then the rate stays.
    fn judge_trial(&mut self, trial: Trial) {
        let lost = TRIAL_LOST * trial.inflation;
        let needed = (lost / trial.excess).clamp(TRIAL_PACKETS.0, TRIAL_PACKETS.1);
        let seen = f64::from(self.flow.seen.total());
        let is_slow = self.flow.now() - trial.since > MAX_TRIAL && seen >= MIN_SEEN;
        if seen < needed && !is_slow {
            self.trial = Some(trial);
            return self.flow.go_on(self.flow.rate());
        }
        self.trial = None;
        let more = self.flow.seen.share() - self.usual.share();
        let ended = if is_slow { 0.0 } else { ENDED };
        if more > ended * trial.excess && trial.excess > HEAVY && trial.tries < TRIES {
            let since = self.flow.now();
            self.trial = Some(Trial { tries: trial.tries + 1, since, ..trial });
            self.flow.restart(self.flow.rate() / 2.0);
        } else if more > ended * trial.excess && !trial.is_queued {
            self.usual.replace(self.flow.seen);
            self.unsure = CONFIRMED;
            let rate = trial.rate.min(MAX_RETURN * self.flow.rate());
            (self.ceiling, self.growth) = (trial.rate.min(rate / (1.0 + LEFT_MARGIN)), MAX_GROWTH);
            self.flow.restart(rate);
        } else {
            // A queue that is full before it is seen.
            if trial.delay > MIN_EMPTY {
                self.cap = self.cap.min((FULL_CAP * trial.delay).max(MIN_EMPTY));
            }
            self.flow.restart(self.flow.rate());
        }
    }

    /// The part of what was sent that got through, the link's own losses not counted.
    fn kept(&self) -> f64 {
        let seen =
            if self.flow.round.fates.total() < 16 { self.flow.seen } else { self.flow.round.fates };
        ((1.0 - seen.share()) / (1.0 - self.usual.share())).min(1.0)
    }

    fn target(&self) -> Span {
        target(self.flow.rate()).min(self.cap)
    }

    /// The relative change of the rate that leads the queue to the target.
    fn pull(&self, delay: Span, rtt: Span) -> f64 {
        (GAIN * ((self.target() - delay) / rtt.max(MIN_ROUND))).clamp(-MAX_CUT, MAX_GROWTH)
    }

    fn follow(&mut self, sent: Rate, delay: Span, rtt: Span) {
        let rate = self.flow.rate();
        let is_framed = core::mem::take(&mut self.is_framed);
        let late = if is_framed { delay } else { self.flow.round.late_delay() - self.noise() };
        let pull = self.pull(late, rtt);
        self.is_searching &= 2.0 * self.flow.disorder() > rtt / ROUNDS;
        if self.is_searching {
            if !self.is_overshot() && sent >= USED * rate {
                return self.flow.go_on(rate * SEARCH);
            }
            self.is_searching = false;
        }
        if delay > self.empty_below() {
            // The link is busy, and passes this much of this flow.
            (self.ceiling, self.growth) = (sent, 0.0);
            return self.flow.go_on(sent * (1.0 + pull));
        }
        if sent < USED * rate {
            return self.flow.go_on(rate);
        }
        // The queue grew in this round: the link has what it passes.
        let is_growing = late > self.target();
        let mut part = pull;
        if !is_growing && rate > (1.0 + LEFT_MARGIN) * self.ceiling {
            let max = (MAX_OVERSHOOT * target(rate) / rtt).clamp(MAX_JUMP.0, MAX_JUMP.1);
            self.growth = (2.0 * self.growth.max(part)).min(max);
            part = part.max(self.growth);
        }
        self.flow.go_on(rate * (1.0 + part));
    }

    /// The queue is far longer than flows of this law would make it.
    fn is_hot(&self, delay: Span) -> bool {
        delay > (HOT * target(self.rate_before) + MIN_HOT).min(MAX_HOT)
    }

    /// Whether others fill the queue: a drain of this flow's part shows it.
    fn test(&mut self, delay: Span, rtt: Span) -> Option<Rate> {
        if delay <= self.target() {
            self.rate_before = self.flow.rate();
        }
        if !self.is_hot(delay) {
            self.hot = 0;
            return None;
        }
        self.hot += 1;
        let now = self.flow.now();
        if self.hot >= HOT_ROUNDS && now >= self.test_at {
            (self.hot, self.test_at) = (0, now + TEST_AFTER.max(2.0 * rtt));
            self.begin_drain(delay, rtt);
        }
        None
    }

    fn end_drain(&mut self, drain: Drain, delay: Span) -> Option<Rate> {
        let mut rate = self.flow.rate();
        let was_hot = self.is_hot(drain.before);
        if delay <= self.empty_below().max(DRAINED * drain.before) {
            (self.failed, self.blamed) = (0, 0);
            self.usual.bound(self.flow.round.fates);
            self.usual.learn(self.flow.round.fates);
            self.unsure = self.unsure.saturating_sub(1);
            if was_hot {
                // What the link passed while it was busy fills no queue.
                rate = rate.max(self.ceiling * (1.0 - LEFT_MARGIN));
            }
        } else {
            self.failed += 1;
            self.blamed += u32::from(was_hot);
        }
        self.flow.go_on(rate);
        let has_yielded = rate < YIELDED * self.rate_before;
        let is_starved = self.blamed >= 2 * MAX_FAILED;
        (self.blamed >= MAX_FAILED && has_yielded || is_starved).then_some(self.rate_before)
    }
}
