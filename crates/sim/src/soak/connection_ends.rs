//! The two ends of a soaked connection: programs that check what they receive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, BlockOptions, CloseCode, CloseReason, Connection, Event, Order,
};

use crate::Rng;
use crate::hosts::{App, ClientHost, Start};

/// The interval between packets, as in a game.
const FRAME: Duration = Duration::from_millis(50);

/// The results of an end, over all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) blocks: u64,
    pub(super) packets: u64,
    pub(super) sessions_ended: u64,
    slices: u64,
    messages: u64,
}

impl Tally {
    /// Packets and sessions do not count as progress: with sessions, repeated failures would count.
    pub(super) const fn progress(&self) -> u64 {
        self.blocks + self.messages + self.slices
    }
}

/// Bytes of a chunk's repair slices, which are made when they are first needed.
const REPAIR_BYTES: usize = 256 << 10;

/// Bytes of what a session remembers to check what arrives.
const REMEMBERED_BYTES: usize = 32 << 10;

/// Bytes of a packet or a message in its queue besides its own, with what the session remembers of it.
const QUEUED_BYTES: usize = 200;

/// Channels of messages, and the one whose messages are unordered.
const CHANNELS: u32 = 3;
const UNORDERED: u8 = 2;

/// The traffic in one direction of a session.
#[derive(Clone, Debug, Default)]
struct Plan {
    key: u64,
    blocks: Vec<usize>,
    /// Blocks that do not come to their end: they are cancelled, or declined.
    doomed: u64,
    messages: u32,
}

/// The block that a liar gets: some thousand datagrams to acknowledge.
const LIARS_BLOCK_BYTES: usize = 4 << 20;

/// The first tag of those.
const DOOMED: u64 = 1_000;

/// Their size.
const DOOMED_BYTES: usize = 600_000;

impl Plan {
    fn draw(seed: u64, client: u32, session: u32, direction: u64) -> Self {
        let purpose = u64::from(client) << 40 | u64::from(session) << 8 | direction;
        let mut rng = Rng::stream(seed ^ 0x5eed, purpose);
        let blocks = (0..rng.below(4)).map(|_| match rng.below(6) {
            0 => 0,
            1 => rng.between(100_000, 300_000) as usize,
            _ => rng.between(1, 20_000) as usize,
        });
        let blocks = blocks.collect();
        let messages = *rng.pick(&[0, 5, 50, 600]);
        let key = rng.next_u64();
        Self { key, blocks, doomed: *rng.pick(&[0, 0, 1, 4, 40]), messages }
    }

    fn bytes(&self, kind: u64, index: u32, length: usize) -> Vec<u8> {
        Rng::stream(self.key, kind << 32 | u64::from(index)).bytes(length)
    }

    fn block(&self, index: usize) -> Option<Vec<u8>> {
        Some(self.bytes(1, index as u32, *self.blocks.get(index)?))
    }

    fn doomed(&self, tag: u64) -> Vec<u8> {
        self.bytes(4, (tag - DOOMED) as u32, DOOMED_BYTES)
    }

    /// The message with this index. On each channel a few are as long as several datagrams.
    fn message(&self, index: u32) -> Vec<u8> {
        let mut rng = Rng::stream(self.key, 7 << 32 | u64::from(index));
        let length = if rng.below(50) == 0 { rng.below(5_000) } else { rng.below(300) };
        [&index.to_le_bytes()[..], &self.bytes(2, index, length as usize)].concat()
    }

    /// The channel of a message, and how it is delivered there.
    const fn channel(index: u32) -> (u8, Order) {
        let channel = (index % CHANNELS) as u8;
        (channel, if channel == UNORDERED { Order::Unordered } else { Order::Ordered })
    }

    fn packet(&self, index: u32) -> Vec<u8> {
        let length = Rng::stream(self.key, 8 << 32 | u64::from(index)).below(2_500) as usize;
        [&index.to_le_bytes()[..], &self.bytes(3, index, length)].concat()
    }
}

/// One end of a session.
#[derive(Debug, Default)]
pub(super) struct Session {
    out: Plan,
    back: Plan,
    blocks_sent: usize,
    /// Blocks that are not acknowledged, and their sizes.
    blocks_waiting: BTreeMap<BlockHandle, usize>,
    /// Doomed blocks sent so far, and the one that may be on its way.
    doomed_sent: u64,
    doomed: Option<BlockHandle>,
    /// Doomed blocks of the other end that are declined next.
    unwanted: Vec<BlockNumber>,
    /// A liar's: it gets a block, to lie about what arrived of it, and nothing it sends is wrong.
    is_of_liar: bool,
    messages_sent: u32,
    /// Bytes that they take while they wait.
    message_bytes: usize,
    packets_sent: u32,
    next_packet: Instant,
    /// Packets that are neither acked nor lost, and the bytes that they take. Until the server has received a
    /// datagram from an address it may not send there, and their queue grows to as much as the connection
    /// accepts.
    packets_waiting: BTreeMap<u16, usize>,
    blocks: BTreeSet<u64>,
    messages: BTreeSet<u32>,
    packets: BTreeSet<u32>,
    pub(super) tally: Tally,
    pub(super) wrong: Option<String>,
}

impl Session {
    /// The server's end of the session that a client requests.
    pub(super) fn of_request(seed: u64, request: &[u8], now: Instant) -> Self {
        if request.is_empty() {
            let out = Plan { key: seed, blocks: vec![LIARS_BLOCK_BYTES], ..Plan::default() };
            return Self { is_of_liar: true, ..Self::new(out, Plan::default(), now) };
        }
        let number = |at: usize| {
            let bytes = request.get(at..at + 4).and_then(|b| b.try_into().ok());
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let plan = |direction| Plan::draw(seed, number(0), number(4), direction);
        Self::new(plan(1), plan(0), now)
    }

    fn new(out: Plan, back: Plan, now: Instant) -> Self {
        Self { out, back, next_packet: now, ..Self::default() }
    }

    fn take(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::PacketAcked { sequence } | Event::PacketLost { sequence } => {
                let size = self.packets_waiting.remove(&sequence.get());
                size.ok_or_else(|| format!("packet {sequence:?} has two fates"))?;
            }
            Event::BlockDeclined { handle, .. } => {
                self.blocks_waiting.remove(handle);
            }
            Event::BlockSent { handle } => {
                let size = self.blocks_waiting.remove(handle);
                size.ok_or_else(|| format!("{handle:?} was sent twice"))?;
            }
            _ if self.is_of_liar => {}
            Event::Block { tag, data } if *tag >= DOOMED => self.take_doomed(*tag, data)?,
            Event::BlockAnnounced { block, tag, .. } if *tag >= DOOMED && tag % 2 == 1 => {
                self.unwanted.push(*block);
            }
            Event::Block { tag, data } => {
                let expected = self.back.block(*tag as usize);
                if expected.as_deref() != Some(&data[..]) || !self.blocks.insert(*tag) {
                    return Err(format!("block {tag} of {} bytes", data.len()));
                }
                self.tally.blocks += 1;
            }
            Event::Message { channel, data } => self.take_message(*channel, data)?,
            Event::Packet { data, .. } => {
                let index = data.first_chunk().map(|index| u32::from_le_bytes(*index));
                let index = index.filter(|&index| self.back.packet(index) == data[..]);
                let index = index.ok_or("a packet that was never sent")?;
                if !self.packets.insert(index) {
                    return Err(format!("packet {index} twice"));
                }
                self.tally.packets += 1;
            }
            Event::BlockProgress { .. } => self.tally.slices += 1,
            // Its client was informed that everything it sent has arrived.
            Event::Closed(CloseReason::There { code, .. })
                if *code == CloseCode::DONE && !self.has_all() =>
            {
                return Err(format!("acked and not delivered: {}", self.received()));
            }
            _ => {}
        }
        Ok(())
    }

    /// A block may be whole before it is cancelled or declined.
    fn take_doomed(&self, tag: u64, data: &[u8]) -> Result<(), String> {
        if tag >= DOOMED + self.back.doomed || self.back.doomed(tag) != data {
            return Err(format!("doomed block {tag} of {} bytes", data.len()));
        }
        Ok(())
    }

    /// A message comes once, and on its channel after all that were sent before it, unless it is unordered.
    fn take_message(&mut self, channel: u8, data: &[u8]) -> Result<(), String> {
        let index = data.first_chunk().map(|index| u32::from_le_bytes(*index));
        let index = index.filter(|&index| {
            index < self.back.messages
                && Plan::channel(index).0 == channel
                && self.back.message(index) == data
        });
        let index = index.ok_or_else(|| format!("a message of {} bytes is wrong", data.len()))?;
        let before = index.checked_sub(CHANNELS).filter(|_| channel != UNORDERED);
        if before.is_some_and(|before| !self.messages.contains(&before)) {
            return Err(format!("message {index} came too early"));
        }
        if !self.messages.insert(index) {
            return Err(format!("message {index} twice"));
        }
        self.tally.messages += 1;
        Ok(())
    }

    fn has_all(&self) -> bool {
        self.blocks.len() == self.back.blocks.len()
            && self.messages.len() == self.back.messages as usize
    }

    fn has_sent_all(&self) -> bool {
        self.blocks_sent == self.out.blocks.len()
            && self.doomed_sent == self.out.doomed
            && self.messages_sent == self.out.messages
    }

    fn received(&self) -> String {
        let (blocks, messages) = (self.back.blocks.len(), self.back.messages);
        let (received, read) = (self.blocks.len(), self.messages.len());
        format!("{received} of {blocks} blocks, {read} of {messages} messages")
    }
}

impl App for Session {
    fn hear(&mut self, _now: Instant, event: Event) {
        if let Err(what) = self.take(&event) {
            self.wrong = Some(what);
        }
    }

    fn own_bytes(&self) -> u64 {
        let packets: usize = self.packets_waiting.values().sum();
        let queued = REMEMBERED_BYTES + packets + self.message_bytes;
        let with_repair = |&bytes: &usize| bytes + bytes.div_ceil(REPAIR_BYTES) * REPAIR_BYTES;
        (queued + self.blocks_waiting.values().map(with_repair).sum::<usize>()) as u64
    }

    fn wakes_at(&self) -> Option<Instant> {
        Some(self.next_packet)
    }

    fn is_due(&self, now: Instant) -> bool {
        !self.has_sent_all() || self.next_packet <= now
    }

    /// Sends as much as the connection accepts.
    fn act(&mut self, now: Instant, connection: &mut Connection) {
        while let Some(bytes) = self.out.block(self.blocks_sent) {
            let (size, block) = (bytes.len(), Block::new(self.blocks_sent as u64, bytes));
            // The second goes before the others.
            let options = BlockOptions::default().with_priority(u8::from(self.blocks_sent == 1));
            let Ok(handle) = connection.send_block_with(now, &block, options) else { break };
            self.blocks_waiting.insert(handle, size);
            self.blocks_sent += 1;
        }
        while self.messages_sent < self.out.messages {
            let (channel, order) = Plan::channel(self.messages_sent);
            let message = self.out.message(self.messages_sent);
            let bytes = message.len() + QUEUED_BYTES;
            if connection.send_message_on(channel, order, message).is_err() {
                break;
            }
            self.messages_sent += 1;
            self.message_bytes += bytes;
        }
        for block in self.unwanted.drain(..) {
            let _finished = connection.decline_block(now, block, 7);
        }
        if self.next_packet <= now {
            self.doom(now, connection);
            self.next_packet = now + FRAME;
            let packet = self.out.packet(self.packets_sent);
            let bytes = packet.len() + QUEUED_BYTES;
            if let Ok(sequence) = connection.send_packet(packet) {
                self.packets_waiting.insert(sequence.get(), bytes);
                self.packets_sent += 1;
            }
        }
    }
}

impl Session {
    /// Gives the last doomed block up, unless the other end does not want it, and begins the next.
    fn doom(&mut self, now: Instant, connection: &mut Connection) {
        let is_declined = self.doomed_sent.is_multiple_of(2);
        if let Some(handle) = self.doomed.take_if(|_| !is_declined)
            && connection.cancel_block(now, handle, 9)
        {
            self.blocks_waiting.remove(&handle);
        }
        if self.doomed_sent < self.out.doomed {
            let tag = DOOMED + self.doomed_sent;
            let block = Block::new(tag, self.out.doomed(tag));
            let options = BlockOptions::default().with_priority(2);
            if let Ok(handle) = connection.send_block_with(now, &block, options) {
                self.blocks_waiting.insert(handle, DOOMED_BYTES);
                self.doomed = Some(handle);
                self.doomed_sent += 1;
            }
        }
    }
}

/// A client's program: it starts sessions until one is finished.
#[derive(Debug)]
pub(super) struct Sessions {
    seed: u64,
    number: u32,
    pub(super) session: Session,
    sessions: u32,
    is_finished: bool,
    ended: Vec<CloseReason>,
}

impl Sessions {
    pub(super) fn new(seed: u64, number: u32) -> Self {
        let plan = |direction| Plan::draw(seed, number, 0, direction);
        let session = Session::new(plan(0), plan(1), Instant::ZERO);
        Self { seed, number, session, sessions: 0, is_finished: false, ended: Vec::new() }
    }
}

impl App for Sessions {
    fn begin(&mut self, now: Instant, start: &mut Start) {
        self.sessions += 1;
        let plan = |direction| Plan::draw(self.seed, self.number, self.sessions, direction);
        let (tally, wrong) = (self.session.tally, self.session.wrong.take());
        self.session = Session { tally, wrong, ..Session::new(plan(0), plan(1), now) };
        start.config.request = [self.number.to_le_bytes(), self.sessions.to_le_bytes()].concat();
        let stream = 1_000_000 + u64::from(self.number) * 10_000 + u64::from(self.sessions);
        start.seed = Rng::stream(self.seed, stream).key();
    }

    fn hear(&mut self, now: Instant, event: Event) {
        if let Event::Closed(reason) = &event {
            self.session.tally.sessions_ended += u64::from(!self.is_finished);
            self.ended.push(reason.clone());
        } else {
            self.session.hear(now, event);
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        self.session.wakes_at()
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        self.session.act(now, connection);
        if self.session.has_all() && self.session.has_sent_all() && connection.all_acked() {
            connection.close(now, CloseCode::DONE, "");
            self.is_finished = true;
        }
    }

    /// A little later, as a program would.
    fn begins_again(&self, now: Instant) -> Option<Instant> {
        (!self.is_finished).then(|| now + Duration::from_millis(500))
    }
}

impl ClientHost<Sessions> {
    /// The program crashes and restarts, unless it has finished.
    pub(super) fn crash_early(&mut self, now: Instant) {
        if !self.app.is_finished {
            self.app.session.tally.sessions_ended += 1;
            self.crash(now + Duration::from_millis(100));
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.app.is_finished && self.is_over()
    }

    pub(super) fn describe(&self) -> String {
        let Sessions { number, sessions, session, ended, .. } = &self.app;
        let state = self.client.as_ref().and_then(|client| client.connection());
        let state = state.map(Connection::state);
        let received = session.received();
        format!("client {number} in session {sessions}: {received}, {state:?}, ended {ended:?}")
    }
}
