//! The life of a connection: its state, the close that it sends, and the events for the application.
//!
//! The invariants: a close is kept exactly while the state is `Closing`, and until it is taken at the end.
//! The end of the connection is reported to the application once, and last, since the data that arrived
//! before was acknowledged.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;

use super::closing::{Closing, MAX_CLOSES};
use super::trace::{Trace, TraceEvent};
use super::{CloseCode, CloseReason, ConnectionState, ConnectionTrigger, Event};
use crate::Instant;
use crate::wire::Role;
use crate::wire::frames::truncate_reason;

/// The life of a connection.
#[derive(Debug)]
pub(super) struct Life {
    state: ConnectionState,
    closing: Option<Box<Closing>>,
    /// The application has not read that it is connected, which comes before all other events.
    is_connected_unread: bool,
    events: VecDeque<Event>,
    /// The latest time that the driver passed in.
    now: Instant,
    /// Only if the configuration asks for a trace.
    trace: Option<Box<Trace>>,
}

impl Life {
    /// The handshake is over. A client is connected, as far as its application is concerned.
    pub(super) fn new(now: Instant, role: Role, trace: Option<Box<Trace>>) -> Self {
        Self {
            state: match role {
                Role::Client => ConnectionState::Confirming,
                Role::Server => ConnectionState::Responding,
            },
            closing: None,
            is_connected_unread: role == Role::Client,
            events: VecDeque::new(),
            now,
            trace,
        }
    }

    pub(super) const fn state(&self) -> ConnectionState {
        self.state
    }

    /// Whether it is in this state.
    pub(super) fn is(&self, state: ConnectionState) -> bool {
        self.state == state
    }

    pub(super) const fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// The latest time that the driver passed in.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// The driver passes this time in.
    pub(super) const fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// A datagram of ours was acknowledged.
    pub(super) fn on_confirmed(&mut self) {
        self.transition(ConnectionTrigger::Confirmed);
    }

    /// The client's address is validated. Returns whether that connects.
    pub(super) fn on_validated(&mut self) -> bool {
        let is_first = self.transition(ConnectionTrigger::AddressValidated);
        self.is_connected_unread |= is_first;
        is_first
    }

    /// This end closes. Returns whether it was open.
    pub(super) fn close(&mut self, now: Instant, code: CloseCode, reason: &str) -> bool {
        let is_first = self.transition(ConnectionTrigger::CloseHere);
        if is_first {
            let reason = truncate_reason(reason).into();
            self.closing = Some(Box::new(Closing::new(now, code, reason, MAX_CLOSES)));
            self.tell_end(now, CloseReason::Here(code));
        }
        is_first
    }

    /// The peer closes. That is answered once, so that it need not repeat it.
    pub(super) fn on_close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        let answer = Closing::new(now, CloseCode::DONE, String::new(), 1);
        self.closing.get_or_insert_with(|| Box::new(answer)).on_answer();
        let reason = CloseReason::There { code, reason: reason.into() };
        self.end(ConnectionTrigger::CloseThere, reason);
    }

    /// Ends it without sending anything more.
    pub(super) fn end(&mut self, trigger: ConnectionTrigger, reason: CloseReason) {
        let was_closing = self.is(ConnectionState::Closing);
        if self.transition(trigger) && !was_closing {
            self.tell_end(self.now, reason);
        }
    }

    /// Ends it without sending anything. A client that still sends is answered with a close with `code`.
    pub(super) fn end_silently(&mut self, now: Instant, reason: CloseReason, code: CloseCode) {
        let silent = Closing::new(now, code, String::new(), 0);
        self.closing.get_or_insert_with(|| Box::new(silent));
        self.end(ConnectionTrigger::Silence, reason);
    }

    /// A copy of the request arrived: if this end closes, the client has not received the close. The next of
    /// the remaining copies is sent at once. (Data shows nothing: datagrams that were in flight arrive for a
    /// round trip, and the next copy is due not much later.)
    pub(super) fn hasten_close(&mut self, now: Instant) {
        self.closing.iter_mut().for_each(|closing| closing.hasten(now));
    }

    /// When the next copy of the close is due; `None` if the connection does not close.
    pub(super) fn close_at(&self) -> Option<Instant> {
        let closing = self.closing.as_ref().filter(|_| self.is(ConnectionState::Closing))?;
        Some(closing.next_at())
    }

    /// The close that this end is sending, or would send if asked.
    pub(super) fn closing_mut(&mut self) -> Option<&mut Closing> {
        self.closing.as_deref_mut()
    }

    /// The last copy of the close was sent.
    pub(super) fn on_last_close(&mut self) {
        self.transition(ConnectionTrigger::CloseSent);
    }

    /// It has ended: returns the close with which a client that asks is answered.
    pub(super) fn take_closing(&mut self) -> Option<Box<Closing>> {
        self.closing.take()
    }

    /// Returns whether the state has changed.
    fn transition(&mut self, trigger: ConnectionTrigger) -> bool {
        let next = self.state.next(trigger);
        if let Some(next) = next {
            self.state = next;
            self.note(self.now, || TraceEvent::StateChanged(next));
        }
        next.is_some()
    }

    fn tell_end(&mut self, now: Instant, reason: CloseReason) {
        if let Some(trace) = &mut self.trace {
            trace.on_closed(now, &reason);
        }
        self.events.push_back(Event::Closed(reason));
    }

    /// Queues these events for the application.
    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = Event>) {
        self.events.extend(events);
    }

    /// Queues this event for the application, unless an equal one is queued already.
    pub(super) fn tell_once(&mut self, event: Event) {
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// The next event that is reported before the data that has arrived.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        if core::mem::take(&mut self.is_connected_unread) {
            return Some(Event::Connected);
        }
        match self.events.front() {
            None | Some(Event::Closed(_)) => None,
            Some(_) => self.events.pop_front(),
        }
    }

    /// The event that is reported after all others: the end.
    pub(super) fn poll_end(&mut self) -> Option<Event> {
        let end = self.events.pop_front();
        if self.events.is_empty() && self.events.capacity() > 4 {
            self.events = VecDeque::new();
        }
        end
    }

    pub(super) fn has_events(&self) -> bool {
        self.is_connected_unread || !self.events.is_empty()
    }

    /// Gives back the memory of what is empty.
    pub(super) fn rest(&mut self) {
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
    }

    /// Writes an event down.
    pub(super) fn note(&mut self, at: Instant, event: impl FnOnce() -> TraceEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(at, event());
        }
    }

    pub(super) fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    pub(super) fn trace_mut(&mut self) -> Option<&mut Trace> {
        self.trace.as_deref_mut()
    }

    /// Its trace, to be put somewhere else for good or for a while.
    pub(super) const fn take_trace(&mut self) -> Option<Box<Trace>> {
        self.trace.take()
    }

    /// Puts it back.
    pub(super) fn set_trace(&mut self, trace: Option<Box<Trace>>) {
        self.trace = trace;
    }

    /// Panics if it contradicts itself.
    pub(super) fn check_invariants(&self, role: Role) {
        let is_closing = self.is(ConnectionState::Closing);
        let is_closed = self.is(ConnectionState::Closed);
        assert_eq!(self.closing.is_some() && !is_closed, is_closing);
        assert!(role == Role::Server || !self.is(ConnectionState::Responding));
        assert!(role == Role::Client || !self.is(ConnectionState::Confirming));
        let ends = self.events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        assert!(ends <= 1 && (ends == 0 || !self.is_open()), "an end that is none");
    }
}
