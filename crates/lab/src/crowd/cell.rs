//! The cells of the crowd: how many flows, on which bottleneck, in which mix. A cell's number never changes.

use std::fmt;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::{Access, LinkConfig};

use crate::share::{Competitor, Share, config};

const FLOWS: [u32; 5] = [2, 6, 10, 30, 100];

/// Kbit/s of the bottleneck for each flow.
const RATES_KBIT: [u64; 4] = [200, 1_000, 10_000, 100_000];

const RTTS_MS: [u64; 5] = [1, 20, 50, 200, 600];

/// Queues in thousandths of a bandwidth-delay product.
const QUEUES_PERMILLE: [u64; 5] = [100, 500, 1_000, 2_000, 8_000];

/// A bottleneck of more is in no cell: a queue of 8 BDP of it has gigabytes.
const MAX_LINK_KBIT: u64 = 1_000_000;

/// The bottleneck of a quick cell has no more: time is virtual, but each packet costs some.
const MAX_QUICK_LINK_KBIT: u64 = 20_000;

/// The quick sample is one cell of so many that are small enough. It divides the length of no axis.
const QUICK_STEP: u32 = 23;

/// No queue is shorter than three packets of 1500 bytes.
const MIN_QUEUE_BYTES: u64 = 4_500;

/// What a slow way up has of the way down's rate: cable and DSL have a tenth to a fortieth.
const SLOW_UP_PART: u64 = 20;

/// The flows of a run begin within this time, evenly.
const START: Duration = Duration::from_secs(1);

/// A run lasts this long, and so many round trips.
const LASTS: Duration = Duration::from_secs(15);
const LASTS_RTTS: u32 = 25;

/// Bytes of all blocks of a run at most, for servers hold what they send; and of one. Where one block follows
/// another, bytes of the second are counted a little late: few should, on slow links too.
const MAX_BLOCKS_BYTES: u64 = 256 << 20;
const BLOCK_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// Who shares the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mix {
    /// Ours alone, all from the first second on.
    Ours,
    /// Half of ours, half of TCP CUBIC.
    Cubic,
    /// Ours. Of three one stays, one joins after a quarter of the run, and one leaves then.
    Turnover,
    /// Ours, and the way up has a twentieth of the rate.
    SlowUp,
    /// Half of ours, half of TCP BBR.
    Bbr,
}

impl Mix {
    /// All of them, in the order of the numbers of their cells: a new one comes last.
    pub const ALL: [Self; 5] = [Self::Ours, Self::Cubic, Self::Turnover, Self::SlowUp, Self::Bbr];

    /// Its name, in words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Cubic => "cubic",
            Self::Turnover => "turnover",
            Self::SlowUp => "slow_up",
            Self::Bbr => "bbr",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mix| mix.name() == name)
    }
}

/// What a flow is in its mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ours, from the first second on.
    Stays,
    /// Ours, from a quarter of the run on.
    Joins,
    /// Ours, until then.
    Leaves,
    /// TCP CUBIC.
    Cubic,
    /// TCP BBR.
    Bbr,
}

impl Role {
    /// Whether it is one of ours.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Stays | Self::Joins | Self::Leaves)
    }
}

/// One crowd on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number.
    pub number: u32,
    /// Who shares the link.
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
    /// The number of cells: of 20 pairs of flows and rate two are above what a bottleneck may have.
    pub const ALL: u32 = 5 * 18 * 5 * 5;

    /// All cells, those of a mix together, the queue varying fastest.
    pub fn all() -> impl Iterator<Item = Self> {
        let links = FLOWS.into_iter().flat_map(|flows| RATES_KBIT.map(|rate| (flows, rate)));
        let links: Vec<_> =
            links.filter(|&(flows, rate)| u64::from(flows) * rate <= MAX_LINK_KBIT).collect();
        let mut cells = Vec::with_capacity(Self::ALL as usize);
        for mix in Mix::ALL {
            for &(flows, rate_kbit) in &links {
                for rtt_ms in RTTS_MS {
                    for queue_permille in QUEUES_PERMILLE {
                        let number = cells.len() as u32;
                        cells.push(Self { number, mix, flows, rate_kbit, rtt_ms, queue_permille });
                    }
                }
            }
        }
        cells.into_iter()
    }

    /// The sample for a quick measurement: every 23rd of the cells of at most 20 Mbit/s.
    pub fn quick() -> impl Iterator<Item = Self> {
        let is_small = |cell: &Self| cell.link_kbit() <= MAX_QUICK_LINK_KBIT;
        Self::all().filter(is_small).step_by(QUICK_STEP as usize)
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
        // kbit/s times ms are bits.
        (self.link_kbit() * self.rtt_ms / 8 * self.queue_permille / 1_000).max(MIN_QUEUE_BYTES)
    }

    /// The duration of a run.
    pub fn lasts(&self) -> Duration {
        LASTS + self.rtt() * LASTS_RTTS
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
        match (self.mix, flow % 3) {
            (Mix::Cubic, _) if flow % 2 == 1 => Role::Cubic,
            (Mix::Bbr, _) if flow % 2 == 1 => Role::Bbr,
            (Mix::Turnover, 1) => Role::Joins,
            (Mix::Turnover, 2) => Role::Leaves,
            _ => Role::Stays,
        }
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
        self.link_kbit() as f64 * 1e3 / present.max(1) as f64
    }

    fn rtt(&self) -> Duration {
        Duration::from_millis(self.rtt_ms)
    }

    /// The flows and the link between them.
    pub(super) fn share(&self) -> Share {
        let down = LinkConfig::new(self.link_kbit() * 1_000, Duration::ZERO)
            .with_queue(self.queue_bytes());
        let mut access = Access::from(down);
        if self.mix == Mix::SlowUp {
            // Its queue in bytes stays the same: the modem is one.
            access.up.rate_bps = Some(self.link_kbit() * 1_000 / SLOW_UP_PART);
        }
        let flows = (0..self.flows as usize).map(|flow| self.competitor(flow)).collect();
        Share { access, flows, lasts: self.lasts() }
    }

    fn competitor(&self, flow: usize) -> Competitor {
        // A block takes ten seconds of a fair share, where that is not too much.
        let (least, most) = BLOCK_BYTES;
        let most = most.min(MAX_BLOCKS_BYTES / u64::from(self.flows));
        let bytes = (self.rate_kbit * 10_000 / 8).clamp(least, most) as usize;
        let ours = Competitor::haulier(config()).with_blocks_of(bytes);
        let competitor = match self.role(flow) {
            Role::Cubic => Competitor::cubic(),
            Role::Bbr => Competitor::bbr(),
            Role::Leaves => ours.leaving_at(Instant::ZERO + self.turns()),
            Role::Stays | Role::Joins => ours,
        };
        competitor.with_extra_rtt(self.rtt()).starting_at(Instant::ZERO + self.starts(flow))
    }
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
        assert_eq!(Cell::numbered(2249), cells.last().copied());
        assert_eq!(Cell::numbered(2250), None);
    }

    /// Each value of each axis but the fastest rate is in the quick sample, and each mix equally often.
    #[test]
    fn the_quick_sample_has_everything_but_fast_links() {
        let cells: Vec<Cell> = Cell::quick().collect();
        assert_eq!(cells.len(), 49);
        let count = |is_it: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is_it(cell)).count();
        for mix in Mix::ALL {
            assert!((9..=11).contains(&count(&|cell| cell.mix == mix)), "{mix:?}");
        }
        for flows in FLOWS {
            assert!(count(&|cell| cell.flows == flows) >= 3, "{flows}");
        }
        for rtt in RTTS_MS {
            assert!(count(&|cell| cell.rtt_ms == rtt) > 5, "{rtt}");
        }
        for queue in QUEUES_PERMILLE {
            assert!(count(&|cell| cell.queue_permille == queue) > 5, "{queue}");
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
        let (stays, joins, leaves) = (Role::Stays, Role::Joins, Role::Leaves);
        assert_eq!(cell.roles(), [stays, joins, leaves, stays, joins, leaves]);
        assert_eq!(cell.starts(3), Duration::from_millis(500));
        assert_eq!(cell.starts(4) - cell.turns(), Duration::from_secs(4) / 6);
        // Two thirds are there.
        assert!((cell.fair_bps() - 1_500_000.0).abs() < 1e-3);
        let beside = Cell { mix: Mix::Cubic, flows: 2, ..cell };
        assert_eq!(beside.roles(), [Role::Stays, Role::Cubic]);
    }
}
