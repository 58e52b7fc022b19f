//! What transfers do to a link that is too small for them: how much of what they send is dropped at it.
//!
//! Where a transfer goes on at a rate that does not pass, it harms all others on the link, and itself. Each
//! test is a link and a number of transfers, and prints what it found; `HARM_SEED` replays it.

use std::time::Duration;

use haulier_lab::share::{Competitor, Share, ShareReport, config};
use haulier_proto::Instant;
use haulier_proto::connection::ConnectionConfig;
use haulier_sim::{Access, LinkConfig, Loss, Probability};

/// Transfers on a link, and what may become of it.
#[derive(Clone, Copy, Debug)]
struct Row {
    kbps: u64,
    queue_bytes: u64,
    rtt_ms: u64,
    flows: u64,
    /// Of each block. They begin this long after each other.
    block_bytes: usize,
    apart_ms: u64,
    lasts_s: u64,
    min_rate_bps: u64,
    /// Behind the queue.
    loss_percent: u64,
    /// The way up has this part of the rate.
    up_part: u64,
}

/// The results: the dropped share of the offered bytes, the offered bytes over those that the link could
/// pass, and the block bytes over those that it could pass.
#[derive(Clone, Copy, Debug)]
struct Harm {
    dropped: f64,
    offered: f64,
    used: f64,
    jain: f64,
    broken: usize,
}

/// Of transfers that share a link.
const SHARED: Row = Row::one(10_000, 64 << 10, 50);

impl Row {
    const fn one(kbps: u64, queue_bytes: u64, rtt_ms: u64) -> Self {
        let (flows, block_bytes, apart_ms, lasts_s) = (1, 16 << 20, 0, 10);
        let (min_rate_bps, loss_percent) = (200_000, 0);
        Self {
            kbps,
            queue_bytes,
            rtt_ms,
            flows,
            block_bytes,
            apart_ms,
            lasts_s,
            min_rate_bps,
            loss_percent,
            up_part: 1,
        }
    }

    fn config(&self) -> ConnectionConfig {
        config().with_min_rate_bps(self.min_rate_bps)
    }

    /// Runs it; no connection ends.
    fn run(&self) -> Harm {
        let harm = self.measure();
        assert_eq!(harm.broken, 0, "{self:?}");
        harm
    }

    fn measure(&self) -> Harm {
        let seed = std::env::var("HARM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let flow = |n| {
            Competitor::haulier(self.config())
                .with_blocks_of(self.block_bytes)
                .with_extra_rtt(Duration::from_millis(self.rtt_ms))
                .starting_at(Instant::from_millis(n * self.apart_ms))
        };
        let mut down =
            LinkConfig::new(self.kbps * 1_000, Duration::ZERO).with_queue(self.queue_bytes);
        if self.loss_percent > 0 {
            down.loss = Loss::Independent(Probability::percent(self.loss_percent));
        }
        let lasts = Duration::from_secs(self.lasts_s);
        let flows = (0..self.flows).map(flow).collect();
        let mut access = Access::from(down);
        access.up.rate_bps = access.up.rate_bps.map(|bps| bps / self.up_part);
        let report = Share { access, flows, lasts }.run(seed);
        let harm = self.judge(&report);
        println!(
            "{} kbit/s, {} bytes, {} ms, {} flows, floor {}: {:.1} % dropped, {:.2} of the link offered, \
             {:.2} used, Jain {:.3}, queue {:.1} ms p50, {} broken, seed {seed}",
            self.kbps,
            self.queue_bytes,
            self.rtt_ms,
            self.flows,
            self.min_rate_bps,
            harm.dropped * 1e2,
            harm.offered,
            harm.used,
            harm.jain,
            report.queue_p50.as_secs_f64() * 1e3,
            report.broken,
        );
        harm
    }

    /// Fairness and use are those of the second half.
    fn judge(&self, report: &ShareReport) -> Harm {
        let s = |seconds| Instant::from_millis(seconds * 1_000);
        let (half, end) = (s(self.lasts_s / 2), s(self.lasts_s));
        let could = (self.kbps * 1_000 * self.lasts_s / 8) as f64;
        let used = report.mbit(half, end).iter().sum::<f64>() * 1e3 / self.kbps as f64;
        Harm {
            dropped: report.dropped_bytes as f64 / report.offered_bytes as f64,
            offered: report.offered_bytes as f64 / could,
            used,
            jain: report.jain(half, end),
            broken: report.broken,
        }
    }
}

/// Transfers on one link that begin half a second after each other: nearly all dropped bytes are of the first
/// flights. Before there were drains in step a fifth was dropped. Ten are not yet as fair as six.
#[test]
fn ten_transfers_drop_less_than_a_tenth() {
    for (flows, dropped, jain) in [(6, 0.055, 0.9), (10, 0.1, 0.88)] {
        let row = Row { flows, block_bytes: 2 << 20, apart_ms: 500, lasts_s: 20, ..SHARED };
        let harm = row.run();
        assert!(harm.dropped < dropped && harm.jain > jain, "{row:?}: {harm:?}");
    }
}

/// The floors of fifty are twice the link. Each sends before its first answer a third of what the link passes
/// in that time, and this third is dropped. It was three quarters while each guess was used for a chunk. The
/// link is used, and no connection breaks. With some seeds a train shows one transfer the whole link, and
/// that one keeps a third of the link (Jain 0.26); with others no transfer does (0.86).
#[test]
fn fifty_transfers_use_a_small_link() {
    let (flows, block_bytes, apart_ms, lasts_s) = (50, 256 << 10, 100, 30);
    let row = Row { kbps: 5_000, flows, block_bytes, apart_ms, lasts_s, ..SHARED };
    let harm = row.run();
    assert!(harm.dropped < 0.36 && harm.used > 0.9 && harm.jain > 0.2, "{row:?}: {harm:?}");
    assert_eq!(harm.broken, 0, "{row:?}");
}

/// The acks of ten transfers are more than a twentieth of their link passes, and a full queue of them has no
/// room for the requests of clients that join: of ten up to six gave up. On one of three seeds two still do.
#[test]
fn acks_leave_room_for_those_who_join() {
    let one = Row::one(2_000, 16 << 10, 20);
    let (flows, block_bytes, apart_ms, lasts_s) = (10, 1 << 20, 500, 20);
    let row = Row { flows, block_bytes, apart_ms, lasts_s, up_part: 20, ..one };
    let harm = row.measure();
    assert!(harm.broken <= 2 && harm.used > 0.65, "{row:?}: {harm:?}");
}

/// Queues of 1.0 to 1.7 ms: a full one delays less than a transfer accepts, or little more. The growing rate
/// made its own losses usual ones, until half of all bytes were dropped. Now the rate is raised again and
/// again until the queue overflows, and only that is dropped: 3 to 11 % by the seed, because a tenth that the
/// first rounds lose counts as usual for long.
#[test]
fn a_queue_too_short_to_be_seen_is_not_overrun() {
    let links = [(100, 16, 10), (400, 64, 5), (1_000, 128, 4), (10_000, 2_048, 2)];
    for (mbit, kib, lasts_s) in links {
        let row = Row { lasts_s, ..Row::one(mbit * 1_000, kib << 10, 20) };
        let harm = row.run();
        let used = if mbit < 10_000 { 0.85 } else { 0.5 };
        assert!(harm.dropped < 0.12 && harm.used > used, "{row:?}: {harm:?}");
    }
}

/// Links slower than the floor, and so slow that eight arrivals take a second: a guess is not kept until
/// then, and the rate falls below the floor. (64 kbit/s was offered seven times what it passes, because the
/// losses of the first flight counted as the link's own, and raised the rate.)
#[test]
fn weak_links_are_not_offered_much_more_than_they_pass() {
    for (kbps, loss_percent) in [(32, 0), (64, 0), (64, 5), (64, 20), (100, 0), (128, 0)] {
        for min_rate_bps in [200_000, 0] {
            let one = Row::one(kbps, 16_000, 200);
            let row =
                Row { min_rate_bps, loss_percent, lasts_s: 40, block_bytes: 256 << 10, ..one };
            let harm = row.run();
            let least = 0.8 * (1.0 - row.loss_percent as f64 / 100.0);
            assert!(harm.offered < 1.3 && harm.used > least, "{row:?}: {harm:?}");
        }
    }
}
