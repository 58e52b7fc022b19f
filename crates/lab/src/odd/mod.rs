//! Links that may mislead a sender's measurements: a join over each, a warm block after it, and the
//! article's sender on the same link.
//!
//! An [`OddLink`] has the link of the first block and that of the second, with a pause between them, and how
//! the client reads its socket. A [`Timing`] is compared with L, the physical limit, and with the article's
//! sender.

use std::time::Duration;

use haulier_article::ArticleConfig;
use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_sim::hosts::{Keyed, configs};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Access, Excess, Link, LinkConfig, Loss, RateChange, Rng, World};

pub use crate::ends::Reading;
use crate::ends::{Article, Ends, First, Haulier, Homes};

/// Bytes of each of the two blocks: one full chunk.
pub const BLOCK_BYTES: usize = 256 << 10;

/// The pause between the blocks: long enough for a sender to be idle, and short enough to keep its
/// estimates.
const PAUSE: Duration = Duration::from_secs(1);

/// A block that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A link that is not one rate, one delay and a queue.
#[derive(Clone, Debug)]
pub struct OddLink {
    /// Its name, for display.
    pub name: &'static str,
    /// The client's access during the first block, from the client's first request on; changes of rate are
    /// counted from there.
    pub cold: Access,
    /// During the second, likewise.
    pub warm: Access,
    /// How the client reads.
    pub reading: Reading,
}

/// The sender.
#[derive(Clone, Copy, Debug)]
pub enum Contender {
    /// A join of haulier/1, and a second block on its connection.
    Haulier(ConnectionConfig),
    /// The article's: burst and 1 Mbit/s. It has no handshake; a request of a few bytes starts it.
    Article,
}

/// The transfer of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the request, or the call, until the client has the block; `None` if it hangs.
    pub time: Option<Duration>,
    /// L, the physical limit.
    pub limit: Duration,
    /// Bytes that the server sent, until the next block at most, headers included.
    pub sent_bytes: u64,
    /// Bytes dropped on the downlink: at the queue, at the bucket, and at the socket's buffer.
    pub dropped_bytes: u64,
}

/// Both blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddReport {
    /// The join.
    pub cold: Timing,
    /// The second block.
    pub warm: Timing,
}

impl OddLink {
    /// The same link for both blocks, read at once.
    pub fn new(name: &'static str, access: impl Into<Access>) -> Self {
        let access = access.into();
        Self { name, cold: access.clone(), warm: access, reading: Reading::default() }
    }

    /// Runs both blocks.
    pub fn run(&self, contender: Contender, seed: u64) -> OddReport {
        let mut world = World::new(seed);
        let cold = shifted(&self.cold, Instant::ZERO);
        let homes = Homes::new(&mut world, &Access::default(), &cold);
        let block = Block::new(1, Rng::stream(seed, 92).bytes(BLOCK_BYTES));
        let ends = self.ends(&mut world, homes, contender, &block, seed);
        let counters = |world: &World| {
            let sent = world.links(homes.server).0.stats().offered_bytes;
            let dropped = world.links(homes.client).1.stats().dropped_bytes;
            (sent, dropped + ends.dropped_bytes(world))
        };
        let mut before = (0, 0);
        let mut timing = |n, access: &Access| {
            let begins = world.now();
            if n > 0 {
                let Access { up, down } = shifted(access, begins);
                for (link, config) in world.links_mut(homes.client).into_iter().zip([up, down]) {
                    link.set_config(config);
                }
                ends.send(&mut world, &block);
            }
            let is_done = world.run_until(begins + PATIENCE, |world| ends.received(world).0 > n);
            let time = is_done.then(|| world.now().since(begins));
            world.run_to(world.now() + PAUSE);
            let after = counters(&world);
            let (sent_bytes, dropped_bytes) = (after.0 - before.0, after.1 - before.1);
            before = after;
            Timing { time, limit: limit(access, n == 0), sent_bytes, dropped_bytes }
        };
        OddReport { cold: timing(0, &self.cold), warm: timing(1, &self.warm) }
    }

    fn ends(
        &self,
        world: &mut World,
        homes: Homes,
        contender: Contender,
        block: &Block,
        seed: u64,
    ) -> Box<dyn Ends> {
        let reading = self.reading;
        match contender {
            Contender::Haulier(connection) => {
                let configs = configs(Keyed::Secret, connection);
                let keys = [78, 77].map(|purpose| Rng::stream(seed, purpose).key());
                Box::new(Haulier::new(world, homes, (configs, keys), block, (reading, seed)))
            }
            // The library's own settings: burst, 1 Mbit/s, resends by the round trip.
            Contender::Article => {
                let (config, first) = (ArticleConfig::default(), (First::Asked, block));
                Box::new(Article::new(world, homes, &config, first, (reading, seed)))
            }
        }
    }

    /// One report for each of `runs` seeds, from `seed` on.
    pub fn runs(&self, contender: Contender, seed: u64, runs: u64) -> Vec<OddReport> {
        (0..runs).map(|n| self.run(contender, seed + n)).collect()
    }
}

impl OddReport {
    /// The median run by time, separately for the join and the warm block.
    ///
    /// # Panics
    /// If `reports` is empty.
    pub fn median(reports: &[Self]) -> Self {
        let median = |pick: fn(&Self) -> Timing| {
            let mut timings: Vec<Timing> = reports.iter().map(pick).collect();
            timings.sort_by_key(Timing::or_for_ever);
            timings[timings.len() / 2]
        };
        Self { cold: median(|report| report.cold), warm: median(|report| report.warm) }
    }

    /// Whether one of the blocks did not arrive.
    pub const fn hangs(&self) -> bool {
        self.cold.time.is_none() || self.warm.time.is_none()
    }
}

impl Timing {
    /// The time; the maximum duration if it hung.
    pub fn or_for_ever(&self) -> Duration {
        self.time.unwrap_or(Duration::MAX)
    }

    /// The time in L.
    pub fn in_limits(&self) -> f64 {
        self.time.map_or(f64::INFINITY, |time| time.as_secs_f64() / self.limit.as_secs_f64())
    }

    /// The bytes sent beyond those of the block in full datagrams, as a fraction of the latter.
    pub fn waste(&self) -> f64 {
        self.sent_bytes as f64 / min_bytes(0.0) as f64 - 1.0
    }
}

impl std::fmt::Display for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.time {
            Some(time) => {
                write!(f, "{:6.0} ms, {:5.2} L", time.as_secs_f64() * 1e3, self.in_limits())?;
            }
            None => f.write_str("hangs")?,
        }
        let dropped = self.dropped_bytes as f64 / 1024.0;
        write!(f, ", waste {:3.0} %, dropped {dropped:3.0} KiB", self.waste() * 1e2)
    }
}

/// Bytes of a block in full datagrams with their headers, lost ones sent again.
fn min_bytes(loss: f64) -> u64 {
    (BLOCK_BYTES as f64 * (1.0 + UDP_IP_OVERHEAD as f64 / 1200.0) / (1.0 - loss)) as u64
}

/// L on a link that may change: when the last datagram arrives if all are offered at once to the same link
/// with an unlimited queue and no faults. A join also includes the delay of the request.
fn limit(access: &Access, is_cold: bool) -> Duration {
    let begins = if is_cold { access.up.delay } else { Duration::ZERO };
    let mut down = access.down.clone();
    let bytes = min_bytes(down.loss.mean().as_f64());
    if let Some(bucket) = &mut down.bucket {
        bucket.excess = Excess::Queued;
    }
    let mut link = Link::new(
        LinkConfig {
            queue_bytes: None,
            loss: Loss::None,
            rate_bps: down.rate_bps,
            rate_changes: down.rate_changes,
            bucket: down.bucket,
            aggregation: down.aggregation,
            delay: down.delay,
            ..LinkConfig::default()
        },
        0,
    );
    let begins_at = Instant::ZERO + begins;
    let mut left = bytes;
    while left > 0 {
        let packet = left.clamp(UDP_IP_OVERHEAD, 1200 + UDP_IP_OVERHEAD);
        link.offer(begins_at, &vec![0; (packet - UDP_IP_OVERHEAD) as usize]);
        left = left.saturating_sub(packet);
    }
    let (mut last, mut datagram) = (begins_at, Vec::new());
    while let Some(at) = link.poll_timeout() {
        link.poll_delivery(at, &mut datagram);
        last = at;
    }
    last.since(Instant::ZERO)
}

/// The access with its changes counted from `begins`.
fn shifted(access: &Access, begins: Instant) -> Access {
    let shift = |link: &LinkConfig| {
        let later = |change: &RateChange| RateChange {
            at: begins + change.at.since(Instant::ZERO),
            rate_bps: change.rate_bps,
        };
        LinkConfig { rate_changes: link.rate_changes.iter().map(later).collect(), ..link.clone() }
    };
    Access { up: shift(&access.up), down: shift(&access.down) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_sim::profile::{join_limit, physical_limit};
    use haulier_sim::{Probability, Profile};

    #[test]
    fn the_limit_is_that_of_the_profiles_where_nothing_changes() {
        for profile in &Profile::ALL {
            let link = profile.link();
            let access = Access::from(link.clone());
            let expected = [join_limit, physical_limit].map(|f| f(&link, BLOCK_BYTES as u64));
            for (is_cold, expected) in [true, false].into_iter().zip(expected) {
                let off = limit(&access, is_cold).abs_diff(expected);
                assert!(off < Duration::from_millis(1), "{}: {off:?}", profile.name);
            }
        }
    }

    /// On a free link the article's burst arrives at L, so the harness adds no time.
    #[test]
    fn the_articles_burst_is_at_the_limit_where_the_queue_holds_it() {
        let link = LinkConfig { queue_bytes: None, ..Profile::named("fiber").unwrap().link() };
        let link = OddLink::new("roomy", link);
        let report = link.run(Contender::Article, 1);
        println!("{} | {}", report.cold, report.warm);
        for timing in [report.cold, report.warm] {
            assert!((0.99..1.06).contains(&timing.in_limits()), "{timing}");
            assert_eq!(timing.dropped_bytes, 0);
        }
    }

    /// 64 KiB of queue: the rest is sent within the budget, which takes at least 1.9 s, as in the article's
    /// table.
    #[test]
    fn the_articles_burst_into_a_short_queue_costs_seconds() {
        let shallow = LinkConfig::new(10_000_000, Duration::from_millis(25)).with_queue(64 << 10);
        let link = OddLink::new("short queue", shallow);
        let report = link.run(Contender::Article, 1);
        println!("{} | {}", report.cold, report.warm);
        let seconds = report.warm.time.unwrap().as_secs_f64();
        assert!((1.3..2.2).contains(&seconds), "{seconds}");
        assert!(report.warm.dropped_bytes > 150_000);
    }

    #[test]
    fn a_link_that_carries_nothing_is_a_hang() {
        let dead = LinkConfig {
            loss: Loss::Independent(Probability::percent(100)),
            ..LinkConfig::default()
        };
        let link = OddLink::new("dead", Access { up: dead, down: LinkConfig::default() });
        assert_eq!(link.run(Contender::Article, 1).cold.time, None);
    }
}
