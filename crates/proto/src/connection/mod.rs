//! An established connection: one stream of numbered, sealed datagrams with everything that a game and a
//! large block need (STANDARD-1, sections 4 and 5).
//!
//! A [`ClientMachine`](crate::client::ClientMachine) makes one by its handshake, a
//! [`ServerMachine`](crate::server::ServerMachine) has many. Applications get a `&mut Connection` from
//! either, to send and to look at; its [`Event`]s come from the machine. The parts: `protection` (keys),
//! `path` (the peer's address, what may be sent to it, and all that was measured of the way there, with
//! `mtu`,
//! `ecn` and `message_pace`), `reading` (how late this end is), `blocks`, `packets`, messages, `transit`
//! (which datagrams arrived), `liveness` (silence) and `closing`; `receive` and `transmit` connect them, one
//! for each direction, with `compose` for what is in a datagram and when, and `verdicts` for what became of
//! it. What it writes down about itself is its [`trace`].

mod bits;
mod blocks;
mod closing;
mod compose;
mod config;
mod draft;
mod ecn;
mod error_kind;
mod event;
mod liveness;
mod message_pace;
mod mtu;
mod packets;
mod path;
mod polling;
mod protection;
mod reading;
mod receive;
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
pub use crate::urgency::Urgency;
pub use crate::wire::answer::RefusalCode;
pub use config::{ConfigError, ConnectionConfig};
pub use error_kind::ErrorKind;
pub use event::{BlockHandle, BlockNumber, BlockOptions, CloseCode, CloseReason, Event, SendError};
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
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::Bytes;
use zeroize::Zeroizing;

use crate::bulk::Known;
use crate::channels::{Lanes, MessageReceiver, MessageSender};
use crate::crypto::Entropy;
use crate::crypto::TAG_BYTES;
use crate::debug_as;
use crate::fragment::FragmentPool;
use crate::outgoing::OutgoingBlocks;
use crate::time::earliest;
use crate::transit::{Ledger, ReceivedDatagrams, UDP_IPV4_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{EndParameters, MAX_DATAGRAM_BYTES, Role, WireId};
use crate::{Ecn, FourTuple, Instant, Sequence};
use blocks::BlocksIn;
use closing::Closing;
use liveness::Liveness;
use packets::{IncomingPackets, OutgoingPackets};
pub(crate) use path::AddressProof;
use path::Path;
use protection::KeyLimits;
use reading::Reading;
use trace::TraceEvent;

/// The least room for a slice with its frame: 1024 bytes, so that a chunk has no more than 256, and 12.
const SMALLEST_SLICE_ROOM: usize = 1036;

/// What the records of ordinary traffic take, some hundreds of datagrams: they belong to a connection.
const ORDINARY_RECORDS_BYTES: usize = 32 << 10;

/// The token of a valid reset. In a box, because what holds it may be moved about, which leaves copies that
/// nothing wipes.
pub(crate) type ResetToken = Box<Zeroizing<[u8; 16]>>;

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) role: Role,
    pub(crate) local: WireId,
    pub(crate) remote: WireId,
    pub(crate) protection: Protection,
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) idle_timeout: Duration,
    pub(crate) peer: EndParameters,
    pub(crate) entropy: Entropy,
    pub(crate) address: FourTuple,
    pub(crate) address_proof: AddressProof,
    /// Of a server: its client has the other secret.
    pub(crate) has_other_secret: bool,
    /// A server's, for its responses; empty at a client.
    pub(crate) welcome_message: Vec<u8>,
    /// A server's, to be told to the client.
    pub(crate) reset_token: Option<ResetToken>,
    pub(crate) trace: Option<Box<Trace>>,
}

/// One end of a connection.
pub struct Connection {
    role: Role,
    state: ConnectionState,
    has_other_secret: bool,
    /// Shared by all connections of a server.
    config: Arc<ConnectionConfig>,
    protection: Protection,
    local: WireId,
    remote: WireId,
    path: Path,
    /// A server's, until the client's first data; then empty.
    welcome_message: Vec<u8>,
    entropy: Entropy,
    received: ReceivedDatagrams,
    sent: Ledger,
    next_skip: u64,
    blocks_out: OutgoingBlocks,
    /// Made when something of a block arrives: a server that only sends them stays small.
    blocks_in: Option<Box<BlocksIn>>,
    packets_out: OutgoingPackets,
    packets_in: IncomingPackets,
    messages_out: MessageSender,
    /// Made when the first arrives.
    messages_in: Option<Box<MessageReceiver>>,
    /// What goes first.
    lanes: Lanes,
    /// From this number on, a datagram has a frame without meaning.
    next_grease: u64,
    ping_due: bool,
    /// The ping is a probe: with it goes what the oldest datagram in flight had of messages.
    probe_due: bool,
    path_response: Option<[u8; 8]>,
    closing: Option<Box<Closing>>,
    /// The application has not read that it is connected, which comes before all other events.
    is_connected_unread: bool,
    events: VecDeque<Event>,
    /// What the peer says about itself: the largest block and the largest datagram that it takes.
    max_block_bytes: u64,
    max_datagram_bytes: u16,
    /// A server's: told to the client once its address is validated, until that is acknowledged.
    reset_token: Option<ResetToken>,
    reset_token_due: bool,
    /// A client's: the token of a reset that ends this connection.
    peer_reset_token: Option<ResetToken>,
    liveness: Liveness,
    reading: Reading,
    /// The latest time that the driver passed in.
    now: Instant,
    counters: Counters,
    /// What the application holds for the peer.
    application_bytes: usize,
    /// Only if it is told to write one.
    trace: Option<Box<Trace>>,
}

debug_as! {
    Connection: |connection|
    state = connection.state,
    address = connection.address(),
    sending = connection.sending(),
    receiving = connection.receiving(),
    stats = connection.stats(),
}

impl Connection {
    pub(crate) fn new(now: Instant, mut parameters: Parameters) -> Self {
        let mut trace = parameters.trace.take();
        trace.iter_mut().for_each(|trace| trace.begin(now, &parameters));
        let Parameters { role, config, mut entropy, address, .. } = parameters;
        // A slice has to fit beside the welcome and an announcement until the client's address is validated.
        let room = match role {
            Role::Client => MAX_DATAGRAM_BYTES - DATA_HEADER_BYTES - TAG_BYTES,
            Role::Server => SMALLEST_SLICE_ROOM,
        };
        let entropy_of_grease = entropy.next_u64() % 1000;
        Self {
            role,
            state: match role {
                Role::Client => ConnectionState::Confirming,
                Role::Server => ConnectionState::Responding,
            },
            protection: parameters.protection,
            local: parameters.local,
            remote: parameters.remote,
            path: Path::new(
                address,
                parameters.address_proof,
                config.max_datagram_bytes.min(parameters.peer.max_datagram_bytes),
                config.ecn,
            ),
            has_other_secret: parameters.has_other_secret,
            welcome_message: parameters.welcome_message,
            next_skip: first_skip(&mut entropy),
            entropy,
            received: ReceivedDatagrams::new(),
            sent: Ledger::new(),
            blocks_out: blocks::outgoing(&config, parameters.idle_timeout, &parameters.peer, room),
            blocks_in: None,
            packets_out: OutgoingPackets::default(),
            packets_in: IncomingPackets::default(),
            messages_out: MessageSender::new(
                parameters.peer.channels,
                parameters.peer.channel_bytes,
                config.max_queued_message_bytes as usize,
            ),
            messages_in: None,
            lanes: Lanes::new(),
            next_grease: entropy_of_grease,
            // A client's ping validates its address; a server's makes the client answer.
            ping_due: true,
            probe_due: false,
            path_response: None,
            closing: None,
            is_connected_unread: role == Role::Client,
            events: VecDeque::new(),
            max_block_bytes: parameters.peer.max_block_bytes,
            max_datagram_bytes: parameters.peer.max_datagram_bytes,
            reset_token_due: false,
            reset_token: parameters.reset_token,
            peer_reset_token: None,
            liveness: Liveness::new(now, parameters.idle_timeout, config.handshake_timeout),
            reading: Reading::new(),
            now,
            counters: Counters::default(),
            application_bytes: 0,
            trace,
            config,
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> ConnectionState {
        self.state
    }

    /// Whether this is a server's connection, and its client was let in by
    /// [`ServerCredentials::other_secret`](crate::server::ServerCredentials::other_secret).
    #[must_use]
    pub const fn has_other_secret(&self) -> bool {
        self.has_other_secret
    }

    /// The token of a reset that ends it, once the server has told it.
    pub(crate) fn peer_reset_token(&self) -> Option<&[u8; 16]> {
        self.peer_reset_token.as_ref().map(|token| &***token)
    }

    /// How long it had been there when it last had anything to do.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.now.since(self.liveness.created())
    }

    /// The peer's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.path.address().remote
    }

    /// The same, with our own address and what carries its datagrams.
    pub(crate) const fn path(&self) -> FourTuple {
        self.path.address()
    }

    /// Moves what the application sends to another lane: it says what goes first.
    pub fn set_lane(&mut self, source: Source, lane: Lane) {
        self.lanes.set(source, lane);
    }

    /// Sends a time-critical packet of up to 256 KiB, once; an event says whether it arrived. A packet of
    /// more than 1024 bytes is sent in fragments.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_packet(&mut self, data: impl Into<Bytes>) -> Result<Sequence, SendError> {
        self.open()?;
        self.packets_out.send(data.into(), self.config.max_queued_packet_bytes)
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
        self.messages_out.send(channel, order, data.into()).map_err(SendError::from)
    }

    /// Sends a ping at once: for a client whose address has changed. A client that only receives would
    /// otherwise send nothing before its next keep-alive, because everything for it goes to the old address.
    pub const fn ping(&mut self) {
        self.ping_due = true;
    }

    /// Whether all blocks and messages sent so far are acknowledged.
    #[must_use]
    pub fn all_acked(&self) -> bool {
        self.blocks_out.is_idle() && self.messages_out.all_acked()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.end_if_silent(now);
        if !self.state.is_open() {
            return;
        }
        self.settle_fates();
        if let Some((sender, path)) = self.blocks_out.sender_on(&mut self.path.blocks) {
            sender.handle_timeout(path, now, &mut self.sent);
        }
        if let Some(it) = &mut self.blocks_in {
            it.blocks.handle_timeout(now);
        }
        self.after_blocks(now);
        let failure = self.blocks_in.as_ref().and_then(|it| it.blocks.failure(now));
        let incoming = failure.map(receive::code_of);
        let outgoing = self.blocks_out.has_failed(now).then_some(CloseCode::NO_PROGRESS);
        if let Some(code) = outgoing.or(incoming) {
            return self.close(now, code, "");
        }
        self.pass_losses(now);
        if self.path.room() > 0 && self.sent.on_pto(now, &mut self.path.timing) {
            (self.ping_due, self.probe_due) = (true, true);
        }
        if self.keep_alive_at() <= now {
            self.liveness.on_keep_alive(now);
            self.ping_due = true;
        }
    }

    fn keep_alive_at(&self) -> Instant {
        let is_receiving = self.blocks_in.as_ref().is_some_and(|it| it.blocks.has_open());
        self.liveness.keep_alive_at(is_receiving)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if let Some(closing) = &self.closing {
            return Some(closing.next_at).filter(|_| self.state == ConnectionState::Closing);
        }
        if !self.state.is_open() {
            return None;
        }
        let fixed = earliest(Some(self.liveness.ends_at(self.state)), Some(self.keep_alive_at()));
        let incoming = self.blocks_in.as_ref().and_then(|it| it.blocks.deadline());
        let blocks = earliest(self.blocks_out.poll_deadline(), incoming);
        let due = earliest(earliest(fixed, blocks), self.path.poll_timeout());
        earliest(due, self.transmit_at())
    }

    /// Memory that the peer makes this end hold, in bytes: blocks, packets and messages that are incomplete
    /// or not read yet, many records of datagrams that it does not acknowledge, and what the application says
    /// that it holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.blocks_in.as_ref().map_or(0, |it| it.memory_bytes())
            + self.blocks_out.memory_bytes()
            + self.packets_in.memory_bytes()
            + self.messages_in.as_ref().map_or(0, |it| it.memory_bytes())
            + self.sent.memory_bytes().saturating_sub(ORDINARY_RECORDS_BYTES)
            + self.application_bytes
    }

    /// Memory that the application holds for this peer, in bytes; it replaces the number of the call before.
    /// It counts as the connection's, so that a server that is short of memory closes the connection with
    /// the most. After [`Event::Closed`] they do not count any more.
    pub const fn set_application_bytes(&mut self, bytes: usize) {
        self.application_bytes = bytes;
    }

    /// Drops everything that is received and not read, to free its memory.
    pub(crate) fn drop_unread(&mut self) {
        if let Some(it) = &mut self.blocks_in {
            it.drop_unread(self.now, self.config.incoming(self.liveness.idle_timeout()));
        }
        self.packets_in.drop_unread();
        self.messages_in = None;
        // It hears of the end, and drops what it has.
        self.application_bytes = 0;
    }

    /// Gives back the memory of queues that are empty. While something goes on they keep it, so that a
    /// datagram allocates nothing.
    fn rest(&mut self) {
        self.sent.rest();
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
    }

    /// Limits every later maximum rate as well.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.blocks_out.cap_rate_bps(rate_cap_bps);
    }

    /// Frees its fragments in the pool.
    pub(crate) fn clear(&mut self, pool: &mut FragmentPool) {
        self.packets_in.clear(pool);
    }

    pub(crate) const fn local_id(&self) -> WireId {
        self.local
    }

    /// The datagram that was just handled had this ECN field.
    pub(crate) const fn on_mark(&mut self, ecn: Ecn) {
        self.received.on_mark(ecn);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == ConnectionState::Closed
    }

    /// Whether the client's first data has not arrived yet.
    pub(crate) fn is_handshake(&self) -> bool {
        self.state == ConnectionState::Responding
    }

    /// A verified request for this connection arrived, the first or a copy.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.now = now;
        self.note_request(now, bytes);
        self.path.on_request(bytes);
        self.hasten_close(now);
        self.path.blocks.on_request(now, bytes + UDP_IPV4_BYTES);
    }

    /// What was measured of the path to the peer, if its address is validated.
    pub(crate) fn known_path(&self) -> Known {
        if self.is_handshake() { Known::NOTHING } else { self.path.blocks.known() }
    }

    /// Starts from what an earlier connection measured of the path.
    pub(crate) const fn set_known_path(&mut self, known: Known) {
        self.path.blocks.set_known(known);
    }

    fn key_limits(&self) -> KeyLimits {
        KeyLimits { datagrams: self.config.datagrams_per_key(), lifetime: self.config.key_lifetime }
    }

    fn open(&self) -> Result<(), SendError> {
        if self.state.is_open() { Ok(()) } else { Err(SendError::NotOpen) }
    }

    /// Returns whether the state has changed.
    fn transition(&mut self, trigger: ConnectionTrigger) -> bool {
        match self.state.next(trigger) {
            Some(next) => {
                self.state = next;
                self.note(self.now, || TraceEvent::StateChanged(next));
                true
            }
            None => false,
        }
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        assert_eq!(
            self.closing.is_some() && !self.is_closed(),
            self.state == ConnectionState::Closing
        );
        assert!(self.state != ConnectionState::Responding || self.role == Role::Server);
        assert!(self.state != ConnectionState::Confirming || self.role == Role::Client);
        self.sent.check_invariants();
        self.path.check_invariants();
        self.blocks_out.check_invariants();
        self.blocks_in.iter().for_each(|it| it.blocks.check_invariants());
        self.messages_out.check_invariants();
        self.messages_in.iter().for_each(|it| it.check_invariants());
    }
}

/// The first packet number to skip: one of the first 256, but not number 0.
fn first_skip(entropy: &mut Entropy) -> u64 {
    1 + entropy.next_u64() % 255
}
