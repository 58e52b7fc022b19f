//! Unit tests of the bulk sender and receiver.

mod bottleneck;
mod sender;

use alloc::vec::Vec;
use core::time::Duration;

use crate::Instant;
use crate::bulk::Sender;
use crate::transit::{AckFrame, KEPT, Ledger, Modelled, Outgoing};

const fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Bytes that differ from slice to slice.
fn chunk_of(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A datagram without a slice is sent.
fn send(ledger: &mut Ledger, now: Instant) {
    let number = ledger.next_number();
    let outgoing = Outgoing {
        number,
        wire_bytes: 1228,
        is_ack_eliciting: true,
        is_marked: false,
        slice: None,
        modelled: Modelled::default(),
    };
    ledger.on_sent(now, outgoing);
}

/// An ack arrives; it is passed to the ledger, and to the sender if there is one.
fn handle_ack(ledger: &mut Ledger, sender: Option<&mut Sender>, now: Instant, ack: &AckFrame) {
    let mut walk = ledger.begin_ack(ack).unwrap();
    let acked: Vec<_> = core::iter::from_fn(|| ledger.poll_acked(now, &mut walk)).collect();
    ledger.end_ack(&walk);
    if let Some(sender) = sender {
        acked.iter().for_each(|acked| sender.on_acked(now, acked));
        sender.end_ack(now, ledger);
    }
}

/// Settles fates as a connection does.
fn settle(ledger: &mut Ledger, sender: &mut Sender, now: Instant) {
    sender.begin_settling(ledger);
    while let Some(settled) = ledger.poll_fate(|datagram| sender.lost_as(datagram)) {
        sender.on_settled(&settled);
    }
    sender.end_settling(ledger);
    while ledger.poll_lost(now).is_some() {}
    ledger.trim(KEPT);
}
