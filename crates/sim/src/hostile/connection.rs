//! A peer with the right keys, under whose datagrams a server and a client must keep their promises.

use std::time::Duration;

use haulier_core::{Batch, FourTuple, Instant, Machine};
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{Block, Connection, ConnectionConfig, Urgency};
use haulier_proto::server::ServerMachine;

use crate::address;
use crate::attack::raw::{Link, RawClient, RawServer};
use crate::hosts::{Keyed, configs};

/// Datagrams at one moment that are a flood.
const FLOOD: usize = 600;

/// A script of frames, sealed as the peer would, of time steps and of calls, against a server (if its first
/// byte is even) or a client (if it is odd) that is itself sending; everything is checked after each step.
///
/// # Panics
/// If an invariant does not hold, a deadline is left behind, or the machine floods.
pub fn connection(script: &[u8]) {
    let Some((&first, script)) = script.split_first() else { return };
    let mut now = Instant::from_millis(1000);
    let Some(mut run) = Run::new(first, now) else { return };
    let mut rest = script;
    while let Some((&op, after)) = rest.split_first() {
        rest = after;
        match op {
            0..=199 => {
                // The next bytes are a plaintext, so the fuzzer makes frames by itself.
                let length = usize::from(op) * 6;
                let (plaintext, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                run.give(now, plaintext);
            }
            200..=239 => now = now + Duration::from_millis(1 << ((op - 200) / 3)),
            _ => run.act(now, op),
        }
        run.settle(now);
    }
}

enum End {
    Server(Box<ServerMachine>),
    Client(Box<ClientMachine>),
}

impl End {
    /// The machine, and where its peer is.
    fn machine(&mut self) -> (&mut dyn Machine, FourTuple) {
        match self {
            Self::Server(server) => (&mut **server, address(2).into()),
            Self::Client(client) => (&mut **client, address(1).into()),
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Server(server) => {
                let id = server.connections().next()?;
                server.connection_mut(id)
            }
            Self::Client(client) => client.connection_mut(),
        }
    }

    fn read(&mut self, now: Instant) {
        match self {
            Self::Server(server) => while server.poll_event(now).is_some() {},
            Self::Client(client) => while client.poll_event(now).is_some() {},
        }
    }

    fn check_invariants(&self) {
        match self {
            Self::Server(server) => server.check_invariants(),
            Self::Client(client) => client.check_invariants(),
        }
    }
}

struct Run {
    end: End,
    link: Link,
    reads: bool,
}

impl Run {
    fn new(first: u8, now: Instant) -> Option<Self> {
        let connection = ConnectionConfig::default()
            .with_urgency(if first & 2 != 0 { Urgency::LoadScreen } else { Urgency::DuringPlay })
            .with_max_unread_block_bytes(1 << 16)
            .with_max_block_bytes(1 << 20);
        // In mode `open`: the seal is a checksum, and a fuzzer runs ten times as fast.
        let (server, client) = configs(Keyed::Open, connection);
        let block = Block::new(1, vec![3; 70_000]);
        let mut out = Vec::new();
        if first & 1 == 0 {
            let mut server = ServerMachine::new(now, 0, server, [1; 32]).ok()?;
            let mut raw = RawClient::new(None, 1);
            server.handle_datagram(now, address(2), &mut raw.request()).ok()?;
            let mut end = End::Server(Box::new(server));
            end.connection()?.send_block(now, &block).ok()?;
            while end.machine().0.poll_datagram(now, &mut out).is_some() {
                let _plaintext = raw.handle(now, &out);
            }
            Some(Self { end, link: raw.link?, reads: true })
        } else {
            let mut client = ClientMachine::new(now, client, [1; 32]).ok()?;
            client.poll_datagram(now, &mut out)?;
            let mut raw = RawServer::answer(None, &out, 1)?;
            client.handle_datagram(now, address(1), &mut raw.response(&[1])).ok()?;
            client.connection_mut()?.send_block(now, &block).ok()?;
            Some(Self { end: End::Client(Box::new(client)), link: raw.link, reads: true })
        }
    }

    fn give(&mut self, now: Instant, plaintext: &[u8]) {
        let plaintext = &plaintext[..plaintext.len().min(1171)];
        let mut datagram = self.link.seal(plaintext);
        let (machine, from) = self.end.machine();
        machine.handle_datagram(now, from, &mut datagram);
    }

    fn act(&mut self, now: Instant, op: u8) {
        self.reads = op & 1 != 0;
        let Some(connection) = self.end.connection() else { return };
        match op & 6 {
            0 => {
                let _full = connection.send_packet(vec![op; 3000]);
            }
            2 => {
                let _full = connection.send_message(vec![op; 100]);
            }
            4 => {
                let _full = connection.send_block(now, &Block::new(2, vec![op; 2000]));
            }
            _ => {}
        }
    }

    fn settle(&mut self, now: Instant) {
        self.end.machine().0.handle_timeout(now);
        let mut batch = Batch::new(FLOOD + 1);
        for _ in 0..2 {
            if self.reads {
                self.end.read(now);
            }
            self.end.machine().0.poll_transmit(now, &mut batch);
        }
        assert!(!batch.is_full(), "a flood at one moment");
        assert!(batch.iter().all(|(_, datagram)| datagram.len() <= 1200));
        self.end.check_invariants();
        // Reading may have woken it once more; a deadline in the past beside that would spin.
        if !self.reads {
            let deadline = self.end.machine().0.poll_timeout();
            assert!(deadline.is_none_or(|at| at > now), "a deadline left behind: {deadline:?}");
        }
    }
}
