//! A server that gives a block to whoever asks.

use std::net::SocketAddr;

use haulier_proto::connection::{Block, CloseCode, Event};
use haulier_proto::server::{ConnectionId, ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::{Instant, Machine};

use crate::join::AmplificationMeter;
use crate::{Host, Rng};

/// What it does with a client that asks.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Sends this block.
    Block(Block),
    /// Lets it in, and sends nothing.
    Nothing,
    /// Closes.
    Refuse,
}

/// A server.
#[derive(Debug)]
pub struct ServerHost {
    /// The server.
    pub server: ServerMachine,
    /// What it heard, of whom, and when. Packets are not kept.
    pub events: Vec<(Instant, ConnectionId, ServerEvent)>,
    /// What it does with who asks.
    pub answer: Answer,
    /// Messages and packets come back to their sender.
    pub echoes: bool,
    /// What it sent to addresses that are not proven.
    pub meter: AmplificationMeter,
}

impl ServerHost {
    /// A server that answers so.
    #[must_use]
    pub fn new(config: ServerConfig, answer: Answer, seed: u64) -> Self {
        Self::starting_at(Instant::ZERO, config, answer, seed)
    }

    /// A server that begins its life at `now`, as after a crash.
    #[must_use]
    pub fn starting_at(now: Instant, config: ServerConfig, answer: Answer, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&Rng::stream(seed, 78).bytes(32));
        Self {
            server: ServerMachine::new(
                now,
                UNIX_TIME + now.since(Instant::ZERO).as_secs(),
                config,
                bytes,
            )
            .expect("a configuration that works"),
            events: Vec::new(),
            answer,
            echoes: false,
            meter: AmplificationMeter::default(),
        }
    }

    fn hear(&mut self, now: Instant) {
        while let Some((id, event)) = self.server.poll_event(now) {
            if let Some(connection) = self.server.connection_mut(id) {
                match &event {
                    ServerEvent::Connecting { .. } => match &self.answer {
                        Answer::Block(block) => {
                            connection.send_block(now, block).expect("room for one block");
                        }
                        Answer::Nothing => {}
                        Answer::Refuse => connection.close(now, CloseCode::NOT_ACCEPTED, "no"),
                    },
                    ServerEvent::Connection(Event::Message(data)) if self.echoes => {
                        let _full = connection.send_message(data.clone());
                    }
                    ServerEvent::Connection(Event::Packet { data, .. }) if self.echoes => {
                        let _full = connection.send_packet(data.clone());
                    }
                    _ => {}
                }
            }
            if !matches!(event, ServerEvent::Connection(Event::Packet { .. })) {
                self.events.push((now, id, event));
            }
        }
    }
}

/// The time of day at the beginning of every simulation: 2026-11-21.
pub const UNIX_TIME: u64 = 1_795_219_200;

impl Host for ServerHost {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let (bytes, head) = (datagram.len(), datagram[..datagram.len().min(32)].to_vec());
        let taken = self.server.handle_datagram(now, from, datagram).is_ok();
        self.meter.on_received(from, &head, bytes, taken);
        self.hear(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.hear(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let to = self.server.poll_datagram(now, datagram)?.remote;
        self.meter.on_sent(to, datagram.len());
        Some(to)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }

    fn check_invariants(&self) {
        self.meter.check();
    }
}
