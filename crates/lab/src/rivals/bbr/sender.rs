//! The sending end: paced segments within the model's window.

use std::net::SocketAddr;

use haulier_proto::{Batch, FourTuple, Instant, Machine};

use super::super::tcp::{Ack, Flight, Tail, Timer, segments_of};
use super::BbrModel;
use super::model::Heard;
use haulier_sim::Host;

/// Sends as fast as BBR allows, without end if it has none.
#[derive(Clone, Debug)]
pub struct BbrSender {
    /// The model, to read.
    pub model: BbrModel,
    /// Retransmission timeouts.
    pub timeouts: u64,
    receiver: SocketAddr,
    starts: Instant,
    has_started: bool,
    flight: Flight,
    timer: Timer,
    tail: Tail,
    /// Losses are being mended until all before this segment are acked.
    recovers_until: Option<u32>,
    next_at: Instant,
}

impl BbrSender {
    /// A sender that starts at `starts`. The seed is of the phases in which its cycles begin.
    pub fn new(receiver: SocketAddr, starts: Instant, seed: u64) -> Self {
        Self {
            model: BbrModel::new(seed),
            timeouts: 0,
            receiver,
            starts,
            has_started: false,
            flight: Flight::default(),
            timer: Timer::default(),
            tail: Tail::default(),
            recovers_until: None,
            next_at: Instant::ZERO,
        }
    }

    /// This sender with a stream that ends after `bytes` bytes.
    #[must_use]
    pub fn ending_after(self, bytes: u64) -> Self {
        Self { flight: Flight::ending_before(segments_of(bytes)), ..self }
    }

    /// Retransmitted segments.
    pub const fn resent(&self) -> u64 {
        self.flight.resent
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let prior_in_flight = f64::from(self.flight.in_flight());
        let arrival = self.flight.on_ack(now, ack);
        if arrival.newly == 0 {
            return;
        }
        let rtt = arrival.sample.and_then(|sample| sample.rtt);
        self.timer.on_arrival(now, now.since(ack.echo), self.flight.has_some());
        // Over less than the shortest round trip it is a bunch of acks, and no rate.
        let least = self.model.rt_prop().unwrap_or_default();
        let rate = arrival.sample.filter(|sample| sample.interval >= least.max(MIN_INTERVAL));
        let heard = Heard {
            rate: rate.map(|sample| {
                (sample.segments as f64 / sample.interval.as_secs_f64(), sample.prior_delivered)
            }),
            rtt,
            newly: f64::from(arrival.newly),
            lost: f64::from(arrival.lost),
            delivered: self.flight.delivered(),
            prior_in_flight,
            in_flight: f64::from(self.flight.in_flight()),
        };
        match self.recovers_until {
            Some(end) if self.flight.acked() >= end => {
                self.recovers_until = None;
                self.model.on_recovered();
            }
            None if arrival.lost > 0 => {
                self.recovers_until = Some(self.flight.next());
                self.model.on_recovery(&heard);
            }
            _ => {}
        }
        self.model.on_ack(now, &heard);
    }

    fn may_send(&self) -> bool {
        self.has_started
            && self.flight.has_more()
            && f64::from(self.flight.in_flight()) + 1.0 <= self.model.cwnd()
    }
}

/// Shorter intervals are no rate: where nothing is on the path there is no shortest round trip.
const MIN_INTERVAL: std::time::Duration = std::time::Duration::from_micros(1);

impl Machine for BbrSender {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if let Some(ack) = Ack::read(datagram).filter(|_| path.has_remote(self.receiver)) {
            self.on_ack(now, &ack);
            self.tail.update(now, &self.flight, &self.timer, true);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.has_started |= now >= self.starts;
        if self.timer.expires(now) {
            self.timeouts += 1;
            self.flight.lose_all();
            self.recovers_until = Some(self.flight.next());
            self.model.on_timeout();
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.tail.expires(now)
            && let Some(segment) = self.flight.probe(now)
        {
            batch.push(self.receiver.into(), &segment.to_bytes());
        }
        while self.may_send() && self.next_at <= now && !batch.is_full() {
            let segment = self.flight.send(now);
            self.timer.on_sent(now);
            self.tail.update(now, &self.flight, &self.timer, false);
            self.next_at = self.next_at.max(now) + self.model.spacing();
            batch.push(self.receiver.into(), &segment.to_bytes());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.has_started {
            return Some(self.starts);
        }
        let paced = self.may_send().then_some(self.next_at);
        self.timer.due().into_iter().chain(self.tail.due()).chain(paced).min()
    }
}

impl Host for BbrSender {
    fn check_invariants(&self) {
        self.flight.check_invariants();
        assert!(self.model.cwnd() >= 1.0);
    }
}
