//! Passes the fate of each datagram to the parts that sent something in it.
//!
//! The [`Ledger`](crate::transit::Ledger) settles it, on an ack or after a timeout. The block sender
//! measures the path with it. The invariant: each item of a datagram is reported once, as acknowledged or
//! lost. One that is acknowledged after it was lost stays lost: a packet was reported, and a message is in
//! flight again.

use super::ecn::AckedMarks;
use super::{CloseCode, Connection, ConnectionTrigger, Event};
use crate::Instant;
use crate::transit::{AckFrame, Datagram, Fate, Item, KEPT, Outgoing};

/// The fate of an item: that of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemFate {
    Acked,
    Lost,
}

impl Connection {
    /// An ack arrived. The error is the peer's violation.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckFrame) -> Result<(), CloseCode> {
        let mut walk = self.sent.begin_ack(ack).map_err(|_| CloseCode::PROTOCOL)?;
        let before = self.sent.largest_acked();
        let (mut newest, mut oldest, mut marked) = (None, u64::MAX, 0);
        while let Some(acked) = self.sent.poll_acked(now, &mut walk) {
            oldest = oldest.min(acked.datagram.number);
            marked += u64::from(acked.datagram.is_marked);
            if acked.datagram.is_ack_eliciting() {
                newest = newest.max(Some(acked.datagram.number));
            }
            if let Some(sender) =
                self.blocks_out.sender_mut().filter(|_| !acked.datagram.is_probe())
            {
                sender.on_acked(now, &acked);
            }
            if !acked.was_lost {
                self.note_fate(now, &acked.datagram, None);
                self.pass(now, &acked.datagram, ItemFate::Acked);
            }
        }
        self.counters.steps += walk.steps();
        if self.sent.end_ack(&walk)
            && let Some(rtt) = self.sent.rtt().smoothed_rtt()
        {
            self.blocks_out.set_rtt(rtt);
            if let Some(it) = &mut self.blocks_in {
                it.blocks.set_rtt(rtt);
            }
        }
        let is_newest = self.sent.largest_acked() > before;
        let marks = AckedMarks { counts: ack.ecn(), acked: marked, is_newest };
        let rtt = self.sent.rtt().smoothed_rtt().unwrap_or_default();
        let is_congested = self.ecn.on_ack(now, rtt, marks);
        if is_congested {
            let next = self.sent.next_number();
            self.message_pace.iter_mut().for_each(|pace| pace.on_congestion(oldest, next));
        }
        if let Some(sender) = self.blocks_out.sender_mut() {
            if is_congested {
                sender.on_congestion_mark(oldest);
            }
            sender.end_ack(now, &self.sent);
        }
        self.counters.congestion_marks += u64::from(is_congested);
        if let Some(newest) = newest {
            self.protection.on_acked(newest);
            self.transition(ConnectionTrigger::Confirmed);
        }
        self.note_measures();
        Ok(())
    }

    /// Settles the fates of datagrams, by which the block sender measures the path and counts what is in
    /// flight. Called before it is asked what to send: several acks that arrived together are then judged
    /// together.
    pub(super) fn settle_fates(&mut self) {
        let has_news = self.sent.poll_news();
        if let Some(sender) = self.blocks_out.sender_mut() {
            sender.begin_settling(&mut self.sent);
        }
        if has_news {
            self.pass_fates();
        }
        if let Some(sender) = self.blocks_out.sender_mut() {
            self.counters.steps += sender.end_settling(&mut self.sent);
        }
        if has_news {
            self.sent.trim(self.blocks_out.sender().map_or(0, |_| KEPT));
        }
    }

    fn pass_fates(&mut self) {
        loop {
            let sender = self.blocks_out.sender();
            let lost_as =
                |lost: &Datagram| sender.map_or(Fate::Lost, |sender| sender.lost_as(lost));
            let Some(settled) = self.sent.poll_fate(lost_as) else { return };
            if let Some(sender) = self.blocks_out.sender_mut().filter(|_| !settled.is_probe()) {
                sender.on_settled(&settled);
            }
        }
    }

    /// Retransmits or reports what was in datagrams that are lost by now.
    pub(super) fn pass_losses(&mut self, now: Instant) {
        while let Some(lost) = self.sent.poll_lost(now) {
            self.note_fate(now, &lost, Some(self.sent.lost_because()));
            self.pass(now, &lost, ItemFate::Lost);
        }
    }

    /// Records a datagram that was sent on the connection's path.
    pub(super) fn record(&mut self, now: Instant, outgoing: Outgoing) {
        self.sent.on_sent(now, outgoing);
        if self.sent.is_full() {
            self.pass_losses(now);
            self.settle_fates();
        }
    }

    /// Passes the fate of a datagram to each of its items, and to what knows how large datagrams may be.
    fn pass(&mut self, now: Instant, datagram: &Datagram, fate: ItemFate) {
        let (is_lost, probe_timeout) = (fate == ItemFate::Lost, self.sent.probe_timeout());
        let before = self.slice_room();
        let is_black_hole = self.path.on_settled(now, datagram, is_lost, probe_timeout);
        if self.slice_room() != before && self.welcome_message.is_empty() {
            self.blocks_out.set_slice_room(self.slice_room());
        }
        if is_black_hole {
            self.blocks_out.on_black_hole();
            self.counters.black_holes += 1;
        }
        if is_lost && datagram.is_marked {
            self.ecn.on_lost(datagram.number);
        }
        let mut n = 0;
        while let Some(item) = self.sent.item(datagram, n) {
            self.on_item(datagram.number, item, fate);
            n += 1;
        }
    }

    fn on_item(&mut self, number: u64, item: Item, fate: ItemFate) {
        match (item, fate) {
            (Item::Packet(sequence), ItemFate::Acked) => {
                self.events.extend(self.packets_out.on_acked(sequence));
            }
            (Item::Packet(sequence), ItemFate::Lost) => {
                self.events.extend(self.packets_out.on_lost(sequence));
            }
            (Item::Part(part), ItemFate::Acked) => {
                self.message_pace.iter_mut().for_each(|pace| pace.on_acked(part));
                let events = self.messages_out.on_acked(part);
                self.events.extend(events.map(Event::from));
            }
            (Item::Part(part), ItemFate::Lost) => {
                let next = self.sent.next_number();
                self.message_pace.iter_mut().for_each(|pace| pace.on_lost(part, number, next));
                self.messages_out.on_lost(part);
            }
            (Item::Copy(part), ItemFate::Acked) => {
                let events = self.messages_out.on_copy_acked(part);
                self.events.extend(events.map(Event::from));
            }
            (Item::Copy(_), ItemFate::Lost) => {}
            (Item::ChannelLimit(limit), ItemFate::Lost) => {
                if let Some(it) = &mut self.messages_in {
                    it.on_limit_lost(limit);
                }
            }
            (Item::Progress(mark), fate) => {
                let blocks = self.blocks_in.as_mut().map(|it| &mut it.blocks);
                match (blocks, fate) {
                    (Some(blocks), ItemFate::Acked) => blocks.on_progress_heard(mark),
                    (Some(blocks), ItemFate::Lost) => blocks.on_progress_lost(mark),
                    (None, _) => {}
                }
            }
            (Item::Control(control), fate) => {
                let blocks = self.blocks_in.as_mut().map(|it| &mut it.blocks);
                match (blocks, fate) {
                    (Some(blocks), ItemFate::Acked) => blocks.on_control_acked(self.now, control),
                    (Some(blocks), ItemFate::Lost) => blocks.on_control_lost(control),
                    (None, _) => {}
                }
            }
            (Item::Page { block, place }, ItemFate::Lost) => {
                self.blocks_out.on_page_lost(block, place);
            }
            (Item::AckFrequency, ItemFate::Lost) => self.blocks_out.on_ack_frequency_lost(),
            (Item::Cancel(block), fate) => {
                self.blocks_out.on_cancel(block, fate == ItemFate::Acked);
            }
            (Item::ChannelLimit(_) | Item::Page { .. } | Item::AckFrequency, ItemFate::Acked) => {}
            (Item::ResetToken, ItemFate::Acked) => self.reset_token = None,
            (Item::ResetToken, ItemFate::Lost) => self.reset_token_due = true,
            (Item::Block(number), fate) => {
                self.blocks_out.on_announced(number, fate == ItemFate::Acked);
            }
        }
    }
}
