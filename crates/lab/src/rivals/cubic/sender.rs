//! The sending end: segments in flight, lost segments, and what may be sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};

use super::{Ack, CubicWindow, Segment};
use haulier_sim::Host;

/// A segment is lost when one sent this many later has arrived.
const REORDERING: u64 = 3;

/// The minimum retransmission timeout: Linux's, where RFC 6298 has a second.
const MIN_RTO: Duration = Duration::from_millis(200);

/// The timeout before the first RTT sample (RFC 6298, 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// The maximum number of doublings of the timeout, so that a recovered link is noticed.
const MAX_BACKOFF: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Sacked,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    /// Counted over all transmissions, including retransmissions.
    order: u64,
    is_resent: bool,
    state: State,
}

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

/// Sends without end, as fast as CUBIC allows.
#[derive(Clone, Debug)]
pub struct CubicSender {
    /// The window, to read.
    pub window: CubicWindow,
    /// Retransmitted segments.
    pub resent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    receiver: SocketAddr,
    starts: Instant,
    has_started: bool,
    /// All before this segment are acked; the records are from it on.
    acked: u32,
    sent: VecDeque<Sent>,
    in_flight: u32,
    lost: u32,
    /// The number of the next transmission, and the highest that arrived.
    order: u64,
    arrived: u64,
    phase: Phase,
    srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    rto_at: Option<Instant>,
}

impl CubicSender {
    /// A sender that starts at `starts`.
    pub fn new(receiver: SocketAddr, starts: Instant) -> Self {
        Self {
            window: CubicWindow::default(),
            resent: 0,
            timeouts: 0,
            receiver,
            starts,
            has_started: false,
            acked: 0,
            sent: VecDeque::new(),
            in_flight: 0,
            lost: 0,
            order: 0,
            arrived: 0,
            phase: Phase::Open,
            srtt: None,
            rttvar: Duration::ZERO,
            backoff: 0,
            rto_at: None,
        }
    }

    /// The smoothed RTT.
    pub const fn smoothed_rtt(&self) -> Option<Duration> {
        self.srtt
    }

    fn next(&self) -> u32 {
        self.acked + self.sent.len() as u32
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let rtt = now.since(ack.echo);
        let delivered = self.take_arrivals(ack);
        if delivered == 0 {
            return;
        }
        self.measure(rtt);
        self.window.on_rtt(rtt, self.acked, self.next());
        self.backoff = 0;
        let newly_lost = self.detect_losses();
        match &mut self.phase {
            Phase::Open if newly_lost => self.enter_recovery(),
            Phase::Open => self.window.on_acked(now, delivered, self.srtt.unwrap_or(rtt)),
            Phase::Recovery { end, .. } if self.acked >= *end => {
                self.window.set_segments(self.window.threshold());
                self.phase = Phase::Open;
            }
            Phase::Recovery { .. } => self.recover(delivered),
            Phase::Loss { end } => {
                let is_over = self.acked >= *end;
                self.window.on_acked(now, delivered, self.srtt.unwrap_or(rtt));
                if is_over {
                    self.phase = Phase::Open;
                }
            }
        }
        self.rto_at = (!self.sent.is_empty()).then(|| now + self.rto());
    }

    /// Marks the segments of an ack; returns their number.
    fn take_arrivals(&mut self, ack: &Ack) -> u32 {
        let mut delivered = 0;
        let next = self.next();
        while self.acked < ack.next.min(next) {
            delivered += self.arrive(0, ack.echo);
            self.sent.pop_front();
            self.acked += 1;
        }
        for &(from, to) in &ack.sacks {
            for number in from.max(self.acked)..to.min(next) {
                delivered += self.arrive((number - self.acked) as usize, ack.echo);
            }
        }
        delivered
    }

    fn arrive(&mut self, place: usize, echo: Instant) -> u32 {
        let Some(sent) = self.sent.get_mut(place) else { return 0 };
        match sent.state {
            State::Sacked => return 0,
            State::InFlight => self.in_flight -= 1,
            State::Lost => self.lost -= 1,
        }
        sent.state = State::Sacked;
        // An older ack of a retransmitted segment is for its first transmission: it shows nothing about
        // segments sent after the second.
        if !sent.is_resent || echo >= sent.at {
            self.arrived = self.arrived.max(sent.order);
        }
        1
    }

    fn detect_losses(&mut self) -> bool {
        let mut found = false;
        for sent in &mut self.sent {
            if sent.state == State::InFlight && sent.order + REORDERING <= self.arrived {
                sent.state = State::Lost;
                self.in_flight -= 1;
                self.lost += 1;
                found = true;
            }
        }
        found
    }

    fn enter_recovery(&mut self) {
        let flight = f64::from(self.in_flight + self.lost).max(1.0);
        self.window.on_loss();
        // The first one is sent at once, whatever the rule says.
        self.window.set_segments(f64::from(self.in_flight) + 1.0);
        self.phase = Phase::Recovery { end: self.next(), flight, delivered: 0.0, out: 0.0 };
    }

    /// Proportional rate reduction, RFC 6937 with its slow start reduction bound.
    fn recover(&mut self, newly: u32) {
        let Phase::Recovery { flight, delivered, out, .. } = &mut self.phase else { return };
        let (pipe, threshold) = (f64::from(self.in_flight), self.window.threshold());
        *delivered += f64::from(newly);
        let may_send = if pipe > threshold {
            (*delivered * threshold / *flight).ceil() - *out
        } else {
            let limit = (*delivered - *out).max(f64::from(newly)) + 1.0;
            (threshold - pipe).min(limit)
        };
        self.window.set_segments(pipe + may_send.max(0.0));
    }

    fn measure(&mut self, rtt: Duration) {
        let Some(srtt) = self.srtt else {
            (self.srtt, self.rttvar) = (Some(rtt), rtt / 2);
            return;
        };
        self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
        self.srtt = Some((srtt * 7 + rtt) / 8);
    }

    fn rto(&self) -> Duration {
        let rto = self.srtt.map_or(INITIAL_RTO, |srtt| srtt + (self.rttvar * 4).max(MIN_RTO));
        rto * (1 << self.backoff.min(MAX_BACKOFF))
    }

    fn on_timeout(&mut self, now: Instant) {
        self.timeouts += 1;
        let is_first = !matches!(self.phase, Phase::Loss { .. });
        self.window.on_timeout(is_first);
        for sent in &mut self.sent {
            if sent.state == State::InFlight {
                sent.state = State::Lost;
                self.in_flight -= 1;
                self.lost += 1;
            }
        }
        self.phase = Phase::Loss { end: self.next() };
        self.backoff += 1;
        self.rto_at = Some(now + self.rto());
    }

    /// The next segment to send: a lost one, else a new one.
    fn pick(&mut self, now: Instant) -> u32 {
        let order = self.order;
        self.order += 1;
        let lost = match self.lost {
            0 => None,
            _ => self.sent.iter().position(|sent| sent.state == State::Lost),
        };
        let Some(place) = lost else {
            let first = Sent { at: now, order, is_resent: false, state: State::InFlight };
            self.sent.push_back(first);
            return self.next() - 1;
        };
        self.sent[place] = Sent { at: now, order, is_resent: true, state: State::InFlight };
        self.lost -= 1;
        self.resent += 1;
        self.acked + place as u32
    }
}

impl Machine for CubicSender {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if let Some(ack) = Ack::read(datagram).filter(|_| path.has_remote(self.receiver)) {
            self.on_ack(now, &ack);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.has_started |= now >= self.starts;
        if self.rto_at.is_some_and(|at| at <= now) {
            self.on_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        while self.has_started
            && f64::from(self.in_flight) + 1.0 <= self.window.segments()
            && !batch.is_full()
        {
            let number = self.pick(now);
            self.in_flight += 1;
            if let Phase::Recovery { out, .. } = &mut self.phase {
                *out += 1.0;
            }
            if self.rto_at.is_none() {
                self.rto_at = Some(now + self.rto());
            }
            batch.push(self.receiver.into(), &Segment { number, sent_at: now }.to_bytes());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.has_started { self.rto_at } else { Some(self.starts) }
    }
}

impl Host for CubicSender {
    fn check_invariants(&self) {
        // Counting all of them at each step would make a long run quadratic: the first is enough to see
        // that acked ones are gone.
        assert!(self.sent.front().is_none_or(|sent| sent.state != State::Sacked));
        assert!((self.in_flight + self.lost) as usize <= self.sent.len());
    }
}
