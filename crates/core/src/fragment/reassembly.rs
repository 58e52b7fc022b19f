//! Putting the packets of one peer together.
//!
//! A sequence buffer of 256 packets knows what has become of each; their bytes lie in the pool. Every
//! check of *Packet Fragmentation and Reassembly*, "Receiving Packet Fragments", is here or in the type
//! [`Fragment`], which has no illegal value.

use thiserror::Error;

use super::order::Key;
use super::{EntryNews, EntryState, Fragment, FragmentPool};
use crate::{Instant, PACKET_WINDOW, RestartWatch, Sequence, SequenceBuffer};

/// How far the window may fall behind: a quarter of a turn, many windows and half of what can be told apart.
const FAR: i64 = 1 << 14;

/// How long after its last fragment the number of a packet that was given up is free again, in milliseconds:
/// as late as a copy made by the link may arrive. After a restart the peer may use numbers that it left
/// unfinished before; if they are newer than every packet that was ever whole, nothing else shows the
/// restart.
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
    fn on_news(&mut self, news: EntryNews) {
        self.state = self.state.next(news).unwrap_or(self.state);
        if self.state != EntryState::InProgress {
            self.key = None;
        }
    }
}

/// Why a fragment was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ReassemblyError {
    /// Of a packet of more fragments than [`FragmentPoolConfig::max_fragments`].
    ///
    /// [`FragmentPoolConfig::max_fragments`]: super::FragmentPoolConfig::max_fragments
    #[error("a packet of more fragments than this end takes")]
    PacketTooBig,
    /// Older than the window of the newest 256 packets.
    #[error("older than the window of packets")]
    TooOld,
    /// It gives its packet another fragment count than the packet's first one did.
    #[error("another fragment count than the packet's first")]
    CountChanged,
    /// It is here already, or its packet was whole.
    #[error("a fragment that is here already")]
    Duplicate,
    /// Its packet had to make room for newer ones, or took too long.
    #[error("its packet was given up")]
    Evicted,
}

/// What a [`Reassembler`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReassemblerStats {
    /// Fragments that were new.
    pub fragments: u64,
    /// Packets put together.
    pub packets: u64,
    /// Times the peer was found to have started over.
    pub restarts: u64,
}

/// The packets in progress of one peer. Always to be used with the same [`FragmentPool`]: another would be
/// asked for packets by names that are good in the first only, and may hand out those of another peer.
///
/// A peer that goes away is [`clear`](Self::clear)ed; if that is forgotten its packets time out.
#[derive(Clone, Debug)]
pub struct Reassembler {
    window: SequenceBuffer<Entry, { PACKET_WINDOW as usize }>,
    restart: RestartWatch<Sequence>,
    /// This peer in the pool, while it has packets there.
    peer: Option<Key>,
    stats: ReassemblerStats,
}

impl Reassembler {
    /// Nothing heard yet. Allocates its window here, and never again.
    #[must_use]
    pub fn new() -> Self {
        Self {
            window: SequenceBuffer::new(),
            restart: RestartWatch::default(),
            peer: None,
            stats: ReassemblerStats::default(),
        }
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &ReassemblerStats {
        &self.stats
    }

    /// What is known of a sequence.
    #[must_use]
    pub fn state(&self, sequence: Sequence) -> EntryState {
        self.window.get(sequence).map_or(EntryState::Unheard, |entry| entry.state)
    }

    /// Whether a fragment with this sequence would be refused as too old.
    #[must_use]
    pub fn is_too_old(&self, sequence: Sequence) -> bool {
        self.window.is_too_old(sequence)
    }

    /// Takes in a fragment, and returns the packet if this was the last one missing. Bounded work: one
    /// copy of the fragment, or of the packet, and a few packets given up.
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
            (EntryState::InProgress, Some(key)) => self.go_on(key, fragment, pool),
            (EntryState::Unheard, _) | (EntryState::InProgress, None) => {
                Ok(self.begin(now, fragment, pool))
            }
        }
    }

    /// What is known of a packet of which a fragment has arrived.
    fn entry(
        &mut self,
        now: Instant,
        sequence: Sequence,
        pool: &FragmentPool,
    ) -> (EntryState, Option<Key>) {
        let Some(entry) = self.window.get_mut(sequence) else { return (EntryState::Unheard, None) };
        if entry.key.is_some_and(|key| pool.progress(key).is_none()) {
            entry.on_news(EntryNews::GivenUp);
        }
        let silence_ms = millis(now).wrapping_sub(entry.last_at_ms);
        entry.last_at_ms = millis(now);
        if entry.state == EntryState::Evicted && silence_ms > FREE_AFTER_MS {
            entry.on_news(EntryNews::Forgotten);
        }
        (entry.state, entry.key)
    }

    /// The first fragment of a packet that is heard.
    fn begin<'a>(
        &mut self,
        now: Instant,
        fragment: &Fragment<'a>,
        pool: &'a mut FragmentPool,
    ) -> Option<&'a [u8]> {
        self.stats.fragments += 1;
        if fragment.count() == 1 {
            self.on_whole(fragment.sequence());
            return Some(fragment.data());
        }
        let key = pool.open(now, &mut self.peer, fragment);
        self.on_news(fragment.sequence(), EntryNews::Fragment);
        if let Some(entry) = self.window.get_mut(fragment.sequence()) {
            entry.key = Some(key);
        }
        None
    }

    /// A further fragment of a packet in progress.
    fn go_on<'a>(
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
            self.on_whole(fragment.sequence());
            return Ok(Some(pool.assemble(key, fragment)));
        }
        if !pool.store(key, fragment) {
            self.on_news(fragment.sequence(), EntryNews::GivenUp);
            return Err(ReassemblyError::Evicted);
        }
        Ok(None)
    }

    fn on_whole(&mut self, sequence: Sequence) {
        self.on_news(sequence, EntryNews::LastMissing);
        self.restart.on_used(sequence);
        self.stats.packets += 1;
    }

    fn on_news(&mut self, sequence: Sequence, news: EntryNews) {
        if let Some(entry) = self.window.get_mut(sequence) {
            entry.on_news(news);
        }
    }

    /// A packet of this sequence came by another way, whole. Where fragments are rare the window stands still
    /// meanwhile, and half a turn of the numbers later what is new would look old: so it is forgotten before.
    pub fn pass(&mut self, sequence: Sequence, pool: &mut FragmentPool) {
        let newest = self.window.newest();
        if newest.is_some_and(|newest| sequence.distance_from(newest) > FAR) {
            self.clear(pool);
        }
    }

    /// Forgets everything heard of this peer, and gives its memory back.
    pub fn clear(&mut self, pool: &mut FragmentPool) {
        self.window.clear_with(|entry| forget(entry, pool));
        self.restart = RestartWatch::default();
    }

    /// Brings the window to a sequence and makes an entry for it, if there is none.
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

/// Milliseconds modulo 2^32, for differences.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is meant")]
const fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

fn forget(mut entry: Entry, pool: &mut FragmentPool) {
    if let Some(key) = entry.key {
        pool.release(key);
    }
    entry.on_news(EntryNews::Forgotten);
}

impl Default for Reassembler {
    fn default() -> Self {
        Self::new()
    }
}
