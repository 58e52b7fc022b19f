//! The cells of the crowd: how many flows, on which bottleneck, in which mix.
//!
//! A cell's number never changes, so that a reviewed or reported one can be run again: new mixes and links
//! come after all others.

use std::fmt;
use std::time::Duration;

use super::{Mix, Role};

const FLOWS: [u32; 5] = [2, 6, 10, 30, 100];

/// Kbit/s of the bottleneck for each flow.
const RATES_KBIT: [u64; 4] = [200, 1_000, 10_000, 100_000];

const RTTS_MS: [u64; 5] = [1, 20, 50, 200, 600];

/// Queues in thousandths of a bandwidth-delay product.
const QUEUES_PERMILLE: [u64; 5] = [100, 500, 1_000, 2_000, 8_000];

/// A bottleneck of more is in few cells, for a queue of 8 BDP of it has gigabytes.
const MAX_LINK_KBIT: u64 = 1_000_000;

/// The mixes whose cells come before those of fast bottlenecks. One that is new comes after those.
const FIRST_MIXES: [Mix; 12] = Mix::ALL;

/// Flows, and kbit/s for each, of the fast bottlenecks, which have up to 10 Gbit/s; the mixes on them; and
/// bytes that their path and queue hold at most.
const FAST_LINKS: [(u32, u64); 5] =
    [(2, 1_000_000), (6, 1_000_000), (10, 1_000_000), (30, 100_000), (100, 100_000)];
const FAST_MIXES: [Mix; 3] = [Mix::Ours, Mix::Cubic, Mix::Bbr];
const MAX_FAST_BYTES: u64 = 64 << 20;

/// The bottleneck of a quick cell has no more: time is virtual, but each packet costs some.
const MAX_QUICK_LINK_KBIT: u64 = 20_000;

/// The quick sample is one cell of so many that are small enough. It divides the length of no axis.
const QUICK_STEP: u32 = 23;

/// No queue is shorter than three packets of 1500 bytes.
const MIN_QUEUE_BYTES: u64 = 4_500;

/// The flows of a run begin within this time, evenly.
const START: Duration = Duration::from_secs(1);

/// A run lasts `LASTS` plus `LASTS_RTTS` round trips.
const LASTS: Duration = Duration::from_secs(15);
const LASTS_RTTS: u32 = 25;

/// A run on a fast bottleneck has this time in place of `LASTS`: it has a million packets a second.
const FAST_LASTS: Duration = Duration::from_secs(4);

/// One crowd on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number.
    pub number: u32,
    /// The senders that share the link, and the kind of link.
    pub mix: Mix,
    /// How many flows there are, those that join and leave included.
    pub flows: u32,
    /// The bottleneck's rate in kbit/s, headers included, divided by the flows.
    pub rate_kbit: u64,
    /// Round trip of every flow without queueing, in ms.
    pub rtt_ms: u64,
    /// The droptail queue of the bottleneck in thousandths of a bandwidth-delay product.
    pub queue_permille: u64,
}

impl Cell {
    /// The number of cells: of 20 pairs of flows and rate two are fast bottlenecks; of 125 fast links 70 hold
    /// too much.
    pub const ALL: u32 = 12 * 18 * 5 * 5 + 3 * 55;

    /// All cells, those of a mix together, the queue varying fastest; then those on fast bottlenecks.
    pub fn all() -> impl Iterator<Item = Self> {
        let links = FLOWS.into_iter().flat_map(|flows| RATES_KBIT.map(|rate| (flows, rate)));
        let links: Vec<_> =
            links.filter(|&(flows, rate)| u64::from(flows) * rate <= MAX_LINK_KBIT).collect();
        let slow = FIRST_MIXES.into_iter().flat_map(|mix| of(mix, &links));
        let fast = FAST_MIXES.into_iter().flat_map(|mix| of(mix, &FAST_LINKS));
        let fast = fast.filter(|cell| cell.path_bytes() + cell.queue_bytes() <= MAX_FAST_BYTES);
        let cells: Vec<Self> = slow.chain(fast).collect();
        (0..).zip(cells).map(|(number, cell)| Self { number, ..cell })
    }

    /// The sample for a quick measurement: every 23rd of the cells of at most 20 Mbit/s, and half of those
    /// where only the link differs.
    pub fn quick() -> impl Iterator<Item = Self> {
        let is_small = |cell: &Self| cell.link_kbit() <= MAX_QUICK_LINK_KBIT;
        let sample = Self::all().filter(is_small).step_by(QUICK_STEP as usize).enumerate();
        let is_kept = |(at, cell): &(usize, Self)| at % 2 == 0 || !cell.mix.is_ours_on_odd_link();
        sample.filter(is_kept).map(|(_, cell)| cell)
    }

    /// The cell with this number.
    pub fn numbered(number: u32) -> Option<Self> {
        Self::all().nth(number as usize)
    }

    /// The rate of the bottleneck in kbit/s.
    pub const fn link_kbit(&self) -> u64 {
        self.rate_kbit * self.flows as u64
    }

    /// The queue in bytes: at least three packets.
    pub fn queue_bytes(&self) -> u64 {
        (self.path_bytes() * self.queue_permille / 1_000).max(MIN_QUEUE_BYTES)
    }

    /// The duration of a run.
    pub fn lasts(&self) -> Duration {
        let lasts = if self.link_kbit() > MAX_LINK_KBIT { FAST_LASTS } else { LASTS };
        lasts + self.rtt() * LASTS_RTTS
    }

    /// When some join and others leave.
    pub fn turns(&self) -> Duration {
        self.lasts() / 4
    }

    /// From when on, and until when, shares are measured: the second half of the run.
    pub fn measured(&self) -> [Duration; 2] {
        [self.lasts() / 2, self.lasts()]
    }

    /// What the flow with this index is.
    pub const fn role(&self, flow: usize) -> Role {
        self.mix.role(flow)
    }

    /// The roles of all flows.
    pub fn roles(&self) -> Vec<Role> {
        (0..self.flows as usize).map(|flow| self.role(flow)).collect()
    }

    /// When this flow begins.
    pub fn starts(&self, flow: usize) -> Duration {
        let since = if self.role(flow) == Role::Joins { self.turns() } else { Duration::ZERO };
        since + START * flow as u32 / self.flows
    }

    /// A fair share of the bottleneck in the measured time, in bits per second.
    pub fn fair_bps(&self) -> f64 {
        let present = self.roles().iter().filter(|&&role| role != Role::Leaves).count();
        let [from, to] = self.measured();
        self.bits_between([from, to]) / (to - from).as_secs_f64() / present.max(1) as f64
    }

    pub(super) fn rtt(&self) -> Duration {
        Duration::from_millis(self.rtt_ms)
    }

    /// Bytes of a bandwidth-delay product: kbit/s times ms are bits.
    const fn path_bytes(&self) -> u64 {
        self.link_kbit() * self.rtt_ms / 8
    }
}

/// Each of these links with every round trip and queue. They have no numbers yet.
fn of(mix: Mix, links: &[(u32, u64)]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(flows, rate_kbit) in links {
        for rtt_ms in RTTS_MS {
            for queue_permille in QUEUES_PERMILLE {
                cells.push(Cell { number: 0, mix, flows, rate_kbit, rtt_ms, queue_permille });
            }
        }
    }
    cells
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, queue) = (self.rate_kbit as f64 / 1e3, self.queue_permille as f64 / 1e3);
        write!(
            f,
            "cell {}: {}, {} flows of {rate} Mbit/s, {} ms, queue {queue} BDP",
            self.number,
            self.mix.name(),
            self.flows,
            self.rtt_ms,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_number_of_cells_is_right_and_each_is_found_by_its_number() {
        let cells: Vec<Cell> = Cell::all().collect();
        assert_eq!(cells.len(), Cell::ALL as usize);
        for (number, cell) in (0..).zip(&cells) {
            assert_eq!(cell.number, number);
        }
        let links: HashSet<String> =
            cells.iter().map(|cell| cell.to_string().split_once(": ").unwrap().1.into()).collect();
        assert_eq!(links.len(), cells.len());
        assert_eq!(Cell::numbered(Cell::ALL - 1), cells.last().copied());
        assert_eq!(Cell::numbered(Cell::ALL), None);
    }

    /// Numbers are in pages and reports.
    #[test]
    fn a_number_stays_what_it_was() {
        let cell = |number| Cell::numbered(number).unwrap().to_string();
        assert_eq!(cell(0), "cell 0: ours, 2 flows of 0.2 Mbit/s, 1 ms, queue 0.1 BDP");
        assert_eq!(cell(1035), "cell 1035: turnover, 6 flows of 1 Mbit/s, 50 ms, queue 0.1 BDP");
        assert_eq!(cell(1799), "cell 1799: slow_up, 100 flows of 10 Mbit/s, 600 ms, queue 8 BDP");
        assert_eq!(cell(1800), "cell 1800: bbr, 2 flows of 0.2 Mbit/s, 1 ms, queue 0.1 BDP");
        assert_eq!(cell(2250), "cell 2250: upload, 2 flows of 0.2 Mbit/s, 1 ms, queue 0.1 BDP");
        assert_eq!(cell(5399), "cell 5399: only_bbr, 100 flows of 10 Mbit/s, 600 ms, queue 8 BDP");
        assert_eq!(cell(5400), "cell 5400: ours, 2 flows of 1000 Mbit/s, 1 ms, queue 0.1 BDP");
        assert_eq!(cell(5564), "cell 5564: bbr, 100 flows of 100 Mbit/s, 20 ms, queue 1 BDP");
    }

    /// Each value of each axis but the fastest rate is in the quick sample, and each mix equally often.
    #[test]
    fn the_quick_sample_has_everything_but_fast_links() {
        let cells: Vec<Cell> = Cell::quick().collect();
        assert_eq!(cells.len(), 93);
        let count = |is_it: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is_it(cell)).count();
        for mix in Mix::ALL {
            let least = if mix.is_ours_on_odd_link() { 4 } else { 9 };
            assert!((least..=11).contains(&count(&|cell| cell.mix == mix)), "{mix:?}");
        }
        for flows in FLOWS {
            assert!(count(&|cell| cell.flows == flows) >= 9, "{flows}");
        }
        for rtt in RTTS_MS {
            assert!(count(&|cell| cell.rtt_ms == rtt) > 15, "{rtt}");
        }
        for queue in QUEUES_PERMILLE {
            assert!(count(&|cell| cell.queue_permille == queue) > 15, "{queue}");
        }
    }

    /// By hand: six of 1 Mbit/s at 200 ms have 150,000 bytes under way; 15 s and 25 round trips are 20 s.
    #[test]
    fn a_cell_is_what_it_says() {
        let cell = Cell {
            number: 7,
            mix: Mix::Turnover,
            flows: 6,
            rate_kbit: 1_000,
            rtt_ms: 200,
            queue_permille: 500,
        };
        assert_eq!(
            cell.to_string(),
            "cell 7: turnover, 6 flows of 1 Mbit/s, 200 ms, queue 0.5 BDP"
        );
        assert_eq!(cell.queue_bytes(), 75_000);
        assert_eq!(cell.measured(), [10, 20].map(Duration::from_secs));
        assert_eq!(cell.starts(3), Duration::from_millis(500));
        assert_eq!(cell.starts(4) - cell.turns(), Duration::from_secs(4) / 6);
        // Two thirds are there.
        assert!((cell.fair_bps() - 1_500_000.0).abs() < 1e-3);
        // Half and the whole of the rate, in turn, for 2.8 s each.
        let steps = Cell { mix: Mix::Steps, ..cell };
        assert!((steps.fair_bps() - 780_000.0).abs() < 1e-3, "{}", steps.fair_bps());
        let fast = Cell { rate_kbit: 1_000_000, rtt_ms: 20, ..cell };
        assert_eq!(fast.lasts(), Duration::from_millis(4_500));
    }
}
