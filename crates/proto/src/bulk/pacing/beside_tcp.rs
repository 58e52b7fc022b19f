//! The rate of a long transfer where others fill the queue: CUBIC's (RFC 9438).
//!
//! Its window, as a rate, grows by a cubic function of the time since the last cut, and a loss while the
//! queue is long cuts it to seven tenths; so does a mark of ECN. Every few seconds, when the flows of the
//! [`Delay`](super::delay::Delay) law drain, this one does too. When the queue is empty, the others are
//! gone.

use libm::sqrt;

use super::super::tuning::FULL_PACKET;
use super::super::tuning::beside_tcp::{DRAIN_TRIPS, FULL_QUEUE, MAX_STEP, ROUNDS, SIGMAS};
use super::super::tuning::delay::{DRAIN_MARGIN, DRAIN_PART, DRAINED, MIN_EMPTY};
use super::super::tuning::flow::USED;
use super::super::units::{Rate, Span};
use super::cubic::{self, CUT};
use super::delay::Delay;
use super::drains::Drains;
use super::flow::{Flow, Round};
use super::seen::Seen;
use super::usual::Usual;
use super::varied::Varied;

/// A flow that competes for its share of a full queue.
#[derive(Clone, Debug)]
pub(super) struct BesideTcp {
    pub(super) flow: Flow,
    pub(super) usual: Usual,
    pub(super) varied: Varied,
    /// The window at the last cut in datagrams, and when that was.
    max_window: f64,
    cut_at: Span,
    /// The longest queueing delay since this law began.
    longest: Span,
    /// When to drain, and the queueing delay before the present drain.
    pub(super) drains: Drains,
    drained: Option<Span>,
    delay: Span,
}

impl BesideTcp {
    /// Restores the rate from before the decreases; `delay` is the queueing delay that others cause.
    pub(super) fn new(law: &Delay, rate: Rate, delay: Span, rtt: Span) -> Self {
        let Delay { mut flow, usual, drains, varied, .. } = law.clone();
        flow.restart(rate.min(2.0 * flow.rate()));
        let (now, max_window) = (flow.now(), rate * rtt / FULL_PACKET / CUT);
        Self {
            flow,
            usual,
            varied,
            max_window,
            cut_at: now,
            longest: delay,
            drains,
            drained: None,
            delay,
        }
    }

    /// A datagram was sent: perhaps it is time to drain.
    pub(super) fn on_sent(&mut self, rtt: Span) {
        if self.drains.poll(self.flow.now(), false) && self.drained.is_none() {
            let lasts = (self.delay + DRAIN_MARGIN) / (1.0 - DRAIN_PART);
            self.drained = Some(self.delay);
            self.flow.slow_for(lasts.max(DRAIN_TRIPS * rtt), DRAIN_PART);
        }
    }

    /// A datagram arrived. `fell`: its delay is so much less than the least before.
    pub(super) fn on_delay(&mut self, sent: Span, delay: Span, fell: Span) {
        if delay <= MIN_EMPTY {
            self.drains.on_empty(sent, fell);
        }
    }

    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        self.flow.is_round(lasts, rtt / ROUNDS)
            && (self.drained.is_none() || self.flow.drains_until() == Span::ZERO)
    }

    /// Judges a round of this length. Returns the rate to continue with if the queue was empty: the others
    /// are gone.
    pub(super) fn judge(&mut self, rtt: Span) -> Option<Rate> {
        let flow = &mut self.flow;
        let (delay, max_delay) = (flow.round.min_delay, flow.round.max_delay);
        let rate = flow.rate();
        if let Some(before) = self.drained.take() {
            if delay < MIN_EMPTY.max(DRAINED * before) {
                return Some(rate);
            }
            flow.go_on(rate);
            return None;
        }
        if delay < MIN_EMPTY {
            return Some(rate);
        }
        self.delay = delay;
        self.longest = self.longest.max(max_delay);
        let is_full = is_unusual(flow, &self.usual) && max_delay > FULL_QUEUE * self.longest;
        if is_full || flow.round.is_marked || self.usual.excess(flow.seen).is_some() {
            self.max_window = rate * rtt / FULL_PACKET;
            self.cut_at = flow.now();
            flow.restart(CUT * rate);
            return None;
        }
        let mut next = rate;
        if flow.delivered() > USED * rate {
            next = (self.window(rtt) * FULL_PACKET / rtt).clamp(rate / MAX_STEP, MAX_STEP * rate);
        }
        self.flow.adjust(next);
        (self.flow.seen, self.flow.round) = (Seen::new(), Round::default());
        None
    }

    /// The window of CUBIC in datagrams, a round trip from now.
    fn window(&self, rtt: Span) -> f64 {
        let second = Span::from_secs(1);
        let since = (self.flow.now() - self.cut_at + rtt) / second;
        cubic::window(self.max_window, since, rtt / second)
    }
}

/// Whether more is lost than usual.
fn is_unusual(flow: &Flow, usual: &Usual) -> bool {
    let (usual, seen) = (usual.share(), f64::from(flow.seen.total()));
    flow.seen.lost() > usual * seen + SIGMAS * sqrt(usual * (1.0 - usual) * seen)
}
