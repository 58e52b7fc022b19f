//! The memory of all packets in progress, of all peers: capped, pooled, the oldest evicted first.
//!
//! "Let's say you have a sliding window of 256 packets, 256 fragments per packet max, and each fragment is
//! 1k. That's 64 mb per client" (*Packet Fragmentation and Reassembly*, "Receiving Packet Fragments"). Here
//! a fragment that arrived takes one block of 1 KiB, and announced ones take nothing; there is a cap for
//! each peer and one for all (docs/decisions/0008-fragment-memory.md). The invariant: what is in use never
//! exceeds either cap, and equals what the packets in progress hold.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use thiserror::Error;

use super::order::{Key, Links, Order, Slab};
use super::{FRAGMENT_BYTES, Fragment, MAX_FRAGMENTS};
use crate::{BitSet, Instant, debug_as, settings};

/// Bytes charged for a stored fragment: its block, and twice its entry in the list of blocks, because
/// vectors grow by doubling.
const FRAGMENT_COST: usize = FRAGMENT_BYTES + 64;

/// Bytes charged for a packet in progress besides its fragments: twice its entry and that of its peer, for
/// the same reason.
const PACKET_COST: usize = 448;

/// Packets that may time out when one fragment arrives, which bounds the work. Two would be enough to keep
/// up, because each fragment starts at most one packet.
const MAX_TIMED_OUT_AT_ONCE: usize = 8;

settings! {
    /// The limits of a [`FragmentPool`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FragmentPoolConfig {
        /// Bytes that the packets in progress of one peer may hold.
        ///
        /// Default 1 MiB: three packets of the largest size at once, or the whole window of 256 packets with
        /// three fragments each. An honest peer stays far below.
        max_bytes_per_peer: usize = 1024 * 1024, with_max_bytes_per_peer;
        /// Bytes that the packets in progress of all peers together may hold. Default 64 MiB: what the
        /// article's window would have cost for a single peer.
        max_bytes: usize = 64 * 1024 * 1024, with_max_bytes;
        /// The maximum number of fragments of a packet, 1 to 256. Default 256. The article advises: "Consider
        /// reducing the maximum number of fragments per packet"; four are enough for many games.
        max_fragments: usize = MAX_FRAGMENTS, with_max_fragments;
        /// A packet that is not complete after this time is dropped. Default 5 s, longer than a window of 256
        /// packets lasts at 60 a second.
        timeout: Duration = Duration::from_secs(5), with_timeout;
    }
}

/// Limits under which a pool could not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// `max_fragments` is not from 1 to 256.
    #[error("max_fragments must be from 1 to {MAX_FRAGMENTS}")]
    MaxFragments,
    /// `max_bytes_per_peer` does not hold one packet of `max_fragments`.
    #[error("max_bytes_per_peer must be at least {min_bytes}, to hold one packet")]
    PeerCapTooSmall {
        /// The smallest value that works.
        min_bytes: usize,
    },
    /// `max_bytes` is less than `max_bytes_per_peer`.
    #[error("max_bytes must not be less than max_bytes_per_peer")]
    CapBelowPeerCap,
}

/// What a pool holds, and the packets that it dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Bytes in use by packets in progress.
    pub used_bytes: usize,
    /// The largest number of bytes that was ever in use.
    pub peak_bytes: usize,
    /// Packets in progress.
    pub packets: usize,
    /// Peers that have a packet in progress.
    pub peers: usize,
    /// Packets evicted because their peer was at its cap, or had more than its share when the pool was full.
    pub evicted_for_own_peer: u64,
    /// Packets evicted for a packet of another peer.
    pub evicted_for_others: u64,
    /// Packets dropped because they took too long.
    pub timed_out: u64,
}

/// One fragment of a packet.
#[derive(Clone, Debug)]
struct Block {
    data: Box<[u8; FRAGMENT_BYTES]>,
    index: u8,
    length: u16,
    /// The block of the same packet that arrived before it.
    next: Option<u32>,
}

/// A packet in progress.
#[derive(Clone, Debug)]
struct Packet {
    peer: Key,
    opened_at: Instant,
    count: u16,
    /// The fragments that have arrived.
    received: BitSet<{ MAX_FRAGMENTS / 32 }>,
    last_block: Option<u32>,
    among_all: Links,
    among_peers: Links,
}

impl Packet {
    const fn cost(&self) -> usize {
        PACKET_COST + self.received.len() * FRAGMENT_COST
    }
}

#[derive(Clone, Debug, Default)]
struct Peer {
    used_bytes: usize,
    packets: u32,
    order: Order,
}

/// Holds the fragments of incomplete packets. One for all peers of a socket.
#[derive(Clone)]
pub struct FragmentPool {
    config: FragmentPoolConfig,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    packets: Slab<Packet>,
    peers: Slab<Peer>,
    order: Order,
    /// The packet assembled last. Grows to the largest that was ever complete.
    assembled: Vec<u8>,
    stats: PoolStats,
}

debug_as! { FragmentPool: |pool| config = pool.config, stats = pool.stats }

impl Default for FragmentPool {
    fn default() -> Self {
        Self::with(FragmentPoolConfig::default())
    }
}

impl FragmentPool {
    /// An empty pool. Allocates nothing yet.
    ///
    /// # Errors
    /// [`PoolConfigError`].
    pub const fn new(config: FragmentPoolConfig) -> Result<Self, PoolConfigError> {
        if config.max_fragments == 0 || config.max_fragments > MAX_FRAGMENTS {
            return Err(PoolConfigError::MaxFragments);
        }
        let min_bytes = PACKET_COST + config.max_fragments * FRAGMENT_COST;
        if config.max_bytes_per_peer < min_bytes {
            return Err(PoolConfigError::PeerCapTooSmall { min_bytes });
        }
        if config.max_bytes < config.max_bytes_per_peer {
            return Err(PoolConfigError::CapBelowPeerCap);
        }
        Ok(Self::with(config))
    }

    const fn with(config: FragmentPoolConfig) -> Self {
        Self {
            config,
            blocks: Vec::new(),
            free_blocks: Vec::new(),
            packets: Slab::new(),
            peers: Slab::new(),
            order: Order::new(),
            assembled: Vec::new(),
            stats: PoolStats {
                used_bytes: 0,
                peak_bytes: 0,
                packets: 0,
                peers: 0,
                evicted_for_own_peer: 0,
                evicted_for_others: 0,
                timed_out: 0,
            },
        }
    }

    /// The limits.
    #[must_use]
    pub const fn config(&self) -> &FragmentPoolConfig {
        &self.config
    }

    /// What it holds, and the packets that it dropped.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        PoolStats { packets: self.packets.len(), peers: self.peers.len(), ..self.stats }
    }

    /// Memory held, in bytes: for the most packets in progress since it was last given back.
    #[doc(hidden)]
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.blocks.len() * FRAGMENT_COST
            + self.packets.places() * PACKET_COST
            + self.assembled.capacity()
    }

    /// Drops the packets that took too long. Each arriving fragment drops some as well; this frees their
    /// memory while nothing arrives.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.drop_oldest_if_late(now) {}
    }

    /// Drops a few of the packets that took too long: bounded work, for one fragment.
    pub(super) fn drop_some_late(&mut self, now: Instant) {
        for _ in 0..MAX_TIMED_OUT_AT_ONCE {
            if !self.drop_oldest_if_late(now) {
                return;
            }
        }
    }

    /// Drops the oldest packet if it took too long, and returns whether it did.
    fn drop_oldest_if_late(&mut self, now: Instant) -> bool {
        let Some(oldest) = self.order.oldest() else { return false };
        if let Some(packet) = self.packets.get_mut(oldest)
            && now.since(packet.opened_at) <= self.config.timeout
        {
            // The clock jumped ahead and came back: the time of this packet starts again.
            packet.opened_at = packet.opened_at.min(now);
            return false;
        }
        self.stats.timed_out += 1;
        self.release(oldest);
        self.give_back_if_empty();
        true
    }

    /// Gives all memory back after the last packet timed out, or its peer left: what a flood once took must
    /// not be held for ever. Where packets are completed it is kept, so that a game's next packet allocates
    /// nothing.
    pub(super) fn give_back_if_empty(&mut self) {
        if self.packets.len() == 0 {
            (self.blocks, self.free_blocks) = (Vec::new(), Vec::new());
            self.assembled = Vec::new();
            self.packets.clear_if_empty();
            self.peers.clear_if_empty();
        }
    }

    /// When the oldest packet will time out.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.order.oldest().and_then(|oldest| self.packets.get(oldest))?;
        Some(oldest.opened_at + self.config.timeout + Duration::from_nanos(1))
    }

    /// Starts a packet with its first fragment, making room for it.
    pub(super) fn open(
        &mut self,
        now: Instant,
        peer: &mut Option<Key>,
        fragment: &Fragment<'_>,
    ) -> Key {
        self.make_room(*peer, None, PACKET_COST + FRAGMENT_COST);
        let known = peer.filter(|&key| self.peers.get(key).is_some());
        let peer = *peer.insert(known.unwrap_or_else(|| self.peers.insert(Peer::default())));
        let key = self.packets.insert(Packet {
            peer,
            opened_at: now,
            #[expect(clippy::cast_possible_truncation, reason = "a count is at most 256")]
            count: fragment.count() as u16,
            received: BitSet::EMPTY,
            last_block: None,
            among_all: Links::default(),
            among_peers: Links::default(),
        });
        self.order.push(&mut self.packets, |packet| &mut packet.among_all, key);
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.packets += 1;
            peer.order.push(&mut self.packets, |packet| &mut packet.among_peers, key);
        }
        self.charge(peer, PACKET_COST);
        self.put(key, peer, fragment);
        key
    }

    /// Adds a fragment that has not arrived before, making room for it. Returns `false` if the packet itself
    /// was evicted.
    pub(super) fn store(&mut self, key: Key, fragment: &Fragment<'_>) -> bool {
        let Some(peer) = self.packets.get(key).map(|packet| packet.peer) else { return false };
        self.make_room(Some(peer), Some(key), FRAGMENT_COST);
        if self.packets.get(key).is_none() {
            return false;
        }
        self.put(key, peer, fragment);
        true
    }

    /// The number of fragments of the packet, and of those that are missing; `None` if it was dropped.
    pub(super) fn progress(&self, key: Key) -> Option<(usize, usize)> {
        let packet = self.packets.get(key)?;
        let count = usize::from(packet.count);
        Some((count, count - packet.received.len()))
    }

    pub(super) fn contains(&self, key: Key, index: usize) -> bool {
        self.packets.get(key).is_some_and(|packet| packet.received.contains(index))
    }

    /// Assembles a packet whose only missing fragment is this one, and removes it. The fragment is copied to
    /// its place without being stored.
    pub(super) fn assemble(&mut self, key: Key, missing: &Fragment<'_>) -> &[u8] {
        let mut total = 0;
        let mut at = self.packets.get(key).and_then(|packet| packet.last_block);
        let assembled = &mut self.assembled;
        let mut copy = |index: usize, data: &[u8]| {
            let start = index * FRAGMENT_BYTES;
            let end = start + data.len();
            total = total.max(end);
            if assembled.len() < end {
                assembled.resize(missing.count() * FRAGMENT_BYTES, 0);
            }
            if let Some(place) = assembled.get_mut(start..end) {
                place.copy_from_slice(data);
            }
        };
        copy(missing.index(), missing.data());
        while let Some(block) = at.and_then(|at| self.blocks.get(at as usize)) {
            let data = block.data.get(..block.length.into()).unwrap_or_default();
            copy(block.index.into(), data);
            at = block.next;
        }
        self.release(key);
        self.assembled.get(..total).unwrap_or_default()
    }

    /// Removes a packet and takes its memory back; no effect if it was dropped before.
    pub(super) fn release(&mut self, key: Key) {
        self.order.remove(&mut self.packets, |packet| &mut packet.among_all, key);
        let Some(peer_key) = self.packets.get(key).map(|packet| packet.peer) else { return };
        if let Some(peer) = self.peers.get_mut(peer_key) {
            peer.order.remove(&mut self.packets, |packet| &mut packet.among_peers, key);
        }
        let Some(packet) = self.packets.remove(key) else { return };
        let mut at = packet.last_block;
        while let Some(place) = at {
            self.free_blocks.push(place);
            at = self.blocks.get(place as usize).and_then(|block| block.next);
        }
        self.stats.used_bytes -= packet.cost();
        if let Some(peer) = self.peers.get_mut(peer_key) {
            peer.used_bytes -= packet.cost();
            peer.packets -= 1;
            if peer.packets == 0 {
                self.peers.remove(peer_key);
            }
        }
    }

    /// Gives packets up until `bytes` more are within both caps. `for_packet` is the one that wants them.
    fn make_room(&mut self, peer: Option<Key>, for_packet: Option<Key>, bytes: usize) {
        let held =
            |pool: &Self| peer.and_then(|key| pool.peers.get(key)).map_or(0, |p| p.used_bytes);
        let oldest = |pool: &Self| pool.peers.get(peer?)?.order.oldest();
        while held(self) + bytes > self.config.max_bytes_per_peer {
            let Some(victim) = oldest(self) else { break };
            self.stats.evicted_for_own_peer += 1;
            self.release(victim);
        }
        while self.stats.used_bytes + bytes > self.config.max_bytes {
            // A peer that floods pays for it: above an equal share it makes room from its own packets,
            // except the one that the room is for. With many peers the share is less than one packet.
            let has_more = held(self) * self.peers.len() > self.stats.used_bytes;
            let own = oldest(self).filter(|&own| has_more && Some(own) != for_packet);
            let Some(victim) = own.or_else(|| self.oldest_but(for_packet)) else { break };
            match own {
                Some(_) => self.stats.evicted_for_own_peer += 1,
                None => self.stats.evicted_for_others += 1,
            }
            self.release(victim);
        }
    }

    /// The oldest packet of all, or the second oldest if that is `spared` and there is another.
    fn oldest_but(&self, spared: Option<Key>) -> Option<Key> {
        let oldest = self.order.oldest()?;
        if Some(oldest) != spared {
            return Some(oldest);
        }
        self.packets.get(oldest).and_then(|packet| packet.among_all.newer()).or(Some(oldest))
    }

    fn put(&mut self, key: Key, peer: Key, fragment: &Fragment<'_>) {
        let place = self.free_blocks.pop().unwrap_or_else(|| {
            let data = Box::new([0; FRAGMENT_BYTES]);
            self.blocks.push(Block { data, index: 0, length: 0, next: None });
            u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX)
        });
        let (Some(packet), Some(block)) =
            (self.packets.get_mut(key), self.blocks.get_mut(place as usize))
        else {
            return;
        };
        #[expect(clippy::cast_possible_truncation, reason = "an index is under 256, a length 1024")]
        {
            block.index = fragment.index() as u8;
            block.length = fragment.data().len() as u16;
        }
        if let Some(data) = block.data.get_mut(..fragment.data().len()) {
            data.copy_from_slice(fragment.data());
        }
        block.next = packet.last_block.replace(place);
        packet.received.insert(fragment.index());
        self.charge(peer, FRAGMENT_COST);
    }

    fn charge(&mut self, peer: Key, bytes: usize) {
        self.stats.used_bytes += bytes;
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.stats.used_bytes);
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.used_bytes += bytes;
        }
    }

    /// Panics if the counts do not add up or a cap is exceeded. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        let used: usize = self.packets.values().map(Packet::cost).sum();
        assert_eq!(used, self.stats.used_bytes, "what the packets hold");
        assert!(used <= self.config.max_bytes, "{used} bytes are over the cap");
        let by_peers: usize = self.peers.values().map(|peer| peer.used_bytes).sum();
        assert_eq!(by_peers, used, "what the peers hold");
        let max = self.peers.values().map(|peer| peer.used_bytes).max().unwrap_or(0);
        assert!(max <= self.config.max_bytes_per_peer, "a peer holds {max} bytes");
        let stored: usize = self.packets.values().map(|packet| packet.received.len()).sum();
        assert_eq!(stored + self.free_blocks.len(), self.blocks.len(), "blocks");
        for packet in self.packets.values() {
            assert!(packet.received.len() < packet.count.into(), "fragments");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sequence;

    /// The pool kept its maximum memory: 64 MiB after one flood, which no count of memory showed.
    #[test]
    fn memory_is_given_back_when_the_last_packet_timed_out() {
        let (mut pool, mut peer) = (FragmentPool::default(), None);
        let data = [1; FRAGMENT_BYTES];
        let mut keys = Vec::new();
        for n in 0..100 {
            let fragment = Fragment::new(Sequence::new(n), 0, 2, &data).unwrap();
            keys.push(pool.open(Instant::from_millis(n.into()), &mut peer, &fragment));
        }
        pool.handle_timeout(Instant::from_millis(5_050));
        assert!(pool.stats().packets > 0 && pool.held_bytes() > 100_000, "some are in time");
        pool.handle_timeout(Instant::from_millis(6_000));
        pool.check_invariants();
        assert_eq!((pool.stats().used_bytes, pool.held_bytes()), (0, 0));
        // Old keys do not find new packets in their place.
        let fragment = Fragment::new(Sequence::new(200), 0, 2, &data).unwrap();
        let key = pool.open(Instant::from_millis(6_000), &mut peer, &fragment);
        assert!(keys.iter().all(|&old| pool.progress(old).is_none()));
        assert_eq!(pool.progress(key), Some((2, 1)));
        pool.check_invariants();
    }
}
