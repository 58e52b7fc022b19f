//! The article's receiver with one of its fixes taken out, so that one can see the hang that it prevents.
//!
//! Each of the three hangs is an ack that is not sent again, because a slice was dropped before it could make
//! one due. So a fault is a filter in front of the receiver of the product, which stays as it is. The
//! invariant: without the fault the same run ends.

use std::collections::{BTreeMap, BTreeSet};

use haulier_article::packet::article::ArticlePacket;
use haulier_article::{ProtocolId, packet};

/// What the receiver has forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Hang 1: a slice that it has is dropped, and not acknowledged again.
    Duplicates,
    /// Hang 2: while the finished chunk waits to be read, every slice is dropped.
    Unread,
    /// Hang 3: after the chunk was read, slices of it are dropped.
    Previous,
}

impl Fault {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Duplicates, Self::Unread, Self::Previous];

    /// Its name in the text of a scene.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicates => "duplicates",
            Self::Unread => "unread",
            Self::Previous => "previous",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// Drops what a receiver with the fault would.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    fault: Option<Fault>,
    /// Of each chunk, the slices that came through, and how many it has.
    came: BTreeMap<u16, (BTreeSet<usize>, usize)>,
}

impl Filter {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self { fault, came: BTreeMap::new() }
    }

    /// Whether this datagram does not reach the receiver.
    pub(super) fn drops(&mut self, datagram: &[u8]) -> bool {
        let Some(fault) = self.fault else { return false };
        let Ok(ArticlePacket::Slice(slice)) = packet::read(ProtocolId::ARTICLE, datagram) else {
            return false;
        };
        let count = slice.index().count().get();
        let (came, _) =
            self.came.entry(slice.chunk_id().get()).or_insert_with(|| (BTreeSet::new(), count));
        let is_whole = came.len() == count;
        let is_new = came.insert(slice.index().get());
        match fault {
            Fault::Duplicates => !is_new,
            Fault::Unread | Fault::Previous => is_whole,
        }
    }
}
