//! What the ensemble of an address decides: windows, turns, losses, and what members tell each other of their
//! path.

use slotmap::SlotMap;

use super::*;

const TRIP: Duration = Duration::from_millis(50);

fn flight(in_flight: u32, acked: u64, lost: u64, queue_ms: u64) -> Flight {
    let queue = Some(queue_ms as f64 / 1e3);
    let (slices, rtt, min_rtt) = (in_flight, TRIP, TRIP);
    let longer = Duration::ZERO;
    Flight { in_flight, slices, acked, lost, rtt, min_rtt, queue, longer, link_bps: 0 }
}

fn ids(count: usize) -> Vec<ConnectionId> {
    let mut slots = SlotMap::new();
    (0..count).map(|n| ConnectionId::new(0, slots.insert(n))).collect()
}

/// Each has `left` bytes, and nothing in flight.
fn ensemble(ids: &[ConnectionId], bps: u64) -> Ensemble {
    let mut ensemble = Ensemble::new();
    for &id in ids {
        ensemble.join(id, flight(0, 0, 0, 0), bps);
    }
    ensemble.check_invariants();
    ensemble
}

/// Sends what may be sent until the window is full, and returns how many datagrams each has sent.
fn fill(ensemble: &mut Ensemble, ids: &[ConnectionId], left: &[u64]) -> Vec<u32> {
    let mut sent = alloc::vec![0; ids.len()];
    let wait = |ensemble: &mut Ensemble, n: usize| {
        ensemble.wait(ids[n], Left { bytes: left[n], link_bps: None });
    };
    (0..ids.len()).for_each(|n| wait(ensemble, n));
    let mut now = Instant::from_millis(1);
    while let Some(at) = ensemble.poll_timeout() {
        now = now.max(at);
        let id = ensemble.begin_turn(now).unwrap();
        let n = ids.iter().position(|&other| other == id).unwrap();
        while ensemble.is_open_to(now, id) {
            ensemble.on_sent(now, id, true);
            sent[n] += 1;
            if ensemble.turn.is_none_or(|(holder, _)| holder != id) {
                break;
            }
        }
        wait(ensemble, n);
        ensemble.check_invariants();
    }
    sent
}

#[test]
fn first_flights_do_not_add_up() {
    let ids = ids(8);
    // 20 datagrams of a train, and 104 that 20 Mbit/s send in a round trip.
    let mut all = ensemble(&ids, 20_000_000);
    let sent = fill(&mut all, &ids, &[1 << 20; 8]);
    let sum = sent.iter().sum::<u32>();
    assert!((110..=130).contains(&sum), "what one would send alone: {sent:?}");
    assert!(sent.iter().all(|sent| (5..=31).contains(sent)), "each has its share: {sent:?}");
}

#[test]
fn who_has_less_left_is_served_more() {
    let ids = ids(2);
    let mut two = ensemble(&ids, 20_000_000);
    let (mut sent, mut acked) = ([0; 2], [0; 2]);
    for _ in 0..40 {
        let more = fill(&mut two, &ids, &[1 << 20, 2 << 20]);
        for n in 0..2 {
            sent[n] += more[n];
            acked[n] += u64::from(more[n]);
            two.set(ids[n], flight(0, acked[n], 0, 8));
        }
        two.check_invariants();
    }
    let ratio = f64::from(sent[0]) / f64::from(sent[1]);
    assert!((2.0..=3.1).contains(&ratio), "{sent:?}");
}

/// Of two one sees a queue that the other does not: it has a link of its own, or lies.
#[test]
fn a_queue_that_only_one_of_two_sees_shrinks_its_own_window_alone() {
    let ids = ids(2);
    let mut two = ensemble(&ids, 20_000_000);
    let (before, mut acked) = (two.window.size(), [0; 2]);
    for _ in 0..20 {
        let more = fill(&mut two, &ids, &[1 << 20; 2]);
        for n in 0..2 {
            acked[n] += u64::from(more[n]);
            two.set(ids[n], flight(0, acked[n], 0, 100 * n as u64));
        }
    }
    assert!(two.window.size() >= before, "{} {before}", two.window.size());
    let own = |n: usize| two.members[&ids[n]].window.size();
    assert!(own(0) > 4.0 * own(1), "{} {}", own(0), own(1));
}

#[test]
fn who_leaves_in_its_turn_leaves_nothing_behind() {
    let ids = ids(3);
    let mut three = ensemble(&ids, 20_000_000);
    let now = Instant::from_millis(1);
    for &id in &ids {
        three.wait(id, Left { bytes: 1, link_bps: None });
    }
    let first = three.begin_turn(now).unwrap();
    three.on_sent(now, first, true);
    three.leave(first);
    three.check_invariants();
    assert_ne!(three.begin_turn(now.max(three.paced_at)), None);
    ids.iter().for_each(|&id| three.leave(id));
    three.check_invariants();
    assert!(three.is_empty() && three.in_flight == 0 && three.poll_timeout().is_none());
}

/// A false queue, or somebody else's, shrinks the windows to the least, and a game's packets fill those:
/// the block of a player behind a shared address never came.
#[test]
fn packets_leave_the_least_window_to_slices() {
    let ids = ids(2);
    let mut two = ensemble(&ids, 20_000_000);
    fill(&mut two, &ids, &[1 << 20; 2]);
    let mut acked = 0;
    for _ in 0..20 {
        acked += 200;
        ids.iter().for_each(|&id| two.set(id, flight(30, acked, 0, 250)));
    }
    assert!(two.window.size() < 60.0, "{}", two.window.size());
    ids.iter().for_each(|&id| two.set(id, Flight { slices: 0, ..flight(30, acked, 0, 250) }));
    let sent = fill(&mut two, &ids, &[1 << 20; 2]);
    assert!((4..=8).contains(&sent.iter().sum::<u32>()), "{sent:?}");
}

/// Of three that see a queue of 60 ms two find that the path is longer by 50.
#[test]
fn what_two_have_found_of_the_path_the_third_is_told() {
    let ids = ids(3);
    let mut three = ensemble(&ids, 20_000_000);
    let found = |ms| Flight { longer: Duration::from_millis(ms), ..flight(9, 9, 0, 60) };
    let queue = |all: &mut Ensemble| all.members.get_mut(&ids[2]).unwrap().longer.queue(0.06);
    ids.iter().for_each(|&id| three.set(id, found(0)));
    three.set(ids[0], found(50));
    assert_eq!(queue(&mut three), 0.06, "one may lie");
    three.set(ids[1], found(50));
    assert!((queue(&mut three) - 0.01).abs() < 1e-9);
    three.set(ids[2], found(50));
    assert_eq!(queue(&mut three), 0.06, "its own base has risen, and this is a queue above that");
}

/// A connection that was alone fills its path: a second one does not double the datagrams in flight.
#[test]
fn a_newcomer_beside_one_that_is_settled_begins_with_its_share() {
    let ids = ids(2);
    let mut two = Ensemble::new();
    two.join(ids[0], flight(90, 5_000, 0, 4), 20_000_000);
    two.join(ids[1], flight(0, 0, 0, 0), 20_000_000);
    two.check_invariants();
    let before = two.window.size();
    assert!(before < 140.0, "{before}");
    two.window.on_short();
    two.set(ids[0], flight(0, 5_090, 0, 0));
    assert!(two.window.size() < 1.1 * before, "no slow start: {}", two.window.size());
}

/// What is acknowledged first in a round was sent in the one before, and says nothing of its queue.
#[test]
fn a_round_is_judged_by_its_second_half() {
    let ids = ids(2);
    let mut two = ensemble(&ids, 20_000_000);
    let sent = fill(&mut two, &ids, &[1 << 20; 2]);
    two.set(ids[0], flight(sent[0], 0, 0, 0));
    two.judge();
    let before = two.window.size();
    let (first, second) = (u64::from(sent[0]), u64::from(sent[1]));
    two.set(ids[0], flight(0, first, 0, 0));
    two.set(ids[1], flight(sent[1] / 2, second / 2, 0, 60));
    two.set(ids[1], flight(0, second, 0, 60));
    assert!(two.window.has_met_queue() && two.window.size() < before, "{}", two.window.size());
}
