//! When packing pays, and a part of a file that is packed.
//!
//! A link that is slower than packing waits for fewer bytes; one that is faster would wait for the packer.
//! So packing ends when nothing was on its way as a part was ready, and two speeds say that it did not pay,
//! in bytes of files: that of the link, as the connection has measured it, and that of packing, as the last
//! parts had it, from being asked for to being there. That holds what the other clients leave of the
//! processors; and a link that has more than it is given, because of a limit, is never idle. One that nobody
//! has measured yet is taken for slow: 1 MiB of a file costs 7 ms then, where a slow link saves seconds.
//!
//! The invariant: what is packed together are bytes of one file, and was compared with its tree if that is
//! known.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use haulier_proto::connection::BlockTree;

use super::library::{Library, Served};
use crate::chunks::CHUNK_BYTES;
use crate::errors::ReadError;
use crate::giver::Made;
use crate::packing::{Packer, Packing};
use crate::reader::{FileHasher, SourceFile, hash_spans, read_spans};
use crate::reason::{Fault, Reason};

/// How fast packing is taken for before a part was packed: text at zstd's level 1 on one thread, in bytes per
/// second.
const FIRST_SPEED: f64 = 140e6;

/// Of what a part says of the speed, this share counts: a single one may have waited for the disk.
const SPEED_GAIN: f64 = 0.25;

/// Bytes of files that are packed and on their way at a time, at most: six parts of 2 MiB. A link that holds
/// more is faster than that in a round trip.
const MAX_IN_FLIGHT_BYTES: f64 = (6 * (2 << 20)) as f64;

/// A link is fast if this many checks in a row find it fast: the first packet trains of a radio link look
/// faster than the link is.
const FAST_LOOKS: u32 = 2;

/// Chunks of a file, evenly spread, that decide whether packing pays for any of it: 2 MiB, as much as a part
/// has.
const SAMPLES: u64 = 8;

/// The first chunks of a part, which decide whether it is packed: a quarter of it.
const FIRST_CHUNKS: usize = 2;

/// What a connection knows of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkSpeed {
    /// Bits per second, headers included; `None` while it is not known.
    pub bandwidth_bps: Option<u64>,
    /// The round trip; `None` while it is not known.
    pub rtt: Option<Duration>,
}

impl LinkSpeed {
    /// The latest measurements: `None` for one that was not made yet.
    #[must_use]
    pub const fn new(bandwidth_bps: Option<u64>, rtt: Option<Duration>) -> Self {
        Self { bandwidth_bps, rtt }
    }
}

/// Whether the link is slower than packing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes of files that are packed in a second.
    speed: f64,
    /// Nothing was on its way when the last part was ready: the link waited for it.
    is_link_idle: bool,
    fast_looks: u32,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self { speed: FIRST_SPEED, is_link_idle: false, fast_looks: 0 }
    }

    /// A part of `bytes` bytes was packed in the time `took`, which includes waiting for a thread and for the
    /// disk. `is_link_idle`: the link had nothing else to send by then.
    pub(super) fn learn(&mut self, bytes: u64, took: Duration, is_link_idle: bool) {
        self.is_link_idle = is_link_idle;
        if bytes > 0 && took > Duration::ZERO {
            let speed = bytes as f64 / took.as_secs_f64();
            self.speed += SPEED_GAIN * (speed - self.speed);
        }
    }

    /// Looks at the link, before a part is made.
    pub(super) fn is_link_faster(&mut self, link: LinkSpeed) -> bool {
        let Some(bandwidth) = link.bandwidth_bps else { return false };
        let rtt = link.rtt.unwrap_or_default().as_secs_f64();
        let in_flight = MAX_IN_FLIGHT_BYTES / rtt.max(1e-9);
        let bandwidth = bandwidth as f64 / 8.0;
        let is_fast = bandwidth > in_flight || (self.is_link_idle && bandwidth > self.speed);
        self.fast_looks = if is_fast { self.fast_looks + 1 } else { 0 };
        self.fast_looks >= FAST_LOOKS
    }
}

/// A part that is to be packed.
pub(super) struct PackedPart {
    pub(super) index: usize,
    pub(super) offset: u64,
    pub(super) max_bytes: u64,
    pub(super) packing: Packing,
    /// It is not known yet whether packing pays for this file.
    pub(super) is_first: bool,
}

impl PackedPart {
    /// Reads and packs it, if it pays.
    pub(super) fn make(&self, library: &Library) -> Result<(Made, Option<BlockTree>), Fault> {
        let served = library.file(self.index).ok_or(Reason::Unreadable)?;
        let tree = served.known_tree();
        let mut packer =
            Packer::new().map_err(|error| Fault::new(Reason::Other, &error.to_string()))?;
        library.read(self.index, tree.as_ref(), |served, file| {
            self.pack(served, file, tree.as_ref(), &mut packer)
        })
    }

    fn pack(
        &self,
        served: &Served,
        file: &SourceFile,
        tree: Option<&BlockTree>,
        packer: &mut Packer,
    ) -> Result<(Made, Option<BlockTree>), ReadError> {
        let size = file.version().bytes;
        let part = self.offset..size.min(self.offset.saturating_add(self.max_bytes));
        let is_auto = self.packing == Packing::Auto;
        if is_auto && self.is_first && !pays_for(file, packer)? {
            return Ok((Made::Unpacked, None));
        }
        let chunks: Vec<Bytes> = match tree {
            Some(tree) => read_known(file, tree, part.clone()),
            // Read without the lock, so that other parts are made meanwhile.
            None => {
                let mut hashed = FileHasher::default();
                let chunks = hashed.read_part(file, part.clone());
                served.hasher().take_over(hashed);
                chunks
            }
        }?;
        let length = part.end.saturating_sub(part.start);
        let first = chunks.get(..FIRST_CHUNKS).unwrap_or(&chunks);
        if is_auto && !packer.pays(first) {
            let tree = hash_spans(file, &[part])?;
            return Ok((Made::Part { length }, Some(tree)));
        }
        let packed: Vec<Bytes> = chunks.iter().map(|chunk| packer.pack(chunk)).collect();
        Ok((Made::Packed { bytes: packed.concat().into(), length }, None))
    }
}

/// Whether what is all over a file shrinks.
fn pays_for(file: &SourceFile, packer: &mut Packer) -> Result<bool, ReadError> {
    let samples: Result<Vec<Bytes>, _> =
        sampled(file.version().bytes).map(|chunk| read_spans(file, &[chunk], None)).collect();
    Ok(packer.pays(&samples?))
}

fn sampled(size: u64) -> impl Iterator<Item = Range<u64>> {
    let chunk = CHUNK_BYTES as u64;
    let chunks = size.div_ceil(chunk);
    let samples = chunks.min(SAMPLES);
    (0..samples).map(move |at| {
        let start = at * chunks / samples * chunk;
        start..size.min(start + chunk)
    })
}

/// The chunks of a part of a file whose tree is known.
fn read_known(
    file: &SourceFile,
    tree: &BlockTree,
    part: Range<u64>,
) -> Result<Vec<Bytes>, ReadError> {
    let chunk = CHUNK_BYTES as u64;
    let starts = (part.start..part.end).step_by(CHUNK_BYTES);
    starts
        .map(|start| {
            let index = u32::try_from(start / chunk).unwrap_or(u32::MAX);
            let range = start..part.end.min(start + chunk);
            read_spans(file, &[range], Some((tree, index)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(mbit: u64, rtt_ms: u64) -> LinkSpeed {
        LinkSpeed::new(Some(mbit * 1_000_000), Some(Duration::from_millis(rtt_ms)))
    }

    #[test]
    fn links_that_are_slower_than_packing_are_packed_for() {
        let mut pace = Pace::new();
        for link in [LinkSpeed::default(), mbit(20, 50), mbit(100, 300), mbit(1000, 1)] {
            assert!((0..5).all(|_| !pace.is_link_faster(link)), "{link:?}");
        }
        // 12 MiB in a round trip of 200 ms are 500 Mbit/s.
        for (link, is_idle) in [(mbit(1500, 1), true), (mbit(600, 200), false)] {
            let mut pace = Pace::new();
            pace.learn(2 << 20, Duration::from_millis(15), is_idle);
            assert!(!pace.is_link_faster(link), "one look is none");
            assert!(pace.is_link_faster(link), "{link:?}");
        }
    }

    /// With a hundred clients each waits for the processors, and only for the slowest it still pays.
    #[test]
    fn packing_that_has_become_slow_pays_for_slower_links_only() {
        let mut pace = Pace::new();
        (0..20).for_each(|_| pace.learn(2 << 20, Duration::from_millis(420), true));
        assert!((0..5).all(|_| !pace.is_link_faster(mbit(20, 50))));
        assert!((0..2).fold(false, |_, _| pace.is_link_faster(mbit(100, 50))));
    }

    /// A limit of the server makes a fast link slow, and nobody measures that.
    #[test]
    fn a_link_that_always_has_something_to_carry_is_packed_for() {
        let mut pace = Pace::new();
        pace.learn(2 << 20, Duration::from_millis(15), false);
        assert!((0..5).all(|_| !pace.is_link_faster(mbit(5000, 1))));
    }

    #[test]
    fn a_file_is_judged_by_chunks_from_all_over_it() {
        let chunk = CHUNK_BYTES as u64;
        let starts = |size| sampled(size).map(|it| it.start / chunk).collect::<Vec<_>>();
        assert_eq!(starts(800 * chunk), [0, 100, 200, 300, 400, 500, 600, 700]);
        assert_eq!(starts(3 * chunk - 1), [0, 1, 2]);
        assert_eq!(sampled(3 * chunk - 1).last(), Some(2 * chunk..3 * chunk - 1));
        assert_eq!(sampled(0).count(), 0);
    }
}
