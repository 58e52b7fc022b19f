//! Passes the fate of each datagram to the parts that sent something in it.
//!
//! The [`Ledger`](crate::transit::Ledger) settles it, on an ack or after a timeout. The block sender
//! measures the path with it. The invariant: each item of a datagram is reported once, as acknowledged or
//! lost. One that is acknowledged after it was lost stays lost: a packet was reported, and a message is in
//! flight again.

use super::ecn::AckedMarks;
use super::message_pace::MessagePace;
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
        let (mut newest, mut oldest, mut marked) = (None, None::<u64>, 0);
        while let Some(acked) = self.sent.poll_acked(now, &mut self.path.timing, &mut walk) {
            if self.path.is_of(&acked.datagram) {
                let number = acked.datagram.number;
                oldest = Some(oldest.map_or(number, |oldest| oldest.min(number)));
            }
            marked += u64::from(acked.datagram.is_marked);
            if acked.datagram.is_ack_eliciting() {
                newest = newest.max(Some(acked.datagram.number));
            }
            if !acked.datagram.is_probe()
                && let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks)
            {
                sender.on_acked(path, now, &acked);
            }
            if acked.was_lost {
                self.pass_spurious(&acked.datagram);
            } else {
                self.note_fate(now, &acked.datagram, None);
                self.pass(now, &acked.datagram, ItemFate::Acked);
            }
        }
        self.counters.steps += walk.steps();
        if self.sent.end_ack(&mut self.path.timing, &walk)
            && let Some(rtt) = self.path.timing.rtt().smoothed_rtt()
        {
            self.blocks_out.set_rtt(&mut self.path.blocks, rtt);
            if let Some(it) = &mut self.blocks_in {
                it.blocks.set_rtt(rtt);
            }
        }
        let is_newest = self.sent.largest_acked() > before;
        let marks = AckedMarks { counts: ack.ecn(), acked: marked, is_newest };
        let rtt = self.path.timing.rtt().smoothed_rtt().unwrap_or_default();
        let is_congested = self.path.ecn.on_ack(now, rtt, marks);
        // A router of the path that was left says nothing of this one.
        let congested = oldest.filter(|_| is_congested);
        if let Some(oldest) = congested {
            let next = self.sent.next_number();
            self.path.messages.iter_mut().for_each(|pace| pace.on_congestion(oldest, next));
        }
        if let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks) {
            if let Some(oldest) = congested {
                sender.on_congestion_mark(path, oldest);
            }
            sender.end_ack(path, now, &self.sent, self.path.timing.reordering());
        }
        self.counters.congestion_marks += u64::from(congested.is_some());
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
        if let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks) {
            sender.begin_settling(path, &mut self.sent);
        }
        if has_news {
            self.pass_fates();
        }
        if let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks) {
            self.counters.steps += sender.end_settling(path, &mut self.sent);
        }
        if has_news {
            self.sent.trim(self.blocks_out.sender().map_or(0, |_| KEPT));
        }
    }

    fn pass_fates(&mut self) {
        loop {
            let state = self.path.blocks.state();
            let lost_as = |lost: &Datagram| state.map_or(Fate::Lost, |state| state.lost_as(lost));
            let settled = self.sent.poll_fate(&mut self.path.timing, lost_as);
            let Some(settled) = settled else { return };
            if !settled.is_probe()
                && let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks)
            {
                sender.on_settled(path, &settled);
            }
        }
    }

    /// Retransmits or reports what was in datagrams that are lost by now.
    pub(super) fn pass_losses(&mut self, now: Instant) {
        while let Some(lost) = self.sent.poll_lost(now, &mut self.path.timing) {
            self.note_fate(now, &lost, Some(self.sent.lost_because()));
            self.pass(now, &lost, ItemFate::Lost);
        }
    }

    /// Records a datagram that was sent on the connection's path.
    pub(super) fn record(&mut self, now: Instant, outgoing: Outgoing) {
        self.sent.on_sent(now, &mut self.path.timing, outgoing);
        if self.sent.is_full() {
            self.pass_losses(now);
            self.settle_fates();
        }
    }

    /// Passes the fate of a datagram to each of its items, and to what knows how large datagrams may be.
    fn pass(&mut self, now: Instant, datagram: &Datagram, fate: ItemFate) {
        let before = self.slice_room();
        let is_black_hole = self.path.on_settled(now, datagram, fate == ItemFate::Lost);
        let room = self.slice_room();
        if room != before && self.welcome_message.is_empty() {
            self.blocks_out.set_slice_room(&mut self.path.blocks, room);
        }
        if is_black_hole {
            self.blocks_out.on_black_hole();
            self.counters.black_holes += 1;
        }
        let mut n = 0;
        while let Some(item) = self.sent.item(datagram, n) {
            self.on_item(datagram, item, fate);
            n += 1;
        }
    }

    /// The pace of messages, if this datagram says something of it.
    fn pace_of(&mut self, datagram: &Datagram) -> Option<&mut MessagePace> {
        let is_here = self.path.is_of(datagram);
        self.path.messages.as_deref_mut().filter(|_| is_here)
    }

    /// A datagram that was lost has arrived. What was in it stays lost, but it was no sign of congestion.
    fn pass_spurious(&mut self, datagram: &Datagram) {
        let items = (0..).map_while(|n| self.sent.item(datagram, n));
        let parts = items.filter(|item| matches!(item, Item::Part(_))).count();
        if let Some(pace) = self.pace_of(datagram) {
            (0..parts).for_each(|_| pace.on_spurious(datagram.number));
        }
    }

    fn on_item(&mut self, datagram: &Datagram, item: Item, fate: ItemFate) {
        match (item, fate) {
            (Item::Packet(sequence), ItemFate::Acked) => {
                self.events.extend(self.packets_out.on_acked(sequence));
            }
            (Item::Packet(sequence), ItemFate::Lost) => {
                self.events.extend(self.packets_out.on_lost(sequence));
            }
            (Item::Part(part), ItemFate::Acked) => {
                if let Some(pace) = self.pace_of(datagram) {
                    pace.on_acked(part);
                }
                let events = self.messages_out.on_acked(part);
                self.events.extend(events.map(Event::from));
            }
            (Item::Part(part), ItemFate::Lost) => {
                let next = self.sent.next_number();
                if let Some(pace) = self.pace_of(datagram) {
                    pace.on_lost(part, datagram.number, next);
                }
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
