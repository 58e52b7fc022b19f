//! Crowds drawn at random: the distribution of `random_crowds.py`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use haulier_sim::{Access, CoDel, LinkConfig};

use super::python::Random;
use super::{bps, in_bytes, ms, rounded};

/// Joins, Mbit/s, and ms of a round trip.
const JOINS: (f64, f64) = (2.0, 40.0);
const RATES_MBIT: (f64, f64) = (3.0, 80.0);
const RTTS_MS: (f64, f64) = (8.0, 200.0);

/// The queue in bandwidth-delay products, and in KiB at least.
const QUEUES_BDP: (f64, f64) = (0.4, 4.0);
const MIN_QUEUE_KIB: f64 = 16.0;

/// All blocks together take this many seconds at the link's rate, each with whole pages of 4 KiB, and of 64
/// KiB at least.
const LASTS_S: (f64, f64) = (4.0, 12.0);
const PAGE_BYTES: u64 = 4096;
const MIN_BYTES: u64 = 64 << 10;

/// Crowds whose queue has CoDel.
const CODEL: f64 = 0.3;

/// The time within which joins begin; zero is at once.
const WITHIN: [Duration; 4] =
    [Duration::ZERO, Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4)];

/// Several who join on one bottleneck, and get a block each.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomCrowd {
    /// How many.
    pub joins: u32,
    /// Bytes of each block.
    pub bytes: u64,
    /// The rate of the bottleneck in Mbit/s, headers included.
    pub rate_mbit: f64,
    /// The round trip in ms.
    pub rtt_ms: f64,
    /// The queue in KiB, the same both ways.
    pub queue_kib: f64,
    /// Whether CoDel drops from it.
    pub codel: bool,
    /// The time within which they begin, each whenever; zero: all at once.
    pub within: Duration,
}

impl RandomCrowd {
    /// The first crowds of a seed.
    pub fn draw(seed: u64, count: usize) -> Vec<Self> {
        let mut random = Random::new(seed);
        (0..count).map(|_| Self::next(&mut random)).collect()
    }

    fn next(random: &mut Random) -> Self {
        let joins = rounded(random.log(JOINS.0, JOINS.1), 0);
        let rate_mbit = rounded(random.log(RATES_MBIT.0, RATES_MBIT.1), 1);
        let rtt_ms = rounded(random.log(RTTS_MS.0, RTTS_MS.1), 0);
        let queue = rate_mbit * rtt_ms / 8.0 * random.log(QUEUES_BDP.0, QUEUES_BDP.1);
        let bytes = (rate_mbit * 1e6 / 8.0 * random.log(LASTS_S.0, LASTS_S.1) / joins) as u64;
        Self {
            joins: joins as u32,
            bytes: (bytes / PAGE_BYTES * PAGE_BYTES).max(MIN_BYTES),
            rate_mbit,
            rtt_ms,
            queue_kib: rounded(queue.max(MIN_QUEUE_KIB), 0),
            codel: random.random() < CODEL,
            within: random.choice(&WITHIN),
        }
    }

    /// The links of their home.
    pub fn access(&self) -> Access {
        let link = LinkConfig::new(bps(self.rate_mbit), ms(self.rtt_ms / 2.0));
        let codel = self.codel.then(CoDel::default);
        LinkConfig { codel, ..link.with_queue(in_bytes(self.queue_kib)) }.into()
    }
}

impl fmt::Display for RandomCrowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { joins, rate_mbit, rtt_ms, queue_kib, .. } = self;
        let kib = self.bytes >> 10;
        write!(f, "{joins} x {kib} KiB, {rate_mbit} Mbit/s, {rtt_ms} ms, {queue_kib} KiB")?;
        if self.codel {
            write!(f, ", CoDel")?;
        }
        match self.within.as_secs() {
            0 => Ok(()),
            seconds => write!(f, ", within {seconds} s"),
        }
    }
}

/// A cell by hand, all at once: Mbit/s:ms:KiB:joins:bytes, as `random_crowds.py --cells-of` has it.
impl FromStr for RandomCrowd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text} is no crowd: Mbit/s:ms:KiB:joins:bytes, as 10:50:64:10:1048576");
        let numbers: Option<Vec<f64>> =
            text.split(':').map(|part| part.parse().ok().filter(|&number| number > 0.0)).collect();
        let Some(&[rate_mbit, rtt_ms, queue_kib, joins, bytes]) = numbers.as_deref() else {
            return Err(wrong());
        };
        let is_possible = rate_mbit <= 1e4 && queue_kib <= 1e6 && rtt_ms <= 1e4;
        if !is_possible || !(1.0..=1e3).contains(&joins) || !(1.0..=6.7e7).contains(&bytes) {
            return Err(wrong());
        }
        let (joins, bytes, within) = (joins as u32, bytes as u64, Duration::ZERO);
        Ok(Self { joins, bytes, rate_mbit, rtt_ms, queue_kib, codel: false, within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by `random_crowds.py` for the seed 7.
    #[test]
    fn a_seed_draws_the_crowds_of_the_script() {
        let drawn: Vec<String> = RandomCrowd::draw(7, 6).iter().map(ToString::to_string).collect();
        let expected = [
            "5 x 860 KiB, 4.9 Mbit/s, 65 ms, 19 KiB",
            "31 x 124 KiB, 6.1 Mbit/s, 11 ms, 16 KiB",
            "24 x 256 KiB, 4.5 Mbit/s, 16 ms, 16 KiB, within 4 s",
            "2 x 2396 KiB, 6.2 Mbit/s, 48 ms, 20 KiB, within 1 s",
            "11 x 1536 KiB, 28.2 Mbit/s, 11 ms, 58 KiB, CoDel",
            "11 x 2384 KiB, 22.9 Mbit/s, 40 ms, 156 KiB, within 4 s",
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_crowd_by_hand() {
        let crowd: RandomCrowd = "10:50:64:10:1048576".parse().unwrap();
        assert_eq!(crowd.to_string(), "10 x 1024 KiB, 10 Mbit/s, 50 ms, 64 KiB");
        for wrong in ["10:50:64:10", "10:50:64:0:1", "x:1:1:1:1", "1:1:1:1:1:1", "nan:1:1:1:1"] {
            assert!(wrong.parse::<RandomCrowd>().is_err(), "{wrong}");
        }
    }
}
