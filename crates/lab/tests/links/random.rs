//! Links and crowds that nobody chose: bounds that hold with room to spare, and the crowds of real sockets.

use std::collections::BTreeMap;

use haulier_lab::random::{
    CrowdSummary, LinkSummary, RandomCrowd, RandomLink, run_crowd, run_link, seed_of,
};
use haulier_lab::rush::{RushReport, Sender, Servers};
use haulier_proto::connection::Block;
use haulier_sim::Rng;

const SEED: u64 = 20_261_125;

fn block(bytes: u64) -> Block {
    Block::new(1, Rng::new(1).bytes(bytes as usize))
}

#[test]
fn a_join_over_a_drawn_link_is_near_the_limit() {
    let block = block(256 << 10);
    let links = RandomLink::draw(SEED, 20);
    let ratios: Vec<BTreeMap<Sender, f64>> = (0..)
        .zip(&links)
        .map(|(number, link)| {
            let limit = link.limit(256 << 10).as_secs_f64();
            let ratio = |sender| {
                let run = run_link(link, sender, &block, seed_of(SEED, number));
                run.last().map_or(f64::INFINITY, |time| time.as_secs_f64() / limit)
            };
            Sender::ALL.into_iter().map(|sender| (sender, ratio(sender))).collect()
        })
        .collect();
    let [token, ticket, bbr, cubic] = Sender::ALL.map(|sender| LinkSummary::new(sender, &ratios));
    println!("token {token:?}, ticket {ticket:?}, BBR {bbr:?}, CUBIC {cubic:?}");
    assert_eq!(token.failures + ticket.failures, 0);
    assert!(token.p50 < 1.3 && token.p90 < 2.8, "{token:?}");
    assert!(ticket.p50 < 1.9, "{ticket:?}");
    assert!(token.first > 0.5 && token.p50 < bbr.p50 && token.p50 < cubic.p50, "{token:?}");
}

/// Long transfers with a server for each, which knows nothing of the others: none fails, one alone is near
/// the limit, and six share a link as CUBIC does.
#[test]
fn long_transfers_are_near_the_limit_and_share() {
    let block = block(2 << 20);
    let over = |link: &RandomLink, number| {
        let run = run_link(link, Sender::Token, &block, seed_of(SEED, number));
        run.last().unwrap().as_secs_f64() / link.limit(2 << 20).as_secs_f64()
    };
    let drawn = RandomLink::draw(SEED, 12);
    let mut ratios: Vec<f64> = (0..).zip(&drawn).map(|(number, link)| over(link, number)).collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[ratios.len() / 2] < 1.25, "{ratios:?}");
    let crowd: RandomCrowd = "10:50:64:6:2097152".parse().unwrap();
    let crowds = (SEED..SEED + 5).map(|seed| {
        let [ours, cubic] = [Sender::Token, Sender::Cubic]
            .map(|sender| run_crowd(&crowd, Servers::Each, sender, &block, seed));
        let last = ours.last().unwrap().div_duration_f64(cubic.last().unwrap());
        [last, ours.jain(), ours.dropped_part()]
    });
    let crowds: Vec<[f64; 3]> = crowds.collect();
    let [last, jain, dropped] = [0, 1, 2].map(|of| {
        let mut values: Vec<f64> = crowds.iter().map(|crowd| crowd[of]).collect();
        values.sort_by(f64::total_cmp);
        values[2]
    });
    assert!(last < 1.1 && jain > 0.8 && dropped < 0.2, "{crowds:?}");
}

/// The copies of a request give the rate of the way up. Where that is thin nothing that was paced at it was
/// fast enough to show an idle path, and a block took 2.06 L here: a round trip longer.
#[test]
fn a_thin_way_up_does_not_make_a_ramp_longer() {
    let (block, up_mbit) = (block(4 << 20), Some(9.3));
    let link = RandomLink {
        rate_mbit: 256.0,
        rtt_ms: 144.0,
        queue_kib: 3_348.0,
        up_mbit,
        ..Default::default()
    };
    let limit = link.limit(4 << 20).as_secs_f64();
    let mut ratios = [1, 2, 3, 4, 5].map(|seed| {
        let run = run_link(&link, Sender::Token, &block, seed);
        run.last().unwrap().as_secs_f64() / limit
    });
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[2] < 1.75, "{ratios:?}");
}

/// A copy of a request that comes twice at once made the first rate eight times that of the link, and two
/// fifths of a short block were dropped.
#[test]
fn a_link_that_doubles_datagrams_gives_no_false_rate() {
    let block = block(256 << 10);
    let link = RandomLink {
        rate_mbit: 3.73,
        rtt_ms: 90.8,
        queue_kib: 119.9,
        duplicates: 1.0,
        ..Default::default()
    };
    for seed in 1..=3 {
        let run = run_link(&link, Sender::Token, &block, seed);
        assert!(run.last().is_some() && run.dropped_part() < 0.1, "{}", run.dropped_part());
    }
}

/// What is drawn is small, for every byte is sealed.
#[test]
fn a_drawn_crowd_is_done() {
    let drawn = RandomCrowd::draw(SEED, 12);
    let crowds = (0..).zip(drawn).filter(|(_, crowd)| crowd.rate_mbit < 7.0);
    let runs: Vec<BTreeMap<Sender, RushReport>> = crowds
        .map(|(number, crowd)| {
            let block = block(crowd.bytes);
            let seed = seed_of(SEED, number);
            let run = |sender| run_crowd(&crowd, Servers::One, sender, &block, seed);
            [Sender::Token, Sender::Cubic].into_iter().map(|sender| (sender, run(sender))).collect()
        })
        .collect();
    let [token, cubic] = [Sender::Token, Sender::Cubic].map(|s| CrowdSummary::new(s, &runs));
    println!("token {token:?}, CUBIC {cubic:?}");
    assert!(token.crowds >= 3, "{token:?}");
    assert_eq!(token.not_done + cubic.not_done, 0);
    assert!(token.last.p50 < 1.15 && token.mean.p50 < 1.1, "{token:?}");
    assert!(token.dropped_p50 < 0.08 && token.jain_p50 > 0.9, "{token:?}");
}

/// Two crowds that drop 1.3 and 2.9 % over real sockets, where it was 20 and 45.
#[test]
fn a_crowd_drops_as_little_as_over_real_sockets() {
    let crowds = [("10:50:64:10:1048576", 0.013, 2), ("5:60:64:50:262144", 0.029, 1)];
    for (crowd, real, seeds) in crowds {
        let crowd: RandomCrowd = crowd.parse().unwrap();
        let block = block(crowd.bytes);
        let runs: Vec<f64> = (1..=seeds)
            .map(|seed| run_crowd(&crowd, Servers::One, Sender::Token, &block, seed).dropped_part())
            .collect();
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        println!("{crowd}: {runs:.3?}, over real sockets {real}");
        assert!(mean < 2.0 * real + 0.03, "{crowd}: {runs:.3?}");
    }
}
