//! Links drawn at random: the distribution of `random_links.py`.

use std::fmt;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Access, CoDel, LinkConfig, Loss, RateChange};

use super::python::Random;
use super::{bps, in_bytes, ms, part, rounded};

/// Rates in Mbit/s, and round trips in ms.
const RATES_MBIT: (f64, f64) = (1.0, 400.0);
const RTTS_MS: (f64, f64) = (2.0, 400.0);

/// Queues in bandwidth-delay products, and in KiB whatever that is.
const QUEUES_BDP: (f64, f64) = (0.15, 6.0);
const QUEUES_KIB: (f64, f64) = (8.0, 4096.0);

/// The rate in each eighth of a link whose rate changes, over the drawn rate; zero is an outage. The last
/// eighth is always the drawn rate.
const STEPS: [f64; 8] = [1.0, 1.0, 0.8, 0.5, 0.3, 0.15, 1.4, 0.0];
const DRAWN_STEPS: usize = 7;

/// How much of what it delivers a link delivers twice.
const DUPLICATES: f64 = 0.02;

/// Payload of a datagram: what the limit divides blocks by.
const DATAGRAM_BYTES: f64 = 1200.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Loss,
    Burst,
    Jitter,
    Reorder,
    Bunch,
    Steps,
    CoDel,
    Up,
    UpLoss,
    Dup,
    None,
}

const KINDS: [Kind; 12] = [
    Kind::Loss,
    Kind::Burst,
    Kind::Jitter,
    Kind::Reorder,
    Kind::Bunch,
    Kind::Steps,
    Kind::CoDel,
    Kind::Up,
    Kind::UpLoss,
    Kind::Dup,
    Kind::None,
    Kind::None,
];

/// A link: what the emulator calls a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RandomLink {
    /// Its rate in Mbit/s, headers included.
    pub rate_mbit: f64,
    /// Its round trip in ms, half each way.
    pub rtt_ms: f64,
    /// Its droptail queue in KiB, the same both ways.
    pub queue_kib: f64,
    /// The part of the packets that is lost.
    pub loss: f64,
    /// The mean length of a run of lost packets; 0: they are lost one by one.
    pub burst_length: u32,
    /// Further delay of up to this many ms, drawn uniformly.
    pub jitter_ms: f64,
    /// Whether that changes the order.
    pub reorders: bool,
    /// It delivers at multiples of this many ms; 0: at once.
    pub bunch_ms: f64,
    /// The rates over the drawn one, each for `step_ms`, again and again; empty if it does not change.
    pub steps: Vec<f64>,
    /// How long each of the `steps` lasts, in ms.
    pub step_ms: f64,
    /// Whether CoDel drops from its queues.
    pub codel: bool,
    /// The rate of the way up in Mbit/s, where it differs.
    pub up_mbit: Option<f64>,
    /// The loss on the way up, where it differs.
    pub up_loss: Option<f64>,
    /// The part of the packets that arrives twice.
    pub duplicates: f64,
}

impl RandomLink {
    /// The first links of a seed.
    pub fn draw(seed: u64, count: usize) -> Vec<Self> {
        let mut random = Random::new(seed);
        (0..count).map(|_| Self::next(&mut random)).collect()
    }

    fn next(random: &mut Random) -> Self {
        let rate = random.log(RATES_MBIT.0, RATES_MBIT.1);
        let rtt = random.log(RTTS_MS.0, RTTS_MS.1);
        let queue = rate * rtt / 8.0 / 1.024 * random.log(QUEUES_BDP.0, QUEUES_BDP.1);
        let mut link = Self {
            rate_mbit: rounded(rate, 2),
            rtt_ms: rounded(rtt, 1),
            queue_kib: rounded(queue.clamp(QUEUES_KIB.0, QUEUES_KIB.1), 1),
            ..Self::default()
        };
        let count = random.choice(&[1, 1, 2, 3]);
        for kind in random.sample(&KINDS, count) {
            link.add(kind, rate, random);
        }
        link
    }

    fn add(&mut self, kind: Kind, rate: f64, random: &mut Random) {
        match kind {
            Kind::Loss => self.loss = rounded(random.log(0.001, 0.15), 4),
            Kind::Burst => {
                self.loss = rounded(random.log(0.002, 0.06), 4);
                self.burst_length = random.choice(&[3, 6, 12]);
            }
            Kind::Jitter => self.jitter_ms = rounded(random.log(1.0, 40.0), 1),
            Kind::Reorder => {
                (self.jitter_ms, self.reorders) = (rounded(random.log(1.0, 30.0), 1), true);
            }
            Kind::Bunch => self.bunch_ms = rounded(random.log(1.0, 12.0), 1),
            Kind::Steps => {
                self.steps = (0..DRAWN_STEPS).map(|_| random.choice(&STEPS)).collect();
                self.steps.push(1.0);
                self.step_ms = rounded(random.log(60.0, 1_500.0), 0);
            }
            Kind::CoDel => self.codel = true,
            Kind::Up => self.up_mbit = Some(rounded(rate / random.log(5.0, 40.0), 3).max(0.1)),
            Kind::UpLoss => self.up_loss = Some(rounded(random.log(0.01, 0.4), 3)),
            Kind::Dup => self.duplicates = DUPLICATES,
            Kind::None => {}
        }
    }

    /// The links of a client behind it, for a run that is over at `end`.
    pub fn access(&self, end: Instant) -> Access {
        let down = self.way(self.rate_mbit, self.loss, self.burst_length, end);
        let rate = self.up_mbit.unwrap_or(self.rate_mbit);
        let up = match self.up_loss {
            Some(loss) => self.way(rate, loss, 0, end),
            None => self.way(rate, self.loss, self.burst_length, end),
        };
        Access { up, down }
    }

    fn way(&self, rate_mbit: f64, loss: f64, burst_length: u32, end: Instant) -> LinkConfig {
        let mean = part(loss);
        LinkConfig {
            rate_changes: self.rate_changes(rate_mbit, end),
            codel: self.codel.then(CoDel::default),
            aggregation: ms(self.bunch_ms),
            jitter: ms(self.jitter_ms),
            reorder: self.reorders,
            loss: match burst_length {
                0 => Loss::Independent(mean),
                length => Loss::Bursts { mean, length },
            },
            duplicate: part(self.duplicates),
            duplicate_delay: ms(self.jitter_ms),
            ..LinkConfig::new(bps(rate_mbit), ms(self.rtt_ms / 2.0))
        }
        .with_queue(in_bytes(self.queue_kib))
    }

    fn rate_changes(&self, rate_mbit: f64, end: Instant) -> Vec<RateChange> {
        if self.steps.is_empty() {
            return Vec::new();
        }
        let step = ms(self.step_ms);
        let changes = (0..).zip(self.steps.iter().cycle()).map(|(n, factor)| RateChange {
            at: Instant::ZERO + step * n,
            rate_bps: bps(rate_mbit * factor),
        });
        changes.take_while(|change| change.at < end).collect()
    }

    /// The physical limit L of a join for a block, as the lab counts it: a round trip, half of the largest
    /// jitter and of a bunch, and the time for which the block in full datagrams, lost ones sent again,
    /// occupies the bottleneck, from its request on, while the rate changes as it does.
    pub fn limit(&self, bytes: u64) -> Duration {
        let wire_bits = bytes as f64 * 8.0 * (1.0 + UDP_IP_OVERHEAD as f64 / DATAGRAM_BYTES);
        let sending = wire_bits / (self.rate_mbit * 1e3 * (1.0 - self.loss));
        ms(self.rtt_ms + self.lasts(sending) + self.jitter_ms / 2.0 + self.bunch_ms / 2.0)
    }

    /// How long it takes to pass what takes this long at the drawn rate, in ms.
    fn lasts(&self, sending: f64) -> f64 {
        if self.steps.iter().all(|&factor| factor <= 0.0) {
            return sending;
        }
        let begins = self.rtt_ms / 2.0;
        let (mut left, mut now, mut ends) = (sending, begins, 0.0);
        for factor in self.steps.iter().cycle() {
            ends += self.step_ms;
            let passed = factor * (ends - now).max(0.0);
            if passed >= left {
                return now + left / factor - begins;
            }
            (left, now) = (left - passed, now.max(ends));
        }
        unreachable!("one of the steps passes something, again and again")
    }
}

/// As a person says it: what is not there is left out.
impl fmt::Display for RandomLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s, {} ms, {} KiB", self.rate_mbit, self.rtt_ms, self.queue_kib)?;
        if self.loss > 0.0 {
            write!(f, ", {:.2} % lost", self.loss * 1e2)?;
        }
        if self.burst_length > 0 {
            write!(f, " in runs of {}", self.burst_length)?;
        }
        if self.jitter_ms > 0.0 {
            let order = if self.reorders { "that reorders" } else { "in order" };
            write!(f, ", {} ms of jitter {order}", self.jitter_ms)?;
        }
        if self.bunch_ms > 0.0 {
            write!(f, ", bunches of {} ms", self.bunch_ms)?;
        }
        if !self.steps.is_empty() {
            write!(f, ", steps {:?} of {} ms", self.steps, self.step_ms)?;
        }
        if self.codel {
            write!(f, ", CoDel")?;
        }
        if let Some(up) = self.up_mbit {
            write!(f, ", {up} Mbit/s up")?;
        }
        if let Some(loss) = self.up_loss {
            write!(f, ", {:.1} % lost up", loss * 1e2)?;
        }
        if self.duplicates > 0.0 { write!(f, ", duplicates") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by `random_links.py` for the seed 7.
    #[test]
    fn a_seed_draws_the_links_of_the_script() {
        let plain = |rate_mbit, rtt_ms, queue_kib| RandomLink {
            rate_mbit,
            rtt_ms,
            queue_kib,
            ..RandomLink::default()
        };
        let drawn = RandomLink::draw(7, 6);
        let expected = [
            RandomLink { up_loss: Some(0.014), ..plain(6.96, 4.4, 8.0) },
            RandomLink { codel: true, ..plain(32.84, 247.9, 329.2) },
            RandomLink { duplicates: 0.02, ..plain(12.25, 7.2, 12.3) },
            RandomLink { duplicates: 0.02, ..plain(2.1, 6.5, 8.0) },
            RandomLink { bunch_ms: 2.8, ..plain(33.39, 2.6, 8.0) },
            RandomLink { loss: 0.0145, burst_length: 12, ..plain(25.52, 41.2, 152.0) },
        ];
        assert_eq!(drawn, expected);
    }

    /// By hand: 300,000 bytes of payload with 28 for each 1200 are 2,456,000 bits.
    #[test]
    fn a_limit_is_a_round_trip_and_the_bytes() {
        let link = RandomLink { rate_mbit: 10.0, rtt_ms: 50.0, ..RandomLink::default() };
        assert_eq!(link.limit(300_000), Duration::from_micros(295_600));
        let odd = RandomLink { loss: 0.5, jitter_ms: 4.0, bunch_ms: 2.0, ..link };
        assert_eq!(odd.limit(300_000), Duration::from_micros(544_200));
    }

    /// By hand: 245.6 ms at the drawn rate. The request is there after 25 ms, half of the next 75 is passed,
    /// nothing for 100, and all of the next 100; then half of 100 again, and the last 58.1 ms end after the
    /// outage that follows.
    #[test]
    fn a_limit_follows_the_rate() {
        let link = RandomLink {
            rate_mbit: 10.0,
            rtt_ms: 50.0,
            steps: vec![0.5, 0.0, 1.0],
            step_ms: 100.0,
            ..RandomLink::default()
        };
        let done = 500.0 + (245.6 - 75.0 / 2.0 - 100.0 - 100.0 / 2.0);
        let limit = link.limit(300_000).as_secs_f64() * 1e3;
        assert!((limit - (50.0 + done - 25.0)).abs() < 1e-3, "{limit}");
        let steady = RandomLink { steps: vec![1.0], ..link };
        assert_eq!(steady.limit(300_000), Duration::from_micros(295_600));
    }

    #[test]
    fn a_rate_changes_until_the_end() {
        let link = RandomLink {
            rate_mbit: 8.0,
            steps: vec![0.5, 0.0, 1.0],
            step_ms: 100.0,
            ..RandomLink::default()
        };
        let access = link.access(Instant::from_millis(350));
        let changes: Vec<u64> = access.down.rate_changes.iter().map(|c| c.rate_bps).collect();
        assert_eq!(changes, [4_000_000, 0, 8_000_000, 4_000_000]);
    }
}
