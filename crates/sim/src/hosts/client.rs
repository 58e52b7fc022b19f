//! A client of haulier/1 with its application.

use haulier_core::time::earliest;
use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::Event;

use super::{App, Script};
use crate::{Host, Rng};

/// The start of a client.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its configuration.
    pub config: ClientConfig,
    /// The seed of all its random choices.
    pub seed: [u8; 32],
}

/// A client; its application may start further connections.
#[derive(Debug)]
pub struct ClientHost<A = Script> {
    /// The client; `None` before it begins, and after a crash.
    pub client: Option<ClientMachine>,
    /// The application.
    pub app: A,
    /// Set for a program that hangs: it handles no datagram and no deadline.
    pub is_frozen: bool,
    /// Its next start.
    pub start: Start,
    begins: Option<Instant>,
}

impl<A: App> ClientHost<A> {
    /// A client that starts at `begins`.
    #[must_use]
    pub fn new(app: A, config: ClientConfig, begins: Instant, seed: u64) -> Self {
        let start = Start { config, seed: Rng::stream(seed, 77).key() };
        Self { client: None, app, is_frozen: false, start, begins: Some(begins) }
    }

    /// The program crashes, and restarts at `until`.
    pub fn crash(&mut self, until: Instant) {
        (self.client, self.begins) = (None, Some(until));
    }

    /// Whether there is no client, or a closed one.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let client = self.client.as_ref();
        client.is_none_or(|client| client.is_closed() && client.poll_timeout().is_none())
    }

    /// When an application works that is full, and so has not yet received the event that its connection is
    /// closed.
    fn works_at(&self) -> Option<Instant> {
        self.app.works_at().filter(|_| self.app.is_full())
    }

    fn turn(&mut self, now: Instant) {
        self.app.work(now);
        self.poll_events(now);
        let connection = self.client.as_mut().and_then(ClientMachine::connection_mut);
        if let Some(connection) = connection.filter(|connection| connection.state().is_open()) {
            self.app.act(now, connection);
            // It may have closed.
            self.poll_events(now);
        }
    }

    fn poll_events(&mut self, now: Instant) {
        while !self.app.is_full()
            && let Some(event) = self.client.as_mut().and_then(|client| client.poll_event(now))
        {
            let is_last = matches!(event, Event::Closed(_));
            self.app.hear(now, event);
            if is_last {
                self.begins = self.app.begins_again(now);
            }
        }
    }
}

impl<A: App> Machine for ClientHost<A> {
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
        if self.is_frozen {
            return;
        }
        if let Some(client) = &mut self.client {
            let _counted = client.handle_marked_datagram(now, path, ecn, datagram);
        }
        self.turn(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.is_over() && self.begins.is_some_and(|at| at <= now) {
            self.begins = None;
            self.app.begin(now, &mut self.start);
            let Start { config, seed } = self.start.clone();
            self.client = Some(ClientMachine::new(now, config, seed).expect("a configuration"));
        }
        if let Some(client) = self.client.as_mut().filter(|_| !self.is_frozen) {
            client.handle_timeout(now);
            self.turn(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if let Some(client) = self.client.as_mut().filter(|_| !self.is_frozen) {
            client.poll_transmit(now, batch);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.client {
            _ if self.is_frozen => None,
            Some(client) if !self.is_over() => {
                let is_open = client.connection().is_some_and(|c| c.state().is_open());
                let at = if is_open { self.app.wakes_at() } else { self.works_at() };
                earliest(client.poll_timeout(), at)
            }
            Some(_) => earliest(self.begins, self.works_at()),
            None => self.begins,
        }
    }
}

impl<A: App> Host for ClientHost<A> {
    fn check_invariants(&self) {
        self.client.iter().for_each(ClientMachine::check_invariants);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haulier_proto::connection::ConnectionConfig;

    use super::super::{Keyed, configs};
    use super::*;
    use crate::{Access, World, address};

    /// It takes no events for a minute.
    struct Slow {
        begun: Vec<Instant>,
        now: Instant,
    }

    impl App for Slow {
        fn begin(&mut self, now: Instant, _start: &mut Start) {
            self.begun.push(now);
        }

        fn hear(&mut self, _now: Instant, _event: Event) {}

        fn wakes_at(&self) -> Option<Instant> {
            self.is_full().then_some(Instant::ZERO + Duration::from_secs(60))
        }

        fn is_full(&self) -> bool {
            self.now < Instant::ZERO + Duration::from_secs(60)
        }

        fn work(&mut self, now: Instant) {
            self.now = now;
        }

        fn begins_again(&self, now: Instant) -> Option<Instant> {
            (self.begun.len() < 2).then_some(now)
        }
    }

    /// The connection ends while the application is full: the application never received that event, and the
    /// soak of files found a fetch that hung.
    #[test]
    fn an_application_that_is_full_hears_later_that_the_connection_is_closed() {
        let (_, config) = configs(Keyed::Secret, ConnectionConfig::default());
        let app = Slow { begun: Vec::new(), now: Instant::ZERO };
        let mut world = World::new(1);
        let client = ClientHost::new(app, config, Instant::ZERO, 1);
        let client = world.add(client, address(2), &Access::default());
        world.run_until(Instant::ZERO + Duration::from_secs(100), |_| false);
        let begun = &world.host(client).app.begun;
        assert_eq!(*begun, [0, 60].map(|at| Instant::ZERO + Duration::from_secs(at)));
    }
}
