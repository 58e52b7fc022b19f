//! The connections of one client address that send blocks: RFC 9040 calls them an ensemble.
//!
//! Ten players behind one access share one path from the server. A connection that measures the path alone
//! sends a first flight of its own, takes the others' queue for a part of the path, and loses much. So the
//! connections have one window, and take turns in it (CROWDS, "One address"). The window begins with the
//! datagrams that the boldest of them would have in flight alone. The last member keeps all of the window.
//!
//! Members may have links of their own behind one address (a provider's NAT), and may lie. So a queue counts
//! only if half of the members that are heard of see it, and losses count only where there is a queue,
//! because all members see a queue that overflows. Each member also has a window of its own, by the same
//! law, for the queue and losses that only it sees.
//!
//! The invariants: the datagrams in flight are the sum over the members; a connection that waits is a member,
//! and waits once.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::ConnectionId;
use super::longer::{Longer, is_same};
use super::window::{Seen, Window};
use crate::Instant;
use crate::connection::{Flight, Left};
use crate::wire::request::REQUEST_BYTES;

/// The pace at which a window may be sent, in windows a round trip: while it grows, and once a queue was
/// met. Linux paces TCP so, in slow start and after it.
const PACE: (f64, f64) = (2.0, 1.2);

/// A turn is an eighth of the window, and at most the datagrams that a connection sends at a time: a quarter
/// of the shortest usual queue.
const TURNS: f64 = 8.0;
const MAX_TURN: f64 = 16.0;

/// The train of slices that opens each block.
const TRAIN: f64 = 20.0;

/// The datagrams that each connection adds that begins before a queue was met, up to those that the boldest
/// would send alone: TCP's initial window (RFC 6928).
const EACH_BRINGS: f64 = 10.0;

/// A member that was alone and has more datagrams acknowledged than this already fills the path.
const SETTLED: u64 = 256;

/// The weights of the members with the least and the most left to send, of many members; of two members they
/// are 1.4 and 0.6. When equal transfers begin at once, the first is done after little more than half of the
/// time of the last, and the mean after 0.78 of it, where it would be 1; rates differ by so little that
/// Jain's index stays above 0.95.
const WEIGHTS: (f64, f64) = (1.8, 0.2);

/// A round trip that is assumed where none was measured.
const UNKNOWN_TRIP: f64 = 0.05;

/// A connection of the address.
#[derive(Debug)]
struct Member {
    flight: Flight,
    /// Its own window, and the fates and the queue that it saw in the present round of that window.
    window: Window,
    seen: Seen,
    /// The fates and the queue that it saw in the present round of all.
    seen_with_all: Seen,
    /// What other members have found out about a longer path.
    longer: Longer,
    /// The datagrams of its turns, each divided by its weight.
    served: f64,
    weight: f64,
    /// Bytes that it has left to send.
    left: u64,
    waits: bool,
}

/// The connections of an address, and their window.
#[derive(Debug)]
pub(super) struct Ensemble {
    members: BTreeMap<ConnectionId, Member>,
    window: Window,
    in_flight: u64,
    /// Those of them that have a slice.
    slices: u64,
    /// Datagrams that were acknowledged or lost in the present round, and their members.
    fates: u64,
    heard: Vec<ConnectionId>,
    /// Round trips in seconds: the median of the members', and the shortest of all.
    trip: f64,
    least_trip: f64,
    /// The members that wait, by the datagrams that they were served.
    waiting: BTreeSet<(u64, ConnectionId)>,
    /// The member whose turn it is, and the datagrams left in the turn.
    turn: Option<(ConnectionId, u64)>,
    /// The datagrams served to the member that had the last turn, by its weight.
    served: f64,
    /// The time from which on the next datagram is within the pace.
    paced_at: Instant,
    /// Datagrams acknowledged or lost since the weights were set.
    unweighed: u64,
}

impl Ensemble {
    pub(super) const fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            window: Window::new(0.0, 0),
            in_flight: 0,
            slices: 0,
            fates: 0,
            heard: Vec::new(),
            trip: UNKNOWN_TRIP,
            least_trip: f64::INFINITY,
            waiting: BTreeSet::new(),
            turn: None,
            served: 0.0,
            paced_at: Instant::ZERO,
            unweighed: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A connection begins to send blocks, or is not alone any more. Alone it would send `bps` bits per
    /// second before the first ack.
    pub(super) fn join(&mut self, id: ConnectionId, flight: Flight, bps: u64) {
        let trip = flight.rtt.max(flight.min_rtt);
        let first = TRAIN + datagrams(bps, trip.as_secs_f64());
        let in_flight = u64::from(flight.in_flight);
        self.in_flight += in_flight;
        self.slices += u64::from(flight.slices);
        let each = EACH_BRINGS * (self.members.len() + 1) as f64;
        let all = each.min(TRAIN + datagrams(bps, self.trip)).max(first).max(self.in_flight as f64);
        self.window.raise(all);
        if flight.acked > SETTLED {
            self.window.settle();
        }
        let window = Window::new(first.max(in_flight as f64), in_flight);
        let (seen, seen_with_all) = (Seen::NOTHING, Seen::NOTHING);
        let (served, weight, left, waits) = (self.served, 1.0, u64::MAX, false);
        let longer = Longer::NOT;
        let member =
            Member { flight, window, seen, seen_with_all, longer, served, weight, left, waits };
        self.members.insert(id, member);
    }

    /// A connection sends no blocks any more.
    pub(super) fn leave(&mut self, id: ConnectionId) {
        self.end_turn(id);
        if let Some(member) = self.members.remove(&id) {
            self.in_flight -= u64::from(member.flight.in_flight);
            self.slices -= u64::from(member.flight.slices);
            self.waiting.remove(&place(id, &member));
        }
    }

    /// A member has this flight now.
    pub(super) fn set(&mut self, id: ConnectionId, flight: Flight) {
        self.hear_of_longer(id, flight.longer);
        let Some(member) = self.members.get_mut(&id) else { return };
        let before = core::mem::replace(&mut member.flight, flight);
        self.in_flight = self.in_flight - u64::from(before.in_flight) + u64::from(flight.in_flight);
        self.slices = self.slices - u64::from(before.slices) + u64::from(flight.slices);
        let mut seen = news(&before, &flight);
        if seen.fates() == 0 {
            return;
        }
        seen.queue = member.longer.queue(seen.queue);
        if member.seen_with_all.fates() == 0 {
            self.heard.push(id);
        }
        let fates = member.seen.fates();
        member.seen.add(&seen);
        member.seen_with_all.add(&seen);
        if member.window.is_past_half(fates, member.seen.fates()) {
            member.seen.queue = seen.queue;
        }
        let trip = flight.min_rtt.as_secs_f64();
        if member.window.is_due(member.seen.fates()) {
            member.window.judge(&member.seen, trip, flight.in_flight.into());
            member.window.grow_to(path_of(&flight));
            member.seen = Seen::NOTHING;
        }
        if trip > 0.0 {
            self.least_trip = self.least_trip.min(trip);
        }
        let fates = self.fates;
        self.fates += seen.fates();
        if self.window.is_past_half(fates, self.fates) {
            for id in &self.heard {
                let member = self.members.get_mut(id);
                member.into_iter().for_each(|member| member.seen_with_all.queue = f64::INFINITY);
            }
        }
        self.unweighed += seen.fates();
        if self.window.is_due(self.fates) {
            self.judge();
        }
    }

    /// A member's path has become longer by `found` in all. If that is more than before, and another member
    /// has found the same growth, it is reported to all others.
    fn hear_of_longer(&mut self, id: ConnectionId, found: Duration) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let by = found.saturating_sub(member.flight.longer).as_secs_f64();
        if by == 0.0 {
            return;
        }
        member.longer = Longer::NOT;
        let mut others = self.members.iter().filter(|(other, _)| **other != id);
        if others.any(|(_, other)| is_same(other.flight.longer.as_secs_f64(), by)) {
            for (_, other) in self.members.iter_mut().filter(|(other, _)| **other != id) {
                other.longer.on_told(by, other.flight.queue.unwrap_or(0.0));
            }
        }
    }

    /// Judges a round by the median of what its members saw.
    fn judge(&mut self) {
        let mut all = Seen::NOTHING;
        let (mut queues, mut trips, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.heard.drain(..) {
            let Some(member) = self.members.get_mut(&id) else { continue };
            let seen = core::mem::replace(&mut member.seen_with_all, Seen::NOTHING);
            all.add(&seen);
            queues.extend(Some(seen.queue).filter(|queue| queue.is_finite()));
            trips.push(member.flight.min_rtt.as_secs_f64());
            paths.extend(Some(path_of(&member.flight)).filter(|&path| path > 0.0));
        }
        self.trip = middle(trips).unwrap_or(self.trip);
        all.queue = middle(queues).unwrap_or(f64::INFINITY);
        if !self.window.has_met_queue() && self.least_trip.is_finite() {
            // A member that begins in a queue takes it for a part of the path. One that began before it knows
            // the path without it.
            all.queue = all.queue.max(self.trip - self.least_trip);
        }
        if !self.waiting.is_empty() {
            self.window.on_short();
        }
        self.window.judge(&all, self.trip, self.in_flight);
        self.window.grow_to(middle(paths).unwrap_or(0.0));
        self.fates = 0;
        // This is so rare that it costs little for each datagram, whatever the number of members.
        if self.unweighed >= self.members.len() as u64 {
            self.unweighed = 0;
            self.set_weights();
        }
    }

    /// Sets the weights: the members with the least left to send are served somewhat more.
    fn set_weights(&mut self) {
        let mut left: Vec<_> = self.members.iter().map(|(&id, it)| (it.left, id)).collect();
        left.sort_unstable();
        let (first, last) = WEIGHTS;
        let step = (first - last) / left.len().max(1) as f64;
        for (rank, (_, id)) in left.into_iter().enumerate() {
            if let Some(member) = self.members.get_mut(&id) {
                member.weight = first - step * (rank as f64 + 0.5);
            }
        }
    }

    /// Whether a member may send a slice now.
    pub(super) fn is_open_to(&mut self, now: Instant, id: ConnectionId) -> bool {
        if !self.has_own_room(id) {
            return false;
        }
        match self.turn {
            Some((holder, _)) => holder == id,
            None => self.waiting.is_empty() && self.has_room(now, 1.0),
        }
    }

    /// Whether a member's own window has room for a datagram.
    fn has_own_room(&mut self, id: ConnectionId) -> bool {
        let Some(member) = self.members.get_mut(&id) else { return true };
        let Flight { in_flight, slices, .. } = member.flight;
        let has_room = member.window.has_room(in_flight.into(), slices.into(), 1.0);
        if !has_room {
            member.window.on_short();
        }
        has_room
    }

    /// Whether the window and the pace have room for `datagrams` more.
    fn has_room(&self, now: Instant, datagrams: f64) -> bool {
        self.window.has_room(self.in_flight, self.slices, datagrams) && self.paced_at <= now
    }

    /// A member has sent a datagram. Without a turn there is no slice in it: acks and packets are in flight
    /// as well, and use up neither a turn nor the pace.
    pub(super) fn on_sent(&mut self, now: Instant, id: ConnectionId, has_turn: bool) {
        let Some(member) = self.members.get_mut(&id) else { return };
        member.flight.in_flight += 1;
        member.window.on_sent(member.flight.in_flight.into());
        self.in_flight += 1;
        self.window.on_sent(self.in_flight);
        if has_turn {
            member.flight.slices += 1;
            self.slices += 1;
            self.take_from_turn(now, id);
        }
    }

    /// A datagram of a turn was sent.
    fn take_from_turn(&mut self, now: Instant, id: ConnectionId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let was = place(id, member);
        member.served += 1.0 / member.weight;
        if self.waiting.remove(&was) {
            self.waiting.insert(place(id, member));
        }
        let (growing, steady) = PACE;
        let pace = if self.window.has_met_queue() { steady } else { growing };
        let cost = Duration::from_secs_f64(self.trip / (pace * self.window.size().max(1.0)));
        self.paced_at = self.paced_at.max(now) + cost;
        if let Some((holder, left)) = &mut self.turn
            && *holder == id
        {
            *left -= 1;
            if *left == 0 {
                self.turn = None;
            }
        }
    }

    /// A member has nothing more to send in its turn.
    pub(super) fn end_turn(&mut self, id: ConnectionId) {
        if self.turn.is_some_and(|(holder, _)| holder == id) {
            self.turn = None;
        }
    }

    /// A member waits for a turn, or for acks that make room in its own window.
    pub(super) fn wait(&mut self, id: ConnectionId, left: Left) {
        self.end_turn(id);
        let turn = self.turn_datagrams();
        let has_room = self.has_own_room(id);
        let Some(member) = self.members.get_mut(&id) else { return };
        member.left = left.bytes;
        if has_room && !member.waits {
            member.waits = true;
            // A member that did not wait has no claim to the turns of that time.
            member.served = member.served.max(self.served - turn);
            self.waiting.insert(place(id, member));
        }
    }

    fn turn_datagrams(&self) -> f64 {
        (self.window.size() / TURNS).clamp(1.0, MAX_TURN)
    }

    /// The member whose turn begins now, if one does.
    pub(super) fn begin_turn(&mut self, now: Instant) -> Option<ConnectionId> {
        let turn = self.turn_datagrams();
        if self.turn.is_some() || self.waiting.is_empty() || !self.has_room(now, turn) {
            return None;
        }
        let (_, id) = self.waiting.pop_first()?;
        let member = self.members.get_mut(&id)?;
        (member.waits, self.served) = (false, member.served);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 16")]
        let turn = turn as u64;
        self.turn = Some((id, turn));
        Some(id)
    }

    /// When the next turn begins, if no ack comes before; `None` if an ack has to make room.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let is_awaited = self.turn.is_none() && !self.waiting.is_empty();
        let has_room = self.window.has_room(self.in_flight, self.slices, self.turn_datagrams());
        (is_awaited && has_room).then_some(self.paced_at)
    }

    pub(super) fn check_invariants(&self) {
        let in_flight = self.members.values().map(|it| u64::from(it.flight.in_flight)).sum::<u64>();
        assert_eq!(self.in_flight, in_flight, "the sum over the members");
        let slices = self.members.values().map(|it| u64::from(it.flight.slices)).sum::<u64>();
        assert_eq!(self.slices, slices, "of those with a slice, too");
        let waiting = self.members.iter().filter(|(_, member)| member.waits);
        let waiting: BTreeSet<_> = waiting.map(|(&id, member)| place(id, member)).collect();
        assert_eq!(self.waiting, waiting, "each that waits, once");
    }
}

/// The full datagrams of a time in seconds at this rate.
fn datagrams(bps: u64, seconds: f64) -> f64 {
    bps as f64 * seconds / (8 * REQUEST_BYTES) as f64
}

/// The datagrams that the path holds, by the rate that a member's trains have shown.
fn path_of(flight: &Flight) -> f64 {
    datagrams(flight.link_bps, flight.min_rtt.as_secs_f64())
}

/// The newly acknowledged and lost datagrams of a member, and the queue that they saw.
fn news(before: &Flight, now: &Flight) -> Seen {
    let acked = now.acked.saturating_sub(before.acked);
    let lost = now.lost.saturating_sub(before.lost);
    let queue = now.queue.filter(|_| acked > 0).unwrap_or(f64::INFINITY);
    Seen { acked, lost, queue }
}

/// The median; with an even number of values, the lower of the two in the middle.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The place of a member among those that wait: the member that was served least is first.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn place(id: ConnectionId, member: &Member) -> (u64, ConnectionId) {
    ((member.served * 1024.0) as u64, id)
}
