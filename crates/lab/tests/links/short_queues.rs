//! Queues that hold fewer packets than a train needs to show a rate: one has to be found by other means.
//!
//! Each test prints what it found.

use std::time::Duration;

use haulier_lab::joins::{JoinLink, Joiner, join};
use haulier_lab::share::{Competitor, Share, config};
use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, CoDel, LinkConfig, Loss, Probability, Rng};

/// 45 Mbit/s, 2.4 ms, CoDel over six packets, and a way up of a part of the rate through as many. Trains got
/// six packets through, of eight that a rate takes, so the guess was halved down to the floor and kept: 39 of
/// these 90 joins had not ended after 60 s, where L is 0.77 s.
#[test]
fn a_queue_of_six_packets_and_a_thin_way_up() {
    let block = Block::new(1, Rng::stream(1, 92).bytes(4 << 20));
    let bps = 45_000_000;
    let plain = LinkConfig::new(bps, Duration::from_micros(1_200)).with_queue(8 << 10);
    for (up_part, loss) in
        [1, 10, 20, 50, 100].into_iter().flat_map(|up| (0..3).map(move |n| (up, n)))
    {
        let lossy = Loss::Independent(Probability::percent(loss));
        let loss_behind = if loss > 0 { lossy } else { Loss::None };
        let down =
            LinkConfig { codel: Some(CoDel::for_rate(bps)), loss: loss_behind, ..plain.clone() };
        let up = LinkConfig { rate_bps: Some(bps / up_part), ..plain.clone() };
        let link = JoinLink::of("six packets", Access { up, down });
        for joiner in [Joiner::Token, Joiner::Ticket] {
            for seed in 1..=3 {
                let took = join(&link, joiner, &block, seed).in_limits();
                println!(
                    "way up 1/{up_part}, {loss} % lost, {}: {took:.2} L, seed {seed}",
                    joiner.name()
                );
                assert!(
                    took < 3.0,
                    "way up 1/{up_part}, {loss} % lost, {joiner:?}, seed {seed}: {took} L"
                );
            }
        }
    }
}

/// Three packets are less than the shortest train that shows a rate. Two flows used 2 % of the link, for both
/// kept the floor.
#[test]
fn two_flows_behind_a_queue_of_three_packets_use_the_link() {
    let link = LinkConfig::new(10_000_000, Duration::ZERO).with_queue(3 * 1_230);
    let flow = |n: u64| {
        let flow = Competitor::haulier(config()).with_blocks_of(4 << 20);
        flow.with_extra_rtt(Duration::from_millis(1)).starting_at(Instant::from_millis(n * 500))
    };
    for seed in 1..=3 {
        let flows = vec![flow(0), flow(1)];
        let report = Share::new(link.clone(), flows, Duration::from_secs(20)).run(seed);
        let mbit = report.mbit(Instant::from_millis(2_000), Instant::from_millis(20_000));
        println!("{mbit:?} Mbit/s, seed {seed}");
        assert!(mbit.iter().sum::<f64>() > 8.0 && mbit.iter().all(|&mbit| mbit > 1.0), "{mbit:?}");
    }
}
