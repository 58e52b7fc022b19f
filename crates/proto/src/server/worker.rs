//! Connections, and what goes on with them: all that needs no desk.
//!
//! A worker has a socket of its own, and its thread. It keeps its connections (`slots.rs`), what it remembers
//! of those that have ended (`lingering.rs`), and the pool for fragments; it verifies requests and agrees on
//! keys. The invariant: for data of its own connections it asks nobody.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use super::board::Board;
use super::desk::{AtDesk, Note};
use super::ensembles::Ensembles;
use super::flights::Flights;
use super::lingering::Lingering;
use super::old_traces::OldTraces;
use super::rules::Rules;
use super::slots::{Sends, Slots};
use super::unix_clock::UnixClock;
use super::uplink::Uplink;
use super::{ConnectionId, Desk, ServerConfig, ServerEvent, ServerStats, Stray};
use crate::connection::trace::Traced;
use crate::connection::{CloseCode, Connection};
use crate::credentials::TokenClaims;
use crate::crypto::{Entropy, ResetKey};
use crate::fragment::FragmentPool;
use crate::time::earliest;
use crate::wire::{DataHeader, Kind, Role, WireId};
use crate::work::Work;
use crate::{Batch, DropCounts, DropReason, Ecn, FourTuple, Instant, debug_as};

/// The maximum number of answers to strangers that wait to be sent, some 100 bytes each: as many as a round
/// of a runner can cause. When a thousand clients come at once, one that gets no cookie asks again, too late.
const MAX_ANSWERS: usize = 1_024;

/// Some of a server's connections, with a socket of their own: [`ServerMachine`](super::ServerMachine) has
/// one worker, a server of several threads has one for each. A worker asks the [`Desk`] about shared state.
pub struct Worker {
    pub(super) number: u8,
    pub(super) rules: Arc<Rules>,
    pub(super) board: Arc<Board>,
    /// The desk's reset key, and its number. The key and the generator are in boxes, because moving a worker
    /// would leave copies of them that nothing wipes.
    pub(super) reset_key: Box<ResetKey>,
    pub(super) reset_keys: u64,
    pub(super) entropy: Box<Entropy>,
    pub(super) slots: Slots,
    pub(super) uplink: Uplink,
    pub(super) flights: Flights,
    pub(super) ensembles: Ensembles,
    pub(super) by_id: BTreeMap<WireId, ConnectionId>,
    pub(super) lingering: Lingering,
    pub(super) answers: VecDeque<(FourTuple, Vec<u8>)>,
    /// The budget of answers is empty until then.
    no_answer_until: Instant,
    /// Requests that the application has not read. Claims are in a box, because the place of those that are
    /// not there would be filled with what was on the stack before, a key for example.
    pub(super) requests: VecDeque<(ConnectionId, Bytes, Option<Box<TokenClaims>>)>,
    pub(super) pool: FragmentPool,
    drops: DropCounts,
    pub(super) stats: ServerStats,
    /// For strangers, and of connections that were removed.
    pub(super) work: Work,
    pub(super) unix_clock: UnixClock,
    /// The traces of connections that were removed, until they are taken.
    pub(super) old_traces: OldTraces,
    /// What the desk has not heard yet.
    pub(super) notes: Vec<Note>,
    /// The memory that the others know of.
    reported_bytes: usize,
    /// Others hold more memory than their part, or a handshake too many, and have to look.
    pub(super) calls_others: bool,
}

/// What became of a datagram that was not dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// This worker has taken it.
    Here,
    /// It is to be handed to this worker: [`Worker::handle_stray`]. Nothing of it has changed.
    ForWorker(usize),
}

debug_as! { Worker: |worker| stats = worker.stats(), drops = worker.drops }

impl Worker {
    pub(super) fn new(
        number: u8,
        (now, unix_time): (Instant, u64),
        rules: Arc<Rules>,
        board: Arc<Board>,
        reset_key: Box<ResetKey>,
        entropy: Box<Entropy>,
    ) -> Self {
        Self {
            number,
            reset_key,
            reset_keys: 0,
            entropy,
            slots: Slots::new(number),
            uplink: Uplink::new(rules.config.max_uplink_bps)
                .without_limit(rules.config.unknown_uplink)
                .over(Arc::clone(&board)),
            flights: Flights::new(Arc::clone(&board)),
            ensembles: Ensembles::default(),
            by_id: BTreeMap::new(),
            lingering: Lingering::new(rules.config.limits.seats()),
            answers: VecDeque::new(),
            no_answer_until: Instant::ZERO,
            requests: VecDeque::new(),
            pool: FragmentPool::default(),
            drops: DropCounts::new(),
            stats: ServerStats::default(),
            work: Work::default(),
            unix_clock: UnixClock::new(now, unix_time),
            old_traces: OldTraces::default(),
            notes: Vec::new(),
            reported_bytes: 0,
            calls_others: false,
            board,
            rules,
        }
    }

    /// The configuration of its server.
    #[doc(hidden)]
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.rules.config
    }

    /// Its counters. What only the desk knows is 0.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        let mut stats = self.stats;
        stats.connections = self.slots.len();
        stats.lingering = self.lingering.len();
        stats.memory_bytes = self.memory_bytes() + self.pool.held_bytes();
        stats
    }

    /// Datagrams that were dropped, by reason, from clients and strangers.
    #[must_use]
    pub const fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// As [`ServerMachine::set_unix_time`](super::ServerMachine::set_unix_time).
    pub fn set_unix_time(&mut self, now: Instant, unix_time: u64) {
        self.unix_clock.set(now, unix_time);
    }

    /// As [`ServerMachine::forget_unix_time`](super::ServerMachine::forget_unix_time).
    pub const fn forget_unix_time(&mut self) {
        self.unix_clock.forget();
    }

    /// A connection, to look at; `None` if it has been removed, or is another worker's.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id).map(|slot| &*slot.connection)
    }

    /// A connection, to act on; `None` if it has been removed, or is another worker's.
    #[must_use]
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        // After any change it may have something to send.
        self.slots.refresh(id);
        self.slots.connection_mut(id)
    }

    /// Its connections, including handshakes in progress.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.ids()
    }

    /// Closes its connections, and lets the desk refuse new ones. Continue the loop until there are no
    /// connections.
    pub fn shut_down(&mut self, now: Instant, desk: &mut impl AtDesk) {
        desk.ask(Desk::shut_down);
        let ids: Vec<_> = self.slots.ids().collect();
        for id in ids {
            if let Some(connection) = self.connection_mut(id) {
                connection.close(now, CloseCode::SHUTTING_DOWN, "");
            }
            self.refresh(id);
        }
    }

    /// Tells the desk what it has to know, and does what the desk has for it to do: to be called after each
    /// other call, or at the end of a round of calls. Without anything new it asks nobody.
    pub fn report(&mut self, now: Instant, desk: &mut impl AtDesk) {
        let is_alone = self.board.workers() == 1;
        if !is_alone {
            let held = self.memory_bytes();
            self.board.hold(self.reported_bytes, held);
            self.reported_bytes = held;
            if self.board.take_order(usize::from(self.number)) {
                let orders = desk.ask(|desk| desk.take_orders(self.number));
                orders.into_iter().for_each(|id| self.end_handshake(now, id));
            }
        }
        if self.board.crowd().is_due(now) {
            desk.ask(|desk| desk.judge_round(now));
        }
        if !self.notes.is_empty() {
            desk.ask(|desk| {
                desk.hear(&mut self.notes);
                Self::take_calls(&mut self.answers, desk);
            });
        }
    }

    /// Takes the calls of those in line for whom there is a seat now, as many as there is room for.
    pub(super) fn take_calls(answers: &mut VecDeque<(FourTuple, Vec<u8>)>, desk: &mut Desk) {
        while answers.len() < MAX_ANSWERS
            && let Some(call) = desk.line.next_call()
        {
            answers.push_back(call);
        }
    }

    /// Whether all other workers are to be called, because one holds more memory than its part, or a
    /// handshake that made room for another: each looks in its [`handle_timeout`](Self::handle_timeout) and
    /// [`report`](Self::report). Asked once.
    pub const fn takes_call(&mut self) -> bool {
        core::mem::replace(&mut self.calls_others, false)
    }

    /// What clients make the other workers hold, in bytes.
    pub(super) fn others_hold(&self) -> usize {
        self.board.held().saturating_sub(self.reported_bytes)
    }

    /// Handles a datagram from this address. It is decrypted in place.
    ///
    /// # Errors
    /// Why it was dropped, which is ordinary and already counted in [`drops`](Self::drops).
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<Handled, DropReason> {
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        let outcome = self.handle(now, desk, path, ecn, datagram);
        self.stats.strays += u64::from(matches!(outcome, Ok(Handled::ForWorker(_))));
        outcome.inspect_err(|&reason| self.drops.count(reason))
    }

    /// Handles a datagram that another worker has received. It is handed over once only.
    ///
    /// # Errors
    /// As [`handle_datagram`](Self::handle_datagram).
    pub fn handle_stray(
        &mut self,
        desk: &mut impl AtDesk,
        stray: &mut Stray,
    ) -> Result<(), DropReason> {
        let Stray { at, path, ecn, datagram } = stray;
        let outcome = match self.handle(*at, desk, *path, *ecn, datagram) {
            Ok(Handled::Here) => Ok(()),
            Ok(Handled::ForWorker(_)) => Err(DropReason::UnknownConnection),
            Err(reason) => Err(reason),
        };
        outcome.inspect_err(|&reason| self.drops.count(reason))
    }

    /// Counts a stray that found no room at the worker it was for.
    pub const fn lose_stray(&mut self) {
        self.stats.strays_dropped += 1;
    }

    fn handle(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<Handled, DropReason> {
        match Kind::of(datagram)? {
            Kind::Data { from: Role::Client, .. } => {
                self.handle_data(now, desk, path, ecn, datagram)
            }
            Kind::Request => self.handle_request(now, desk, path, datagram),
            _ => Err(DropReason::WrongRole),
        }
    }

    fn handle_data(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<Handled, DropReason> {
        let header = DataHeader::read(datagram)?;
        let id = self.by_id.get(&header.to).copied();
        let Some(id) = id.filter(|&id| self.slots.get(id).is_some_and(|slot| !slot.lingers)) else {
            return self.on_unknown(now, desk, header.to, path, datagram.len());
        };
        let Some(connection) = self.slots.connection_mut(id) else {
            return Err(DropReason::UnknownConnection);
        };
        let outcome = connection.handle_data(now, path, &header, datagram, &mut self.pool);
        if outcome.is_ok() {
            connection.on_mark(ecn);
        }
        self.refresh(id);
        self.linger(now, id);
        self.enforce_memory_limit(now);
        outcome.map(|()| Handled::Here)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.lingering.memory_bytes()
    }

    /// The next event, and its connection. Call it until it returns `None`. A connection that has ended can
    /// be looked at until the call after its [`Event::Closed`](crate::connection::Event::Closed).
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        while let Some((id, request, token)) = self.requests.pop_front() {
            if self.slots.get(id).is_some() {
                let token = token.map(|claims| *claims);
                return Some((id, ServerEvent::Connecting { request, token }));
            }
        }
        while let Some(id) = self.slots.next_with_events() {
            let connection = self.slots.connection_mut(id);
            if let Some(event) = connection.and_then(|connection| connection.poll_event(now)) {
                // Reading may have made room, which the peer has to be sent.
                self.slots.refresh(id);
                return Some((id, ServerEvent::Connection(event)));
            }
            self.slots.on_events_read();
            self.remove_if_over(id);
        }
        None
    }

    /// The next event of the trace of any of its connections, as
    /// [`ServerMachine::poll_trace`](super::ServerMachine::poll_trace).
    #[must_use]
    pub fn poll_trace(&mut self) -> Option<(ConnectionId, Traced)> {
        self.old_traces.pop().or_else(|| self.slots.poll_trace())
    }

    /// Acts on deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pool.handle_timeout(now);
        self.lingering.forget_old(now);
        while let Some(id) = self.slots.next_due(now) {
            if let Some(connection) = self.slots.connection_mut(id) {
                connection.handle_timeout(now);
            }
            self.refresh(id);
            self.linger(now, id);
        }
        if self.board.workers() > 1 {
            self.enforce_memory_limit(now);
        }
    }

    /// Appends what there is to send. Clients take turns of up to 16 datagrams, and shorter ones where they
    /// share a limited uplink.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some((to, answer)) = self.answers.pop_front()
        {
            batch.push(to, &answer);
            self.count_sent(answer.len());
        }
        let (mut is_run, mut previous) = (false, None);
        while !batch.is_full()
            && let Some(id) = self.next_to_send(now)
        {
            is_run &= previous.replace(id) == Some(id);
            let slot = self.slots.get(id);
            let is_shared = slot.is_some_and(|slot| slot.sends == Sends::BesideOthers);
            let has_turn = !is_shared || self.ensembles.is_open_to(now, id);
            let is_open = has_turn && self.uplink.is_open_to(now, id);
            let connection = self.slots.connection_mut(id);
            let sent = connection.and_then(|connection| {
                connection.set_uplink_open(now, is_open);
                batch.compose(|out| connection.poll_transmit(now, out, &mut is_run))
            });
            if let Some(bytes) = sent {
                self.slots.on_sent();
                self.uplink.on_sent(now, id, bytes);
                self.flights.on_sent(now, id);
                if is_shared {
                    self.ensembles.on_sent(now, id, has_turn);
                }
                self.count_sent(bytes);
            } else {
                self.count_flight(id);
                let left = self.slots.get(id).and_then(|slot| slot.connection.awaits_uplink());
                // A connection that has its turn at its address, and waits for the uplink, keeps the turn.
                self.uplink.on_nothing_to_send(id, left.filter(|_| has_turn));
                if is_shared && (!has_turn || left.is_none()) {
                    self.ensembles.on_nothing(id, left);
                }
                self.slots.on_nothing_to_send();
                // The program may have closed it.
                self.note_handshake(id);
                self.linger(now, id);
                self.remove_if_over(id);
            }
        }
    }

    /// The connection to poll next: one that may have something to send, or whose turn at its address or on
    /// the uplink begins.
    fn next_to_send(&mut self, now: Instant) -> Option<ConnectionId> {
        if let Some(id) = self.slots.next_ready() {
            return Some(id);
        }
        let id = self.ensembles.begin_turn(now).or_else(|| self.uplink.begin_turn(now))?;
        self.slots.refresh(id);
        self.slots.next_ready()
    }

    /// When to act next if nothing arrives.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.slots.is_any_ready() || !self.answers.is_empty() {
            return Some(Instant::ZERO);
        }
        let turn = earliest(self.uplink.poll_timeout(), self.ensembles.poll_timeout());
        earliest(earliest(self.slots.first_deadline(), turn), self.pool.poll_timeout())
    }

    const fn count_sent(&mut self, bytes: usize) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    pub(super) fn answer(&mut self, to: FourTuple, bytes: Vec<u8>) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((to, bytes));
        }
    }

    /// Whether one more refusal or reset may be sent; if so, counts it. While the budget is empty the desk is
    /// not asked.
    pub(super) fn may_answer(&mut self, now: Instant, desk: &mut impl AtDesk) -> bool {
        if self.answers.len() >= MAX_ANSWERS || now < self.no_answer_until {
            return false;
        }
        let answer = desk.ask(|desk| desk.may_answer(now));
        if let Err(Some(until)) = answer {
            self.no_answer_until = until;
        }
        answer.is_ok()
    }

    /// Mixes in fresh random bytes, as [`Machine::mix_entropy`](crate::Machine::mix_entropy).
    pub fn mix_entropy(&mut self, desk: &mut impl AtDesk, fresh: &[u8; 32]) {
        self.entropy.mix(fresh);
        // A snapshot that servers are started from has no connections; after it each has a key of its own.
        if self.slots.len() == 0 && self.rules.config.credentials.reset_secret.is_none() {
            let key = ResetKey::random(self.entropy.next_secret());
            desk.ask(|desk| desk.renew_reset_key(key));
            self.update_reset_key(desk);
        }
    }

    /// Takes the desk's reset key, if that was replaced.
    pub(super) fn update_reset_key(&mut self, desk: &mut impl AtDesk) {
        if self.board.reset_keys() != self.reset_keys {
            let (seen, key) = (self.reset_keys, &mut self.reset_key);
            self.reset_keys = desk.ask(|desk| desk.update_reset_key(seen, key));
        }
    }

    pub(super) fn check_invariants(&self) {
        self.slots.check_invariants();
        self.uplink.check_invariants();
        self.flights.check_invariants(|id| self.slots.get(id).is_some());
        self.ensembles.check_invariants();
        self.lingering.check_invariants();
        assert_eq!(self.slots.len(), self.by_id.len());
    }
}
