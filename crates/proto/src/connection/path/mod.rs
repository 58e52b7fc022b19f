//! The path to the peer: its address, what may be sent there, and all that was measured of it (STANDARD-1,
//! 3.5, 5.2 and 5.6; docs/decisions/0019-path.md).
//!
//! A change of address makes a new path, and the old one is dropped with everything measured on it. Records
//! of the ledger name their path. The invariants: only datagrams of a path change what is known of it. And
//! an address that is not validated is sent at most three times the bytes, and three times the datagrams,
//! that were received from it and verified; one that is in the client's token, 80 times and at most 384 KiB.
//! That holds after every datagram, not on average.

mod validation;

use alloc::boxed::Box;
use core::time::Duration;

use haulier_control::PathId;

use super::ecn::{AckedMarks, EcnMarking};
use super::message_pace::{KnownPath, MessagePace};
use super::mtu::{Mtu, Settled};
use super::recovery::ItemFate;
use crate::crypto::TAG_BYTES;
use crate::outgoing::BlocksPath;

use crate::transit::{Datagram, SentPart, Timing};
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::wire::header::DATA_HEADER_BYTES;
use crate::{FourTuple, Instant};
use validation::{AmplificationLimit, Candidate};

/// What is known of the address a handshake begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressProof {
    /// Nothing: anyone could have sent the request in its name.
    None,
    /// It is in the client's token: its limit is larger.
    InToken,
    /// The peer has received something there.
    Validated,
}

/// A path, and all that belongs to it. In boxes is what exists only while an address is not validated, or
/// while something is sent.
#[derive(Debug)]
pub(crate) struct Path {
    address: FourTuple,
    /// `None` once the address is validated.
    limit: Option<Box<AmplificationLimit>>,
    /// The address that may take its place.
    candidate: Option<Box<Candidate>>,
    mtu: Mtu,
    pub(super) timing: Timing,
    pub(super) ecn: EcnMarking,
    /// Made for the first message.
    messages: Option<Box<MessagePace>>,
    pub(super) blocks: BlocksPath,
}

/// An address that was validated, and how long its answer took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validated {
    pub(crate) address: FourTuple,
    after: Option<Duration>,
}

impl Path {
    /// The path to an address of which this much is proven. Datagrams are never larger than
    /// `max_datagram_bytes`, and are marked if that is wanted.
    pub(crate) fn new(
        address: FourTuple,
        proof: AddressProof,
        max_datagram_bytes: u16,
        is_marked: bool,
    ) -> Self {
        let limit = AmplificationLimit::new(proof == AddressProof::InToken);
        let limit = (proof != AddressProof::Validated).then(|| Box::new(limit));
        let id = PathId::FIRST;
        Self {
            address,
            limit,
            candidate: None,
            mtu: Mtu::new(max_datagram_bytes, Instant::ZERO),
            timing: Timing::new(id),
            ecn: EcnMarking::new(is_marked),
            messages: None,
            blocks: BlocksPath::new(id, None),
        }
    }

    /// The path that takes its place, to an address that was validated. Of this one it has the largest
    /// datagram that both ends allow, and the marks that the peer counts together; nothing was measured of it
    /// but how long the answer took.
    pub(crate) fn followed_by(&self, now: Instant, new: Validated, is_marked: bool) -> Self {
        let id = self.timing.path().next();
        let timing = match new.after {
            Some(after) => Timing::validated(id, now, after),
            None => Timing::new(id),
        };
        Self {
            address: new.address,
            limit: None,
            candidate: None,
            mtu: Mtu::new(self.mtu.max(), now),
            ecn: self.ecn.on_new_path(is_marked),
            messages: None,
            blocks: BlocksPath::new(id, new.after.map(|_| timing.initial_rtt())),
            timing,
        }
    }

    /// Whether a datagram was sent on this path: the fates of others show nothing about it.
    pub(super) fn is_of(&self, datagram: &Datagram) -> bool {
        datagram.path == self.timing.path()
    }

    pub(crate) const fn address(&self) -> FourTuple {
        self.address
    }

    /// Bytes that the next datagram may have.
    pub(crate) fn room(&self) -> usize {
        let limited = self.limit.as_ref().map(|limit| limit.room().min(MAX_DATAGRAM_BYTES));
        limited.unwrap_or_else(|| self.max_datagram_bytes().into())
    }

    /// Bytes that a full datagram has.
    pub(crate) const fn max_datagram_bytes(&self) -> u16 {
        self.mtu.usable()
    }

    /// Bytes of frames in a full datagram: what a slice with its header may fill.
    pub(crate) const fn slice_room(&self) -> usize {
        self.max_datagram_bytes() as usize - DATA_HEADER_BYTES - TAG_BYTES
    }

    /// When a probe for larger datagrams is due: never to an address that is not validated.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        self.mtu.probe_at().filter(|_| self.limit.is_none())
    }

    /// The size of the probe that is due.
    pub(crate) fn poll_probe(&self, now: Instant) -> Option<u16> {
        self.mtu.poll_probe(now).filter(|_| self.limit.is_none())
    }

    /// That probe was sent, with this number.
    pub(crate) const fn on_probe_sent(&mut self, number: u64) {
        self.mtu.on_probe_sent(number);
    }

    /// The fate of a datagram, a probe or not. Returns whether it shows a black hole: datagrams have 1200
    /// bytes again.
    pub(crate) fn on_settled(&mut self, now: Instant, datagram: &Datagram, is_lost: bool) -> bool {
        if !self.is_of(datagram) {
            return false;
        }
        if is_lost && datagram.is_marked {
            self.ecn.on_lost();
        }
        let probe_timeout = self.timing.probe_timeout();
        let (number, sent_at) = (datagram.number, datagram.sent_at);
        if datagram.is_probe() {
            self.mtu.on_probe(now, number, is_lost, probe_timeout);
            return false;
        }
        let settled = Settled { number, bytes: datagram.payload_bytes(), sent_at, is_lost };
        self.mtu.on_settled(now, settled, probe_timeout)
    }

    /// When a message may go, within the window and the pace of messages; `None` if not before an ack or a
    /// loss.
    pub(super) fn message_at(&self) -> Option<Instant> {
        match &self.messages {
            Some(pace) => pace.opens_at(self.known_of_messages()),
            None => Some(Instant::ZERO),
        }
    }

    /// A part of a message was sent.
    pub(super) fn on_part_sent(&mut self, now: Instant, part: SentPart) {
        let known = self.known_of_messages();
        self.messages.get_or_insert_with(Box::default).on_sent(now, part, known);
    }

    /// The fate of a part that was sent in this datagram. The next one has number `next`.
    pub(super) fn on_part(
        &mut self,
        datagram: &Datagram,
        part: SentPart,
        fate: ItemFate,
        next: u64,
    ) {
        let Some(pace) = self.pace_of(datagram) else { return };
        match fate {
            ItemFate::Acked => pace.on_acked(part),
            ItemFate::Lost => pace.on_lost(part, datagram.number, next),
        }
    }

    /// A datagram that counted as lost has arrived, with this number of parts of messages.
    pub(super) fn on_parts_spurious(&mut self, datagram: &Datagram, parts: usize) {
        if let Some(pace) = self.pace_of(datagram) {
            (0..parts).for_each(|_| pace.on_spurious(datagram.number));
        }
    }

    /// The pace of messages, if this datagram says something of it.
    fn pace_of(&mut self, datagram: &Datagram) -> Option<&mut MessagePace> {
        let is_here = self.is_of(datagram);
        self.messages.as_deref_mut().filter(|_| is_here)
    }

    fn known_of_messages(&self) -> KnownPath {
        let rtt = self.timing.rtt().smoothed_rtt();
        KnownPath { rtt, rate_bps: self.blocks.proven_rate_bps() }
    }

    /// The marks of an ECN ack. If they show congestion, the pace of messages is reduced: no datagram before
    /// number `oldest` met the congestion, and the next one is `next`. Returns whether they show congestion.
    pub(super) fn on_marks(
        &mut self,
        now: Instant,
        marks: AckedMarks,
        oldest: Option<u64>,
        next: u64,
    ) -> bool {
        let rtt = self.timing.rtt().smoothed_rtt().unwrap_or_default();
        let is_congested = self.ecn.on_ack(now, rtt, marks);
        if let Some(oldest) = oldest.filter(|_| is_congested) {
            self.messages.iter_mut().for_each(|pace| pace.on_congestion(oldest, next));
        }
        is_congested
    }

    /// Bytes that may still be sent to an address that is not validated; `None` if it is.
    pub(crate) fn limited_room(&self) -> Option<usize> {
        self.limit.as_ref().map(|limit| limit.room())
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        if let Some(limit) = &mut self.limit {
            limit.on_sent(bytes);
        }
    }

    /// A verified request arrived from the address.
    pub(crate) fn on_request(&mut self, bytes: usize) {
        if let Some(limit) = &mut self.limit {
            limit.on_received(bytes);
        }
    }

    /// The peer has received something at this address.
    pub(crate) fn validate(&mut self) {
        self.limit = None;
    }

    /// The peer's newest datagram so far, verified, arrived from this address. `challenge` is random.
    pub(crate) fn on_newest_from(
        &mut self,
        now: Instant,
        from: FourTuple,
        bytes: usize,
        challenge: [u8; 8],
    ) {
        if self.address.has_remote_of(from) {
            // The peer may send to another of our addresses; answers leave from the one it used last.
            self.address.local = from.local;
            // It is still here, or here again; an attacker who replayed a datagram from elsewhere is
            // forgotten.
            self.candidate = None;
            return;
        }
        let fresh = Candidate::new(now, from, challenge);
        let candidate = self.candidate.get_or_insert_with(|| Box::new(fresh));
        if !candidate.address().has_remote_of(from) {
            **candidate = fresh;
        }
        candidate.on_received(from, bytes);
    }

    /// A path response arrived from this address. Returns it if the peer's address has changed to it, as
    /// which [`followed_by`](Self::followed_by) is to be called.
    pub(crate) fn on_response(
        &self,
        now: Instant,
        from: FourTuple,
        response: [u8; 8],
    ) -> Option<Validated> {
        let candidate =
            self.candidate.as_ref().filter(|candidate| candidate.is_answered_by(from, response))?;
        Some(Validated { address: from, after: candidate.answered_after(now) })
    }

    /// The path challenge to send now: its destination, its bytes, and the room for its datagram.
    pub(crate) fn poll_challenge(&mut self, now: Instant) -> Option<(FourTuple, [u8; 8], usize)> {
        let candidate = self.candidate.as_ref().filter(|candidate| candidate.next_at() <= now)?;
        let Some((bytes, room)) = candidate.challenge() else {
            self.candidate = None;
            return None;
        };
        Some((candidate.address(), bytes, room))
    }

    /// The challenge was sent, or did not fit; the next one is due after `interval`.
    pub(crate) fn on_challenge(
        &mut self,
        now: Instant,
        sent_bytes: Option<usize>,
        interval: Duration,
    ) {
        if let Some(candidate) = &mut self.candidate {
            candidate.on_challenge(now, sent_bytes, interval);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.candidate.as_ref().map(|candidate| candidate.next_at())
    }

    /// Panics if its parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        self.mtu.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes sent in answer to this number of copies of a request, in datagrams of `datagram` bytes.
    fn sent(proof: AddressProof, copies: usize, datagram: usize) -> usize {
        let mut path = Path::new(FourTuple::new(([192, 0, 2, 1], 9).into()), proof, 1200, false);
        (0..copies).for_each(|_| path.on_request(1200));
        let mut sent = 0;
        while path.room() >= datagram && sent < 1_000_000 {
            path.on_sent(datagram);
            sent += datagram;
        }
        sent
    }

    #[test]
    fn an_address_in_a_token_gets_more_and_no_more_than_that() {
        let of = |copies, datagram| {
            [AddressProof::None, AddressProof::InToken].map(|proof| sent(proof, copies, datagram))
        };
        assert_eq!(of(1, 1200), [3 * 1200, 80 * 1200]);
        assert_eq!(of(4, 1200), [12 * 1200, 320 * 1200]);
        assert_eq!(of(10, 1200), [30 * 1200, 327 * 1200]);
        assert_eq!(of(10, 100), [30 * 100, 384 * 100], "datagrams are limited too");
        assert_eq!(of(200, 1200), [600 * 1200, 600 * 1200], "three times in any case");
        assert!(sent(AddressProof::Validated, 0, 1200) > 999_999);
    }

    /// A change of address takes along what the ends agreed on, and nothing that was measured.
    #[test]
    fn a_path_that_follows_another_knows_nothing_of_it() {
        let (here, there) = ([192, 0, 2, 1], [192, 0, 2, 7]);
        let address = |ip: [u8; 4]| FourTuple::new((ip, 9).into());
        let ms = Instant::from_millis;
        let mut old = Path::new(address(here), AddressProof::Validated, 1472, true);
        old.on_probe_sent(1);
        old.mtu.on_probe(ms(5), 1, false, Duration::from_millis(100));
        (0..10).for_each(|_| old.ecn.on_sent());
        (0..10).for_each(|_| old.ecn.on_lost());
        old.messages = Some(Box::default());
        assert!(old.max_datagram_bytes() == 1472 && !old.ecn.is_due());

        old.on_newest_from(ms(1_000), address(there), 1_200, [7; 8]);
        let (to, challenge, room) = old.poll_challenge(ms(1_000)).unwrap();
        assert_eq!((to, challenge, room), (address(there), [7; 8], 1_200));
        old.on_challenge(ms(1_000), Some(100), Duration::from_millis(300));
        for (from, bytes) in [(here, [7; 8]), (there, [8; 8])] {
            assert!(old.on_response(ms(1_040), address(from), bytes).is_none());
        }
        let new = old.on_response(ms(1_040), address(there), [7; 8]).unwrap();
        let path = old.followed_by(ms(1_040), new, true);
        assert_eq!((path.address(), path.limited_room()), (address(there), None));
        assert_eq!((path.max_datagram_bytes(), path.probe_at()), (1_200, Some(ms(1_040))));
        assert!(path.ecn.is_due() && path.ecn.sent() == 10, "the peer goes on to count");
        assert!(path.messages.is_none() && path.timing.rtt().latest_rtt().is_none());
        assert_eq!(path.timing.probe_timeout(), Duration::from_millis(40 + 4 * 20 + 20));
        assert!(path.poll_timeout().is_none() && path.timing.path() == old.timing.path().next());
    }
}
