//! Both ends together, and what a peer can try at each.

mod ledger;
mod link;
mod received;

use alloc::vec::Vec;
use core::time::Duration;

use haulier_control::PathId;

use super::ledger::{AckWalk, NeverSent};
use super::window::window_after;
use super::*;
use crate::{Instant, RttEstimator};

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A ledger and its only path.
struct Sent {
    ledger: Ledger,
    timing: Timing,
}

impl core::ops::Deref for Sent {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

impl core::ops::DerefMut for Sent {
    fn deref_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

impl Sent {
    fn new() -> Self {
        Self { ledger: Ledger::new(), timing: Timing::new(PathId::FIRST) }
    }

    fn on_sent(&mut self, now: Instant, outgoing: Outgoing) {
        self.ledger.on_sent(now, &mut self.timing, outgoing);
    }

    fn poll_acked(&mut self, now: Instant, walk: &mut AckWalk<'_>) -> Option<Acked> {
        self.ledger.poll_acked(now, &mut self.timing, walk)
    }

    fn end_ack(&mut self, walk: &AckWalk<'_>) -> bool {
        self.ledger.end_ack(&mut self.timing, walk)
    }

    fn poll_fate(&mut self) -> Option<Datagram> {
        self.ledger.poll_fate(&mut self.timing)
    }

    fn poll_lost(&mut self, now: Instant) -> Option<Datagram> {
        self.ledger.poll_lost(now, &mut self.timing)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ledger.poll_timeout(&self.timing)
    }

    fn on_pto(&mut self, now: Instant) -> bool {
        self.ledger.on_pto(now, &mut self.timing)
    }

    fn rtt(&self) -> &RttEstimator {
        self.timing.rtt()
    }
}

fn item_of(number: u64) -> Item {
    Item::Block(u32::try_from(number).unwrap())
}

/// The next datagram that asks for an ack, with its number in it.
fn outgoing(sent: &mut Sent) -> Outgoing {
    let number = sent.next_number();
    sent.begin();
    sent.add(item_of(number));
    Outgoing::without_slice(number)
}

/// Sends `count` of these.
fn send(sent: &mut Sent, now: Instant, count: usize) {
    for _ in 0..count {
        let next = outgoing(sent);
        sent.on_sent(now, next);
    }
}

fn ack(largest: u64, first: u32, runs: &[(u32, u32)]) -> AckFrame {
    let mut frame = AckFrame::new(largest, Duration::ZERO, first);
    assert!(runs.iter().all(|&(gap, run)| frame.push_run(gap, run)));
    frame
}

/// The datagrams that an ack names for the first time, and whether it gives an RTT sample.
fn walk(sent: &mut Sent, now: Instant, frame: &AckFrame) -> Result<(Vec<Acked>, bool), NeverSent> {
    let mut walk = sent.begin_ack(frame)?;
    let acked: Vec<_> = core::iter::from_fn(|| sent.poll_acked(now, &mut walk)).collect();
    for acked in acked.iter().filter(|acked| acked.datagram.is_ack_eliciting()) {
        assert_eq!(sent.item(&acked.datagram, 0), Some(item_of(acked.datagram.number)));
        assert_eq!(sent.item(&acked.datagram, 1), None);
    }
    let is_sample = sent.end_ack(&walk);
    sent.check_invariants();
    Ok((acked, is_sample))
}

/// The numbers whose contents an ack hands back as acknowledged.
fn acked(sent: &mut Sent, now: Instant, frame: &AckFrame) -> Result<Vec<u64>, NeverSent> {
    let (acked, _) = walk(sent, now, frame)?;
    let acked = acked.iter().filter(|acked| !acked.was_lost);
    let mut numbers: Vec<_> = acked.map(|acked| acked.datagram.number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The numbers whose contents are lost by now.
fn lost(sent: &mut Sent, now: Instant) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(lost) = sent.poll_lost(now) {
        assert_eq!(sent.item(&lost, 0), Some(item_of(lost.number)));
        numbers.push(lost.number);
    }
    settle(sent);
    sent.trim(KEPT);
    sent.check_invariants();
    numbers
}

/// Settles fates, each loss as one behind the bottleneck.
fn settle(sent: &mut Sent) {
    while sent.poll_fate().is_some() {}
}

/// What bounds a span of numbers follows from what may be in flight: as many datagrams as a receiver can tell
/// apart. An ack reaches as far; so do the records, and with them the skipped numbers. A constant of its own,
/// 1024 or 16, was too small for these once.
#[test]
fn spans_are_those_of_what_may_be_in_flight() {
    let most = window_after(u64::MAX);
    let span = |first: u64| AckFrame::new(u64::MAX - 1, ms(0), u32::try_from(first).unwrap());
    let reach = |frame: &AckFrame| {
        let ranges = frame.ranges(u64::MAX).unwrap();
        ranges.map(|range| range.end() - range.start() + 1).sum::<u64>()
    };
    assert_eq!(reach(&span(most - 1)), most);
    assert_eq!(reach(&span(most)), most, "no more than that");
    let mut sent = Sent::new();
    for largest in (999..20_000).step_by(1_000) {
        send(&mut sent, at(0), 1_000);
        assert!(acked(&mut sent, at(0), &ack(largest, 999, &[])).is_ok());
        assert_eq!(lost(&mut sent, at(0)), [0; 0]);
    }
    sent.trim(0);
    send(&mut sent, at(0), usize::try_from(most).unwrap() - 1);
    assert!(!sent.is_full());
    send(&mut sent, at(0), 1);
    assert!(sent.is_full(), "as many records as the receiver's window has numbers");
}

#[test]
fn sizes() {
    assert!(size_of::<ReceivedDatagrams>() <= 200, "{}", size_of::<ReceivedDatagrams>());
    assert!(size_of::<Ledger>() <= 464, "{}", size_of::<Ledger>());
    assert!(size_of::<Datagram>() <= 56, "{}", size_of::<Datagram>());
    assert!(size_of::<AckFrame>() <= 304, "{}", size_of::<AckFrame>());
}
