//! The application of most tests: one or more blocks, a game's packets, and a record of events.

use std::time::Duration;

use haulier_core::Instant;
use haulier_core::time::earliest;
use haulier_proto::connection::{Block, CloseCode, Connection, Event};

use super::{App, Start};

/// Blocks queued behind the one being sent, so that there is no pause between two.
const MAX_WAITING: usize = 2;

/// Receives the events of a [`Script`], except a game's packets.
pub trait Listener: 'static {
    /// An event of the connection.
    fn on_event(&mut self, now: Instant, event: Event);
}

impl Listener for () {
    fn on_event(&mut self, _now: Instant, _event: Event) {}
}

/// All events, and when they came.
pub type Events = Vec<(Instant, Event)>;

impl Listener for Events {
    fn on_event(&mut self, now: Instant, event: Event) {
        self.push((now, event));
    }
}

/// What to send on a connection; also counts what arrives.
#[derive(Clone, Debug, Default)]
pub struct Script<L = Events> {
    /// A block, and the number of times that it must still be sent.
    pub blocks: Option<(Block, usize)>,
    /// A game beside the blocks.
    pub game: Option<Game>,
    /// Closes after it has received this many blocks, and all of its own are acked; `None` for never.
    pub leaves_after_blocks: Option<usize>,
    /// When each received block was complete.
    pub received: Vec<Instant>,
    /// When each packet of the game was due. Includes those that were refused: to a player they are missing
    /// as well.
    pub packets_sent: Vec<Instant>,
    /// When each received packet was sent, and its transit time.
    pub packets: Vec<(Instant, Duration)>,
    /// The observer of events.
    pub heard: L,
    /// When the client started.
    begun: Instant,
    /// Blocks queued and not yet sent.
    queued: usize,
    next_packet: Option<Instant>,
}

/// Packets of a game on frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Game {
    /// The interval between packets.
    pub interval: Duration,
    /// Bytes of each.
    pub bytes: usize,
    /// When blocks start; before that only the game uses the connection.
    pub blocks_from: Instant,
}

impl Script {
    /// Sends nothing and does not close.
    #[must_use]
    pub fn idle() -> Self {
        Self::default()
    }

    /// When a client had the first event of this kind, from its start on.
    #[must_use]
    pub fn first(&self, is_it: impl Fn(&Event) -> bool) -> Option<Duration> {
        let found = self.heard.iter().find(|(_, event)| is_it(event))?;
        Some(found.0.since(self.begun))
    }
}

impl<L> Script<L> {
    /// Sends `block` this many times, once connected.
    #[must_use]
    pub fn sending(self, block: Block, times: usize) -> Self {
        Self { blocks: Some((block, times)), ..self }
    }

    /// Closes after this many blocks.
    #[must_use]
    pub fn leaving_after(self, blocks: usize) -> Self {
        Self { leaves_after_blocks: Some(blocks), ..self }
    }

    /// When a client's first block was complete, from its start on.
    #[must_use]
    pub fn joined_after(&self) -> Option<Duration> {
        self.received.first().map(|at| at.since(self.begun))
    }

    fn blocks_at(&self) -> Option<Instant> {
        let (_, left) = self.blocks.as_ref()?;
        let has_room = *left > 0 && self.queued <= MAX_WAITING;
        has_room.then(|| self.game.map_or(Instant::ZERO, |game| game.blocks_from))
    }
}

impl<L: Listener> App for Script<L> {
    fn begin(&mut self, now: Instant, _start: &mut Start) {
        self.begun = now;
    }

    fn hear(&mut self, now: Instant, event: Event) {
        match &event {
            Event::Connected => self.next_packet = self.game.map(|_| Instant::ZERO),
            Event::BlockSent { .. } => self.queued = self.queued.saturating_sub(1),
            Event::Block { .. } => self.received.push(now),
            Event::Packet { data, .. } => {
                let stamp = data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                let sent_at = Instant::from_nanos(stamp);
                self.packets.push((sent_at, now.since(sent_at)));
                return;
            }
            _ => {}
        }
        self.heard.on_event(now, event);
    }

    fn wakes_at(&self) -> Option<Instant> {
        earliest(self.next_packet, self.blocks_at().filter(|_| self.queued == 0))
    }

    fn is_due(&self, now: Instant) -> bool {
        earliest(self.next_packet, self.blocks_at()).is_some_and(|at| at <= now)
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        if self.blocks_at().is_some_and(|at| at <= now)
            && let Some((block, left)) = &mut self.blocks
        {
            while *left > 0
                && self.queued <= MAX_WAITING
                && connection.send_block(now, block).is_ok()
            {
                *left -= 1;
                self.queued += 1;
            }
        }
        if let Some(game) = &self.game
            && self.next_packet.is_some_and(|at| at <= now)
        {
            let mut packet = vec![0; game.bytes.max(8)];
            packet[..8].copy_from_slice(&now.as_nanos().to_le_bytes());
            let _full = connection.send_packet(packet);
            self.packets_sent.push(now);
            self.next_packet = Some(now + game.interval);
        }
        let has_enough = |blocks| self.received.len() >= blocks;
        if self.leaves_after_blocks.is_some_and(has_enough) && connection.all_acked() {
            connection.close(now, CloseCode::DONE, "");
        }
    }
}
