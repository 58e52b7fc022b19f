//! The sending end: CUBIC's window, and what may be sent within it.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};

use super::super::tcp::{Ack, Flight, Tail, Timer, segments_of};
use super::CubicWindow;
use haulier_sim::Host;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Open,
    /// Until all before `end` arrived; by RFC 6937.
    Recovery {
        end: u32,
        flight: f64,
        delivered: f64,
        out: f64,
    },
    /// After a timeout, until all before `end` arrived.
    Loss {
        end: u32,
    },
}

/// Sends as fast as CUBIC allows, without end if it has none.
#[derive(Clone, Debug)]
pub struct CubicSender {
    /// The window, to read.
    pub window: CubicWindow,
    /// Retransmission timeouts.
    pub timeouts: u64,
    receiver: SocketAddr,
    starts: Instant,
    has_started: bool,
    flight: Flight,
    timer: Timer,
    tail: Tail,
    phase: Phase,
}

impl CubicSender {
    /// A sender that starts at `starts`.
    pub fn new(receiver: SocketAddr, starts: Instant) -> Self {
        Self {
            window: CubicWindow::default(),
            timeouts: 0,
            receiver,
            starts,
            has_started: false,
            flight: Flight::default(),
            timer: Timer::default(),
            tail: Tail::default(),
            phase: Phase::Open,
        }
    }

    /// This sender with a stream that ends after `bytes` bytes.
    #[must_use]
    pub fn ending_after(self, bytes: u64) -> Self {
        Self { flight: Flight::ending_before(segments_of(bytes)), ..self }
    }

    /// The smoothed RTT.
    pub const fn smoothed_rtt(&self) -> Option<Duration> {
        self.timer.smoothed_rtt()
    }

    /// Retransmitted segments.
    pub const fn resent(&self) -> u64 {
        self.flight.resent
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let rtt = now.since(ack.echo);
        let arrival = self.flight.on_ack(now, ack);
        if arrival.newly == 0 {
            return;
        }
        self.timer.on_arrival(now, rtt, self.flight.has_some());
        let acked = self.flight.acked();
        self.window.on_rtt(rtt, acked, self.flight.next());
        let smoothed = self.timer.smoothed_rtt().unwrap_or(rtt);
        match &mut self.phase {
            Phase::Open if arrival.lost > 0 => self.enter_recovery(),
            Phase::Open => self.window.on_acked(now, arrival.newly, smoothed),
            Phase::Recovery { end, .. } if acked >= *end => {
                self.window.set_segments(self.window.threshold());
                self.phase = Phase::Open;
            }
            Phase::Recovery { .. } => self.recover(arrival.newly),
            Phase::Loss { end } => {
                let is_over = acked >= *end;
                self.window.on_acked(now, arrival.newly, smoothed);
                if is_over {
                    self.phase = Phase::Open;
                }
            }
        }
    }

    fn enter_recovery(&mut self) {
        let in_flight = self.flight.in_flight();
        let flight = f64::from(in_flight + self.flight.lost()).max(1.0);
        self.window.on_loss();
        // The first one is sent at once, whatever the rule says.
        self.window.set_segments(f64::from(in_flight) + 1.0);
        self.phase = Phase::Recovery { end: self.flight.next(), flight, delivered: 0.0, out: 0.0 };
    }

    /// Proportional rate reduction, RFC 6937 with its slow start reduction bound.
    fn recover(&mut self, newly: u32) {
        let Phase::Recovery { flight, delivered, out, .. } = &mut self.phase else { return };
        let (pipe, threshold) = (f64::from(self.flight.in_flight()), self.window.threshold());
        *delivered += f64::from(newly);
        let may_send = if pipe > threshold {
            (*delivered * threshold / *flight).ceil() - *out
        } else {
            let limit = (*delivered - *out).max(f64::from(newly)) + 1.0;
            (threshold - pipe).min(limit)
        };
        self.window.set_segments(pipe + may_send.max(0.0));
    }

    fn on_timeout(&mut self) {
        self.timeouts += 1;
        let is_first = !matches!(self.phase, Phase::Loss { .. });
        self.window.on_timeout(is_first);
        self.flight.lose_all();
        self.phase = Phase::Loss { end: self.flight.next() };
    }
}

impl Machine for CubicSender {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if let Some(ack) = Ack::read(datagram).filter(|_| path.has_remote(self.receiver)) {
            self.on_ack(now, &ack);
            self.tail.update(now, &self.flight, &self.timer, true);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.has_started |= now >= self.starts;
        if self.timer.expires(now) {
            self.on_timeout();
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.tail.expires(now)
            && let Some(segment) = self.flight.probe(now)
        {
            batch.push(self.receiver.into(), &segment.to_bytes());
        }
        while self.has_started
            && self.flight.has_more()
            && f64::from(self.flight.in_flight()) + 1.0 <= self.window.segments()
            && !batch.is_full()
        {
            let segment = self.flight.send(now);
            if let Phase::Recovery { out, .. } = &mut self.phase {
                *out += 1.0;
            }
            self.timer.on_sent(now);
            self.tail.update(now, &self.flight, &self.timer, false);
            batch.push(self.receiver.into(), &segment.to_bytes());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.has_started {
            return Some(self.starts);
        }
        self.timer.due().into_iter().chain(self.tail.due()).min()
    }
}

impl Host for CubicSender {
    fn check_invariants(&self) {
        self.flight.check_invariants();
    }
}
