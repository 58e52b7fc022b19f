//! Ends that are reported as what they are: closes and refusals over a link that loses 30 % both ways.
//!
//! A client may receive nothing about an end (then it reports that there was no answer, which is true), but
//! it must never receive a wrong end: `ConnectionUnknown` in particular is for servers that know nothing.

use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{CloseCode, CloseReason, ConnectionConfig, Event, RefusalCode};
use haulier_proto::credentials::Secret;
use haulier_proto::server::{ConnectionId, ServerConfig, ServerEvent, ServerLimits, ServerMachine};
use haulier_proto::{Batch, Instant, Machine};
use haulier_sim::hosts::Keyed;
use haulier_sim::{Link, LinkConfig, Loss, Probability, Rng, address};

use crate::support::{CLIENT, SERVER, block, client_config, ms, server_config};

const RUNS_PER_END: u64 = 100;
const WORDS: &str = "not on the list";

/// How a connection, or an attempt, is made to end by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The application rejects the request.
    Rejected,
    /// The application closes an idle connection.
    Closed,
    /// Nothing of the client arrives for the idle timeout.
    TimedOut,
    ShutDown,
    /// The client's data takes more memory than there is.
    Evicted,
    RefusedFull,
    RefusedShuttingDown,
    /// A refusal without a check, which is only a hint.
    RefusedKey,
}

impl End {
    const ALL: [Self; 8] = [
        Self::Rejected,
        Self::Closed,
        Self::TimedOut,
        Self::ShutDown,
        Self::Evicted,
        Self::RefusedFull,
        Self::RefusedShuttingDown,
        Self::RefusedKey,
    ];

    fn reason(self) -> CloseReason {
        let there = |code, words: &str| CloseReason::There { code, reason: words.into() };
        match self {
            Self::Rejected => there(CloseCode::NOT_ACCEPTED, WORDS),
            Self::Closed => there(CloseCode::application(300).unwrap(), WORDS),
            Self::TimedOut => there(CloseCode::TIMED_OUT, ""),
            Self::ShutDown => there(CloseCode::SHUTTING_DOWN, ""),
            Self::Evicted => there(CloseCode::RESOURCES, ""),
            Self::RefusedFull => CloseReason::Refused(RefusalCode::Full),
            Self::RefusedShuttingDown => CloseReason::Refused(RefusalCode::ShuttingDown),
            Self::RefusedKey => CloseReason::Refused(RefusalCode::Key),
        }
    }

    fn configs(self) -> (ServerConfig, ClientConfig) {
        let (mut server, mut client) = (server_config(Keyed::Secret), client_config(Keyed::Secret));
        server = server.with_connection(ConnectionConfig::default());
        match self {
            Self::Evicted => {
                server.limits = ServerLimits::default().with_memory_bytes(100_000);
            }
            Self::RefusedFull => {
                server.limits = ServerLimits::default().with_connections(0).with_line(0);
            }
            Self::RefusedKey => {
                let secret = Secret::from_bytes([99; 32]);
                client.credentials = Credentials::Secret { secret, identity: None };
            }
            _ => {}
        }
        (server, client)
    }
}

/// A server and a client, 20 ms apart, on a link that loses 30 % each way.
struct Lossy {
    server: ServerMachine,
    client: ClientMachine,
    up: Link,
    down: Link,
    now: Instant,
    end: End,
    connected_at: Option<Instant>,
    server_end: Option<CloseReason>,
    heard: Option<CloseReason>,
}

impl Lossy {
    fn new(end: End, seed: u64) -> Self {
        let link = LinkConfig {
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(5),
            loss: Loss::Independent(Probability::percent(30)),
            ..LinkConfig::default()
        };
        let now = ms(1_000);
        let key = |purpose| Rng::stream(seed, purpose).key();
        let (server, client) = end.configs();
        let mut server = ServerMachine::new(now, 1_795_219_200, server, key(1)).unwrap();
        if end == End::RefusedShuttingDown {
            server.shut_down(now);
        }
        Self {
            server,
            client: ClientMachine::new(now, client, key(2)).unwrap(),
            up: Link::new(link.clone(), Rng::stream(seed, 3).next_u64()),
            down: Link::new(link, Rng::stream(seed, 4).next_u64()),
            now,
            end,
            connected_at: None,
            server_end: None,
            heard: None,
        }
    }

    /// What the client learns of its end, and what the end was.
    fn run(mut self) -> (CloseReason, CloseReason) {
        while self.heard.is_none() {
            assert!(self.now < ms(120_000), "neither an end nor silence");
            self.exchange();
            self.read_events();
            self.act();
            let next = [
                self.server.poll_timeout(),
                self.client.poll_timeout(),
                self.up.poll_timeout(),
                self.down.poll_timeout(),
                self.acts_at(),
            ];
            let Some(next) = next.into_iter().flatten().min() else { continue };
            // A machine that has something to send now says so with the first instant.
            self.now = self.now.max(next);
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
        }
        self.server.check_invariants();
        let was = match self.server_end {
            // A server that never receives from its client again may end before the planned end.
            Some(CloseReason::TimedOut | CloseReason::NoAnswer) => End::TimedOut.reason(),
            _ => self.end.reason(),
        };
        (self.heard.unwrap(), was)
    }

    fn exchange(&mut self) {
        let (now, mut datagram, mut batch) = (self.now, Vec::new(), Batch::new(64));
        while self.up.poll_delivery(now, &mut datagram) {
            let _counted = self.server.handle_datagram(now, address(CLIENT), &mut datagram);
        }
        while self.down.poll_delivery(now, &mut datagram) {
            let _counted = self.client.handle_datagram(now, address(SERVER), &mut datagram);
        }
        self.read_events();
        self.server.poll_transmit(now, &mut batch);
        for (_, datagram) in batch.iter() {
            self.down.offer(now, datagram);
        }
        batch.clear();
        self.client.poll_transmit(now, &mut batch);
        let is_cut =
            self.end == End::TimedOut && self.connected_at.is_some() && self.server_end.is_none();
        for (_, datagram) in batch.iter().filter(|_| !is_cut) {
            self.up.offer(now, datagram);
        }
    }

    fn read_events(&mut self) {
        while let Some((id, event)) = self.server.poll_event(self.now) {
            self.on_server_event(id, &event);
        }
        while let Some(event) = self.client.poll_event(self.now) {
            if let Event::Closed(reason) = event {
                self.heard = Some(reason);
            }
        }
    }

    fn on_server_event(&mut self, id: ConnectionId, event: &ServerEvent) {
        let now = self.now;
        match event {
            ServerEvent::Connecting { .. } if self.end == End::Rejected => {
                let connection = self.server.connection_mut(id).unwrap();
                connection.close(now, CloseCode::NOT_ACCEPTED, WORDS);
            }
            ServerEvent::Connection(Event::Connected) => self.connected_at = Some(now),
            ServerEvent::Connection(Event::Closed(reason)) => {
                self.server_end = Some(reason.clone());
            }
            _ => {}
        }
    }

    /// When the planned end is caused: a second after the connection began, when it is idle.
    fn acts_at(&self) -> Option<Instant> {
        let at = self.connected_at? + Duration::from_secs(1);
        (self.server_end.is_none() && self.now < at).then_some(at)
    }

    fn act(&mut self) {
        let is_due = |at: Instant| self.now == at + Duration::from_secs(1);
        if !self.connected_at.is_some_and(is_due) || self.server_end.is_some() {
            return;
        }
        let now = self.now;
        match self.end {
            End::Closed => {
                let id = self.server.connections().next().unwrap();
                let code = CloseCode::application(300).unwrap();
                self.server.connection_mut(id).unwrap().close(now, code, WORDS);
            }
            End::ShutDown => self.server.shut_down(now),
            End::Evicted => {
                let connection = self.client.connection_mut().unwrap();
                connection.send_block(now, &block(1_000_000)).unwrap();
            }
            _ => {}
        }
    }
}

/// 800 ends, 100 of each kind. If a server did not repeat the end, 97 of the 100 clients that it gave up for
/// their silence would receive that it knows of no connection.
#[test]
fn t21_ends_are_heard_for_what_they_are_at_30_percent_loss() {
    let (mut heard, mut total) = (0, 0);
    for (n, end) in (0..).zip(End::ALL) {
        let mut exact = 0;
        for run in 0..RUNS_PER_END {
            let seed = 1_000 * n + run;
            let (reason, was) = Lossy::new(end, seed).run();
            // A client that received nothing from a server that received nothing is right, too.
            let is_mutual = was == End::TimedOut.reason() && reason == CloseReason::TimedOut;
            if reason == was || is_mutual {
                exact += 1;
                continue;
            }
            println!("{end:?}, seed {seed}: {reason:?}");
            let silence = [CloseReason::TimedOut, CloseReason::NoAnswer];
            assert!(silence.contains(&reason), "{end:?}, seed {seed}: told as {reason:?}");
        }
        println!("{end:?}: {exact} of {RUNS_PER_END} heard");
        (heard, total) = (heard + exact, total + RUNS_PER_END);
    }
    assert!(1_000 * heard >= 999 * total, "{heard} of {total} heard");
}
