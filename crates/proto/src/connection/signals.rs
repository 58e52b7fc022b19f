//! The frames that an end sends beside data and reports of arrivals: pings and probes, the answer to a path
//! challenge, the token of a reset, and a frame without meaning now and then.
//!
//! The invariants: a signal is due until it is in a datagram; a probe is a ping; and the token is kept as
//! long as the peer may not have it.

use super::ResetToken;
use super::draft::Draft;
use super::recovery::ItemFate;
use crate::crypto::Entropy;
use crate::transit::Item;
use crate::wire::Grease;
use crate::wire::frames::Frame;

/// The average number of datagrams per frame without meaning (H-1.3).
const GREASE_INTERVAL: u64 = 1000;

/// The least room for a frame without meaning.
const GREASE_ROOM: usize = 64;

/// The small frames that are due beside data.
#[derive(Debug)]
pub(super) struct Signals {
    ping_due: bool,
    /// The ping is a probe: with it goes what the oldest datagram in flight had of messages.
    probe_due: bool,
    path_response: Option<[u8; 8]>,
    /// A server's token: sent to the client once its address is validated, and kept until it is acknowledged.
    reset_token: Option<ResetToken>,
    reset_token_due: bool,
    /// From this number on, a datagram has a frame without meaning.
    next_grease: u64,
}

impl Signals {
    /// A ping is due: a client's validates its address, a server's makes the client answer.
    pub(super) fn new(reset_token: Option<ResetToken>, entropy: &mut Entropy) -> Self {
        Self {
            ping_due: true,
            probe_due: false,
            path_response: None,
            reset_token,
            reset_token_due: false,
            next_grease: entropy.next_u64() % GREASE_INTERVAL,
        }
    }

    pub(super) const fn is_ping_due(&self) -> bool {
        self.ping_due
    }

    pub(super) const fn is_response_due(&self) -> bool {
        self.path_response.is_some()
    }

    pub(super) const fn is_token_due(&self) -> bool {
        self.reset_token_due
    }

    /// A ping is to be sent.
    pub(super) const fn ping(&mut self) {
        self.ping_due = true;
    }

    /// Nothing was acknowledged for long: a ping is to be sent, and copies of messages with it.
    pub(super) const fn probe(&mut self) {
        (self.ping_due, self.probe_due) = (true, true);
    }

    /// The peer wants this answered. The newest challenge counts.
    pub(super) const fn on_challenge(&mut self, bytes: [u8; 8]) {
        self.path_response = Some(bytes);
    }

    /// The peer's address is validated: the token may be sent to it.
    pub(super) const fn on_validated(&mut self) {
        self.reset_token_due = self.reset_token.is_some();
    }

    /// The fate of a datagram with the token.
    pub(super) fn on_token(&mut self, fate: ItemFate) {
        match fate {
            ItemFate::Acked => (self.reset_token, self.reset_token_due) = (None, false),
            ItemFate::Lost => self.reset_token_due = self.reset_token.is_some(),
        }
    }

    pub(super) fn put_path_response(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(bytes) = self.path_response.take() {
            draft.push(&Frame::PathResponse(bytes));
        }
    }

    pub(super) fn put_reset_token(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(token) = self.reset_token.as_ref().filter(|_| self.reset_token_due) {
            draft.push(&Frame::ResetToken(token));
            draft.add(Item::ResetToken);
            self.reset_token_due = false;
        }
    }

    /// Returns whether the ping is a probe.
    pub(super) fn put_ping(&mut self, draft: &mut Draft<'_, '_>) -> bool {
        if core::mem::take(&mut self.ping_due) {
            draft.push(&Frame::Ping);
        }
        core::mem::take(&mut self.probe_due)
    }

    /// A frame without meaning now and then, so that peers go on ignoring what they do not know (H-1.3).
    pub(super) fn put_grease(&mut self, entropy: &mut Entropy, draft: &mut Draft<'_, '_>) {
        let number = draft.ledger().next_number();
        let has_place = draft.written().has_content && draft.written().slice.is_none();
        if number >= self.next_grease && has_place && draft.room() >= GREASE_ROOM {
            self.next_grease = number + 1 + entropy.next_u64() % (2 * GREASE_INTERVAL);
            let grease = Grease(entropy.bytes());
            draft.push(&grease.frame());
        }
    }

    /// Panics if they contradict each other.
    pub(super) fn check_invariants(&self) {
        assert!(self.ping_due || !self.probe_due, "a probe without a ping");
        assert!(self.reset_token.is_some() || !self.reset_token_due, "no token to send");
    }
}
