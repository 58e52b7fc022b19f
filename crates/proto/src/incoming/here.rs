//! What the application has already: whole blocks by their root, or some of their chunks (STANDARD-1,
//! 4.2.6).
//!
//! The invariant: at most 64 roots, as many as a sender remembers.

use alloc::vec::Vec;

use crate::bulk::tree::Value;

/// Roots that a sender remembers (H-4.2k).
const MAX_ROOTS: usize = 64;

/// Bytes of the map of a chunks here frame: it fits every datagram, and says 1 GiB.
pub(super) const MAP_BYTES: usize = 512;

/// How much of a block the application has.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Here {
    /// All of it.
    Whole,
    /// The chunks whose bit is 1: bit `i` of the map is chunk `i`, the lowest bit of each byte first. They
    /// were verified against the root. With [`Delivery::Blocks`](super::Delivery) they are not used.
    Chunks(Vec<u8>),
}

impl core::fmt::Debug for Here {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Whole => f.write_str("Whole"),
            Self::Chunks(map) => write!(f, "Chunks({} bytes)", map.len()),
        }
    }
}

#[derive(Debug)]
struct Root {
    root: Value,
    here: Here,
    is_heard: bool,
}

/// The application's list of what it has.
#[derive(Debug)]
pub(super) struct Roots(Vec<Root>);

impl Roots {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a root; `is_heard` if the sender has it from the hello. Returns its place, if it is new and
    /// there is room, or if some of its chunks were here and now others are.
    pub(super) fn add(&mut self, root: Value, here: Here, is_heard: bool) -> Option<u8> {
        if let Some((place, known)) = (0..=u8::MAX).zip(&mut self.0).find(|(_, it)| it.root == root)
        {
            // The application may lose chunks that it had: a disk may not have kept what it confirmed.
            let (Here::Chunks(before), Here::Chunks(now)) = (&mut known.here, here) else {
                return None;
            };
            *before = now;
            return Some(place);
        }
        if self.0.len() >= MAX_ROOTS {
            return None;
        }
        self.0.push(Root { root, here, is_heard });
        u8::try_from(self.0.len() - 1).ok()
    }

    /// What the application has of the block with this root, and the root's place in the list.
    pub(super) fn find(&self, root: &Value) -> Option<(u8, &Here)> {
        let places = (0..=u8::MAX).zip(&self.0);
        let mut found = places.filter(|(_, known)| known.root == *root);
        found.next().map(|(place, known)| (place, &known.here))
    }

    pub(super) fn get(&self, place: u8) -> Option<&Value> {
        self.0.get(usize::from(place)).map(|known| &known.root)
    }

    pub(super) fn is_heard(&self, place: u8) -> bool {
        self.0.get(usize::from(place)).is_some_and(|known| known.is_heard)
    }

    pub(super) fn on_heard(&mut self, place: u8) {
        if let Some(known) = self.0.get_mut(usize::from(place)) {
            known.is_heard = true;
        }
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let maps = self.0.iter().map(|known| match &known.here {
            Here::Whole => 0,
            Here::Chunks(map) => map.capacity(),
        });
        self.0.capacity() * size_of::<Root>() + maps.sum::<usize>()
    }
}
