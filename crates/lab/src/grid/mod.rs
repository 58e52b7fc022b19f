//! The grid: one block of 256 KiB to one client over 2144 links, in virtual time, with the real machines and
//! with other strategies for comparison.
//!
//! Every [`Cell`] is a link with a single bottleneck. A run is one [`Strategy`], one cell and one seed; its
//! [`Outcome`] has its time as a multiple of [the physical limit](Cell::limit), the waste, and its effect on
//! the shared queue. A [`Summary`] combines runs.
//!
//! * [`cell`]: the links and their limits;
//! * [`outcome`], [`summary`]: the measurements and their percentiles;
//! * `stage`: two ends, the link between them, and the timing;
//! * `connection`: the machines of haulier/1, warm and in two kinds of cold join;
//! * `model`: two strategies that exist only as models.

pub mod cell;
pub(crate) mod connection;
mod model;
pub mod outcome;
mod stage;
pub mod summary;

pub use cell::{Cell, Oddity};
pub use outcome::{Moment, Outcome};
pub use summary::{CellRuns, Summary};

use std::time::Duration;

use haulier_article::ArticleConfig;
use haulier_article::chunk::ResendDelay;
use haulier_proto::connection::Block;
use haulier_sim::Rng;

use crate::ends::{Article, Ends, First, Reading};
use connection::{by_secret, by_token};
use stage::Stage;

/// Bytes of the block that is timed.
pub const BLOCK_BYTES: u64 = 256 << 10;

/// The number of its slices of 1024 bytes. All strategies except haulier/1 send these.
pub const SLICES: u64 = 256;

/// The number of its slices of the size that fills a datagram of 1200 bytes. A join sends its first chunk
/// beside a welcome, in slices of 1024 bytes.
pub const LARGE_SLICES: u64 = 226;

/// What each slice of haulier/1 has on the wire besides its data: the slice frame (7), the data header (13),
/// the tag (16), UDP and IPv4 (28).
const SLICE_OVERHEAD_BYTES: u64 = 7 + 13 + 16 + 28;

/// Bytes on the wire of a slice of 1024 bytes.
pub const SLICE_WIRE_BYTES: u64 = 1024 + SLICE_OVERHEAD_BYTES;

/// Bytes of such a slice on the article's wire, with header and check (13), UDP and IPv4 (28).
pub const ARTICLE_SLICE_WIRE_BYTES: u64 = 1024 + 13 + 28;

/// How the block is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// haulier/1, mode `secret`: a block over a connection that has sent one of 64 KiB and was then idle for
    /// two seconds.
    Warm,
    /// haulier/1, mode `secret`: a join, from before the first datagram to the block.
    ColdTicket,
    /// haulier/1, mode `token`, the token holding the client's address: a join.
    ColdToken,
    /// The article's machine: a burst, then 1 Mbit/s, resends and acks after 100 ms.
    Article,
    /// A model: a burst, then exactly the slices that an ack shows as missing. Acks after 10 ms.
    BurstResend,
    /// A model of TCP: 10 packets at first, slow start, one cut to 0.7 in a round trip with loss, SACK.
    SlowStart,
}

impl Strategy {
    /// All of them: ours, then the others.
    pub const ALL: [Self; 6] = [
        Self::Warm,
        Self::ColdTicket,
        Self::ColdToken,
        Self::Article,
        Self::BurstResend,
        Self::SlowStart,
    ];

    /// Its name, in words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::ColdTicket => "cold_ticket",
            Self::ColdToken => "cold_token",
            Self::Article => "article",
            Self::BurstResend => "burst_resend",
            Self::SlowStart => "slow_start",
        }
    }

    /// Its display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Warm => "haulier/1, connected",
            Self::ColdTicket => "haulier/1, join by ticket",
            Self::ColdToken => "haulier/1, join by token",
            Self::Article => "the article's sender",
            Self::BurstResend => "burst, exact resends",
            Self::SlowStart => "slow start, as TCP",
        }
    }

    /// The strategy with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Whether it is haulier/1 itself.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Warm | Self::ColdTicket | Self::ColdToken)
    }

    /// Whether it is a machine of the library and not a model. A machine that hangs is a fault; a model of
    /// TCP at 30 % loss is only slow.
    pub const fn is_machine(self) -> bool {
        self.is_ours() || matches!(self, Self::Article)
    }

    /// Whether the client sends a request first, so that the limit includes a round trip and not half of
    /// one.
    pub const fn is_join(self) -> bool {
        matches!(self, Self::ColdTicket | Self::ColdToken)
    }

    /// The fewest bytes that the block takes on its wire. For haulier/1 that is in the largest slices that
    /// the path carries, also for a join, which does not send such at first.
    pub const fn wire_bytes(self) -> u64 {
        match self {
            Self::Warm | Self::ColdTicket | Self::ColdToken => {
                BLOCK_BYTES + LARGE_SLICES * SLICE_OVERHEAD_BYTES
            }
            Self::Article => SLICES * ARTICLE_SLICE_WIRE_BYTES,
            Self::BurstResend | Self::SlowStart => SLICES * SLICE_WIRE_BYTES,
        }
    }

    /// The slices that it cuts the block into.
    pub const fn slices(self) -> u64 {
        match self {
            Self::Warm => LARGE_SLICES,
            _ => SLICES,
        }
    }
}

/// The blocks and their digests, shared by all runs.
#[derive(Clone, Debug)]
pub struct Kit {
    /// The block that warms up a connection.
    visit: Block,
    /// The block that is timed.
    timed: Block,
}

impl Kit {
    /// Random bytes of this seed.
    pub fn new(seed: u64) -> Self {
        let block = |tag, kib: usize| Block::new(tag, Rng::stream(seed, tag).bytes(kib << 10));
        Self { visit: block(1, 64), timed: block(2, 256) }
    }
}

/// One run.
pub fn run(strategy: Strategy, cell: &Cell, seed: u64, kit: &Kit) -> Outcome {
    play(strategy, cell, seed, kit, None)
}

/// The run of [`run`], with snapshots at several times.
pub fn replay(strategy: Strategy, cell: &Cell, seed: u64, kit: &Kit) -> (Outcome, Vec<Moment>) {
    let mut moments = Vec::new();
    let outcome = play(strategy, cell, seed, kit, Some(&mut moments));
    (outcome, moments)
}

fn play(
    strategy: Strategy,
    cell: &Cell,
    seed: u64,
    kit: &Kit,
    moments: Option<&mut Vec<Moment>>,
) -> Outcome {
    let place = stage::Place {
        cell,
        // The same for all strategies: the first packets of each meet the same losses.
        seed: Rng::stream(seed, 1 + u64::from(cell.number)).next_u64(),
        limit: cell.limit(strategy.wire_bytes(), strategy.is_join()),
    };
    let seed = place.seed;
    let mut stage = Stage::new(&place, |world, homes| -> Box<dyn Ends> {
        let rtt = Duration::from_millis(cell.rtt_ms);
        match strategy {
            Strategy::Warm => connection::join(world, homes, by_secret(), &kit.visit, seed),
            Strategy::ColdTicket => connection::join(world, homes, by_secret(), &kit.timed, seed),
            Strategy::ColdToken => connection::join(world, homes, by_token(), &kit.timed, seed),
            Strategy::Article => {
                let (first, once) = ((First::AtOnce, &kit.timed), (Reading::default(), seed));
                Box::new(Article::new(world, homes, &article_config(), first, once))
            }
            Strategy::BurstResend => model::burst_resend(world, homes, rtt),
            Strategy::SlowStart => model::slow_start(world, homes, rtt),
        }
    });
    if strategy == Strategy::Warm {
        let visit = stage.run(None);
        if let Some(reason) = visit.hang {
            return Outcome { hang: Some(format!("in the visit before: {reason}")), ..visit };
        }
        stage.wait(QUIET);
        stage.restart(&kit.timed);
    }
    Outcome { slices: strategy.slices(), ..stage.run(moments) }
}

/// How long a connection is idle before its block is timed, so that its measurements have aged.
const QUIET: Duration = Duration::from_secs(2);

/// The article's machine as the article describes it: a burst, then a megabit per second, resends after 100
/// ms, acks at least 100 ms apart.
fn article_config() -> ArticleConfig {
    const INTERVAL: Duration = Duration::from_millis(100);
    let mut config = ArticleConfig::default();
    config.sender.resend_delay = ResendDelay::Fixed(INTERVAL);
    config.sender.give_up_after = None;
    config.receiver.ack_interval = INTERVAL;
    config.receiver.abandon_after = None;
    config
}
