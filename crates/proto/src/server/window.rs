//! The congestion window, the number of datagrams that may be in flight: one law, for the connections of an
//! address together and for each of them.
//!
//! In each round the window follows the queue that it makes, toward a short one (as FAST TCP does). When more
//! is lost than usual while there is a queue, the window shrinks at once to what got through. While there is
//! no queue, and a connection waits, it grows by a part of the acknowledged datagrams; this part doubles from
//! round to round.
//!
//! There is no clock in it: a round ends when as many datagrams are acknowledged or lost as were in flight at
//! its beginning. The invariant: the window is never below [`MIN_WINDOW`], nor above [`MAX_WINDOW`].

/// The queue that may stand, in seconds and in datagrams: as long as the jitter of a link and of a timer,
/// and a turn of some datagrams. Every member needs a sample of it before a round can be judged well.
const TARGET: f64 = 0.004;
const TARGET_DATAGRAMS: f64 = 4.0;

/// Below this part of the target there is no queue.
const NO_QUEUE: f64 = 0.5;

/// At the beginning a delay counts as a queue from an eighth of the round trip on, within these bounds in
/// seconds: HyStart++ (RFC 9406). A first flight makes a shorter queue for a moment.
const FIRST_QUEUE: (f64, f64) = (0.004, 0.016);

/// Losses beyond the usual that count where there is a queue: BBR version 2 has the same limit.
const MAX_EXCESS: f64 = 0.02;

/// Losses beyond the usual that stop growth where no queue is seen, and the maximum of the window then, as a
/// multiple of what arrived: a connection that begins in a full queue takes it for a part of the path.
const HEAVY: f64 = 0.1;
const OVER: f64 = 1.5;

/// The weight of a round without a queue in the usual loss.
const USUAL_GAIN: f64 = 1.0 / 8.0;

/// The part of an overflowing queue that may stand afterwards, and how it grows again in a round.
const OF_FULL: f64 = 0.5;
const REGROWTH: f64 = 1.05;

/// The window grows by a part of the acknowledged datagrams: by all of them until the first queue is seen, as
/// in slow start; afterwards by the minimum first and by half at most, because a round shows datagrams that
/// were sent a round before.
const FIRST_GROWTH: f64 = 1.0;
const MIN_GROWTH: f64 = 1.0 / 16.0;
const MAX_GROWTH: f64 = 1.0 / 2.0;

/// The maximum factor of a raise at once, when trains show a path that holds more: two rounds of slow start.
const MAX_RAISE: f64 = 2.0;

/// The part of the way that the window goes in a round toward the target queue; from a queue of more than
/// twice the target it goes all the way.
const GAIN: f64 = 0.5;

/// A window that becomes smaller makes its queue shorter. When the delay should be down to a half after at
/// least [`UNMOVED`] rounds, and has fallen by less than this part of what it should, the window is not its
/// cause: the path has become longer, or others fill the queue.
const FALLS: f64 = 0.25;
const UNMOVED: u32 = 4;

/// The minimum window, because of three datagrams all may be lost; and the maximum, which is no limit in
/// practice.
const MIN_WINDOW: f64 = 4.0;
const MAX_WINDOW: f64 = 1e6;

/// The fates of a round's datagrams, and the queue that they saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) acked: u64,
    pub(super) lost: u64,
    /// The shortest queueing delay of the round's second half in seconds; infinite if none was reported.
    pub(super) queue: f64,
}

impl Seen {
    pub(super) const NOTHING: Self = Self { acked: 0, lost: 0, queue: f64::INFINITY };

    pub(super) const fn fates(&self) -> u64 {
        self.acked + self.lost
    }

    pub(super) const fn add(&mut self, other: &Self) {
        self.acked += other.acked;
        self.lost += other.lost;
        self.queue = self.queue.min(other.queue);
    }
}

/// A queue that becomes shorter, as the window has become smaller.
#[derive(Clone, Copy, Debug)]
struct Falling {
    /// The window and the delay at the beginning.
    size: f64,
    delay: f64,
    /// Rounds since then, and the shortest delay in them.
    rounds: u32,
    least: f64,
}

impl Falling {
    const NOT: Self = Self { size: 0.0, delay: f64::INFINITY, rounds: 0, least: f64::INFINITY };
}

/// The window, in datagrams, and the round that is under way.
#[derive(Debug)]
pub(super) struct Window {
    size: f64,
    growth: f64,
    /// A queue was seen.
    has_met_queue: bool,
    /// The queue that may stand where one was seen to overflow, in seconds.
    max_queue: f64,
    usual_loss: f64,
    /// The delay that the window does not cause, in seconds.
    foreign: f64,
    falling: Falling,
    /// Datagrams in flight at the beginning of the round, and their maximum since.
    began_with: u64,
    most: u64,
    /// A sender had to wait for room in this round.
    was_short: bool,
    /// The datagrams acknowledged or lost in this round were sent before the window was cut.
    is_stale: bool,
}

impl Window {
    pub(super) const fn new(size: f64, in_flight: u64) -> Self {
        Self {
            size,
            growth: FIRST_GROWTH,
            has_met_queue: false,
            max_queue: f64::INFINITY,
            usual_loss: 0.0,
            foreign: 0.0,
            falling: Falling::NOT,
            began_with: in_flight,
            most: in_flight,
            was_short: false,
            is_stale: false,
        }
    }

    /// Datagrams that may be in flight.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    /// Whether a queue was seen in any round.
    pub(super) const fn has_met_queue(&self) -> bool {
        self.has_met_queue
    }

    /// Whether there is room for `datagrams` more. The minimum window counts slices only: otherwise a game's
    /// packets, which the window does not hold back, would keep a small window full for good.
    pub(super) fn has_room(&self, in_flight: u64, slices: u64, datagrams: f64) -> bool {
        (slices as f64) < MIN_WINDOW || in_flight as f64 + datagrams <= self.size
    }

    /// Raises the window to at least `size` datagrams, unless a queue was met.
    pub(super) fn raise(&mut self, size: f64) {
        if !self.has_met_queue {
            self.size = self.size.max(size);
        }
    }

    /// Unless a queue was met, raises the window to `path`, the datagrams that trains have shown, but at most
    /// twofold: trains that arrive in bunches show too much.
    pub(super) fn grow_to(&mut self, path: f64) {
        self.raise(path.min(MAX_RAISE * self.size));
    }

    /// A sender has to wait for room.
    pub(super) const fn on_short(&mut self) {
        self.was_short = true;
    }

    /// A datagram was sent, and `in_flight` are in flight with it.
    pub(super) fn on_sent(&mut self, in_flight: u64) {
        self.most = self.most.max(in_flight);
    }

    /// Whether half of a round ends when its fates grow from `before` to `now`. Most datagrams of that half
    /// were sent before the round.
    pub(super) const fn is_past_half(&self, before: u64, now: u64) -> bool {
        let half = self.began_with / 2;
        before < half && half <= now
    }

    /// The beginning is over: the window grows as after a queue was met.
    pub(super) const fn settle(&mut self) {
        (self.has_met_queue, self.growth) = (true, MIN_GROWTH);
    }

    /// Whether a round is over in which `fates` datagrams were acknowledged or lost.
    pub(super) const fn is_due(&self, fates: u64) -> bool {
        fates > 0 && fates >= self.began_with
    }

    /// Judges a round over a path that takes `trip` seconds there and back without a queue, and begins the
    /// next.
    pub(super) fn judge(&mut self, seen: &Seen, trip: f64, in_flight: u64) {
        let is_stale = core::mem::take(&mut self.is_stale);
        if !is_stale && seen.queue.is_finite() && seen.acked > 0 {
            self.look_at_fall(seen.queue, trip);
            let (queue, trip) = (seen.queue - self.foreign, trip + self.foreign);
            self.size = self.next(&Seen { queue, ..*seen }, trip).clamp(MIN_WINDOW, MAX_WINDOW);
        }
        (self.began_with, self.most, self.was_short) = (in_flight, in_flight, false);
    }

    /// Whether the delay has followed the window down.
    fn look_at_fall(&mut self, delay: f64, trip: f64) {
        self.foreign = self.foreign.min(delay);
        let falling = &mut self.falling;
        let expected = (1.0 - self.size / falling.size) * (trip + falling.delay);
        let has_fallen = falling.delay - delay >= FALLS * expected;
        if self.size >= falling.size || has_fallen {
            *falling = Falling { size: self.size, delay, ..Falling::NOT };
            return;
        }
        (falling.rounds, falling.least) = (falling.rounds + 1, falling.least.min(delay));
        let is_told = 2.0 * expected > falling.delay - self.foreign;
        if falling.rounds >= UNMOVED && is_told {
            (self.foreign, self.size) = (falling.least, falling.size);
            self.falling = Falling::NOT;
        }
    }

    fn next(&mut self, seen: &Seen, trip: f64) -> f64 {
        let loss = seen.lost as f64 / seen.fates() as f64;
        let excess = loss - self.usual_loss;
        let used = self.size.min(self.most as f64);
        let packet = (trip + seen.queue) / used.max(1.0);
        let target = (TARGET + TARGET_DATAGRAMS * packet).min(self.max_queue);
        self.max_queue *= REGROWTH;
        let (least, most) = FIRST_QUEUE;
        let is_first = !self.has_met_queue && excess <= MAX_EXCESS;
        let first = if is_first { (trip / 8.0).clamp(least, most) } else { 0.0 };
        if seen.queue < first.max(NO_QUEUE * target) {
            self.usual_loss += USUAL_GAIN * excess;
            return self.grow(seen, excess);
        }
        (self.has_met_queue, self.growth) = (true, MIN_GROWTH);
        if excess > MAX_EXCESS {
            // A queue that overflows stays as long with a smaller window.
            self.falling = Falling::NOT;
            self.max_queue = OF_FULL * seen.queue;
            self.is_stale = true;
            let target = target.min(self.max_queue);
            return used * (1.0 - excess) * (trip + target) / (trip + seen.queue);
        }
        self.is_stale = seen.queue > 2.0 * target;
        let gain = if self.is_stale { 1.0 } else { GAIN };
        let step = gain * (target - seen.queue) / (trip + seen.queue);
        if step > 0.0 && !self.was_short { self.size } else { self.size * (1.0 + step) }
    }

    /// The window after a round without a queue.
    fn grow(&mut self, seen: &Seen, excess: f64) -> f64 {
        if excess > HEAVY {
            self.is_stale = true;
            return self.size.min(OVER * seen.acked as f64);
        }
        if !self.was_short {
            return self.size;
        }
        let growth = self.growth;
        let most = if self.has_met_queue { MAX_GROWTH } else { FIRST_GROWTH };
        self.growth = (2.0 * growth).min(most);
        self.size + growth * seen.acked as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 50 ms and 1,000 datagrams a second, with a queue of `queue` datagrams and losses of its own.
    struct Path {
        window: Window,
        queue: f64,
        loss: f64,
        lost: u64,
    }

    impl Path {
        fn new(size: f64, queue: f64, loss: f64) -> Self {
            Self { window: Window::new(size, 1), queue, loss, lost: 0 }
        }

        /// A round in which the window is always full.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds")]
        fn round(&mut self) -> f64 {
            let size = self.window.size();
            let (waits, sent) = ((size - 50.0).max(0.0), size.floor());
            let dropped = (waits - self.queue).max(0.0).min(sent);
            let lost = (dropped + (sent - dropped) * self.loss) as u64;
            let seen =
                Seen { acked: sent as u64 - lost, lost, queue: waits.min(self.queue) / 1_000.0 };
            self.lost += lost;
            self.window.on_sent(sent as u64);
            self.window.on_short();
            self.window.judge(&seen, 0.05, sent as u64);
            self.window.size()
        }

        fn after(&mut self, rounds: usize) -> f64 {
            (0..rounds).map(|_| self.round()).last().unwrap()
        }
    }

    #[test]
    fn it_keeps_a_short_queue_from_a_small_and_from_a_large_beginning() {
        for first in [4.0, 50.0, 1_000.0] {
            let mut path = Path::new(first, f64::INFINITY, 0.0);
            path.after(20);
            for _ in 0..100 {
                let size = path.round();
                assert!((50.0..65.0).contains(&size), "{first}: {size}");
            }
        }
    }

    #[test]
    fn a_queue_that_overflows_costs_little_more_than_it_costs_to_find() {
        let mut path = Path::new(20.0, 5.0, 0.0);
        path.after(20);
        let found = path.lost;
        let mean = (0..200).map(|_| path.round()).sum::<f64>() / 200.0;
        assert!(mean > 48.0, "the link is used: {mean}");
        assert!(path.lost - found < 200 * 50 / 50, "2 % at most: {}", path.lost - found);
    }

    /// The path's own losses do not shrink the window.
    #[test]
    fn losses_that_are_usual_are_borne() {
        let mut path = Path::new(20.0, f64::INFINITY, 0.08);
        path.after(60);
        for _ in 0..100 {
            let size = path.round();
            assert!(size > 48.0, "{size}");
        }
    }

    #[test]
    fn it_grows_only_for_those_that_wait_and_by_what_arrives() {
        let mut window = Window::new(20.0, 20);
        let seen = Seen { acked: 20, lost: 0, queue: 0.0 };
        window.judge(&seen, 0.05, 20);
        assert_eq!(window.size(), 20.0, "nobody waits");
        window.on_short();
        window.judge(&seen, 0.05, 20);
        assert_eq!(window.size(), 40.0, "as in slow start");
        window.judge(&Seen { queue: 0.1, ..seen }, 0.05, 20);
        window.judge(&seen, 0.05, 20);
        let before = window.size();
        window.on_short();
        window.judge(&seen, 0.05, 20);
        assert_eq!(window.size(), before + 20.0 * MIN_GROWTH, "carefully, once a queue was seen");
    }

    /// Before a queue was met trains may raise the window, twofold at a time; afterwards only acks raise it.
    #[test]
    fn trains_raise_it_until_a_queue_was_met() {
        let mut window = Window::new(20.0, 20);
        window.grow_to(500.0);
        assert_eq!(window.size(), 40.0, "a train may show too much");
        window.grow_to(50.0);
        assert_eq!(window.size(), 50.0);
        window.settle();
        window.raise(500.0);
        window.grow_to(500.0);
        assert_eq!(window.size(), 50.0);
        window.on_short();
        window.judge(&Seen { acked: 48, lost: 0, queue: 0.0 }, 0.05, 48);
        assert_eq!(window.size(), 53.0, "it is no beginning");
    }

    /// A connection that begins in a full queue sees none, and loses half of its datagrams.
    #[test]
    fn heavy_losses_without_a_queue_end_growth() {
        let mut window = Window::new(100.0, 100);
        window.on_short();
        window.judge(&Seen { acked: 50, lost: 50, queue: 0.0 }, 0.05, 100);
        assert_eq!(window.size(), OVER * 50.0);
    }
}
