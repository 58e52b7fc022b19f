//! A client's end: a machine for each server address that is tried, until one of them connects.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::{io, thread};

use haulier_core::time::earliest;
use haulier_core::{Instant, Machine as _};
use haulier_proto::client::{ClientError, ClientMachine, Credentials, WireBytes};
use haulier_proto::connection::trace::Traced;
use haulier_proto::connection::{CloseCode, CloseReason, Connection, Event};
use haulier_proto::internals::Entropy;
use haulier_proto::server::ConnectionId;
use haulier_proto::{AesSupport, Platform};

use super::NOWHERE;
use super::connect::Connect;
use super::race::{Attempt, AttemptError, Key, Race};
use super::shared::{End, SocketFault};
use super::sinks::Sinks;

pub(crate) struct Asking {
    connect: Connect,
    entropy: Entropy,
    aes: AesSupport,
    race: Race<ClientMachine>,
    /// How it ended without a connection, and whether the application has not read that yet.
    ended: Option<(CloseReason, bool)>,
    /// The newest event about the line that the application has not read. It is in a box, because an empty
    /// place would be filled with earlier contents of the stack, for example a key.
    queued: Option<Box<Event>>,
    /// Something changed that [`End::step`] must handle.
    needs_step: bool,
    /// Trace events of attempts that ended, which are not read yet.
    other_traces: VecDeque<Traced>,
    /// The bytes of attempts that ended.
    other_bytes: WireBytes,
}

impl Asking {
    /// Starts to connect. The seed must be fit for keys.
    pub(crate) fn new(
        now: Instant,
        connect: Connect,
        seed: [u8; 32],
        aes: AesSupport,
    ) -> Result<Self, ClientError> {
        // The configuration is checked once: it is the same for every address.
        ClientMachine::new(now, connect.config(NOWHERE), seed)?;
        Ok(Self {
            race: Race::new(&connect.servers),
            connect,
            entropy: Entropy::new(seed),
            aes,
            ended: None,
            queued: None,
            needs_step: true,
            other_traces: VecDeque::new(),
            other_bytes: WireBytes::default(),
        })
    }

    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.race.winner()?.connection()
    }

    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.race.winner_mut()?.connection_mut()
    }

    pub(crate) fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        match self.race.winner_mut() {
            Some(machine) => machine.close(now, code, reason),
            None => self.end(CloseReason::Here(code)),
        }
    }

    /// The server's address, or one that is tried.
    pub(crate) fn server(&self) -> SocketAddr {
        let first = self.connect.servers.first().copied();
        self.race.server().or(first).unwrap_or(NOWHERE)
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        self.race.attempts()
    }

    /// Whether there is a connection; `None` while that is open.
    pub(crate) fn outcome(&self) -> Option<bool> {
        (self.race.is_won() || self.ended.is_some()).then_some(self.race.is_won())
    }

    /// The bytes of all attempts.
    pub(crate) fn wire_bytes(&self) -> WireBytes {
        let machines = self.race.machines().map(|(_, machine)| machine.wire_bytes());
        machines.fold(self.other_bytes, sum)
    }

    /// Ends without a connection.
    fn end(&mut self, reason: CloseReason) {
        let given_up = self.race.give_up();
        self.forget(given_up);
        self.ended.get_or_insert((reason, true));
    }

    fn forget(&mut self, machines: impl IntoIterator<Item = ClientMachine>) {
        for mut machine in machines {
            self.other_bytes = sum(self.other_bytes, machine.wire_bytes());
            self.other_traces.extend(std::iter::from_fn(|| machine.poll_trace()));
        }
        self.needs_step = true;
    }

    /// A server lets this attempt wait in line. The addresses of a token may belong to several servers, so
    /// the other addresses are asked, too. The addresses of a ticket belong to one server, where each attempt
    /// would have a place of its own.
    fn waits(&mut self, now: Instant, key: Key) -> Vec<ClientMachine> {
        match self.connect.credentials {
            Credentials::Token(_) => {
                self.race.hurry(now);
                Vec::new()
            }
            _ => self.race.only(key),
        }
    }

    /// Checks the results of the running attempts.
    fn judge(&mut self, now: Instant) {
        let welcome = self.race.machines().find(|(_, machine)| machine.connection().is_some());
        if let Some((key, _)) = welcome {
            let others = self.race.won(key);
            return self.forget(others);
        }
        let heard = self.race.machines_mut().flat_map(|(key, machine)| {
            std::iter::from_fn(move || machine.poll_event(now)).map(move |event| (key, event))
        });
        for (key, event) in heard.collect::<Vec<_>>() {
            let gone = match event {
                Event::Closed(reason) => {
                    let gone = self.race.failed(now, key, AttemptError::Closed(reason));
                    gone.into_iter().collect()
                }
                Event::Queued { .. } => {
                    self.queued = Some(Box::new(event));
                    self.waits(now, key)
                }
                _ => continue,
            };
            self.forget(gone);
        }
    }
}

impl End for Asking {
    type Machine = ClientMachine;
    type Event = Event;

    const THREAD: &'static str = "haulier-client";

    fn machine(&mut self, key: Key) -> Option<&mut ClientMachine> {
        self.race.machines_mut().find(|(known, _)| *known == key).map(|(_, machine)| machine)
    }

    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)> {
        let mut opens = Vec::new();
        if !self.race.is_won() && self.ended.is_none() {
            self.judge(now);
            let Self { race, connect, entropy, aes, .. } = self;
            opens.extend(std::iter::from_fn(|| {
                race.start(now, |server| {
                    let platform = Platform::new(entropy.bytes(), *aes);
                    ClientMachine::new(now, connect.config(server), platform).ok()
                })
            }));
            if self.race.is_lost() {
                self.end(self.race.verdict());
            }
        }
        self.needs_step = false;
        opens
    }

    /// During the race a fault ends one attempt. Once connected a refusal is ignored: anybody can forge it,
    /// and the idle timeout does not depend on it.
    fn on_socket_fault(&mut self, now: Instant, key: Key, fault: SocketFault) -> io::Result<()> {
        let is_welcome = |machine: &mut ClientMachine| machine.connection().is_some();
        let gone = match fault {
            SocketFault::Broken(error) if self.race.is_won() => return Err(error),
            // Also if the welcome arrived together with the fault.
            _ if self.machine(key).is_none_or(is_welcome) => return Ok(()),
            SocketFault::Refused => self.race.refused(now, key),
            SocketFault::NotOpened(error) | SocketFault::Broken(error) => {
                self.race.failed(now, key, AttemptError::NoRoute(Arc::new(error)))
            }
        };
        self.forget(gone);
        Ok(())
    }

    fn step_timeout(&self) -> Option<Instant> {
        if self.needs_step { Some(Instant::ZERO) } else { self.race.poll_timeout() }
    }

    fn machine_timeout(&self) -> Option<Instant> {
        let machines = self.race.machines();
        machines.fold(None, |due, (_, machine)| earliest(due, machine.poll_timeout()))
    }

    fn poll_event(&mut self, now: Instant) -> Option<Event> {
        if let Some(machine) = self.race.winner_mut() {
            return machine.poll_event(now);
        }
        if let Some(queued) = self.queued.take() {
            return Some(*queued);
        }
        let (reason, is_unread) = self.ended.as_mut()?;
        std::mem::take(is_unread).then(|| Event::Closed(reason.clone()))
    }

    fn poll_trace(&mut self) -> Option<(Option<ConnectionId>, Traced)> {
        let mut machines = self.race.machines_mut();
        let traced = self.other_traces.pop_front();
        let traced = traced.or_else(|| machines.find_map(|(_, machine)| machine.poll_trace()));
        traced.map(|traced| (None, traced))
    }

    fn sinks(&self) -> Sinks {
        self.connect.sinks.clone()
    }

    fn is_over(&self) -> bool {
        match self.race.winner() {
            Some(machine) => machine.is_closed(),
            None => self.ended.as_ref().is_some_and(|(_, is_unread)| !is_unread),
        }
    }

    /// Sends a ping, so that the server learns the new address.
    fn on_rebound(&mut self) {
        if let Some(connection) = self.connection_mut() {
            connection.ping();
        }
    }

    fn leave(&mut self, now: Instant) {
        self.close(now, CloseCode::DONE, "");
    }

    /// Computes the tables of the repair code once per process, as soon as a datagram is missing: its repair
    /// comes a round trip later. They take 8 ms of a processor and 8 MiB; a join that loses nothing does not
    /// need them.
    fn prepare(&self) {
        static ONCE: Once = Once::new();
        let missing = self.connection().map_or(0, Connection::datagrams_missing);
        if missing == 0 || ONCE.is_completed() {
            return;
        }
        ONCE.call_once(|| {
            // Without a thread the first use of the tables computes them.
            let name = thread::Builder::new().name("haulier-tables".into());
            let _thread = name.spawn(haulier_proto::prepare);
        });
    }
}

const fn sum(mut sum: WireBytes, more: WireBytes) -> WireBytes {
    sum.received += more.received;
    sum.sent += more.sent;
    sum
}
