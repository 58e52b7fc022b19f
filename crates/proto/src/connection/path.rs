//! Where the peer is, and what may be sent there before that is proven (STANDARD-1, 3.4 and 5.2).
//!
//! The invariant: to an address that is not proven, no more than three times the bytes and three times the
//! datagrams that came verified from it. It holds after every datagram, not on average.

use core::time::Duration;

use crate::wire::MAX_DATAGRAM_BYTES;
use crate::{FourTuple, Instant};

/// RFC 9000, 8: "no more than three times".
const FACTOR: u64 = 3;

/// How often a challenge is sent before the new address is forgotten.
const CHALLENGES: u8 = 5;

/// What was received from an address, and sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    received_bytes: u64,
    received: u64,
    sent_bytes: u64,
    sent: u64,
}

impl Credit {
    /// A verified datagram came.
    pub fn on_received(&mut self, bytes: usize) {
        self.received_bytes = self.received_bytes.saturating_add(bytes as u64);
        self.received = self.received.saturating_add(1);
    }

    /// A datagram goes out.
    pub fn on_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
        self.sent = self.sent.saturating_add(1);
    }

    /// Bytes that one more datagram may have; 0 if none may go.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.sent >= self.received.saturating_mul(FACTOR) {
            return 0;
        }
        let bytes = self.received_bytes.saturating_mul(FACTOR).saturating_sub(self.sent_bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// An address the peer was heard from, not proven yet.
#[derive(Clone, Copy, Debug)]
struct Probe {
    address: FourTuple,
    challenge: [u8; 8],
    credit: Credit,
    next_at: Instant,
    left: u8,
}

/// Where the peer is.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    address: FourTuple,
    /// `None` once the address is proven.
    credit: Option<Credit>,
    probe: Option<Probe>,
}

impl Path {
    pub(crate) const fn proven(address: FourTuple) -> Self {
        Self { address, credit: None, probe: None }
    }

    pub(crate) fn unproven(address: FourTuple) -> Self {
        Self { address, credit: Some(Credit::default()), probe: None }
    }

    pub(crate) const fn address(&self) -> FourTuple {
        self.address
    }

    /// Bytes that the next datagram may have.
    pub(crate) fn room(&self) -> usize {
        self.credit.map_or(MAX_DATAGRAM_BYTES, |credit| credit.room().min(MAX_DATAGRAM_BYTES))
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        if let Some(credit) = &mut self.credit {
            credit.on_sent(bytes);
        }
    }

    /// A request, verified, came from the address.
    pub(crate) fn on_request(&mut self, bytes: usize) {
        if let Some(credit) = &mut self.credit {
            credit.on_received(bytes);
        }
    }

    /// The peer has shown that it hears here.
    pub(crate) fn prove(&mut self) {
        self.credit = None;
    }

    /// The newest datagram of the peer came from here, verified.
    pub(crate) fn on_newest_from(
        &mut self,
        now: Instant,
        from: FourTuple,
        bytes: usize,
        dice: [u8; 8],
    ) {
        if self.address.has_remote(from.remote) {
            // The peer may ask another of our addresses; answers leave from the one it asked last.
            self.address.local = from.local;
            // It is still there, or there again; whoever replayed a datagram from elsewhere is forgotten.
            self.probe = None;
            return;
        }
        let fresh = Probe {
            address: from,
            challenge: dice,
            credit: Credit::default(),
            next_at: now,
            left: CHALLENGES,
        };
        let probe = self.probe.get_or_insert(fresh);
        if !probe.address.has_remote(from.remote) {
            *probe = fresh;
        }
        probe.address.local = from.local;
        probe.credit.on_received(bytes);
    }

    /// A response to a challenge came from here. Returns whether the peer has moved.
    pub(crate) fn on_response(&mut self, from: FourTuple, response: [u8; 8]) -> bool {
        match self.probe {
            Some(probe) if probe.address.has_remote(from.remote) && probe.challenge == response => {
                *self = Self::proven(from);
                true
            }
            _ => false,
        }
    }

    /// The challenge to send now, where to, and in how many bytes at most.
    pub(crate) fn poll_challenge(&mut self, now: Instant) -> Option<(FourTuple, [u8; 8], usize)> {
        let probe = self.probe.as_ref().filter(|probe| probe.next_at <= now)?;
        if probe.left == 0 {
            self.probe = None;
            return None;
        }
        let room = probe.credit.room().min(MAX_DATAGRAM_BYTES);
        Some((probe.address, probe.challenge, room))
    }

    /// It was sent, or could not be; the next is due after `interval`.
    pub(crate) fn on_challenge(
        &mut self,
        now: Instant,
        sent_bytes: Option<usize>,
        interval: Duration,
    ) {
        if let Some(probe) = &mut self.probe {
            probe.left = probe.left.saturating_sub(1);
            probe.next_at = now + interval;
            if let Some(bytes) = sent_bytes {
                probe.credit.on_sent(bytes);
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.next_at)
    }
}
