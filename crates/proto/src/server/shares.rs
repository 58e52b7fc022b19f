//! The memory that one source uses of a server, and the choice of the connection that ends when clients
//! together hold too much.
//!
//! Memory is counted by source prefix, and by client where tokens name clients: many connections that hold
//! little each are one source that holds much. So an honest client with a large block stays, and the
//! connections of a source that together hold more are closed, the largest first.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::ConnectionId;
use super::admission::{ClientName, Prefix};
use super::slots::Holder;
use super::worker::Worker;
use crate::Instant;
use crate::connection::CloseCode;

/// A client or prefix whose connections count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Client(ClientName),
    Prefix(Prefix),
}

impl Source {
    fn has(self, holder: &Holder) -> bool {
        match self {
            Self::Client(client) => holder.client == Some(client),
            Self::Prefix(prefix) => holder.prefix == prefix,
        }
    }
}

impl Worker {
    /// If clients together hold more memory than they may, forgets connections that have ended, and then
    /// closes the largest connection of the source that holds the most. Of several workers each that holds
    /// more than its part does so; if all together hold too much, at least one does.
    pub(super) fn enforce_memory_limit(&mut self, now: Instant) {
        let (all, others) = (self.rules.config.limits.memory_bytes, self.others_hold());
        if self.memory_bytes() + others > all && self.memory_bytes() <= self.part_of(all) {
            self.calls_others = true;
            return;
        }
        // The memory that the others leave, and never less than this worker's part.
        let max_bytes = all.saturating_sub(others).max(self.part_of(all));
        while self.memory_bytes() > max_bytes && self.lingering.forget_first() {}
        if self.memory_bytes() <= max_bytes {
            return;
        }
        let holders: Vec<_> = self.slots.holders().collect();
        let Some(source) = heaviest(&holders) else { return };
        let Some(id) = largest(&holders, source) else { return };
        if let Some(connection) = self.slots.connection_mut(id) {
            connection.close(now, CloseCode::RESOURCES, "");
            connection.drop_unread();
        }
        self.refresh(id);
    }

    /// A worker's part of the memory that all may hold.
    fn part_of(&self, all: usize) -> usize {
        all / self.board.workers()
    }
}

/// The source whose connections together hold the most.
fn heaviest(holders: &[Holder]) -> Option<Source> {
    let mut held = BTreeMap::<Source, usize>::new();
    for holder in holders {
        let client = holder.client.map(Source::Client);
        for source in client.into_iter().chain([Source::Prefix(holder.prefix)]) {
            *held.entry(source).or_default() += holder.memory_bytes;
        }
    }
    // Of equals the client is chosen before the prefix: other clients may be behind the prefix.
    held.into_iter().rev().max_by_key(|&(_, bytes)| bytes).map(|(source, _)| source)
}

/// The largest connection of this source; if clients are named, of the client that holds the most.
fn largest(holders: &[Holder], source: Source) -> Option<ConnectionId> {
    let holders = || holders.iter().filter(|holder| source.has(holder));
    let mut held = BTreeMap::<ClientName, usize>::new();
    for holder in holders() {
        if let Some(client) = holder.client {
            *held.entry(client).or_default() += holder.memory_bytes;
        }
    }
    let total = |holder: &&Holder| {
        let of_client = holder.client.and_then(|client| held.get(&client));
        (of_client.copied().unwrap_or(holder.memory_bytes), holder.memory_bytes)
    };
    holders().max_by_key(total).map(|holder| holder.id)
}

#[cfg(test)]
mod tests {
    use slotmap::SlotMap;

    use super::*;

    /// The index of the connection that is closed. Each has a prefix, a client and the bytes that it holds.
    fn goes(all: &[(u8, Option<u8>, usize)]) -> Option<usize> {
        let mut ids = SlotMap::new();
        let holders: Vec<_> = all
            .iter()
            .map(|&(prefix, client, memory_bytes)| Holder {
                id: ConnectionId::new(0, ids.insert(())),
                prefix: Prefix::of(([192, 0, 2, prefix], 9).into()),
                client: client.map(|client| [client; 8]),
                memory_bytes,
            })
            .collect();
        let id = largest(&holders, heaviest(&holders)?);
        holders.iter().position(|holder| Some(holder.id) == id)
    }

    #[test]
    fn the_source_that_holds_the_most_loses_its_largest() {
        assert_eq!(goes(&[]), None);
        assert_eq!(goes(&[(1, None, 9), (2, None, 16), (1, None, 8)]), Some(0));
        assert_eq!(goes(&[(1, None, 7), (2, None, 16), (1, None, 8)]), Some(1));
        // One client at many addresses.
        assert_eq!(
            goes(&[(1, Some(1), 6), (2, None, 16), (3, Some(1), 7), (4, Some(1), 5)]),
            Some(2)
        );
        // Behind one address the connections of one client count together.
        let (ana, ben) = (Some(1), Some(2));
        assert_eq!(goes(&[(1, ana, 6), (1, ben, 8), (1, ana, 5), (2, None, 10)]), Some(0));
    }
}
