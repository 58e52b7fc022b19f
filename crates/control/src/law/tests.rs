//! The laws of long transfers and of those beside a game, on a simulated link.

use alloc::collections::VecDeque;

use super::*;
use crate::tuning::delay::REFERENCE;

const PACKET: Bytes = Bytes(1_228.0);
const FLOOR: Rate = Rate::from_kbps(200);

/// An unlimited queue and a fixed delay behind it.
struct Wire {
    rate: Rate,
    delay: Span,
    idle_at: Span,
    /// One datagram is lost in each `loss_interval` of them; with 0 no datagram is lost.
    loss_interval: u64,
    /// What waits longer is marked.
    mark_above: Option<Span>,
}

struct Transfer {
    pacing: Pacing,
    number: u64,
    passed: Bytes,
    /// Feedback in flight: when it arrives, its sample, and whether that was lost, and marked.
    feedback: VecDeque<(Span, Sample, bool, bool)>,
}

impl Transfer {
    fn new(urgency: Urgency, rate: Rate) -> Self {
        let mut pacing = Pacing::new(FLOOR, None);
        pacing.set_in_flight((0, 0), Span::from_millis(50), Span::ZERO);
        // An infinite rate stands for a link whose rate is not known.
        pacing.follow(urgency, true, Some(rate).filter(|rate| rate.is_finite()));
        Self { pacing, number: 0, passed: Bytes::ZERO, feedback: VecDeque::new() }
    }

    /// A long transfer.
    fn loading(rate: Rate) -> Self {
        Self::new(Urgency::LoadScreen, rate)
    }

    fn step(&mut self, now: Span, wire: &mut Wire) {
        let (link, state) = (wire, link());
        while let Some(&(_, sample, is_lost, is_marked)) =
            self.feedback.front().filter(|(at, ..)| *at <= now)
        {
            self.feedback.pop_front();
            self.note_in_flight();
            if is_marked {
                self.pacing.on_congestion_mark(sample.number);
            }
            self.pacing.on_settled(sample.number, is_lost);
            if !is_lost {
                self.pacing.on_arrival(now.instant(), &sample);
            }
        }
        let moment = now.instant();
        self.note_in_flight();
        while !self.pacing.is_full() && self.pacing.opens_at(moment, &state).is_none() {
            link.idle_at = link.idle_at.max(now) + PACKET / link.rate;
            let at = link.idle_at + link.delay;
            self.passed += PACKET;
            let is_lost = link.loss_interval > 0 && self.number.is_multiple_of(link.loss_interval);
            let is_marked = link.mark_above.is_some_and(|above| link.idle_at - now > above);
            self.feedback.push_back((at + link.delay, self.sample(now, at), is_lost, is_marked));
            self.pacing.on_sent(moment, self.number, PACKET, &state);
            self.number += 1;
        }
    }

    fn note_in_flight(&mut self) {
        let in_flight = u32::try_from(self.feedback.len()).unwrap();
        let rtt = Span::from_millis(50);
        self.pacing.set_in_flight((in_flight, in_flight), rtt, Span::ZERO);
    }

    fn sample(&self, sent: Span, at: Span) -> Sample {
        let (number, passed) = (self.number, self.passed);
        Sample::of((number, PACKET), [sent, at], [passed, passed])
    }

    /// The flow's share, as a fraction of 10 Mbit/s.
    fn share(&mut self) -> f64 {
        self.pacing.rate().unwrap() / REFERENCE
    }
}

/// The link's state, which these laws do not use.
fn link() -> Link {
    let bottleneck = crate::belief::bottleneck::Bottleneck::new(None, 0);
    Link::new(&bottleneck, Span::ZERO, PACKET, false, Span::ZERO)
}

fn run(transfers: &mut [Transfer], link: &mut Wire, millis: core::ops::Range<u16>) {
    for ms in millis {
        for transfer in transfers.iter_mut() {
            transfer.step(Span::from_millis(ms), link);
        }
    }
}

fn wire() -> Wire {
    Wire {
        rate: REFERENCE,
        delay: Span::from_millis(25),
        idle_at: Span::ZERO,
        loss_interval: 0,
        mark_above: None,
    }
}

#[test]
fn two_flows_with_unequal_rates_converge() {
    let mut transfers = [1.2, 0.2].map(|part| Transfer::loading(part * Rate(1.0)));
    run(&mut transfers, &mut wire(), 1..15_000);
    let [a, b] = transfers.map(|mut transfer| transfer.share());
    assert!((0.5..2.0).contains(&(a / b)), "{a} {b}");
    assert!((0.7..1.2).contains(&(a + b)), "{a} {b}");
}

#[test]
fn the_rate_follows_a_link_that_halves() {
    let mut transfers = [Transfer::loading(REFERENCE)];
    let mut link = wire();
    run(&mut transfers, &mut link, 1..2_000);
    link.rate = link.rate / 2.0;
    run(&mut transfers, &mut link, 2_000..3_500);
    // It grows and yields from round to round.
    let shares = (0..10).map(|tenth| {
        run(&mut transfers, &mut link, 3_500 + 50 * tenth..3_550 + 50 * tenth);
        transfers[0].share()
    });
    let mean = shares.sum::<f64>() / 10.0;
    assert!((0.35..0.55).contains(&mean), "{mean}");
}

#[test]
fn losses_alone_do_not_reduce_the_rate() {
    let mut transfers = [Transfer::loading(REFERENCE)];
    run(&mut transfers, &mut Wire { loss_interval: 5, ..wire() }, 1..5_000);
    let share = transfers[0].share();
    assert!(share > 0.85, "{share}");
}

#[test]
fn beside_a_game_three_tenths_of_the_link_stay_free() {
    let mut transfers = [Transfer::new(Urgency::DuringPlay, Rate::INFINITY)];
    run(&mut transfers, &mut wire(), 1..8_000);
    let share = transfers[0].share();
    assert!((0.6..0.8).contains(&share), "{share}");
}

/// A router marks what meets more than 3 ms of queue, a fraction of the delay that the law accepts.
#[test]
fn a_mark_counts_as_a_queue_above_the_target() {
    let mut law = [None, Some(Span::from_millis(3))].map(|threshold| {
        let (mut transfer, mut link) =
            (Transfer::loading(REFERENCE), Wire { mark_above: threshold, ..wire() });
        run(core::slice::from_mut(&mut transfer), &mut link, 1..2_000);
        let mut longest = Span::ZERO;
        for ms in 2_000..6_000 {
            let now = Span::from_millis(ms);
            transfer.step(now, &mut link);
            longest = longest.max(link.idle_at - now);
        }
        assert!(matches!(transfer.pacing.law, Law::Windowed(_)), "{:?}", transfer.pacing.law);
        (longest, transfer.share())
    });
    let [(plain, _), (marked, share)] = &mut law;
    assert!(*marked < *plain && *marked < Span::from_millis(9), "{marked:?} {plain:?}");
    assert!(*share > 0.75, "{share}");
}

/// The pacing of a transfer of 1 MiB on a link of 10 Mbit/s, with 40 datagrams in flight: a ramp's first.
fn ramped(known: Option<Rate>) -> Pacing {
    let mut pacing = Pacing::new(FLOOR, known);
    pacing.set_total(Bytes(1_048_576.0));
    pacing.set_in_flight((40, 40), Span::from_millis(50), Span::ZERO);
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    pacing
}

#[test]
fn a_ramp_is_not_for_a_rate_that_is_remembered_nor_for_a_short_path() {
    assert!(ramped(None).is_full());
    assert!(!ramped(Some(REFERENCE)).is_full());
    let mut pacing = ramped(None);
    let near = Link { is_near: true, ..link() };
    pacing.on_sent(Instant::from_millis(1), 0, PACKET, &near);
    assert!(!pacing.is_full());
}

/// Behind a train 17 datagrams arrive as they were sent, and twice as far apart.
#[test]
fn a_ramp_ends_where_arrivals_show_nobody_else() {
    let is_full = |apart: f64| {
        let mut pacing = ramped(None);
        for number in 0..17_u32 {
            let times = f64::from(number) * (PACKET / REFERENCE);
            let passed = f64::from(number) * PACKET;
            let times = [times, apart * times + Span::from_millis(50)];
            let sample = Sample::of((number.into(), PACKET), times, [passed, passed]);
            pacing.on_arrival(Instant::from_millis(100), &sample);
        }
        pacing.is_full()
    };
    assert_eq!([1.0, 2.0].map(is_full), [false, true]);
}

/// A window that began before a ramp had ended sent all that the link holds.
#[test]
fn a_window_waits_for_a_ramp_until_that_loses_more_than_arrives() {
    let follow = |pacing: &mut Pacing| {
        pacing.follow(Urgency::LoadScreen, true, Some(REFERENCE));
        pacing.is_start()
    };
    let mut pacing = ramped(None);
    (0..20).for_each(|number| pacing.on_settled(number, false));
    assert!(follow(&mut pacing), "it rises");
    // Of 70 in all 50 are lost to a queue: the window has half of what arrived.
    let sample = |number: u64, delay: u16| {
        let (sent, delay) = (Span::ZERO, Span::from_millis(delay));
        let (passed, received) = (Bytes::ZERO, Bytes::ZERO);
        Sample::of((number, PACKET), [sent, sent + delay], [passed, received])
    };
    pacing.on_arrival(Instant::from_millis(100), &sample(20, 50));
    pacing.on_arrival(Instant::from_millis(150), &sample(21, 100));
    (22..72).for_each(|number| pacing.on_settled(number, true));
    assert!(!follow(&mut pacing), "{:?}", pacing.law);
    let part = pacing.rate().unwrap() / REFERENCE;
    assert!((0.13..0.16).contains(&part), "{part}");
}

/// A mark ends a ramp, too: the window is what the ramp had, and not the link's rate.
#[test]
fn a_mark_in_a_ramp_is_no_reason_to_fill_the_link() {
    let mut pacing = ramped(None);
    pacing.on_congestion_mark(0);
    pacing.follow(Urgency::LoadScreen, false, Some(2.0 * REFERENCE));
    assert!(!pacing.is_start());
    let part = pacing.rate().unwrap() / (40.0 * PACKET / Span::from_millis(60));
    assert!((0.85..0.95).contains(&part), "{part}");
}

/// A train of 20 shows 10 Mbit/s, and behind it a guess has sent 180 datagrams at the same rate, of which one
/// in ten arrives 8 ms after the other: that is a window's share, and as many are in flight.
#[test]
fn a_flight_on_a_guess_is_judged_once_there_is_a_rate() {
    let mut pacing = Pacing::new(FLOOR, None);
    let rtt = Span::from_millis(50);
    pacing.set_in_flight((200, 200), rtt, Span::ZERO);
    let mut train = link();
    train.is_train = true;
    for number in 0..200 {
        let link = if number < 20 { &train } else { &link() };
        pacing.on_slice_sent(Instant::ZERO, PACKET, link);
        pacing.on_sent(Instant::ZERO, number, PACKET, link);
    }
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    for number in 20..200_u16 {
        let is_lost = !number.is_multiple_of(10);
        pacing.on_settled(number.into(), is_lost);
        if !is_lost {
            let sent = f64::from(number) * (PACKET / REFERENCE);
            let (passed, received) = (f64::from(number) * PACKET, f64::from(number / 10) * PACKET);
            let (number, at) = (number.into(), sent + rtt);
            let sample = Sample::of((number, PACKET), [sent, at], [passed, received]);
            pacing.on_arrival(Instant::from_millis(200), &sample);
        }
    }
    let Law::Start(start) = &pacing.law else { panic!("{:?}", pacing.law) };
    let share = start.share(REFERENCE).unwrap() / REFERENCE;
    assert!((0.05..0.2).contains(&share), "{share}");
    let mut is_full_with = |datagrams| {
        pacing.set_in_flight((datagrams, datagrams), rtt, Span::ZERO);
        pacing.is_full()
    };
    assert!(is_full_with(80) && !is_full_with(40), "what was lost is not sent again at once");
    pacing.set_in_flight((500, 500), rtt, Span::ZERO);
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    assert!(pacing.has_own_rate() && !pacing.is_full(), "the pace alone bounds an overrun flight");
}

/// A receiver reports half of a guess as lost, and the other half as arrived within microseconds: it is sent
/// no more than the fastest guess.
#[test]
fn arrivals_that_a_receiver_invents_do_not_raise_the_pace_above_a_guess() {
    let mut pacing = Pacing::new(FLOOR, None);
    let rtt = Span::from_millis(50);
    pacing.set_in_flight((80, 80), rtt, Span::ZERO);
    for number in 0..80 {
        pacing.on_slice_sent(Instant::ZERO, PACKET, &link());
        pacing.on_sent(Instant::ZERO, number, PACKET, &link());
    }
    for number in 0..40_u32 {
        pacing.on_settled(number.into(), !number.is_multiple_of(2));
        let received = f64::from(number) * PACKET;
        let (at, sent, number) = (rtt + Span(f64::from(number)), Span::ZERO, number.into());
        let (bytes, delay, passed) = (PACKET, rtt, received);
        let sample = Sample { number, bytes, at, sent, delay, passed, received, ..Sample::ZERO };
        pacing.on_arrival(Instant::from_millis(100), &sample);
    }
    let pace = pacing.rate().unwrap();
    assert!(pacing.has_own_rate() && pace <= AT_ONCE_RATE, "{}", pace / AT_ONCE_RATE);
}

/// Of what a guess sends behind its train half is lost, and then three quarters: a window begins at once at
/// the pace of what arrives, whatever is in flight; when the first datagram of that pace arrives, as much as
/// passes in a round trip may be. Ten flows that went on at their guess dropped 82 % of what they sent.
#[test]
fn a_guess_that_overruns_the_link_becomes_a_window() {
    let mut pacing = Pacing::new(FLOOR, None);
    let rtt = Span::from_millis(50);
    pacing.set_in_flight((80, 80), rtt, Span::ZERO);
    let send = |pacing: &mut Pacing, numbers: core::ops::Range<u64>| {
        for number in numbers {
            pacing.on_slice_sent(Instant::ZERO, PACKET, &link());
            pacing.on_sent(Instant::ZERO, number, PACKET, &link());
        }
    };
    send(&mut pacing, 0..80);
    let mut received = Bytes::ZERO;
    let mut settle = |pacing: &mut Pacing, numbers: core::ops::Range<u32>, one_in: u32| {
        for number in numbers {
            let is_lost = !number.is_multiple_of(one_in);
            pacing.on_settled(number.into(), is_lost);
            if !is_lost {
                received += PACKET;
                let sent = f64::from(number) * (PACKET / REFERENCE);
                let (passed, number, at) = (REFERENCE * sent, number.into(), sent + rtt);
                let (bytes, delay) = (PACKET, rtt);
                let sample =
                    Sample { number, bytes, at, sent, delay, passed, received, ..Sample::ZERO };
                pacing.on_arrival((at + rtt).instant(), &sample);
            }
        }
    };
    settle(&mut pacing, 0..7, 2);
    assert!(!pacing.has_own_rate(), "seven say nothing");
    settle(&mut pacing, 7..9, 2);
    pacing.set_in_flight((500, 500), rtt, Span::ZERO);
    let arrives = pacing.rate().unwrap() / REFERENCE;
    assert!(pacing.has_own_rate() && (0.4..0.6).contains(&arrives), "{arrives}");
    settle(&mut pacing, 9..79, 4);
    pacing.set_in_flight((500, 500), rtt, Span::ZERO);
    assert!(!pacing.is_full(), "what is in flight says nothing yet");
    send(&mut pacing, 80..82);
    settle(&mut pacing, 80..81, 2);
    // In 75 ms 21 pass, and six more are no queue. At first it was 31.
    let mut is_full_with = |datagrams| {
        pacing.set_in_flight((datagrams, datagrams), rtt, Span::ZERO);
        pacing.is_full()
    };
    let full = (0..100).find(|&n| is_full_with(n)).unwrap();
    assert!((24..30).contains(&full), "{full}");
}

/// Where one datagram passes in 40 ms a window cannot pace: a loss takes three tenths of the pace, and acks
/// that come late, for others were lost, do not take more than a third of it. With the mean time to an ack
/// 64 kbit/s that lose a fifth were used by a sixth.
#[test]
fn fewer_than_four_datagrams_are_paced_by_their_number() {
    let (rtt, each) = (Span::from_millis(50), Span::from_millis(40));
    let rate = PACKET / each;
    let mut law = Windowed::new(Pace::new(rate), rate, rtt, (0, 0), PACKET);
    let sample = |number: u32| {
        let (sent, bytes) = (f64::from(number) * each, PACKET);
        let passed = f64::from(number) * PACKET;
        let (at, number) = (sent + rtt, number.into());
        Sample { number, bytes, at, sent, delay: rtt, passed, received: passed, ..Sample::ZERO }
    };
    law.overrun(2, rate, &(sample(0), sample(1)));
    let hear = |law: &mut Windowed, number: u32, late: Span| {
        let sample = sample(number);
        law.on_delay(sample.at + late, &sample, Span::ZERO, Span::ZERO, PACKET);
        law.pace.rate()
    };
    let before = hear(&mut law, 2, Span::ZERO);
    law.on_settled(3, true);
    let after = hear(&mut law, 4, Span::ZERO) / before;
    assert!((0.65..0.8).contains(&after), "{after}");
    let late = (5..40).map(|number| hear(&mut law, number, Span::from_millis(1_000))).last();
    let late = late.unwrap() / before / after;
    assert!(late > 0.6, "{late}");
}

#[test]
fn each_law_applies_in_its_phase() {
    let mut pacing = Pacing::new(FLOOR, None);
    assert!(matches!(pacing.law, Law::Blind(_)));
    pacing.follow(Urgency::LoadScreen, true, None);
    assert!(matches!(pacing.law, Law::Blind(_)), "no rate is known, long or not");
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    assert!(pacing.is_start() && !pacing.has_own_rate());
    pacing.follow(Urgency::LoadScreen, true, Some(REFERENCE));
    assert!(matches!(pacing.law, Law::Windowed(_)) && pacing.has_own_rate());
    pacing.follow(Urgency::DuringPlay, true, Some(REFERENCE));
    assert!(pacing.is_beside_game());
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    assert!(pacing.is_start());
    assert!(Pacing::new(FLOOR, Some(REFERENCE)).is_start());
}

#[test]
fn a_window_begins_at_the_floor_at_least() {
    let mut pacing = Pacing::new(FLOOR, Some(REFERENCE));
    pacing.begin(Pace::new(Rate::MIN), REFERENCE, true);
    assert_eq!(pacing.rate(), Some(FLOOR));
    pacing.begin(Pace::new(Rate::MIN), FLOOR / 2.0, true);
    assert_eq!(pacing.rate(), Some(FLOOR / 2.0), "a slower link does not have to bear it");
}

#[test]
fn a_window_keeps_the_link_busy_and_its_queue_short() {
    let (mut transfer, mut link) = (Transfer::loading(REFERENCE), wire());
    run(core::slice::from_mut(&mut transfer), &mut link, 1..2_000);
    let (begun, mut longest) = (transfer.number, Span::ZERO);
    for ms in 2_000..6_000 {
        let now = Span::from_millis(ms);
        transfer.step(now, &mut link);
        longest = longest.max(link.idle_at - now);
    }
    let passed = f64::from(u32::try_from(transfer.number - begun).unwrap()) * PACKET;
    assert!(passed / Span::from_millis(4_000) > 0.95 * REFERENCE, "{passed:?}");
    assert!(longest < Span::from_millis(20), "{longest:?}");
    let pace = transfer.pacing.rate().unwrap();
    assert!(pace < 1.15 * REFERENCE, "in no bursts that a short queue does not hold: {pace:?}");
}

/// The pace is bounded by the rate that has passed, and is tried beyond it as the window grows.
#[test]
fn a_window_follows_a_link_that_becomes_faster() {
    let (mut transfer, mut link) = (Transfer::loading(REFERENCE), wire());
    run(core::slice::from_mut(&mut transfer), &mut link, 1..2_000);
    link.rate = 8.0 * REFERENCE;
    run(core::slice::from_mut(&mut transfer), &mut link, 2_000..4_000);
    let begun = transfer.number;
    run(core::slice::from_mut(&mut transfer), &mut link, 4_000..5_000);
    let passed = f64::from(u32::try_from(transfer.number - begun).unwrap()) * PACKET;
    assert!(passed / Span::from_millis(1_000) > 7.0 * REFERENCE, "{passed:?}");
}

/// How many datagrams a window of this transfer holds.
fn window_of(pacing: &mut Pacing) -> f64 {
    let rtt = Span::from_millis(50);
    let is_full = |pacing: &mut Pacing, n| {
        pacing.set_in_flight((n, n), rtt, Span::ZERO);
        pacing.is_full()
    };
    f64::from((0..).find(|&n| is_full(pacing, n)).unwrap())
}

/// The window with which a transfer begins, after a mark or not, for callers that are this late in ms.
fn first_window(is_marked: bool, late_ms: u16) -> f64 {
    let mut pacing = Pacing::new(FLOOR, Some(REFERENCE));
    pacing.set_in_flight((0, 0), Span::from_millis(50), Span::from_millis(late_ms));
    if is_marked {
        pacing.on_congestion_mark(1);
    }
    pacing.follow(Urgency::LoadScreen, true, Some(REFERENCE));
    window_of(&mut pacing)
}

/// A window goes out little faster than its start, for that is what has passed: at half as much more again a
/// queue of a few packets was overrun for the first eight rounds. Where datagrams overtake each other the
/// start may have been far too slow.
#[test]
fn a_window_begins_with_the_rate_of_the_start_as_what_has_passed() {
    let rtt = Span::from_millis(50);
    let pace = |is_in_order| {
        let mut pacing = Pacing::new(FLOOR, Some(REFERENCE));
        pacing.set_in_flight((0, 0), rtt, Span::ZERO);
        pacing.begin(Pace::new(REFERENCE), REFERENCE, is_in_order);
        let (number, passed) = (1, PACKET);
        let (sent, at, delay) = (Span::from_millis(1), Span::from_millis(1) + rtt, rtt);
        let sample = Sample {
            number,
            bytes: PACKET,
            at,
            sent,
            delay,
            passed,
            received: passed,
            ..Sample::ZERO
        };
        pacing.on_arrival(Instant::from_millis(60), &sample);
        pacing.rate().unwrap() / REFERENCE
    };
    let [in_order, disordered] = [true, false].map(pace);
    assert!((1.0..1.1).contains(&in_order) && disordered > 1.4, "{in_order} {disordered}");
}

/// A mark that comes before a window begins makes it smaller by as much as one that comes after.
#[test]
fn a_window_begins_smaller_after_a_mark() {
    let [plain, marked] = [false, true].map(|is_marked| first_window(is_marked, 0));
    assert!((0.7..0.95).contains(&(marked / plain)), "{marked} {plain}");
}

/// A server that is called once a frame hears of fates a frame later: with less in flight it waits.
#[test]
fn a_window_begins_larger_for_late_callers() {
    let [plain, late] = [0, 50].map(|ms| first_window(false, ms));
    assert!((1.6..2.1).contains(&(late / plain)), "{late} {plain}");
}

/// A near path holds less than one tick sends: there a long transfer goes on at the rate of the link.
#[test]
fn on_a_near_path_no_window_begins() {
    for is_near in [false, true] {
        let mut pacing = Pacing::new(FLOOR, None);
        pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
        let mut link = link();
        link.is_near = is_near;
        pacing.on_sent(Instant::from_millis(1), 0, PACKET, &link);
        pacing.follow(Urgency::LoadScreen, true, Some(REFERENCE));
        assert_eq!(pacing.is_start(), is_near);
    }
}

/// What a receiver says of arrivals may be anything: before they were sent, or long after they were heard of.
#[test]
fn a_window_stays_one_whatever_a_receiver_says() {
    for lie in [-1e12, -1e3, 0.0, 1e3, 1e12] {
        let (mut transfer, mut link) = (Transfer::loading(REFERENCE), wire());
        for ms in 1..3_000 {
            for (nth, (_, sample, ..)) in transfer.feedback.iter_mut().enumerate() {
                sample.delay += if nth % 3 == 0 { Span(lie) } else { Span::ZERO };
            }
            transfer.step(Span::from_millis(ms), &mut link);
        }
        let pace = transfer.pacing.rate().unwrap();
        assert!(pace > Rate::ZERO && pace.is_finite(), "{lie}: {pace:?}");
    }
}

/// Everything in flight is lost: the window is not held up by what never comes back, and a path that passes
/// nothing for a while is used again.
#[test]
fn a_window_goes_on_after_everything_was_lost() {
    let (mut transfer, mut link) = (Transfer::loading(REFERENCE), wire());
    run(core::slice::from_mut(&mut transfer), &mut link, 1..1_000);
    for feedback in &mut transfer.feedback {
        feedback.2 = true;
    }
    run(core::slice::from_mut(&mut transfer), &mut link, 1_000..3_000);
    let begun = transfer.number;
    run(core::slice::from_mut(&mut transfer), &mut link, 3_000..4_000);
    let passed = f64::from(u32::try_from(transfer.number - begun).unwrap()) * PACKET;
    assert!(passed / Span::from_millis(1_000) > 0.8 * REFERENCE, "{passed:?}");
}

/// Beside a game nothing passes for a second, and then all of the link does again.
#[test]
fn a_share_is_found_again_after_everything_was_lost() {
    let (mut transfer, mut link) = (Transfer::new(Urgency::DuringPlay, Rate::INFINITY), wire());
    run(core::slice::from_mut(&mut transfer), &mut link, 1..8_000);
    link.loss_interval = 1;
    run(core::slice::from_mut(&mut transfer), &mut link, 8_000..9_000);
    link.loss_interval = 0;
    run(core::slice::from_mut(&mut transfer), &mut link, 9_000..40_000);
    let share = transfer.share();
    assert!((0.6..0.8).contains(&share), "{share}");
}

#[test]
fn a_window_learns_a_fast_link_in_steps() {
    let steps = |from: f64, to: f64| {
        let mut pacing = Transfer::loading(from * REFERENCE).pacing;
        let before = window_of(&mut pacing);
        pacing.learn(to * REFERENCE);
        window_of(&mut pacing) / before
    };
    assert!((3.5..4.5).contains(&steps(100.0, 400.0)));
    assert!((steps(100.0, 110.0) - 1.0).abs() < 1e-9, "no more than jitter");
    assert!((steps(1.0, 4.0) - 1.0).abs() < 1e-9, "it grows by its law");
}

/// Datagrams that were sent before the window was cut for a mark met the same queue: of a long round trip
/// all of them are marked, and each was a tenth of the window.
#[test]
fn a_mark_from_before_the_cut_cuts_no_window() {
    let mut transfer = Transfer::loading(REFERENCE);
    run(core::slice::from_mut(&mut transfer), &mut wire(), 1..500);
    let newest = transfer.number - 1;
    let before = window_of(&mut transfer.pacing);
    let mut cut_by = |number| {
        transfer.pacing.on_congestion_mark(number);
        window_of(&mut transfer.pacing) / before
    };
    let once = cut_by(newest - 5);
    assert!((0.85..0.95).contains(&once), "{once}");
    assert_eq!([cut_by(newest - 4), cut_by(newest)], [once; 2]);
    assert!(cut_by(newest + 1) < once);
}
