//! Jitter that keeps datagrams in order: a late datagram holds up those behind it, which looks like a queue.
//!
//! Each test prints what it found.

use std::time::Duration;

use haulier_lab::joins::{JoinLink, Joiner, join};
use haulier_lab::share::{Competitor, Share, config};
use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, LinkConfig, Loss, Probability, Rng};

/// 60 ms, a deep queue, and jitter both ways; 1 % is lost on the way down.
fn link(mbit: u64, jitter_ms: u64) -> Access {
    let ms = Duration::from_millis;
    let plain = LinkConfig::new(mbit * 1_000_000, ms(30)).with_queue(512 << 10);
    let up = LinkConfig { jitter: ms(jitter_ms), ..plain };
    let loss = Loss::Independent(Probability::percent(1));
    Access { down: LinkConfig { loss, ..up.clone() }, up }
}

/// The least delay of 15 ms of jitter was taken for a queue of 5 to 9 ms, and the rate fell until datagrams
/// were so far apart that they did not hold each other up: 1.4 to 1.6 L at 4 Mbit/s and 2.8 to 3.8 at 10. A
/// model of TCP's BBR takes 1.04 and 1.06.
#[test]
fn jitter_in_order_is_no_queue() {
    let block = Block::new(1, Rng::stream(1, 92).bytes(16 << 20));
    for (mbit, jitter_ms, limits) in [(2, 15, 1.2), (4, 15, 1.2), (10, 15, 1.5)] {
        let link = JoinLink::of("jitter", link(mbit, jitter_ms));
        for seed in 1..=3 {
            let took = join(&link, Joiner::Token, &block, seed).in_limits();
            println!("{mbit} Mbit/s, {jitter_ms} ms: {took:.3} L, seed {seed}");
            assert!(took < limits, "{mbit} Mbit/s, {jitter_ms} ms: {took} L, seed {seed}");
        }
    }
}

/// What is taken for jitter is not allowed as a queue.
#[test]
fn no_queue_is_taken_for_jitter() {
    for mbit in [4, 10] {
        let flows = vec![Competitor::haulier(config())];
        let lasts = Duration::from_secs(20);
        let report = Share { access: link(mbit, 15), flows, lasts }.run(1);
        let used = report.mbit(Instant::from_millis(5_000), Instant::from_millis(20_000))[0];
        let queue = report.queue_p50;
        println!("{mbit} Mbit/s: {used} Mbit/s, queue {queue:?} p50, {:?} p95", report.queue_p95);
        assert!(used > 0.8 * mbit as f64 && queue < Duration::from_millis(15), "{used}, {queue:?}");
    }
}

/// How long 4 MiB take by ticket over this link with this jitter each way, as a multiple of the limit: the
/// median of seven.
fn median(name: &'static str, down: LinkConfig, up: LinkConfig) -> f64 {
    let block = Block::new(1, Rng::stream(1, 94).bytes(4 << 20));
    let link = JoinLink::of(name, Access { down, up });
    let mut took = [1, 2, 3, 4, 5, 6, 7].map(|seed| {
        let took = join(&link, Joiner::Ticket, &block, seed).in_limits();
        println!("{name}: {took:.2} L, seed {seed}");
        took
    });
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

/// The least delay of each round looked like a queue, and the window stayed at a tenth of what the path
/// holds: 5.7 and 9.7 L at the median.
#[test]
fn a_larger_window_is_tried_where_all_of_a_round_is_delayed() {
    let ms = Duration::from_millis;
    for (name, mbit, half_ms, kib, jitter_ms, most) in [
        ("100 Mbit/s, 36 ms of jitter", 100, 5, 124, 36, 4.0),
        ("290 Mbit/s, 13 ms of jitter", 290, 2, 371, 13, 7.5),
    ] {
        let plain = LinkConfig::new(mbit * 1_000_000, ms(half_ms)).with_queue(kib << 10);
        let way = LinkConfig { jitter: ms(jitter_ms), ..plain };
        let took = median(name, way.clone(), way);
        println!("{name}: {took:.2} L at the median");
        assert!(took < most, "{name}: {took}");
    }
}

/// 245 Mbit/s, 11 ms, 17 ms of jitter, and 14 % lost. Each cut found a queue, which was the jitter: with one
/// datagram in flight 4 MiB took 122 L at the median, and still do on two of these seeds.
#[test]
fn losses_over_jitter_are_the_paths_own() {
    let ms = Duration::from_millis;
    let lossy = |percent| LinkConfig {
        jitter: ms(17),
        loss: Loss::Independent(Probability::percent(percent)),
        ..LinkConfig::new(245_000_000, ms(5)).with_queue(287 << 10)
    };
    let took = median("14 % lost over jitter", lossy(14), lossy(11));
    assert!(took < 20.0, "{took}");
}
