//! The laws of long transfers and of those beside a game, on a link that is played by hand.

use alloc::collections::VecDeque;

use super::super::tuning::delay::REFERENCE;
use super::*;

const PACKET: Bytes = Bytes(1_228.0);
const FLOOR: Rate = Rate::from_kbps(200);

/// A queue without end and a way of fixed length behind it.
struct Link {
    rate: Rate,
    way: Span,
    idle_at: Span,
    /// One in so many gets lost; 0 is none.
    loses: u64,
}

struct Transfer {
    pacing: Pacing,
    number: u64,
    passed: Bytes,
    /// What is on its way back: when it is heard, and what.
    back: VecDeque<(Span, Sample, bool)>,
}

impl Transfer {
    fn new(urgency: Urgency, rate: Rate) -> Self {
        let mut pacing = Pacing::new(FLOOR, None);
        pacing.follow(urgency, true, Some(rate));
        Self { pacing, number: 0, passed: Bytes::ZERO, back: VecDeque::new() }
    }

    fn step(&mut self, now: Span, link: &mut Link) {
        while let Some(&(_, sample, is_lost)) = self.back.front().filter(|(at, ..)| *at <= now) {
            self.back.pop_front();
            self.pacing.on_settled(sample.number, is_lost);
            if !is_lost {
                self.pacing.on_arrival(&sample, 2.0 * link.way);
            }
        }
        let moment = now.instant();
        while self.pacing.opens_at(moment, &queue()).is_none() {
            link.idle_at = link.idle_at.max(now) + PACKET / link.rate;
            let at = link.idle_at + link.way;
            self.passed += PACKET;
            let is_lost = link.loses > 0 && self.number.is_multiple_of(link.loses);
            self.back.push_back((at + link.way, self.sample(now, at), is_lost));
            self.pacing.on_sent(moment, self.number, PACKET, &queue());
            self.number += 1;
        }
    }

    fn sample(&self, sent: Span, at: Span) -> Sample {
        let (number, passed) = (self.number, self.passed);
        Sample { number, bytes: PACKET, at, sent, delay: at - sent, passed, received: passed }
    }

    /// What it takes for its share, as a part of 10 Mbit/s.
    fn share(&mut self) -> f64 {
        self.pacing.flow_mut().unwrap().rate() / REFERENCE
    }
}

/// These laws do not ask for it.
fn queue() -> Queue {
    let bottleneck = super::super::bottleneck::Bottleneck::new(None, 0);
    Queue::new(&bottleneck, Span::ZERO, PACKET, false, Span::ZERO)
}

fn run(transfers: &mut [Transfer], link: &mut Link, millis: core::ops::Range<u16>) {
    for ms in millis {
        for transfer in transfers.iter_mut() {
            transfer.step(Span::from_millis(ms), link);
        }
    }
}

fn link() -> Link {
    Link { rate: REFERENCE, way: Span::from_millis(25), idle_at: Span::ZERO, loses: 0 }
}

#[test]
fn two_that_begin_with_unequal_rates_become_equal() {
    let mut transfers = [1.2, 0.2].map(|part| Transfer::new(Urgency::LoadScreen, part * Rate(1.0)));
    run(&mut transfers, &mut link(), 1..15_000);
    let [a, b] = transfers.map(|mut transfer| transfer.share());
    assert!((0.5..2.0).contains(&(a / b)), "{a} {b}");
    assert!((0.7..1.2).contains(&(a + b)), "{a} {b}");
}

#[test]
fn it_follows_a_link_that_halves() {
    let mut transfers = [Transfer::new(Urgency::LoadScreen, REFERENCE)];
    let mut link = link();
    run(&mut transfers, &mut link, 1..2_000);
    link.rate = link.rate / 2.0;
    run(&mut transfers, &mut link, 2_000..4_000);
    let share = transfers[0].share();
    assert!((0.35..0.55).contains(&share), "{share}");
}

#[test]
fn losses_alone_are_no_sign() {
    let mut transfers = [Transfer::new(Urgency::LoadScreen, REFERENCE)];
    run(&mut transfers, &mut Link { loses: 5, ..link() }, 1..5_000);
    let share = transfers[0].share();
    assert!(share > 0.85, "{share}");
}

#[test]
fn beside_a_game_three_tenths_are_left_free() {
    let mut transfers = [Transfer::new(Urgency::DuringPlay, Rate::INFINITY)];
    run(&mut transfers, &mut link(), 1..8_000);
    let share = transfers[0].share();
    assert!((0.6..0.8).contains(&share), "{share}");
}

/// Somebody fills the queue: whatever this one gives away is taken. It blames others, and takes its rate
/// again.
#[test]
fn a_queue_that_never_empties_makes_it_do_as_tcp_does() {
    let mut transfers = [Transfer::new(Urgency::LoadScreen, REFERENCE)];
    let mut link = link();
    run(&mut transfers, &mut link, 1..1_000);
    for ms in 1_000..8_000 {
        let now = Span::from_millis(ms);
        link.idle_at = link.idle_at.max(now + Span::from_millis(60));
        transfers[0].step(now, &mut link);
    }
    assert!(matches!(transfers[0].pacing.law, Law::BesideTcp(_)), "{:?}", transfers[0].pacing.law);
    link.rate = 10.0 * REFERENCE;
    run(&mut transfers, &mut link, 8_000..12_000);
    assert!(matches!(transfers[0].pacing.law, Law::Delay(_)), "the others are gone");
}

#[test]
fn each_law_holds_in_its_time() {
    let mut pacing = Pacing::new(FLOOR, None);
    assert!(matches!(pacing.law, Law::Blind(_)));
    pacing.follow(Urgency::LoadScreen, true, None);
    assert!(matches!(pacing.law, Law::Blind(_)), "long or not, nothing is known");
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    assert!(pacing.is_modelled() && !pacing.has_own_rate());
    pacing.follow(Urgency::LoadScreen, true, Some(REFERENCE));
    assert!(matches!(pacing.law, Law::Delay(_)) && pacing.has_own_rate());
    pacing.follow(Urgency::DuringPlay, true, Some(REFERENCE));
    assert!(matches!(pacing.law, Law::BesideGame(_)));
    pacing.follow(Urgency::LoadScreen, false, Some(REFERENCE));
    assert!(pacing.is_modelled());
    assert!(Pacing::new(FLOOR, Some(REFERENCE)).is_modelled());
}

#[test]
fn the_floor_holds() {
    let mut transfer = Transfer::new(Urgency::LoadScreen, Rate(1.0));
    transfer.pacing.flow_mut().unwrap().restart(Rate::ZERO);
    assert_eq!(transfer.pacing.rate(&queue()), Some(FLOOR));
}
