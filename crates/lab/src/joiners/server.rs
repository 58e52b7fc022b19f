//! The server of a crowd: lean, for it has millions of datagrams.

use haulier_proto::connection::Block;
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
