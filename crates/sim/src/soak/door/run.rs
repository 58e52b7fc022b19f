//! A run of a scenario: the server, and all clients at its door, in steps of 5 ms.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{CloseCode, CloseReason, Event};
use haulier_proto::credentials::{ConnectToken, Secret, TokenClaims, TokenServers};
use haulier_proto::internals::Frame;
use haulier_proto::server::{Desk, Handled, ServerEvent, ServerStats, Stray, Worker};

use super::{AFTER, DoorScenario, Plan, Way, token_key};
use crate::attack::raw::RawClient;
use crate::hosts::{PROTOCOL_ID, UNIX_TIME, secret};
use crate::soak::scenario::Verdict;
use crate::{Rng, Trace, address};

/// The step of the clock.
const STEP: Duration = Duration::from_millis(5);

/// When the gangs come: the clients that hold seats are in before.
const OPENS: Instant = Instant::from_millis(1_000);

/// A hostile client.
struct Intruder {
    gang: usize,
    raw: RawClient,
    /// When it asks next.
    asks_at: Option<Instant>,
}

/// An honest client.
struct Honest {
    client: ClientMachine,
    from: SocketAddr,
    is_in: bool,
    /// Why it gave up, if it did before it was in.
    gave_up: Option<CloseReason>,
}

/// Datagrams on their way: when they arrive, in their order, from or to whom.
type Mail = BTreeMap<(Instant, u64), (SocketAddr, Vec<u8>)>;

pub(super) struct Run<'a> {
    scenario: &'a DoorScenario,
    rng: Rng,
    pub(super) trace: Trace,
    pub(super) now: Instant,
    desk: Desk,
    workers: Vec<Worker>,
    /// To the server, and from it.
    up: Mail,
    down: Mail,
    sent: u64,
    sitting: Vec<(SocketAddr, RawClient)>,
    intruders: BTreeMap<SocketAddr, Intruder>,
    /// Those of each gang in the order in which they came, how many came, and when the next comes.
    order: Vec<VecDeque<SocketAddr>>,
    came: Vec<u32>,
    next: Vec<Instant>,
    is_quiet: bool,
    honest: Option<Honest>,
    pub(super) joined: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &'a DoorScenario) -> Self {
        let mut rng = Rng::stream(scenario.seed, 1);
        let seeds: Vec<_> = (0..scenario.workers).map(|_| rng.key()).collect();
        let opened = Desk::open(Instant::ZERO, UNIX_TIME, scenario.server(), seeds);
        let (desk, workers) = opened.expect("a configuration that works");
        let gangs = scenario.gangs.len();
        Self {
            scenario,
            rng,
            trace: Trace::new(),
            now: Instant::ZERO,
            desk,
            workers,
            up: Mail::new(),
            down: Mail::new(),
            sent: 0,
            sitting: Vec::new(),
            intruders: BTreeMap::new(),
            order: vec![VecDeque::new(); gangs],
            came: vec![0; gangs],
            next: vec![OPENS; gangs],
            is_quiet: false,
            honest: None,
            joined: 0,
        }
    }

    /// The whole scenario.
    pub(super) fn play(&mut self) -> Result<(), Verdict> {
        for n in 0..self.scenario.taken {
            let from = (Ipv4Addr::new(192, 0, 2, 100 + n as u8), 4000).into();
            let mut raw = self.raw();
            self.send_up(from, raw.request());
            self.sitting.push((from, raw));
        }
        self.run_to(self.scenario.comes)?;
        if let Some(bound) = self.scenario.bound() {
            self.join(50, bound, "while others were at the door")?;
            let more = Duration::from_millis(self.rng.between(0, 5_000));
            self.run_to(self.now + more)?;
        }
        self.is_quiet = true;
        self.intruders.clear();
        self.join(51, AFTER, "after all others had stopped")
    }

    /// An honest client comes, and leaves again once it is in.
    fn join(&mut self, host: u8, within: Duration, when: &str) -> Result<(), Verdict> {
        let from = (Ipv4Addr::new(198, 51, 100, host), 4000).into();
        let credentials = match self.scenario.way {
            Way::Open => Credentials::Open,
            Way::Secret => Credentials::Secret { secret: secret(), identity: None },
            Way::Token => Credentials::Token(self.token()),
        };
        let config = ClientConfig::new(address(1), PROTOCOL_ID, credentials)
            .with_request(b"honest".to_vec());
        let client = ClientMachine::new(self.now, config, self.rng.key()).expect("it works");
        let came = self.now;
        self.honest = Some(Honest { client, from, is_in: false, gave_up: None });
        while self.honest.as_ref().is_some_and(|it| !it.is_in) {
            self.step()?;
            if let Some(reason) = self.honest.as_ref().and_then(|it| it.gave_up.as_ref()) {
                let what = format!("an honest client gave up {when}: {reason:?}");
                return Err(Verdict::Mismatch(format!("{what}: {:?}", self.stats())));
            }
            if self.now.since(came) > within {
                let what = format!("an honest client was not in within {within:?} {when}");
                return Err(Verdict::Hang(format!("{what}: {:?}", self.stats())));
            }
        }
        let id = self.joined;
        self.joined += 1;
        self.trace.record(self.now, 1, id, &[]);
        if let Some(connection) = self.honest.as_mut().and_then(|it| it.client.connection_mut()) {
            connection.close(self.now, CloseCode::DONE, "");
        }
        self.run_to(self.now + Duration::from_secs(1))?;
        self.honest = None;
        Ok(())
    }

    fn run_to(&mut self, end: Instant) -> Result<(), Verdict> {
        while self.now < end {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Verdict> {
        self.now = self.now + STEP;
        self.deliver_up();
        self.serve();
        self.deliver_down();
        self.act();
        self.check()
    }

    fn stats(&self) -> ServerStats {
        let mut all = ServerStats::default();
        self.workers.iter().for_each(|worker| all += worker.stats());
        self.desk.complete(all)
    }

    /// Checks what the server must never do, whatever its clients do.
    fn check(&mut self) -> Result<(), Verdict> {
        let steps = self.now.as_nanos() / STEP.as_nanos() as u64;
        if steps.is_multiple_of(64) {
            self.desk.check_invariants(&self.workers);
        }
        let stats = self.stats();
        let seated = stats.connections - stats.handshakes;
        let most = self.scenario.taken + self.scenario.free;
        // A client that is refused before its first data is no more than a handshake.
        let most = if self.scenario.refuses { most.min(self.scenario.taken + 1) } else { most };
        if seated > most {
            return Err(Verdict::Mismatch(format!("{seated} have seats, of {most}: {stats:?}")));
        }
        Ok(())
    }

    fn send_up(&mut self, from: SocketAddr, datagram: Vec<u8>) {
        self.sent += 1;
        self.up.insert((self.now + self.delay(from), self.sent), (from, datagram));
    }

    /// One way: hostile clients are near.
    fn delay(&self, client: SocketAddr) -> Duration {
        let honest = self.honest.as_ref().filter(|it| it.from == client);
        honest.map_or(STEP, |_| self.scenario.delay)
    }

    fn deliver_up(&mut self) {
        while let Some(entry) = self.up.first_entry().filter(|it| it.key().0 <= self.now) {
            let (from, mut datagram) = entry.remove();
            self.trace.record(self.now, 2, u64::from(from.port()), &datagram[..9]);
            let path = FourTuple::new(from);
            let at = usize::from(from.port()) % self.workers.len();
            let (now, desk) = (self.now, &mut self.desk);
            let worker = &mut self.workers[at];
            worker.mix_entropy(desk, &self.rng.key());
            let handled = worker.handle_datagram(now, desk, path, Ecn::NotEct, &mut datagram);
            if let Ok(Handled::ForWorker(other)) = handled {
                let mut stray = Stray { at: now, path, ecn: Ecn::NotEct, datagram };
                let _counted = self.workers[other].handle_stray(desk, &mut stray);
            }
        }
    }

    /// A round of each worker.
    fn serve(&mut self) {
        let mut batch = Batch::new(64);
        let refuses = self.scenario.refuses && self.now >= OPENS;
        for at in 0..self.workers.len() {
            self.workers[at].handle_timeout(self.now);
            while let Some((id, event)) = self.workers[at].poll_event(self.now) {
                if let ServerEvent::Connecting { request, .. } = event
                    && refuses
                    && request.is_empty()
                    && let Some(connection) = self.workers[at].connection_mut(id)
                {
                    connection.close(self.now, CloseCode::NOT_ACCEPTED, "");
                }
            }
            loop {
                self.workers[at].poll_transmit(self.now, &mut batch);
                for (to, datagram) in batch.iter() {
                    self.sent += 1;
                    let arrives = self.now + self.delay(to.remote);
                    self.down.insert((arrives, self.sent), (to.remote, datagram.to_vec()));
                }
                if !batch.is_full() {
                    break;
                }
                batch.clear();
            }
            batch.clear();
        }
        for _ in 0..2 {
            self.workers.iter_mut().for_each(|worker| worker.report(self.now, &mut self.desk));
        }
    }

    fn deliver_down(&mut self) {
        while let Some(entry) = self.down.first_entry().filter(|it| it.key().0 <= self.now) {
            let (to, mut datagram) = entry.remove();
            if let Some(honest) = self.honest.as_mut().filter(|it| it.from == to) {
                let _counted = honest.client.handle_datagram(self.now, address(1), &mut datagram);
            } else if let Some(at) = self.sitting.iter().position(|(from, _)| *from == to) {
                let raw = &mut self.sitting[at].1;
                let had = (raw.cookie, raw.link.is_some());
                let _plaintext = raw.handle(self.now, &datagram);
                let datagram = match &mut raw.link {
                    Some(link) if !had.1 => Some(link.frames(&[Frame::Ping])),
                    None if raw.cookie != had.0 => Some(raw.request()),
                    _ => None,
                };
                datagram.into_iter().for_each(|it| self.send_up(to, it));
            } else {
                self.intrude(to, &datagram);
            }
        }
    }

    /// A client of a gang receives a datagram.
    fn intrude(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(it) = self.intruders.get_mut(&to) else { return };
        let (plan, now) = (self.scenario.gangs[it.gang].plan, self.now);
        let mut answers = Vec::new();
        let mut is_over = false;
        match (datagram[0], plan) {
            (_, Plan::Spoofs) => {}
            (0x05, _) => {
                let _cookie = it.raw.handle(now, datagram);
                answers.push(it.raw.request());
                is_over = plan == Plan::Leaves;
            }
            (0x06, _) if datagram.get(9) == Some(&10) && datagram.len() == 39 => {
                let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| datagram[at + n]));
                let again = Duration::from_millis(number(19).into());
                it.asks_at = match (number(11), plan) {
                    (0, Plan::Holds) => {
                        is_over = true;
                        None
                    }
                    (0, Plan::Dawdles) => Some(now + Duration::from_millis(900)),
                    (0, _) => Some(now),
                    // It has its place until three of these are over.
                    (_, Plan::Dawdles) => Some(now + again * 29 / 10),
                    _ => Some(now + again),
                };
            }
            (0x07, Plan::Joins | Plan::Sits) => {
                let _plaintext = it.raw.handle(now, datagram);
                if let Some(link) = it.raw.link.as_mut() {
                    answers.push(link.frames(&[Frame::Ping]));
                    if plan == Plan::Joins {
                        answers.push(link.frames(&[Frame::Close { code: 0, reason: "" }]));
                    }
                    is_over = true;
                }
            }
            _ => is_over = true,
        }
        if is_over {
            self.intruders.remove(&to);
        }
        answers.into_iter().for_each(|answer| self.send_up(to, answer));
    }

    /// All hosts act on their deadlines.
    fn act(&mut self) {
        if self.now.as_nanos().is_multiple_of(2_000_000_000) {
            for at in 0..self.sitting.len() {
                let (from, raw) = &mut self.sitting[at];
                let ping = raw.link.as_mut().map(|link| link.frames(&[Frame::Ping]));
                let from = *from;
                ping.into_iter().for_each(|ping| self.send_up(from, ping));
            }
        }
        self.act_honestly();
        if !self.is_quiet {
            self.ask_again();
            (0..self.scenario.gangs.len()).for_each(|gang| self.send_more(gang));
        }
    }

    fn act_honestly(&mut self) {
        let Some(mut honest) = self.honest.take() else { return };
        honest.client.handle_timeout(self.now);
        let mut batch = Batch::new(usize::MAX);
        honest.client.poll_transmit(self.now, &mut batch);
        while let Some(event) = honest.client.poll_event(self.now) {
            match event {
                Event::Connected => honest.is_in = true,
                Event::Closed(reason) if !honest.is_in => honest.gave_up = Some(reason),
                _ => {}
            }
        }
        let from = honest.from;
        self.honest = Some(honest);
        for (_, datagram) in batch.iter() {
            self.send_up(from, datagram.to_vec());
        }
    }

    fn ask_again(&mut self) {
        let now = self.now;
        let due = self.intruders.iter_mut().filter_map(|(&from, it)| {
            it.asks_at.take_if(|at| *at <= now).map(|_| (from, it.raw.request()))
        });
        let due: Vec<_> = due.collect();
        due.into_iter().for_each(|(from, request)| self.send_up(from, request));
    }

    /// A gang sends its next client, if one is due.
    fn send_more(&mut self, number: usize) {
        let gang = &self.scenario.gangs[number];
        self.order[number].retain(|from| self.intruders.contains_key(from));
        if self.now < self.next[number] || self.order[number].len() >= gang.most {
            return;
        }
        self.next[number] = self.now + gang.every;
        let from = match gang.plan {
            Plan::Spoofs => {
                let [a, b, c, ..] = self.rng.next_u64().to_le_bytes();
                (Ipv4Addr::new(172, a, b, c), 4000).into()
            }
            _ => gang.address(number as u8, self.came[number]),
        };
        self.came[number] += 1;
        let mut raw = self.raw();
        self.send_up(from, raw.request());
        if gang.plan != Plan::Spoofs {
            self.intruders.insert(from, Intruder { gang: number, raw, asks_at: None });
            self.order[number].push_back(from);
        }
    }

    /// A client that follows a script.
    fn raw(&mut self) -> RawClient {
        let seed = self.rng.next_u64();
        match self.scenario.way {
            Way::Open => RawClient::new(None, seed),
            Way::Secret => RawClient::new(Some(&secret()), seed),
            Way::Token => RawClient::with_token(&self.token(), seed),
        }
    }

    fn token(&mut self) -> ConnectToken {
        let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 3_600, TokenServers::One(address(1)));
        let (secret, [nonce @ .., _, _, _, _, _, _, _, _]) =
            (Secret::from_bytes(self.rng.key()), self.rng.key());
        let token = token_key().issue(PROTOCOL_ID, &claims, secret, nonce);
        token.expect("claims that work")
    }
}
