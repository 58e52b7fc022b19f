//! Datagrams to be sent, end to end in one buffer.
//!
//! A machine composes each datagram where it will be sent from, so a batch is not copied again. Neighbours
//! of equal length to one address can be sent with one call (generic segmentation offload). The invariant:
//! the ends of the datagrams never fall, and the last one is the length of the buffer.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use crate::debug_as;
use crate::{Ecn, FourTuple};

/// Datagrams on their way out, in order, each with where it goes.
///
/// ```
/// use haulier_core::{Batch, FourTuple};
///
/// let to = FourTuple::new("192.0.2.1:4000".parse()?);
/// let mut batch = Batch::new(32);
/// batch.compose(|datagram| {
///     datagram.vec().extend_from_slice(b"hello");
///     Some(to)
/// });
/// assert!(batch.iter().eq([(to, &b"hello"[..])]));
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    datagrams: Vec<Entry>,
    max_datagrams: usize,
}

debug_as! { Batch: |batch| datagrams = batch.len(), bytes = batch.bytes.len() }

#[derive(Clone, Copy, Debug)]
struct Entry {
    path: FourTuple,
    end: usize,
    ecn: Ecn,
    is_alone: bool,
}

impl Batch {
    /// An empty batch for up to `max_datagrams`. It allocates as it fills, and keeps its memory when
    /// cleared.
    #[must_use]
    pub const fn new(max_datagrams: usize) -> Self {
        Self { bytes: Vec::new(), datagrams: Vec::new(), max_datagrams }
    }

    /// The number of datagrams.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether it holds no datagram.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Whether it holds as many datagrams as it may.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.datagrams.len() >= self.max_datagrams
    }

    /// Removes all datagrams, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
    }

    /// Appends the datagram that `compose` writes, and returns its length. If it returns `None`, or the batch
    /// is full, nothing is appended.
    #[doc(hidden)]
    pub fn compose(
        &mut self,
        compose: impl FnOnce(&mut DatagramBuffer<'_>) -> Option<FourTuple>,
    ) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        let start = self.bytes.len();
        let mut datagram = DatagramBuffer::behind(&mut self.bytes);
        let composed = compose(&mut datagram);
        let (ecn, is_alone) = (datagram.ecn, datagram.is_alone);
        let Some(path) = composed else {
            self.bytes.truncate(start);
            return None;
        };
        let end = self.bytes.len().max(start);
        self.bytes.resize(end, 0);
        self.datagrams.push(Entry { path, end, ecn, is_alone });
        Some(end - start)
    }

    /// Appends a copy of `datagram`. Returns whether there was room.
    pub fn push(&mut self, path: FourTuple, datagram: &[u8]) -> bool {
        let pushed = self.compose(|buffer| {
            buffer.vec().extend_from_slice(datagram);
            Some(path)
        });
        pushed.is_some()
    }

    /// The datagrams, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FourTuple, &[u8])> {
        self.iter_marked().map(|(path, _, datagram)| (path, datagram))
    }

    /// The datagrams, in order, each with the ECN field to send it with: for a transport that can set it.
    pub fn iter_marked(&self) -> impl Iterator<Item = (FourTuple, Ecn, &[u8])> {
        let mut start = 0;
        self.datagrams.iter().map(move |entry| {
            let datagram = self.bytes.get(start..entry.end).unwrap_or_default();
            start = entry.end;
            (entry.path, entry.ecn, datagram)
        })
    }

    /// The datagrams from `first` on that one call of the system can send: neighbours of one length to one
    /// place with one ECN field, of which the last may be shorter. At most `max_datagrams` of them, and
    /// `max_bytes`; but always one, if `first` is there. One that may be too long for the path is alone: the
    /// call fails with it.
    #[doc(hidden)]
    #[must_use]
    pub fn run(&self, first: usize, max_datagrams: usize, max_bytes: usize) -> Option<Run<'_>> {
        let start = first.checked_sub(1).and_then(|at| self.datagrams.get(at)).map_or(0, |e| e.end);
        let &Entry { path, mut end, ecn, is_alone } = self.datagrams.get(first)?;
        let segment_bytes = end - start;
        let mut datagrams = 1;
        let max_datagrams = if is_alone { 1 } else { max_datagrams };
        for next in self.datagrams.iter().skip(first + 1).take(max_datagrams.saturating_sub(1)) {
            let is_behind_a_full_one = end - start == datagrams * segment_bytes;
            // An empty datagram would add nothing to the bytes, and so would not be there.
            let fits = (1..=segment_bytes).contains(&(next.end - end))
                && next.end - start <= max_bytes
                && !next.is_alone;
            if (next.path, next.ecn) != (path, ecn) || !is_behind_a_full_one || !fits {
                break;
            }
            (datagrams, end) = (datagrams + 1, next.end);
        }
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        Some(Run { path, ecn, bytes, segment_bytes, datagrams })
    }

    /// Removes the datagrams that `take` takes; it is asked about each, in order. The others stay, in order.
    #[doc(hidden)]
    pub fn take_if(&mut self, mut take: impl FnMut(FourTuple, &[u8]) -> bool) {
        let (mut from, mut kept_end, mut kept) = (0, 0, 0);
        for at in 0..self.datagrams.len() {
            let Some(&entry) = self.datagrams.get(at) else { break };
            let datagram = self.bytes.get(from..entry.end).unwrap_or_default();
            if !take(entry.path, datagram) {
                self.bytes.copy_within(from..entry.end, kept_end);
                kept_end += entry.end - from;
                if let Some(place) = self.datagrams.get_mut(kept) {
                    *place = Entry { end: kept_end, ..entry };
                }
                kept += 1;
            }
            from = entry.end;
        }
        self.datagrams.truncate(kept);
        self.bytes.truncate(kept_end);
    }

    /// The datagrams, to be changed: to be decrypted in place, or corrupted by a simulated link.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FourTuple, &mut [u8])> {
        let mut rest = &mut self.bytes[..];
        let mut start = 0;
        self.datagrams.iter().map(move |entry| {
            let length = (entry.end - start).min(rest.len());
            let (datagram, behind) = core::mem::take(&mut rest).split_at_mut(length);
            (rest, start) = (behind, entry.end);
            (entry.path, datagram)
        })
    }
}

/// Datagrams that lie end to end and that one call of the system can send.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where they go.
    pub path: FourTuple,
    /// The ECN field of each.
    pub ecn: Ecn,
    /// All of them, end to end.
    pub bytes: &'a [u8],
    /// The length of each but the last, which may be shorter.
    pub segment_bytes: usize,
    /// The number of datagrams, 1 or more.
    pub datagrams: usize,
}

debug_as! {
    Run['_]: |run|
    path = run.path,
    ecn = run.ecn,
    datagrams = run.datagrams,
    segment_bytes = run.segment_bytes,
    bytes = run.bytes.len(),
}

/// The datagram being composed at the end of a [`Batch`]. It derefs to its own bytes alone.
pub struct DatagramBuffer<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    ecn: Ecn,
    is_alone: bool,
}

debug_as! { DatagramBuffer['_]: |datagram| bytes = datagram.len() }

impl<'a> DatagramBuffer<'a> {
    /// A datagram that begins after the present contents of `bytes`: for a caller without a batch.
    #[must_use]
    pub const fn behind(bytes: &'a mut Vec<u8>) -> Self {
        let start = bytes.len();
        Self { bytes, start, ecn: Ecn::NotEct, is_alone: false }
    }

    /// It is to be sent with this ECN field, where that can be set.
    pub const fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    /// It may be too long for the path, and is sent in a call of its own.
    pub const fn set_alone(&mut self) {
        self.is_alone = true;
    }

    /// The buffer, to append to. Bytes before the datagram must not be touched.
    pub const fn vec(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// Shortens the datagram to its first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.start.saturating_add(length));
    }
}

impl Deref for DatagramBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl DerefMut for DatagramBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn path(port: u16) -> FourTuple {
        FourTuple::new(core::net::SocketAddr::from(([192, 0, 2, 1], port)))
    }

    #[test]
    fn an_unfinished_datagram_leaves_no_trace() {
        let mut batch = Batch::new(3);
        assert!(batch.push(path(1), b"one"));
        let given_up = batch.compose(|datagram| {
            datagram.vec().extend_from_slice(b"half");
            assert_eq!(&**datagram, b"half", "only its own bytes");
            datagram.truncate(1);
            assert_eq!(&**datagram, b"h");
            None
        });
        assert_eq!(given_up, None);
        assert!(batch.push(path(2), b""), "an empty datagram is one");
        assert_eq!(batch.compose(|_| Some(path(3))), Some(0));
        assert!(batch.is_full() && !batch.push(path(4), b"more"));
        let all: Vec<_> = batch.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect();
        assert_eq!(all, [(path(1), b"one".to_vec()), (path(2), vec![]), (path(3), vec![])]);
        for (_, datagram) in batch.iter_mut() {
            datagram.reverse();
        }
        assert_eq!(batch.iter().next(), Some((path(1), &b"eno"[..])));
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }

    #[test]
    fn what_is_taken_leaves_the_others_as_they_were() {
        let datagrams = [(1, &b"one"[..]), (2, b""), (1, b"three"), (3, b"4"), (2, b"five5")];
        for taken in 0..1 << datagrams.len() {
            let mut batch = Batch::new(datagrams.len());
            datagrams.iter().for_each(|&(port, bytes)| assert!(batch.push(path(port), bytes)));
            let (mut asked, mut left) = (vec![], vec![]);
            batch.take_if(|path, bytes| {
                asked.push((path.remote.port(), bytes.to_vec()));
                taken >> (asked.len() - 1) & 1 == 1
            });
            assert!(asked.iter().map(|(port, bytes)| (*port, &bytes[..])).eq(datagrams));
            for (at, &(port, bytes)) in datagrams.iter().enumerate() {
                if taken >> at & 1 == 0 {
                    left.push((path(port), bytes));
                }
            }
            assert!(batch.iter().eq(left) && batch.is_full() == (taken == 0));
        }
    }

    #[test]
    fn a_run_ends_at_another_place_a_longer_one_an_empty_one_and_behind_a_shorter_one() {
        let runs = |sizes: &[(u16, usize)], max_datagrams, max_bytes| {
            let mut batch = Batch::new(sizes.len());
            for (number, &(port, size)) in (0u8..).zip(sizes) {
                assert!(batch.push(path(port), &vec![number; size]));
            }
            let (mut first, mut runs) = (0, vec![]);
            while let Some(run) = batch.run(first, max_datagrams, max_bytes) {
                let own: Vec<u8> = batch.iter().skip(first).take(run.datagrams).fold(
                    vec![],
                    |mut own, (to, bytes)| {
                        assert_eq!(to, run.path);
                        own.extend_from_slice(bytes);
                        own
                    },
                );
                assert_eq!((run.bytes, run.segment_bytes), (&own[..], sizes[first].1));
                runs.push(run.datagrams);
                first += run.datagrams;
            }
            assert_eq!(first, sizes.len());
            runs
        };
        let mixed = [
            (1, 9),
            (1, 9),
            (1, 5),
            (1, 9),
            (2, 9),
            (2, 10),
            (2, 10),
            (1, 0),
            (1, 0),
            (1, 9),
            (1, 0),
        ];
        assert_eq!(runs(&mixed, 64, 65_000), [3, 1, 1, 2, 1, 1, 1, 1]);
        assert_eq!(runs(&[(1, 9); 10], 4, 65_000), [4, 4, 2]);
        assert_eq!(runs(&[(1, 9); 10], 64, 30), [3, 3, 3, 1]);
        assert_eq!(runs(&[(1, 9); 2], 0, 0), [1, 1], "always one");
    }

    /// Seven of 8972 bytes fit a call of 64 KiB.
    #[test]
    fn a_run_has_one_mark_and_no_probe() {
        let mut batch = Batch::new(20);
        let mut push = |ecn, is_probe: bool, size: usize| {
            let pushed = batch.compose(|datagram| {
                let end = datagram.start + size;
                datagram.vec().resize(end, 1);
                datagram.set_ecn(ecn);
                if is_probe {
                    datagram.set_alone();
                }
                Some(path(1))
            });
            assert_eq!(pushed, Some(size));
        };
        push(Ecn::Ect0, false, 1472);
        push(Ecn::Ect0, true, 1472);
        push(Ecn::Ect0, false, 1472);
        push(Ecn::NotEct, false, 1472);
        push(Ecn::NotEct, false, 1200);
        (0..10).for_each(|_| push(Ecn::NotEct, false, 8972));
        let (mut first, mut runs) = (0, vec![]);
        while let Some(run) = batch.run(first, 64, 65_487) {
            runs.push((run.ecn, run.datagrams));
            first += run.datagrams;
        }
        let [marked, plain] = [Ecn::Ect0, Ecn::NotEct];
        let expected = [(marked, 1), (marked, 1), (marked, 1), (plain, 2), (plain, 7), (plain, 3)];
        assert_eq!(runs, expected);
        let marks: Vec<_> = batch.iter_marked().map(|(_, ecn, _)| ecn).take(4).collect();
        assert_eq!(marks, [marked, marked, marked, plain]);
    }
}
