//! The two ends: lean, for there are thousands of one and millions of datagrams at the other.

use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{Block, CloseCode, Event};
use haulier_proto::server::{ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_sim::Host;
use haulier_sim::hosts::UNIX_TIME;

/// Gives its block to every client.
pub(super) struct Server {
    pub(super) server: ServerMachine,
    pub(super) most_connections: usize,
    block: Block,
}

impl Server {
    pub(super) fn new(block: Block, config: ServerConfig, seed: [u8; 32]) -> Self {
        let server = ServerMachine::new(Instant::ZERO, UNIX_TIME, config, seed)
            .expect("a configuration that works");
        Self { server, most_connections: 0, block }
    }

    fn turn(&mut self, now: Instant) {
        while let Some((id, event)) = self.server.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event
                && let Some(connection) = self.server.connection_mut(id)
            {
                // Refused if it has ended meanwhile.
                let _refused = connection.send_block(now, &self.block);
                self.most_connections = self.most_connections.max(self.server.stats().connections);
            }
        }
    }
}

impl Machine for Server {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let _counted = self.server.handle_marked_datagram(now, path, ecn, datagram);
        self.turn(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.turn(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.server.poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }
}

impl Host for Server {}

/// A client that leaves when it has its block. It joins at once.
pub(super) struct Joiner {
    machine: Option<Box<ClientMachine>>,
    pub(super) took: Option<Duration>,
    pub(super) why: Option<String>,
}

impl Joiner {
    pub(super) fn new(config: ClientConfig, seed: [u8; 32]) -> Self {
        let machine = ClientMachine::new(Instant::ZERO, config, seed).expect("a configuration");
        Self { machine: Some(Box::new(machine)), took: None, why: None }
    }

    /// Whether it has its block, or will not get it.
    pub(super) const fn is_over(&self) -> bool {
        self.took.is_some() || self.why.is_some()
    }

    fn turn(&mut self, now: Instant) {
        let Some(machine) = &mut self.machine else { return };
        while let Some(event) = machine.poll_event(now) {
            match event {
                Event::Block { .. } => {
                    self.took = Some(now.since(Instant::ZERO));
                    machine.close(now, CloseCode::DONE, "");
                }
                Event::Closed(reason) if self.took.is_none() => {
                    self.why = Some(reason.to_string());
                }
                _ => {}
            }
        }
        if machine.is_closed() && machine.poll_timeout().is_none() {
            self.machine = None;
        }
    }
}

impl Machine for Joiner {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        if let Some(machine) = &mut self.machine {
            let _counted = machine.handle_marked_datagram(now, path, ecn, datagram);
            self.turn(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(machine) = &mut self.machine {
            machine.handle_timeout(now);
            self.turn(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.machine.iter_mut().for_each(|machine| machine.poll_transmit(now, batch));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.as_ref().and_then(|machine| machine.poll_timeout())
    }
}

impl Host for Joiner {}
