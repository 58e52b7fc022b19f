//! The segments in flight: which arrived, which are lost, which goes next, and how fast they are delivered.
//!
//! The work for a segment or an ack, except for the runs of a SACK, does not grow with the number in flight.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use haulier_proto::Instant;

use super::runs::Runs;
use super::{Ack, Segment};

/// A segment is lost when one sent this many later has arrived.
const REORDERING: u64 = 3;

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
    is_probe: bool,
    state: State,
    /// What had been delivered when it was sent, and when the last of that was.
    delivered: u64,
    delivered_at: Instant,
    /// When the first was sent of those that the sample of this one is about.
    first_sent_at: Instant,
}

/// How fast segments were delivered over the flight of one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Sample {
    /// Delivered in this time.
    pub(in super::super) segments: u64,
    pub(in super::super) interval: Duration,
    /// What had been delivered when the segment was sent.
    pub(in super::super) prior_delivered: u64,
    /// From its last transmission until now; none if it was a retransmission.
    pub(in super::super) rtt: Option<Duration>,
}

/// What an ack reported.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Arrival {
    /// Segments that had not been acked before.
    pub(in super::super) newly: u32,
    /// The sample of the one that was sent last.
    pub(in super::super) sample: Option<Sample>,
    /// Segments that are now known to be lost.
    pub(in super::super) lost: u32,
}

/// All segments that were sent and not yet acked.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Flight {
    /// Retransmitted segments.
    pub(in super::super) resent: u64,
    /// The stream ends before this segment; `None`: it has no end.
    end: Option<u32>,
    /// All before this segment are acked; the records are from it on.
    acked: u32,
    sent: VecDeque<Sent>,
    sacked: Runs,
    lost: BTreeSet<u32>,
    in_flight: u32,
    /// Order and number of transmissions that are not judged yet.
    transmissions: VecDeque<(u64, u32)>,
    /// The number of the next transmission, and the highest that arrived.
    order: u64,
    arrived: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
}

impl Flight {
    /// The flight of a stream of `end` segments.
    pub(in super::super) fn ending_before(end: u32) -> Self {
        Self { end: Some(end), ..Self::default() }
    }

    /// Whether there is something to send: a lost segment, or a new one.
    pub(in super::super) fn has_more(&self) -> bool {
        !self.lost.is_empty() || self.end.is_none_or(|end| self.next() < end)
    }

    /// All before this segment are acked.
    pub(in super::super) const fn acked(&self) -> u32 {
        self.acked
    }

    /// The next new segment.
    pub(in super::super) fn next(&self) -> u32 {
        self.acked + self.sent.len() as u32
    }

    /// Segments that are neither acked nor lost.
    pub(in super::super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Segments that are lost, and not sent again.
    pub(in super::super) fn lost(&self) -> u32 {
        self.lost.len() as u32
    }

    /// Segments acked in all.
    pub(in super::super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether something was sent and is not acked.
    pub(in super::super) fn has_some(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Sends the first lost segment again, or a new one. Only if it [has more](Self::has_more).
    pub(in super::super) fn send(&mut self, now: Instant) -> Segment {
        if self.in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let lost = self.lost.pop_first();
        let number = lost.unwrap_or_else(|| self.next());
        self.in_flight += 1;
        self.transmit(now, number, (lost.is_some(), false))
    }

    /// Sends the last segment in flight again, if there is one: when it is acked, all that were sent before
    /// and are not are lost. So a stream does not wait for a timeout where its end is lost (RFC 8985, 7).
    pub(in super::super) fn probe(&mut self, now: Instant) -> Option<Segment> {
        let place = self.sent.iter().rposition(|sent| sent.state == State::InFlight)?;
        Some(self.transmit(now, self.acked + place as u32, (true, true)))
    }

    fn transmit(
        &mut self,
        now: Instant,
        number: u32,
        (is_resent, is_probe): (bool, bool),
    ) -> Segment {
        let sent = Sent {
            at: now,
            order: self.order,
            is_resent,
            is_probe,
            state: State::InFlight,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        };
        match self.sent.get_mut((number - self.acked) as usize) {
            Some(place) => *place = sent,
            None => self.sent.push_back(sent),
        }
        self.resent += u64::from(sent.is_resent);
        self.transmissions.push_back((self.order, number));
        self.order += 1;
        Segment { number, sent_at: now }
    }

    /// Takes an ack in.
    pub(in super::super) fn on_ack(&mut self, now: Instant, ack: &Ack) -> Arrival {
        let before = self.delivered;
        let mut newest: Option<Sent> = None;
        let next = self.next();
        while self.acked < ack.next.min(next) {
            self.arrive(0, ack.echo, now, &mut newest);
            self.sent.pop_front();
            self.acked += 1;
        }
        self.sacked.forget_until(self.acked);
        for &(from, to) in &ack.sacks {
            for number in
                self.sacked.insert(from.max(self.acked)..to.min(next)).into_iter().flatten()
            {
                self.arrive((number - self.acked) as usize, ack.echo, now, &mut newest);
            }
        }
        let newly = (self.delivered - before) as u32;
        let sample = newest.map(|sent| self.sample(now, &sent));
        Arrival { newly, sample, lost: self.detect_losses() }
    }

    /// Takes everything in flight for lost; returns how many those are.
    pub(in super::super) fn lose_all(&mut self) -> u32 {
        let before = self.lost();
        for (number, sent) in (self.acked..).zip(&mut self.sent) {
            if sent.state == State::InFlight {
                sent.state = State::Lost;
                self.lost.insert(number);
            }
        }
        self.in_flight = 0;
        self.lost() - before
    }

    /// Panics if something is inconsistent. Counting all of them at each step would make a long run
    /// quadratic: the first is enough to see that acked ones are gone.
    pub(in super::super) fn check_invariants(&self) {
        assert!(self.sent.front().is_none_or(|sent| sent.state != State::Sacked));
        assert!(self.in_flight as usize + self.lost.len() <= self.sent.len());
    }

    fn arrive(&mut self, place: usize, echo: Instant, now: Instant, newest: &mut Option<Sent>) {
        let Some(sent) = self.sent.get_mut(place) else { return };
        match sent.state {
            State::Sacked => return,
            State::InFlight => self.in_flight -= 1,
            State::Lost => {
                self.lost.remove(&(self.acked + place as u32));
            }
        }
        sent.state = State::Sacked;
        self.delivered += 1;
        self.delivered_at = now;
        // An older ack of a retransmitted segment is for its first transmission: it shows nothing about
        // segments sent after the second.
        if !sent.is_resent || echo >= sent.at {
            let shown = if sent.is_probe { sent.order + REORDERING - 1 } else { sent.order };
            self.arrived = self.arrived.max(shown);
        }
        if newest.is_none_or(|newest| newest.order < sent.order) {
            *newest = Some(*sent);
            self.first_sent_at = sent.at;
        }
    }

    /// The slower of how fast they were sent and how fast they were acked: acks in a bunch are no rate.
    fn sample(&self, now: Instant, sent: &Sent) -> Sample {
        let interval = sent.at.since(sent.first_sent_at).max(now.since(sent.delivered_at));
        Sample {
            segments: self.delivered - sent.delivered,
            interval,
            prior_delivered: sent.delivered,
            rtt: (!sent.is_resent).then(|| now.since(sent.at)),
        }
    }

    fn detect_losses(&mut self) -> u32 {
        let mut found = 0;
        while let Some(&(order, number)) = self.transmissions.front()
            && order + REORDERING <= self.arrived
        {
            self.transmissions.pop_front();
            let place = number.checked_sub(self.acked).map(|place| place as usize);
            let sent = place.and_then(|place| self.sent.get_mut(place));
            if let Some(sent) = sent.filter(|s| s.order == order && s.state == State::InFlight) {
                sent.state = State::Lost;
                self.in_flight -= 1;
                self.lost.insert(number);
                found += 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(next: u32, sacks: &[(u32, u32)]) -> Ack {
        Ack { next, echo: Instant::ZERO, sacks: sacks.to_vec() }
    }

    /// Ten, one a millisecond; the fourth is lost.
    #[test]
    fn three_later_ones_show_a_loss_and_it_is_sent_first() {
        let ms = Instant::from_millis;
        let mut flight = Flight::default();
        (0..10).for_each(|at| assert_eq!(u64::from(flight.send(ms(at)).number), at));
        let arrival = flight.on_ack(ms(23), &ack(3, &[(4, 6)]));
        assert_eq!((arrival.newly, arrival.lost, flight.in_flight()), (5, 0, 5));
        let arrival = flight.on_ack(ms(24), &ack(3, &[(4, 7)]));
        assert_eq!((arrival.newly, arrival.lost, flight.lost()), (1, 1, 1));
        assert_eq!(flight.send(ms(24)), Segment { number: 3, sent_at: ms(24) });
        assert_eq!((flight.resent, flight.send(ms(24)).number), (1, 10));
        let arrival = flight.on_ack(ms(44), &Ack { echo: ms(24), ..ack(11, &[]) });
        assert_eq!((arrival.newly, arrival.lost), (5, 0));
        assert!(!flight.has_some());
        flight.check_invariants();
    }

    /// One a millisecond, with a round trip of 20 ms: acked two by two, or in bunches of ten.
    #[test]
    fn a_bunch_of_acks_is_no_faster_than_what_was_sent() {
        let ms = Instant::from_millis;
        for bunch in [2, 10] {
            let mut flight = Flight::default();
            let mut rates = Vec::new();
            for at in 0..400 {
                flight.send(ms(at));
                let acked = at.saturating_sub(20) as u32;
                if acked > 0 && at % bunch == 0 {
                    let sample = flight.on_ack(ms(at), &ack(acked, &[])).sample.unwrap();
                    rates.push(sample.segments as f64 / sample.interval.as_secs_f64());
                }
            }
            assert!(rates.iter().all(|&rate| rate < 1_001.0), "{bunch}: {rates:?}");
            let largest = rates.iter().copied().fold(0.0, f64::max);
            assert!(largest > 900.0, "{bunch}: {rates:?}");
        }
    }

    /// Of ten the last four are lost: nothing later shows it but the probe.
    #[test]
    fn a_probe_shows_that_the_end_is_lost() {
        let ms = Instant::from_millis;
        let mut flight = Flight::ending_before(10);
        (0..10).for_each(|at| assert!(flight.has_more() && flight.send(ms(at)).number < 10));
        assert!(!flight.has_more());
        assert_eq!(flight.on_ack(ms(25), &ack(6, &[])).lost, 0);
        assert_eq!(flight.probe(ms(65)), Some(Segment { number: 9, sent_at: ms(65) }));
        assert_eq!(flight.in_flight(), 4);
        let arrival = flight.on_ack(ms(85), &Ack { echo: ms(65), ..ack(6, &[(9, 10)]) });
        assert_eq!((arrival.newly, arrival.lost, flight.in_flight()), (1, 3, 0));
        assert!(flight.has_more());
        let again = [0; 3].map(|_| flight.send(ms(85)).number);
        assert_eq!(
            (again, flight.has_more(), flight.probe(ms(85)).is_some()),
            ([6, 7, 8], false, true)
        );
        flight.on_ack(ms(105), &Ack { echo: ms(85), ..ack(10, &[]) });
        assert!(!flight.has_some() && !flight.has_more() && flight.probe(ms(105)).is_none());
        flight.check_invariants();
    }

    #[test]
    fn after_a_timeout_everything_is_sent_again() {
        let mut flight = Flight::default();
        (0..4).for_each(|_| assert!(!flight.send(Instant::ZERO).to_bytes().is_empty()));
        flight.on_ack(Instant::from_millis(1), &ack(0, &[(2, 3)]));
        assert_eq!((flight.lose_all(), flight.in_flight()), (3, 0));
        let again = [0; 3].map(|_| flight.send(Instant::from_millis(2)).number);
        assert_eq!(again, [0, 1, 3]);
    }
}
