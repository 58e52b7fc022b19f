//! One connection, once its keys are there: everything a game and a large block need, inside one stream of
//! numbered, sealed datagrams (STANDARD-1, sections 4 and 5).
//!
//! A [`Client`](crate::client::Client) makes one by its handshake, a [`Server`](crate::server::Server) has
//! many. Applications get a `&mut Connection` from either, to send and to look; what comes out are
//! [`Event`]s. The parts: `protection` (keys), `path` (where the peer is, and what may be sent there),
//! `blocks`, `packets`, [`message`](crate::message)s, [`transit`](crate::transit) (which datagrams arrived);
//! `receive` and `transmit` tie them together, one for each direction.

mod blocks;
mod config;
mod event;
mod packets;
mod path;
mod protection;
mod receive;
mod state;
mod stats;
mod transmit;

pub use blocks::{Block, BlockProgress};
pub use config::{ConnectionConfig, Urgency};
pub use event::{BlockHandle, CloseCode, CloseReason, Event, SendError};
pub use path::Credit;
pub use state::{ConnectionNews, ConnectionState};
pub use stats::ConnectionStats;

pub(crate) use protection::Protection;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::Bytes;

use crate::bulk::Known;
use crate::chunk::ChunkId;
use crate::crypto::Entropy;
use crate::fragment::FragmentPool;
use crate::message::{MAX_MESSAGE_BYTES, MessageReceiver, MessageSender, SendMessageError};
use crate::time::earliest;
use crate::transit::{Arrivals, ReceivedDatagrams, SentDatagrams};
use crate::wire::{Role, WireId};
use crate::{Instant, RttEstimator, Sequence};
use blocks::{IncomingBlocks, OutgoingBlocks};
use packets::{IncomingPackets, OutgoingPackets};
use path::Path;
use protection::KeyLimits;

/// Messages that may wait: as many windows as a game says things in a few seconds.
const MAX_QUEUED_MESSAGES: u32 = 4096;

/// Silence in the middle of a block after which the receiver asks: some round trips, few enough that a player
/// hardly notices.
const BLOCK_SILENCE: Duration = Duration::from_millis(500);

/// UDP and IPv4 round a datagram.
const UDP_IPV4_BYTES: usize = 28;

/// How often a close is sent.
const CLOSES: u8 = 3;

/// What was in a datagram that matters when it is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Ping,
    Slice,
    /// The ack that says that this chunk is done.
    ChunkDone(ChunkId),
    Packet(Sequence),
    Message(u32),
    MessageLimit(u32),
    Block(u32),
}

#[derive(Debug)]
struct Closing {
    code: CloseCode,
    reason: String,
    left: u8,
    next_at: Instant,
}

/// What a handshake hands over.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) role: Role,
    pub(crate) local: WireId,
    pub(crate) remote: WireId,
    pub(crate) protection: Protection,
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) idle_timeout: Duration,
    pub(crate) largest_block: u64,
    pub(crate) entropy: Entropy,
    pub(crate) address: SocketAddr,
    pub(crate) address_proven: bool,
    /// A server's: what every response carries.
    pub(crate) welcome_message: Vec<u8>,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    state: ConnectionState,
    /// Common to all connections of a server.
    config: Arc<ConnectionConfig>,
    protection: Protection,
    local: WireId,
    remote: WireId,
    path: Path,
    /// A server's, until the client's first data.
    welcome_message: Vec<u8>,
    entropy: Entropy,
    received: ReceivedDatagrams,
    /// Kept while a block comes.
    arrivals: Arrivals,
    sent: SentDatagrams<Vec<Item>>,
    next_skip: u64,
    blocks_out: OutgoingBlocks,
    blocks_in: IncomingBlocks,
    packets_out: OutgoingPackets,
    packets_in: IncomingPackets,
    messages_out: MessageSender,
    messages_in: MessageReceiver,
    ping_due: bool,
    path_response: Option<[u8; 8]>,
    closing: Option<Closing>,
    events: VecDeque<Event>,
    idle_timeout: Duration,
    peer_largest_block: u64,
    born: Instant,
    /// When something verified came last.
    heard: Instant,
    /// When something that asks for an ack went out last.
    asked: Instant,
    /// When the first such went out since the peer was heard.
    unanswered: Option<Instant>,
    /// The latest time that was handed in.
    now: Instant,
    stats: ConnectionStats,
}

impl Connection {
    pub(crate) fn new(now: Instant, parameters: Parameters) -> Self {
        let Parameters { role, config, mut entropy, address, .. } = parameters;
        let mut connection = Self {
            role,
            state: match role {
                Role::Client => ConnectionState::Confirming,
                Role::Server => ConnectionState::Responding,
            },
            protection: parameters.protection,
            local: parameters.local,
            remote: parameters.remote,
            path: match parameters.address_proven {
                true => Path::proven(address),
                false => Path::unproven(address),
            },
            welcome_message: parameters.welcome_message,
            next_skip: first_skip(&mut entropy),
            entropy,
            received: ReceivedDatagrams::new(),
            arrivals: Arrivals::new(),
            sent: SentDatagrams::new(),
            blocks_out: OutgoingBlocks::new(&config),
            blocks_in: IncomingBlocks::new(&config),
            packets_out: OutgoingPackets::default(),
            packets_in: IncomingPackets::default(),
            messages_out: MessageSender::new(MAX_QUEUED_MESSAGES, config.queued_message_bytes),
            messages_in: MessageReceiver::new(),
            // A client's ping makes its address proven; a server's makes the client answer.
            ping_due: true,
            path_response: None,
            closing: None,
            events: VecDeque::new(),
            idle_timeout: parameters.idle_timeout,
            peer_largest_block: parameters.largest_block,
            born: now,
            heard: now,
            asked: now,
            unanswered: None,
            now,
            stats: ConnectionStats::default(),
            config,
        };
        if role == Role::Client {
            connection.events.push_back(Event::Connected);
        }
        connection
    }

    /// What it is doing.
    #[must_use]
    pub const fn state(&self) -> ConnectionState {
        self.state
    }

    /// How it was configured.
    #[must_use]
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// Where the peer is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.path.address()
    }

    /// The round trip, as RFC 9002 keeps it.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        self.sent.rtt()
    }

    /// The largest block that the peer takes, in bytes.
    #[must_use]
    pub const fn peer_largest_block(&self) -> u64 {
        self.peer_largest_block
    }

    /// What it has counted.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats;
        stats.datagrams_lost = self.sent.stats().lost;
        let slices = self.blocks_out.stats();
        (stats.slices_sent, stats.slices_resent) = (slices.slices, slices.resent);
        stats.repair_slices_sent = slices.repairs;
        stats.packets_dropped = self.packets_in.dropped;
        stats.key_updates = self.protection.key_updates();
        stats.suite = self.protection.suite();
        stats
    }

    /// How far the block being sent is.
    #[must_use]
    pub fn sending(&self) -> Option<BlockProgress> {
        self.blocks_out.progress()
    }

    /// How far the block being received is.
    #[must_use]
    pub fn receiving(&self) -> Option<BlockProgress> {
        self.blocks_in.progress()
    }

    /// Changes what blocks may use of the link, in bits per second. A token may hold a limit, which stays.
    pub fn set_rate_bps(&mut self, rate_bps: u64) {
        self.blocks_out.set_rate_bps(rate_bps);
    }

    /// Changes how much blocks may take of the link, from the next slice on.
    pub fn set_urgency(&mut self, urgency: Urgency) {
        self.blocks_out.set_urgency(urgency);
    }

    /// Sends a block of any size. Its bytes are not copied.
    ///
    /// # Errors
    /// [`SendError`]; `TooLarge` if the peer takes no blocks of this size.
    pub fn send_block(&mut self, block: &Block) -> Result<BlockHandle, SendError> {
        self.open()?;
        let max = self.peer_largest_block;
        if block.data().len() as u64 > max {
            return Err(SendError::TooLarge { max });
        }
        if self.blocks_out.is_idle() {
            // Something new is to be said: whoever was silent is asked anew.
            self.unanswered = None;
        }
        self.blocks_out.send(self.now, block.clone(), &self.config)
    }

    /// Sends a time-critical packet of up to 256 KiB, once; what becomes of it is an event. Up to 1024 bytes
    /// it is one datagram, and in fragments above.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_packet(&mut self, data: impl Into<Bytes>) -> Result<Sequence, SendError> {
        self.open()?;
        self.packets_out.send(data.into(), self.config.queued_packet_bytes)
    }

    /// Sends a message of up to 1024 bytes: it arrives, once, in order.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_message(&mut self, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.open()?;
        self.messages_out.send(data.into()).map(|_number| ()).map_err(|error| match error {
            SendMessageError::TooLarge => SendError::TooLarge { max: MAX_MESSAGE_BYTES as u64 },
            _ => SendError::QueueFull,
        })
    }

    /// Lets the peer hear from this end at once, whatever there is to say: for a client whose address has
    /// changed. One that only receives would say nothing before its next keep-alive, for all that is sent to
    /// it goes to the old address.
    pub const fn ping(&mut self) {
        self.ping_due = true;
    }

    /// Whether everything that was sent to arrive (blocks and messages) is acknowledged.
    #[must_use]
    pub fn all_acked(&self) -> bool {
        self.blocks_out.is_idle() && self.messages_out.all_acked()
    }

    /// Closes, with a reason of up to 200 bytes for the peer. What is not acknowledged may be lost: wait for
    /// [`all_acked`](Self::all_acked) first where that matters.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if self.on(ConnectionNews::CloseHere) {
            let reason = crate::wire::frame::clipped(reason).into();
            let next_at = Instant::ZERO;
            self.closing = Some(Closing { code, reason, left: CLOSES, next_at });
            self.events.push_back(Event::Closed(CloseReason::Here(code)));
        }
    }

    /// The next thing the application should hear. Ask until `None`.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        // The end is told last: what came before it was acknowledged, and the peer relies on that.
        if !matches!(self.events.front(), None | Some(Event::Closed(_))) {
            return self.events.pop_front();
        }
        if let Some(packet) = self.packets_in.pop() {
            return Some(packet);
        }
        if let Some(message) = self.messages_in.pop() {
            return Some(Event::Message(message));
        }
        if let Some(block) = self.blocks_in.poll_event(self.now, &self.config) {
            return Some(block);
        }
        let end = self.events.pop_front();
        if self.events.is_empty() && self.events.capacity() > 0 {
            self.events = VecDeque::new();
        }
        end
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
            || self.packets_in.has_events()
            || self.messages_in.has_next()
            || self.blocks_in.has_events()
    }

    /// Ends it without a word, for a reason that the wire brought.
    pub(crate) fn end(&mut self, news: ConnectionNews, reason: CloseReason) {
        let was_closing = self.state == ConnectionState::Closing;
        if self.on(news) && !was_closing {
            self.events.push_back(Event::Closed(reason));
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.end_if_silent(now);
        if !self.state.is_open() {
            return;
        }
        if let Some(sender) = self.blocks_out.sender_mut() {
            sender.handle_timeout(now);
        }
        self.blocks_in.receiver.handle_timeout(now);
        self.after_blocks();
        let incoming = self.blocks_in.verdict(now, &self.config);
        if let Some(code) = self.blocks_out.verdict(now, &self.config).or(incoming) {
            return self.close(code, "");
        }
        self.pass_losses(now);
        if self.path.room() > 0 && self.sent.on_pto(now) {
            self.ping_due = true;
        }
        if self.keep_alive_at() <= now {
            self.asked = now;
            self.ping_due = true;
        }
    }

    fn end_if_silent(&mut self, now: Instant) {
        if self.state == ConnectionState::Closed || self.silence_at() > now {
            return;
        }
        let reason = match self.state {
            ConnectionState::Responding => CloseReason::NoAnswer,
            _ => CloseReason::TimedOut,
        };
        self.end(ConnectionNews::Silence, reason);
    }

    /// When silence ends it. A clock that jumped back only makes this later.
    fn silence_at(&self) -> Instant {
        match self.state {
            ConnectionState::Responding => self.born + self.config.handshake_timeout,
            _ => self.heard + self.idle_timeout,
        }
    }

    /// When a ping is due. Who only receives says nothing by himself, and if his NAT forgets him the sender
    /// speaks to nobody; so he speaks up when a block stands still.
    fn keep_alive_at(&self) -> Instant {
        let idle = self.asked + self.idle_timeout / 3;
        match self.blocks_in.progress() {
            Some(_) => idle.min(self.asked.max(self.heard) + BLOCK_SILENCE),
            None => idle,
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if let Some(closing) = &self.closing {
            return Some(closing.next_at).filter(|_| self.state == ConnectionState::Closing);
        }
        if !self.state.is_open() {
            return None;
        }
        let fixed = earliest(Some(self.silence_at()), Some(self.keep_alive_at()));
        let blocks = earliest(
            self.blocks_out.poll_deadline(&self.config),
            self.blocks_in.poll_deadline(&self.config),
        );
        let due = earliest(earliest(fixed, blocks), self.path.poll_timeout());
        earliest(due, self.transmit_at())
    }

    /// Memory that the peer makes this end hold, in bytes: blocks, packets and messages that are half here,
    /// or whole and not read.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.blocks_in.memory_bytes()
            + self.packets_in.memory_bytes()
            + self.messages_in.memory_bytes()
    }

    /// Drops what is here and not read: its memory is needed.
    pub(crate) fn let_go(&mut self) {
        self.blocks_in = IncomingBlocks::new(&self.config);
        self.packets_in.let_go();
        self.messages_in = MessageReceiver::new();
    }

    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.blocks_out.cap_rate_bps(rate_cap_bps);
    }

    pub(crate) fn clear(&mut self, pool: &mut FragmentPool) {
        self.packets_in.clear(pool);
    }

    pub(crate) const fn local_id(&self) -> WireId {
        self.local
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == ConnectionState::Closed
    }

    /// Whether it still waits for the client's first data.
    pub(crate) fn is_handshake(&self) -> bool {
        self.state == ConnectionState::Responding
    }

    /// A verified request of the client of this connection, first or copy.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.now = now;
        self.path.on_request(bytes);
        self.blocks_out.on_request(now, bytes + UDP_IPV4_BYTES);
    }

    /// What was learned of the way to the peer, if its address is proven.
    pub(crate) fn known_path(&self) -> Known {
        if self.is_handshake() { Known::NOTHING } else { self.blocks_out.known() }
    }

    pub(crate) const fn set_known_path(&mut self, known: Known) {
        self.blocks_out.set_known(known);
    }

    fn key_limits(&self) -> KeyLimits {
        KeyLimits { datagrams: self.config.datagrams_per_key(), lifetime: self.config.key_lifetime }
    }

    fn open(&self) -> Result<(), SendError> {
        if self.state.is_open() { Ok(()) } else { Err(SendError::NotOpen) }
    }

    /// Takes over what the chunk sender has to tell.
    fn after_blocks(&mut self) {
        let events = &mut self.events;
        self.blocks_out.poll(self.now, |handle| events.push_back(Event::BlockSent { handle }));
    }

    /// Returns whether the state has changed.
    fn on(&mut self, news: ConnectionNews) -> bool {
        match self.state.next(news) {
            Some(next) => {
                self.state = next;
                true
            }
            None => false,
        }
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        assert_eq!(
            self.closing.is_some() && !self.is_closed(),
            self.state == ConnectionState::Closing
        );
        assert!(self.state != ConnectionState::Responding || self.role == Role::Server);
        assert!(self.state != ConnectionState::Confirming || self.role == Role::Client);
        if let Some(sender) = self.blocks_out.sender() {
            sender.check_invariants();
        }
        self.blocks_in.receiver.check_invariants();
    }
}

/// The first number to skip: one of the first 256, but not the very first.
fn first_skip(entropy: &mut Entropy) -> u64 {
    1 + entropy.next_u64() % 255
}
