//! The time that a block has made no progress. Time in which nothing at all is heard from the peer does not
//! count: then the link may be down, and the idle timeout decides when that ends the connection (H-5.1b).
//!
//! The invariant: at most the idle timeout is left out between two steps of progress, so the connection to a
//! peer that sends something now and then and makes no progress ends nevertheless.

use core::time::Duration;

use crate::Instant;

/// Silence from which on the time does not count: a peer with a block is heard several times in it.
const SILENCE: Duration = Duration::from_secs(2);

/// The time that a block may take beyond its size at the minimum rate, at least.
const EXTRA_BLOCK_TIME: Duration = Duration::from_secs(60);

/// The time that a block of this size may take, given the minimum rate in bit/s (H-5.1b). It includes an
/// outage as long as the idle timeout.
pub(crate) fn max_block_time(bytes: u64, min_rate_bps: u64, idle_timeout: Duration) -> Duration {
    Duration::from_secs(bytes.saturating_mul(8) / min_rate_bps)
        .saturating_add(EXTRA_BLOCK_TIME.max(idle_timeout))
}

/// The time without progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallClock {
    progress_at: Instant,
    /// When the peer was heard last.
    heard_at: Instant,
    /// The part of the time since the last progress that does not count.
    silent: Duration,
    /// The maximum of `silent`.
    max_silent: Duration,
}

impl StallClock {
    pub(crate) const fn new(now: Instant, idle_timeout: Duration) -> Self {
        let silent = Duration::ZERO;
        Self { progress_at: now, heard_at: now, silent, max_silent: idle_timeout }
    }

    pub(crate) const fn on_progress(&mut self, now: Instant) {
        (self.progress_at, self.silent) = (now, Duration::ZERO);
    }

    /// Something was heard from the peer. Returns whether it was after a silence.
    pub(crate) fn on_heard(&mut self, now: Instant) -> bool {
        let silence = now.since(self.silence_from());
        let was_silent = silence >= SILENCE;
        if was_silent {
            self.silent = self.silent.saturating_add(silence).min(self.max_silent);
        }
        self.heard_at = now;
        was_silent
    }

    /// A pause for another reason ends now; it lasted for `pause`, which does not count.
    pub(crate) fn on_pause(&mut self, now: Instant, pause: Duration) {
        self.progress_at = now.min(self.progress_at + pause);
    }

    /// The time at which `wait` will have passed without progress, if the peer is not heard before.
    pub(crate) fn stalled_at(&self, wait: Duration) -> Instant {
        let stalled_at = self.progress_at + wait.saturating_add(self.silent);
        if stalled_at < self.silence_from() + SILENCE {
            return stalled_at;
        }
        self.progress_at + wait.saturating_add(self.max_silent)
    }

    fn silence_from(&self) -> Instant {
        self.heard_at.max(self.progress_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(15);

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_peer_that_is_heard_has_its_time_and_no_more() {
        let mut clock = StallClock::new(ms(1_000), WAIT);
        for at in (1_500..16_000).step_by(500) {
            assert!(!clock.on_heard(ms(at)));
        }
        assert_eq!(clock.stalled_at(WAIT), ms(16_000));
    }

    #[test]
    fn an_outage_does_not_count() {
        let mut clock = StallClock::new(ms(1_000), WAIT);
        assert!(!clock.on_heard(ms(2_000)));
        clock.on_progress(ms(2_000));
        assert_eq!(clock.stalled_at(WAIT), ms(32_000), "the idle timeout comes first");
        assert!(clock.on_heard(ms(16_500)));
        for at in (17_000..31_500).step_by(500) {
            assert!(!clock.on_heard(ms(at)));
        }
        assert_eq!(clock.stalled_at(WAIT), ms(31_500));
        clock.on_progress(ms(30_000));
        assert!(clock.on_heard(ms(44_500)), "after another outage, from 31 s on");
        for at in (45_000..58_500).step_by(500) {
            assert!(!clock.on_heard(ms(at)));
        }
        assert_eq!(clock.stalled_at(WAIT), ms(58_500));
    }

    /// A datagram in fourteen seconds keeps no block alive for long.
    #[test]
    fn silence_that_does_not_count_is_limited() {
        let mut clock = StallClock::new(ms(1_000), WAIT);
        for at in [15_000, 29_000] {
            assert!(clock.on_heard(ms(at)));
            assert_eq!(clock.stalled_at(WAIT), ms(31_000));
        }
    }
}
