//! What was sent, and what became of it: the numbers of datagrams, and the [`Ledger`] of their records.
//!
//! The records outlive a path, so each call that changes one names the path ([`Path`]). All may read them.
//! The invariants: numbers are used in order, each once, and one in 256 is left out, so that a peer that
//! acknowledges it is exposed [H-2.2c]. Each item of a datagram is handed back once, as acknowledged or lost:
//! one that is acknowledged after it was lost stays lost, for a packet was reported, and a message is in
//! flight again.

use core::time::Duration;

use super::path::Path;
use crate::Instant;
use crate::crypto::Entropy;
use crate::outgoing::Transfer;
use crate::transit::{
    AckFrame, AckWalk, Acked, Datagram, Item, KEPT, Ledger, LossReason, NeverSent, Outgoing,
};

/// What the records of ordinary traffic take, some hundreds of datagrams: they belong to a connection.
const ORDINARY_RECORDS_BYTES: usize = 32 << 10;

/// Probe timeouts after which an ack is overdue: the second one of [H-5.6b].
const OVERDUE_PTOS: u32 = 2;

/// The fate of an item: that of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemFate {
    Acked,
    Lost,
}

/// What was sent, and what became of it.
#[derive(Debug)]
pub(super) struct Recovery {
    ledger: Ledger,
    /// The next number to leave out.
    next_skip: u64,
}

impl Recovery {
    /// Nothing was sent. The first number to leave out is one of the first 256, but not number 0.
    pub(super) fn new(entropy: &mut Entropy) -> Self {
        Self { ledger: Ledger::new(), next_skip: 1 + entropy.next_u64() % 255 }
    }

    /// The records, to be read.
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The number of the next datagram, unless that is left out.
    pub(super) const fn next_number(&self) -> u64 {
        self.ledger.next_number()
    }

    /// Ack-eliciting datagrams that are neither acknowledged nor lost.
    pub(super) const fn in_flight(&self) -> u32 {
        self.ledger.in_flight()
    }

    /// Begins a datagram, and returns its number.
    pub(super) fn begin(&mut self, entropy: &mut Entropy) -> u64 {
        self.ledger.begin();
        // Twice, if the last of 256 is followed by the first of the next.
        while self.ledger.next_number() == self.next_skip {
            self.ledger.skip();
            self.next_skip = (self.next_skip / 256 + 1) * 256 + entropy.next_u64() % 256;
        }
        self.ledger.next_number()
    }

    /// This goes into the datagram that was begun.
    pub(super) fn add(&mut self, item: Item) {
        self.ledger.add(item);
    }

    /// The datagram was sent on this path. Returns whether there is no room for another record: then lost
    /// items have to be handed back, and fates settled.
    pub(super) fn record(&mut self, now: Instant, path: &mut Path, outgoing: Outgoing) -> bool {
        self.ledger.on_sent(now, &mut path.timing, outgoing);
        self.ledger.is_full()
    }

    /// The datagram was sent, and nothing depends on its fate: it went another way, or is the last one.
    pub(super) fn on_unrecorded(&mut self, number: u64) {
        self.ledger.on_unrecorded(number);
    }

    /// Begins to walk an ack. Call [`poll_acked`](Self::poll_acked) until `None` next, and then
    /// [`end_ack`](Self::end_ack).
    ///
    /// # Errors
    /// [`NeverSent`].
    pub(super) fn begin_ack<'a>(&self, ack: &'a AckFrame) -> Result<AckWalk<'a>, NeverSent> {
        self.ledger.begin_ack(ack)
    }

    /// The next datagram that the ack acknowledges for the first time.
    pub(super) fn poll_acked(
        &mut self,
        now: Instant,
        path: &mut Path,
        walk: &mut AckWalk<'_>,
    ) -> Option<Acked> {
        self.ledger.poll_acked(now, &mut path.timing, walk)
    }

    /// The ack is walked. Returns the smoothed round trip, if it has shown one.
    pub(super) fn end_ack(&mut self, path: &mut Path, walk: &AckWalk<'_>) -> Option<Duration> {
        let has_sample = self.ledger.end_ack(&mut path.timing, walk);
        path.timing.rtt().smoothed_rtt().filter(|_| has_sample)
    }

    /// Settles the fates of datagrams, by which the sender of blocks measures the path and counts what is in
    /// flight. Called before it is asked what to send: several acks that arrived together are then judged
    /// together.
    pub(super) fn settle(&mut self, path: &mut Path, transfer: &mut Transfer) {
        if !self.ledger.poll_news() {
            return;
        }
        while let Some(settled) = self.ledger.poll_fate(&mut path.timing) {
            if !settled.is_probe()
                && let Some((sender, state)) = transfer.sender_on(&mut path.blocks)
            {
                sender.on_settled(state, &settled);
            }
        }
        if let Some((sender, state)) = transfer.sender_on(&mut path.blocks) {
            sender.note_in_flight(state, &self.ledger);
        }
        self.ledger.trim(transfer.sender().map_or(0, |_| KEPT));
    }

    /// The next datagram whose contents are lost by now, and why.
    pub(super) fn poll_lost(
        &mut self,
        now: Instant,
        path: &mut Path,
    ) -> Option<(Datagram, LossReason)> {
        let lost = self.ledger.poll_lost(now, &mut path.timing)?;
        Some((lost, self.ledger.lost_because()))
    }

    /// What was in a datagram, the `n`th of it.
    pub(super) fn item(&self, datagram: &Datagram, n: u16) -> Option<Item> {
        self.ledger.item(datagram, n)
    }

    /// The timeouts of the sender of blocks, which may give up the datagrams in flight.
    pub(super) fn on_timeout_of_blocks(
        &mut self,
        now: Instant,
        path: &mut Path,
        transfer: &mut Transfer,
    ) {
        if let Some((sender, state)) = transfer.sender_on(&mut path.blocks) {
            sender.handle_timeout(state, now, &mut self.ledger);
        }
    }

    /// Whether a probe is due, where one may be sent. It counts as sent.
    #[must_use]
    pub(super) fn poll_probe(&self, now: Instant, path: &mut Path) -> bool {
        path.room() > 0 && self.ledger.on_pto(now, &mut path.timing)
    }

    /// When something is lost, or a probe is due.
    pub(super) fn poll_timeout(&self, path: &Path) -> Option<Instant> {
        self.ledger.poll_timeout(&path.timing)
    }

    /// Whether an ack is so long overdue that only datagrams of a size are sent that every path carries. The
    /// peer reads datagrams up to `lateness` after they arrive.
    pub(super) fn is_ack_overdue(&self, now: Instant, path: &Path, lateness: Duration) -> bool {
        let overdue = path.timing.probe_timeout().saturating_mul(OVERDUE_PTOS);
        let overdue = overdue.saturating_add(lateness);
        let waits = self.ledger.oldest_sent_at().map(|sent_at| now.since(sent_at));
        waits > Some(overdue)
    }

    /// The connection closes: nothing that was sent matters any more.
    pub(super) fn forget(&mut self) {
        self.ledger.forget();
    }

    /// Nothing was heard for a while: gives back what is kept for the next datagrams.
    pub(super) fn rest(&mut self) {
        self.ledger.rest();
    }

    /// Memory of records beyond those of ordinary traffic, in bytes: of a peer that acknowledges nothing.
    pub(super) fn memory_bytes(&self) -> usize {
        self.ledger.memory_bytes().saturating_sub(ORDINARY_RECORDS_BYTES)
    }

    /// Panics if the records contradict each other.
    pub(super) fn check_invariants(&self) {
        assert!(self.next_number() <= self.next_skip, "no number is left out any more");
        self.ledger.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Of two neighbours, the last of 256 numbers and the first of the next 256, both may be drawn: once in
    /// 17 million datagrams, 20 GB. The second of them was used, and after it every number.
    #[test]
    fn one_number_in_each_256_is_left_out() {
        let with = |seed: u16| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&seed.to_le_bytes());
            Entropy::new(bytes)
        };
        let seed = (0..).find(|&seed| with(seed).next_u64() % 256 == 0).unwrap();
        let mut entropy = with(seed);
        let mut recovery = Recovery { ledger: Ledger::new(), next_skip: 255 };
        let numbers: Vec<u64> = core::iter::repeat_with(|| {
            let number = recovery.begin(&mut entropy);
            recovery.on_unrecorded(number);
            recovery.check_invariants();
            number
        })
        .take(2_000)
        .collect();
        for block in 0..7 {
            let used = numbers.iter().filter(|&&number| number / 256 == block).count();
            assert_eq!(used, 255, "of the {block}th 256");
        }
    }
}
