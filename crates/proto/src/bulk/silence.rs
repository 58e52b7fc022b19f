//! Probe timeouts of a transfer. A timeout gives up the datagrams in flight, and a few slices probe whether
//! the peer still answers. A transfer without progress for long fails.

use core::time::Duration;

use haulier_control::Span;

use super::tuning::silence::{
    AFTER_FIRST, AFTER_LATER, MAX_DOUBLINGS, MAX_WAIT, RTT_QUARTERS, SLACK,
};
use crate::Instant;
use crate::stall::StallClock;

/// The last feedback, and the timeouts since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// By how much the peer's program reads late.
    lateness: Duration,
    /// By how much later than unasked it acknowledges.
    ack_delay: Duration,
    /// When feedback came last, or everything in flight was given up.
    restarted_at: Instant,
    /// Feedback came since the last call.
    has_feedback: bool,
    /// How long no chunk has made progress.
    stall: StallClock,
    /// When the last slice was sent, and when the bottleneck is expected to have passed it.
    last_slice: Option<(Instant, Span)>,
    timeouts: u32,
    /// Slices that may still be sent after the last timeout.
    left: usize,
    /// The first of them was not sent yet.
    is_probe_due: bool,
    has_failed: bool,
}

impl Silence {
    pub(super) fn new(now: Instant, idle_timeout: Duration) -> Self {
        Self {
            lateness: Duration::ZERO,
            ack_delay: Duration::ZERO,
            restarted_at: now,
            has_feedback: false,
            stall: StallClock::new(now, idle_timeout),
            last_slice: None,
            timeouts: 0,
            left: 0,
            is_probe_due: false,
            has_failed: false,
        }
    }

    pub(super) const fn set_lateness(&mut self, lateness: Duration) {
        self.lateness = lateness;
    }

    pub(super) const fn set_ack_delay(&mut self, later: Duration) {
        self.ack_delay = later;
    }

    /// By how much later than a round trip feedback may come.
    pub(super) fn later(&self) -> Span {
        Span::from(self.lateness) + Span::from(self.ack_delay)
    }

    /// A transfer begins.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.restarted_at = now;
        self.stall.on_progress(now);
    }

    /// The sender is called. Feedback may have waited for this call, and the response to it too.
    pub(super) fn on_call(&mut self, now: Instant) {
        if core::mem::take(&mut self.has_feedback) {
            self.restarted_at = self.restarted_at.max(now);
        }
    }

    /// The peer reported something about this transfer.
    pub(super) const fn on_feedback(&mut self, now: Instant) {
        (self.restarted_at, self.has_feedback) = (now, true);
        self.timeouts = 0;
    }

    /// Something was heard from the peer, whatever it was. If that is after a silence, a few more slices
    /// probe at once: the next timeout may be seconds away.
    pub(super) fn on_heard(&mut self, now: Instant) {
        if self.stall.on_heard(now) && self.is_probing() {
            (self.left, self.is_probe_due) = (AFTER_LATER, true);
        }
    }

    /// A chunk made progress.
    pub(super) const fn on_progress(&mut self, now: Instant) {
        self.stall.on_progress(now);
    }

    /// A slice was sent; the bottleneck should have passed it at `idle_at`.
    pub(super) const fn on_slice_sent(&mut self, now: Instant, idle_at: Span) {
        self.last_slice = Some((now, idle_at));
        self.left = self.left.saturating_sub(1);
        self.is_probe_due = false;
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(super) const fn is_probing(&self) -> bool {
        self.timeouts > 0
    }

    /// Whether the first slice after a timeout was not sent yet.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.is_probe_due
    }

    /// Whether a slice may be sent.
    pub(super) const fn may_send(&self) -> bool {
        self.timeouts == 0 || self.left > 0
    }

    /// When everything in flight is given up on a path of this round trip.
    pub(super) fn timeout_at(&self, rtt: Duration) -> Option<Instant> {
        let (sent_at, idle_at) = self.last_slice?;
        let idle_at = idle_at.instant().min(sent_at + MAX_WAIT);
        let base = self.restarted_at.max(sent_at).max(idle_at);
        Some(
            base + self
                .wait(rtt)
                .saturating_mul(1 << self.timeouts.min(MAX_DOUBLINGS))
                .min(MAX_WAIT),
        )
    }

    /// The time for an answer.
    fn wait(&self, rtt: Duration) -> Duration {
        rtt.saturating_mul(RTT_QUARTERS) / 4 + SLACK + self.lateness + self.ack_delay
    }

    /// Everything in flight is given up.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.timeouts = self.timeouts.saturating_add(1);
        self.left = if self.timeouts == 1 { AFTER_FIRST } else { AFTER_LATER };
        (self.is_probe_due, self.restarted_at) = (true, now);
    }

    /// When the transfer fails, unless a chunk makes progress before.
    pub(super) fn fails_at(&self, give_up_after: Duration) -> Option<Instant> {
        (!self.has_failed).then(|| self.stall.stalled_at(give_up_after))
    }

    pub(super) const fn on_failed(&mut self) {
        self.has_failed = true;
    }

    /// Whether it has.
    pub(super) const fn has_failed(&self) -> bool {
        self.has_failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

    const RTT: Duration = Duration::from_millis(40);

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn sent_at(at: Instant) -> Silence {
        let mut silence = Silence::new(at, IDLE_TIMEOUT);
        silence.on_slice_sent(at, Span::ZERO);
        silence
    }

    #[test]
    fn each_timeout_waits_twice_as_long_and_allows_fewer_slices() {
        let mut silence = sent_at(ms(1_000));
        let mut at = ms(1_000);
        for (wait, slices) in [(70, 12), (140, 4), (280, 4), (560, 4), (1_120, 4), (1_120, 4)] {
            assert_eq!(silence.timeout_at(RTT), Some(at + Duration::from_millis(wait)));
            at = at + Duration::from_millis(wait);
            silence.on_timeout(at);
            let mut sent = 0;
            while silence.may_send() {
                silence.on_slice_sent(at, Span::ZERO);
                sent += 1;
            }
            assert_eq!(sent, slices);
        }
        silence.on_feedback(at);
        assert!(silence.may_send() && !silence.is_probing());
    }

    /// A frame may deliver feedback older than the timeout: the timeout restarts at the call.
    #[test]
    fn feedback_that_waited_for_a_call_counts_from_that_call() {
        let mut silence = sent_at(ms(1_000));
        silence.on_feedback(ms(1_010));
        silence.on_call(ms(1_100));
        assert_eq!(silence.timeout_at(RTT), Some(ms(1_170)));
        silence.on_call(ms(1_150));
        assert_eq!(silence.timeout_at(RTT), Some(ms(1_170)), "once");
    }

    #[test]
    fn the_timeout_includes_the_backlog_at_the_bottleneck() {
        let mut silence = sent_at(ms(1_000));
        silence.on_slice_sent(ms(1_000), Span::from_millis(1_500));
        assert!(silence.timeout_at(RTT) > Some(ms(1_569)));
        silence.on_slice_sent(ms(1_000), Span::from_millis(60_000));
        assert_eq!(silence.timeout_at(RTT), Some(ms(3_070)), "up to 2 s");
    }

    #[test]
    fn a_transfer_fails_once() {
        let mut silence = Silence::new(ms(1_000), IDLE_TIMEOUT);
        let give_up_after = Duration::from_secs(15);
        silence.on_heard(ms(1_500));
        silence.on_progress(ms(5_000));
        (11..40).for_each(|half| silence.on_heard(ms(half * 500)));
        assert_eq!(silence.fails_at(give_up_after), Some(ms(20_000)));
        silence.on_failed();
        assert_eq!(silence.fails_at(give_up_after), None);
    }
}
