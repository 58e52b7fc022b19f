//! An established connection: one stream of numbered, sealed datagrams with everything that a game and a
//! large block need (STANDARD-1, sections 4 and 5).
//!
//! A [`ClientMachine`](crate::client::ClientMachine) makes one by its handshake, a
//! [`ServerMachine`](crate::server::ServerMachine) has many. Applications get a `&mut Connection` from
//! either, to send and to look at; its [`Event`]s come from the machine.
//!
//! It owns parts, each with an invariant of its own, and none of them knows the connection (decision 0020):
//!
//! | part | what it knows |
//! |---|---|
//! | `agreement` | roles, ids, keys (`protection`), what the peer takes |
//! | `life` | the state, the close (`closing`), what the application hears, the [`trace`] |
//! | `liveness` | silence |
//! | `path` | the peer's address, what may be sent there, all that was measured of the way |
//! | `recovery` | what was sent, and what became of it |
//! | `inbound` | which datagrams arrived, with blocks, `packets` and messages to be read, and the acks |
//! | `outbound` | blocks, `packets` and messages to be sent, and which goes first |
//! | `signals` | pings, probes, answers to challenges, the token of resets |
//!
//! `receive` and `transmit` connect them, one for each direction. `compose` decides what is in a datagram and
//! when, and `verdicts` reports the fate of a datagram to the parts.

mod agreement;
mod bits;
mod blocks;
mod closing;
mod compose;
mod config;
mod draft;
mod ecn;
mod error_kind;
mod event;
mod inbound;
mod life;
mod liveness;
mod message_pace;
mod mtu;
mod outbound;
mod packets;
mod path;
mod polling;
mod protection;
mod reading;
mod receive;
mod recovery;
mod signals;
mod source;
pub(crate) mod state;
mod stats;
pub mod trace;
mod transmit;
mod verdicts;

pub use crate::block_map::{BlockMap, ChunkMap, SliceState};
pub use crate::channels::{Lane, LaneError, Order, Source};
pub use crate::crypto::Suite;
pub use crate::incoming::Delivery;
pub use crate::outgoing::{Block, BlockProgress, BlockTree, ChunkValue, ProvideError, TreeError};
pub use crate::wire::answer::RefusalCode;
pub use config::{ConfigError, ConnectionConfig};
pub use error_kind::ErrorKind;
pub use event::{BlockHandle, BlockNumber, BlockOptions, CloseCode, CloseReason, Event, SendError};
pub use haulier_control::Urgency;
pub use source::WantedChunk;
pub use state::ConnectionState;
pub(crate) use state::ConnectionTrigger;
pub use stats::ConnectionStats;
use stats::Counters;

pub(crate) use blocks::{Flight, Left};
pub(crate) use closing::LastWords;
pub(crate) use protection::Protection;
pub(crate) use trace::Trace;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::Bytes;
use haulier_control::Known;
use zeroize::Zeroizing;

use crate::channels::MessageSender;
use crate::crypto::Entropy;
use crate::debug_as;
use crate::fragment::FragmentPool;
use crate::incoming::IncomingBlocks;
use crate::time::earliest;
use crate::transit::UDP_IPV4_BYTES;
use crate::wire::{EndParameters, WireId};
use crate::{Ecn, FourTuple, Instant, Sequence};
use agreement::Agreement;
pub(crate) use agreement::Ends;
use inbound::Inbound;
use life::Life;
use liveness::Liveness;
use outbound::Outbound;
pub(crate) use path::AddressProof;
use path::Path;
use recovery::Recovery;
use signals::Signals;

/// The token of a valid reset. In a box, because what holds it may be moved about, which leaves copies that
/// nothing wipes.
pub(crate) type ResetToken = Box<Zeroizing<[u8; 16]>>;

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) ends: Ends,
    pub(crate) protection: Protection,
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) idle_timeout: Duration,
    pub(crate) peer: EndParameters,
    pub(crate) entropy: Entropy,
    pub(crate) address: FourTuple,
    pub(crate) address_proof: AddressProof,
    /// A server's, for its responses; empty at a client.
    pub(crate) welcome_message: Vec<u8>,
    /// A server's token, to be sent to the client.
    pub(crate) reset_token: Option<ResetToken>,
    pub(crate) trace: Option<Box<Trace>>,
}

/// One end of a connection: an owner of parts, which it connects and none of which knows it.
pub struct Connection {
    /// Shared by all connections of a server.
    config: Arc<ConnectionConfig>,
    agreement: Agreement,
    life: Life,
    liveness: Liveness,
    path: Path,
    recovery: Recovery,
    inbound: Inbound,
    outbound: Outbound,
    signals: Signals,
    entropy: Entropy,
    counters: Counters,
}

debug_as! {
    Connection: |connection|
    state = connection.state(),
    address = connection.address(),
    sending = connection.sending(),
    receiving = connection.receiving(),
    stats = connection.stats(),
}

impl Connection {
    pub(crate) fn new(now: Instant, mut parameters: Parameters) -> Self {
        let mut trace = parameters.trace.take();
        trace.iter_mut().for_each(|trace| trace.begin(now, &parameters));
        let Parameters { ends, config, mut entropy, peer, idle_timeout, .. } = parameters;
        let agreement =
            Agreement::new(ends, parameters.protection, parameters.welcome_message, &peer);
        let room = agreement.first_slice_room();
        let max_queued_bytes = config.max_queued_message_bytes as usize;
        let max_datagram_bytes = config.max_datagram_bytes.min(peer.max_datagram_bytes);
        Self {
            agreement,
            life: Life::new(now, ends.role, trace),
            liveness: Liveness::new(now, idle_timeout, config.handshake_timeout),
            path: Path::new(
                parameters.address,
                parameters.address_proof,
                max_datagram_bytes,
                config.ecn,
            ),
            signals: Signals::new(parameters.reset_token, &mut entropy),
            recovery: Recovery::new(&mut entropy),
            inbound: Inbound::new(),
            outbound: Outbound::new(
                blocks::outgoing(&config, idle_timeout, &peer, room),
                MessageSender::new(peer.channels, peer.channel_bytes, max_queued_bytes),
            ),
            entropy,
            counters: Counters::default(),
            config,
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> ConnectionState {
        self.life.state()
    }

    /// Whether this is a server's connection, and its client was let in by
    /// [`ServerCredentials::other_secret`](crate::server::ServerCredentials::other_secret).
    #[must_use]
    pub const fn has_other_secret(&self) -> bool {
        self.agreement.ends().has_other_secret
    }

    /// The token of a reset that ends it, once the server has sent the token.
    pub(crate) fn peer_reset_token(&self) -> Option<&[u8; 16]> {
        self.agreement.peer_reset_token()
    }

    /// How long it had been there when it last had anything to do.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.life.now().since(self.liveness.created())
    }

    /// Datagrams of the peer that have not arrived, though later ones have: lost, or overtaken. Of all since
    /// the connection began.
    #[must_use]
    pub fn datagrams_missing(&self) -> u64 {
        self.inbound.heard().missing()
    }

    /// The peer's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.path.address().remote
    }

    /// The peer's address and our own, with the transport that carries the datagrams.
    pub(crate) const fn path(&self) -> FourTuple {
        self.path.address()
    }

    /// Moves the packets, the blocks, or the messages of a channel to another lane. The lane decides which
    /// data is sent first.
    pub fn set_lane(&mut self, source: Source, lane: Lane) {
        self.outbound.set_lane(source, lane);
    }

    /// Sends a time-critical packet of up to 256 KiB, once; an event says whether it arrived. A packet of
    /// more than 1024 bytes is sent in fragments.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_packet(&mut self, data: impl Into<Bytes>) -> Result<Sequence, SendError> {
        self.open()?;
        self.outbound.send_packet(data.into(), self.config.max_queued_packet_bytes)
    }

    /// Sends a message of up to 64 KiB on channel 0, which is delivered once and in order.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_message(&mut self, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.send_message_on(0, Order::Ordered, data).map(|_number| ())
    }

    /// Sends a message of up to 64 KiB on a channel, which is delivered once. Returns its number on the
    /// channel. What is missing on one channel delays no other; an unordered message waits for none.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_message_on(
        &mut self,
        channel: u8,
        order: Order,
        data: impl Into<Bytes>,
    ) -> Result<u64, SendError> {
        self.open()?;
        self.outbound.send_message(channel, order, data.into())
    }

    /// Sends a ping at once: for a client whose address has changed. A client that only receives would
    /// otherwise send nothing before its next keep-alive, because everything for it goes to the old address.
    pub const fn ping(&mut self) {
        self.signals.ping();
    }

    /// Whether all blocks and messages sent so far are acknowledged.
    #[must_use]
    pub fn all_acked(&self) -> bool {
        self.outbound.all_acked()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.life.set_now(now);
        self.end_if_silent(now);
        if !self.life.is_open() {
            return;
        }
        self.settle_fates();
        let (path, transfer) = (&mut self.path, self.outbound.transfer_mut());
        self.recovery.on_timeout_of_blocks(now, path, transfer);
        if let Some(blocks) = self.inbound.blocks_mut() {
            blocks.handle_timeout(now);
        }
        self.after_blocks(now);
        let failure = self.inbound.blocks().and_then(|blocks| blocks.failure(now));
        let incoming = failure.map(receive::code_of);
        let has_failed = self.outbound.blocks().has_failed(now);
        let outgoing = has_failed.then_some(CloseCode::NO_PROGRESS);
        if let Some(code) = outgoing.or(incoming) {
            return self.close(now, code, "");
        }
        self.pass_losses(now);
        if self.recovery.poll_probe(now, &mut self.path) {
            self.signals.probe();
        }
        if self.keep_alive_at() <= now {
            self.liveness.on_keep_alive(now);
            self.signals.ping();
        }
    }

    fn keep_alive_at(&self) -> Instant {
        let is_receiving = self.inbound.blocks().is_some_and(IncomingBlocks::has_open);
        self.liveness.keep_alive_at(is_receiving)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if !self.life.is_open() {
            return self.life.close_at();
        }
        let ends_at = self.liveness.ends_at(self.life.state());
        let fixed = earliest(Some(ends_at), Some(self.keep_alive_at()));
        let blocks = earliest(self.outbound.blocks().poll_deadline(), self.inbound.poll_timeout());
        let due = earliest(earliest(fixed, blocks), self.path.poll_timeout());
        earliest(due, self.transmit_at())
    }

    /// Memory that the peer makes this end hold, in bytes: blocks, packets and messages that are incomplete
    /// or not read yet, many records of datagrams that it does not acknowledge, and what the application says
    /// that it holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.inbound.memory_bytes() + self.outbound.memory_bytes() + self.recovery.memory_bytes()
    }

    /// Memory that the application holds for this peer, in bytes; it replaces the number of the call before.
    /// It counts as the connection's, so that a server that is short of memory closes the connection with
    /// the most. After [`Event::Closed`] they do not count any more.
    pub const fn set_application_bytes(&mut self, bytes: usize) {
        self.inbound.set_application_bytes(bytes);
    }

    /// Drops everything that is received and not read, to free its memory.
    pub(crate) fn drop_unread(&mut self) {
        let config = self.config.incoming(self.liveness.idle_timeout());
        self.inbound.drop_unread(self.life.now(), config);
    }

    /// Gives back the memory of queues that are empty. While something goes on they keep it, so that a
    /// datagram allocates nothing.
    fn rest(&mut self) {
        self.recovery.rest();
        self.life.rest();
    }

    /// Limits every later maximum rate as well.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.outbound.transfer_mut().cap_rate_bps(rate_cap_bps);
    }

    /// Frees its fragments in the pool.
    pub(crate) fn clear(&mut self, pool: &mut FragmentPool) {
        self.inbound.clear(pool);
    }

    pub(crate) const fn local_id(&self) -> WireId {
        self.agreement.ends().local
    }

    /// The datagram that was just handled had this ECN field.
    pub(crate) const fn on_mark(&mut self, ecn: Ecn) {
        self.inbound.on_mark(ecn);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.life.is(ConnectionState::Closed)
    }

    /// Whether the client's first data has not arrived yet.
    pub(crate) fn is_handshake(&self) -> bool {
        self.life.is(ConnectionState::Responding)
    }

    /// A verified request for this connection arrived, the first or a copy.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize, check: u32) {
        self.life.set_now(now);
        self.note_request(now, bytes);
        self.path.on_request(bytes);
        self.life.hasten_close(now);
        self.path.blocks.on_request(now, bytes + UDP_IPV4_BYTES, check);
    }

    /// What was measured of the path to the peer, if its address is validated.
    pub(crate) fn known_path(&self) -> Known {
        if self.is_handshake() { Known::NOTHING } else { self.path.blocks.known() }
    }

    /// Starts from what an earlier connection measured of the path.
    pub(crate) const fn set_known_path(&mut self, known: Known) {
        self.path.blocks.set_known(known);
    }

    fn open(&self) -> Result<(), SendError> {
        if self.life.is_open() { Ok(()) } else { Err(SendError::NotOpen) }
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.agreement.check_invariants();
        self.life.check_invariants(self.agreement.ends().role);
        self.path.check_invariants();
        self.recovery.check_invariants();
        self.inbound.check_invariants();
        self.outbound.check_invariants();
        self.signals.check_invariants();
    }
}
