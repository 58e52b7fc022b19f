//! The datagrams in flight of each connection of a worker that sends blocks, and what it reports about a
//! round of the [`Crowd`].
//!
//! The invariant: this worker's part of the crowd's numbers is the sum over these connections.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::time::Duration;

use super::ConnectionId;
use super::board::Board;
use super::crowd::Say;
use crate::Instant;
use crate::connection::Flight;

/// The number of acknowledged or lost datagrams that a connection needs in a round to have a say: of fewer,
/// a single loss may be a quarter.
const MIN_FATES: u32 = 8;

/// One lost datagram in four is much: the links of the lab lose less on their own, except for some first
/// flights.
const MUCH: u32 = 4;

/// After this number of bad rounds in succession, the losses are on the connection's own link, or it lies:
/// they say nothing about the uplink.
const CHRONIC: u32 = 3;

/// The maximum number of times that the losses of a connection are excused.
const MAX_EXCUSES: u8 = 2;

/// A round trip found no queue if it took at most 9/8 of the shortest round trip and this time.
const UNQUEUED: Duration = Duration::from_millis(8);

/// The maximum of the time that is made up for, when datagrams were not sent because this end was called
/// late. A burst of this time fits a router's queue.
const LATE: Duration = Duration::from_millis(5);

/// The connections of a worker that send blocks.
#[derive(Debug)]
pub(super) struct Flights {
    board: Arc<Board>,
    by_id: BTreeMap<ConnectionId, Counted>,
}

/// A flight, and the counts of its round.
#[derive(Clone, Copy, Debug)]
struct Counted {
    flight: Flight,
    /// The round to which the next three fields belong.
    round: u64,
    acked: u32,
    lost: u32,
    /// A round trip of this round found no queue.
    is_prompt: bool,
    /// The number of rounds in succession, before this one, in which it lost much.
    bad_rounds: u32,
    /// It lost much since its losses were last excused; the round of that; the number of times it was.
    has_lost: bool,
    excused: u64,
    excuses: u8,
}

impl Counted {
    const fn new(flight: Flight, excused: u64) -> Self {
        let flight = Flight { in_flight: 0, slices: 0, ..flight };
        let (round, acked, lost, is_prompt, bad_rounds) = (0, 0, 0, false, 0);
        let (has_lost, excuses) = (false, 0);
        Self { flight, round, acked, lost, is_prompt, bad_rounds, has_lost, excused, excuses }
    }

    fn loses_much(&self) -> bool {
        self.lost > 0 && self.lost * MUCH >= self.acked + self.lost
    }

    /// Its report about this round, if enough of its datagrams were acknowledged or lost.
    fn say(&self, round: u64) -> Option<Say> {
        let is_loser = self.loses_much() && self.bad_rounds < CHRONIC;
        (self.round == round && self.acked + self.lost >= MIN_FATES)
            .then_some(Say { is_loser, is_queued: !self.is_prompt })
    }

    fn on_fates(&mut self, round: u64, acked: u32, lost: u32) {
        if self.round != round {
            self.bad_rounds = if self.loses_much() { self.bad_rounds.saturating_add(1) } else { 0 };
            (self.round, self.acked, self.lost, self.is_prompt) = (round, 0, 0, false);
        }
        self.acked = self.acked.saturating_add(acked).min(u32::MAX / 8);
        self.lost = self.lost.saturating_add(lost).min(u32::MAX / 8);
        self.is_prompt |= self.flight.rtt <= self.flight.min_rtt * 9 / 8 + UNQUEUED;
    }
}

impl Flights {
    pub(super) const fn new(board: Arc<Board>) -> Self {
        Self { board, by_id: BTreeMap::new() }
    }

    /// A datagram was sent: in a crowd, it is paid from the crowd's budget.
    pub(super) fn on_sent(&self, now: Instant, id: ConnectionId) {
        let crowd = self.board.crowd();
        if crowd.is_there() && self.by_id.contains_key(&id) {
            let cost = Duration::from_nanos(1_000_000_000 / crowd.rate());
            self.board.pay(Instant::ZERO + now.since(Instant::ZERO + LATE), cost);
        }
    }

    /// A connection has this flight now; `None` if it sends no blocks. Returns whether its losses are
    /// excused: it lost much when many did, which says nothing about its own link.
    #[must_use]
    pub(super) fn set(&mut self, id: ConnectionId, flight: Option<Flight>) -> bool {
        let crowd = self.board.crowd();
        let Some(flight) = flight else {
            if let Some(counted) = self.by_id.remove(&id) {
                crowd.set_in_flight(counted.flight.in_flight, 0);
                crowd.set_sending(true, false);
            }
            return false;
        };
        let counted = self.by_id.entry(id).or_insert_with(|| {
            crowd.set_sending(false, true);
            Counted::new(flight, crowd.excused())
        });
        let before = core::mem::replace(&mut counted.flight, flight);
        crowd.set_in_flight(before.in_flight, flight.in_flight);
        let news = |before: u64, now: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(0);
        let (acked, lost) = (news(before.acked, flight.acked), news(before.lost, flight.lost));
        if acked | lost == 0 || !crowd.is_there() {
            return false;
        }
        crowd.add_fates(acked, lost);
        let (round, excused) = (crowd.round(), crowd.excused());
        let before = counted.say(round);
        counted.on_fates(round, acked, lost);
        let say = counted.say(round);
        crowd.set_say(before, say);
        let is_excused = core::mem::replace(&mut counted.excused, excused) != excused;
        let is_loser = say.is_some_and(|say| say.is_loser);
        let had_lost = counted.has_lost;
        counted.has_lost = is_loser || had_lost && !is_excused;
        let is_excused = is_excused && had_lost && counted.excuses < MAX_EXCUSES;
        counted.excuses += u8::from(is_excused);
        is_excused
    }

    pub(super) fn check_invariants(&self, has: impl Fn(ConnectionId) -> bool) {
        assert!(self.by_id.keys().all(|&id| has(id)), "a flight of no connection");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use slotmap::SlotMap;

    const RTT: Duration = Duration::from_millis(40);

    fn flight(acked: u64, lost: u64) -> Option<Flight> {
        let (rtt, min_rtt) = (RTT, RTT);
        Some(Flight {
            in_flight: 5,
            slices: 5,
            acked,
            lost,
            rtt,
            min_rtt,
            queue: None,
            longer: Duration::ZERO,
            link_bps: 0,
        })
    }

    /// A crowd of 20, and their ids.
    fn crowd() -> (Flights, Vec<ConnectionId>) {
        let mut slots = SlotMap::new();
        let ids: Vec<_> = (0..20).map(|n| ConnectionId::new(0, slots.insert(n))).collect();
        let mut flights = Flights::new(Arc::new(Board::new(1)));
        assert!(!ids.iter().any(|&id| flights.set(id, flight(0, 0))));
        (flights, ids)
    }

    #[test]
    fn who_has_lost_much_in_a_round_is_excused_once_it_was_everybody() {
        let (mut flights, ids) = crowd();
        let board = Arc::clone(&flights.board);
        let (crowd, mut judge) = (board.crowd(), super::super::crowd::Judge::new());
        assert!(crowd.is_there());
        judge.judge(Instant::from_millis(1_000), crowd);
        for &id in &ids[..5] {
            assert!(!flights.set(id, flight(6, 2)));
        }
        for &id in &ids[5..] {
            assert!(!flights.set(id, flight(8, 0)));
        }
        crowd.on_short();
        judge.judge(Instant::from_millis(1_100), crowd);
        assert_eq!(crowd.rate(), 1_500, "what arrived in a tenth of a second is the budget");
        judge.judge(Instant::from_millis(1_350), crowd);
        assert!(flights.set(ids[0], flight(7, 2)) && !flights.set(ids[5], flight(9, 0)));
        assert!(!flights.set(ids[0], flight(8, 2)), "once");
    }

    #[test]
    fn who_always_loses_is_no_news() {
        let mut counted = Counted::new(flight(0, 0).unwrap(), 0);
        let say = [1, 2, 3, 4, 5].map(|round| {
            counted.on_fates(round, 6, 6);
            counted.say(round).unwrap().is_loser
        });
        assert_eq!(say, [true, true, true, false, false]);
    }

    #[test]
    fn a_flight_that_is_over_leaves_nothing_behind() {
        let (mut flights, ids) = crowd();
        for &id in &ids {
            assert!(!flights.set(id, None) && !flights.set(id, None));
        }
        assert!(!flights.board.crowd().is_there());
        assert!(flights.board.crowd().is_empty());
    }
}
