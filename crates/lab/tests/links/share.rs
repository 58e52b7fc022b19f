//! Transfers that share a link: with each other, with TCP, and with the game they are for.
//!
//! What sends is [`haulier_lab::share::config`]. Every test prints what it found; `SHARE_SEED` replays it.

use std::time::Duration;

use haulier_lab::share::{
    Competitor, GameReport, GameStream, Share, ShareReport, config, config_at, config_in_play,
};
use haulier_proto::Instant;
use haulier_proto::connection::ConnectionConfig;
use haulier_sim::{
    Access, Excess, LinkConfig, Loss, Probability, Profile, RateChange, TokenBucket,
};

/// The seed of the runs: 1, or what the environment says.
fn seed() -> u64 {
    std::env::var("SHARE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn s(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

/// `mbit` with a queue; the round trip is that of the flows.
fn bottleneck(mbit: u64, queue_bytes: u64) -> Access {
    LinkConfig::new(mbit * 1_000_000, Duration::ZERO).with_queue(queue_bytes).into()
}

/// Bytes under way on a link of this rate and round trip.
fn bdp(mbit: u64, rtt_ms: u64) -> u64 {
    mbit * 1_000 * rtt_ms / 8
}

/// Runs these flows until second `to`, and prints what they got from second `from` on.
fn share(
    what: &str,
    access: Access,
    flows: impl IntoIterator<Item = Competitor>,
    [from, to]: [u64; 2],
) -> ShareReport {
    let flows = flows.into_iter().collect();
    let report = Share { access, flows, lasts: Duration::from_secs(to) }.run(seed());
    println!(
        "{what}: {:?} Mbit/s from {from} to {to} s, Jain {:.3}, queue {:.1} ms p50 and {:.1} ms p95, \
         {} dropped, seed {}",
        report.mbit(s(from), s(to)),
        report.jain(s(from), s(to)),
        report.queue_p50.as_secs_f64() * 1e3,
        report.queue_p95.as_secs_f64() * 1e3,
        report.dropped,
        seed(),
    );
    report
}

/// Two transfers, the second two seconds later, for twenty seconds. The link has a queue of one
/// bandwidth-delay product of the first one's round trip.
fn two(config: [ConnectionConfig; 2], mbit: u64, rtts_ms: [u64; 2]) -> ShareReport {
    let [first, second] = config.map(Competitor::haulier);
    let rtt = |at: usize| Duration::from_millis(rtts_ms[at]);
    let flows = [first.with_extra_rtt(rtt(0)), second.with_extra_rtt(rtt(1)).starting_at(s(2))];
    // Not below what a burst of a few datagrams needs.
    let queue = bdp(mbit, rtts_ms[0]).max(32 << 10);
    let what = format!("two on {mbit} Mbit/s, {rtts_ms:?} ms");
    share(&what, bottleneck(mbit, queue), flows, [10, 20])
}

fn two_are_fair(mbit: u64) {
    let mut failed = Vec::new();
    for rtt_ms in [20, 50, 100] {
        let report = two([config(); 2], mbit, [rtt_ms; 2]);
        let (jain, mbits) = (report.jain(s(10), s(20)), report.mbit(s(10), s(20)));
        // To share nothing equally is no art: most of the link must be used.
        let is_used = mbits.iter().sum::<f64>() >= 0.8 * mbit as f64;
        // The longer the round trip, the later shares are equal.
        let min_jain = if mbit * rtt_ms < 10_000 { 0.9 } else { 0.8 };
        if jain < min_jain || !is_used || report.broken > 0 {
            failed.push((rtt_ms, jain, mbits));
        }
    }
    assert!(failed.is_empty(), "{mbit} Mbit/s: {failed:?}");
}

#[test]
fn two_transfers_share_10_mbit_equally() {
    two_are_fair(10);
}

#[test]
fn two_transfers_share_20_mbit_equally() {
    two_are_fair(20);
}

#[test]
fn two_transfers_share_100_mbit_equally() {
    two_are_fair(100);
}

/// Printed only: with unequal round trips equal shares are not promised. Neither starves.
#[test]
fn two_transfers_of_unequal_round_trips_both_go_on() {
    for rtts_ms in [[20, 100], [100, 20], [50, 200]] {
        let report = two([config(); 2], 20, rtts_ms);
        assert!(report.mbit(s(10), s(20)).iter().all(|&mbit| mbit > 0.2), "{rtts_ms:?}");
    }
}

/// The harness: transfers at known rates are measured to get them, and unequal ones to be unequal.
#[test]
fn transfers_of_known_rates_are_measured_right() {
    let rate = |rate_bps| config_at(rate_bps);
    for (rates, jain) in [([8_000_000, 8_000_000], 1.0), ([12_000_000, 4_000_000], 0.8)] {
        let report = two(rates.map(rate), 20, [50, 50]);
        for (rate, mbit) in rates.into_iter().zip(report.mbit(s(10), s(20))) {
            // The budget counts headers, which are 4 %, and a chunk waits for its last acks.
            let share = mbit * 1e6 / rate as f64;
            assert!((0.7..1.0).contains(&share), "{mbit} Mbit/s at {rate}");
        }
        assert!((report.jain(s(10), s(20)) - jain).abs() < 0.05);
        assert_eq!(report.broken, 0);
    }
}

/// A single transfer for ten seconds over this link: Mbit/s in each half.
fn alone(what: &str, down: LinkConfig) -> [f64; 2] {
    let up = LinkConfig { rate_bps: Some(100_000_000), loss: down.loss, ..LinkConfig::default() };
    let flow = Competitor::haulier(config()).with_extra_rtt(Duration::from_millis(50));
    let report = share(what, Access { up, down }, [flow], [0, 10]);
    [report.mbit(s(1), s(5))[0], report.mbit(s(6), s(10))[0]]
}

fn ten_mbit() -> LinkConfig {
    bottleneck(10, bdp(10, 50)).down
}

#[test]
fn loss_alone_does_not_slow_a_transfer() {
    for percent in [1, 5, 10, 20] {
        let loss = Loss::Independent(Probability::percent(percent));
        let mbits = alone(&format!("{percent} % lost"), LinkConfig { loss, ..ten_mbit() });
        let could = 9.6 * (1.0 - percent as f64 / 100.0);
        // Repair beyond what is lost, and ends of chunks that are not reported, are the rest.
        assert!(mbits.iter().all(|&mbit| mbit > 0.7 * could), "{percent} %: {mbits:?}");
    }
}

/// Half a minute of a long transfer alone, on links of every kind: what the link loses apart, it is busy, and
/// its queue is some ms. A window grows past what the path holds by what it learns in a round trip: the
/// longer that is, the longer is the queue until it has yielded.
#[test]
fn a_long_transfer_alone_keeps_its_link_busy() {
    let mut failed = Vec::new();
    // Mbit/s, round trip, KiB of queue, thousandths lost, ms of jitter, the least part of the link, and the
    // longest queue in ms (95 %).
    let links = [
        ("fiber", 100, 20, 256, 0, 0, 0.99, 15),
        ("cable", 50, 40, 256, 1, 0, 0.99, 15),
        ("ocean", 50, 200, 512, 10, 0, 0.97, 40),
        ("shallow", 10, 80, 32, 0, 0, 0.98, 21),
        ("mobile", 10, 100, 256, 50, 0, 0.97, 26),
        ("a tenth lost", 50, 40, 256, 100, 0, 0.98, 15),
        ("three tenths lost", 50, 40, 256, 300, 0, 0.98, 15),
        ("wifi", 20, 50, 256, 20, 5, 0.97, 15),
        ("600 ms", 10, 600, 375, 0, 0, 0.95, 300),
    ];
    for (name, mbit, rtt_ms, kib, lost, jitter_ms, least, queue_ms) in links {
        let down = LinkConfig {
            loss: Loss::Independent(Probability::ratio(lost, 1_000)),
            jitter: Duration::from_millis(jitter_ms),
            reorder: jitter_ms > 0,
            ..bottleneck(mbit, kib << 10).down
        };
        let flow = Competitor::haulier(config()).with_extra_rtt(Duration::from_millis(rtt_ms));
        let report = share(name, down.into(), [flow], [8, 28]);
        let could = mbit as f64 * (1.0 - lost as f64 / 1e3) * 1_434.0 / 1_500.0;
        let used = report.mbit(s(8), s(28))[0] / could;
        println!("{name}: {used:.3} of the link");
        if used < least || report.queue_p95 > Duration::from_millis(queue_ms) {
            failed.push((name, used, report.queue_p95));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// A tenth is lost both ways, acks among them: one lost ack that says a chunk is done must not stop the
/// window. It did, and half of the link was used.
#[test]
fn lost_acks_do_not_stop_the_window() {
    let loss = Loss::Independent(Probability::percent(10));
    let lossy = |access: Access| Access {
        up: LinkConfig { loss, ..access.up },
        down: LinkConfig { loss, ..access.down },
    };
    let access = lossy(bottleneck(100, 512 << 10));
    let flow = Competitor::haulier(config()).with_extra_rtt(Duration::from_millis(100));
    let report = share("10 % lost both ways", access, [flow], [3, 8]);
    let mbit = report.mbit(s(3), s(8))[0];
    let could = 100.0 * 0.9 * 1024.0 / 1088.0;
    assert!(mbit > 0.85 * could, "{mbit} of {could}");
}

#[test]
fn a_transfer_follows_the_rate_of_the_link() {
    for (mbit, later) in [(10, 5), (10, 20), (50, 10)] {
        let change = RateChange { at: s(5), rate_bps: later * 1_000_000 };
        let down =
            LinkConfig { rate_changes: vec![change], ..bottleneck(mbit, bdp(mbit, 50)).down };
        let mbits = alone(&format!("{mbit}, then {later} Mbit/s"), down);
        for (mbit, got) in [mbit, later].into_iter().zip(mbits) {
            assert!(got > 0.8 * 0.96 * mbit as f64, "{mbit}: {got}");
        }
    }
}

/// Ten transfers begin one after the other. The trains of the later ones find a full queue and show no rate:
/// they went on with their guess, and more than four fifths of all were dropped, without end.
#[test]
fn ten_transfers_do_not_drown_each_other() {
    let flow = |n: u64| {
        let flow = Competitor::haulier(config()).with_blocks_of(2 << 20);
        flow.with_extra_rtt(Duration::from_millis(50)).starting_at(Instant::from_millis(n * 500))
    };
    let access = bottleneck(10, 64 << 10);
    let report = share("ten on 10 Mbit/s", access, (0..10).map(flow), [10, 20]);
    let dropped = report.dropped_bytes as f64 / report.offered_bytes as f64;
    println!("{:.1} % of what was sent was dropped", dropped * 1e2);
    assert!(dropped < 0.1, "{dropped}");
    assert_eq!(report.broken, 0);
}

/// A line of 100 Mbit/s, of which 10 are paid for, and the rest dropped.
#[test]
fn a_policer_is_found_out() {
    let bucket = TokenBucket { rate_bps: 10_000_000, burst_bytes: 20_000, excess: Excess::Dropped };
    let down = LinkConfig { bucket: Some(bucket), ..bottleneck(100, 256 << 10).down };
    let mbits = alone("policer", down);
    assert!(mbits.iter().all(|&mbit| mbit > 7.0), "{mbits:?}");
}

/// The harness: two of TCP's, for comparison, judged as ours will be.
#[test]
fn two_of_tcps_share_a_link_as_tcp_does() {
    for mbit in [10, 20] {
        let flows = [Competitor::cubic(), Competitor::cubic().starting_at(s(2))];
        let flows = flows.map(|flow| flow.with_extra_rtt(Duration::from_millis(50)));
        let what = format!("two of TCP on {mbit} Mbit/s");
        let report = share(&what, bottleneck(mbit, bdp(mbit, 50)), flows, [10, 20]);
        assert!(report.jain(s(10), s(20)) >= 0.7);
        assert!(report.mbit(s(10), s(20)).iter().sum::<f64>() >= 0.9 * mbit as f64);
    }
}

/// A transfer and TCP for ten seconds; the transfer begins at `starts_s`.
fn beside_tcp(mbit: u64, queue_bytes: u64, starts_s: u64) -> [f64; 2] {
    let rtt = Duration::from_millis(50);
    let flows = [
        Competitor::haulier(config()).with_extra_rtt(rtt).starting_at(s(starts_s)),
        Competitor::cubic().with_extra_rtt(rtt),
    ];
    let end = starts_s + 10;
    let what = format!("beside TCP on {mbit} Mbit/s, queue {queue_bytes}, from {starts_s} s");
    let report = share(&what, bottleneck(mbit, queue_bytes), flows, [starts_s, end]);
    let mbits = report.mbit(s(starts_s), s(end));
    [mbits[0] / mbit as f64, mbits[1] / mbit as f64]
}

#[test]
fn beside_tcp_both_get_a_fifth_from_the_first_second_on() {
    let mut failed = Vec::new();
    for mbit in [10, 50] {
        for queue in [bdp(mbit, 50), 256 << 10] {
            let shares = beside_tcp(mbit, queue, 0);
            // A newcomer beside one that has filled the queue: printed, and neither starves.
            let later = beside_tcp(mbit, queue, 3);
            if shares.iter().any(|&share| share < 0.2) || later.iter().any(|&share| share < 0.05) {
                failed.push((mbit, queue, shares, later));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// In the long run the share is that of a TCP: half to twice a fair one.
#[test]
fn beside_tcp_the_share_is_fair_in_the_long_run() {
    let mut failed = Vec::new();
    // Ours and TCP's, Mbit/s, round trip, thousandths of a bandwidth-delay product, and seconds.
    let links = [
        (1, 1, 10, 50, 1_000, 30),
        (1, 4, 50, 50, 1_000, 60),
        (1, 1, 100, 100, 1_000, 60),
        (1, 1, 50, 50, 4_000, 60),
        (2, 2, 20, 50, 2_000, 40),
        (1, 1, 20, 20, 500, 30),
    ];
    for (ours, theirs, mbit, rtt_ms, permille, lasts_s) in links {
        let flow = |n| match n < ours {
            true => Competitor::haulier(config()),
            false => Competitor::cubic(),
        };
        let rtt = Duration::from_millis(rtt_ms);
        let flows = (0..ours + theirs)
            .map(|n| flow(n).with_extra_rtt(rtt).starting_at(Instant::from_millis(100 * n as u64)));
        let queue = bdp(mbit, rtt_ms) * permille / 1_000;
        let what = format!("{ours} beside {theirs} of TCP on {mbit} Mbit/s, {rtt_ms} ms, {queue}");
        let report = share(&what, bottleneck(mbit, queue), flows, [lasts_s / 3, lasts_s]);
        let mbits = report.mbit(s(lasts_s / 3), s(lasts_s));
        let fair = mbits.iter().sum::<f64>() / mbits.len() as f64;
        let mean = mbits[..ours].iter().sum::<f64>() / ours as f64;
        if !(0.5..2.0).contains(&(mean / fair)) {
            failed.push((what, mbits));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Four of TCP never let the queue run empty. A transfer that took the smallest delay of the last ten seconds
/// for that of an empty one sent more and more, until it had 47 of 50 Mbit/s and dropped 42 %.
#[test]
fn a_queue_that_others_keep_full_is_not_taken_for_an_empty_one() {
    let rtt = Duration::from_millis(50);
    let mut flows = vec![Competitor::haulier(config())];
    flows.resize(5, Competitor::cubic());
    let flows = flows.into_iter().map(|flow| flow.with_extra_rtt(rtt));
    let what = "beside four of TCP on 50 Mbit/s";
    let report = share(what, bottleneck(50, bdp(50, 50)), flows, [30, 60]);
    let mbits = report.mbit(s(30), s(60));
    let tcp = mbits[1..].iter().sum::<f64>() / 4.0;
    assert!(mbits[0] < 2.0 * tcp && tcp < 3.0 * mbits[0], "{mbits:?}");
    let dropped = report.dropped_bytes as f64 / report.offered_bytes as f64;
    assert!(dropped < 0.05, "{dropped}");
}

/// The harness: TCP alone beside a transfer of a known rate gets the rest.
#[test]
fn tcp_takes_what_a_slow_transfer_leaves() {
    let slow = config_at(2_000_000);
    let rtt = Duration::from_millis(50);
    let flows = [Competitor::haulier(slow), Competitor::cubic()].map(|f| f.with_extra_rtt(rtt));
    let report = share("TCP beside 2 Mbit/s", bottleneck(10, bdp(10, 50)), flows, [0, 10]);
    let mbits = report.mbit(s(1), s(10));
    assert!(mbits[0] > 1.2 && mbits[1] > 6.5, "{mbits:?}");
}

/// Whose connection the game is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GameIsOn {
    TheBlocksConnection,
    AnotherConnection,
}

/// Half a minute of a game over a link, from second 2 on with a block or without.
fn play(link: LinkConfig, with_block: bool, game: GameIsOn) -> (GameReport, f64) {
    let stream = GameStream::new(s(2), s(32));
    let flows = match (with_block, game) {
        (false, _) => vec![Competitor::game(config_in_play(), stream)],
        (true, GameIsOn::TheBlocksConnection) => {
            vec![Competitor::haulier(config_in_play()).with_game(stream)]
        }
        (true, GameIsOn::AnotherConnection) => vec![
            Competitor::game(config_in_play(), stream),
            Competitor::haulier(config_in_play()).starting_at(s(2)),
        ],
    };
    let report = Share::new(link, flows, Duration::from_secs(34)).run(seed());
    let block = report.mbit(s(2), s(32)).last().copied().unwrap_or_default();
    (report.games[0].unwrap(), block)
}

/// Losses that are chance and no doing of the block's: three standard deviations of the number of packets
/// lost, for runs of the profile's length.
fn chance(profile: &Profile, sent: usize) -> f64 {
    let mean = profile.loss_permille as f64 / 1e3;
    let run = match profile.link().loss {
        Loss::Bursts { length, .. } => 2.0 * f64::from(length) - 1.0,
        _ => 1.0,
    };
    3.0 * (mean * (1.0 - mean) * run * 2.0 / sent as f64).sqrt()
}

/// How much later a game's packets may be beside a block, at the 95th percentile.
const MAX_FELT: Duration = Duration::from_millis(5);

fn a_game_feels_nothing(game: GameIsOn) {
    let mut failed = Vec::new();
    for profile in &Profile::ALL {
        let (alone, _) = play(profile.link(), false, game);
        let (beside, block) = play(profile.link(), true, game);
        let ms = |delay: Duration| delay.as_secs_f64() * 1e3;
        println!(
            "{:8} {game:?}: p50 {:.1} to {:.1} ms, p95 {:.1} to {:.1} ms, loss {:.2} to {:.2} %, block \
             {block} Mbit/s, seed {}",
            profile.name,
            ms(alone.p50),
            ms(beside.p50),
            ms(alone.p95),
            ms(beside.p95),
            alone.loss() * 1e2,
            beside.loss() * 1e2,
            seed(),
        );
        assert!(alone.sent > 1_700 && beside.sent > 1_700, "{alone:?} {beside:?}");
        assert!(block > 0.0, "{}: there is no block", profile.name);
        let is_late = beside.p95 > alone.p95 + MAX_FELT;
        // Queue drops cannot be distinguished from the link's own losses: so once more without those.
        let lossless = LinkConfig { loss: Loss::None, ..profile.link() };
        let dropped = play(lossless, true, game).0.missing;
        let is_lossy = dropped > 0 || beside.loss() > alone.loss() + chance(profile, alone.sent);
        if is_late || is_lossy {
            failed.push((profile.name, alone, beside, dropped));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_game_does_not_feel_a_block_on_its_connection() {
    a_game_feels_nothing(GameIsOn::TheBlocksConnection);
}

#[test]
fn a_game_does_not_feel_a_block_on_another_connection() {
    a_game_feels_nothing(GameIsOn::AnotherConnection);
}

/// A block beside a game, on another connection, from second 2 on: its Mbit/s in these seconds, and the share
/// of what the link was offered that it dropped.
fn block_in_play<const N: usize>(
    what: &str,
    down: LinkConfig,
    spans: [[u64; 2]; N],
) -> ([f64; N], f64, GameReport) {
    let end = spans[N - 1][1];
    let up = LinkConfig { bucket: None, rate_changes: Vec::new(), ..down.clone() };
    let flows = vec![
        Competitor::game(config_in_play(), GameStream::new(s(2), s(end))),
        Competitor::haulier(config_in_play()).starting_at(s(2)),
    ];
    let lasts = Duration::from_secs(end + 1);
    let report = Share { access: Access { up, down }, flows, lasts }.run(seed());
    let mbits = spans.map(|[from, to]| report.mbit(s(from), s(to))[1]);
    let dropped = report.dropped_bytes as f64 / report.offered_bytes as f64;
    let game = report.games[0].unwrap();
    println!("{what}: {mbits:?} Mbit/s, {dropped:.3} dropped, {game:?}, seed {}", seed());
    (mbits, dropped, game)
}

/// A policer fills no queue. The train of a block beside a game shows the rate of the line: it went on with
/// seven tenths of that, and 86 % of it was dropped, without end.
#[test]
fn a_block_beside_a_game_finds_a_policer_out() {
    for rtt_ms in [20, 80] {
        let bucket =
            TokenBucket { rate_bps: 10_000_000, burst_bytes: 20_000, excess: Excess::Dropped };
        let line = LinkConfig::new(100_000_000, Duration::from_micros(rtt_ms * 500));
        let down = LinkConfig { bucket: Some(bucket), ..line.with_queue(256 << 10) };
        let what = format!("policer, {rtt_ms} ms");
        let ([mbit], dropped, _) = block_in_play(&what, down, [[4, 32]]);
        assert!(mbit > 5.0 && dropped < 0.15, "{rtt_ms} ms: {mbit} Mbit/s, {dropped}");
    }
}

/// The link becomes half as fast, and is what it was ten seconds later. Where a slice takes 4 ms more than
/// before, that was a queue for good, and a block went on with a twentieth of the link.
#[test]
fn a_block_beside_a_game_follows_the_rate_of_the_link() {
    for (mbit, rtt_ms) in [(20, 40), (5, 80)] {
        let changes = [(12, mbit * 500_000), (22, mbit * 1_000_000)];
        let rate_changes =
            changes.map(|(at, rate_bps)| RateChange { at: s(at), rate_bps }).to_vec();
        let link = LinkConfig::new(mbit * 1_000_000, Duration::from_micros(rtt_ms * 500));
        let down = LinkConfig { rate_changes, ..link.with_queue(256 << 10) };
        let what = format!("{mbit} Mbit/s, then half of it, then all again");
        let (mbits, _, game) = block_in_play(&what, down, [[6, 12], [15, 22], [36, 46]]);
        let parts = [1.0, 0.5, 1.0].map(|part| part * mbit as f64);
        let is_used = mbits.iter().zip(parts).all(|(got, had)| *got > 0.5 * had);
        assert!(is_used && game.missing == 0, "{mbit} Mbit/s: {mbits:?}");
    }
}

/// Half to twice what a weak link passes is less than the floor of other transfers. A transfer beside a game
/// has no floor: with one, 64 kbit/s were offered 2.7 times what they pass, and nearly two thirds of that
/// were dropped.
#[test]
fn a_block_in_play_offers_a_weak_link_little_more_than_it_passes() {
    for kbps in [32, 64, 128, 256] {
        let link = LinkConfig::new(kbps * 1_000, Duration::from_millis(100)).with_queue(16_000);
        let flows = vec![Competitor::haulier(config_in_play()).with_blocks_of(256 << 10)];
        let report = Share::new(link, flows, Duration::from_secs(40)).run(seed());
        let offered = report.offered_bytes as f64 * 8.0 / (kbps * 40_000) as f64;
        let used = report.mbit(s(10), s(40))[0] * 1e3 / kbps as f64;
        println!("{kbps} kbit/s: {offered:.2} of it offered, {used:.2} used, seed {}", seed());
        assert!(offered < 1.3 && used > 0.5, "{kbps} kbit/s: {offered} {used}");
    }
}

/// The harness: a game is seen to feel it when TCP fills the queue, and what it loses where its link is too
/// slow.
#[test]
fn a_game_feels_tcp_and_a_link_that_is_too_slow() {
    let stream = GameStream::new(s(2), s(8));
    let lasts = Duration::from_secs(10);
    let run = |access, flows| Share { access, flows, lasts }.run(seed()).games[0].unwrap();
    let game = || Competitor::game(config(), stream);
    let alone = run(bottleneck(10, 64 << 10), vec![game()]);
    // Without a way of its own TCP would not fill 64 KiB.
    let tcp = Competitor::cubic().with_extra_rtt(Duration::from_millis(20));
    let beside = run(bottleneck(10, 64 << 10), vec![game(), tcp]);
    let narrow = LinkConfig { rate_bps: Some(40_000), ..bottleneck(1, 8 << 10).down };
    let narrow = run(narrow.into(), vec![game()]);
    println!("alone {alone:?}, beside TCP {beside:?}, on 40 kbit/s {narrow:?}, seed {}", seed());
    assert_eq!(alone.missing, 0);
    assert!(alone.p95 < Duration::from_millis(2));
    assert!(beside.p50 > Duration::from_millis(20), "{beside:?}");
    assert!(narrow.loss() > 0.02, "{narrow:?}");
}

/// What an application allows is a limit and no rate: a block that may have twice what the link has fills no
/// queue, and loses nothing of the game on its connection.
#[test]
fn a_limit_above_the_rate_of_the_link_fills_no_queue() {
    let stream = GameStream::new(s(2), s(8));
    let flows = vec![Competitor::haulier(config_at(20_000_000)).with_game(stream)];
    let access = bottleneck(10, 64 << 10);
    let report = Share { access, flows, lasts: Duration::from_secs(10) }.run(seed());
    let (game, mbit) = (report.games[0].unwrap(), report.mbit(s(2), s(8))[0]);
    println!("{mbit} Mbit/s beside {game:?}, seed {}", seed());
    assert_eq!(game.missing, 0);
    assert!(game.p95 < Duration::from_millis(20), "{game:?}");
    assert!(mbit > 7.0, "{mbit}");
}

/// A larger window shows a flow that is alone whether a delay is jitter, and others' queue hides that: where
/// each tried one near the window that overflowed Jain's index was 0.82 and 0.73 on two seeds. The mean
/// counts, for on one of these seeds it is 0.79.
#[test]
fn four_transfers_share_a_link_with_jitter_in_order() {
    let jains = [1, 2, 3, 4, 5, 6, 7, 8].map(|seed| {
        let plain = LinkConfig::new(20_000_000, Duration::ZERO).with_queue(100 << 10);
        let access = LinkConfig { jitter: Duration::from_millis(15), ..plain }.into();
        let flow = Competitor::haulier(config()).with_extra_rtt(Duration::from_millis(40));
        let begin = |n: u64| flow.clone().starting_at(Instant::from_millis(300 * n));
        let lasts = Duration::from_secs(20);
        let report = Share { access, flows: (0..4).map(begin).collect(), lasts }.run(seed);
        let (jain, used) = (report.jain(s(3), s(20)), report.mbit(s(3), s(20)));
        println!("{used:?} Mbit/s, Jain {jain:.3}, {} dropped, seed {seed}", report.dropped);
        jain
    });
    assert!(jains.iter().sum::<f64>() / 8.0 > 0.88, "{jains:?}");
}
