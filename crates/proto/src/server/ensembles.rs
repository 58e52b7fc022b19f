//! The addresses to which blocks are sent, and the [`Ensemble`] of each with more than one connection.
//!
//! A connection that is alone at its address costs an entry here, and nothing for a datagram. The invariants:
//! each connection is at one address at most; the order of deadlines holds those that there are.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use super::ConnectionId;
use super::admission::Prefix;
use super::ensemble::Ensemble;
use crate::Instant;
use crate::connection::{Flight, Left};

/// The connections of a worker that send blocks, by address.
#[derive(Debug, Default)]
pub(super) struct Ensembles {
    by_address: BTreeMap<Prefix, Home>,
    address_of: BTreeMap<ConnectionId, Prefix>,
    due: BTreeSet<(Instant, Prefix)>,
}

/// Those of one address.
#[derive(Debug)]
enum Home {
    Alone(ConnectionId),
    /// And when its next turn begins.
    Shared(Box<Ensemble>, Option<Instant>),
}

impl Ensembles {
    /// A connection begins to send blocks to this address. Returns the one that was alone there: it is to be
    /// [joined](Self::join) too, and first.
    pub(super) fn arrive(&mut self, address: Prefix, id: ConnectionId) -> Arrived {
        self.address_of.insert(id, address);
        match self.by_address.get_mut(&address) {
            None => {
                self.by_address.insert(address, Home::Alone(id));
                Arrived::Alone
            }
            Some(home) => {
                let Home::Alone(first) = *home else { return Arrived::BesideMany };
                *home = Home::Shared(Box::new(Ensemble::new()), None);
                Arrived::BesideOne(first)
            }
        }
    }

    /// A connection that is not alone takes its place. Alone it would send at `bps` bits per second before it
    /// hears anything.
    pub(super) fn join(&mut self, id: ConnectionId, flight: Flight, bps: u64) {
        self.change(id, |ensemble| ensemble.join(id, flight, bps));
    }

    /// Where a connection sends blocks, as far as is known here.
    pub(super) fn address_of(&self, id: ConnectionId) -> Option<Prefix> {
        self.address_of.get(&id).copied()
    }

    /// A connection sends no blocks to its address any more.
    pub(super) fn leave(&mut self, id: ConnectionId) {
        self.change(id, |ensemble| ensemble.leave(id));
        let Some(address) = self.address_of.remove(&id) else { return };
        let is_over = match self.by_address.get(&address) {
            Some(Home::Alone(alone)) => *alone == id,
            Some(Home::Shared(ensemble, _)) => ensemble.is_empty(),
            None => false,
        };
        if is_over {
            self.by_address.remove(&address);
        }
    }

    /// A connection has this flight now.
    pub(super) fn set(&mut self, id: ConnectionId, flight: Flight) {
        self.change(id, |ensemble| ensemble.set(id, flight));
    }

    /// Whether a connection may send a slice now.
    pub(super) fn is_open_to(&mut self, now: Instant, id: ConnectionId) -> bool {
        self.change(id, |ensemble| ensemble.is_open_to(now, id)).unwrap_or(true)
    }

    /// A connection has sent a datagram, in a turn or without one.
    pub(super) fn on_sent(&mut self, now: Instant, id: ConnectionId, has_turn: bool) {
        self.change(id, |ensemble| ensemble.on_sent(now, id, has_turn));
    }

    /// A connection has nothing more to send now, or waits and has `left` to send.
    pub(super) fn on_nothing(&mut self, id: ConnectionId, left: Option<Left>) {
        self.change(id, |ensemble| match left {
            Some(left) => ensemble.wait(id, left),
            None => ensemble.end_turn(id),
        });
    }

    /// The connection whose turn begins now, if one does.
    pub(super) fn begin_turn(&mut self, now: Instant) -> Option<ConnectionId> {
        let &(_, address) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.change_at(address, |ensemble| ensemble.begin_turn(now))?
    }

    /// When the next turn begins, if one is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Does something with the ensemble of this connection, if it has one.
    fn change<R>(
        &mut self,
        id: ConnectionId,
        change: impl FnOnce(&mut Ensemble) -> R,
    ) -> Option<R> {
        self.change_at(*self.address_of.get(&id)?, change)
    }

    /// Does something with the ensemble of this address, and puts its deadline in order.
    fn change_at<R>(
        &mut self,
        address: Prefix,
        change: impl FnOnce(&mut Ensemble) -> R,
    ) -> Option<R> {
        let Some(Home::Shared(ensemble, due)) = self.by_address.get_mut(&address) else {
            return None;
        };
        let result = change(ensemble);
        let next = ensemble.poll_timeout();
        if next != *due {
            if let Some(before) = due.take() {
                self.due.remove(&(before, address));
            }
            self.due.extend(next.map(|next| (next, address)));
            *due = next;
        }
        Some(result)
    }

    pub(super) fn check_invariants(&self) {
        let shared = self.by_address.iter().filter_map(|(&address, home)| match home {
            Home::Shared(ensemble, due) => Some((address, ensemble, *due)),
            Home::Alone(_) => None,
        });
        let mut deadlines = BTreeSet::new();
        for (address, ensemble, due) in shared {
            ensemble.check_invariants();
            deadlines.extend(due.map(|due| (due, address)));
        }
        assert_eq!(self.due, deadlines, "the deadlines that there are");
    }
}

/// The connections that were at an address before.
pub(super) enum Arrived {
    Alone,
    BesideOne(ConnectionId),
    BesideMany,
}
