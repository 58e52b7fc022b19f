//! What the handshake has made of two ends: their roles, ids and keys, and what the peer takes.
//!
//! The invariants: while a server responds, each of its datagrams has the whole welcome in the header. And no
//! datagram goes without a seal, or with more bytes than the peer takes [H-5.6a].

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ResetToken;
use super::path::Path;
use super::protection::{Head, KeyLimits, Protection};
use crate::crypto::{Suite, TAG_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{DataHeader, EndParameters, MAX_DATAGRAM_BYTES, ResponseHeader, Role, WireId};
use crate::{DatagramBuffer, DropReason, Instant};

/// The least room for a slice with its frame: 1024 bytes, so that a chunk has no more than 256, and 12.
const SMALLEST_SLICE_ROOM: usize = 1036;

/// The roles and ids of the two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Of this end.
    pub(crate) role: Role,
    pub(crate) local: WireId,
    pub(crate) remote: WireId,
    /// Of a server: its client has the other secret.
    pub(crate) has_other_secret: bool,
}

/// What the handshake has made of two ends.
#[derive(Debug)]
pub(super) struct Agreement {
    ends: Ends,
    protection: Protection,
    /// A server's, until the client's first data; then empty.
    welcome_message: Vec<u8>,
    /// What the peer says about itself: the largest block and the largest datagram that it takes.
    max_block_bytes: u64,
    max_datagram_bytes: u16,
    /// A client's: the token of a reset that ends this connection.
    peer_reset_token: Option<ResetToken>,
}

impl Agreement {
    /// An agreement of these two. The welcome is a server's, and empty at a client.
    pub(super) const fn new(
        ends: Ends,
        protection: Protection,
        welcome_message: Vec<u8>,
        peer: &EndParameters,
    ) -> Self {
        let (max_block_bytes, max_datagram_bytes) = (peer.max_block_bytes, peer.max_datagram_bytes);
        let peer_reset_token = None;
        Self {
            ends,
            protection,
            welcome_message,
            max_block_bytes,
            max_datagram_bytes,
            peer_reset_token,
        }
    }

    pub(super) const fn ends(&self) -> Ends {
        self.ends
    }

    pub(super) fn is_server(&self) -> bool {
        self.ends.role == Role::Server
    }

    /// The largest block that the peer takes.
    pub(super) const fn max_block_bytes(&self) -> u64 {
        self.max_block_bytes
    }

    /// Whether datagrams are responses, with the welcome.
    pub(super) const fn is_responding(&self) -> bool {
        !self.welcome_message.is_empty()
    }

    /// The client has the welcome.
    pub(super) fn end_responding(&mut self) {
        self.welcome_message = Vec::new();
    }

    /// The server has sent the token of its resets.
    pub(super) fn set_peer_reset_token(&mut self, token: &[u8; 16]) {
        // Copied where it stays.
        let ours = self.peer_reset_token.insert(Box::default());
        ours.copy_from_slice(token);
    }

    pub(super) fn peer_reset_token(&self) -> Option<&[u8; 16]> {
        self.peer_reset_token.as_ref().map(|token| &***token)
    }

    /// Bytes that a slice frame may have at first. At a server it has to fit beside the welcome and an
    /// announcement until the client's address is validated.
    pub(super) fn first_slice_room(&self) -> usize {
        match self.ends.role {
            Role::Client => MAX_DATAGRAM_BYTES - DATA_HEADER_BYTES - TAG_BYTES,
            Role::Server => SMALLEST_SLICE_ROOM,
        }
    }

    /// Bytes that the next datagram on this path has for frames: fewer in a response, and to an address that
    /// is not validated.
    pub(super) fn frame_room(&self, path: &Path) -> usize {
        let room = path.room().saturating_sub(self.header_bytes() + TAG_BYTES);
        room.min(path.slice_room())
    }

    /// Bytes before the frames of a datagram.
    pub(super) const fn header_bytes(&self) -> usize {
        match self.welcome_message.len() {
            0 => DATA_HEADER_BYTES,
            welcome_bytes => ResponseHeader::bytes(welcome_bytes),
        }
    }

    /// Appends the header of a datagram.
    pub(super) fn write_header(
        &mut self,
        now: Instant,
        number: u64,
        limits: KeyLimits,
        out: &mut Vec<u8>,
    ) {
        let (to, low) = (self.ends.remote, low_bits(number));
        if self.is_responding() {
            let welcome_message = &self.welcome_message;
            ResponseHeader { to, welcome_message, number: low }.write(out);
        } else {
            let phase = self.protection.send_phase(now, number, limits);
            DataHeader { from: self.ends.role, phase, to, number: low }.write(out);
        }
    }

    /// Encrypts a datagram after its header, and behind it `rest`, which is elsewhere. Returns `false` if no
    /// key is left: nothing may be sent any more.
    #[must_use]
    pub(super) fn seal(
        &mut self,
        number: u64,
        header_bytes: usize,
        out: &mut DatagramBuffer<'_>,
        rest: &[u8],
    ) -> bool {
        let is_sealed = self.protection.seal(number, header_bytes, out, rest);
        debug_assert!(!is_sealed || out.len() <= usize::from(self.max_datagram_bytes), "H-5.6a");
        is_sealed
    }

    /// Verifies a datagram and decrypts it in place. Returns its plaintext. If the peer has updated its key,
    /// the previous one is kept for as long as `keep_previous` says.
    pub(super) fn open<'a>(
        &mut self,
        now: Instant,
        head: Head,
        datagram: &'a mut [u8],
        keep_previous: impl FnOnce() -> core::time::Duration,
    ) -> Result<&'a [u8], DropReason> {
        self.protection.open(now, head, datagram, keep_previous)
    }

    /// Whether so many datagrams failed to open that the connection must be closed.
    pub(super) fn is_used_up(&self) -> bool {
        self.protection.is_used_up()
    }

    /// A datagram that this end sent was acknowledged.
    pub(super) fn on_acked(&mut self, number: u64) {
        self.protection.on_acked(number);
    }

    pub(super) fn suite(&self) -> Option<Suite> {
        self.protection.suite()
    }

    /// Updates of the sending and of the receiving key.
    pub(super) fn key_updates(&self) -> (u64, u64) {
        self.protection.updates()
    }

    /// Panics if it contradicts itself.
    pub(super) fn check_invariants(&self) {
        assert!(self.is_server() || !self.is_responding(), "a client does not respond");
        assert!(!self.is_server() || self.peer_reset_token.is_none(), "a client has no resets");
    }
}

fn low_bits(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
