//! Passes the fate of each datagram to the parts that sent something in it.
//!
//! The [`Recovery`](super::recovery::Recovery) decides the fate, on an ack or after a timeout; this file
//! reports it to the parts. The invariant: an item goes to the part that put it into the datagram.

use super::ecn::AckedMarks;
use super::recovery::ItemFate;
use super::{CloseCode, Connection};
use crate::Instant;
use crate::transit::{AckFrame, Acked, Datagram, Item, Outgoing};

/// What a whole ack says, beside the fate of each datagram.
#[derive(Default)]
struct News {
    /// The newest datagram that asked for an ack.
    newest: Option<u64>,
    /// The oldest one of the present path.
    oldest: Option<u64>,
    /// Those that were marked as ECN-capable.
    marked: u64,
}

impl Connection {
    /// An ack arrived. The error is the peer's violation.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckFrame) -> Result<(), CloseCode> {
        let mut walk = self.recovery.begin_ack(ack).map_err(|_| CloseCode::PROTOCOL)?;
        let before = self.recovery.ledger().largest_acked();
        let mut news = News::default();
        while let Some(acked) = self.recovery.poll_acked(now, &mut self.path, &mut walk) {
            self.on_acked(now, &acked, &mut news);
        }
        self.counters.steps += walk.steps();
        if let Some(rtt) = self.recovery.end_ack(&mut self.path, &walk) {
            self.outbound.transfer_mut().set_rtt(&mut self.path.blocks, rtt);
            self.inbound.blocks_mut().into_iter().for_each(|blocks| blocks.set_rtt(rtt));
        }
        let is_newest = self.recovery.ledger().largest_acked() > before;
        let marks = AckedMarks { counts: ack.ecn(), acked: news.marked, is_newest };
        self.end_ack(now, &news, marks);
        Ok(())
    }

    fn on_acked(&mut self, now: Instant, acked: &Acked, news: &mut News) {
        let datagram = &acked.datagram;
        if self.path.is_of(datagram) {
            let oldest = news.oldest.unwrap_or(datagram.number);
            news.oldest = Some(oldest.min(datagram.number));
        }
        news.marked += u64::from(datagram.is_marked);
        if datagram.is_ack_eliciting() {
            news.newest = news.newest.max(Some(datagram.number));
        }
        if !datagram.is_probe()
            && let Some((sender, path)) =
                self.outbound.transfer_mut().sender_on(&mut self.path.blocks)
        {
            sender.on_acked(path, now, acked);
        }
        if acked.was_lost {
            self.pass_spurious(datagram);
        } else {
            self.note_fate(now, datagram, None);
            self.pass(now, datagram, ItemFate::Acked);
        }
    }

    /// All that an ack acknowledges has its fate.
    fn end_ack(&mut self, now: Instant, news: &News, marks: AckedMarks) {
        let next = self.recovery.next_number();
        let is_congested = self.path.on_marks(now, marks, news.oldest, next);
        // Marks by a router of the old path show nothing about this one.
        let congested = news.oldest.filter(|_| is_congested);
        let reordering = self.path.timing.reordering();
        if let Some((sender, path)) = self.outbound.transfer_mut().sender_on(&mut self.path.blocks)
        {
            if let Some(oldest) = congested {
                sender.on_congestion_mark(path, oldest);
            }
            sender.end_ack(path, now, self.recovery.ledger(), reordering);
        }
        self.counters.congestion_marks += u64::from(congested.is_some());
        if let Some(newest) = news.newest {
            self.agreement.on_acked(newest);
            self.life.on_confirmed();
        }
        self.note_measures();
    }

    /// Settles the fates of datagrams, before it is asked what to send.
    pub(super) fn settle_fates(&mut self) {
        self.recovery.settle(&mut self.path, self.outbound.transfer_mut());
    }

    /// Retransmits or reports what was in datagrams that are lost by now.
    pub(super) fn pass_losses(&mut self, now: Instant) {
        while let Some((lost, why)) = self.recovery.poll_lost(now, &mut self.path) {
            self.note_fate(now, &lost, Some(why));
            self.pass(now, &lost, ItemFate::Lost);
        }
    }

    /// Records a datagram that was sent on the connection's path.
    pub(super) fn record(&mut self, now: Instant, outgoing: Outgoing) {
        if self.recovery.record(now, &mut self.path, outgoing) {
            self.pass_losses(now);
            self.settle_fates();
        }
    }

    /// Passes the fate of a datagram to each of its items, and to what knows how large datagrams may be.
    fn pass(&mut self, now: Instant, datagram: &Datagram, fate: ItemFate) {
        let before = self.path.slice_room();
        let is_black_hole = self.path.on_settled(now, datagram, fate == ItemFate::Lost);
        let room = self.path.slice_room();
        if room != before && !self.agreement.is_responding() {
            self.outbound.transfer_mut().set_slice_room(&mut self.path.blocks, room);
        }
        if is_black_hole {
            self.outbound.transfer_mut().on_black_hole();
            self.counters.black_holes += 1;
        }
        let mut n = 0;
        while let Some(item) = self.recovery.item(datagram, n) {
            self.on_item(datagram, item, fate);
            n += 1;
        }
    }

    /// A datagram that was lost has arrived. What was in it stays lost, but it was no sign of congestion.
    fn pass_spurious(&mut self, datagram: &Datagram) {
        let items = (0..).map_while(|n| self.recovery.item(datagram, n));
        let parts = items.filter(|item| matches!(item, Item::Part(_))).count();
        self.path.on_parts_spurious(datagram, parts);
    }

    fn on_item(&mut self, datagram: &Datagram, item: Item, fate: ItemFate) {
        match item {
            Item::ResetToken => self.signals.on_token(fate),
            Item::ChannelLimit(_) | Item::Progress(_) | Item::Control(_) => {
                self.inbound.on_item(self.life.now(), item, fate);
            }
            Item::Part(part) => {
                self.path.on_part(datagram, part, fate, self.recovery.next_number());
                self.outbound.on_item(item, fate, &mut self.life);
            }
            Item::Packet(_)
            | Item::Copy(_)
            | Item::Page { .. }
            | Item::AckFrequency
            | Item::Cancel(_)
            | Item::Block(_) => self.outbound.on_item(item, fate, &mut self.life),
        }
    }
}
