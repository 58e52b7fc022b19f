//! The model does what BBR is known for: it fills a link with a short queue, shares with itself, does not
//! mind losses, and takes more than CUBIC where the queue is short.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::{Access, LinkConfig, Loss, Probability, RateChange, World, address};

use super::*;
use crate::rivals::TcpReceiver;
use crate::share::{Competitor, Share, ShareReport};

/// 20 Mbit/s, 50 ms, and a queue in thousandths of the bandwidth-delay product.
fn link(queue_permille: u64) -> LinkConfig {
    LinkConfig::new(20_000_000, Duration::from_millis(25)).with_queue(125 * queue_permille)
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

fn share(link: LinkConfig, flows: Vec<Competitor>, seconds: u64) -> ShareReport {
    Share::new(link, flows, Duration::from_secs(seconds)).run(1)
}

#[test]
fn alone_it_fills_a_link_and_not_its_queue() {
    let report = share(link(4_000), vec![Competitor::bbr()], 20);
    let bps = report.flows[0].bps(seconds(1), seconds(20));
    println!("{bps:.0} bit/s, queue p50 {:?}, {} dropped", report.queue_p50, report.dropped);
    assert!(bps >= 18_000_000.0, "{bps}");
    // CUBIC has 200 ms of it full.
    assert!(report.queue_p50 < Duration::from_millis(15), "{:?}", report.queue_p50);
    assert_eq!((report.timeouts, report.dropped), (0, 0));
}

#[test]
fn two_share_it() {
    let late = Competitor::bbr().starting_at(seconds(3));
    let report = share(link(2_000), vec![Competitor::bbr(), late], 40);
    let jain = report.jain(seconds(10), seconds(40));
    println!("{jain:.3} {:?}", report.mbit(seconds(10), seconds(40)));
    assert!(jain >= 0.9, "{jain}");
    assert_eq!(report.timeouts, 0);
}

/// Hock, Bless and Zitterbart (2017): in a short queue CUBIC backs off for the losses that BBR ignores; in a
/// deep one CUBIC's queue is longer than BBR's window.
#[test]
fn beside_cubic_it_wins_in_a_short_queue_and_loses_in_a_deep_one() {
    let part = |queue_permille| {
        let flows = vec![Competitor::bbr(), Competitor::cubic()];
        let report = share(link(queue_permille), flows, 60);
        let mbit = report.mbit(seconds(10), seconds(60));
        println!("queue {queue_permille} permille: {mbit:?}");
        mbit[0] / (mbit[0] + mbit[1])
    };
    let (short, deep) = (part(500), part(8_000));
    assert!(short > 0.65, "{short}");
    assert!(deep < 0.5, "{deep}");
}

/// A CUBIC would have 2 Mbit/s at 2 %.
#[test]
fn losses_that_are_not_of_the_queue_do_not_slow_it() {
    let loss = Loss::Independent(Probability::percent(2));
    let access = Access { up: link(1_000), down: LinkConfig { loss, ..link(1_000) } };
    let flows = vec![Competitor::bbr()];
    let report = Share { access, flows, lasts: Duration::from_secs(20) }.run(1);
    let bps = report.flows[0].bps(seconds(2), seconds(20));
    println!("{bps:.0} bit/s, {} timeouts", report.timeouts);
    assert!(bps > 16_000_000.0, "{bps}");
}

#[test]
fn it_follows_the_rate_of_the_link_and_survives_an_outage() {
    let cut = LinkConfig {
        cut_outs: vec![seconds(8)..seconds(9)],
        rate_changes: vec![
            RateChange { at: seconds(14), rate_bps: 5_000_000 },
            RateChange { at: seconds(22), rate_bps: 20_000_000 },
        ],
        ..link(2_000)
    };
    let report = share(cut, vec![Competitor::bbr()], 30);
    let bps = |from, to| report.flows[0].bps(seconds(from), seconds(to));
    println!("{:?}", [bps(2, 8), bps(8, 9), bps(11, 14), bps(17, 22), bps(26, 30)]);
    assert!(bps(8, 9) < 1_000_000.0);
    assert!(bps(11, 14) > 15_000_000.0);
    assert!((4_000_000.0..5_000_000.0).contains(&bps(17, 22)));
    assert!(bps(26, 30) > 15_000_000.0);
}

/// Startup, drain and the cycle on the way, and a probe of the round trip each ten seconds.
#[test]
fn it_passes_through_its_states() {
    let mut world = World::new(1);
    let sender =
        world.add(BbrSender::new(address(2), Instant::ZERO, 1), address(1), &Access::default());
    world.add(TcpReceiver::new(address(1)), address(2), &link(2_000).into());
    let mut names: Vec<&str> = Vec::new();
    let mut probing = Duration::ZERO;
    for at in 0..30_000 {
        world.run_to(Instant::from_millis(at));
        let name = match world.host(sender).model.state() {
            BbrState::Startup => "startup",
            BbrState::Drain => "drain",
            BbrState::ProbeBw(..) => "probe_bw",
            BbrState::ProbeRtt(_) => "probe_rtt",
        };
        probing += Duration::from_millis(u64::from(name == "probe_rtt"));
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    let model = &world.host(sender).model;
    println!("{names:?}, probing for {probing:?}, {:.0} bit/s", model.bottleneck_bps());
    let cycles = ["startup", "drain", "probe_bw", "probe_rtt", "probe_bw", "probe_rtt", "probe_bw"];
    assert_eq!(names, cycles);
    assert!((Duration::from_millis(400)..Duration::from_millis(1_000)).contains(&probing));
    // 1448 of 1500 bytes are data.
    assert!((18.3e6..20.5e6).contains(&model.bottleneck_bps()), "{}", model.bottleneck_bps());
    assert!(model.rt_prop().unwrap() < Duration::from_millis(53), "{:?}", model.rt_prop());
}
