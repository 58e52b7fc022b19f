//! The peer's address, what may be sent to it before it is validated, and the size of what may be sent after
//! (STANDARD-1, 3.5, 5.2 and 5.6).
//!
//! The invariant: an address that is not validated is sent at most three times the bytes, and three times
//! the datagrams, that were received from it and verified; one that is in the client's token, 80 times and
//! 384 KiB. It holds after every datagram, not on average.

use alloc::boxed::Box;
use core::time::Duration;

use super::mtu::{Mtu, Settled};
use crate::transit::Datagram;
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::{FourTuple, Instant};

/// How much more may be sent than was received: "three times" (RFC 9000, 8).
const AMPLIFICATION_FACTOR: u64 = 3;

/// The same for an address that is in the client's token. The matchmaker has exchanged data with someone
/// there, but whoever has the token can send a request in that address's name, so it is not proven. Of four
/// copies of a request this makes 384 KB. On 264 links a block of 256 KiB then takes 1.03 times the physical
/// limit at the median, as without a bound; with 48 it is 1.09, with 16 1.32, and 1.43 without a token.
const TOKEN_FACTOR: u64 = 80;

/// The most that this allows, in bytes: a chunk and half as much again for its repair, which is what a first
/// flight needs where a round trip is longer than the chunk.
const MAX_TOKEN_BYTES: u64 = 393_216;

/// The same in datagrams: of 1024 bytes, with room for smaller ones.
const MAX_TOKEN_DATAGRAMS: u64 = 384;

/// How often a path challenge is sent before the new address is forgotten.
const MAX_CHALLENGES: u8 = 5;

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

/// What was received from an address and sent to it, and so what may still be sent.
#[derive(Clone, Copy, Debug, Default)]
struct AmplificationLimit {
    received_bytes: u64,
    received: u64,
    sent_bytes: u64,
    sent: u64,
    /// The address is in the client's token.
    is_in_token: bool,
}

impl AmplificationLimit {
    /// A verified datagram arrived.
    fn on_received(&mut self, bytes: usize) {
        self.received_bytes = self.received_bytes.saturating_add(bytes as u64);
        self.received = self.received.saturating_add(1);
    }

    fn on_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
        self.sent = self.sent.saturating_add(1);
    }

    /// Bytes that the next datagram may have; 0 if none may be sent.
    fn room(&self) -> usize {
        if self.sent >= self.allowed(self.received, MAX_TOKEN_DATAGRAMS) {
            return 0;
        }
        let allowed = self.allowed(self.received_bytes, MAX_TOKEN_BYTES);
        usize::try_from(allowed.saturating_sub(self.sent_bytes)).unwrap_or(usize::MAX)
    }

    /// What may be sent for this much that was received.
    fn allowed(&self, received: u64, max_in_token: u64) -> u64 {
        let usual = received.saturating_mul(AMPLIFICATION_FACTOR);
        if !self.is_in_token {
            return usual;
        }
        usual.max(received.saturating_mul(TOKEN_FACTOR).min(max_in_token))
    }
}

/// A new address of the peer that is being validated.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    address: FourTuple,
    challenge: [u8; 8],
    limit: AmplificationLimit,
    next_at: Instant,
    remaining: u8,
}

/// The peer's address. In boxes is what exists only while an address is not validated.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    address: FourTuple,
    /// `None` once the address is validated.
    limit: Option<Box<AmplificationLimit>>,
    candidate: Option<Box<Candidate>>,
    mtu: Mtu,
}

impl Path {
    /// The path to an address of which this much is proven. Datagrams are never larger than
    /// `max_datagram_bytes`.
    pub(crate) fn new(address: FourTuple, proof: AddressProof, max_datagram_bytes: u16) -> Self {
        let limit = AmplificationLimit {
            is_in_token: proof == AddressProof::InToken,
            ..AmplificationLimit::default()
        };
        let limit = (proof != AddressProof::Validated).then(|| Box::new(limit));
        Self { address, limit, candidate: None, mtu: Mtu::new(max_datagram_bytes) }
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
    pub(crate) fn on_settled(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        is_lost: bool,
        probe_timeout: Duration,
    ) -> bool {
        let (number, sent_at) = (datagram.number, datagram.sent_at);
        if datagram.is_probe() {
            self.mtu.on_probe(now, number, is_lost, probe_timeout);
            return false;
        }
        let settled = Settled { number, bytes: datagram.payload_bytes(), sent_at, is_lost };
        self.mtu.on_settled(now, settled, probe_timeout)
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
        let fresh = Candidate {
            address: from,
            challenge,
            limit: AmplificationLimit::default(),
            next_at: now,
            remaining: MAX_CHALLENGES,
        };
        let candidate = self.candidate.get_or_insert_with(|| Box::new(fresh));
        if !candidate.address.has_remote_of(from) {
            **candidate = fresh;
        }
        candidate.address.local = from.local;
        candidate.limit.on_received(bytes);
    }

    /// A path response arrived from this address. Returns whether the peer's address has changed.
    pub(crate) fn on_response(&mut self, now: Instant, from: FourTuple, response: [u8; 8]) -> bool {
        let is_right = self.candidate.as_ref().is_some_and(|candidate| {
            candidate.address.has_remote_of(from) && candidate.challenge == response
        });
        if is_right {
            (self.address, self.limit, self.candidate) = (from, None, None);
            self.mtu.restart(now);
        }
        is_right
    }

    /// The path challenge to send now: its destination, its bytes, and the room for its datagram.
    pub(crate) fn poll_challenge(&mut self, now: Instant) -> Option<(FourTuple, [u8; 8], usize)> {
        let candidate = self.candidate.as_ref().filter(|candidate| candidate.next_at <= now)?;
        if candidate.remaining == 0 {
            self.candidate = None;
            return None;
        }
        let room = candidate.limit.room().min(MAX_DATAGRAM_BYTES);
        Some((candidate.address, candidate.challenge, room))
    }

    /// The challenge was sent, or did not fit; the next one is due after `interval`.
    pub(crate) fn on_challenge(
        &mut self,
        now: Instant,
        sent_bytes: Option<usize>,
        interval: Duration,
    ) {
        if let Some(candidate) = &mut self.candidate {
            candidate.remaining = candidate.remaining.saturating_sub(1);
            candidate.next_at = now + interval;
            if let Some(bytes) = sent_bytes {
                candidate.limit.on_sent(bytes);
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.candidate.as_ref().map(|candidate| candidate.next_at)
    }

    /// Panics if its parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        self.mtu.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent for this many copies of a request, datagram by datagram.
    fn sent(proof: AddressProof, copies: usize, datagram: usize) -> usize {
        let mut path = Path::new(FourTuple::new(([192, 0, 2, 1], 9).into()), proof, 1200);
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
}
