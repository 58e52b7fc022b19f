//! What a server may send in all: one budget for its own uplink, whoever it is for.
//!
//! Each transfer finds out what its own client's link has. A hundred of them that do so at once fill the
//! server's own uplink, and each takes the queue there for its client's. So blocks, and the messages that
//! share the rate with them, wait for one budget. Everything else goes at once and is counted: a game's
//! packets go first. Connections that wait take turns, of a few datagrams each; what one does not need, for
//! its link is slower or it has nothing to send, goes to the others.
//!
//! The invariant: while a connection waits, none that came later has a turn before it.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use core::time::Duration;

use super::ConnectionId;
use super::board::Board;
use crate::Instant;
use crate::wire::request::REQUEST_BYTES;

/// How far sending may run ahead of the budget: what is sent at once stays as small, and a tick that is late
/// is made up for.
const AHEAD: Duration = Duration::from_millis(2);

/// The interval at which waiting connections are asked: that of the senders of blocks.
const TICK: Duration = Duration::from_millis(1);

/// How long a turn's datagrams take, and how many they are: a game's packets wait behind one turn at most,
/// and from 100 Mbit/s on it holds the train that opens a transfer.
const TURN: Duration = Duration::from_millis(2);
const TURN_DATAGRAMS: (u64, u64) = (1, 20);

/// Bytes of UDP and IPv4 in front of each datagram.
const OVERHEAD_BYTES: u64 = crate::transit::UDP_IPV4_BYTES as u64;

/// The budget, and who waits for it.
#[derive(Debug)]
pub(super) struct Uplink {
    /// `None` is no limit.
    max_bps: Option<u64>,
    /// When everything sent so far is within the budget: the same for all workers.
    board: Arc<Board>,
    /// In the order of their turns.
    waiting: VecDeque<ConnectionId>,
    /// The same.
    queued: BTreeSet<ConnectionId>,
    /// Whose turn it is, and how many datagrams are left of it.
    turn: Option<(ConnectionId, u64)>,
    turn_datagrams: u64,
}

impl Uplink {
    pub(super) fn new(max_bps: u64) -> Self {
        let max_bps = Some(max_bps).filter(|&max_bps| max_bps < u64::MAX);
        let (waiting, queued) = (VecDeque::new(), BTreeSet::new());
        let board = Arc::new(Board::new(1));
        let turn_bytes =
            max_bps.unwrap_or(0) / 8_000 * u64::try_from(TURN.as_millis()).unwrap_or(0);
        let (min, max) = TURN_DATAGRAMS;
        let turn_datagrams = (turn_bytes / REQUEST_BYTES as u64).clamp(min, max);
        Self { max_bps, board, waiting, queued, turn: None, turn_datagrams }
    }

    /// The same, as one of several over one budget. Their turns together are as long as that of one.
    pub(super) fn over(self, board: Arc<Board>) -> Self {
        let turn_datagrams = (self.turn_datagrams / board.workers() as u64).max(1);
        Self { board, turn_datagrams, ..self }
    }

    /// Whether this connection may send a slice now.
    pub(super) fn is_open_to(&self, now: Instant, id: ConnectionId) -> bool {
        match self.turn {
            _ if self.max_bps.is_none() => true,
            Some((holder, _)) => holder == id,
            None => self.waiting.is_empty() && self.has_budget(now),
        }
    }

    /// A datagram was sent, whatever is in it.
    pub(super) fn on_sent(&mut self, now: Instant, id: ConnectionId, bytes: usize) {
        let Some(max_bps) = self.max_bps else { return };
        let bits = 8 * (bytes as u64 + OVERHEAD_BYTES);
        let cost = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / max_bps.max(1));
        self.board.pay(now, cost);
        if let Some((holder, left)) = &mut self.turn
            && *holder == id
        {
            *left -= 1;
            if *left == 0 {
                self.turn = None;
            }
        }
    }

    /// A connection has nothing more to send now, or waits for its turn.
    pub(super) fn on_nothing_to_send(&mut self, id: ConnectionId, waits: bool) {
        if self.turn.is_some_and(|(holder, _)| holder == id) {
            self.turn = None;
        }
        if waits && self.queued.insert(id) {
            self.waiting.push_back(id);
        }
    }

    /// A connection is removed.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        // The queue can be long, so it is searched only when it is in it.
        if self.queued.remove(&id) {
            self.waiting.retain(|&other| other != id);
        }
        self.on_nothing_to_send(id, false);
    }

    /// The next one whose turn begins now.
    pub(super) fn begin_turn(&mut self, now: Instant) -> Option<ConnectionId> {
        if self.turn.is_some() || !self.has_budget(now) {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.queued.remove(&id);
        self.turn = Some((id, self.turn_datagrams));
        Some(id)
    }

    /// When a turn begins.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let is_awaited = !self.waiting.is_empty();
        is_awaited.then(|| Instant::ZERO + self.board.paid_at().since(Instant::ZERO + AHEAD) + TICK)
    }

    fn has_budget(&self, now: Instant) -> bool {
        self.board.paid_at() <= now + AHEAD
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.queued.len(), self.waiting.len(), "each waits once");
        assert!(self.waiting.iter().all(|id| self.queued.contains(id)), "two queues");
        assert!(!self.turn.is_some_and(|(id, _)| self.queued.contains(&id)), "a turn, and waits");
        assert!(self.max_bps.is_some() || self.waiting.is_empty(), "nothing to wait for");
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

    #[test]
    fn those_that_wait_take_turns_and_who_comes_later_waits_too() {
        let (ids, mut uplink) = (ids(), Uplink::new(BPS));
        let mut now = Instant::from_millis(100);
        while uplink.is_open_to(now, ids[0]) {
            uplink.on_sent(now, ids[0], BYTES);
        }
        ids.iter().for_each(|&id| uplink.on_nothing_to_send(id, true));
        uplink.on_nothing_to_send(ids[0], true);
        let mut order = Vec::new();
        for _ in 0..6 {
            let id = loop {
                match uplink.begin_turn(now) {
                    Some(id) => break id,
                    None => now = uplink.poll_timeout().unwrap(),
                }
            };
            let others = ids.iter().filter(|&&other| uplink.is_open_to(now, other));
            assert_eq!(others.collect::<Vec<_>>(), [&id], "nobody is let in before");
            while uplink.is_open_to(now, id) {
                uplink.on_sent(now, id, BYTES);
            }
            uplink.on_nothing_to_send(id, true);
            uplink.check_invariants();
            order.push(id);
        }
        assert_eq!(order[..3], ids);
        assert_eq!(order[3..], ids);
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
        ids[..2].iter().for_each(|&id| uplink.on_nothing_to_send(id, true));
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
