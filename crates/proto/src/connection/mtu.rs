//! How large a datagram the path carries (STANDARD-1, 5.6; DPLPMTUD, RFC 8899).
//!
//! Time, and the fates of probes and of other datagrams, come in; what to probe, when, and the size that may
//! be used come out. The invariant [H-5.6a]: the usable size is 1200, or that of a probe which was
//! acknowledged on this path.

use alloc::boxed::Box;
use core::time::Duration;

use crate::Instant;
use crate::wire::MAX_DATAGRAM_BYTES;

/// What every path carries, in bytes of UDP payload.
const BASE: u16 = 1200;

const _: () = assert!(BASE as usize == MAX_DATAGRAM_BYTES, "as in `wire`");

/// What is tried one after the other, in bytes of UDP payload, until one passes: an Ethernet of 1500 bytes
/// with IPv4; with IPv6; a tunnel in one, as WireGuard's of 1420.
const SIZES: [u16; 3] = [1472, 1452, 1392];

/// What is tried where the first of those has passed: jumbo frames of 9000 bytes with IPv4.
const JUMBO: u16 = 8972;

/// Lost probes, one after the other, that rule a size out (RFC 8899, 5.1.2).
const MAX_LOST_PROBES: u8 = 3;

/// Large datagrams lost in a row that make a black hole [H-5.6b]: at 10 % of losses one in a million.
const MAX_LOST_IN_A_ROW: u8 = 6;

/// From a black hole to the next search [H-5.6b]: a route that flaps does so within seconds.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);

/// Where the search for a larger size is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// A probe of this size is due; `lost` probes of this size were lost.
    Due {
        at: Instant,
        size: u16,
        lost: u8,
    },
    /// It is on the way, with this number.
    InFlight {
        number: u64,
        size: u16,
        lost: u8,
    },
    Done,
}

/// Datagrams larger than 1200 bytes that were lost since one arrived.
#[derive(Clone, Copy, Debug)]
struct LostInARow {
    count: u8,
    /// The number of the first.
    from: u64,
    /// When the first and the last of them were sent.
    first_sent: Instant,
    last_sent: Instant,
}

/// A datagram whose fate is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) number: u64,
    /// Bytes of UDP payload.
    pub(super) bytes: usize,
    pub(super) sent_at: Instant,
    pub(super) is_lost: bool,
}

/// The size of the datagrams of a path.
#[derive(Clone, Debug)]
pub(super) struct Mtu {
    /// The largest datagram that both ends allow.
    max: u16,
    usable: u16,
    search: Search,
    /// The number of the probe that found the size: older datagrams show nothing about this size.
    found_by: u64,
    /// In a box, because it exists only while something is lost.
    lost: Option<Box<LostInARow>>,
    /// The newest that arrived, of those larger than 1200 bytes and of the others.
    newest_large: Option<u64>,
    newest_small: Option<u64>,
}

impl Mtu {
    /// A path on which a search begins at this time, up to this size: the smaller one of what this end may
    /// send and what its peer accepts.
    pub(super) fn new(max: u16, at: Instant) -> Self {
        let mut mtu = Self {
            max,
            usable: BASE,
            search: Search::Done,
            found_by: 0,
            lost: None,
            newest_large: None,
            newest_small: None,
        };
        mtu.restart(at);
        mtu
    }

    /// The largest datagram that both ends allow.
    pub(super) const fn max(&self) -> u16 {
        self.max
    }

    /// Bytes that a datagram may have.
    pub(super) const fn usable(&self) -> u16 {
        self.usable
    }

    /// Nothing is known of the path any more. A search begins at this time.
    fn restart(&mut self, at: Instant) {
        let first = SIZES.into_iter().find(|&size| size <= self.max);
        self.search = first.map_or(Search::Done, |size| Search::Due { at, size, lost: 0 });
        self.usable = BASE;
        self.lost = None;
    }

    /// When a probe is due; `None` while there is nothing to find out.
    pub(super) const fn probe_at(&self) -> Option<Instant> {
        match self.search {
            Search::Due { at, .. } => Some(at),
            Search::InFlight { .. } | Search::Done => None,
        }
    }

    /// The size of the probe that is due by `now`.
    pub(super) fn poll_probe(&self, now: Instant) -> Option<u16> {
        match self.search {
            Search::Due { at, size, .. } if at <= now => Some(size),
            _ => None,
        }
    }

    /// The probe that was due was sent, with this number.
    pub(super) const fn on_probe_sent(&mut self, number: u64) {
        if let Search::Due { size, lost, .. } = self.search {
            self.search = Search::InFlight { number, size, lost };
        }
    }

    /// The fate of the probe with this number. The next one is due after `interval`.
    pub(super) fn on_probe(
        &mut self,
        now: Instant,
        number: u64,
        is_lost: bool,
        interval: Duration,
    ) {
        let Search::InFlight { number: awaited, size, lost } = self.search else { return };
        if number != awaited {
            // It went another way, or before a black hole.
            return;
        }
        let lost = if is_lost { lost + 1 } else { 0 };
        if !is_lost {
            (self.usable, self.found_by, self.lost) = (size, number, None);
        }
        self.search = if is_lost && lost < MAX_LOST_PROBES {
            Search::Due { at: now + interval, size, lost }
        } else {
            self.size_after(size, is_lost).map_or(Search::Done, |size| Search::Due {
                at: now + interval,
                size,
                lost: 0,
            })
        };
    }

    /// What to try after a size that does not pass, or does.
    fn size_after(&self, size: u16, is_too_large: bool) -> Option<u16> {
        if is_too_large {
            SIZES.into_iter().find(|&smaller| smaller < size).filter(|_| size != JUMBO)
        } else {
            Some(JUMBO).filter(|&jumbo| Some(&size) == SIZES.first() && jumbo <= self.max)
        }
    }

    /// The fate of a datagram that is no probe. Returns whether it shows a black hole: the usable size is
    /// then 1200 again.
    pub(super) fn on_settled(
        &mut self,
        now: Instant,
        settled: Settled,
        probe_timeout: Duration,
    ) -> bool {
        let Settled { number, bytes, sent_at, is_lost } = settled;
        let is_large = bytes > usize::from(BASE);
        if self.usable == BASE || is_large && number < self.found_by {
            return false;
        }
        match (is_large, is_lost) {
            (false, true) => return false,
            (false, false) => self.newest_small = self.newest_small.max(Some(number)),
            (true, false) => {
                self.newest_large = self.newest_large.max(Some(number));
                self.lost.take_if(|lost| lost.from < number);
            }
            (true, true) if self.newest_large > Some(number) => {}
            (true, true) => {
                let (first_sent, last_sent) = (sent_at, sent_at);
                let first = LostInARow { count: 0, from: number, first_sent, last_sent };
                let lost = self.lost.get_or_insert_with(|| Box::new(first));
                lost.count = lost.count.saturating_add(1);
                lost.last_sent = lost.last_sent.max(sent_at);
            }
        }
        let is_black_hole = self.lost.as_ref().is_some_and(|lost| {
            let lasts = lost.last_sent.since(lost.first_sent);
            self.newest_small > Some(lost.from)
                && (lost.count >= MAX_LOST_IN_A_ROW || lasts >= probe_timeout.saturating_mul(2))
        });
        if is_black_hole {
            self.restart(now + SEARCH_AGAIN);
        }
        is_black_hole
    }

    /// Panics if a rule of 5.6 is broken.
    pub(super) fn check_invariants(&self) {
        assert!(self.usable == BASE || self.usable <= self.max, "larger than the peer accepts");
        assert!(self.usable > BASE || self.lost.is_none(), "nothing large is sent");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PTO: Duration = Duration::from_millis(50);

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// The sizes probed on a path that carries this much, and what is usable in the end.
    fn search(mtu: &mut Mtu, carries: u16) -> (Vec<u16>, u16) {
        let mut probed = Vec::new();
        while let Some(at) = mtu.probe_at() {
            let size = mtu.poll_probe(at).unwrap();
            let number = 100 + probed.len() as u64;
            mtu.on_probe_sent(number);
            assert_eq!(mtu.probe_at(), None, "one at a time");
            mtu.on_probe(at, number, size > carries, PTO);
            mtu.check_invariants();
            probed.push(size);
        }
        (probed, mtu.usable())
    }

    #[test]
    fn the_search_goes_down_from_ethernet_and_up_to_jumbo_frames() {
        let found = |max, carries| search(&mut Mtu::new(max, Instant::ZERO), carries);
        assert_eq!(found(9000, 9000), ([1472, 8972].into(), 8972));
        assert_eq!(found(9000, 1472), ([1472, 8972, 8972, 8972].into(), 1472));
        let tunnel = [1472, 1472, 1472, 1452, 1452, 1452, 1392];
        assert_eq!(found(9000, 1392), (tunnel.into(), 1392));
        let (probed, usable) = found(9000, 1200);
        assert_eq!((probed.len(), usable), (9, 1200));
        assert_eq!(found(1460, 9000), ([1452].into(), 1452), "what the peer accepts");
        assert_eq!(found(8971, 9000), ([1472].into(), 1472));
        assert_eq!(found(1391, 9000), ([].into(), 1200), "nothing is probed");
    }

    #[test]
    fn two_losses_of_a_probe_rule_nothing_out() {
        let mut mtu = Mtu::new(1500, Instant::ZERO);
        for number in [5, 6] {
            assert_eq!(mtu.poll_probe(ms(1_000)), Some(1472));
            mtu.on_probe_sent(number);
            mtu.on_probe(ms(0), number, true, PTO);
            assert_eq!((mtu.probe_at(), mtu.usable()), (Some(ms(50)), 1200));
        }
        mtu.on_probe_sent(7);
        mtu.on_probe(ms(0), 6, false, PTO);
        assert_eq!(mtu.usable(), 1200, "an earlier one");
        mtu.on_probe(ms(0), 7, false, PTO);
        assert_eq!(mtu.usable(), 1472);
    }

    /// A path of 1472 bytes, found by number 100.
    fn found() -> Mtu {
        let mut mtu = Mtu::new(1500, Instant::ZERO);
        assert_eq!(search(&mut mtu, 1472).1, 1472);
        mtu
    }

    /// Datagrams from number 200 on, sent every 5 ms: their bytes, and whether they are lost. Returns the
    /// number of those after which there was a black hole.
    fn settle(mtu: &mut Mtu, settled: &[(usize, bool)]) -> Option<usize> {
        let one = |(n, &(bytes, is_lost)): (usize, &(usize, bool))| {
            let (number, sent_at) = (200 + n as u64, ms(5 * n as u64));
            let settled = Settled { number, bytes, sent_at, is_lost };
            mtu.on_settled(ms(1_000), settled, PTO)
        };
        let at = settled.iter().enumerate().map(one).position(|is_black_hole| is_black_hole);
        mtu.check_invariants();
        at.map(|at| at + 1)
    }

    const LOST: (usize, bool) = (1472, true);
    const LARGE: (usize, bool) = (1472, false);
    const SMALL: (usize, bool) = (100, false);

    #[test]
    fn six_large_ones_lost_in_a_row_are_a_black_hole() {
        let mut mtu = found();
        assert_eq!(settle(&mut mtu, &[LOST, SMALL, LOST, LOST, LOST, LOST, LOST]), Some(7));
        assert_eq!((mtu.usable(), mtu.probe_at()), (1200, Some(ms(61_000))));
        assert_eq!(mtu.poll_probe(ms(60_999)), None);
        assert_eq!(settle(&mut mtu, &[LOST; 20]), None, "what was still on the way");
        let row = [LOST, SMALL, LOST, LOST, LARGE, LOST, LOST, SMALL, LOST, LOST, LOST];
        assert_eq!(settle(&mut found(), &row), None, "one arrived");
        assert_eq!(settle(&mut found(), &[LOST; 40]), None, "the small ones are lost too");
        let late = [&[SMALL][..], &[LOST; 7], &[SMALL]].concat();
        assert_eq!(settle(&mut found(), &late), Some(9));
        assert_eq!(settle(&mut found(), &[(1200, true); 40]), None);
    }

    #[test]
    fn all_large_ones_lost_for_two_probe_timeouts_are_a_black_hole() {
        let row = |pause| [&[LOST][..], &[SMALL; 40][..pause], &[LOST]].concat();
        assert_eq!(settle(&mut found(), &row(19)), Some(21));
        assert_eq!(settle(&mut found(), &row(18)), None, "95 ms");
        assert_eq!(settle(&mut found(), &[&[LOST][..], &[SMALL; 40]].concat()), None, "only one");
    }

    #[test]
    fn a_new_path_is_searched_anew() {
        let mut mtu = found();
        mtu.restart(ms(7));
        assert_eq!((mtu.usable(), mtu.probe_at()), (1200, Some(ms(7))));
        mtu.on_probe_sent(300);
        mtu.restart(ms(8));
        mtu.on_probe(ms(9), 300, false, PTO);
        assert_eq!(mtu.usable(), 1200, "that probe went the old way");
    }
}
