//! Reassembly of the packets of one peer.
//!
//! A sequence buffer has the state of the newest 256 packets; their bytes are in the pool. Every check of
//! *Packet Fragmentation and Reassembly*, "Receiving Packet Fragments", is here or in the type [`Fragment`],
//! which has no illegal value.

use thiserror::Error;

use super::order::Key;
use super::{EntryState, EntryTrigger, Fragment, FragmentPool};
use crate::{Instant, PACKET_WINDOW, RestartWatch, Sequence, SequenceBuffer};

/// How far the window may fall behind: a quarter of the sequence space, which is half of the distance that
/// can be ordered.
const MAX_BEHIND: i64 = 1 << 14;

/// How long after its last fragment the sequence of an evicted packet can be used again, in milliseconds:
/// the maximum delay of a copy made by the link. After a restart the peer may reuse sequences of packets
/// that it left incomplete; if these are newer than every complete packet, nothing else shows the restart.
const FREE_AFTER_MS: u32 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Entry {
    state: EntryState,
    /// Where its fragments are, while it is in progress.
    key: Option<Key>,
    /// When its last fragment arrived, as [`millis`] of it: half as large as an instant.
    last_at_ms: u32,
}

impl Entry {
    fn on_news(&mut self, news: EntryTrigger) {
        self.state = self.state.next(news).unwrap_or(self.state);
        if self.state != EntryState::InProgress {
            self.key = None;
        }
    }
}

/// Why a fragment was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ReassemblyError {
    /// Its packet has more fragments than [`FragmentPoolConfig::max_fragments`].
    ///
    /// [`FragmentPoolConfig::max_fragments`]: super::FragmentPoolConfig::max_fragments
    #[error("the packet has more fragments than max_fragments")]
    PacketTooBig,
    /// Older than the window of the newest 256 packets.
    #[error("older than the window of packets")]
    TooOld,
    /// Its fragment count differs from that of its packet's first fragment.
    #[error("the fragment count differs from the packet's first fragment")]
    CountChanged,
    /// It was received before, or its packet is complete.
    #[error("the fragment was received before")]
    Duplicate,
    /// Its packet was dropped to make room, or because it took too long.
    #[error("its packet was evicted")]
    Evicted,
}

/// Counters of a [`Reassembler`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReassemblerStats {
    /// Fragments that were new.
    pub fragments: u64,
    /// Packets completed.
    pub packets: u64,
    /// Detected restarts of the peer.
    pub restarts: u64,
}

/// The packets in progress of one peer. Always use it with the same [`FragmentPool`]: its keys are valid in
/// that pool only, and in another may name packets of another peer.
///
/// Call [`clear`](Self::clear) when the peer disconnects; otherwise its packets time out.
#[derive(Clone, Debug)]
pub struct Reassembler {
    window: SequenceBuffer<Entry, { PACKET_WINDOW as usize }>,
    restart: RestartWatch<Sequence>,
    /// This peer in the pool, while it has packets there.
    peer: Option<Key>,
    stats: ReassemblerStats,
}

impl Reassembler {
    /// Nothing received yet. The window is allocated here, and never again.
    #[must_use]
    pub fn new() -> Self {
        Self {
            window: SequenceBuffer::new(),
            restart: RestartWatch::default(),
            peer: None,
            stats: ReassemblerStats::default(),
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> &ReassemblerStats {
        &self.stats
    }

    /// The state of a sequence.
    #[must_use]
    pub fn state(&self, sequence: Sequence) -> EntryState {
        self.window.get(sequence).map_or(EntryState::Unheard, |entry| entry.state)
    }

    /// Whether a fragment with this sequence would be refused as too old.
    #[must_use]
    pub fn is_too_old(&self, sequence: Sequence) -> bool {
        self.window.is_too_old(sequence)
    }

    /// Receives a fragment, and returns the packet if this was the last one missing. The work is bounded:
    /// one copy of the fragment, or of the packet, and a few evictions.
    ///
    /// # Errors
    /// Why the fragment was not used.
    pub fn handle_fragment<'a>(
        &mut self,
        now: Instant,
        fragment: &Fragment<'a>,
        pool: &'a mut FragmentPool,
    ) -> Result<Option<&'a [u8]>, ReassemblyError> {
        if fragment.count() > pool.config().max_fragments {
            return Err(ReassemblyError::PacketTooBig);
        }
        pool.drop_some_late(now);
        self.advance_to(now, fragment.sequence(), pool)?;
        match self.entry(now, fragment.sequence(), pool) {
            (EntryState::Delivered, _) => Err(ReassemblyError::Duplicate),
            (EntryState::Evicted, _) => Err(ReassemblyError::Evicted),
            (EntryState::InProgress, Some(key)) => self.add(key, fragment, pool),
            (EntryState::Unheard, _) | (EntryState::InProgress, None) => {
                Ok(self.begin(now, fragment, pool))
            }
        }
    }

    /// The state of the packet of a fragment that arrived.
    fn entry(
        &mut self,
        now: Instant,
        sequence: Sequence,
        pool: &FragmentPool,
    ) -> (EntryState, Option<Key>) {
        let Some(entry) = self.window.get_mut(sequence) else { return (EntryState::Unheard, None) };
        if entry.key.is_some_and(|key| pool.progress(key).is_none()) {
            entry.on_news(EntryTrigger::GivenUp);
        }
        let silence_ms = millis(now).wrapping_sub(entry.last_at_ms);
        entry.last_at_ms = millis(now);
        if entry.state == EntryState::Evicted && silence_ms > FREE_AFTER_MS {
            entry.on_news(EntryTrigger::Forgotten);
        }
        (entry.state, entry.key)
    }

    /// Begins a packet with the first of its fragments to arrive.
    fn begin<'a>(
        &mut self,
        now: Instant,
        fragment: &Fragment<'a>,
        pool: &'a mut FragmentPool,
    ) -> Option<&'a [u8]> {
        self.stats.fragments += 1;
        if fragment.count() == 1 {
            self.on_complete(fragment.sequence());
            return Some(fragment.data());
        }
        let key = pool.open(now, &mut self.peer, fragment);
        self.on_news(fragment.sequence(), EntryTrigger::Fragment);
        if let Some(entry) = self.window.get_mut(fragment.sequence()) {
            entry.key = Some(key);
        }
        None
    }

    /// Adds a fragment to a packet in progress.
    fn add<'a>(
        &mut self,
        key: Key,
        fragment: &Fragment<'a>,
        pool: &'a mut FragmentPool,
    ) -> Result<Option<&'a [u8]>, ReassemblyError> {
        let (count, missing) = pool.progress(key).ok_or(ReassemblyError::Evicted)?;
        if count != fragment.count() {
            return Err(ReassemblyError::CountChanged);
        }
        if pool.contains(key, fragment.index()) {
            return Err(ReassemblyError::Duplicate);
        }
        self.stats.fragments += 1;
        if missing == 1 {
            self.on_complete(fragment.sequence());
            return Ok(Some(pool.assemble(key, fragment)));
        }
        if !pool.store(key, fragment) {
            self.on_news(fragment.sequence(), EntryTrigger::GivenUp);
            return Err(ReassemblyError::Evicted);
        }
        Ok(None)
    }

    fn on_complete(&mut self, sequence: Sequence) {
        self.on_news(sequence, EntryTrigger::LastMissing);
        self.restart.on_used(sequence);
        self.stats.packets += 1;
    }

    fn on_news(&mut self, sequence: Sequence, news: EntryTrigger) {
        if let Some(entry) = self.window.get_mut(sequence) {
            entry.on_news(news);
        }
    }

    /// A packet with this sequence arrived unfragmented. Where fragments are rare the window does not
    /// advance in that time, and new sequences would look old once they are half the sequence space ahead.
    /// So the window is cleared before that.
    pub fn pass(&mut self, sequence: Sequence, pool: &mut FragmentPool) {
        let newest = self.window.newest();
        if newest.is_some_and(|newest| sequence.distance_from(newest) > MAX_BEHIND) {
            self.clear(pool);
        }
    }

    /// Forgets everything received from this peer, and frees its memory.
    pub fn clear(&mut self, pool: &mut FragmentPool) {
        self.window.clear_with(|entry| forget(entry, pool));
        pool.give_back_if_empty();
        self.restart = RestartWatch::default();
    }

    /// Advances the window to a sequence, and creates its entry if it has no entry yet.
    fn advance_to(
        &mut self,
        now: Instant,
        sequence: Sequence,
        pool: &mut FragmentPool,
    ) -> Result<(), ReassemblyError> {
        let is_too_old = self.window.is_too_old(sequence);
        if self.restart.on_received(now, sequence, is_too_old).is_some() {
            self.stats.restarts += 1;
            self.clear(pool);
        } else if is_too_old {
            return Err(ReassemblyError::TooOld);
        }
        if self.window.get(sequence).is_none() {
            let entry = Entry { state: EntryState::Unheard, key: None, last_at_ms: millis(now) };
            let _ = self.window.insert_with(sequence, entry, |old| forget(old, pool));
        }
        Ok(())
    }

    /// Panics if the window contradicts itself. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.window.check_invariants();
    }
}

/// Milliseconds modulo 2^32, to take differences of.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is meant")]
const fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

fn forget(mut entry: Entry, pool: &mut FragmentPool) {
    if let Some(key) = entry.key {
        pool.release(key);
    }
    entry.on_news(EntryTrigger::Forgotten);
}

impl Default for Reassembler {
    fn default() -> Self {
        Self::new()
    }
}
