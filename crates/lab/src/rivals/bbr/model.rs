//! What BBR knows of the path, its states, and the pace and window that follow. The names are the draft's.
//!
//! In floating point, but only with operations that IEEE 754 defines exactly: a seed replays everywhere.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::Rng;

use super::super::tcp::MSS;
use super::max_filter::MaxFilter;

/// 2 / ln 2: the smallest gain that doubles the rate each round trip.
const HIGH_GAIN: f64 = 2.885;

/// The gains of a cycle, each for a round trip: more, less, and six of neither.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// In flight at most, in bandwidth-delay products, once the path is full.
const CWND_GAIN: f64 = 2.0;

/// Round trips over which the largest delivery rate counts.
const BTL_BW_ROUNDS: u64 = 10;

/// How long the shortest round trip counts, and how long its probe lasts.
const RT_PROP_LASTS: Duration = Duration::from_secs(10);
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);

/// Startup ends after `FULL_ROUNDS` rounds in which the rate grew by less than a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;

/// Segments of the first window (RFC 6928), and of the smallest: two delayed acks are under way.
const INITIAL_CWND: f64 = 10.0;
const MIN_CWND: f64 = 4.0;

/// Bytes that are sent at once at most, as a batch of the kernel is, and rates in bits per second below which
/// it is one segment, or two.
const MAX_QUANTUM_BYTES: f64 = 65_536.0;
const QUANTUM_BPS: [f64; 2] = [1.2e6, 24e6];

/// The round trip before the first sample, for the first pace.
const FIRST_RTT: Duration = Duration::from_millis(1);

/// What BBR does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BbrState {
    /// The rate doubles each round trip.
    Startup,
    /// The queue of startup empties.
    Drain,
    /// The cycle of gains: its phase, and since when.
    ProbeBw(usize, Instant),
    /// Almost nothing is in flight, to see the path without a queue; until then, and to the end of a round.
    /// `None` while too much is in flight.
    ProbeRtt(Option<Instant>),
}

/// What an ack reported, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heard {
    /// Segments per second, and those delivered before the sampled one was sent.
    pub(super) rate: Option<(f64, u64)>,
    pub(super) rtt: Option<Duration>,
    pub(super) newly: f64,
    pub(super) lost: f64,
    /// Acked in all.
    pub(super) delivered: u64,
    /// In flight before the ack, and now.
    pub(super) prior_in_flight: f64,
    pub(super) in_flight: f64,
}

/// The path as BBR sees it.
#[derive(Clone, Debug)]
pub struct BbrModel {
    state: BbrState,
    btl_bw: MaxFilter,
    rt_prop: Option<Duration>,
    rt_prop_at: Instant,
    round: u64,
    round_ends_at: u64,
    full_bw: f64,
    full_rounds: u32,
    /// Segments per second, and segments.
    pace: f64,
    cwnd: f64,
    prior_cwnd: f64,
    /// Delivered in all when the first round of a recovery is over.
    conserves_until: Option<u64>,
    rng: Rng,
}

impl BbrModel {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: BbrState::Startup,
            btl_bw: MaxFilter::new(BTL_BW_ROUNDS),
            rt_prop: None,
            rt_prop_at: Instant::ZERO,
            round: 0,
            round_ends_at: 0,
            full_bw: 0.0,
            full_rounds: 0,
            pace: HIGH_GAIN * INITIAL_CWND / FIRST_RTT.as_secs_f64(),
            cwnd: INITIAL_CWND,
            prior_cwnd: 0.0,
            conserves_until: None,
            rng: Rng::stream(seed, 0),
        }
    }

    /// Its state.
    pub const fn state(&self) -> BbrState {
        self.state
    }

    /// The delivery rate that it believes the bottleneck to have, in bits of data per second.
    pub fn bottleneck_bps(&self) -> f64 {
        self.btl_bw.max() * (MSS * 8) as f64
    }

    /// The round trip that it believes the path to have without a queue.
    pub const fn rt_prop(&self) -> Option<Duration> {
        self.rt_prop
    }

    /// Segments that may be in flight.
    pub const fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The time from one segment to the next.
    pub(super) fn spacing(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.pace)
    }

    /// Something was acked.
    pub(super) fn on_ack(&mut self, now: Instant, heard: &Heard) {
        let is_new_round = self.update_round(heard);
        if let Some((rate, _)) = heard.rate {
            self.btl_bw.add(self.round, rate);
        }
        if is_new_round {
            self.check_full();
        }
        self.check_cycle(now, heard);
        if self.state == BbrState::Startup && self.is_full() {
            self.state = BbrState::Drain;
        }
        if self.state == BbrState::Drain && heard.in_flight <= self.in_flight_at(1.0) {
            self.enter_probe_bw(now);
        }
        let has_expired = self.update_rt_prop(now, heard);
        self.check_probe_rtt(now, heard, has_expired, is_new_round);
        self.set_pace();
        self.set_cwnd(heard);
    }

    /// Losses were found while there was none to mend: for a round trip as much is sent as arrives.
    pub(super) fn on_recovery(&mut self, heard: &Heard) {
        self.save_cwnd();
        self.cwnd = heard.in_flight + heard.newly.max(1.0);
        self.conserves_until = Some(heard.delivered + heard.in_flight.max(1.0) as u64);
    }

    /// All that was missing when they were found has arrived.
    pub(super) const fn on_recovered(&mut self) {
        self.conserves_until = None;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// The retransmission timeout expired.
    pub(super) const fn on_timeout(&mut self) {
        self.save_cwnd();
        (self.cwnd, self.conserves_until) = (1.0, None);
    }

    const fn save_cwnd(&mut self) {
        // In recovery, and while the round trip is probed, it is not what the path holds.
        self.prior_cwnd = match (self.conserves_until, self.state) {
            (Some(_), _) | (_, BbrState::ProbeRtt(_)) => self.prior_cwnd.max(self.cwnd),
            _ => self.cwnd,
        };
    }

    /// Whether a round trip is over: what was sent after the last one's end has arrived.
    fn update_round(&mut self, heard: &Heard) -> bool {
        let is_new = heard.rate.is_some_and(|(_, prior)| prior >= self.round_ends_at);
        if is_new {
            self.round += 1;
            self.round_ends_at = heard.delivered;
        }
        is_new
    }

    const fn is_full(&self) -> bool {
        self.full_rounds >= FULL_ROUNDS
    }

    fn check_full(&mut self) {
        if self.is_full() {
            return;
        }
        if self.btl_bw.max() >= self.full_bw * FULL_GROWTH {
            (self.full_bw, self.full_rounds) = (self.btl_bw.max(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    fn check_cycle(&mut self, now: Instant, heard: &Heard) {
        let BbrState::ProbeBw(phase, since) = self.state else { return };
        let took_long = now.since(since) > self.rt_prop.unwrap_or_default();
        let gain = CYCLE[phase];
        let is_over = if gain > 1.0 {
            took_long && (heard.lost > 0.0 || heard.prior_in_flight >= self.in_flight_at(gain))
        } else {
            took_long || gain < 1.0 && heard.prior_in_flight <= self.in_flight_at(1.0)
        };
        if is_over {
            self.state = BbrState::ProbeBw((phase + 1) % CYCLE.len(), now);
        }
    }

    /// Any phase but the one that sends less, so that flows which began together do not go together.
    fn enter_probe_bw(&mut self, now: Instant) {
        let phase = [0, 2, 3, 4, 5, 6, 7][self.rng.below(7) as usize];
        self.state = BbrState::ProbeBw(phase, now);
    }

    fn update_rt_prop(&mut self, now: Instant, heard: &Heard) -> bool {
        let has_expired = now > self.rt_prop_at + RT_PROP_LASTS;
        let Some(rtt) = heard.rtt else { return has_expired };
        if self.rt_prop.is_none() {
            // The first pace was a guess.
            self.pace = HIGH_GAIN * INITIAL_CWND / rtt.as_secs_f64().max(1e-6);
        }
        if has_expired || self.rt_prop.is_none_or(|least| rtt <= least) {
            (self.rt_prop, self.rt_prop_at) = (Some(rtt), now);
        }
        has_expired
    }

    fn check_probe_rtt(&mut self, now: Instant, heard: &Heard, has_expired: bool, is_new: bool) {
        match self.state {
            BbrState::ProbeRtt(None) if heard.in_flight <= MIN_CWND => {
                self.state = BbrState::ProbeRtt(Some(now + PROBE_RTT_LASTS));
                self.round_ends_at = heard.delivered;
            }
            BbrState::ProbeRtt(Some(until)) if is_new && now >= until => {
                self.rt_prop_at = now;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
                if self.is_full() {
                    self.enter_probe_bw(now);
                } else {
                    self.state = BbrState::Startup;
                }
            }
            BbrState::ProbeRtt(_) => {}
            _ if has_expired => {
                self.save_cwnd();
                self.state = BbrState::ProbeRtt(None);
            }
            _ => {}
        }
    }

    fn set_pace(&mut self) {
        let gain = match self.state {
            BbrState::Startup => HIGH_GAIN,
            BbrState::Drain => 1.0 / HIGH_GAIN,
            BbrState::ProbeBw(phase, _) => CYCLE[phase],
            BbrState::ProbeRtt(_) => 1.0,
        };
        let pace = gain * self.btl_bw.max();
        if pace > self.pace || self.is_full() && pace > 0.0 {
            self.pace = pace;
        }
    }

    fn set_cwnd(&mut self, heard: &Heard) {
        let gain = match self.state {
            BbrState::Startup | BbrState::Drain => HIGH_GAIN,
            BbrState::ProbeBw(..) => CWND_GAIN,
            BbrState::ProbeRtt(_) => 1.0,
        };
        self.cwnd = (self.cwnd - heard.lost).max(1.0);
        if self.conserves_until.is_some_and(|end| heard.delivered < end) {
            self.cwnd = self.cwnd.max(heard.in_flight + heard.newly);
        } else {
            let target = self.in_flight_at(gain);
            if self.is_full() {
                self.cwnd = (self.cwnd + heard.newly).min(target);
            } else if self.cwnd < target || (heard.delivered as f64) < INITIAL_CWND {
                self.cwnd += heard.newly;
            }
            self.cwnd = self.cwnd.max(MIN_CWND);
        }
        if matches!(self.state, BbrState::ProbeRtt(_)) {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    /// Segments that the path holds at this gain, with what batches and delayed acks need.
    fn in_flight_at(&self, gain: f64) -> f64 {
        let Some(rt_prop) = self.rt_prop else { return INITIAL_CWND };
        let bps = self.pace * (MSS * 8) as f64;
        let quantum = if bps < QUANTUM_BPS[0] {
            1.0
        } else if bps < QUANTUM_BPS[1] {
            2.0
        } else {
            (bps / 8e3).min(MAX_QUANTUM_BYTES) / MSS as f64
        };
        gain * self.btl_bw.max() * rt_prop.as_secs_f64() + 3.0 * quantum
    }
}
