//! The state that all workers of a server share: admission, seats, and budgets.
//!
//! A [`Desk`] decides about a request (`admission.rs`); afterwards the worker reports the outcome. Workers
//! ask the desk once for each request, refusal and reset, and report each end of a handshake and of a
//! connection; they never ask it about data. It computes no cryptography, so a lock on it is held for a short
//! time only.
//!
//! The invariant: it counts the seats that it has given and not got back, in whatever order the workers
//! report. A seat is given before its keys are agreed on, so no limit is exceeded meanwhile.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use haulier_control::Known;

use super::admission::{ClientName, Prefix};
use super::board::Board;
use super::connection_id::MAX_WORKERS;
use super::crowd::Judge;
use super::ended::Ended;
use super::handshakes::Handshakes;
use super::line::Line;
use super::memory::{Memory, RequestName, TokenName};
use super::paths::Paths;
use super::rules::Rules;
use super::worker::Worker;
use super::{ConnectionId, ServerConfig, ServerStats};
use crate::connection::ConfigError;
use crate::crypto::{Entropy, ResetKey, Suites};
use crate::{Instant, Platform, SendBudget, debug_as};

/// The state that all workers of a server share: memory of tokens and requests, seats, handshakes, the budget
/// of refusals, known paths.
///
/// [`ServerMachine`](super::ServerMachine) has one, and one [`Worker`]. A server of several threads has one
/// behind a lock, and a worker for each thread.
pub struct Desk {
    pub(super) rules: Arc<Rules>,
    pub(super) memory: Memory,
    /// The connection of each request that has one.
    pub(super) seats: BTreeMap<RequestName, ConnectionId>,
    /// Those of `seats` that ended before their handshakes were complete: each stays until its close is sent,
    /// and holds no seat. Otherwise connections refused by the program would keep others out for seconds.
    unseated: BTreeSet<RequestName>,
    /// Connections of each source prefix.
    pub(super) prefixes: BTreeMap<Prefix, usize>,
    pub(super) handshakes: Handshakes,
    pub(super) line: Line,
    pub(super) paths: Paths,
    /// The latest time of day that a worker read.
    pub(super) unix_time: u64,
    /// The time of day when the server was started, or first knew it; 0 if it never did.
    pub(super) started_unix: u64,
    pub(super) is_shutting_down: bool,
    /// When it was asked last.
    pub(super) asked_at: Instant,
    pub(super) ended: Ended,
    answer_budget: SendBudget,
    reset_key: ResetKey,
    board: Arc<Board>,
    judge: Judge,
    /// For each worker the handshakes that it has to end, to make room.
    orders: Vec<Vec<ConnectionId>>,
}

debug_as! { Desk: |desk| seats = desk.seats.len(), handshakes = desk.handshakes.len() }

/// What a worker reports to the desk.
#[derive(Debug)]
pub(super) enum Note {
    /// The connection of a request that was accepted.
    Seated { name: RequestName, id: ConnectionId },
    /// There is no connection, because no keys could be agreed on.
    Withdrawn { name: RequestName, token: Option<(TokenName, u64)>, prefix: Prefix },
    /// A connection has ended, and its worker remembers it until then.
    Ended { name: RequestName, worker: u8, until: Instant },
    /// A handshake is completed.
    HandshakeOver { name: RequestName },
    /// A handshake has ended without being completed. Its connection is there until its close is sent.
    Unseated { name: RequestName },
    /// A connection is gone.
    Gone { name: RequestName, prefix: Prefix, path: Option<Box<Measured>> },
}

/// What was measured of the path to a client.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) ip: IpAddr,
    pub(super) client: Option<ClientName>,
    pub(super) known: Known,
}

/// The way to a desk: it is at hand, or behind a lock.
pub trait AtDesk {
    /// Asks the desk. Nothing slow is done meanwhile: others may wait.
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Desk) -> R) -> R;
}

impl AtDesk for Desk {
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Self) -> R) -> R {
        ask(self)
    }
}

impl Desk {
    /// A desk, and a worker for each platform: its seed is that worker's own, and must be fit for keys; the
    /// same seeds give the same server. `unix_time` is the time of day at `now`, in seconds since 1970, for
    /// the expiry of tokens.
    ///
    /// # Errors
    /// [`ConfigError`] for a setting that cannot work, and for no or more than 256 workers.
    pub fn open(
        now: Instant,
        unix_time: u64,
        config: ServerConfig,
        platforms: impl IntoIterator<Item = impl Into<Platform>>,
    ) -> Result<(Self, Vec<Worker>), ConfigError> {
        let mut platforms = platforms.into_iter().map(Into::into);
        let platform: Platform = platforms.next().ok_or(ConfigError::Workers)?;
        let mut entropy = Entropy::new(platform.seed);
        let suites = Suites::available(platform.has_aes);
        let (rules, reset_key) = Rules::new(config, suites, &mut entropy)?;
        let rules = Arc::new(rules);
        // In boxes, as each worker has it: a vector leaves what it held behind, and nothing wipes that.
        let entropies: Vec<_> = core::iter::once(entropy)
            .chain(platforms.map(|platform| Entropy::new(platform.seed)))
            .map(Box::new)
            .collect();
        if entropies.len() > MAX_WORKERS {
            return Err(ConfigError::Workers);
        }
        let board = Arc::new(Board::new(entropies.len()));
        let answers = rules.config.limits.answers_per_second;
        // A send budget fills at a rate in bit/s. Here one byte stands for one answer.
        let mut answer_budget = SendBudget::new(u64::from(answers).saturating_mul(8), now);
        answer_budget.fill(u64::from(answers));
        let desk = Self {
            memory: Memory::new(rules.config.limits.remembered),
            seats: BTreeMap::new(),
            unseated: BTreeSet::new(),
            prefixes: BTreeMap::new(),
            handshakes: Handshakes::default(),
            line: Line::new(rules.config.limits.line),
            paths: Paths::new(rules.config.connection.min_rate_bps),
            unix_time,
            started_unix: unix_time,
            is_shutting_down: false,
            asked_at: now,
            answer_budget,
            ended: Ended::new(rules.config.limits.seats()),
            reset_key: reset_key.clone(),
            orders: entropies.iter().map(|_| Vec::new()).collect(),
            board: Arc::clone(&board),
            judge: Judge::new(),
            rules: Arc::clone(&rules),
        };
        let worker = |(number, entropy)| {
            let (rules, board) = (Arc::clone(&rules), Arc::clone(&board));
            let reset_key = Box::new(reset_key.clone());
            Worker::new(number, (now, unix_time), rules, board, reset_key, entropy)
        };
        Ok((desk, (0..=u8::MAX).zip(entropies).map(worker).collect()))
    }

    /// Adds what only the desk knows to the counters of workers.
    #[must_use]
    pub fn complete(&self, mut stats: ServerStats) -> ServerStats {
        stats.handshakes = self.handshakes.len();
        stats.remembered = self.memory.len();
        stats.in_line = self.line.len();
        stats
    }

    /// Refuses all requests from now on.
    pub(super) const fn shut_down(&mut self) {
        self.is_shutting_down = true;
    }

    /// Whether one more refusal or reset may be sent; if so, counts it. If not: until when, at least.
    pub(super) fn may_answer(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        let budget = &mut self.answer_budget;
        budget.refill(now, u64::from(self.rules.config.limits.answers_per_second));
        if budget.try_spend(1) { Ok(()) } else { Err(budget.ready_at(1)) }
    }

    /// A round of the crowd is over.
    pub(super) fn judge_round(&mut self, now: Instant) {
        self.judge.judge(now, self.board.crowd());
    }

    /// Hears what workers report.
    pub(super) fn hear(&mut self, notes: &mut Vec<Note>) {
        for note in notes.drain(..) {
            match note {
                Note::Seated { name, id } => {
                    self.seats.insert(name, id);
                    self.handshakes.seat(&name, id);
                }
                Note::Withdrawn { name, token, prefix } => {
                    match token {
                        Some((token, expiry)) => self.memory.forget_token(&token, expiry),
                        None => self.memory.forget(&name),
                    }
                    self.handshakes.end(&name);
                    self.leave(&name, prefix);
                }
                Note::Ended { name, worker, until } => self.ended.insert(name, worker, until),
                // Unless it was ended to make room before.
                Note::HandshakeOver { name } => self.handshakes.end(&name),
                Note::Unseated { name } => {
                    self.handshakes.unseat(&name);
                    self.unseated.insert(name);
                    self.line.on_freed(self.asked_at, self.free_seats());
                }
                Note::Gone { name, prefix, path } => {
                    if let Some(path) = path {
                        self.paths.remember(path.ip, path.client, path.known);
                    }
                    self.handshakes.end(&name);
                    self.leave(&name, prefix);
                }
            }
        }
    }

    /// The number of free seats.
    pub(super) fn free_seats(&self) -> usize {
        let limits = self.rules.config.limits;
        // A connection stays until the program has read that it ended. If the program reads nothing, at most
        // `handshakes` of these connections are held beyond the seats.
        let held = self.seats.len() - self.unseated.len().min(limits.handshakes);
        limits.seats().saturating_sub(held)
    }

    /// A connection is gone, and so its seat is free, unless it was free before.
    fn leave(&mut self, name: &RequestName, prefix: Prefix) {
        self.seats.remove(name);
        if !self.unseated.remove(name) {
            self.line.on_freed(self.asked_at, self.free_seats());
        }
        if let Some(connections) = self.prefixes.get_mut(&prefix) {
            *connections -= 1;
            if *connections == 0 {
                self.prefixes.remove(&prefix);
            }
        }
    }

    /// Another worker has to end its handshake.
    pub(super) fn order_end(&mut self, id: ConnectionId) {
        if let Some(orders) = self.orders.get_mut(id.worker()) {
            orders.push(id);
            self.board.order(id.worker());
        }
    }

    /// The handshakes that this worker has to end.
    pub(super) fn take_orders(&mut self, worker: u8) -> Vec<ConnectionId> {
        self.orders.get_mut(usize::from(worker)).map(core::mem::take).unwrap_or_default()
    }

    /// Another reset key, if there are no connections and it need not stay the same.
    pub(super) fn renew_reset_key(&mut self, fresh: ResetKey) {
        if self.seats.is_empty() && self.rules.config.credentials.reset_secret.is_none() {
            self.reset_key = fresh;
            self.board.count_reset_key();
        }
    }

    /// The reset key, if the worker has another than the one of that number. Returns its number.
    pub(super) fn update_reset_key(&self, seen: u64, key: &mut ResetKey) -> u64 {
        let number = self.board.reset_keys();
        if number != seen {
            key.clone_from(&self.reset_key);
        }
        number
    }

    /// Panics if the parts contradict each other, or what the workers have. For tests, fuzzers and the
    /// simulator; all workers have reported.
    #[doc(hidden)]
    pub fn check_invariants<'a>(&self, workers: impl IntoIterator<Item = &'a Worker>) {
        self.line.check_invariants();
        let (mut connections, mut handshakes) = (0, 0);
        for worker in workers {
            worker.check_invariants();
            assert!(worker.notes.is_empty(), "not reported");
            connections += worker.slots.len();
            handshakes += worker.slots.handshakes();
        }
        self.ended.check_invariants();
        assert_eq!(connections, self.seats.len(), "seats");
        assert!(self.unseated.iter().all(|name| self.seats.contains_key(name)), "without a seat");
        let ordered: usize = self.orders.iter().map(Vec::len).sum();
        let counted = self.handshakes.len();
        assert!((counted..=counted + ordered).contains(&handshakes), "{handshakes} handshakes");
        assert_eq!(self.prefixes.values().sum::<usize>(), connections, "of all prefixes");
        self.handshakes.check_invariants();
    }
}
