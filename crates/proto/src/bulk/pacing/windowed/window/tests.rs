//! The window, on a path that is a formula.

use super::super::SECOND;
use super::super::passed::Passed;
use super::*;

/// A path of 50 ms and 1,000 datagrams a second, with a queue in datagrams and losses of its own. What
/// arrives in a round is what was in flight at its beginning.
struct Path {
    window: Window,
    passed: Passed,
    under_way: u64,
    queue: f64,
    loss: f64,
    lost: u64,
}

const TRIP: f64 = 0.05;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds")]
const fn whole(datagrams: f64) -> u64 {
    datagrams as u64
}

impl Path {
    fn new(size: f64, queue: f64, loss: f64) -> Self {
        let window = Window::new(size, 1);
        Self { window, passed: Passed::new(size / TRIP), under_way: 1, queue, loss, lost: 0 }
    }

    /// A round in which the window is always full. Returns the next window.
    fn round(&mut self) -> f64 {
        let sent = self.under_way as f64;
        let waits = (sent - 50.0).max(0.0);
        let dropped = (waits - self.queue).max(0.0).min(sent);
        let lost = whole(dropped + (sent - dropped) * self.loss);
        let queue = waits.min(self.queue) / 1_000.0;
        self.judge(Seen { acked: self.under_way - lost, lost, runs: lost, queue, spread: 0.0 })
    }

    /// A round that sees this.
    fn judge(&mut self, seen: Seen) -> f64 {
        self.lost += seen.lost;
        let sent = (seen.acked + seen.lost) as f64;
        let passed = sent.min(seen.acked as f64 / (1.0 - self.window.own()));
        let lasted = (TRIP + seen.queue) * SECOND;
        self.passed.end_round(passed, lasted, self.window.is_all_used(), TRIP * SECOND);
        let (passes, last) = (self.passed.most(), self.passed.last());
        // What goes in this round has its fate in the next one.
        self.under_way = whole(self.window.size());
        let left = self.window.judge(&seen, Route { trip: TRIP, passes, last }, self.under_way);
        self.passed.scale(left);
        self.window.size()
    }
}

/// A round in which this number was acked and lost, each by itself, with this queue.
fn seen(acked: u64, lost: u64, queue: f64) -> Seen {
    Seen { acked, lost, runs: lost, queue, spread: 0.0 }
}

#[test]
fn it_keeps_a_short_queue_from_a_small_and_from_a_large_beginning() {
    for first in [4.0, 50.0, 1_000.0] {
        let mut path = Path::new(first, f64::INFINITY, 0.0);
        (0..40).for_each(|_| _ = path.round());
        for _ in 0..100 {
            let size = path.round();
            assert!((50.0..66.0).contains(&size), "{first}: {size}");
        }
    }
}

#[test]
fn a_queue_that_overflows_costs_little_more_than_it_costs_to_find() {
    let mut path = Path::new(20.0, 3.0, 0.0);
    (0..40).for_each(|_| _ = path.round());
    let found = path.lost;
    let mean = (0..200).map(|_| path.round()).sum::<f64>() / 200.0;
    assert!(mean > 46.0, "the link is used: {mean}");
    assert!(path.lost - found < 200 * 50 / 50, "2 % at most: {}", path.lost - found);
}

/// Losses of the path's own are found to be that, and do not shrink it.
#[test]
fn losses_that_go_on_are_borne() {
    for loss in [0.08, 0.25] {
        let mut path = Path::new(20.0, f64::INFINITY, loss);
        (0..60).for_each(|_| _ = path.round());
        let mean = (0..100).map(|_| path.round()).sum::<f64>() / 100.0;
        assert!(mean > 48.0, "{loss}: {mean}");
    }
}

/// What was believed to pass, and did not, was sent in part in a round that was meant to be low, and what the
/// queue dropped of it counted as the path's own for good: half of all was dropped.
#[test]
fn a_low_round_is_of_what_arrives_and_not_of_what_was_believed() {
    let mut path = Path::new(20.0, 2.0, 0.0);
    path.passed.set(2_000.0);
    path.judge(seen(45, 0, 0.0));
    path.judge(seen(45, 45, 0.0));
    assert!(path.window.low[0] && path.window.size() < 45.0, "{:?}", path.window);
}

/// Beside a queue what passes is cut at once; but what was late, and not lost, undoes that, if it comes soon:
/// later it is of other losses.
#[test]
fn a_cut_for_what_was_late_is_undone() {
    let after = |rounds: u64| {
        let mut path = Path::new(40.0, f64::INFINITY, 0.0);
        path.round();
        path.passed.set(800.0);
        let before = path.passed.most();
        path.judge(seen(20, 20, 0.03));
        assert!(path.passed.most() < 0.75 * before, "{}", path.passed.most());
        (0..rounds).for_each(|_| _ = path.judge(seen(20, 0, 0.03)));
        let undone = (0..10).filter_map(|_| path.window.on_spurious()).product::<f64>();
        undone > 1.3
    };
    assert!(after(0) && after(1) && !after(4));
}

#[test]
fn a_round_with_losses_that_may_be_chance_does_not_grow() {
    let mut path = Path::new(40.0, f64::INFINITY, 0.0);
    path.judge(seen(40, 0, 0.0));
    path.judge(seen(40, 0, 0.0));
    assert_eq!(path.window.growth, FIRST_GROWTH);
    path.judge(seen(40, 0, 0.0));
    assert_eq!(path.window.growth, 2.0 * FIRST_GROWTH);
    path.judge(seen(39, 1, 0.0));
    assert_eq!((path.window.growth, path.window.max_growth), (0.0, MAX_GROWTH));
}

/// Where datagrams are lost while there is a queue, others fill it: the losses are not the path's. Ten
/// flows that drained together found it empty for a moment, and one of them took a sixth of losses for
/// usual: it had half of the link.
#[test]
fn losses_of_a_queue_that_others_fill_are_not_the_paths_own() {
    let own = |queue: f64| {
        let mut path = Path::new(50.0, f64::INFINITY, 0.0);
        path.window.spreads = [0.0; ROUNDS];
        for n in 1..=20 {
            path.judge(if n % 3 == 0 { seen(50, 0, queue) } else { seen(40, 10, queue) });
        }
        path.window.losses.own()
    };
    assert!(own(0.0) > 0.09, "{}", own(0.0));
    assert!(own(0.003) == 0.0, "{}", own(0.003));
}

/// With a queue it is plain whose losses they are, and nothing holds the window down: flows of ten had one
/// trial after the other, and those outside of one took their place.
#[test]
fn losses_with_a_queue_need_no_low_round() {
    for (queue, is_low) in [(0.0, true), (0.02, false)] {
        let mut path = Path::new(40.0, f64::INFINITY, 0.0);
        path.round();
        path.judge(seen(30, 10, queue));
        assert_eq!(path.window.low[0], is_low);
        assert_eq!(path.window.gain() < 1.0, is_low);
    }
}

/// By rounds a path of 12 ms overflowed again after 0.4 s.
#[test]
fn the_queue_that_may_stand_grows_by_time() {
    let grown = |trip: f64, rounds: u32| {
        let mut window = Window::new(50.0, 1);
        window.full = 0.001;
        let route = Route { trip, passes: 1_000.0, last: 1_000.0 };
        (0..=rounds).for_each(|_| _ = window.judge(&seen(50, 0, 0.0), route, 50));
        window.full
    };
    assert!((1.5..1.8).contains(&(grown(0.01, 100) / 0.001)));
    assert!((1.5..1.8).contains(&(grown(0.1, 10) / 0.001)));
}

/// Half of the queue that a mark met may stand, and the window is less at once.
#[test]
fn a_mark_is_a_queue_that_is_too_long() {
    let mut path = Path::new(60.0, f64::INFINITY, 0.0);
    (0..20).for_each(|_| _ = path.round());
    let before = path.window.size();
    path.window.on_mark(0.1, 0.008);
    assert!((path.window.size() - 0.9 * before).abs() < 1e-9);
    assert_eq!((path.window.full, path.window.growth), (0.004, 0.0));
}

/// When datagrams become larger, as many bytes are in flight as before.
#[test]
fn a_window_is_scaled_with_the_size_of_datagrams() {
    let mut window = Window::new(20.0, 1);
    window.scale(0.8);
    assert_eq!(window.size(), 16.0);
}
