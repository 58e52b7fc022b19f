//! The model fills a link, shares it, and recovers from faults.

use std::time::Duration;

use haulier_proto::Instant;

use super::*;
use crate::rivals::{MSS, TcpReceiver};
use crate::share::{Competitor, Share, ShareReport};
use haulier_sim::{Access, LinkConfig, Loss, Probability, RateChange, World, address};

/// 20 Mbit/s, 50 ms, a queue of one bandwidth-delay product.
fn link() -> LinkConfig {
    LinkConfig::new(20_000_000, Duration::from_millis(25)).with_queue(125_000)
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

fn share(link: LinkConfig, flows: usize, seconds: u64) -> ShareReport {
    let flows = (0..flows).map(|_| Competitor::cubic()).collect();
    Share::new(link, flows, Duration::from_secs(seconds)).run(1)
}

#[test]
fn alone_it_fills_a_link() {
    let report = share(link(), 1, 10);
    let bps = report.flows[0].bps(seconds(0), seconds(10));
    println!("{bps:.0} bit/s, queue p50 {:?}", report.queue_p50);
    assert!(bps >= 18_000_000.0, "{bps}");
    assert_eq!(report.timeouts, 0);
}

#[test]
fn two_share_it() {
    let report = share(link(), 2, 60);
    let jain = report.jain(seconds(0), seconds(60));
    println!("{jain:.3} {:?}", report.mbit(seconds(0), seconds(60)));
    assert!(jain >= 0.9, "{jain}");
    assert_eq!(report.timeouts, 0);
}

#[test]
fn it_recovers_after_an_outage_and_a_rate_change() {
    let cut = LinkConfig {
        cut_outs: vec![seconds(4)..seconds(6)],
        rate_changes: vec![RateChange { at: seconds(10), rate_bps: 5_000_000 }],
        ..link()
    };
    let report = share(cut, 1, 25);
    let bps = |from, to| report.flows[0].bps(seconds(from), seconds(to));
    assert!(bps(4, 6) < 1_000_000.0);
    assert!((1..10).contains(&report.timeouts), "{}", report.timeouts);
    assert!(bps(8, 10) > 12_000_000.0, "{}", bps(8, 10));
    assert!(bps(15, 25) > 4_500_000.0, "{}", bps(15, 25));
}

/// Each segment is counted once, whatever is lost or duplicated: a sender that counts too much would make
/// the others look slow.
#[test]
fn what_arrives_is_a_stream_without_holes() {
    let bad = LinkConfig {
        loss: Loss::Independent(Probability::percent(2)),
        duplicate: Probability::percent(3),
        duplicate_delay: Duration::from_millis(20),
        jitter: Duration::from_millis(5),
        reorder: true,
        ..link()
    };
    let mut world = World::new(3);
    let sender = CubicSender::new(address(2), Instant::ZERO);
    world.add(sender, address(1), &Access::default());
    let receiver = world.add(TcpReceiver::new(address(1)), address(2), &bad.into());
    world.run_to(seconds(10));
    let (_, down) = world.links(world.segment_of(receiver));
    let delivered = down.stats().delivered - down.stats().duplicated;
    println!("{delivered} segments at 2 % loss");
    // 1.22 / sqrt(0.02) segments a round trip is 2.2 Mbit/s: Mathis, and CUBIC's friendly region.
    assert!((1_000..4_000).contains(&delivered), "{delivered}");
}

/// The square root law of Mathis et al. (1997), which every TCP in the friendly region follows: 1.22
/// segments a round trip over the root of the loss.
#[test]
fn under_loss_it_is_as_fast_as_the_square_root_law_says() {
    for permille in [1, 10, 20] {
        let loss = Probability::ratio(permille, 1_000);
        let up = LinkConfig { rate_bps: Some(100_000_000), queue_bytes: None, ..link() };
        let down = LinkConfig { loss: Loss::Independent(loss), ..up.clone() };
        let (access, flows) = (Access { up, down }, vec![Competitor::cubic()]);
        let report = Share { access, flows, lasts: Duration::from_secs(60) }.run(1);
        let bps = report.flows[0].bps(seconds(5), seconds(60));
        let law = 1.22 / loss.as_f64().sqrt() / 0.05 * MSS as f64 * 8.0;
        println!("{permille} permille: {bps:.0} bit/s, the law says {law:.0}");
        assert!((0.8..1.25).contains(&(bps / law)), "{bps} and not {law}");
    }
}
