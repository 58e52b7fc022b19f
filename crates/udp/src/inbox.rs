//! Where datagrams are received, many with one call, and when each of them arrived.
//!
//! A program that looks once in a frame finds the datagrams of 16 ms at once. To estimate the rate of a link
//! from them it must know when they arrived, not when it looked: the system stamps each, by the time of day,
//! and [`Inbox::drain`] turns the stamp into the machine's time.

use std::io::IoSliceMut;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haulier_core::{Ecn, FourTuple, Instant};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};

use crate::Clock;

/// Buffers that one call fills at most. With 16 the price of the call, some 500 ns, is down to 30 ns a
/// datagram, which is less than its copy; 32 would save 15 ns more and double the memory.
const BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };

/// Buffers that a call fills at most after one in which datagrams were joined: a few of these, with what is
/// made of them, fill the cache of one core, and the price of a call is small for this number of bytes.
const JOINED_BUFFERS: usize = if BUFFERS < 4 { BUFFERS } else { 4 };

/// Bytes of each: what a system that joins datagrams of one sender (GRO) may put into it, and more than any
/// datagram has, so that nothing is ever cut. The 1 MiB of all of them is reserved and not used: the system
/// gives memory by the page, and an ordinary datagram touches one page of its buffer.
const BUFFER_BYTES: usize = 65_536;

/// Bytes of the buffers that are made ready ahead: what arrives within a tick of a fast link.
const READY_BYTES: usize = 4 * BUFFER_BYTES;

/// An older stamp means that the clock was set between the arrival and now.
const OLDEST: Duration = Duration::from_secs(1);

/// What one call received.
pub struct Inbox {
    buffers: Box<[u8]>,
    metas: [RecvMeta; BUFFERS],
    /// How many of the buffers hold something.
    filled: usize,
    /// How many the next call may fill.
    offered: usize,
    /// Whether the socket has several addresses, so that it matters which of them was asked.
    is_wildcard: bool,
    /// When the last datagram arrived: the next was not earlier, whatever its stamp says.
    latest: Instant,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

haulier_core::debug_as! { Inbox: |inbox| filled = inbox.filled }

impl Inbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffers: vec![0; BUFFERS * BUFFER_BYTES].into(),
            metas: [RecvMeta::default(); BUFFERS],
            filled: 0,
            offered: BUFFERS,
            is_wildcard: false,
            latest: Instant::ZERO,
        }
    }

    /// Makes the system give the memory of the first buffers now. Otherwise it does so page by page when they
    /// are first used, which takes longer than to copy a datagram.
    pub(crate) fn make_ready(&mut self) {
        let ready = self.buffers.len().min(READY_BYTES);
        self.buffers[..ready].fill(0);
    }

    /// Lets `receive` fill the buffers, and returns the number of datagrams in them. Old contents are lost.
    pub(crate) fn fill<E>(
        &mut self,
        is_wildcard: bool,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        (self.filled, self.is_wildcard) = (0, is_wildcard);
        let mut buffers = self.buffers.chunks_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        self.filled = receive(&mut slices[..self.offered], &mut self.metas)?;
        let received = self.metas[..self.filled].iter().map(datagrams).sum();
        self.offered = if received > self.filled { JOINED_BUFFERS } else { BUFFERS };
        Ok(received)
    }

    /// Takes out all datagrams, in order, as the system joined them: when they arrived by `clock`, from where
    /// and at which of our addresses, their ECN field, the bytes of each but the last, and those of all. None
    /// arrived before the one in front of it, in the future, or more than a second ago. Where the system has
    /// no stamps, all of them arrived now.
    pub fn drain(
        &mut self,
        clock: &Clock,
        mut each: impl FnMut(Instant, FourTuple, Ecn, usize, &mut [u8]),
    ) {
        // Both clocks together, and once: a turn costs less, and its datagrams keep their distances.
        let (now, wall) = (clock.now(), wall());
        for (buffer, meta) in self.buffers.chunks_mut(BUFFER_BYTES).zip(&self.metas[..self.filled])
        {
            self.latest = self.latest.max(arrival(now, wall, meta.timestamp));
            let local = meta.dst_ip.filter(|&ip| self.is_wildcard && is_own(ip));
            let (path, ecn) = (FourTuple { local, ..FourTuple::new(meta.addr) }, mark(meta.ecn));
            let bytes = if meta.stride == 0 { meta.len } else { meta.stride };
            each(self.latest, path, ecn, bytes, &mut buffer[..meta.len]);
        }
        self.filled = 0;
    }
}

/// How many datagrams lie in a buffer. An empty one is one too.
fn datagrams(meta: &RecvMeta) -> usize {
    if meta.stride == 0 { 1 } else { meta.len.div_ceil(meta.stride).max(1) }
}

/// The ECN field as the system reports it. It joins only datagrams with the same one.
const fn mark(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// Whether an answer can leave from there: not from an address of many hosts.
fn is_own(ip: IpAddr) -> bool {
    !ip.is_multicast() && !ip.is_unspecified() && ip != IpAddr::from([255; 4])
}

/// The time of day, since 1970; zero on a machine whose clock shows an earlier time.
fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// When something that was stamped with `stamp` arrived, if it is `now` and the time of day `wall`.
fn arrival(now: Instant, wall: Duration, stamp: Option<Duration>) -> Instant {
    let age = stamp.map_or(Duration::ZERO, |stamp| wall.saturating_sub(stamp).min(OLDEST));
    let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(now.as_nanos().saturating_sub(age))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(5_000);
    const WALL: Duration = Duration::from_secs(1_800_000_000);

    #[test]
    fn a_stamp_is_kept_within_a_second_and_out_of_the_future() {
        let ms = Duration::from_millis;
        assert_eq!(arrival(NOW, WALL, None), NOW);
        assert_eq!(arrival(NOW, WALL, Some(WALL - ms(30))), Instant::from_millis(4_970));
        // The clock of the day was set forward, or back, between the arrival and now.
        assert_eq!(arrival(NOW, WALL, Some(WALL - ms(3_600_000))), Instant::from_millis(4_000));
        assert_eq!(arrival(NOW, WALL, Some(WALL + ms(3_600_000))), NOW);
        assert_eq!(arrival(Instant::ZERO, WALL, Some(WALL - ms(30))), Instant::ZERO);
    }

    /// Length and first byte of each, in order.
    fn drained(inbox: &mut Inbox) -> Vec<(usize, u8)> {
        let mut all = Vec::new();
        inbox.drain(&Clock::start(), |_, _, _, bytes, datagrams| {
            if datagrams.is_empty() {
                all.push((0, 0));
            }
            all.extend(datagrams.chunks(bytes.max(1)).map(|it| (it.len(), it[0])));
        });
        all
    }

    #[test]
    fn joined_datagrams_come_apart_by_their_stride() {
        let mut inbox = Inbox::new();
        let count = inbox.fill(false, |buffers, metas| {
            buffers[0][..10].copy_from_slice(&[1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
            (metas[0].len, metas[0].stride) = (10, 4);
            if BUFFERS > 1 {
                // An empty datagram counts as one, and displaces no other.
                (metas[1].len, metas[1].stride) = (0, 0);
            }
            Ok::<_, ()>(BUFFERS.min(2))
        });
        let all = drained(&mut inbox);
        assert_eq!(count, Ok(all.len()));
        assert_eq!(all[..3], [(4, 1), (4, 2), (2, 3)]);
        assert!(BUFFERS == 1 || all[3..] == [(0, 0)]);
        assert_eq!(drained(&mut inbox), [], "each of them once");
    }

    /// Then a few buffers are enough, and stay in a cache; datagrams that come one by one fill many.
    #[test]
    fn after_joined_datagrams_fewer_buffers_are_filled() {
        let mut inbox = Inbox::new();
        let mut offered = |stride| {
            let mut offered = 0;
            let count = inbox.fill(false, |buffers, metas| {
                (metas[0].len, metas[0].stride) = (10, stride);
                offered = buffers.len();
                Ok::<_, ()>(1)
            });
            assert_eq!(count, Ok(10 / stride));
            offered
        };
        assert_eq!([2, 10, 10].map(&mut offered), [BUFFERS, JOINED_BUFFERS, BUFFERS]);
    }

    /// The clock of the day was set back between them.
    #[test]
    fn nothing_arrives_before_what_was_in_front_of_it() {
        let mut inbox = Inbox::new();
        inbox.latest = NOW;
        let _one = inbox.fill(false, |_, _| Ok::<_, ()>(1));
        inbox.drain(&Clock::start(), |at, _, _, _, _| assert_eq!(at, NOW));
    }
}
