//! The send budget: how many bytes may go out now.
//!
//! "Each frame, take your target bandwidth, convert it to bytes per second, and add it multiplied by
//! delta time to an accumulator" (*Sending Large Blocks of Data*, "Sender Implementation"). The article
//! lets it pile up without limit while nothing is sent; here a cap keeps an idle minute from becoming a
//! burst. Integers only, so that two machines agree to the bit.

use core::time::Duration;

use crate::Instant;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Bytes that may be sent. Elapsed time fills it at a rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBudget {
    rate_bps: u64,
    /// The available bits times 10^9: at a rate of r bits per second it grows by r each nanosecond.
    credit: u128,
    refilled_at: Instant,
}

impl SendBudget {
    /// An empty budget that fills at `rate_bps` bits per second from `now` on. A rate of 0 never fills.
    #[must_use]
    pub const fn new(rate_bps: u64, now: Instant) -> Self {
        Self { rate_bps, credit: 0, refilled_at: now }
    }

    /// When elapsed time was last added.
    #[must_use]
    pub const fn refilled_at(&self) -> Instant {
        self.refilled_at
    }

    /// Changes the rate, and keeps what is available.
    pub const fn set_rate_bps(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps;
    }

    /// Empties the budget; filling starts again at `now`.
    pub const fn empty(&mut self, now: Instant) {
        self.credit = 0;
        self.refilled_at = now;
    }

    /// Makes exactly `bytes` available.
    pub const fn fill(&mut self, bytes: u64) {
        self.credit = cost(bytes);
    }

    /// Limits what is available to `bytes`.
    pub fn cap(&mut self, bytes: u64) {
        self.credit = self.credit.min(cost(bytes));
    }

    /// Adds what the rate gives for the time since the last refill, up to `cap_bytes` in total.
    pub fn refill(&mut self, now: Instant, cap_bytes: u64) {
        let elapsed = now.since(self.refilled_at).as_nanos();
        self.refilled_at = self.refilled_at.max(now);
        let earned = elapsed.saturating_mul(u128::from(self.rate_bps));
        self.credit = self.credit.saturating_add(earned).min(cost(cap_bytes));
    }

    /// Spends `bytes` if they are available, and returns whether they were.
    pub const fn try_spend(&mut self, bytes: u64) -> bool {
        match self.credit.checked_sub(cost(bytes)) {
            Some(rest) => {
                self.credit = rest;
                true
            }
            None => false,
        }
    }

    /// When `bytes` will be available, if nothing is spent until then; `None` with a rate of 0.
    #[must_use]
    pub fn ready_at(&self, bytes: u64) -> Option<Instant> {
        let missing = cost(bytes).saturating_sub(self.credit);
        if missing == 0 {
            return Some(self.refilled_at);
        }
        let nanos = missing.div_ceil(u128::from(self.rate_bps).max(1));
        let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (self.rate_bps > 0).then(|| self.refilled_at + wait)
    }

    /// Whole bytes available now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.credit / (8 * NANOS_PER_SECOND)).unwrap_or(u64::MAX)
    }

    /// The bytes that this rate gives in `duration`.
    #[must_use]
    pub fn bytes_in(&self, duration: Duration) -> u64 {
        let earned = duration.as_nanos().saturating_mul(u128::from(self.rate_bps));
        u64::try_from(earned / (8 * NANOS_PER_SECOND)).unwrap_or(u64::MAX)
    }
}

const fn cost(bytes: u64) -> u128 {
    bytes as u128 * 8 * NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABIT: u64 = 1_000_000;

    #[test]
    fn what_is_left_over_stays() {
        let mut budget = SendBudget::new(MEGABIT, Instant::ZERO);
        budget.refill(Instant::from_millis(16), u64::MAX);
        assert_eq!(budget.bytes(), 2000);
        assert!(budget.try_spend(1065));
        assert!(!budget.try_spend(1065));
        budget.refill(Instant::from_millis(32), u64::MAX);
        assert_eq!(budget.bytes(), 2935);
    }

    #[test]
    fn idle_time_is_capped() {
        let mut budget = SendBudget::new(MEGABIT, Instant::ZERO);
        budget.refill(Instant::from_millis(3_600_000), 12_500);
        assert_eq!(budget.bytes(), 12_500);
    }

    #[test]
    fn the_deadline_is_exact() {
        let mut budget = SendBudget::new(3, Instant::ZERO);
        let at = budget.ready_at(1).unwrap();
        budget.refill(Instant::from_nanos(at.as_nanos() - 1), u64::MAX);
        assert!(!budget.try_spend(1));
        budget.refill(at, u64::MAX);
        assert!(budget.try_spend(1));
    }

    #[test]
    fn no_rate_no_deadline() {
        let mut budget = SendBudget::new(0, Instant::ZERO);
        budget.refill(Instant::from_millis(1_000_000), u64::MAX);
        assert_eq!(budget.bytes(), 0);
        assert_eq!(budget.ready_at(1), None);
    }

    #[test]
    fn a_clock_that_jumps_back_earns_nothing_twice() {
        let mut budget = SendBudget::new(MEGABIT, Instant::ZERO);
        budget.refill(Instant::from_millis(8), u64::MAX);
        budget.refill(Instant::from_millis(1), u64::MAX);
        budget.refill(Instant::from_millis(8), u64::MAX);
        assert_eq!(budget.bytes(), 1000);
    }
}
