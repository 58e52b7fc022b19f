//! The budget of a server's own uplink: one for the datagrams to all clients together.
//!
//! Each transfer measures the rate of its own client's link. A hundred transfers that do so at once fill the
//! server's own uplink, and each takes the queue there for one at its client. So blocks, and the messages
//! that share the rate with them, wait for one budget. Everything else is sent at once and is counted: a
//! game's packets go first. Connections that wait take turns of a few datagrams each. The part that one does
//! not need, because its link is slower or it has nothing to send, goes to the others.
//!
//! The next turn goes to the connection with the fewest bytes left to send (CROWDS, "The uplink"). So of a
//! hundred players who join at once the first is done after a hundredth of the time, and the last no later
//! than with equal shares. There are two exceptions: every eighth turn goes to the connection that has waited
//! longest, so that none waits for all the others; and of the other turns, a connection that would otherwise
//! be the last of all gets the next (`waiting.rs`).
//!
//! The invariant: each connection that waits gets at least a fair part of the eighth turns.

use alloc::sync::Arc;
use core::time::Duration;

use super::ConnectionId;
use super::board::Board;
use super::config::UnknownUplink;
use super::waiting::Waiting;
use crate::Instant;
use crate::connection::Left;
use crate::wire::request::REQUEST_BYTES;

/// How far sending may run ahead of the budget: bursts stay short, and the time lost by a late tick is made
/// up for.
const AHEAD: Duration = Duration::from_millis(2);

/// The interval at which waiting connections get turns: the tick of the senders of blocks.
const TICK: Duration = Duration::from_millis(1);

/// The duration of a turn, and the bounds of its number of datagrams: a game's packets wait behind one turn
/// at most, and from 100 Mbit/s on a turn holds the train that opens a transfer.
const TURN: Duration = Duration::from_millis(2);
const TURN_DATAGRAMS: (u64, u64) = (1, 20);

/// One turn in eight goes to the connection that has waited longest: large transfers together keep an eighth
/// of the uplink. With one in four, twenty equal joins took 0.65 of the time of all in the mean, with one in
/// eight 0.60.
const FAIR_TURN: u8 = 8;

/// Bytes of UDP and IPv4 in front of each datagram.
const OVERHEAD_BYTES: u64 = crate::transit::UDP_IPV4_BYTES as u64;

/// Bits of a full datagram, the unit in which a crowd's budget is counted.
const DATAGRAM_BITS: u64 = 8 * (REQUEST_BYTES as u64 + OVERHEAD_BYTES);

/// The budget, and the connections that wait for it.
#[derive(Debug)]
pub(super) struct Uplink {
    /// `None` is no limit.
    max_bps: Option<u64>,
    /// Whether a crowd finds out the limit.
    finds_out: bool,
    /// Holds the time at which the budget covers everything sent, one number for all workers.
    board: Arc<Board>,
    waiting: Waiting,
    /// The connection whose turn it is, and the number of datagrams left in the turn.
    turn: Option<(ConnectionId, u64)>,
    turn_datagrams: u64,
    /// Turns since the last one for the connection that had waited longest.
    turns: u8,
}

impl Uplink {
    pub(super) fn new(max_bps: u64) -> Self {
        let max_bps = Some(max_bps).filter(|&max_bps| max_bps < u64::MAX);
        let board = Arc::new(Board::new(1));
        let turn_bytes =
            max_bps.unwrap_or(u64::MAX) / 8_000 * u64::try_from(TURN.as_millis()).unwrap_or(0);
        let (min, max) = TURN_DATAGRAMS;
        let turn_datagrams = (turn_bytes / REQUEST_BYTES as u64).clamp(min, max);
        let (finds_out, waiting) = (false, Waiting::default());
        Self { max_bps, finds_out, board, waiting, turn: None, turn_datagrams, turns: 0 }
    }

    /// This uplink as one of several over one budget. Their turns together are as long as a single uplink's.
    pub(super) fn over(self, board: Arc<Board>) -> Self {
        let turn_datagrams = (self.turn_datagrams / board.workers() as u64).max(1);
        Self { board, turn_datagrams, ..self }
    }

    /// This uplink with a rule for the case that no limit is known.
    pub(super) fn without_limit(self, unknown: UnknownUplink) -> Self {
        let finds_out = self.max_bps.is_none() && unknown == UnknownUplink::FoundOut;
        Self { finds_out, ..self }
    }

    /// Whether no limit is known, and a crowd finds one out.
    pub(super) const fn finds_out(&self) -> bool {
        self.finds_out
    }

    /// Whether this connection may send a slice now.
    pub(super) fn is_open_to(&self, now: Instant, id: ConnectionId) -> bool {
        match self.turn {
            _ if self.is_unlimited() => true,
            Some((holder, _)) => holder == id,
            None => self.waiting.is_empty() && self.has_budget(now),
        }
    }

    /// A datagram was sent, with or without a slice.
    pub(super) fn on_sent(&mut self, now: Instant, id: ConnectionId, bytes: usize) {
        if let Some(max_bps) = self.max_bps {
            let bits = 8 * (bytes as u64 + OVERHEAD_BYTES);
            let cost = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / max_bps.max(1));
            self.board.pay(now, cost);
        }
        if let Some((holder, left)) = &mut self.turn
            && *holder == id
        {
            *left -= 1;
            if *left == 0 {
                self.turn = None;
            }
        }
    }

    /// A connection has nothing more to send now, or waits for a turn and has `left` to send.
    pub(super) fn on_nothing_to_send(&mut self, id: ConnectionId, left: Option<Left>) {
        if self.turn.is_some_and(|(holder, _)| holder == id) {
            self.turn = None;
        }
        if let Some(left) = left {
            self.waiting.insert(id, left);
        }
    }

    /// A connection is removed.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.waiting.remove(id);
        self.on_nothing_to_send(id, None);
    }

    /// The connection whose turn begins now, if one does.
    pub(super) fn begin_turn(&mut self, now: Instant) -> Option<ConnectionId> {
        if self.is_unlimited() {
            self.turn = None;
        }
        if self.turn.is_some() || !self.has_budget(now) {
            return None;
        }
        self.turns = (self.turns + 1) % FAIR_TURN;
        let found_bps = || self.board.crowd().rate().saturating_mul(DATAGRAM_BITS);
        let bps = self.max_bps.unwrap_or_else(found_bps) / self.board.workers() as u64;
        let id = match self.turns {
            0 => self.waiting.oldest(),
            _ => self.waiting.with_most_to_lose(bps).or_else(|| self.waiting.with_least_left()),
        }?;
        self.waiting.remove(id);
        self.turn = Some((id, self.turn_datagrams)).filter(|_| !self.is_unlimited());
        Some(id)
    }

    /// When the next turn begins, if a connection waits.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let is_awaited = !self.waiting.is_empty();
        let at = Instant::ZERO + self.board.paid_at().since(Instant::ZERO + AHEAD) + TICK;
        is_awaited.then(|| if self.is_unlimited() { Instant::ZERO } else { at })
    }

    fn has_budget(&self, now: Instant) -> bool {
        let has_budget = self.is_unlimited() || self.board.paid_at() <= now + AHEAD;
        if !has_budget {
            self.board.crowd().on_short();
        }
        has_budget
    }

    /// Whether no connection has to wait: no limit is known, and there is no crowd.
    fn is_unlimited(&self) -> bool {
        self.max_bps.is_none() && !self.board.crowd().is_there()
    }

    pub(super) fn check_invariants(&self) {
        self.waiting.check_invariants();
        let holder = self.turn.map(|(id, _)| id);
        assert!(!holder.is_some_and(|id| self.waiting.has(id)), "a turn, and waits");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use slotmap::SlotMap;

    /// Eight Mbit/s: a datagram of 972 bytes takes a millisecond with its headers.
    const BPS: u64 = 8_000_000;
    const BYTES: usize = 972;

    fn ids() -> Vec<ConnectionId> {
        let mut slots = SlotMap::new();
        (0..3).map(|n| ConnectionId::new(0, slots.insert(n))).collect()
    }

    /// Bytes left for a client whose link's rate is not known.
    fn bytes(bytes: u64) -> Left {
        Left { bytes, link_bps: None }
    }

    /// Uses up the next turn. The connection that had it waits again, with its rest to send.
    fn turn(
        uplink: &mut Uplink,
        now: &mut Instant,
        ids: &[ConnectionId],
        left: &mut [u64],
    ) -> usize {
        let id = loop {
            match uplink.begin_turn(*now) {
                Some(id) => break id,
                None => *now = uplink.poll_timeout().unwrap(),
            }
        };
        let others = ids.iter().filter(|&&other| uplink.is_open_to(*now, other));
        assert_eq!(others.collect::<Vec<_>>(), [&id], "nobody is let in before");
        let place = ids.iter().position(|&other| other == id).unwrap();
        while uplink.is_open_to(*now, id) {
            uplink.on_sent(*now, id, BYTES);
            left[place] -= BYTES as u64;
        }
        uplink.on_nothing_to_send(id, Some(bytes(left[place])));
        uplink.check_invariants();
        place
    }

    #[test]
    fn who_has_the_least_left_is_next_and_one_turn_of_eight_is_for_who_waits() {
        let (ids, mut uplink) = (ids(), Uplink::new(BPS));
        let mut now = Instant::from_millis(100);
        while uplink.is_open_to(now, ids[0]) {
            uplink.on_sent(now, ids[0], BYTES);
        }
        let mut left = [3_000_000, 1_000_000, 2_000_000];
        for (&id, &left) in ids.iter().zip(&left) {
            uplink.on_nothing_to_send(id, Some(bytes(left)));
        }
        let mut order = [0; 12].map(|_| turn(&mut uplink, &mut now, &ids, &mut left));
        assert_eq!(order, [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1]);
        // A short transfer comes: it does not wait for the others.
        left[2] = 100_000;
        uplink.forget(ids[2]);
        uplink.on_nothing_to_send(ids[2], Some(bytes(left[2])));
        order = order.map(|_| turn(&mut uplink, &mut now, &ids, &mut left));
        assert_eq!(order, [2, 2, 2, 0, 2, 2, 2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn what_goes_without_a_turn_is_counted() {
        let (ids, mut uplink) = (ids(), Uplink::new(BPS));
        let now = Instant::from_millis(100);
        assert!(uplink.is_open_to(now, ids[1]));
        (0..12).for_each(|_| uplink.on_sent(now, ids[0], BYTES));
        assert!(!uplink.is_open_to(Instant::from_millis(109), ids[1]));
        assert!(uplink.is_open_to(Instant::from_millis(111), ids[1]));
    }

    #[test]
    fn a_connection_that_is_removed_keeps_nobody_waiting() {
        let (ids, mut uplink) = (ids(), Uplink::new(BPS));
        let now = Instant::from_millis(100);
        ids[..2].iter().for_each(|&id| uplink.on_nothing_to_send(id, Some(bytes(1))));
        assert_eq!(uplink.begin_turn(now), Some(ids[0]));
        uplink.forget(ids[0]);
        uplink.forget(ids[1]);
        uplink.check_invariants();
        assert!(uplink.poll_timeout().is_none() && uplink.is_open_to(now, ids[2]));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let (ids, mut uplink) = (ids(), Uplink::new(u64::MAX));
        (0..10_000).for_each(|_| uplink.on_sent(Instant::ZERO, ids[0], BYTES));
        assert!(ids.iter().all(|&id| uplink.is_open_to(Instant::ZERO, id)));
    }
}
