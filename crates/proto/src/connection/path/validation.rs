//! What may be sent to an address before it is validated, and how it is (STANDARD-1, 3.5 and 5.2).

use core::time::Duration;

use crate::wire::MAX_DATAGRAM_BYTES;
use crate::{FourTuple, Instant};

/// How much more may be sent than was received: "three times" (RFC 9000, 8).
const AMPLIFICATION_FACTOR: u64 = 3;

/// The factor for an address that is in the client's token. The matchmaker has exchanged data with a client
/// there, but an attacker that has the token can send a request in that address's name, so the address is not
/// proven. Four copies of a request allow 384 KB with it. On 264 links a block of 256 KiB then takes 1.03
/// times the physical limit at the median, as without a bound; with 48 it is 1.09, with 16 1.32, and 1.43
/// without a token.
const TOKEN_FACTOR: u64 = 80;

/// The maximum that a token allows, in bytes: a chunk and half as much again for its repair. A first flight
/// needs that where a round trip is longer than it takes to send the chunk.
const MAX_TOKEN_BYTES: u64 = 393_216;

/// The maximum that a token allows, in datagrams: of 1024 bytes, with room for smaller ones.
const MAX_TOKEN_DATAGRAMS: u64 = 384;

/// How often a path challenge is sent before the new address is forgotten.
const MAX_CHALLENGES: u8 = 5;

/// What was received from an address and sent to it, and so what may still be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AmplificationLimit {
    received_bytes: u64,
    received: u64,
    sent_bytes: u64,
    sent: u64,
    /// The address is in the client's token.
    is_in_token: bool,
}

impl AmplificationLimit {
    /// The limit of an address that is in the client's token, or not.
    pub(super) fn new(is_in_token: bool) -> Self {
        Self { is_in_token, ..Self::default() }
    }

    /// A verified datagram arrived.
    pub(super) fn on_received(&mut self, bytes: usize) {
        self.received_bytes = self.received_bytes.saturating_add(bytes as u64);
        self.received = self.received.saturating_add(1);
    }

    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
        self.sent = self.sent.saturating_add(1);
    }

    /// Bytes that the next datagram may have; 0 if none may be sent.
    pub(super) fn room(&self) -> usize {
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
pub(super) struct Candidate {
    address: FourTuple,
    challenge: [u8; 8],
    limit: AmplificationLimit,
    /// When the first challenge was sent.
    challenged_at: Option<Instant>,
    next_at: Instant,
    remaining: u8,
}

impl Candidate {
    /// A verified datagram arrived from this address. `challenge` is random.
    pub(super) fn new(now: Instant, address: FourTuple, challenge: [u8; 8]) -> Self {
        Self {
            address,
            challenge,
            limit: AmplificationLimit::default(),
            challenged_at: None,
            next_at: now,
            remaining: MAX_CHALLENGES,
        }
    }

    pub(super) const fn address(&self) -> FourTuple {
        self.address
    }

    /// When the next challenge is due.
    pub(super) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// A verified datagram arrived from it.
    pub(super) fn on_received(&mut self, from: FourTuple, bytes: usize) {
        self.address.local = from.local;
        self.limit.on_received(bytes);
    }

    /// Whether this is the answer: from this address, and the bytes of the challenge.
    pub(super) fn is_answered_by(&self, from: FourTuple, response: [u8; 8]) -> bool {
        self.address.has_remote_of(from) && self.challenge == response
    }

    /// How long the answer took that arrives now: since the first challenge, if it was repeated, so it is no
    /// shorter than the round trip.
    pub(super) fn answered_after(&self, now: Instant) -> Option<Duration> {
        self.challenged_at.map(|at| now.since(at))
    }

    /// The challenge that is due, and the room for its datagram; `None` if it was sent often enough.
    pub(super) fn challenge(&self) -> Option<([u8; 8], usize)> {
        (self.remaining > 0).then(|| (self.challenge, self.limit.room().min(MAX_DATAGRAM_BYTES)))
    }

    /// The challenge was sent, or did not fit; the next one is due after `interval`.
    pub(super) fn on_challenge(
        &mut self,
        now: Instant,
        sent_bytes: Option<usize>,
        interval: Duration,
    ) {
        self.remaining = self.remaining.saturating_sub(1);
        self.next_at = now + interval;
        if let Some(bytes) = sent_bytes {
            self.challenged_at.get_or_insert(now);
            self.limit.on_sent(bytes);
        }
    }
}
