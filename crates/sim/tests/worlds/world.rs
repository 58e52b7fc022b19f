//! The world keeps its promises: nothing appears or vanishes, the same seed is the same run, rates and
//! delays are what they say.

use std::time::Duration;

use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerMachine};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{
    CoDel, EcnPath, Excess, Fate, Link, LinkConfig, Loss, Mtu, Probability, Profile, RateChange,
    Record, Recorded, TokenBucket, World, address,
};
use proptest::prelude::*;

fn drain(link: &mut Link, now: Instant) -> Vec<Vec<u8>> {
    let mut datagram = Vec::new();
    let mut out = Vec::new();
    while link.poll_delivery(now, &mut datagram) {
        out.push(datagram.clone());
    }
    out
}

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn a_packet_takes_its_time_on_the_serializer_and_on_the_way() {
    let mut link = Link::new(LinkConfig::new(8_000_000, Duration::from_millis(20)), 1);
    let packet = vec![0; 1_000 - UDP_IP_OVERHEAD as usize];
    link.offer(ms(0), &packet);
    link.offer(ms(0), &packet);
    assert_eq!(link.poll_timeout(), Some(ms(21)), "1000 bytes at 8 Mbit/s are a millisecond");
    assert_eq!(drain(&mut link, Instant::from_nanos(20_999_999)).len(), 0);
    assert_eq!(drain(&mut link, ms(21)).len(), 1);
    assert_eq!(link.poll_timeout(), Some(ms(22)));
}

#[test]
fn a_full_queue_drops_the_tail() {
    let config = LinkConfig::new(8_000_000, Duration::ZERO).with_queue(3_000);
    let mut link = Link::new(config, 1);
    let packet = vec![0; 1_000 - UDP_IP_OVERHEAD as usize];
    let fates: Vec<Fate> = (0..5).map(|_| link.offer(ms(0), &packet)).collect();
    assert_eq!(fates[..3], [Fate::Carried; 3]);
    assert_eq!(fates[3..], [Fate::QueueFull; 2]);
    assert_eq!(link.offer(ms(1), &packet), Fate::Carried, "one has left by then");
    assert_eq!(link.stats().queue_bytes_max, 3_000);
}

#[test]
fn a_cut_out_loses_what_leaves_in_it() {
    let config = LinkConfig { cut_outs: vec![ms(10)..ms(20)], ..LinkConfig::default() };
    let mut link = Link::new(config, 1);
    let fate = |link: &mut Link, at| link.offer(ms(at), b"x");
    assert_eq!(fate(&mut link, 9), Fate::Carried);
    assert_eq!(fate(&mut link, 10), Fate::CutOut);
    assert_eq!(fate(&mut link, 19), Fate::CutOut);
    assert_eq!(fate(&mut link, 20), Fate::Carried);
}

#[test]
fn packets_go_on_in_bunches_and_the_delay_comes_after_that() {
    let config = LinkConfig {
        aggregation: Duration::from_millis(50),
        delay: Duration::from_millis(7),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 1);
    for at in [0, 1, 49, 50, 51] {
        link.offer(ms(at), b"x");
    }
    let arrivals = [7, 57, 107].map(|at| drain(&mut link, ms(at)).len());
    assert_eq!(arrivals, [1, 3, 1]);
}

/// The 2016 simulator delivered copies up to a second before their original.
#[test]
fn a_copy_never_comes_before_its_original() {
    let config = LinkConfig {
        delay: Duration::from_millis(50),
        duplicate: Probability::percent(100),
        duplicate_delay: Duration::from_millis(500),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 5);
    for i in 0..200u8 {
        link.offer(ms(u64::from(i) * 10), &[i]);
    }
    let mut copies = [0; 200];
    for millis in 0..3_000 {
        for datagram in drain(&mut link, ms(millis)) {
            let i = usize::from(datagram[0]);
            copies[i] += 1;
            assert!(millis >= i as u64 * 10 + 50, "copy of {i} at {millis} ms");
        }
    }
    assert_eq!(copies, [2; 200]);
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    for reorder in [false, true] {
        let config =
            LinkConfig { jitter: Duration::from_millis(50), reorder, ..LinkConfig::default() };
        let mut link = Link::new(config, 2);
        for i in 0..200u8 {
            link.offer(ms(i.into()), &[i]);
        }
        let order: Vec<u8> = (0..300).flat_map(|t| drain(&mut link, ms(t))).map(|d| d[0]).collect();
        assert_eq!(order.len(), 200);
        assert_eq!(order.is_sorted(), !reorder);
    }
}

fn any_bucket() -> impl Strategy<Value = TokenBucket> {
    let excess = prop_oneof![Just(Excess::Dropped), Just(Excess::Queued)];
    (1_000u64..10_000_000, 100u64..50_000, excess)
        .prop_map(|(rate_bps, burst_bytes, excess)| TokenBucket { rate_bps, burst_bytes, excess })
}

fn any_changes() -> impl Strategy<Value = Vec<RateChange>> {
    prop::collection::vec((0u64..4_000, 1_000u64..10_000_000), 0..4).prop_map(|mut changes| {
        changes.sort_unstable();
        let change = |(at, rate_bps)| RateChange { at: ms(at), rate_bps };
        changes.into_iter().map(change).collect()
    })
}

fn any_record() -> impl Strategy<Value = Option<Recorded>> {
    let record = prop::collection::vec(1u64..200, 1..20).prop_map(|mut at_ms| {
        at_ms.sort_unstable();
        let text: String = at_ms.iter().map(|at| format!("{at}\n")).collect();
        Recorded::from(Record::parse(&text).unwrap())
    });
    prop::option::of(record)
}

fn any_mtu() -> impl Strategy<Value = Mtu> {
    prop::option::of((0u64..2_000, 500u64..1_500))
        .prop_map(|change| Mtu { changes: change.into_iter().map(|(at, b)| (ms(at), b)).collect() })
}

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let percent = || (0u64..=60).prop_map(Probability::percent);
    let loss = prop_oneof![
        Just(Loss::None),
        percent().prop_map(Loss::Independent),
        (percent(), 1u32..20).prop_map(|(mean, length)| Loss::Bursts { mean, length }),
    ];
    let millis = |max: u64| (0..max).prop_map(Duration::from_millis);
    (
        (prop::option::of(1_000u64..10_000_000), prop::option::of(100u64..50_000), millis(300)),
        (millis(200), any::<bool>(), loss, percent(), millis(500)),
        (percent(), percent(), prop::collection::vec((0u64..2_000, 0u64..500), 0..3)),
        (
            (prop::option::of(any_bucket()), any_changes()),
            (millis(100), any_mtu()),
            (any_record(), prop::option::of(millis(20))),
        ),
    )
        .prop_map(
            |(
                (rate_bps, queue_bytes, delay),
                (jitter, reorder, loss, duplicate, later),
                rest,
                speed,
            )| {
                let (corrupt, truncate, cuts) = rest;
                let ((bucket, rate_changes), (aggregation, mtu), (record, target)) = speed;
                let codel = target.map(|target| CoDel { target, ..CoDel::default() });
                LinkConfig {
                    rate_bps,
                    rate_changes,
                    record,
                    mtu,
                    ecn: EcnPath::Carried,
                    mark_above_bytes: queue_bytes.map(|bytes| bytes / 2),
                    codel,
                    bucket,
                    queue_bytes,
                    aggregation,
                    delay,
                    jitter,
                    exponential_jitter: jitter / 4,
                    reorder,
                    loss,
                    duplicate,
                    duplicate_delay: later,
                    corrupt,
                    truncate,
                    cut_outs: cuts.into_iter().map(|(at, for_)| ms(at)..ms(at + for_)).collect(),
                }
            },
        )
}

proptest! {
    /// In = delivered + dropped + queued, at every moment, whatever the link does.
    #[test]
    fn packets_are_conserved(
        config in any_link(),
        seed: u64,
        packets in prop::collection::vec((0u64..20, 0usize..1_200), 1..200),
    ) {
        let mut link = Link::new(config, seed);
        let (mut now, mut delivered) = (0, 0);
        for (wait, bytes) in packets {
            now += wait;
            link.offer(ms(now), &vec![1; bytes]);
            link.check_conservation();
            delivered += drain(&mut link, ms(now)).len() as u64;
            link.check_conservation();
        }
        delivered += drain(&mut link, Instant::from_nanos(u64::MAX)).len() as u64;
        link.check_conservation();
        let stats = link.stats();
        prop_assert_eq!(link.in_flight(), 0);
        prop_assert_eq!(delivered, stats.delivered);
        prop_assert_eq!(
            stats.offered + stats.duplicated,
            delivered
                + stats.too_large
                + stats.queue_full
                + stats.policed
                + stats.managed
                + stats.lost
                + stats.cut_out
        );
    }
}

fn join(seed: u64, profile: &str) -> (Instant, u64) {
    let peer = |at| PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), address(at));
    let (mut server, client) = (peer(2), peer(1));
    server.peer.send_chunk(vec![3; 256 * 1024]).unwrap();
    let mut world = World::new(seed);
    let link = Profile::named(profile).unwrap().link();
    let (_, client) = world.pair(server, client, link.clone(), link);
    let is_there = |world: &World| world.host(client).peer.receiver().unread() > 0;
    assert!(world.run_until(ms(60_000), is_there));
    (world.now(), world.trace().hash())
}

#[test]
fn the_same_seed_is_the_same_run_and_another_seed_another() {
    for profile in Profile::ALL {
        let first = join(7, profile.name);
        assert_eq!(first, join(7, profile.name), "{}", profile.name);
        // A link without randomness has only one run.
        let random = profile.loss_permille > 0 || profile.jitter_ms > 0;
        assert_eq!(first != join(8, profile.name), random, "{}", profile.name);
    }
}

/// Pinned: if this changes, either the machine or the world decides something differently than before,
/// and every recorded seed now means another run. Then say so in the changelog.
#[test]
fn the_trace_of_a_seed_is_pinned() {
    let (at, hash) = join(1, "mobile");
    assert_eq!((at.as_nanos() / 1_000_000, hash), (501, 0x37fb_386b_17d3_f452));
}
