//! A server or a client with one connection, whose peer is in the hands of a test, under the bounds.
//!
//! In mode `open`, because what is behind the seal is the same in all modes and a checksum is ten times as
//! fast. The invariant: every call of the machine is metered, and every datagram in and out is counted.

use haulier_core::{Batch, FourTuple, Instant, Machine};
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{Block, Connection, ConnectionConfig};
use haulier_proto::internals::{Frame, Role, Work};
use haulier_proto::server::ServerMachine;

use super::bounds::{Budget, State, too_dear_at_once};
use super::{Finding, Meter, Traffic};
use crate::address;
use crate::attack::raw::{Link, RawClient, RawServer};
use crate::hosts::{Keyed, UNIX_TIME, configs};

/// Repair slices of a chunk, in bytes: they belong to the block that this end's application gave.
const REPAIR_BYTES: u64 = 256 << 10;

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 256 << 10;

/// A machine under test.
#[derive(Debug)]
enum Machines {
    Server(Box<ServerMachine>),
    Client(Box<ClientMachine>),
}

/// One end under test, and the keys of the other.
pub struct Victim {
    machine: Machines,
    /// What the peer seals with.
    pub link: Link,
    meter: Meter,
    traffic: Traffic,
    budget: Budget,
    own_bytes: u64,
    /// Given blocks stay here, so that they are not freed in a metered call.
    blocks: Vec<Block>,
}

impl Victim {
    /// A machine in this role, connected; `None` if the handshake failed.
    #[must_use]
    pub fn new(role: Role, now: Instant, connection: ConnectionConfig) -> Option<Self> {
        // Tables of 9 MB, once per process.
        haulier_proto::prepare();
        let (server, client) = configs(Keyed::Open, connection);
        let mut meter = Meter::default();
        let mut out = Vec::new();
        let mut traffic = Traffic { connections: 1, datagrams_in: 1, ..Traffic::default() };
        let (machine, link) = match role {
            Role::Server => {
                let mut server = ServerMachine::new(now, UNIX_TIME, server, [1; 32]).ok()?;
                let mut raw = RawClient::new(None, 1);
                let mut request = raw.request();
                traffic.bytes_in += request.len() as u64;
                meter.around(|| server.handle_datagram(now, address(2), &mut request)).ok()?;
                let id = server.connections().next()?;
                server.connection_mut(id)?.ping();
                while meter.around(|| server.poll_datagram(now, &mut out)).is_some() {
                    let _plaintext = raw.handle(now, &out);
                }
                (Machines::Server(Box::new(server)), raw.link?)
            }
            Role::Client => {
                let mut client = ClientMachine::new(now, client, [1; 32]).ok()?;
                meter.around(|| client.poll_datagram(now, &mut out))?;
                let mut raw = RawServer::answer(None, &out, 1)?;
                let mut response = raw.response(&[1]);
                traffic.bytes_in += response.len() as u64;
                meter.around(|| client.handle_datagram(now, address(1), &mut response)).ok()?;
                (Machines::Client(Box::new(client)), raw.link)
            }
        };
        let blocks = Vec::new();
        let budget = Budget::default();
        let mut victim = Self { machine, link, meter, traffic, budget, own_bytes: 0, blocks };
        // The client's first data validates its address.
        let mut ping = victim.link.frames(&[Frame::Ping]);
        victim.give(now, &mut ping).is_none().then_some(victim)
    }

    fn machine(&mut self) -> (&mut dyn Machine, &mut Meter, FourTuple) {
        match &mut self.machine {
            Machines::Server(server) => (&mut **server, &mut self.meter, address(2).into()),
            Machines::Client(client) => (&mut **client, &mut self.meter, address(1).into()),
        }
    }

    /// Its connection, while there is one.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        match &self.machine {
            Machines::Server(server) => server.connection(server.connections().next()?),
            Machines::Client(client) => client.connection(),
        }
    }

    /// Its application acts on the connection, and gives it at most `given_bytes` to send.
    pub fn act(&mut self, given_bytes: usize, act: impl FnOnce(&mut Connection)) {
        self.own_bytes += given_bytes as u64;
        self.traffic.given_bytes += given_bytes as u64;
        let connection = match &mut self.machine {
            Machines::Server(server) => {
                let first = server.connections().next();
                first.and_then(|id| server.connection_mut(id))
            }
            Machines::Client(client) => client.connection_mut(),
        };
        if let Some(connection) = connection {
            self.meter.around(|| act(connection));
        }
    }

    /// Its application sends a block.
    pub fn send_block(&mut self, now: Instant, block: Block) {
        let repair = block.data().len().div_ceil(CHUNK_BYTES) as u64 * REPAIR_BYTES;
        self.own_bytes += repair;
        self.act(block.data().len(), |connection| {
            let _full = connection.send_block(now, &block);
        });
        self.blocks.push(block);
    }

    /// A datagram of its peer arrives. Returns what it cost too much, if it did.
    pub fn give(&mut self, now: Instant, datagram: &mut [u8]) -> Option<Finding> {
        let before = self.work();
        self.traffic.datagrams_in += 1;
        self.traffic.bytes_in += datagram.len() as u64;
        let (machine, meter, from) = self.machine();
        meter.around(|| machine.handle_datagram(now, from, datagram));
        too_dear_at_once(&before, &self.work())
    }

    /// Its application reads all events.
    pub fn read(&mut self, now: Instant) {
        match &mut self.machine {
            Machines::Server(server) => {
                self.meter.around(|| while server.poll_event(now).is_some() {});
            }
            Machines::Client(client) => {
                self.meter.around(|| while client.poll_event(now).is_some() {});
            }
        }
    }

    /// Handles its deadlines.
    pub fn handle_timeout(&mut self, now: Instant) {
        let (machine, meter, _) = self.machine();
        meter.around(|| machine.handle_timeout(now));
    }

    /// Appends what it sends. The batch is the caller's memory.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let before = batch.len();
        let (machine, meter, _) = self.machine();
        meter.around(|| machine.poll_transmit(now, batch));
        self.traffic.datagrams_out += (batch.len() - before) as u64;
        self.traffic.bytes_out +=
            batch.iter().skip(before).map(|(_, datagram)| datagram.len() as u64).sum::<u64>();
    }

    /// When it wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.machine {
            Machines::Server(server) => server.poll_timeout(),
            Machines::Client(client) => client.poll_timeout(),
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn work(&self) -> Work {
        match &self.machine {
            Machines::Server(server) => server.work(),
            Machines::Client(client) => client.work(),
        }
    }

    /// What it counts as held for its peer.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.machine {
            Machines::Server(server) => server.stats().memory_bytes,
            Machines::Client(client) => client.memory_bytes(),
        }
    }

    /// The first bound that it exceeds, with the memory that it counts as held for its peer.
    #[must_use]
    pub fn exceeded(&mut self) -> Option<Finding> {
        self.exceeded_with(self.memory_bytes())
    }

    /// The first bound that it exceeds, if it may hold `memory_bytes` for its peer.
    #[must_use]
    pub fn exceeded_with(&mut self, memory_bytes: usize) -> Option<Finding> {
        let state = State {
            meter: self.meter,
            work: self.work(),
            traffic: self.traffic,
            memory_bytes,
            connections: 1,
            own_bytes: self.own_bytes,
        };
        state.exceeds(&mut self.budget)
    }

    /// Panics if the machine's parts contradict each other.
    pub fn check_invariants(&self) {
        match &self.machine {
            Machines::Server(server) => server.check_invariants(),
            Machines::Client(client) => client.check_invariants(),
        }
    }
}
