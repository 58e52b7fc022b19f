//! What became of a datagram, and who needs to know.
//!
//! The [`Ledger`](crate::transit::Ledger) says it once, for an ack or after a timeout. Here it reaches the
//! block sender, which measures the path by it, and those who put something into the datagram. The invariant:
//! each item comes back once, acknowledged or lost. One that is acknowledged after it was lost stays lost: a
//! packet was reported, and a message is in flight again.

use super::{CloseCode, Connection, ConnectionTrigger};
use crate::Instant;
use crate::transit::{AckFrame, Datagram, Fate, Item, KEPT, Outgoing};

/// The news of an item: that of the datagram that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Acked,
    Lost,
}

impl Connection {
    /// An ack arrived. The error is the peer's violation.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckFrame) -> Result<(), CloseCode> {
        let mut walk = self.sent.begin_ack(ack).map_err(|_| CloseCode::PROTOCOL)?;
        let mut newest = None;
        while let Some(acked) = self.sent.poll_acked(now, &mut walk) {
            if acked.datagram.is_ack_eliciting() {
                newest = newest.max(Some(acked.datagram.number));
            }
            if let Some(sender) = self.blocks_out.sender_mut() {
                sender.on_acked(now, &acked);
            }
            if !acked.was_lost {
                self.pass(&acked.datagram, News::Acked);
            }
        }
        if self.sent.end_ack(&walk)
            && let Some(rtt) = self.sent.rtt().smoothed_rtt()
        {
            self.blocks_out.set_rtt(rtt);
        }
        if let Some(sender) = self.blocks_out.sender_mut() {
            sender.end_ack(now, &self.sent);
        }
        if let Some(newest) = newest {
            self.protection.on_acked(newest);
            self.transition(ConnectionTrigger::Confirmed);
        }
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
            sender.end_settling(&self.sent);
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
            if let Some(sender) = self.blocks_out.sender_mut() {
                sender.on_settled(&settled);
            }
        }
    }

    /// Retransmits or reports what was in datagrams that are lost by now.
    pub(super) fn pass_losses(&mut self, now: Instant) {
        while let Some(lost) = self.sent.poll_lost(now) {
            self.pass(&lost, News::Lost);
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

    /// Tells those who put something into a datagram.
    fn pass(&mut self, datagram: &Datagram, news: News) {
        let mut n = 0;
        while let Some(item) = self.sent.item(datagram, n) {
            self.on_item(item, news);
            n += 1;
        }
    }

    fn on_item(&mut self, item: Item, news: News) {
        match (item, news) {
            (Item::ChunkDone(chunk_id), News::Acked) => {
                self.blocks_in.receiver.on_done_heard(chunk_id);
            }
            // Lost, it is repeated by the time alone.
            (Item::ChunkDone(_), News::Lost) | (Item::MessageLimit(_), News::Acked) => {}
            (Item::Packet(sequence), News::Acked) => {
                self.events.extend(self.packets_out.on_acked(sequence));
            }
            (Item::Packet(sequence), News::Lost) => {
                self.events.extend(self.packets_out.on_lost(sequence));
            }
            (Item::Message(number), News::Acked) => {
                self.messages_out.on_acked(number);
            }
            (Item::Message(number), News::Lost) => self.messages_out.on_lost(number),
            (Item::MessageLimit(limit), News::Lost) => self.messages_in.on_limit_lost(limit),
            (Item::Block(number), news) => {
                self.blocks_out.on_announced(number, news == News::Acked);
            }
        }
    }
}
