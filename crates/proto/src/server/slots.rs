//! The places of a server's connections, and who of them needs what when.
//!
//! A server of ten thousand idle connections must not look at all of them each time a datagram comes: those
//! with something to send stand in a line, those with something to tell in another, and the deadlines of
//! the rest are in order.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::Instant;
use crate::connection::Connection;

use super::ConnectionId;
use super::admission::Prefix;
use super::memory::RequestName;

/// Datagrams that a connection may send before the next one's turn: what a socket hands over at once (a GSO
/// batch of full datagrams has 53), and still no more than 20 KB, which nobody behind it notices.
const RUN: u8 = 16;

/// A connection and what the server knows beside it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Box<Connection>,
    pub(super) generation: u32,
    pub(super) name: RequestName,
    pub(super) prefix: Prefix,
    /// It is counted among the handshakes in progress.
    pub(super) is_handshake: bool,
    /// What it held when it was last looked at.
    memory_bytes: usize,
    deadline: Option<Instant>,
    is_ready: bool,
    has_news: bool,
}

/// The places.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Option<Slot>>,
    free: Vec<u32>,
    len: usize,
    /// What all of them hold.
    memory_bytes: usize,
    generation: u32,
    deadlines: BTreeSet<(Instant, u32)>,
    ready: VecDeque<u32>,
    /// What the first of them has sent in its turn.
    run: u8,
    news: VecDeque<u32>,
}

impl Slots {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Memory that clients make the server hold, in bytes.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The connection that holds the most of it.
    pub(super) fn greediest(&self) -> Option<u32> {
        let slots = self.places.iter().zip(0..);
        let held = slots.filter_map(|(slot, place)| Some((slot.as_ref()?.memory_bytes, place)));
        held.max().map(|(_, place)| place)
    }

    pub(super) fn insert(
        &mut self,
        connection: Connection,
        name: RequestName,
        prefix: Prefix,
    ) -> ConnectionId {
        self.generation = self.generation.wrapping_add(1);
        let slot = Slot {
            connection: Box::new(connection),
            generation: self.generation,
            name,
            prefix,
            is_handshake: true,
            memory_bytes: 0,
            deadline: None,
            is_ready: false,
            has_news: false,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(free) = self.places.get_mut(place as usize) {
            *free = Some(slot);
            self.len += 1;
        }
        ConnectionId { place, generation: self.generation }
    }

    pub(super) fn remove(&mut self, place: u32) -> Option<Slot> {
        let slot = self.places.get_mut(place as usize)?.take()?;
        if let Some(at) = slot.deadline {
            self.deadlines.remove(&(at, place));
        }
        // Long lines are walked only for who stands in them.
        if slot.is_ready {
            if self.ready.front() == Some(&place) {
                self.run = 0;
            }
            self.ready.retain(|&other| other != place);
        }
        if slot.has_news {
            self.news.retain(|&other| other != place);
        }
        self.free.push(place);
        self.memory_bytes -= slot.memory_bytes;
        self.len -= 1;
        Some(slot)
    }

    pub(super) fn slot(&self, place: u32) -> Option<&Slot> {
        self.places.get(place as usize)?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, place: u32) -> Option<&mut Slot> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Connection> {
        self.slot_mut(place).map(|slot| &mut *slot.connection)
    }

    pub(super) fn of_id(&self, id: ConnectionId) -> Option<&Slot> {
        self.slot(id.place).filter(|slot| slot.generation == id.generation)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.places.iter().zip(0..).filter_map(|(slot, place)| {
            slot.as_ref().map(|slot| ConnectionId { place, generation: slot.generation })
        })
    }

    /// Something happened to it: it may have to send, and to tell.
    pub(super) fn touch(&mut self, place: u32) {
        let Some(slot) = self.places.get_mut(place as usize).and_then(Option::as_mut) else {
            return;
        };
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(place);
        }
        let held = slot.connection.memory_bytes();
        self.memory_bytes = self.memory_bytes - slot.memory_bytes + held;
        slot.memory_bytes = held;
        if !slot.has_news && slot.connection.has_events() {
            slot.has_news = true;
            self.news.push_back(place);
        }
    }

    /// The next that may have to send. It goes to the end of the line after its turn, or out of it.
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        self.ready.front().copied()
    }

    pub(super) fn sent_one(&mut self) {
        self.run += 1;
        if self.run >= RUN {
            self.run = 0;
            self.ready.rotate_left(1);
        }
    }

    /// It has nothing more to send: until its next deadline.
    pub(super) fn rest(&mut self, place: u32) {
        self.ready.pop_front();
        self.run = 0;
        let Some(slot) = self.places.get_mut(place as usize).and_then(Option::as_mut) else {
            return;
        };
        slot.is_ready = false;
        // Sending can end a connection, and that is news.
        if !slot.has_news && slot.connection.has_events() {
            slot.has_news = true;
            self.news.push_back(place);
        }
        let deadline = slot.connection.poll_timeout();
        if slot.deadline != deadline {
            if let Some(at) = slot.deadline {
                self.deadlines.remove(&(at, place));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, place));
            }
            slot.deadline = deadline;
        }
    }

    /// The next whose deadline has passed.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, place) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        self.deadlines.remove(&(at, place));
        if let Some(slot) = self.slot_mut(place) {
            slot.deadline = None;
        }
        Some(place)
    }

    pub(super) fn next_news(&mut self) -> Option<u32> {
        self.news.front().copied()
    }

    /// It has told everything.
    pub(super) fn told(&mut self, place: u32) {
        self.news.pop_front();
        if let Some(slot) = self.slot_mut(place) {
            slot.has_news = false;
        }
    }

    pub(super) fn is_anyone_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.places.iter().flatten().count(), self.len);
        let held: usize = self.places.iter().flatten().map(|slot| slot.memory_bytes).sum();
        assert_eq!(held, self.memory_bytes, "memory held");
        for (slot, place) in self.places.iter().zip(0u32..) {
            let Some(slot) = slot else { continue };
            slot.connection.check_invariants();
            assert_eq!(slot.is_ready, self.ready.contains(&place), "in the line of senders");
            assert_eq!(slot.has_news, self.news.contains(&place), "in the line of news");
            let is_waiting = slot.deadline.is_some_and(|at| self.deadlines.contains(&(at, place)));
            assert_eq!(slot.deadline.is_some(), is_waiting, "its deadline");
        }
    }
}
