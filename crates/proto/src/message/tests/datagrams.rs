//! Messages over datagrams: the two modules as a connection puts them together, over a bad link.

#![allow(clippy::cast_possible_truncation, reason = "numbers and lengths of a test are small")]

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;

use crate::Instant;
use crate::message::{MESSAGE_FRAME_BYTES, MessageReceiver, MessageSender};
use crate::transit::{self, AckFrame, Fate, Item, Ledger, Outgoing, ReceivedDatagrams};

#[derive(Clone)]
struct Datagram {
    number: u32,
    ack: Vec<u8>,
    messages: Vec<(u32, Bytes)>,
    limit: Option<u32>,
    ack_eliciting: bool,
}

struct End {
    sent: Ledger,
    received: ReceivedDatagrams,
    sender: MessageSender,
    receiver: MessageReceiver,
    is_probe_due: bool,
    read: Vec<Bytes>,
}

impl End {
    fn new() -> Self {
        Self {
            sent: Ledger::new(),
            received: ReceivedDatagrams::new(),
            sender: MessageSender::default(),
            receiver: MessageReceiver::new(),
            is_probe_due: false,
            read: Vec::new(),
        }
    }

    fn items(&self, datagram: &transit::Datagram) -> Vec<Item> {
        (0..).map_while(|n| self.sent.item(datagram, n)).collect()
    }

    fn handle(&mut self, now: u64, datagram: &Datagram) {
        let number = self.received.expand(datagram.number);
        if self.received.check(number).is_err() {
            return;
        }
        self.received.on_verified(Instant::from_millis(now), number, datagram.ack_eliciting);
        if !datagram.ack.is_empty() {
            let ack =
                AckFrame::read(&mut crate::fields::Fields(&datagram.ack[1..]), false).unwrap();
            let mut walk = self.sent.begin_ack(&ack).unwrap();
            while let Some(acked) = self.sent.poll_acked(Instant::from_millis(now), &mut walk) {
                for item in self.items(&acked.datagram) {
                    if let (Item::Message(number), false) = (item, acked.was_lost) {
                        assert!(self.sender.on_acked(number));
                    }
                }
            }
            self.sent.end_ack(&walk);
        }
        for (number, data) in &datagram.messages {
            self.receiver.receive(*number, data).unwrap();
        }
        if let Some(limit) = datagram.limit {
            self.sender.on_limit(limit).unwrap();
        }
        self.read.extend(core::iter::from_fn(|| self.receiver.pop()));
        self.check_invariants();
    }

    fn handle_timeout(&mut self, now: u64) {
        while let Some(lost) = self.sent.poll_lost(Instant::from_millis(now)) {
            for item in self.items(&lost) {
                match item {
                    Item::Message(number) => self.sender.on_lost(number),
                    Item::MessageLimit(limit) => self.receiver.on_limit_lost(limit),
                    _ => unreachable!("only these are sent"),
                }
            }
        }
        while self.sent.poll_fate(|_| Fate::Lost).is_some() {}
        self.sent.trim(0);
        self.is_probe_due |= self.sent.on_pto(Instant::from_millis(now));
    }

    fn poll_transmit(&mut self, now: u64) -> Option<Datagram> {
        let limit = self.receiver.limit_due();
        let is_ack_due =
            self.received.ack_due().is_some_and(|due| due <= Instant::from_millis(now));
        let (mut room, mut messages) = (1000, Vec::new());
        while let Some((number, data)) = self.sender.poll(room) {
            room -= data.len() + MESSAGE_FRAME_BYTES;
            messages.push((number, data));
        }
        let ack_eliciting = limit.is_some() || !messages.is_empty() || self.is_probe_due;
        if !ack_eliciting && !is_ack_due {
            return None;
        }
        let mut ack = Vec::new();
        if let Some(frame) = self.received.ack_frame(Instant::from_millis(now)) {
            frame.write(&mut ack);
            self.received.on_ack_sent(Instant::from_millis(now), !ack_eliciting);
        }
        if let Some(limit) = limit {
            self.receiver.on_limit_sent(limit);
        }
        self.is_probe_due = false;
        let number = self.sent.next_number();
        self.sent.begin();
        messages.iter().for_each(|&(number, _)| self.sent.add(Item::Message(number)));
        limit.into_iter().for_each(|limit| self.sent.add(Item::MessageLimit(limit)));
        let outgoing = Outgoing {
            number,
            wire_bytes: 1228 - room,
            is_ack_eliciting: ack_eliciting,
            is_marked: false,
            slice: None,
            backlog: 0.0,
        };
        self.sent.on_sent(Instant::from_millis(now), outgoing);
        if number.is_multiple_of(97) {
            self.sent.skip();
        }
        Some(Datagram { number: number as u32, ack, messages, limit, ack_eliciting })
    }

    fn check_invariants(&self) {
        self.sent.check_invariants();
        self.received.check_invariants();
        self.sender.check_invariants();
        self.receiver.check_invariants();
    }
}

fn message(from: usize, number: usize) -> Bytes {
    let length = (number * 131 + from * 17) % 300;
    Bytes::from([&(number as u32).to_le_bytes()[..], &vec![from as u8; length]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Both ends talk at once over a link that loses, doubles and reorders. All of it arrives, once,
    /// in order, and both ends learn that it did.
    #[test]
    fn two_ends_over_a_bad_link(
        totals in [0..700usize, 0..700usize], loss in 0..100u8,
        draws in prop::collection::vec(any::<u8>(), 1..500),
    ) {
        let mut ends = [End::new(), End::new()];
        let mut under_way = BTreeMap::new();
        let (mut sent, mut carried) = ([0, 0], 0usize);
        for now in 0.. {
            prop_assert!(now < 600_000, "{} and {}", ends[0].read.len(), ends[1].read.len());
            while let Some(entry) = under_way.first_entry() {
                let &(arrival, _, to): &(u64, usize, usize) = entry.key();
                if arrival > now {
                    break;
                }
                ends[to].handle(now, &entry.remove());
            }
            for from in 0..2 {
                let end = &mut ends[from];
                end.handle_timeout(now);
                while sent[from] < totals[from]
                    && end.sender.send(message(from, sent[from])).is_ok()
                {
                    sent[from] += 1;
                }
                while let Some(datagram) = end.poll_transmit(now) {
                    for copy in 0..2 {
                        carried += 1;
                        let draw = draws[carried % draws.len()].wrapping_add(carried as u8);
                        // One in eight is doubled.
                        if draw >= loss && (copy == 0 || draw % 8 == 0) {
                            let arrival = now + 10 + u64::from(draw % 50);
                            under_way.insert((arrival, carried, 1 - from), datagram.clone());
                        }
                    }
                }
            }
            let is_done = |at: usize| ends[1 - at].read.len() == totals[at]
                && sent[at] == totals[at] && ends[at].sender.all_acked()
                && ends[at].sent.in_flight() == 0;
            if is_done(0) && is_done(1) {
                break;
            }
        }
        for from in 0..2 {
            let expected: Vec<_> = (0..totals[from]).map(|number| message(from, number)).collect();
            prop_assert_eq!(&ends[1 - from].read, &expected);
        }
    }
}
