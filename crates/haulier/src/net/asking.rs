//! A client's end: a machine for each address of its server that is asked, until one of them is welcome.

use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::{io, thread};

use haulier_core::Instant;
use haulier_core::time::earliest;
use haulier_proto::bulk::repair;
use haulier_proto::client::{ClientError, ClientMachine, WireBytes};
use haulier_proto::connection::{CloseCode, CloseReason, Connection, Event};
use haulier_proto::crypto::Entropy;
use haulier_proto::{AesSupport, Platform};

use super::NOWHERE;
use super::connect::Connect;
use super::race::{Attempt, AttemptError, Key, Race};
use super::shared::{End, Trouble};

pub(crate) struct Asking {
    connect: Connect,
    entropy: Entropy,
    aes: AesSupport,
    race: Race,
    /// Those that are asked; at last the one that is welcome.
    machines: Vec<(Key, ClientMachine)>,
    phase: Phase,
    /// Something has changed that [`End::step`] must look at.
    has_news: bool,
    /// Of machines that are gone.
    other_bytes: WireBytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Asking,
    Welcome,
    /// Nobody is asked any more, and nobody was welcome. The reason waits for the application.
    Ended(Option<CloseReason>),
}

impl Asking {
    /// Begins to ask. The seed must be fit for keys.
    pub(crate) fn new(
        now: Instant,
        connect: Connect,
        seed: [u8; 32],
        aes: AesSupport,
    ) -> Result<Self, ClientError> {
        let mut asking = Self {
            race: Race::new(&connect.servers),
            entropy: Entropy::new(seed),
            aes,
            connect,
            machines: Vec::new(),
            phase: Phase::Asking,
            has_news: true,
            other_bytes: WireBytes::default(),
        };
        // A configuration that makes no client makes none for any address.
        asking.make(now, NOWHERE)?;
        Ok(asking)
    }

    fn make(&mut self, now: Instant, server: SocketAddr) -> Result<ClientMachine, ClientError> {
        let platform = Platform::new(self.entropy.bytes(), self.aes);
        ClientMachine::new(now, self.connect.config(server), platform)
    }

    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.welcome()?.connection()
    }

    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        let is_welcome = self.phase == Phase::Welcome;
        self.machines.first_mut().filter(|_| is_welcome)?.1.connection_mut()
    }

    pub(crate) fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        match self.phase {
            Phase::Asking => {
                self.race.give_up();
                self.end(CloseReason::Here(code));
            }
            Phase::Welcome => {
                self.machines.iter_mut().for_each(|(_, machine)| machine.close(now, code, reason));
            }
            Phase::Ended(_) => {}
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
    pub(crate) const fn outcome(&self) -> Option<bool> {
        match self.phase {
            Phase::Asking => None,
            Phase::Welcome => Some(true),
            Phase::Ended(_) => Some(false),
        }
    }

    /// Those of all addresses.
    pub(crate) fn wire_bytes(&self) -> WireBytes {
        let machines = self.machines.iter().map(|(_, machine)| machine.wire_bytes());
        machines.fold(self.other_bytes, sum)
    }

    fn welcome(&self) -> Option<&ClientMachine> {
        let is_welcome = self.phase == Phase::Welcome;
        self.machines.first().filter(|_| is_welcome).map(|(_, machine)| machine)
    }

    fn end(&mut self, reason: CloseReason) {
        self.keep(None);
        self.phase = Phase::Ended(Some(reason));
        self.has_news = true;
    }

    /// Forgets all machines but this.
    fn keep(&mut self, key: Option<Key>) {
        let other_bytes = &mut self.other_bytes;
        self.machines.retain(|(known, machine)| {
            let stays = Some(*known) == key;
            if !stays {
                *other_bytes = sum(*other_bytes, machine.wire_bytes());
            }
            stays
        });
    }

    fn remove(&mut self, key: Key) {
        if let Some(at) = self.machines.iter().position(|(known, _)| *known == key) {
            let (_, machine) = self.machines.remove(at);
            self.other_bytes = sum(self.other_bytes, machine.wire_bytes());
        }
        self.has_news = true;
    }

    /// Looks at what has become of those that are asked.
    fn judge(&mut self, now: Instant) {
        let welcome = self.machines.iter().find(|(_, machine)| machine.connection().is_some());
        if let Some(&(key, _)) = welcome {
            self.race.won(key);
            self.keep(Some(key));
            self.phase = Phase::Welcome;
            return;
        }
        let ended =
            self.machines.iter_mut().filter_map(|(key, machine)| match machine.poll_event(now) {
                Some(Event::Closed(reason)) => Some((*key, reason)),
                _ => None,
            });
        for (key, reason) in ended.collect::<Vec<_>>() {
            self.remove(key);
            self.race.failed(now, key, AttemptError::Closed(reason));
        }
    }
}

impl End for Asking {
    type Machine = ClientMachine;
    type Event = Event;

    const THREAD: &'static str = "haulier-client";

    fn machine(&mut self, key: Key) -> Option<&mut ClientMachine> {
        self.machines.iter_mut().find(|(known, _)| *known == key).map(|(_, machine)| machine)
    }

    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)> {
        let mut opens = Vec::new();
        self.has_news = false;
        if self.phase != Phase::Asking {
            return opens;
        }
        self.judge(now);
        while let Some((key, server)) = self.race.start(now) {
            match self.make(now, server) {
                Ok(machine) => {
                    self.machines.push((key, machine));
                    opens.push((key, server));
                }
                // The first one could be made.
                Err(_) => self.race.failed(now, key, AttemptError::Closed(CloseReason::NoAnswer)),
            }
        }
        if self.race.is_lost() {
            self.end(self.race.verdict());
        }
        opens
    }

    /// While it asks, trouble is that of one address. Afterwards a refusal means nothing: anybody can forge
    /// it, and the idle time-out does not depend on it.
    fn on_trouble(&mut self, now: Instant, key: Key, trouble: Trouble) -> io::Result<()> {
        let error = match trouble {
            Trouble::Broken(error) if self.phase != Phase::Asking => return Err(error),
            _ if self.phase != Phase::Asking => return Ok(()),
            Trouble::Refused => {
                // A welcome may have come with it.
                if self.machine(key).is_some_and(|machine| machine.connection().is_none()) {
                    self.remove(key);
                    self.race.refused(now, key);
                }
                return Ok(());
            }
            Trouble::NotOpened(error) | Trouble::Broken(error) => error,
        };
        self.remove(key);
        self.race.failed(now, key, AttemptError::NoRoute(Arc::new(error)));
        Ok(())
    }

    fn step_timeout(&self) -> Option<Instant> {
        if self.has_news { Some(Instant::ZERO) } else { self.race.poll_timeout() }
    }

    fn machine_timeout(&self) -> Option<Instant> {
        self.machines.iter().fold(None, |due, (_, machine)| earliest(due, machine.poll_timeout()))
    }

    fn poll_event(&mut self, now: Instant) -> Option<Event> {
        match &mut self.phase {
            Phase::Asking => None,
            Phase::Welcome => self.machines.first_mut()?.1.poll_event(now),
            Phase::Ended(reason) => reason.take().map(Event::Closed),
        }
    }

    fn is_over(&self) -> bool {
        match &self.phase {
            Phase::Asking => false,
            Phase::Welcome => self.welcome().is_none_or(ClientMachine::is_closed),
            Phase::Ended(reason) => reason.is_none(),
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
            let _thread = name.spawn(repair::prepare);
        });
    }
}

fn sum(a: WireBytes, b: WireBytes) -> WireBytes {
    WireBytes { received: a.received + b.received, sent: a.sent + b.sent }
}
