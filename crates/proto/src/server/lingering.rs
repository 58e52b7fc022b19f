//! Connections that have ended, for the clients that may not have received the close (STANDARD-1, 5.3).
//!
//! A client that still sends gets the close again. A reset would only say that the connection does not exist.
//! The invariants: an address is sent at most as many bytes because of such a connection as were received
//! for it, in at most one datagram each [`MIN_INTERVAL`]; and the number of these connections is at most the
//! number of connections that the server may have.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use super::memory::RequestName;
use crate::connection::LastWords;
use crate::wire::WireId;
use crate::{FourTuple, Instant};

/// The minimum time between two closes to one client: the shortest interval at which a close is sent unasked.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// The bytes that an entry takes besides its close: itself, and its places in the three maps.
const ENTRY_BYTES: usize =
    size_of::<Entry>() + 3 * size_of::<WireId>() + size_of::<RequestName>() + size_of::<Instant>();

/// The record of a connection that has ended.
#[derive(Debug)]
struct Entry {
    /// The request to which its close is a response.
    request: Option<RequestName>,
    address: FourTuple,
    /// Empty if no key was left to seal it with: datagrams are then dropped.
    close: Box<[u8]>,
    /// Bytes that may be sent to `address`.
    credit: usize,
    next_at: Instant,
    /// The earliest time of the next close to other addresses: a separate limit, so that a stranger cannot
    /// silence the answers to the client.
    next_elsewhere_at: Instant,
    until: Instant,
}

/// The connections that have ended.
#[derive(Debug)]
pub(super) struct Lingering {
    capacity: usize,
    entries: BTreeMap<WireId, Entry>,
    by_request: BTreeMap<RequestName, WireId>,
    by_end: BTreeSet<(Instant, WireId)>,
    memory_bytes: usize,
}

impl Lingering {
    /// Holds at most `capacity` connections, the maximum of the server: all can end at once, when it shuts
    /// down.
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: BTreeMap::new(),
            by_request: BTreeMap::new(),
            by_end: BTreeSet::new(),
            memory_bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(super) fn has(&self, id: WireId) -> bool {
        self.entries.contains_key(&id)
    }

    /// A connection has ended. If there are too many, the one that would be forgotten next is forgotten.
    pub(super) fn insert(&mut self, now: Instant, id: WireId, name: RequestName, last: LastWords) {
        self.forget_old(now);
        if self.capacity == 0 {
            return;
        }
        while self.len() >= self.capacity {
            self.forget_first();
        }
        let LastWords { close, is_response, address, credit, lasts } = last;
        let close = close.into_boxed_slice();
        let request = is_response.then_some(name);
        let until = now + lasts;
        self.memory_bytes += ENTRY_BYTES + close.len();
        self.by_request.extend(request.map(|name| (name, id)));
        self.by_end.insert((until, id));
        let (next_at, next_elsewhere_at) = (now, now);
        let entry = Entry { request, address, close, credit, next_at, next_elsewhere_at, until };
        self.entries.insert(id, entry);
    }

    /// Forgets those whose time is over.
    pub(super) fn forget_old(&mut self, now: Instant) {
        while self.by_end.first().is_some_and(|(until, _)| *until <= now) {
            self.forget_first();
        }
    }

    /// Forgets the one that would be forgotten next. Returns whether there was one.
    pub(super) fn forget_first(&mut self) -> bool {
        let Some((_, id)) = self.by_end.pop_first() else { return false };
        if let Some(entry) = self.entries.remove(&id) {
            self.memory_bytes -= ENTRY_BYTES + entry.close.len();
            if let Some(name) = entry.request {
                self.by_request.remove(&name);
            }
        }
        true
    }

    /// The connection that this request began, if its client may still be asking, and is here.
    pub(super) fn of_request(&self, name: &RequestName, from: FourTuple) -> Option<WireId> {
        let id = self.by_request.get(name)?;
        self.entries.get(id).filter(|entry| entry.address.has_remote_of(from)).map(|_| *id)
    }

    /// The close to send, if any, now that a datagram of `bytes` bytes for this connection has arrived. It
    /// need not be the client's, so it pays for what it causes.
    pub(super) fn on_datagram(
        &mut self,
        now: Instant,
        id: WireId,
        from: FourTuple,
        bytes: usize,
    ) -> Option<&[u8]> {
        let entry = self.entries.get_mut(&id)?;
        let is_there = entry.address.has_remote_of(from);
        if is_there {
            entry.credit = entry.credit.saturating_add(bytes);
        }
        // From elsewhere it may be anybody: it gets what it has sent, at most.
        let (credit, next_at) = match is_there {
            true => (entry.credit, &mut entry.next_at),
            false => (bytes, &mut entry.next_elsewhere_at),
        };
        let length = entry.close.len();
        if length == 0 || length > credit || now < *next_at {
            return None;
        }
        *next_at = now + MIN_INTERVAL;
        if is_there {
            entry.credit -= length;
        }
        Some(&entry.close)
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.len() <= self.capacity);
        assert_eq!(self.by_end.len(), self.len());
        let held = self.entries.values().map(|entry| ENTRY_BYTES + entry.close.len());
        assert_eq!(held.sum::<usize>(), self.memory_bytes, "memory held");
        let requests = self.entries.values().filter(|entry| entry.request.is_some());
        assert_eq!(requests.count(), self.by_request.len());
        for (&id, entry) in &self.entries {
            assert!(entry.request.is_none_or(|name| self.by_request.get(&name) == Some(&id)));
            assert!(self.by_end.contains(&(entry.until, id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> FourTuple {
        FourTuple::new(([10, 0, 0, 1], port).into())
    }

    fn words(bytes: usize, credit: usize, seconds: u64) -> LastWords {
        let lasts = Duration::from_secs(seconds);
        let close = alloc::vec![7; bytes];
        LastWords { close, is_response: true, address: at(1), credit, lasts }
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Whatever arrives, and from wherever: no address is sent more than came from it, and the credit.
    #[test]
    fn a_close_is_never_more_than_what_asked_for_it() {
        let mut lingering = Lingering::new(4);
        lingering.insert(ms(0), WireId([1; 8]), [1; 16], words(100, 150, 60));
        let mut ask = |millis, port, bytes| {
            let out = lingering.on_datagram(ms(millis), WireId([1; 8]), at(port), bytes);
            out.map_or(0, <[u8]>::len)
        };
        assert_eq!(ask(0, 1, 30), 100, "of 180, 80 are left");
        assert_eq!(ask(10, 1, 30), 0, "too soon, but it counts: 110");
        assert_eq!(ask(50, 1, 0), 100, "10 are left");
        assert_eq!(ask(100, 1, 89), 0);
        assert_eq!(ask(100, 1, 1), 100);
        assert_eq!(ask(200, 2, 99), 0, "somebody else pays at once");
        assert_eq!(ask(200, 2, 100), 100);
        assert_eq!(ask(200, 3, 100), 0, "as seldom");
        assert_eq!(ask(200, 1, 100), 100, "which does not silence the client's");
        let (mut received, mut sent) = (0, 0);
        for step in 0..10_000u64 {
            let bytes = usize::try_from(step * 7 % 90).unwrap();
            received += bytes;
            sent += ask(300 + step * 3, 1, bytes);
            assert!(sent <= received, "{sent} bytes for {received}");
        }
        assert!(sent > 50_000, "{sent} bytes: one each 50 ms");
    }

    #[test]
    fn the_first_to_be_forgotten_makes_room_and_nothing_is_left() {
        let mut lingering = Lingering::new(2);
        for n in 0..100 {
            lingering.insert(
                ms(0),
                WireId([n; 8]),
                [n; 16],
                words(n.into(), 0, 200 - u64::from(n)),
            );
            lingering.check_invariants();
        }
        assert!(lingering.has(WireId([0; 8])) && lingering.has(WireId([99; 8])));
        assert_eq!(lingering.of_request(&[99; 16], at(1)), Some(WireId([99; 8])));
        assert_eq!(lingering.of_request(&[99; 16], at(2)), None);
        lingering.forget_old(ms(101_000));
        assert!(lingering.has(WireId([0; 8])) && lingering.len() == 1);
        lingering.forget_old(ms(200_000));
        assert_eq!((lingering.len(), lingering.memory_bytes()), (0, 0));
        lingering.check_invariants();
        let mut none = Lingering::new(0);
        none.insert(ms(0), WireId([1; 8]), [1; 16], words(1, 0, 1));
        assert_eq!(none.len(), 0);
    }
}
