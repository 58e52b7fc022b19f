//! A client's end: a machine for each address of its server that is asked, until one of them is welcome.

use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::{io, thread};

use haulier_core::time::earliest;
use haulier_core::{Instant, Machine as _};
use haulier_proto::client::{ClientError, ClientMachine, WireBytes};
use haulier_proto::connection::{CloseCode, CloseReason, Connection, Event};
use haulier_proto::internals::Entropy;
use haulier_proto::{AesSupport, Platform};

use super::NOWHERE;
use super::connect::Connect;
use super::race::{Attempt, AttemptError, Key, Race};
use super::shared::{End, Trouble};

pub(crate) struct Asking {
    connect: Connect,
    entropy: Entropy,
    aes: AesSupport,
    race: Race<ClientMachine>,
    /// How it ended without a connection; whether the application still has to be told.
    ended: Option<(CloseReason, bool)>,
    /// Something has changed that [`End::step`] must look at.
    has_news: bool,
    /// Of machines that are gone.
    other_bytes: WireBytes,
}

impl Asking {
    /// Begins to ask. The seed must be fit for keys.
    pub(crate) fn new(
        now: Instant,
        connect: Connect,
        seed: [u8; 32],
        aes: AesSupport,
    ) -> Result<Self, ClientError> {
        // A configuration that makes no client makes none for any address.
        ClientMachine::new(now, connect.config(NOWHERE), seed)?;
        Ok(Self {
            race: Race::new(&connect.servers),
            connect,
            entropy: Entropy::new(seed),
            aes,
            ended: None,
            has_news: true,
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

    /// Where the server is, or may be.
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

    /// Those of all addresses.
    pub(crate) fn wire_bytes(&self) -> WireBytes {
        let machines = self.race.machines().map(|(_, machine)| machine.wire_bytes());
        machines.fold(self.other_bytes, sum)
    }

    /// There will be no connection.
    fn end(&mut self, reason: CloseReason) {
        let given_up = self.race.give_up();
        self.forget(given_up);
        self.ended.get_or_insert((reason, true));
    }

    fn forget(&mut self, machines: impl IntoIterator<Item = ClientMachine>) {
        let machines = machines.into_iter().map(|machine| machine.wire_bytes());
        self.other_bytes = machines.fold(self.other_bytes, sum);
        self.has_news = true;
    }

    /// Looks at what has become of those that are asked.
    fn judge(&mut self, now: Instant) {
        let welcome = self.race.machines().find(|(_, machine)| machine.connection().is_some());
        if let Some((key, _)) = welcome {
            let others = self.race.won(key);
            return self.forget(others);
        }
        let ended =
            self.race.machines_mut().filter_map(|(key, machine)| match machine.poll_event(now) {
                Some(Event::Closed(reason)) => Some((key, reason)),
                _ => None,
            });
        for (key, reason) in ended.collect::<Vec<_>>() {
            let gone = self.race.failed(now, key, AttemptError::Closed(reason));
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
        self.has_news = false;
        opens
    }

    /// While it asks, trouble is that of one address. Afterwards a refusal means nothing: anybody can forge
    /// it, and the idle time-out does not depend on it.
    fn on_trouble(&mut self, now: Instant, key: Key, trouble: Trouble) -> io::Result<()> {
        let is_welcome = |machine: &mut ClientMachine| machine.connection().is_some();
        let gone = match trouble {
            Trouble::Broken(error) if self.race.is_won() => return Err(error),
            // Also if the welcome has come with it.
            _ if self.machine(key).is_none_or(is_welcome) => return Ok(()),
            Trouble::Refused => self.race.refused(now, key),
            Trouble::NotOpened(error) | Trouble::Broken(error) => {
                self.race.failed(now, key, AttemptError::NoRoute(Arc::new(error)))
            }
        };
        self.forget(gone);
        Ok(())
    }

    fn step_timeout(&self) -> Option<Instant> {
        if self.has_news { Some(Instant::ZERO) } else { self.race.poll_timeout() }
    }

    fn machine_timeout(&self) -> Option<Instant> {
        let machines = self.race.machines();
        machines.fold(None, |due, (_, machine)| earliest(due, machine.poll_timeout()))
    }

    fn poll_event(&mut self, now: Instant) -> Option<Event> {
        if let Some(machine) = self.race.winner_mut() {
            return machine.poll_event(now);
        }
        let (reason, is_news) = self.ended.as_mut()?;
        std::mem::take(is_news).then(|| Event::Closed(reason.clone()))
    }

    fn is_over(&self) -> bool {
        match self.race.winner() {
            Some(machine) => machine.is_closed(),
            None => self.ended.as_ref().is_some_and(|(_, is_news)| !is_news),
        }
    }

    /// The server must hear of it.
    fn on_rebound(&mut self) {
        if let Some(connection) = self.connection_mut() {
            connection.ping();
        }
    }

    fn leave(&mut self, now: Instant) {
        self.close(now, CloseCode::DONE, "");
    }

    /// Makes the tables of the repair code in the background, once a process. They take 8 ms: nobody can wait
    /// for them in the middle of a transfer, nor before the first datagram, but the round trip of a handshake
    /// is mostly longer.
    fn prepare() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // Without a thread whoever needs the tables first makes them.
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
