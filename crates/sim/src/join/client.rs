//! An honest client: it joins, takes in what it gets, and notes when.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::Machine;
use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{CloseCode, Event};

use crate::{Host, Rng};

/// An honest client.
#[derive(Debug)]
pub struct ClientHost {
    /// The client; `None` before it begins.
    pub client: Option<ClientMachine>,
    /// What it heard, and when. Blocks as they came.
    pub events: Vec<(Instant, Event)>,
    /// It closes when it has this many blocks, and all of its own are acked; `None` stays.
    pub leaves_after_blocks: Option<usize>,
    /// What it does when the connection is there, and each time it is woken afterwards.
    pub script: Option<fn(&mut ClientMachine, Instant)>,
    /// Datagrams are handed in as they come; set, they are dropped: a program that hangs.
    pub is_frozen: bool,
    config: ClientConfig,
    begins: Instant,
    seed: [u8; 32],
    blocks: usize,
    wakes: Option<(Duration, Instant)>,
}

impl ClientHost {
    /// A client that begins at `begins`.
    #[must_use]
    pub fn new(config: ClientConfig, begins: Instant, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&Rng::stream(seed, 77).bytes(32));
        Self {
            client: None,
            events: Vec::new(),
            leaves_after_blocks: Some(1),
            script: None,
            is_frozen: false,
            config,
            begins,
            seed: bytes,
            blocks: 0,
            wakes: None,
        }
    }

    /// Runs `script` when connected, and every so often afterwards.
    #[must_use]
    pub fn with_script(mut self, every: Duration, script: fn(&mut ClientMachine, Instant)) -> Self {
        self.script = Some(script);
        self.wakes = Some((every, self.begins));
        self
    }

    /// When its first block was whole, from its beginning on.
    #[must_use]
    pub fn joined_after(&self) -> Option<Duration> {
        let block = self.events.iter().find(|(_, event)| matches!(event, Event::Block { .. }))?;
        Some(block.0.since(self.begins))
    }

    /// When it first heard anything of this kind, from its beginning on.
    #[must_use]
    pub fn first(&self, is_it: impl Fn(&Event) -> bool) -> Option<Duration> {
        let found = self.events.iter().find(|(_, event)| is_it(event))?;
        Some(found.0.since(self.begins))
    }

    fn hear(&mut self, now: Instant) {
        let Some(client) = &mut self.client else { return };
        while let Some(event) = client.poll_event(now) {
            self.blocks += usize::from(matches!(event, Event::Block { .. }));
            self.events.push((now, event));
        }
        if let Some(connection) = client.connection_mut()
            && self.leaves_after_blocks.is_some_and(|blocks| self.blocks >= blocks)
            && connection.all_acked()
        {
            connection.close(now, CloseCode::DONE, "");
            while let Some(event) = client.poll_event(now) {
                self.events.push((now, event));
            }
        }
    }
}

impl Host for ClientHost {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        if self.is_frozen {
            return;
        }
        if let Some(client) = &mut self.client
            && from == client.server()
        {
            let _counted = client.handle_datagram(now, client.server(), datagram);
        }
        self.hear(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.client.is_none() && now >= self.begins {
            let client = ClientMachine::new(now, self.config.clone(), self.seed);
            self.client = Some(client.expect("a configuration that makes a client"));
        }
        if self.is_frozen {
            return;
        }
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
        if let Some((every, next)) = &mut self.wakes
            && *next <= now
        {
            *next = now + *every;
            if let (Some(client), Some(script)) = (&mut self.client, self.script)
                && client.connection().is_some()
            {
                script(client, now);
            }
        }
        self.hear(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        if self.is_frozen {
            return None;
        }
        let client = self.client.as_mut()?;
        client.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_frozen {
            return None;
        }
        let Some(client) = &self.client else { return Some(self.begins) };
        if client.is_closed() {
            return client.poll_timeout();
        }
        let wake = self.wakes.map(|(_, next)| next);
        haulier_proto::time::earliest(client.poll_timeout(), wake)
    }

    fn check_invariants(&self) {
        if let Some(client) = &self.client {
            client.check_invariants();
        }
    }
}
