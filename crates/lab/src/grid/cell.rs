//! The links of the grid. Each is one bottleneck with a droptail queue, behind a sender whose own interface
//! is fast. Its number never changes.
//!
//! Senders are tuned on 1080 of them; 768 others show whether the tuning fits only those, and 296 are odd:
//! they reorder, deliver in bunches, or are fast. Loss is after the bottleneck, so that lost packets have
//! used it; the reverse path has the same rate, delay and mean loss. Its losses are independent even where
//! they come in bursts towards the client: bursts are counted in packets, and eight of the few packets on the
//! reverse path can take a second.

use std::fmt;
use std::time::Duration;

use haulier_sim::{Access, LinkConfig, Loss, Probability};

/// The sender's own interface, in bits per second; and how much faster than a fast bottleneck it is at least.
const INTERFACE_BPS: u64 = 1_000_000_000;
const FASTER_INTERFACE: u64 = 2;

/// The mean of the jitter, which is exponential and keeps the order.
const JITTER: Duration = Duration::from_micros(200);

/// It is at most this part of the round trip, in thousandths: less than 20 ms have only fast links.
const MAX_JITTER_PERMILLE: u64 = 10;

/// A queue of one BDP has at least room for three packets.
const LEAST_QUEUE_BYTES: u64 = 3 * 1100;

/// One link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number: 0 to 1079 are used for tuning, 1080 to 1847 are not, and those from 1848 on are odd.
    pub number: u32,
    /// Rate of the bottleneck in Mbit/s, IP and UDP headers included.
    pub rate_mbit: u64,
    /// Round trip without queueing, in ms, half each way.
    pub rtt_ms: u64,
    /// Mean loss each way, in parts of a thousand.
    pub loss_permille: u64,
    /// Mean length of runs of lost packets; 0 is independent loss.
    pub burst_length: u32,
    /// Droptail queue of the bottleneck in bytes, the packet being sent included.
    pub queue_bytes: u64,
    /// What else it does to packets towards the client.
    pub oddity: Oddity,
}

/// What an odd link does to packets towards the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// Nothing but a little jitter, which keeps the order.
    #[default]
    None,
    /// It delays each packet by up to this number of ms, uniformly, whatever that does to their order.
    Reorders(u64),
    /// It delivers packets at multiples of this number of ms.
    Bunches(u64),
}

impl Oddity {
    /// What it adds to the time of a packet in the mean.
    const fn mean_delay(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Reorders(ms) | Self::Bunches(ms) => Duration::from_micros(ms * 500),
        }
    }
}

/// In words; nothing for none.
impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Reorders(ms) => write!(f, "reordering of {ms} ms"),
            Self::Bunches(ms) => write!(f, "bunches of {ms} ms"),
        }
    }
}

/// Losses in parts of a thousand, with the mean length of their bursts.
type Losses = &'static [(u64, u32)];

const TUNED_LOSSES: Losses =
    &[(0, 0), (10, 0), (20, 0), (50, 0), (100, 0), (200, 0), (300, 0), (50, 8), (100, 8)];

const OTHER_LOSSES: Losses =
    &[(0, 0), (5, 0), (30, 0), (70, 0), (150, 0), (250, 0), (30, 4), (80, 12)];

const KIB: u64 = 1024;

impl Cell {
    /// The number of cells used for tuning.
    pub const TUNED: u32 = 6 * 5 * 9 * 4;

    /// The number of the first odd cell.
    pub const ODD: u32 = Self::TUNED + 6 * 4 * 8 * 4;

    /// The number of all cells.
    pub const ALL: u32 = Self::ODD + 6 * 36 + 80;

    /// The cells that senders are tuned on: 2 to 100 Mbit/s, 20 to 300 ms, up to 30 % loss, queues of 32
    /// KiB, one BDP, 256 and 512 KiB.
    pub fn tuned() -> impl Iterator<Item = Self> {
        let queues = |rate: u64, rtt: u64| {
            let bdp = (rate * rtt * 125).max(LEAST_QUEUE_BYTES);
            [32 * KIB, bdp, 256 * KIB, 512 * KIB]
        };
        product(0, &[2, 5, 10, 20, 50, 100], &[20, 50, 100, 200, 300], TUNED_LOSSES, queues)
    }

    /// Cells that nothing is tuned on: 3 to 150 Mbit/s, 30 to 250 ms, up to 25 % loss, bursts of 4 and 12,
    /// queues of 24, 48 and 128 KiB and of 1 MiB.
    pub fn others() -> impl Iterator<Item = Self> {
        let queues = |_, _| [24 * KIB, 48 * KIB, 128 * KIB, 1024 * KIB];
        let rates = &[3, 7, 15, 35, 75, 150];
        product(Self::TUNED, rates, &[30, 80, 150, 250], OTHER_LOSSES, queues)
    }

    /// Odd cells: 5 to 100 Mbit/s and 20 to 200 ms with reordering by up to 2, 10 or 40 ms, or with bunches
    /// of 4, 10 or 30; and 250 Mbit/s to 10 Gbit/s with 1 to 60 ms and nothing else.
    pub fn odd() -> impl Iterator<Item = Self> {
        let oddities = [2, 10, 40].map(Oddity::Reorders).into_iter();
        let oddities = oddities.chain([4, 10, 30].map(Oddity::Bunches));
        let slow = |_, _| [64 * KIB, 256 * KIB];
        let fast = |_, _| [128 * KIB, 1024 * KIB];
        let rates = &[250, 500, 1_000, 2_500, 10_000];
        let cells = oddities.flat_map(move |oddity| {
            let cells = product(0, &[5, 20, 100], &[20, 80, 200], &[(0, 0), (20, 0)], slow);
            cells.map(move |cell| Self { oddity, ..cell })
        });
        let cells = cells.chain(product(0, rates, &[1, 5, 20, 60], &[(0, 0), (10, 0)], fast));
        (Self::ODD..).zip(cells).map(|(number, cell)| Self { number, ..cell })
    }

    /// The cell with this number.
    pub fn numbered(number: u32) -> Option<Self> {
        Self::tuned().chain(Self::others()).chain(Self::odd()).find(|cell| cell.number == number)
    }

    /// Whether it is in the sample for a quick measurement: every seventh. Seven divides the length of no
    /// axis, so all values of an axis are equally frequent in it, give or take one.
    pub const fn is_quick(&self) -> bool {
        self.number.is_multiple_of(7)
    }

    /// The physical limit L: propagation, the time that `wire_bytes` and the resent bytes take on the
    /// bottleneck, and the mean delay of an odd link. A run with fewer losses than the mean, or a luckier
    /// bunch, can be slightly below it. For a join it includes the delay of the request.
    pub fn limit(&self, wire_bytes: u64, is_join: bool) -> Duration {
        let halves = if is_join { 2 } else { 1 };
        let bits = wire_bytes * 8;
        // bits / (Mbit/s) is in microseconds.
        let nanos = bits * 1_000_000 / (self.rate_mbit * (1_000 - self.loss_permille));
        let propagation = Duration::from_micros(self.rtt_ms * 500 * halves);
        propagation + Duration::from_nanos(nanos) + self.oddity.mean_delay()
    }

    /// The access of its server: a fast interface.
    pub(super) fn server_access(&self) -> Access {
        let bps = INTERFACE_BPS.max(self.rate_mbit * 1_000_000 * FASTER_INTERFACE);
        let up = LinkConfig::new(bps, Duration::ZERO);
        Access { up, ..Access::default() }
    }

    /// The access of its client: the bottleneck.
    pub(super) fn client_access(&self) -> Access {
        let mean = Probability::ratio(self.loss_permille, 1_000);
        let independent =
            if self.loss_permille == 0 { Loss::None } else { Loss::Independent(mean) };
        let (rate, delay) = (self.rate_mbit * 1_000_000, Duration::from_micros(self.rtt_ms * 500));
        let up = LinkConfig { loss: independent, ..LinkConfig::new(rate, delay) };
        let down = LinkConfig {
            queue_bytes: Some(self.queue_bytes),
            exponential_jitter: JITTER
                .min(Duration::from_micros(self.rtt_ms * MAX_JITTER_PERMILLE)),
            jitter: match self.oddity {
                Oddity::Reorders(ms) => Duration::from_millis(ms),
                _ => Duration::ZERO,
            },
            reorder: matches!(self.oddity, Oddity::Reorders(_)),
            aggregation: match self.oddity {
                Oddity::Bunches(ms) => Duration::from_millis(ms),
                _ => Duration::ZERO,
            },
            loss: match self.burst_length {
                0 => independent,
                length => Loss::Bursts { mean, length },
            },
            ..up.clone()
        };
        Access { up, down }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, rtt, loss) = (self.rate_mbit, self.rtt_ms, self.loss_permille);
        write!(f, "cell {}: {rate} Mbit/s, {rtt} ms, loss {}", self.number, loss / 10)?;
        if loss % 10 != 0 {
            write!(f, ".{}", loss % 10)?;
        }
        write!(f, " %")?;
        if self.burst_length > 0 {
            write!(f, " in bursts of {}", self.burst_length)?;
        }
        write!(f, ", queue {} KiB", self.queue_bytes.div_ceil(KIB))?;
        if self.oddity != Oddity::None {
            write!(f, ", {}", self.oddity)?;
        }
        Ok(())
    }
}

/// Every combination, the last axis varying fastest, numbered from `first` on.
fn product<const QUEUES: usize>(
    first: u32,
    rates: &'static [u64],
    rtts: &'static [u64],
    losses: Losses,
    queues: impl Fn(u64, u64) -> [u64; QUEUES],
) -> impl Iterator<Item = Cell> {
    let mut cells = Vec::with_capacity(rates.len() * rtts.len() * losses.len() * QUEUES);
    let mut number = first;
    for &rate_mbit in rates {
        for &rtt_ms in rtts {
            for &(loss_permille, burst_length) in losses {
                for queue_bytes in queues(rate_mbit, rtt_ms) {
                    let link = (rate_mbit, rtt_ms, loss_permille, burst_length, queue_bytes);
                    cells.push(cell(number, link));
                    number += 1;
                }
            }
        }
    }
    cells.into_iter()
}

const fn cell(number: u32, link: (u64, u64, u64, u32, u64)) -> Cell {
    let (rate_mbit, rtt_ms, loss_permille, burst_length, queue_bytes) = link;
    let oddity = Oddity::None;
    Cell { number, rate_mbit, rtt_ms, loss_permille, burst_length, queue_bytes, oddity }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_number_of_cells_is_right_and_none_is_repeated() {
        let cells: Vec<Cell> = Cell::tuned().chain(Cell::others()).chain(Cell::odd()).collect();
        assert_eq!(Cell::tuned().count(), 1080);
        assert_eq!((Cell::odd().count(), cells.len()), (296, 1080 + 768 + 296));
        assert_eq!(Cell::ALL as usize, cells.len());
        for (number, cell) in (0..).zip(&cells) {
            assert_eq!(cell.number, number);
        }
        // One BDP can equal another queue size: such cells differ only in their number.
        let links: HashSet<String> =
            cells.iter().map(|cell| cell.to_string().split_once(": ").unwrap().1.into()).collect();
        assert!(links.len() > 2_096, "{}", links.len());
        assert_eq!(Cell::numbered(1080), Cell::others().next());
        assert_eq!(Cell::numbered(1848), Cell::odd().next());
        assert_eq!(Cell::numbered(Cell::ALL), None);
    }

    /// Each value of each axis is as frequent as in all cells.
    #[test]
    fn the_quick_sample_is_even() {
        let count = |is_it: &dyn Fn(&Cell) -> bool| {
            let all = Cell::tuned().filter(|cell| is_it(cell)).count();
            let quick = Cell::tuned().filter(|cell| cell.is_quick() && is_it(cell)).count();
            assert!(quick.abs_diff(all / 7) <= 2, "{quick} of {all}");
        };
        for rate in [2, 5, 10, 20, 50, 100] {
            count(&|cell| cell.rate_mbit == rate);
        }
        for rtt in [20, 50, 100, 200, 300] {
            count(&|cell| cell.rtt_ms == rtt);
        }
        for &loss in TUNED_LOSSES {
            count(&|cell| (cell.loss_permille, cell.burst_length) == loss);
        }
        for queue in 0..4 {
            count(&|cell| cell.number % 4 == queue);
        }
    }

    /// By hand: 256 x 1088 x 8 bits at 10 Mbit/s are 222.8 ms; a tenth lost makes it 247.6 ms.
    #[test]
    fn the_limit_is_propagation_and_serialization() {
        let link = Cell {
            number: 0,
            rate_mbit: 10,
            rtt_ms: 100,
            loss_permille: 0,
            burst_length: 0,
            queue_bytes: 1,
            oddity: Oddity::None,
        };
        let ms = |cell: &Cell, is_join| cell.limit(256 * 1088, is_join).as_secs_f64() * 1e3;
        assert!((ms(&link, false) - 272.822).abs() < 0.001);
        assert!((ms(&link, true) - 322.822).abs() < 0.001);
        let lossy = Cell { loss_permille: 100, ..link };
        assert!((ms(&lossy, false) - 297.580).abs() < 0.001);
        let odd = Cell { oddity: Oddity::Bunches(30), ..link };
        assert!((ms(&odd, false) - 287.822).abs() < 0.001);
    }

    #[test]
    fn a_cell_is_displayed_with_its_properties() {
        let cell = |number| Cell::numbered(number).unwrap().to_string();
        assert_eq!(cell(0), "cell 0: 2 Mbit/s, 20 ms, loss 0 %, queue 32 KiB");
        assert_eq!(
            cell(1079),
            "cell 1079: 100 Mbit/s, 300 ms, loss 10 % in bursts of 8, queue 512 KiB"
        );
        assert_eq!(cell(1084), "cell 1084: 3 Mbit/s, 30 ms, loss 0.5 %, queue 24 KiB");
        assert_eq!(
            cell(1848),
            "cell 1848: 5 Mbit/s, 20 ms, loss 0 %, queue 64 KiB, reordering of 2 ms"
        );
        assert_eq!(cell(2143), "cell 2143: 10000 Mbit/s, 60 ms, loss 1 %, queue 1024 KiB");
    }
}
