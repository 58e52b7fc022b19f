//! The article's strategy on the links on which it was measured before: the baseline, and a check that ours
//! is the same strategy.
//!
//! Both ends act on 60 Hz frames, packets are lost in both directions, the resend delay is the article's
//! fixed 100 ms and so is the ack interval. The time is that until the receiver has the chunk, median over
//! seeds. `REFERENCE` has the medians of an earlier, separately written simulation of the same
//! (`docs/PERFORMANCE.md` shows both).

use std::time::Duration;

use haulier_article::chunk::{MAX_CHUNK_BYTES, ResendDelay};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerMachine};

use haulier_sim::{Framed, LinkConfig, Loss, Probability, Rng, World, address};

/// Seeds that a median is taken over.
pub const SEEDS: u64 = 200;

/// The losses of a table row, in percent.
pub const LOSSES: [u64; 5] = [0, 1, 5, 10, 20];

const FRAME: Duration = Duration::from_nanos(16_666_667);

/// One link and one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Rate of the bottleneck in Mbit/s.
    pub rate_mbit: u64,
    /// The sender's budget in kbit/s.
    pub budget_kbit: u64,
    /// Round trip in ms.
    pub rtt_ms: u64,
    /// Loss each way in percent.
    pub loss_percent: u64,
    /// Queue at the bottleneck in KiB; `None` is without limit.
    pub queue_kib: Option<u64>,
    /// Whether the chunk starts with the burst.
    pub burst: bool,
}

/// A line of the reference table: everything but the loss, and the medians in seconds for [`LOSSES`].
type ReferenceLine = (u64, u64, u64, Option<u64>, bool, [f64; 5]);

/// Medians in seconds, as published with the design: rate, budget, RTT, queue, burst, and one time for
/// each of [`LOSSES`].
const REFERENCE: [ReferenceLine; 24] = [
    (10, 256, 50, None, true, [0.25, 0.32, 0.65, 1.12, 2.32]),
    (10, 256, 100, None, true, [0.28, 0.38, 0.71, 1.18, 2.38]),
    (10, 256, 200, None, true, [0.33, 0.53, 0.87, 1.36, 2.60]),
    (10, 512, 50, None, true, [0.25, 0.31, 0.44, 0.68, 1.28]),
    (10, 512, 100, None, true, [0.28, 0.38, 0.52, 0.77, 1.37]),
    (10, 512, 200, None, true, [0.33, 0.53, 0.70, 0.95, 1.58]),
    (10, 1_000, 50, None, true, [0.25, 0.30, 0.40, 0.51, 0.81]),
    (10, 1_000, 100, None, true, [0.28, 0.38, 0.47, 0.57, 0.90]),
    (10, 1_000, 200, None, true, [0.33, 0.53, 0.63, 0.78, 1.12]),
    (100, 256, 50, None, true, [0.06, 0.22, 0.52, 1.01, 2.26]),
    (100, 256, 100, None, true, [0.08, 0.30, 0.57, 1.07, 2.27]),
    (100, 256, 200, None, true, [0.13, 0.44, 0.79, 1.29, 2.53]),
    (100, 512, 50, None, true, [0.06, 0.20, 0.34, 0.58, 1.18]),
    (100, 512, 100, None, true, [0.08, 0.28, 0.42, 0.66, 1.24]),
    (100, 512, 200, None, true, [0.13, 0.43, 0.62, 0.89, 1.51]),
    (100, 1_000, 50, None, true, [0.06, 0.20, 0.29, 0.41, 0.71]),
    (100, 1_000, 100, None, true, [0.08, 0.27, 0.37, 0.48, 0.80]),
    (100, 1_000, 200, None, true, [0.13, 0.42, 0.52, 0.71, 1.05]),
    (100, 256, 100, None, false, [8.57, 8.65, 9.05, 9.57, 10.76]),
    (100, 512, 100, None, false, [4.31, 4.35, 4.56, 4.82, 5.47]),
    (100, 1_000, 100, None, false, [2.23, 2.25, 2.38, 2.53, 2.88]),
    (10, 1_000, 50, Some(64), true, [1.85, 1.87, 1.98, 2.13, 2.47]),
    (10, 1_000, 100, Some(64), true, [1.92, 1.94, 2.07, 2.21, 2.57]),
    (10, 1_000, 200, Some(64), true, [2.08, 2.10, 2.28, 2.44, 2.78]),
];

/// Every row, with the reference median in seconds.
pub fn rows() -> impl Iterator<Item = (Row, f64)> {
    REFERENCE.into_iter().flat_map(|(rate_mbit, budget_kbit, rtt_ms, queue_kib, burst, medians)| {
        LOSSES.into_iter().zip(medians).map(move |(loss_percent, median)| {
            (Row { rate_mbit, budget_kbit, rtt_ms, loss_percent, queue_kib, burst }, median)
        })
    })
}

impl Row {
    /// The median time over `seeds` runs until the receiver has 256 KiB.
    ///
    /// # Panics
    /// If a transfer does not finish within an hour of virtual time.
    pub fn median(&self, seeds: u64) -> Duration {
        let mut times: Vec<Duration> = (0..seeds).map(|seed| self.time(seed)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// The time of one run.
    fn time(&self, seed: u64) -> Duration {
        let mut config = ArticleConfig::default();
        config.sender.rate_bps = self.budget_kbit * 1_000;
        config.sender.burst = self.burst;
        config.sender.resend_delay = ResendDelay::Fixed(Duration::from_millis(100));
        config.sender.give_up_after = None;
        config.receiver.ack_interval = Duration::from_millis(100);
        config.receiver.abandon_after = None;
        let link = LinkConfig {
            queue_bytes: self.queue_kib.map(|kib| kib * 1024),
            loss: Loss::Independent(Probability::percent(self.loss_percent)),
            ..LinkConfig::new(self.rate_mbit * 1_000_000, Duration::from_micros(self.rtt_ms * 500))
        };
        // Two games do not tick together: the receiver's frames are at a random offset from the sender's.
        let phase = Rng::stream(seed, 1_000).below(FRAME.as_nanos() as u64);
        let end = |remote, first| {
            let peer = ArticlePeer::new(config.clone());
            Framed::new(PeerMachine::connected(peer, address(remote)), FRAME, first)
        };
        let (mut sender, receiver) = (end(2, Instant::ZERO), end(1, Instant::from_nanos(phase)));
        let chunk = vec![0; MAX_CHUNK_BYTES];
        assert!(sender.inner.peer.send_chunk(chunk).is_ok(), "an empty queue takes a chunk");

        let mut world = World::new(seed).for_measuring();
        let (_, receiver) = world.pair(sender, receiver, link.clone(), link);
        let hour = Instant::from_millis(3_600_000);
        world.run_until(hour, |world| world.host(receiver).inner.peer.receiver().unread() > 0);
        assert!(world.now() < hour, "{self:?} with seed {seed} does not finish");
        world.now().since(Instant::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The corners of the table of `haulier-lab bench article`, with fewer seeds.
    #[test]
    fn the_corners_of_the_table_match() {
        for (row, reference) in rows() {
            let corner = row.rtt_ms == 100 && matches!(row.loss_percent, 0 | 20);
            if !corner || row.budget_kbit == 512 {
                continue;
            }
            let median = row.median(40).as_secs_f64();
            // Printed to 10 ms: half of that is rounding.
            let off = (median - reference).abs() - 0.005;
            assert!(off <= 0.15 * reference, "{row:?}: {median:.3} s, not {reference} s");
        }
    }
}
