//! The window, on a path that is a formula.

use alloc::vec::Vec;

use super::*;

/// A path of 50 ms and 1,000 datagrams a second, with a queue in datagrams and losses of its own.
struct Path {
    window: Window,
    queue: f64,
    loss: f64,
    lost: u64,
}

impl Path {
    fn new(size: f64, queue: f64, loss: f64) -> Self {
        Self { window: Window::new(size, 1, Losses::new(0.0, 0.0)), queue, loss, lost: 0 }
    }

    /// A round in which the window is always full.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds")]
    fn round(&mut self) -> f64 {
        let size = self.window.size();
        let (waits, sent) = ((size - 50.0).max(0.0), size.floor());
        let dropped = (waits - self.queue).max(0.0).min(sent);
        let lost = (dropped + (sent - dropped) * self.loss) as u64;
        let queue = waits.min(self.queue) / 1_000.0;
        let seen = Seen {
            acked: sent as u64 - lost,
            lost,
            runs: lost,
            queue,
            standing: queue,
            ..Seen::NOTHING
        };
        self.lost += lost;
        self.window.on_sent(sent as u64, true);
        self.window.judge(&seen, 0.05, sent as u64);
        self.window.size()
    }
}

#[test]
fn it_keeps_a_short_queue_from_a_small_and_from_a_large_beginning() {
    for first in [4.0, 50.0, 1_000.0] {
        let mut path = Path::new(first, f64::INFINITY, 0.0);
        (0..40).for_each(|_| _ = path.round());
        for _ in 0..100 {
            let size = path.round();
            assert!((50.0..65.0).contains(&size), "{first}: {size}");
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

/// One of fifty flows found a fifth to be lost whatever it did, for it had four datagrams of a hundred; it
/// grew for good, and took the link.
#[test]
fn losses_that_a_small_window_took_for_the_paths_own_are_tried_again_by_a_large_one() {
    let mut path = Path::new(11.0, f64::INFINITY, 0.2);
    let is_usual = |path: &mut Path| path.round() > 0.0 && path.window.usual() > 0.1;
    assert!((0..30).any(|_| is_usual(&mut path)), "{:?}", path.window);
    let mut most: f64 = 0.0;
    for _ in 0..60 {
        let size = path.round();
        most = most.max(size);
        // By now its part of the link is large enough that nothing is lost where it yields.
        path.loss = if size < 0.6 * most { 0.0 } else { 0.2 };
    }
    assert!(path.window.usual() < 0.02, "{}", path.window.usual());
}

/// Two flows behind three packets had 9 and 0.3 of 10 Mbit/s: a queue drops what comes one by one.
#[test]
fn where_a_round_trip_is_short_there_are_no_fewer_than_a_window_can_pace() {
    let least = |trip: f64| {
        let mut window = Window::new(20.0, 1, Losses::new(0.0, 0.0));
        window.set_least_trip(trip);
        (0..50).for_each(|_| window.set_size(0.5 * window.size()));
        (0..9).for_each(|_| window.on_settled(true));
        window.size()
    };
    assert_eq!((least(0.05), least(0.004)), (MIN_SPARSE, MIN_WINDOW));
}

/// Losses of the path's own are found to be that, and do not shrink it.
#[test]
fn losses_that_go_on_are_borne() {
    let mut path = Path::new(20.0, f64::INFINITY, 0.08);
    (0..60).for_each(|_| _ = path.round());
    for _ in 0..100 {
        let size = path.round();
        assert!(size > 48.0, "{size}");
    }
}

/// A round of 40 datagrams without a queue, by a window of this size. Returns whether it is tried then.
fn empty_round(window: &mut Window, size: f64, lost: u64, runs: u64) -> bool {
    window.set_size(size);
    window.on_sent(40, true);
    let empty = Seen { queue: 0.0, standing: 0.0, ..Seen::NOTHING };
    window.judge(&Seen { acked: 40 - lost, lost, runs, ..empty }, 0.05, 40);
    window.is_tried()
}

/// A window of which a trial has shown that 40 datagrams overflow a queue, which drops them in runs of this
/// length.
fn overflowing(of_run: u64) -> Window {
    let mut window = Window::new(40.0, 1, Losses::new(0.0, 0.0));
    empty_round(&mut window, 40.0, 0, 0);
    assert!(empty_round(&mut window, 40.0, 12, 12 / of_run), "whose losses are these?");
    assert!((0..9).any(|_| !empty_round(&mut window, 25.0, 0, 0)), "they ended: a queue was full");
    window
}

/// Behind a queue of some packets losses are all that shows it, and with a trial for each excess nine tenths
/// of the link were used for half of the time. A radio whose run of losses ended in a trial needs another.
#[test]
fn a_window_that_was_found_to_overflow_is_seldom_tried_again() {
    let tried_at = |sizes: &[f64], of_run: u64| {
        let mut window = overflowing(of_run);
        sizes.iter().position(|&size| {
            empty_round(&mut window, size, 0, 0);
            empty_round(&mut window, size, 12, 12 / of_run)
        })
    };
    assert_eq!(tried_at(&[40.0; 20], 1), Some(8));
    assert_eq!(tried_at(&[40.0, 20.0], 1), Some(1), "half of that has to be tried, too");
    assert_eq!(tried_at(&[40.0], 4), Some(0), "runs are no queue's");
}

#[test]
fn what_a_trial_has_shown_ends_with_what_speaks_against_it() {
    let mut late = overflowing(1);
    empty_round(&mut late, 40.0, 0, 0);
    assert!(!empty_round(&mut late, 40.0, 12, 12), "it is full again");
    (0..12).for_each(|_| late.on_spurious());
    empty_round(&mut late, 40.0, 0, 0);
    assert!(empty_round(&mut late, 40.0, 12, 12), "those were late, and not lost");
    let mut own = overflowing(1);
    empty_round(&mut own, 20.0, 0, 0);
    assert!((0..40).any(|_| !empty_round(&mut own, 20.0, 12, 12)), "these are the path's own");
    assert!(
        (0..9).any(|_| empty_round(&mut own, 40.0, 36, 36)),
        "and what is more has to be tried"
    );
    let mut scaled = overflowing(1);
    scaled.scale(0.5);
    empty_round(&mut scaled, 20.0, 0, 0);
    assert!(!empty_round(&mut scaled, 20.0, 12, 12), "as many bytes are as many as before");
}

#[test]
fn a_cut_for_what_was_late_is_undone() {
    let mut path = Path::new(40.0, f64::INFINITY, 0.0);
    path.round();
    let seen = Seen { acked: 20, lost: 20, runs: 20, ..Seen::NOTHING };
    let before = path.window.size();
    path.window.judge(&Seen { queue: 0.0, ..seen }, 0.05, 40);
    assert!(path.window.size() < 0.75 * before, "{}", path.window.size());
    (0..10).for_each(|_| path.window.on_spurious());
    assert_eq!(path.window.size(), before);
}

/// So it is beside a queue, where no trial follows the cut; but not for long: then other losses are late.
#[test]
fn a_cut_beside_a_queue_for_what_was_late_is_undone() {
    let after = |rounds: u64| {
        let mut path = Path::new(40.0, f64::INFINITY, 0.0);
        path.round();
        let lossy =
            Seen { acked: 20, lost: 20, runs: 20, queue: 0.03, standing: 0.03, ..Seen::NOTHING };
        let before = path.window.size();
        path.window.judge(&lossy, 0.05, 40);
        assert!(!path.window.is_tried() && path.window.size() < 0.75 * before);
        let calm = Seen { acked: 20, queue: 0.03, ..Seen::NOTHING };
        (0..rounds).for_each(|_| path.window.judge(&calm, 0.05, 20));
        (0..10).for_each(|_| path.window.on_spurious());
        path.window.size() >= before
    };
    assert!(after(0) && after(1) && !after(4));
}

#[test]
fn it_grows_only_for_those_that_wait_and_by_what_arrives() {
    let mut path = Path::new(20.0, f64::INFINITY, 0.0);
    let seen = Seen { acked: 16, queue: 0.0, ..Seen::NOTHING };
    path.window.judge(&seen, 0.05, 16);
    path.window.judge(&seen, 0.05, 16);
    assert_eq!(path.window.size(), 20.0, "nobody waits");
    for gain in [1.25, 1.25] {
        path.window.judge(&seen, 0.05, 16);
        assert_eq!(path.window.gain(), gain, "but it may go out faster");
    }
    for size in [24.0, 32.0, 48.0] {
        path.window.on_sent(20, true);
        path.window.judge(&seen, 0.05, 16);
        assert_eq!(path.window.size(), size);
    }
}

/// In the first round what was sent before is lost, by three quarters: what got through is what the path
/// holds.
#[test]
fn a_window_that_begins_far_too_large_is_not_kept_for_a_round() {
    let mut path = Path::new(350.0, f64::INFINITY, 0.0);
    let seen = Seen { acked: 40, lost: 200, runs: 40, ..Seen::NOTHING };
    path.window.judge(&seen, 0.05, 240);
    assert_eq!(path.window.size(), 54.0);
}

/// Where datagrams are lost while there is a queue, others fill it: the losses are not the path's. Ten
/// flows that drained together found it empty for a moment, and one of them took a sixth of losses for
/// usual: it had half of the link.
#[test]
fn losses_of_a_queue_that_others_fill_are_not_usual() {
    let usual = |queue: f64| {
        let mut path = Path::new(50.0, f64::INFINITY, 0.0);
        let lossy = Seen { acked: 40, lost: 10, runs: 2, queue, ..Seen::NOTHING };
        let drained = Seen { acked: 50, queue: 0.0, ..Seen::NOTHING };
        for n in 1..=20 {
            path.window.judge(if n % 3 == 0 { &drained } else { &lossy }, 0.05, 50);
        }
        (path.window.losses.usual(), path.window.size())
    };
    let ((empty, _), (full, size)) = (usual(0.0), usual(0.003));
    assert!(empty > 0.1, "{empty}");
    assert!(full == 0.0 && size < 20.0, "{full} {size}");
}

/// With a queue it is plain whose losses they are, and no trial holds the window down: flows of ten had
/// one trial after the other, and those outside of one took their place.
#[test]
fn losses_with_a_queue_need_no_trial() {
    for (queue, is_tried) in [(0.0, true), (0.02, false)] {
        let mut path = Path::new(40.0, f64::INFINITY, 0.0);
        path.round();
        let seen = Seen { acked: 30, lost: 10, runs: 1, queue, ..Seen::NOTHING };
        path.window.judge(&seen, 0.05, 30);
        path.window.judge(&seen, 0.05, 30);
        assert!(path.window.size() < 36.0, "{}", path.window.size());
        assert_eq!(path.window.is_tried(), is_tried);
    }
}

/// By rounds a path of 12 ms overflowed again after 0.4 s.
#[test]
fn the_queue_that_may_stand_grows_by_time() {
    let grown = |trip: f64, rounds: u32| {
        let mut path = Path::new(50.0, f64::INFINITY, 0.0);
        path.window.max_queue = 0.001;
        let seen = Seen { acked: 50, queue: 0.0, ..Seen::NOTHING };
        (0..=rounds).for_each(|_| path.window.judge(&seen, trip, 50));
        path.window.max_queue
    };
    assert!((1.5..1.8).contains(&(grown(0.01, 100) / 0.001)));
    assert!((1.5..1.8).contains(&(grown(0.1, 10) / 0.001)));
}

/// Where acks get lost less is in flight at the beginning of a round than the window takes.
#[test]
fn a_cut_is_of_the_window_that_was_used() {
    let cut = |has_met_queue: bool| {
        let mut path = Path::new(100.0, f64::INFINITY, 0.0);
        path.window.has_met_queue = has_met_queue;
        path.window.judge(&Seen { acked: 60, queue: 0.0, ..Seen::NOTHING }, 0.05, 60);
        path.window.on_sent(100, true);
        let seen = Seen { acked: 90, lost: 10, runs: 10, queue: 0.0, ..Seen::NOTHING };
        path.window.judge(&seen, 0.05, 60);
        path.window.size()
    };
    assert!((80.0..82.0).contains(&cut(true)), "{}", cut(true));
    assert!((62.0..64.0).contains(&cut(false)), "of the 61 a round before: {}", cut(false));
}

/// When datagrams become larger, as many bytes are in flight as before.
#[test]
fn a_window_is_scaled_with_the_size_of_datagrams() {
    let mut path = Path::new(20.0, 3.0, 0.0);
    (0..40).for_each(|_| _ = path.round());
    let (size, full) = (path.window.size(), path.window.full);
    path.window.scale(0.8);
    assert!((path.window.size() - 0.8 * size).abs() < 1e-9 && full > 0.0);
    assert!((path.window.full - 0.8 * full).abs() < 1e-9);
}

/// A window of 40 datagrams of which the path holds 50 ms, and that has seen arrivals in bunches.
struct Bunched {
    window: Window,
    seen: Seen,
}

impl Bunched {
    /// All datagrams are this many seconds late in the mean, and none less than 15 ms.
    fn new(late: f64) -> Self {
        let window = Window::new(40.0, 40, Losses::new(0.0, 0.0));
        let (queue, standing) = (0.015, 0.015);
        let seen =
            Seen { acked: 40, queue, standing, mean: late, is_bunched: true, ..Seen::NOTHING };
        let mut it = Self { window, seen };
        it.round(late);
        it
    }

    /// A full round in which they are this late.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds")]
    fn round(&mut self, late: f64) -> f64 {
        let sent = self.window.size() as u64;
        self.window.on_sent(sent, true);
        let acked = sent.saturating_sub(self.seen.lost);
        self.seen = Seen { acked, mean: late, ..self.seen };
        self.window.judge(&self.seen, 0.05, sent);
        self.window.size()
    }

    fn is_tried(&mut self) -> bool {
        self.round(0.02);
        self.window.larger.is_tried()
    }
}

/// Jitter of 33 ms in order is a queue of 15 ms all through each round: 4 MiB over 23 Mbit/s took 9.5 s.
#[test]
fn a_larger_window_shows_that_a_delay_is_jitter() {
    let mut path = Bunched::new(0.02);
    let sizes: Vec<f64> = (0..8).map(|_| path.round(0.02)).collect();
    assert_eq!(sizes, [60.0, 60.0, 60.0, 90.0, 90.0, 90.0, 135.0, 135.0], "a round of it is late");
}

#[test]
fn a_larger_window_shows_a_queue_of_its_own_and_is_tried_ever_more_seldom() {
    let mut path = Bunched::new(0.02);
    // No more than may stand: the window stays as it is.
    (path.seen.queue, path.seen.standing) = (0.007, 0.007);
    let mut tried = Vec::new();
    for n in 0..640 {
        // The path is full: datagrams take as much longer as the window is larger.
        let late = path.window.size() / 500.0 - 0.05;
        let before = path.window.size();
        let after = path.round(late);
        if after > 1.4 * before {
            tried.push(n);
        }
    }
    let pauses: Vec<i32> = tried.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses, [7, 19, 67, 259, 259], "three rounds for each, and what is between them");
}

#[test]
fn a_larger_window_is_tried_only_where_it_can_show_something() {
    assert!(Bunched::new(0.02).is_tried());
    let mut path = Bunched::new(0.02);
    path.seen.is_bunched = false;
    assert!(!path.is_tried(), "datagrams come one by one");
    let mut path = Bunched::new(0.02);
    path.seen.is_shared = true;
    assert!(!path.is_tried(), "others' queue becomes no longer");
    let mut path = Bunched::new(0.02);
    path.window.bound(0.003, 0.5);
    assert!(!path.is_tried(), "beside a game");
    let mut path = Bunched::new(0.02);
    (path.seen.queue, path.seen.standing) = (0.0, 0.0);
    assert!(!path.is_tried(), "it grows without");
    let mut path = Bunched::new(0.02);
    path.window.full = 70.0;
    assert!(!path.is_tried(), "sixty are near what overflowed");
    path.window.full = 80.0;
    assert!(path.is_tried());
    let mut path = Bunched::new(0.02);
    path.window.judge(&path.seen, 0.05, 40);
    assert!(!path.window.larger.is_tried(), "its pace held it back");
}

/// What was tried is over where nobody can tell what it has shown.
#[test]
fn a_larger_window_ends_with_a_drain_and_with_losses() {
    let mut path = Bunched::new(0.02);
    assert!(path.is_tried() && path.window.gain() == 1.5, "what passes is no bound of it");
    path.window.begin_round(60);
    assert!(!path.window.larger.is_tried());
    let mut path = Bunched::new(0.02);
    assert!(path.is_tried());
    path.round(0.02);
    (path.seen.lost, path.seen.runs) = (20, 20);
    assert!(path.round(0.02) < 45.0 && path.window.is_tried(), "whose losses are has to be tried");
    assert!(!path.window.larger.is_tried());
}

#[test]
fn a_larger_window_is_as_many_bytes_of_larger_datagrams() {
    let mut path = Bunched::new(0.02);
    assert!(path.is_tried());
    path.window.scale(0.5);
    path.round(0.2);
    assert_eq!(path.round(0.2), 20.0, "the window before");
}

/// 14 % were lost over jitter of 17 ms in order: each cut found a queue, and with one datagram in flight 4
/// MiB were not done in a minute.
#[test]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some dozens")]
fn losses_beside_jitter_are_tried_before_a_window_has_overflowed() {
    let usual = |is_bunched, is_shared, full| {
        let mut path = Bunched::new(0.02);
        (path.window.full, path.window.larger) = (full, Larger::NONE);
        (path.seen.is_bunched, path.seen.is_shared) = (is_bunched, is_shared);
        for _ in 0..20 {
            path.seen.lost = (path.window.size() / 6.0).ceil() as u64;
            path.seen.runs = path.seen.lost;
            path.round(0.02);
        }
        path.window.usual()
    };
    assert!(usual(true, false, 0.0) > 0.1);
    assert!(usual(false, false, 0.0) < 0.1, "it is a queue's");
    assert!(usual(true, true, 0.0) < 0.1, "it is others' queue's");
    assert!(usual(true, false, 50.0) < 0.1, "as much has overflowed");
}
