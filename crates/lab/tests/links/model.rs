//! Links that the queries on a model of the window have found (`proofs/window/README.md`): on both sides of
//! where their claims end.
//!
//! Each test prints what it found.

use std::time::Duration;

use haulier_lab::share::{Competitor, Share, config};
use haulier_proto::Instant;
use haulier_sim::LinkConfig;

const MS: Duration = Duration::from_millis(1);

/// Flows that begin half a second apart, for 15 seconds: what each has of the link from second 5 on, and the
/// part that was dropped.
fn share(mbit: u64, rtt_ms: u32, flows: u64, link: LinkConfig, seed: u64) -> (Vec<f64>, f64) {
    let rate_bps = Some(mbit * 1_000_000);
    let flow = |n: u64| {
        let flow = Competitor::haulier(config()).with_extra_rtt(rtt_ms * MS);
        flow.starting_at(Instant::from_millis(500 * n))
    };
    let flows = (0..flows).map(flow).collect();
    let share = Share::new(LinkConfig { rate_bps, ..link }, flows, Duration::from_secs(15));
    let report = share.run(seed);
    let got = report.mbit(Instant::from_millis(5_000), Instant::from_millis(15_000));
    (
        got.into_iter().map(|got| got / mbit as f64).collect(),
        report.dropped_bytes as f64 / report.offered_bytes as f64,
    )
}

/// Jitter that keeps the order is a queue to the law. Up to the target (7 and 2.9 ms here) that costs next to
/// nothing; beyond, the window rests where its target is the jitter. The last bound is what holds, and not
/// what should: fifteen runs use 0.22 to 0.75 of the link there, and their median is 0.57 (0.64 while a
/// window was smaller where rates vary).
#[test]
fn jitter_up_to_the_target_leaves_the_link_in_use() {
    let links = [(10, 50, 7_000, 0.9), (100, 20, 2_900, 0.9), (100, 20, 20_000, 0.55)];
    for (mbit, rtt_ms, jitter_us, least) in links {
        let jitter = Duration::from_micros(jitter_us);
        let link = LinkConfig { jitter, ..LinkConfig::default() }.with_queue(1 << 20);
        let mut used: [_; 15] =
            core::array::from_fn(|n| share(mbit, rtt_ms, 1, link.clone(), n as u64 + 1).0[0]);
        println!("{mbit} Mbit/s, {rtt_ms} ms, {jitter_us} us of jitter: {used:.3?} of the link");
        used.sort_by(f64::total_cmp);
        assert!(used[7] > least, "{mbit} Mbit/s, {jitter_us} us: {used:?}");
    }
}

/// Behind a queue that holds the target of two flows they have equal shares. Behind half of it
/// one loses what both send too much, and holds its small window down in one trial after the other, while the
/// losses of the other stay below what is an excess: one has nine tenths of the link and more. The bounds of
/// those are what holds, and not what should. They are of the means of eight seeds: behind five packets the
/// ratio is 1 to 135.
#[test]
fn two_flows_share_behind_a_queue_that_holds_their_target() {
    // Mbit/s, round trip, packets in the queue, the largest ratio of shares, and the largest part dropped.
    let links = [
        (10, 50, 20, 1.3, 0.02),
        (100, 20, 40, 4.0, 0.02),
        (10, 50, 8, 15.0, 0.05),
        (10, 50, 5, 20.0, 0.09),
    ];
    for (mbit, rtt_ms, packets, max_ratio, max_dropped) in links {
        let (mut ratios, mut drops) = (0.0, 0.0);
        for seed in 1..=8 {
            let link = LinkConfig::default().with_queue(packets * 1_500);
            let (used, dropped) = share(mbit, rtt_ms, 2, link, seed);
            ratios += (used[0].max(used[1]) / used[0].min(used[1])).ln() / 8.0;
            drops += dropped / 8.0;
            let what = format!("{mbit} Mbit/s, {rtt_ms} ms, {packets} packets, seed {seed}");
            println!("{what}: {used:.3?} of the link, {dropped:.3} dropped");
            assert!(used.iter().sum::<f64>() > 0.85, "{what}: {used:?}");
        }
        let ratio = f64::exp(ratios);
        assert!(ratio < max_ratio && drops < max_dropped, "{packets}: {ratio}, {drops}");
    }
}
