//! A peer with the right keys, under whose datagrams a server and a client must keep their promises.

use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig, Urgency};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerMachine};
use haulier_proto::{Instant, Machine};

use crate::address;
use crate::attack::raw::{Link, RawClient, RawServer};
use crate::hosts::PROTOCOL_ID;

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

struct Run {
    end: End,
    link: Link,
    reads: bool,
}

impl Run {
    fn new(first: u8, now: Instant) -> Option<Self> {
        let connection = ConnectionConfig {
            urgency: if first & 2 != 0 { Urgency::LoadScreen } else { Urgency::DuringPlay },
            unread_block_bytes: 1 << 16,
            largest_block: 1 << 20,
            ..ConnectionConfig::default()
        };
        // In mode `open`: the seal is a checksum, and a fuzzer runs ten times as fast.
        if first & 1 == 0 {
            let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
            let config = ServerConfig::new(PROTOCOL_ID, credentials);
            let mut server =
                ServerMachine::new(now, 0, ServerConfig { connection, ..config }, [1; 32]);
            let mut raw = RawClient::new(None, 1);
            server.handle_datagram(now, address(2), &mut raw.request()).ok()?;
            let id = server.connections().next()?;
            let block = Block::new(1, vec![3; 70_000]);
            server.connection_mut(id)?.send_block(now, &block).ok()?;
            let mut out = Vec::new();
            while server.poll_datagram(now, &mut out).is_some() {
                let _plaintext = raw.handle(now, &out);
            }
            Some(Self { end: End::Server(Box::new(server)), link: raw.link?, reads: true })
        } else {
            let config = ClientConfig::new(address(1), PROTOCOL_ID, Credentials::Open);
            let config = ClientConfig { connection, ..config };
            let mut client = ClientMachine::new(now, config, [1; 32]).ok()?;
            let mut out = Vec::new();
            if client.poll_datagram(now, &mut out).is_none() {
                return None;
            }
            let mut raw = RawServer::answer(None, &out, 1)?;
            let mut response = raw.response(&[1]);
            client.handle_datagram(now, client.server(), &mut response).ok()?;
            let block = Block::new(1, vec![3; 70_000]);
            client.connection_mut()?.send_block(now, &block).ok()?;
            Some(Self { end: End::Client(Box::new(client)), link: raw.link, reads: true })
        }
    }

    fn give(&mut self, now: Instant, plaintext: &[u8]) {
        let plaintext = &plaintext[..plaintext.len().min(1171)];
        let mut datagram = self.link.seal(plaintext);
        let _outcome = match &mut self.end {
            End::Server(server) => server.handle_datagram(now, address(2), &mut datagram),
            End::Client(client) => client.handle_datagram(now, client.server(), &mut datagram),
        };
    }

    fn act(&mut self, now: Instant, op: u8) {
        self.reads = op & 1 != 0;
        let connection = match &mut self.end {
            End::Server(server) => {
                let id = server.connections().next();
                id.and_then(|id| server.connection_mut(id))
            }
            End::Client(client) => client.connection_mut(),
        };
        let Some(connection) = connection else { return };
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
        let mut out = Vec::new();
        let mut sent = 0;
        let reads = self.reads;
        let deadline = match &mut self.end {
            End::Server(server) => {
                server.handle_timeout(now);
                while reads && server.poll_event(now).is_some() {}
                while server.poll_datagram(now, &mut out).is_some() {
                    sent += 1;
                    assert!(out.len() <= 1200 && sent <= 600, "{sent} datagrams at one moment");
                }
                while reads && server.poll_event(now).is_some() {}
                server.check_invariants();
                server.poll_timeout()
            }
            End::Client(client) => {
                client.handle_timeout(now);
                while reads && client.poll_event(now).is_some() {}
                while client.poll_datagram(now, &mut out).is_some() {
                    sent += 1;
                    assert!(out.len() <= 1200 && sent <= 600, "{sent} datagrams at one moment");
                }
                client.check_invariants();
                client.poll_timeout()
            }
        };
        // Reading may have woken it once more; a deadline in the past beside that would spin.
        if !reads {
            assert!(deadline.is_none_or(|at| at > now), "a deadline left behind: {deadline:?}");
        }
    }
}
