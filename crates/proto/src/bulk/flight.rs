//! What went out and what became of it, in the order of packet numbers.
//!
//! The invariant: entries before `settled` have a fate, and those from it on have none yet. A fate is not
//! final: a datagram that was overtaken by more than any before it counts as lost, and comes to life when it
//! is acknowledged after all.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::Instant;
use crate::chunk::ChunkId;

/// Settled entries kept, for acks that come late: as many numbers as one ack names.
const KEPT: usize = 1024;

/// Overtaking up to this is learned; beyond it a datagram is lost, and if it comes after all, it was sent
/// twice.
const MOST_REORDERING: Duration = Duration::from_millis(50);

/// A slice as it is counted: sources from 0, repair slices from 256.
pub(crate) type Symbol = u16;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not known yet.
    InFlight,
    /// It is acknowledged.
    Received,
    /// It passed the bottleneck and was lost behind it.
    Lost,
    /// It found the queue full, if the model is right.
    Dropped,
    /// Nothing was heard for long: it counts for nothing.
    GivenUp,
}

/// A datagram that went out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    /// On the wire, UDP and IP counted.
    pub(crate) bytes: f64,
    pub(crate) slice: Option<(ChunkId, Symbol)>,
    pub(crate) fate: Fate,
    /// Bytes in the modelled queue when it had joined, itself counted.
    pub(crate) backlog: f64,
}

/// Datagrams in flight, and the newest that no longer are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flights {
    entries: VecDeque<Flight>,
    /// Entries before this place have a fate.
    settled: usize,
    /// The furthest that a datagram was overtaken by others, in time between the two sendings.
    reordering: Duration,
    largest_received: Option<u64>,
}

impl Flights {
    pub(crate) fn push(&mut self, flight: Flight) {
        self.entries.push_back(flight);
    }

    pub(crate) const fn largest_received(&self) -> Option<u64> {
        self.largest_received
    }

    /// The place of this number, or of the next one above.
    pub(crate) fn place(&self, number: u64) -> usize {
        self.entries.partition_point(|flight| flight.number < number)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Flight> {
        self.entries.get(self.place(number)).filter(|flight| flight.number == number)
    }

    pub(crate) fn last(&self) -> Option<&Flight> {
        self.entries.back()
    }

    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = &Flight> {
        self.entries.range(place.min(self.entries.len())..)
    }

    pub(crate) fn each_mut(&mut self, place: usize) -> impl Iterator<Item = &mut Flight> {
        let place = place.min(self.entries.len());
        self.entries.range_mut(place..)
    }

    pub(crate) const fn settled(&self) -> usize {
        self.settled
    }

    /// Marks a range of numbers as received. `news` hears of each that was not before, with its fate till
    /// then.
    pub(crate) fn on_received(
        &mut self,
        numbers: core::ops::RangeInclusive<u64>,
        mut news: impl FnMut(&Flight, Fate),
    ) {
        let newest = self.largest_received.and_then(|largest| self.get(largest)).map(|f| f.sent_at);
        let start = self.place(*numbers.start());
        for flight in self.entries.range_mut(start..) {
            if flight.number > *numbers.end() {
                break;
            }
            if flight.fate == Fate::Received {
                continue;
            }
            let before = core::mem::replace(&mut flight.fate, Fate::Received);
            let is_late = matches!(before, Fate::Lost | Fate::Dropped);
            if let Some(newest) = newest.filter(|&newest| is_late && newest > flight.sent_at) {
                // A quarter more, so that the next one like it is waited for.
                let overtaken = newest.since(flight.sent_at);
                let overtaken = (overtaken + overtaken / 4).min(MOST_REORDERING);
                self.reordering = self.reordering.max(overtaken);
            }
            self.largest_received = self.largest_received.max(Some(flight.number));
            news(flight, before);
        }
    }

    /// Settles what is received, or was overtaken for longer than any that came. `settle` says what became of
    /// each: it gets those that have no fate, and chooses.
    pub(crate) fn settle(&mut self, mut settle: impl FnMut(&Flight) -> Fate) {
        let Some(newest) = self.largest_received.and_then(|largest| self.get(largest)).copied()
        else {
            return;
        };
        while let Some(flight) = self.entries.get_mut(self.settled) {
            let is_overtaken = flight.number < newest.number
                && newest.sent_at.since(flight.sent_at) >= self.reordering;
            if flight.fate == Fate::InFlight && !is_overtaken {
                break;
            }
            flight.fate = settle(flight);
            self.settled += 1;
        }
        while self.settled > KEPT {
            self.entries.pop_front();
            self.settled -= 1;
        }
    }

    /// Nothing was heard for long: what is in flight counts for nothing any more. Returns how many these are.
    pub(crate) fn give_up(&mut self) -> usize {
        let mut given_up = 0;
        for flight in self.entries.range_mut(self.settled..) {
            if flight.fate == Fate::InFlight {
                flight.fate = Fate::GivenUp;
                given_up += 1;
            }
        }
        self.settled = self.entries.len();
        while self.settled > KEPT {
            self.entries.pop_front();
            self.settled -= 1;
        }
        given_up
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.settled <= self.entries.len());
        let numbers = || self.entries.iter().map(|flight| flight.number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        let settled = self.entries.range(..self.settled);
        assert!(settled.into_iter().all(|flight| flight.fate != Fate::InFlight), "a fate for each");
    }
}
