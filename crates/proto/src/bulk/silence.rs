//! When nothing is heard: a timeout gives up what is in flight, and some slices ask whether the peer is
//! there; if nothing moves for long, the transfer fails.

use core::time::Duration;

use super::tuning::silence::{AFTER_FIRST, AFTER_LATER, FIRST_RTT, MAX_DOUBLINGS, MAX_WAIT, SLACK};
use super::units::Span;
use crate::Instant;

/// What was heard last, and how often nothing was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    rtt: Duration,
    /// When there was news last, or everything was given up.
    progress: Instant,
    /// There was news since the last call.
    has_news: bool,
    /// When a chunk came further last.
    moved: Instant,
    /// When the last slice went out, and when the bottleneck was to be done with it.
    last_slice: Option<(Instant, Span)>,
    timeouts: u32,
    /// Slices that may still follow the last timeout.
    left: usize,
    /// The first of them has not gone out.
    is_probe_due: bool,
    has_failed: bool,
}

impl Silence {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            rtt: FIRST_RTT,
            progress: now,
            has_news: false,
            moved: now,
            last_slice: None,
            timeouts: 0,
            left: 0,
            is_probe_due: false,
            has_failed: false,
        }
    }

    pub(super) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    pub(super) const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// When there was news last, or everything was given up.
    pub(super) const fn progress(&self) -> Instant {
        self.progress
    }

    /// A transfer begins.
    pub(super) const fn begin(&mut self, now: Instant) {
        (self.progress, self.moved) = (now, now);
    }

    /// It is called. News may have waited for that, and what it answers could not go out before.
    pub(super) fn on_call(&mut self, now: Instant) {
        if core::mem::take(&mut self.has_news) {
            self.progress = self.progress.max(now);
        }
    }

    /// The peer has said something of this transfer.
    pub(super) const fn on_news(&mut self, now: Instant) {
        (self.progress, self.has_news) = (now, true);
        self.timeouts = 0;
    }

    /// A chunk came further.
    pub(super) const fn on_moved(&mut self, now: Instant) {
        self.moved = now;
    }

    /// A slice went out; the bottleneck should be done with it at `idle_at`.
    pub(super) const fn on_slice_sent(&mut self, now: Instant, idle_at: Span) {
        self.last_slice = Some((now, idle_at));
        self.left = self.left.saturating_sub(1);
        self.is_probe_due = false;
    }

    /// Whether what goes out now follows a timeout: few slices, to hear whether the peer is there.
    pub(super) const fn is_probing(&self) -> bool {
        self.timeouts > 0
    }

    /// Whether the first slice after a timeout has not gone out.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.is_probe_due
    }

    /// Whether a slice may go.
    pub(super) const fn may_send(&self) -> bool {
        self.timeouts == 0 || self.left > 0
    }

    /// When what is in flight counts as gone.
    pub(super) fn timeout_at(&self) -> Option<Instant> {
        let (sent_at, idle_at) = self.last_slice?;
        let idle_at = idle_at.instant().min(sent_at + MAX_WAIT);
        let base = self.progress.max(sent_at).max(idle_at);
        let wait = self.rtt + self.rtt / 4 + SLACK;
        Some(base + wait.saturating_mul(1 << self.timeouts.min(MAX_DOUBLINGS)).min(MAX_WAIT))
    }

    /// What is in flight is given up.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.timeouts = self.timeouts.saturating_add(1);
        self.left = if self.timeouts == 1 { AFTER_FIRST } else { AFTER_LATER };
        (self.is_probe_due, self.progress) = (true, now);
    }

    /// When the transfer fails, if nothing moves before.
    pub(super) fn fails_at(&self, patience: Duration) -> Option<Instant> {
        (!self.has_failed).then(|| self.moved + patience)
    }

    pub(super) const fn on_failed(&mut self) {
        self.has_failed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn sent_at(at: Instant) -> Silence {
        let mut silence = Silence::new(at);
        silence.set_rtt(Duration::from_millis(40));
        silence.on_slice_sent(at, Span::ZERO);
        silence
    }

    #[test]
    fn each_timeout_waits_twice_as_long_and_lets_fewer_slices_go() {
        let mut silence = sent_at(ms(1_000));
        let mut at = ms(1_000);
        for (wait, slices) in [(70, 12), (140, 4), (280, 4), (560, 4), (1_120, 4), (1_120, 4)] {
            assert_eq!(silence.timeout_at(), Some(at + Duration::from_millis(wait)));
            at = at + Duration::from_millis(wait);
            silence.on_timeout(at);
            let mut sent = 0;
            while silence.may_send() {
                silence.on_slice_sent(at, Span::ZERO);
                sent += 1;
            }
            assert_eq!(sent, slices);
        }
        silence.on_news(at);
        assert!(silence.may_send() && !silence.is_probing());
    }

    /// A frame brings news that is older than its timeout: what follows from it is waited for from then on.
    #[test]
    fn news_that_waited_for_a_call_counts_as_of_the_call() {
        let mut silence = sent_at(ms(1_000));
        silence.on_news(ms(1_010));
        silence.on_call(ms(1_100));
        assert_eq!(silence.timeout_at(), Some(ms(1_170)));
        silence.on_call(ms(1_150));
        assert_eq!(silence.timeout_at(), Some(ms(1_170)), "once");
    }

    #[test]
    fn what_waits_at_the_bottleneck_is_waited_for() {
        let mut silence = sent_at(ms(1_000));
        silence.on_slice_sent(ms(1_000), Span::from_millis(1_500));
        assert!(silence.timeout_at() > Some(ms(1_569)));
        silence.on_slice_sent(ms(1_000), Span::from_millis(60_000));
        assert_eq!(silence.timeout_at(), Some(ms(3_070)), "up to 2 s");
    }

    #[test]
    fn a_transfer_fails_once() {
        let mut silence = Silence::new(ms(1_000));
        let patience = Duration::from_secs(15);
        assert_eq!(silence.fails_at(patience), Some(ms(16_000)));
        silence.on_moved(ms(5_000));
        assert_eq!(silence.fails_at(patience), Some(ms(20_000)));
        silence.on_failed();
        assert_eq!(silence.fails_at(patience), None);
    }
}
