//! The methods by which a connection writes its trace; without a trace they do nothing.
//!
//! The methods about datagrams are called only after one comparison. They read what they need from the parts,
//! so the parts know nothing of a trace.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::frame::{self, SliceSort, TraceFrame};
use super::queue::Trace;
use super::{DatagramKind, TraceDatagram, TraceEvent, TraceLevel, TraceMeasures, Traced};
use crate::connection::{CloseReason, Connection, Ends, Event, Parameters};
use crate::transit::{Datagram, LossReason};
use crate::wire::Role;
use crate::{DropReason, Instant};

/// A datagram as it is composed, before it is sealed.
pub(in crate::connection) struct Composed {
    frames: Vec<TraceFrame>,
    is_ack_eliciting: bool,
}

impl Connection {
    /// The next event of its trace, the oldest first.
    #[must_use]
    pub fn poll_trace(&mut self) -> Option<Traced> {
        self.life.trace_mut()?.pop()
    }

    /// Its trace, which has nothing more then.
    pub(crate) const fn take_trace(&mut self) -> Option<Box<Trace>> {
        self.life.take_trace()
    }

    pub(crate) fn has_trace(&self) -> bool {
        self.life.trace().is_some_and(|trace| !trace.is_empty())
    }

    /// A datagram was sealed and is on its way.
    pub(in crate::connection) fn note_sent(&mut self, number: u64, bytes: usize, it: Composed) {
        let Composed { mut frames, is_ack_eliciting } = it;
        let now = self.life.now();
        // What the datagrams before it changed, all at the same time.
        if self.life.trace().is_some_and(|trace| trace.sent_at.is_some_and(|at| at < now)) {
            self.note_measures();
        }
        let resent = self.outbound.transfer().stats().resent;
        let updates = self.agreement.key_updates();
        let kind = match self.agreement.is_responding() {
            true => DatagramKind::Response,
            false => DatagramKind::Data,
        };
        let Some(trace) = self.life.trace_mut() else { return };
        if resent > core::mem::replace(&mut trace.resent, resent)
            && let Some(TraceFrame::Slice { sort, .. }) = frames.last_mut()
            && *sort == SliceSort::Source
        {
            *sort = SliceSort::Resent;
        }
        trace.on_key_updates(now, updates);
        trace.on_announcements(now, true, &frames);
        trace.sent_at = Some(now);
        trace.bytes_in_flight += if is_ack_eliciting { bytes as u64 } else { 0 };
        let datagram = TraceDatagram { kind, number, bytes, is_ack_eliciting, frames };
        trace.push(now, TraceEvent::DatagramSent(datagram));
    }

    /// The datagram that was just sent is a probe for larger ones, which does not count as in flight.
    pub(in crate::connection) fn note_probe(&mut self, bytes: usize) {
        if let Some(trace) = self.life.trace_mut() {
            trace.bytes_in_flight = trace.bytes_in_flight.saturating_sub(bytes as u64);
        }
    }

    /// A datagram was verified.
    pub(in crate::connection) fn note_received(
        &mut self,
        is_data: bool,
        number: u64,
        bytes: usize,
        plaintext: &[u8],
    ) {
        let now = self.life.now();
        let Some(trace) = self.life.trace_mut().filter(|trace| trace.has(TraceLevel::Life)) else {
            return;
        };
        let (next, updates) = (self.recovery.next_number(), self.agreement.key_updates());
        let kind = if is_data { DatagramKind::Data } else { DatagramKind::Response };
        let is_all = trace.has(TraceLevel::Datagrams);
        let (frames, is_ack_eliciting) = frame::read(plaintext, next, is_all);
        trace.on_key_updates(now, updates);
        trace.on_announcements(now, false, &frames);
        let datagram = TraceDatagram { kind, number, bytes, is_ack_eliciting, frames };
        trace.push(now, TraceEvent::DatagramReceived(datagram));
    }

    pub(in crate::connection) fn note_dropped(
        &mut self,
        at: Instant,
        reason: DropReason,
        bytes: usize,
    ) {
        self.life.note(at, || TraceEvent::DatagramDropped { reason, bytes });
    }

    /// A copy of the request arrived at a server.
    pub(in crate::connection) fn note_request(&mut self, at: Instant, bytes: usize) {
        if let Some(trace) = self.life.trace_mut() {
            let request = trace.next_request(bytes);
            trace.push(at, TraceEvent::DatagramReceived(request));
        }
    }

    /// A datagram has its fate; `why` it is lost, if it is.
    pub(in crate::connection) fn note_fate(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        why: Option<LossReason>,
    ) {
        let Some(trace) = self.life.trace_mut() else { return };
        if datagram.is_ack_eliciting() {
            let bytes = datagram.payload_bytes() as u64;
            trace.bytes_in_flight = trace.bytes_in_flight.saturating_sub(bytes);
        }
        let number = datagram.number;
        trace.push(
            now,
            match why {
                None => TraceEvent::DatagramAcked { number },
                Some(why) => TraceEvent::DatagramLost { number, why },
            },
        );
    }

    /// Writes down what is measured, if it has changed: after an ack, a loss, or datagrams of one moment.
    pub(in crate::connection) fn note_measures(&mut self) {
        let Some(trace) = self.life.trace().filter(|trace| trace.has(TraceLevel::Path)) else {
            return;
        };
        let (rtt, known) = (self.path.timing.rtt(), self.path.blocks.known());
        let smoothed = rtt.smoothed_rtt();
        let held = |bps: u64| {
            let micros = smoothed.unwrap_or_default().as_micros();
            let path = u128::from(bps) * micros / 8_000_000;
            u64::try_from(path).unwrap_or(u64::MAX).saturating_add(u64::from(known.queue_bytes))
        };
        let bandwidth_bps = known.bandwidth_bps();
        let measures = TraceMeasures {
            latest_rtt: rtt.latest_rtt(),
            min_rtt: rtt.min_rtt(),
            smoothed_rtt: smoothed,
            rtt_variation: rtt.rttvar(),
            bandwidth_bps,
            pacing_rate_bps: self.pace_bps(),
            window_bytes: bandwidth_bps.map(held),
            bytes_in_flight: trace.bytes_in_flight,
            datagrams_in_flight: self.recovery.in_flight(),
        };
        let (now, size) = (self.life.now(), self.path.max_datagram_bytes());
        let Some(trace) = self.life.trace_mut() else { return };
        trace.sent_at = None;
        if measures != trace.measures {
            trace.measures = measures;
            trace.push(now, TraceEvent::Measured(measures));
        }
        if size != core::mem::replace(&mut trace.max_datagram_bytes, size) {
            trace.push(now, TraceEvent::DatagramSizeChanged(size));
        }
    }

    /// The application takes an event: a block that is whole.
    pub(in crate::connection) fn note_event(&mut self, now: Instant, event: &Event) {
        if let Event::Block { tag, .. }
        | Event::BlockComplete { tag, .. }
        | Event::BlockHere { tag } = *event
        {
            self.life.note(now, || TraceEvent::BlockReceived { tag });
        }
    }
}

impl Trace {
    /// The connection begins, by this handshake.
    pub(in crate::connection) fn begin(&mut self, now: Instant, parameters: &Parameters) {
        let Ends { role, local, remote, .. } = parameters.ends;
        if role == Role::Server {
            let (peer, client_id) = (parameters.address.remote, remote.0);
            self.push(now, TraceEvent::Started { is_client: false, peer, client_id });
        }
        let server_id = match role {
            Role::Client => remote,
            Role::Server => local,
        };
        self.max_datagram_bytes = 1200;
        self.push(
            now,
            TraceEvent::Agreed {
                server_id: server_id.0,
                suite: parameters.protection.suite(),
                here: parameters.config.end_parameters().into(),
                there: parameters.peer.into(),
            },
        );
    }

    /// What is in a datagram, before it is encrypted; `rest` is the data of its slice, if that is elsewhere.
    /// Acks of the peer's datagrams are below `next`.
    pub(in crate::connection) fn compose(
        &self,
        datagram: &[u8],
        header_bytes: usize,
        rest: &[u8],
        next: u64,
    ) -> Composed {
        let frames = datagram.get(header_bytes..).unwrap_or_default();
        let is_all = self.has(TraceLevel::Datagrams);
        let whole = if is_all && !rest.is_empty() { [frames, rest].concat() } else { Vec::new() };
        let plaintext = if whole.is_empty() { frames } else { &whole };
        let (frames, is_ack_eliciting) = frame::read(plaintext, next, is_all);
        // A slice that is cut off was not read.
        Composed { frames, is_ack_eliciting: is_ack_eliciting || !rest.is_empty() }
    }

    /// The connection has ended. If this end has ended it, nothing is in flight any more.
    pub(in crate::connection) fn on_closed(&mut self, now: Instant, reason: &CloseReason) {
        if let CloseReason::Here(_) = reason {
            self.bytes_in_flight = 0;
        }
        self.push(now, TraceEvent::Closed(reason.clone()));
    }

    /// The next request, of a client that has sent it or a server that has received it.
    pub(crate) fn next_request(&mut self, bytes: usize) -> TraceDatagram {
        let number = self.requests;
        self.requests += 1;
        let (kind, frames) = (DatagramKind::Request, Vec::new());
        TraceDatagram { kind, number, bytes, is_ack_eliciting: true, frames }
    }

    fn on_key_updates(&mut self, now: Instant, (here, there): (u64, u64)) {
        let before = core::mem::replace(&mut self.key_updates, (here, there));
        for (is_here, updates, before) in [(true, here, before.0), (false, there, before.1)] {
            if updates > before {
                self.push(now, TraceEvent::KeyUpdated { is_here, updates });
            }
        }
    }

    /// Announcements are repeated: each block counts once, in the order of their numbers.
    fn on_announcements(&mut self, now: Instant, is_here: bool, frames: &[TraceFrame]) {
        for frame in frames {
            let TraceFrame::Block { number, tag, length } = *frame else { continue };
            let next = if is_here { &mut self.announced.0 } else { &mut self.announced.1 };
            if number >= *next {
                *next = number.saturating_add(1);
                self.push(now, TraceEvent::BlockAnnounced { is_here, number, tag, length });
            }
        }
    }
}
