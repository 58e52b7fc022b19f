//! Links that deliver late, out of order, in bunches, twice or not at all: one join over each, against the
//! physical limit.
//!
//! A sender that estimates the link from the arrival times of its datagrams learns least on such links.
//! A [`Disorder`] says what one does to datagrams; the rows of the project's lab are among the
//! [named ones](Disorder::NAMED), and the [jittery](Disorder::jittery), [bunched](Disorder::bunched) and
//! [policed](Disorder::policed) ones are others of the same kinds, so that nothing is tuned to a row.
//! [`Joins`] are many over one of them.

use std::fmt;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::profile::join_limit;
use haulier_sim::{Access, Excess, LinkConfig, Loss, Probability, Rng, TokenBucket, World};

use crate::ends::{Ends, Haulier, Homes, Reading};
use crate::grid::connection::{by_secret, by_token};

/// A join that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The client begins within this time, so that bunches fall differently in each run.
const PHASE_NANOS: u64 = 100_000_000;

/// A link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disorder {
    /// Its name, empty if it has none.
    pub name: &'static str,
    /// Rate in Mbit/s at IP level; with a policer what that passes.
    pub rate_mbit: u64,
    /// Round trip without queueing, in ms, half each way.
    pub rtt_ms: u64,
    /// Droptail queue in KiB, each way.
    pub queue_kib: u64,
    /// Extra delay each way, uniform from 0 up to this, in ms; it reorders.
    pub jitter_ms: u64,
    /// Mean loss each way, in parts of a thousand.
    pub loss_permille: u64,
    /// Delivered packets that come twice, in parts of a thousand.
    pub twice_permille: u64,
    /// Packets arrive at multiples of this time, in ms; 0 is at once.
    pub bunch_ms: u64,
    /// The bucket of a policer in KiB, on a line five times as fast; 0 means no policer.
    pub police_kib: u64,
}

/// How fast the policed line is, in rates of the policer.
const POLICED_LINE: u64 = 5;

const BASE: Disorder = Disorder {
    name: "",
    rate_mbit: 0,
    rtt_ms: 0,
    queue_kib: 256,
    jitter_ms: 0,
    loss_permille: 0,
    twice_permille: 0,
    bunch_ms: 0,
    police_kib: 0,
};

/// How the client joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// With a token that has its address: the server may send at once.
    Token,
    /// With a ticket, as a secret: the server may send three times what it received, until an answer comes.
    Ticket,
}

impl Disorder {
    /// The links of the lab's second kind, with one rate each.
    pub const NAMED: [Self; 4] = [
        Self { name: "airtime", rate_mbit: 30, rtt_ms: 25, loss_permille: 10, bunch_ms: 8, ..BASE },
        Self { name: "policer", rate_mbit: 20, rtt_ms: 60, police_kib: 64, ..BASE },
        Self {
            name: "roaming",
            rate_mbit: 12,
            rtt_ms: 45,
            queue_kib: 128,
            jitter_ms: 20,
            loss_permille: 10,
            ..BASE
        },
        Self { name: "mess", rate_mbit: 40, rtt_ms: 20, jitter_ms: 8, twice_permille: 10, ..BASE },
    ];

    /// The link with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|link| link.name == name)
    }

    /// Links with jitter that reorders: 5 to 200 Mbit/s, 10 to 200 ms.
    pub fn jittery() -> impl Iterator<Item = Self> {
        let links = [5, 12, 40, 100, 200].into_iter().flat_map(|rate_mbit| {
            [10, 40, 100, 200].map(|rtt_ms| Self { rate_mbit, rtt_ms, ..BASE })
        });
        links.flat_map(|link| {
            let jitters = [2, 8, 20, 50].into_iter().filter(move |&ms| ms <= link.rtt_ms);
            jitters.map(move |jitter_ms| {
                // Every second one loses.
                let loss_permille = if (link.rtt_ms / 10 + jitter_ms) % 4 == 0 { 10 } else { 0 };
                Self { jitter_ms, loss_permille, ..link }
            })
        })
    }

    /// Links with bunches of 2 to 50 ms.
    pub fn bunched() -> impl Iterator<Item = Self> {
        let links = [10, 30, 100, 200].into_iter().flat_map(|rate_mbit| {
            [25, 80].map(|rtt_ms| Self { rate_mbit, rtt_ms, loss_permille: 10, ..BASE })
        });
        links.flat_map(|link| [2, 5, 8, 20, 50].map(|bunch_ms| Self { bunch_ms, ..link }))
    }

    /// Policed links.
    pub fn policed() -> impl Iterator<Item = Self> {
        let links = [5, 10, 20, 50]
            .into_iter()
            .flat_map(|rate_mbit| [20, 60, 120].map(|rtt_ms| Self { rate_mbit, rtt_ms, ..BASE }));
        links.flat_map(|link| [16, 32, 64, 128].map(|police_kib| Self { police_kib, ..link }))
    }

    /// One direction of it.
    fn link(&self) -> LinkConfig {
        let bps = self.rate_mbit * 1_000_000;
        let bucket = TokenBucket {
            rate_bps: bps,
            burst_bytes: self.police_kib << 10,
            excess: Excess::Dropped,
        };
        let bucket = (self.police_kib > 0).then_some(bucket);
        let jitter = Duration::from_millis(self.jitter_ms);
        LinkConfig {
            rate_bps: Some(bps * if bucket.is_some() { POLICED_LINE } else { 1 }),
            bucket,
            queue_bytes: Some(self.queue_kib << 10),
            delay: Duration::from_micros(self.rtt_ms * 500),
            jitter,
            reorder: self.jitter_ms > 0,
            loss: match self.loss_permille {
                0 => Loss::None,
                permille => Loss::Independent(Probability::ratio(permille, 1_000)),
            },
            duplicate: Probability::ratio(self.twice_permille, 1_000),
            duplicate_delay: jitter,
            aggregation: Duration::from_millis(self.bunch_ms),
            ..LinkConfig::default()
        }
    }

    /// L, without any jitter or wait for a bunch.
    fn limit(&self, bytes: usize) -> Duration {
        let link = LinkConfig { rate_bps: Some(self.rate_mbit * 1_000_000), ..self.link() };
        join_limit(&link, bytes as u64)
    }

    /// One join for a block of `bytes` bytes.
    pub fn join(&self, joining: Joining, bytes: usize, seed: u64) -> Join {
        let mut world = World::new(seed).for_measuring();
        let homes = Homes::new(&mut world, &Access::default(), &Access::from(self.link()));
        let configs = match joining {
            Joining::Token => by_token(),
            Joining::Ticket => by_secret(),
        };
        let block = Block::new(1, Rng::stream(seed, 92).bytes(bytes));
        let keys = [78, 77].map(|purpose| Rng::stream(seed, purpose).key());
        let begins = Instant::from_nanos(Rng::stream(seed, 76).below(PHASE_NANOS));
        let ends = Haulier::beginning(
            &mut world,
            homes,
            (configs, keys),
            &block,
            (Reading::default(), seed),
            begins,
        );
        let is_done = world.run_until(begins + PATIENCE, |world| ends.received(world).0 > 0);
        let time = is_done.then(|| world.now().since(begins));
        // What was sent for nothing counts too.
        world.run_to(world.now() + Duration::from_millis(500));
        let sent = world.links(homes.server).0.stats().offered_bytes;
        Join { time, limit: self.limit(bytes), wire: sent as f64 / bytes as f64 }
    }

    /// One join for each seed from 1 to `seeds`.
    pub fn joins(&self, joining: Joining, bytes: usize, seeds: u64) -> Joins {
        Joins((1..=seeds).map(|seed| self.join(joining, bytes, seed)).collect())
    }
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = [
            (self.jitter_ms, "jitter", "ms"),
            (self.bunch_ms, "bunches", "ms"),
            (self.police_kib, "policer", "KiB"),
            (self.loss_permille, "loss", "permille"),
        ];
        let parts: Vec<_> = of.iter().filter(|part| part.0 > 0).collect();
        let parts: String =
            parts.iter().map(|(n, what, unit)| format!(", {what} {n} {unit}")).collect();
        write!(f, "{:8}{} Mbit/s, {} ms{parts}", self.name, self.rate_mbit, self.rtt_ms)
    }
}

/// One join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Join {
    /// From the request to the block; `None` if it hangs.
    pub time: Option<Duration>,
    /// The physical limit.
    pub limit: Duration,
    /// Bytes that the server sent, with headers, over those of the block.
    pub wire: f64,
}

impl Join {
    /// The time in L.
    pub fn in_limits(&self) -> f64 {
        self.time.map_or(f64::INFINITY, |time| time.as_secs_f64() / self.limit.as_secs_f64())
    }
}

/// Joins over one link.
#[derive(Clone, Debug)]
pub struct Joins(Vec<Join>);

impl Joins {
    /// The value below which this share of the joins is.
    fn percentile(&self, share: f64, of: impl Fn(&Join) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let place = (share * values.len() as f64).ceil() as usize;
        values[place.clamp(1, values.len()) - 1]
    }

    /// The median time in L.
    pub fn median(&self) -> f64 {
        self.percentile(0.5, Join::in_limits)
    }

    /// The time in L that 95 of 100 joins do not exceed.
    pub fn p95(&self) -> f64 {
        self.percentile(0.95, Join::in_limits)
    }

    /// The median of the bytes sent over those of the block.
    pub fn wire(&self) -> f64 {
        self.percentile(0.5, |join| join.wire)
    }
}

impl fmt::Display for Joins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5.2} {:5.2} L, wire {:4.2}", self.median(), self.p95(), self.wire())
    }
}
