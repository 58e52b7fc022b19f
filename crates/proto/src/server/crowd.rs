//! The send rate of a crowd of connections, for a server whose uplink rate is not configured.
//!
//! Each transfer measures the rate of its own client's link. When a thousand begin at once, the sum of their
//! links' rates exceeds what they share: the server's uplink, its processors, a network between. Therefore,
//! when many connections send blocks at a time, they have one budget, take turns for it
//! ([`Uplink`](super::uplink::Uplink)), and find out its size as one sender would. The budget grows in each
//! round, as long as a connection waits. When many of them lose much in one round, or nearly all find a
//! queue, it is too large, and becomes the rate that has arrived (CROWDS, "The uplink, found out").
//!
//! The losses of a single link say nothing about the uplink, however many they are. So connections are
//! counted, not datagrams. And losses that many have together say nothing about any client's link: these
//! connections measure their links anew.
//!
//! The numbers are sums over all workers, each an atomic one as on the [`Board`](super::board::Board); the
//! desk judges rounds. The invariant: fewer than [`MIN_SENDERS`] have no limit, and nothing is known of one.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use crate::Instant;

/// The number of connections sending blocks at a time that makes a crowd. Fewer never wait for each other.
const MIN_SENDERS: usize = 16;

/// Datagrams a second at first, 500 Mbit/s: on 1 Gbit/s the first round is no flood, and 10 Gbit/s are
/// reached in five round trips.
const FIRST_RATE: u64 = 50_000;

/// The minimum, 10 Mbit/s, whatever is reported; and the maximum, which is no limit in practice.
const MIN_RATE: u64 = 1_000;
const MAX_RATE: u64 = 1_000_000_000;

/// A round ends when as many datagrams are acknowledged or lost as were in flight at its beginning. It lasts
/// at least [`MIN_ROUND`], so that delayed acks count, and at most [`MAX_ROUND`], because clients may be
/// silent.
const MIN_ROUND: Duration = Duration::from_millis(10);
const MAX_ROUND: Duration = Duration::from_millis(250);

/// The number of connections with a say that a verdict needs.
const MIN_REPORTERS: usize = 16;

/// The budget is too large if more than one in five connections loses much in a round. Where each has a link
/// of its own it is one in thirty, first flights included.
const LOSERS: usize = 5;

/// If more than this part of the connections finds a queue, they share that queue: where each has a queue of
/// its own, connections that have just begun find none.
const QUEUED: (usize, usize) = (7, 8);

/// Before the first verdict: the growth in a round, and the maximum of the budget as a multiple of the rate
/// that arrives. Acks report what was sent a round trip ago, when the budget was smaller.
const EARLY_GROWTH: f64 = 1.0;
const EARLY_OVER: f64 = 3.0;

/// After the first verdict: the growth in a round, which begins at a sixteenth, increases by half in each
/// round and is at most an eighth; and the maximum of the budget as a multiple of the rate that arrives.
const FIRST_GROWTH: f64 = 1.0 / 16.0;
const GROWTH_GAIN: f64 = 1.5;
const MAX_GROWTH: f64 = 1.0 / 8.0;
const OVER: f64 = 1.3;

/// The number of rounds of which the highest arrival rate counts: in a single round acks may be late.
const ROUNDS: usize = 4;

/// The numbers that all workers add to and read.
#[derive(Debug)]
pub(super) struct Crowd {
    /// Connections that send blocks.
    senders: AtomicUsize,
    /// Their datagrams in flight.
    in_flight: AtomicUsize,
    /// Datagrams that they may send in a second.
    rate: AtomicU64,
    /// Rounds are judged.
    is_judged: AtomicBool,
    /// The number of this round, its beginning, and the number of acked and lost datagrams that ends it.
    round: AtomicU64,
    began: AtomicU64,
    fates: AtomicUsize,
    /// A connection had to wait in this round.
    was_short: AtomicBool,
    /// Datagrams acknowledged and lost in this round.
    acked: AtomicUsize,
    lost: AtomicUsize,
    /// Connections with a say in this round; those of them that lose much; those that find a queue.
    reporters: AtomicUsize,
    losers: AtomicUsize,
    queued: AtomicUsize,
    /// Losses before this round were the crowd's, not those of single links.
    excused: AtomicU64,
}

/// What a connection reports about a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Say {
    /// It loses much.
    pub(super) is_loser: bool,
    /// All of its round trips found a queue.
    pub(super) is_queued: bool,
}

/// What the desk remembers from round to round.
#[derive(Debug)]
pub(super) struct Judge {
    /// The growth of the budget in the next round; `None` before the first verdict.
    growth: Option<f64>,
    /// Datagrams per second that arrived in each of the last rounds.
    passed: [f64; ROUNDS],
    /// The datagrams acknowledged or lost in this round were sent before the budget was cut.
    is_stale: bool,
}

impl Crowd {
    pub(super) const fn new() -> Self {
        Self {
            senders: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            rate: AtomicU64::new(FIRST_RATE),
            is_judged: AtomicBool::new(false),
            round: AtomicU64::new(0),
            began: AtomicU64::new(0),
            fates: AtomicUsize::new(0),
            was_short: AtomicBool::new(false),
            acked: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            reporters: AtomicUsize::new(0),
            losers: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            excused: AtomicU64::new(0),
        }
    }

    /// Whether there are enough connections for a crowd, which has a budget.
    pub(super) fn is_there(&self) -> bool {
        self.senders.load(Relaxed) >= MIN_SENDERS
    }

    /// Datagrams that they may send in a second.
    pub(super) fn rate(&self) -> u64 {
        self.rate.load(Relaxed).max(MIN_RATE)
    }

    pub(super) fn round(&self) -> u64 {
        self.round.load(Relaxed)
    }

    /// The round before which losses were the crowd's, not those of single links.
    pub(super) fn excused(&self) -> u64 {
        self.excused.load(Relaxed)
    }

    /// A connection has to wait.
    pub(super) fn on_short(&self) {
        self.was_short.store(true, Relaxed);
    }

    /// A connection begins or ceases to send blocks.
    pub(super) fn set_sending(&self, before: bool, now: bool) {
        change(&self.senders, before.into(), now.into());
    }

    /// A connection has `now` datagrams in flight, where it had `before`.
    pub(super) fn set_in_flight(&self, before: u32, now: u32) {
        change(&self.in_flight, before as usize, now as usize);
    }

    /// Adds the datagrams that were newly acknowledged, and those newly lost.
    pub(super) fn add_fates(&self, acked: u32, lost: u32) {
        change(&self.acked, 0, acked as usize);
        change(&self.lost, 0, lost as usize);
    }

    /// A connection reports `now` about this round, where it reported `before`.
    pub(super) fn set_say(&self, before: Option<Say>, now: Option<Say>) {
        if before != now {
            let count = |say: Option<Say>, is: fn(Say) -> bool| usize::from(say.is_some_and(is));
            let change = |sum, is| change(sum, count(before, is), count(now, is));
            change(&self.reporters, |_| true);
            change(&self.losers, |say| say.is_loser);
            change(&self.queued, |say| say.is_queued);
        }
    }

    /// Whether the desk has to judge: a round is over, or a crowd has come or gone.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let (is_there, is_judged) = (self.is_there(), self.is_judged.load(Relaxed));
        if !is_there || !is_judged {
            return is_there != is_judged;
        }
        let (lasted, fates) =
            (self.lasted(now), self.acked.load(Relaxed).wrapping_add(self.lost.load(Relaxed)));
        lasted >= MAX_ROUND || lasted >= MIN_ROUND && fates >= self.fates.load(Relaxed)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        [&self.senders, &self.in_flight].iter().all(|sum| sum.load(Relaxed) == 0)
    }

    fn lasted(&self, now: Instant) -> Duration {
        now.since(Instant::from_nanos(self.began.load(Relaxed)))
    }

    fn begin_round(&self, now: Instant, rate: u64) {
        for count in [&self.acked, &self.lost, &self.reporters, &self.losers, &self.queued] {
            count.store(0, Relaxed);
        }
        self.was_short.store(false, Relaxed);
        self.rate.store(rate.clamp(MIN_RATE, MAX_RATE), Relaxed);
        self.fates.store(self.in_flight.load(Relaxed), Relaxed);
        self.began.store(now.as_nanos(), Relaxed);
        self.round.fetch_add(1, Relaxed);
    }
}

/// Replaces a part of a sum. It wraps around below zero, and back.
fn change(sum: &AtomicUsize, before: usize, now: usize) {
    if before != now {
        sum.fetch_add(now.wrapping_sub(before), Relaxed);
    }
}

impl Judge {
    pub(super) const fn new() -> Self {
        Self { growth: None, passed: [0.0; ROUNDS], is_stale: false }
    }

    /// Judges a round, if one is over, and begins the next.
    pub(super) fn judge(&mut self, now: Instant, crowd: &Crowd) {
        if !crowd.is_due(now) {
            return; // Another worker asked meanwhile.
        }
        let (is_there, was_there) = (crowd.is_there(), crowd.is_judged.load(Relaxed));
        let rate = if is_there && was_there { self.next_rate(now, crowd) } else { FIRST_RATE };
        if !is_there {
            *self = Self::new();
        }
        crowd.is_judged.store(is_there, Relaxed);
        crowd.begin_round(now, rate);
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rate, which is clamped"
    )]
    fn next_rate(&mut self, now: Instant, crowd: &Crowd) -> u64 {
        let get = |count: &AtomicUsize| count.load(Relaxed);
        let seconds = crowd.lasted(now).as_secs_f64().max(1e-3);
        self.passed.rotate_right(1);
        self.passed[0] = get(&crowd.acked) as f64 / seconds;
        let passed = self.passed.iter().copied().fold(0.0, f64::max);
        let (rate, reporters) = (crowd.rate() as f64, get(&crowd.reporters));
        let was_short = crowd.was_short.load(Relaxed);
        let is_lossy = LOSERS * get(&crowd.losers) > reporters;
        let is_queued = QUEUED.1 * get(&crowd.queued) > QUEUED.0 * reporters;
        let rate = if core::mem::take(&mut self.is_stale) {
            crowd.excused.store(crowd.round() + 1, Relaxed);
            // The first round was cut short, and little had arrived in it.
            rate.max(passed)
        } else if was_short && reporters >= MIN_REPORTERS && (is_lossy || is_queued) {
            (self.is_stale, self.growth) = (true, Some(FIRST_GROWTH));
            rate.min(passed)
        } else if was_short {
            let early = (EARLY_GROWTH, EARLY_OVER);
            let (growth, over) = self.growth.map_or(early, |growth| (growth, OVER));
            self.growth = self.growth.map(|growth| (GROWTH_GAIN * growth).min(MAX_GROWTH));
            (rate * (1.0 + growth)).min(rate.max(over * passed))
        } else {
            rate
        };
        rate as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Say = Say { is_loser: false, is_queued: false };

    /// A crowd of 20 connections, with its first round begun.
    fn crowd() -> (Crowd, Judge, Instant) {
        let (crowd, mut judge) = (Crowd::new(), Judge::new());
        (0..20).for_each(|_| crowd.set_sending(false, true));
        let now = Instant::from_millis(1_000);
        judge.judge(now, &crowd);
        (crowd, judge, now)
    }

    /// A round of 100 ms: a connection waits, `arrive` datagrams arrive, `say_so` connections report `say`.
    fn round(it: &mut (Crowd, Judge, Instant), arrive: u32, say: Say, say_so: usize) -> u64 {
        let (crowd, judge, now) = it;
        *now = *now + Duration::from_millis(100);
        crowd.add_fates(arrive, 0);
        (0..20).for_each(|n| crowd.set_say(None, Some(if n < say_so { say } else { GOOD })));
        crowd.on_short();
        judge.judge(*now, crowd);
        crowd.rate()
    }

    #[test]
    fn fifteen_have_no_budget_and_a_crowd_that_goes_leaves_none() {
        let mut it = crowd();
        assert!(it.0.is_there());
        (0..5).for_each(|_| it.0.set_sending(true, false));
        assert!(!it.0.is_there(), "15");
        assert!(round(&mut it, 9_000, GOOD, 0) == FIRST_RATE && !it.0.is_due(it.2));
    }

    #[test]
    fn it_grows_while_somebody_waits_and_no_faster_than_what_arrives_shows() {
        let mut it = crowd();
        assert_eq!(round(&mut it, 5_000, GOOD, 0), 100_000);
        assert_eq!(round(&mut it, 5_000, GOOD, 0), 150_000, "three times what arrives");
        let (crowd, judge, now) = &mut it;
        judge.judge(*now + MAX_ROUND, crowd);
        assert_eq!(crowd.rate(), 150_000, "nobody waits");
    }

    #[test]
    fn many_who_lose_at_once_make_it_what_arrives_and_it_is_found_again_and_left() {
        let mut it = crowd();
        let loser = Say { is_loser: true, is_queued: false };
        assert_eq!(round(&mut it, 4_000, loser, 4), 100_000, "a fifth may have links like that");
        assert_eq!(round(&mut it, 4_000, loser, 5), 40_000);
        assert_eq!(round(&mut it, 4_000, loser, 20), 40_000, "what was sent before");
        assert_eq!(it.0.excused(), it.0.round());
        let grown = [0; 3].map(|_| round(&mut it, 4_000, GOOD, 0));
        assert_eq!(grown, [42_500, 46_484, 52_000], "no more than 1.3 of what arrives");
        let mut arrive = 5_000;
        let left = [0; 20].map(|_| {
            arrive = u32::try_from(round(&mut it, arrive, GOOD, 0) / 10).unwrap();
            arrive
        });
        assert!(left[9] > 14_000 && left[19] > 45_000, "{left:?}");
    }

    #[test]
    fn a_queue_is_shared_if_nobody_finds_none() {
        let mut it = crowd();
        let queued = Say { is_loser: false, is_queued: true };
        assert_eq!(round(&mut it, 4_000, queued, 17), 100_000, "those of their own");
        assert_eq!(round(&mut it, 4_000, queued, 18), 40_000);
        for _ in 0..100 {
            round(&mut it, 0, queued, 20);
        }
        assert_eq!(it.0.rate(), MIN_RATE, "whatever they say");
    }
}
