//! The reordering of a path: how much later a datagram may have been sent that overtakes another one, which
//! still arrives. It is learned from datagrams that counted as lost and arrived, and later forgotten.
//!
//! A path that reorders for a moment, or did so before it changed, must not make every later loss wait: RACK
//! (RFC 8985, 6.2.4) keeps a longer window for 16 recoveries. So does this, unless the path still reorders:
//! a datagram that was overtaken, waited for and then arrived shows that. Without this rule a path that
//! always reorders would be forgotten after every 16 recoveries, and its datagrams taken for lost.

use core::time::Duration;

/// Reordering that was not seen again in this number of recoveries is forgotten. The number is RACK's.
const KEPT_RECOVERIES: u8 = 16;

/// The reordering of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// The longest of this period, and of the one before, in microseconds: each connection has one of these.
    longest: u32,
    before: u32,
    /// Recoveries in this period, and the low bits of the number after the last datagram sent when the last
    /// one began: losses before it are of that one.
    recoveries: u8,
    recovered: u32,
}

impl Reordering {
    pub(super) const fn new() -> Self {
        Self { longest: 0, before: 0, recoveries: 0, recovered: 0 }
    }

    /// How long an overtaken datagram is waited for.
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.longest.max(self.before).into())
    }

    /// A datagram that counted as lost has arrived, overtaken by this.
    pub(super) fn learn(&mut self, overtaken: Duration) {
        self.longest = self.longest.max(micros(overtaken));
    }

    /// One that was waited for has arrived, overtaken by this: the path still reorders.
    pub(super) fn on_waited_for(&mut self, overtaken: Duration) {
        self.longest = self.longest.max(micros(overtaken).min(self.before));
    }

    /// The datagram with this number is lost, and `next` is the next that is sent.
    pub(super) fn on_lost(&mut self, number: u64, next: u64) {
        let is_recovered = (1..1 << 31).contains(&self.recovered.wrapping_sub(low(number)));
        if is_recovered || self.get().is_zero() {
            return;
        }
        (self.recovered, self.recoveries) = (low(next), self.recoveries + 1);
        if self.recoveries >= KEPT_RECOVERIES {
            (self.before, self.longest, self.recoveries) = (self.longest, 0, 0);
        }
    }
}

fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

/// As many as are waited for, for a part of one is one.
fn micros(overtaken: Duration) -> u32 {
    u32::try_from(overtaken.as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Recoveries, ten datagrams apart, in each of which two are lost, until nothing is waited for.
    fn until_forgotten(it: &mut Reordering, from: u64, mut during: impl FnMut(&mut Reordering)) {
        for n in from..from + 100 {
            it.on_lost(10 * n, 10 * n + 5);
            it.on_lost(10 * n + 3, 10 * n + 7);
            during(it);
            let kept = n - from < 2 * u64::from(KEPT_RECOVERIES) - 1;
            assert_eq!(it.get(), if kept { ms(40) } else { ms(0) }, "{n}");
        }
    }

    #[test]
    fn what_is_not_seen_again_is_forgotten() {
        let mut it = Reordering::new();
        it.learn(ms(40));
        until_forgotten(&mut it, 1, |_| {});
        it.learn(ms(40));
        until_forgotten(&mut it, 200, |_| {});
    }

    #[test]
    fn what_goes_on_is_kept_and_no_more_of_it_than_goes_on() {
        let mut it = Reordering::new();
        it.learn(ms(40));
        for n in 1..1_000 {
            it.on_lost(10 * n, 10 * n + 5);
            it.on_waited_for(ms(25));
            assert!(it.get() >= ms(25) && (n > 31 || it.get() == ms(40)), "{n}: {:?}", it.get());
        }
        assert_eq!(it.get(), ms(25));
        it.on_waited_for(ms(60));
        assert_eq!(it.get(), ms(25), "it is no news");
    }
}
