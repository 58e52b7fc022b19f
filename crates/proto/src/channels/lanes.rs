//! Lanes: the order in which an application's data is sent.
//!
//! The data comes from sources: the packets, each channel, the blocks. Each source has a [`Lane`], a priority
//! and a weight. Of the sources that have data ready, the one with the highest priority always goes first;
//! within one priority each source gets its weight's share of the bytes.
//!
//! The share is kept by start-time fair queueing: each source has a virtual time, which advances by bytes
//! divided by weight when it sends, and the source with the lowest virtual time goes next. In contrast to
//! deficit round robin there is no quantum to choose, a source is never more than one item away from its
//! share, and an item's size may be known only after it was sent, which suits messages that are cut to the
//! room in a datagram. A source that had nothing ready for a while starts at the virtual time of the others:
//! it has nothing to make up for, and cannot be starved.
//!
//! The invariant: between two sources of one priority that always have something ready, bytes by weight
//! differ by at most one item of each.

use alloc::vec::Vec;

/// Virtual time of one byte at weight 1. With it a `u64` lasts for 2^48 bytes, and weights are exact to one
/// in 2^16.
const SCALE: u64 = 1 << 16;

/// A source's priority and weight among the others.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{Lane, LaneError};
///
/// let voice = Lane::new(200, 1)?; // before packets, which have 192
/// let half = Lane::new(128, 16)?; // as much as 16 channels together
/// assert!(voice.priority() > half.priority());
/// # Ok::<(), LaneError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    priority: u8,
    weight: u16,
}

/// A lane that cannot work. The message says which lanes do.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{Lane, LaneError};
///
/// assert_eq!(Lane::new(128, 0), Err(LaneError::NoWeight));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    /// `weight` is 0: nothing would be sent.
    #[error("`weight` must be at least 1, or nothing would be sent")]
    NoWeight,
}

impl Lane {
    /// Packets go first, because they are out of date soonest. Between the defaults, above and below them
    /// there is room for others.
    pub(crate) const PACKETS: Self = Self { priority: 192, weight: 1 };

    /// Then messages, all channels alike.
    pub(crate) const MESSAGES: Self = Self { priority: 128, weight: 1 };

    /// Then blocks, which are large and can wait.
    pub(crate) const BLOCKS: Self = Self { priority: 64, weight: 1 };

    /// Of those that have something to send, the highest `priority` goes first; within a priority each gets
    /// its `weight`'s share of the bytes.
    ///
    /// # Errors
    /// [`LaneError::NoWeight`] if `weight` is 0.
    pub const fn new(priority: u8, weight: u16) -> Result<Self, LaneError> {
        if weight == 0 { Err(LaneError::NoWeight) } else { Ok(Self { priority, weight }) }
    }

    /// The highest goes first.
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.priority
    }

    /// The share within its priority; at least 1.
    #[must_use]
    pub const fn weight(self) -> u16 {
        self.weight
    }
}

/// Where data comes from.
///
/// # Examples
/// ```
/// use haulier_proto::connection::Source;
///
/// // For `set_lane`: what stands in which lane.
/// let all_that_wait = [Source::Packets, Source::Channel(0), Source::Blocks];
/// assert!(all_that_wait.contains(&Source::Channel(0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Packets and their fragments.
    Packets,
    /// The messages of a channel.
    Channel(u8),
    /// The slices of blocks.
    Blocks,
}

impl Source {
    /// The order of H-4.3, which holds until the application says otherwise.
    const fn default_lane(self) -> Lane {
        match self {
            Self::Packets => Lane::PACKETS,
            Self::Channel(_) => Lane::MESSAGES,
            Self::Blocks => Lane::BLOCKS,
        }
    }
}

/// A source that was ready once, or whose lane was set.
#[derive(Clone, Copy, Debug)]
struct Entry {
    source: Source,
    lane: Lane,
    virtual_time: u64,
    /// The last turn at which it was ready.
    ready_at: u32,
}

/// Says which source goes next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    /// In the order of their sources.
    entries: Vec<Entry>,
    /// For each priority in use, how far the last source that sent was when it did.
    clocks: Vec<(u8, u64)>,
    /// Counts the calls of [`next`](Self::next); wraps.
    turn: u32,
}

impl Lanes {
    /// All sources in their default lanes.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Moves a source to another lane, from its next turn on.
    pub(crate) fn set(&mut self, source: Source, lane: Lane) {
        let at = self.place_or_insert(source);
        let now = self.clock(lane.priority);
        let entry = &mut self.entries[at];
        if entry.lane.priority != lane.priority {
            entry.virtual_time = now;
        }
        entry.lane = lane;
    }

    /// The lane of a source.
    pub(crate) fn lane(&self, source: Source) -> Lane {
        self.place(source).map_or_else(|_| source.default_lane(), |at| self.entries[at].lane)
    }

    /// The source that goes next into a datagram with `room` bytes left. `ready` has each source that has
    /// data to send exactly once, with the smallest room that its next item takes; the order of [`Source`]
    /// costs the least time. A source whose item does not fit is skipped, and keeps its place. Channels that
    /// share the rate with blocks take part only if `is_gate_open`. `None` if nothing fits.
    pub(crate) fn next_if(
        &mut self,
        room: usize,
        ready: impl IntoIterator<Item = (Source, usize)>,
        is_gate_open: bool,
    ) -> Option<Source> {
        let before = self.turn;
        self.turn = self.turn.wrapping_add(1);
        let (mut best, mut expected): (Option<Entry>, _) = (None, 0);
        for (source, bytes) in ready {
            if !is_gate_open && self.is_shared(source) {
                continue;
            }
            let is_expected = |entry: &Entry| entry.source == source;
            let at = match self.entries.get(expected).is_some_and(is_expected) {
                true => expected,
                false => self.place_or_insert(source),
            };
            expected = at + 1;
            let clock = self.clock(self.entries[at].lane.priority);
            let entry = &mut self.entries[at];
            if entry.ready_at != before {
                entry.virtual_time = entry.virtual_time.max(clock);
            }
            entry.ready_at = self.turn;
            let is_better = best.is_none_or(|best| entry.goes_before(&best));
            if bytes <= room && is_better {
                best = Some(*entry);
            }
        }
        best.map(|best| best.source)
    }

    /// The source that goes next with an open gate, as in [`next_if`](Self::next_if).
    #[cfg(test)]
    pub(crate) fn next(
        &mut self,
        room: usize,
        ready: impl IntoIterator<Item = (Source, usize)>,
    ) -> Option<Source> {
        self.next_if(room, ready, true)
    }

    /// This many bytes of a source were put into a datagram.
    pub(crate) fn on_sent(&mut self, source: Source, bytes: usize) {
        let at = self.place_or_insert(source);
        let Entry { lane, virtual_time, .. } = self.entries[at];
        let cost = (bytes as u64).saturating_mul(SCALE) / u64::from(lane.weight);
        self.entries[at].virtual_time = virtual_time.saturating_add(cost.max(1));
        match self.clocks.iter_mut().find(|(priority, _)| *priority == lane.priority) {
            Some((_, clock)) => *clock = virtual_time.max(*clock),
            None => {
                self.clocks.reserve_exact(1);
                self.clocks.push((lane.priority, virtual_time));
            }
        }
    }

    /// Whether this is a channel that shares the rate with blocks: a channel of a higher priority would take
    /// all of the rate anyway, and does not wait for it.
    pub(crate) fn is_shared(&self, source: Source) -> bool {
        matches!(source, Source::Channel(_))
            && self.lane(source).priority <= self.lane(Source::Blocks).priority
    }

    fn clock(&self, priority: u8) -> u64 {
        let found = self.clocks.iter().find(|(other, _)| *other == priority);
        found.map_or(0, |(_, clock)| *clock)
    }

    fn place(&self, source: Source) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&source, |entry| entry.source)
    }

    fn place_or_insert(&mut self, source: Source) -> usize {
        self.place(source).unwrap_or_else(|at| {
            let (lane, ready_at) = (source.default_lane(), self.turn.wrapping_sub(1));
            let virtual_time = self.clock(lane.priority);
            // No more than there are: a connection has few.
            self.entries.reserve_exact(1);
            self.entries.insert(at, Entry { source, lane, virtual_time, ready_at });
            at
        })
    }
}

impl Entry {
    /// The higher priority, then the one that is least far; of equals, the first in `ready`.
    fn goes_before(&self, other: &Self) -> bool {
        let rank = |entry: &Self| (core::cmp::Reverse(entry.lane.priority), entry.virtual_time);
        rank(self) < rank(other)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = 1200;

    fn lane(priority: u8, weight: u16) -> Lane {
        Lane::new(priority, weight).unwrap()
    }

    /// Sends `turns` items of those that are always ready. Returns the bytes of each channel.
    fn run(lanes: &mut Lanes, sizes: &[usize], turns: usize) -> Vec<u64> {
        let mut sent = alloc::vec![0; sizes.len()];
        for _ in 0..turns {
            let ready = (0..).map(Source::Channel).zip(sizes.iter().copied());
            let Some(Source::Channel(n)) = lanes.next(ROOM, ready) else { break };
            let bytes = sizes[usize::from(n)];
            lanes.on_sent(Source::Channel(n), bytes);
            sent[usize::from(n)] += bytes as u64;
        }
        sent
    }

    #[test]
    fn the_default_order_is_packets_messages_slices() {
        let mut lanes = Lanes::new();
        let all = [(Source::Blocks, 9), (Source::Channel(3), 9), (Source::Packets, 9)];
        for (ready, first) in [
            (&all[..], Source::Packets),
            (&all[..2], Source::Channel(3)),
            (&all[..1], Source::Blocks),
        ] {
            for _ in 0..5 {
                assert_eq!(lanes.next(ROOM, ready.iter().copied()), Some(first));
                lanes.on_sent(first, 9);
            }
        }
        assert_eq!(lanes.next(8, all), None);
        assert_eq!(lanes.next(ROOM, []), None);
    }

    #[test]
    fn what_does_not_fit_is_passed_by_and_keeps_its_place() {
        let mut lanes = Lanes::new();
        let ready = [(Source::Packets, 500), (Source::Channel(0), 100)];
        assert_eq!(lanes.next(400, ready), Some(Source::Channel(0)));
        lanes.on_sent(Source::Channel(0), 100);
        assert_eq!(lanes.next(500, ready), Some(Source::Packets));
    }

    /// One that sent alone for long, and one that was silent for long, share from then on.
    #[test]
    fn nobody_makes_up_for_the_time_in_which_it_had_nothing() {
        let mut lanes = Lanes::new();
        assert_eq!(run(&mut lanes, &[1000], 1000), [1_000_000]);
        let shared = run(&mut lanes, &[1000, 1000], 100);
        assert!(shared.iter().all(|&bytes| (49_000..=51_000).contains(&bytes)), "{shared:?}");
        // The first is silent, the second goes on, and the first comes back.
        for _ in 0..1000 {
            assert_eq!(lanes.next(ROOM, [(Source::Channel(1), 9)]), Some(Source::Channel(1)));
            lanes.on_sent(Source::Channel(1), 1000);
        }
        let shared = run(&mut lanes, &[1000, 1000], 100);
        assert!(shared.iter().all(|&bytes| (49_000..=51_000).contains(&bytes)), "{shared:?}");
    }

    #[test]
    fn a_source_that_changes_its_lane_starts_with_the_others() {
        let mut lanes = Lanes::new();
        run(&mut lanes, &[1000, 1000], 1000);
        // It has sent far more than they, which counts for nothing in the other lane.
        for _ in 0..5000 {
            assert_eq!(lanes.next(ROOM, [(Source::Blocks, 9)]), Some(Source::Blocks));
            lanes.on_sent(Source::Blocks, 1000);
        }
        lanes.set(Source::Blocks, lane(128, 2));
        assert_eq!(lanes.lane(Source::Blocks), lane(128, 2));
        let mut slices = 0;
        for _ in 0..100 {
            let ready = [Source::Channel(0), Source::Channel(1), Source::Blocks].map(|s| (s, 9));
            let next = lanes.next(ROOM, ready).unwrap();
            lanes.on_sent(next, 1000);
            slices += u32::from(next == Source::Blocks);
        }
        assert!((49..=51).contains(&slices), "{slices}");
    }

    #[test]
    fn a_weight_of_0_is_refused_by_name() {
        let error = Lane::new(7, 0).unwrap_err();
        assert_eq!(error, LaneError::NoWeight);
        assert!(alloc::format!("{error}").contains("`weight`"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// By weight, no two that are always ready differ by more than an item of each: so nobody starves.
        #[test]
        fn each_gets_its_share_within_one_item(
            sources in prop::collection::vec((1..300u16, 1..=ROOM), 2..8), turns in 1..2000usize,
        ) {
            let mut lanes = Lanes::new();
            for (n, &(weight, _)) in (0..).zip(&sources) {
                lanes.set(Source::Channel(n), lane(5, weight));
            }
            let sizes: Vec<usize> = sources.iter().map(|&(_, bytes)| bytes).collect();
            let sent = run(&mut lanes, &sizes, turns);
            let share = |n: usize| sent[n] as f64 / f64::from(sources[n].0);
            let item = |n: usize| sizes[n] as f64 / f64::from(sources[n].0);
            for a in 0..sources.len() {
                for b in 0..a {
                    let allowed = item(a) + item(b) + 0.001 * turns as f64;
                    prop_assert!((share(a) - share(b)).abs() <= allowed, "{a} and {b}: {sent:?}");
                }
            }
        }

        /// Whatever comes and goes: no source is served while one of a higher priority is ready and fits,
        /// and in one priority no source waits for longer than it takes to serve the others by weight.
        #[test]
        fn priorities_are_strict_and_nothing_starves(
            lanes_of in prop::collection::vec((0..3u8, 1..5u16), 2..7),
            turns in prop::collection::vec((any::<u8>(), 1..=ROOM, 1..=ROOM), 1..500),
        ) {
            let mut lanes = Lanes::new();
            for (n, &(priority, weight)) in (0..).zip(&lanes_of) {
                lanes.set(Source::Channel(n), lane(priority, weight));
            }
            let mut waited: BTreeMap<u8, u64> = BTreeMap::new();
            for (mask, bytes, room) in turns {
                let is_ready = |n: &u8| mask >> n & 1 == 1;
                let ready: Vec<u8> = (0..u8::try_from(lanes_of.len()).unwrap()).filter(is_ready).collect();
                let next = lanes.next(room, ready.iter().map(|&n| (Source::Channel(n), bytes)));
                prop_assert_eq!(next.is_some(), bytes <= room && !ready.is_empty());
                let Some(Source::Channel(next)) = next else { continue };
                let priority = lanes_of[usize::from(next)].0;
                waited.retain(|n, _| is_ready(n));
                for n in ready {
                    let other = lanes_of[usize::from(n)].0;
                    prop_assert!(other <= priority, "{other} waits for {priority}");
                    if n != next && other == priority {
                        let bytes = bytes as u64;
                        let waits = waited.entry(n).and_modify(|w| *w += bytes).or_insert(bytes);
                        // Each of the others: its weight's share of one item of this one, and an item.
                        let most: u64 = lanes_of.iter().map(|&(_, weight)| u64::from(weight) + 1).sum();
                        prop_assert!(*waits <= 2 * most * ROOM as u64, "{n} waited for {waits} bytes");
                    }
                }
                waited.remove(&next);
                lanes.on_sent(Source::Channel(next), bytes);
            }
        }
    }
}
