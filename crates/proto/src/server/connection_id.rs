//! The name that the application has for a connection: its place at its worker, and which worker that is.

use core::num::NonZeroU32;

use slotmap::{DefaultKey, Key as _, KeyData};

/// Bits of the place; the rest of 32 is the worker.
const PLACE_BITS: u32 = 24;

/// How many workers a server may have at most.
pub(super) const MAX_WORKERS: usize = 1 << (32 - PLACE_BITS);

/// The largest number of seats: half of a worker's places, for connections that have ended without a seat
/// have one too, until they are gone.
pub(super) const MAX_CONNECTIONS: usize = 1 << (PLACE_BITS - 1);

/// Names a connection of a server, and is never used for another one. It prints as a number.
///
/// # Examples
/// ```
/// use haulier_proto::server::ConnectionId;
/// use std::collections::HashMap;
///
/// /// A game's own state of each client, under the id that comes with its events.
/// #[derive(Default)]
/// struct Players(HashMap<ConnectionId, String>);
///
/// assert!(Players::default().0.is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    place: u32,
    /// How often the place was used.
    version: NonZeroU32,
}

impl ConnectionId {
    /// Which worker has it, counted from 0.
    #[must_use]
    pub const fn worker(self) -> usize {
        (self.place >> PLACE_BITS) as usize
    }

    /// As a number, which is never 0, for a face in another language: [`from_bits`](Self::from_bits) takes
    /// it back. It is the number that it prints as.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.version.get() as u64) << 32 | self.place as u64
    }

    /// What [`to_bits`](Self::to_bits) gave; `None` for a number that it never gives. A number that names no
    /// connection of the server is like one of a connection that has ended.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let [version, place] = halves(bits);
        NonZeroU32::new(version).map(|version| Self { place, version })
    }

    pub(super) fn new(worker: u8, key: DefaultKey) -> Self {
        let [version, place] = halves(key.data().as_ffi());
        let version = NonZeroU32::new(version).unwrap_or(NonZeroU32::MIN);
        Self { place: place | u32::from(worker) << PLACE_BITS, version }
    }

    /// Stands for one of this worker whose keys are being agreed on: the first place is never used.
    pub(super) fn coming(worker: u8) -> Self {
        Self { place: u32::from(worker) << PLACE_BITS, version: NonZeroU32::MIN }
    }

    /// Its key at its worker.
    pub(super) fn key(self) -> DefaultKey {
        let place = self.place & ((1 << PLACE_BITS) - 1);
        KeyData::from_ffi(u64::from(self.version.get()) << 32 | u64::from(place)).into()
    }
}

fn halves(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
}

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.to_bits().fmt(f)
    }
}

impl core::fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use slotmap::SlotMap;

    use super::*;

    /// A caller in another language may pass anything: it is a name of nothing, and no panic.
    #[test]
    fn a_number_that_was_never_given_is_no_name() {
        assert_eq!(ConnectionId::from_bits(0), None);
        assert_eq!(ConnectionId::from_bits(u64::from(u32::MAX)), None);
    }

    #[test]
    fn a_name_holds_its_worker_and_the_key_there() {
        let mut slots = SlotMap::new();
        let first = slots.insert(());
        slots.remove(first);
        for key in [first, slots.insert(()), slots.insert(())] {
            for worker in [0, 1, 255] {
                let id = ConnectionId::new(worker, key);
                assert_eq!((id.worker(), id.key()), (usize::from(worker), key));
                assert_ne!(id, ConnectionId::coming(worker));
                assert_eq!(ConnectionId::from_bits(id.to_bits()), Some(id));
            }
            assert_eq!(ConnectionId::new(0, key).to_string(), key.data().as_ffi().to_string());
        }
    }
}
