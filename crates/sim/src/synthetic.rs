//! Records of cellular links that do not exist: made from a seed, so that no licence or privacy of a real one
//! matters, and like real ones in what misleads a sender.
//!
//! The rate walks over a table of levels in steps of 0.1 to 1 s, the scheduler serves in bunches of some
//! milliseconds, and at times nothing passes at all. Integers only: a seed makes the same record everywhere.

use crate::record::OPPORTUNITY_BYTES;
use crate::{Probability, Record, Rng};

/// What a record is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Rates in kbit/s, rising. Each step goes at most two of them up or down.
    pub levels_kbit: &'static [u64],
    /// How often a step is an outage, in parts of a thousand.
    pub outage_permille: u64,
    /// The shortest and longest outage, in ms.
    pub outage_ms: (u64, u64),
    /// The longest time from one bunch to the next, in ms.
    pub max_gap_ms: u64,
}

/// The length of a step, in ms.
const STEP_MS: (u64, u64) = (100, 1_000);

/// LTE, to a phone that moves: 0.6 to 40 Mbit/s, rarely nothing for up to 0.6 s.
pub const LTE: Pattern = Pattern {
    levels_kbit: &[600, 1_200, 2_500, 5_000, 8_000, 12_000, 16_000, 22_000, 30_000, 40_000],
    outage_permille: 40,
    outage_ms: (100, 600),
    max_gap_ms: 8,
};

/// LTE, from a phone that moves: 0.6 to 16 Mbit/s, rarely nothing for up to 0.6 s.
pub const LTE_UP: Pattern = Pattern {
    levels_kbit: &[600, 1_200, 2_500, 4_000, 6_000, 8_000, 12_000, 16_000],
    outage_permille: 30,
    ..LTE
};

/// EVDO in a car: 80 kbit/s to 2.4 Mbit/s, and nothing for 0.3 to 2 s once in fifteen steps.
pub const EVDO: Pattern = Pattern {
    levels_kbit: &[80, 150, 200, 300, 400, 500, 700, 1_000, 1_500, 2_400],
    outage_permille: 65,
    outage_ms: (300, 2_000),
    max_gap_ms: 40,
};

/// EVDO from a car: 150 kbit/s to 1.4 Mbit/s, and nothing for 0.3 to 1.5 s in 3 % of the steps.
pub const EVDO_UP: Pattern = Pattern {
    levels_kbit: &[150, 300, 450, 600, 900, 1_200, 1_400],
    outage_permille: 30,
    outage_ms: (300, 1_500),
    ..EVDO
};

/// The records that come with this crate: name, pattern, and length in ms.
pub const RECORDS: [(&str, Pattern, u64); 4] = [
    ("lte-like.down", LTE, 30_000),
    ("lte-like.up", LTE_UP, 30_000),
    ("evdo-like.down", EVDO, 120_000),
    ("evdo-like.up", EVDO_UP, 120_000),
];

impl Pattern {
    /// A record of this length.
    ///
    /// # Panics
    /// If the length is zero, or there is no level.
    #[must_use]
    pub fn record(&self, seed: u64, length_ms: u64) -> Record {
        let mut rng = Rng::stream(seed, length_ms);
        let outages = Probability::ratio(self.outage_permille, 1_000);
        let mut level = self.levels_kbit.len() / 2;
        let (mut rate_kbit, mut step_ends_ms) = (0, 0);
        let (mut bits, mut bunch_ms) = (0, 0);
        let mut at_ms = Vec::new();
        for now_ms in 0..length_ms {
            if now_ms == step_ends_ms {
                let is_out = rng.chance(outages);
                level = self.walk(level, &mut rng);
                let (min, max) = if is_out { self.outage_ms } else { STEP_MS };
                step_ends_ms += rng.between(min, max);
                rate_kbit = if is_out { 0 } else { self.levels_kbit[level] };
            }
            // Kbit/s are bits a millisecond.
            bits += rate_kbit;
            if now_ms >= bunch_ms && rate_kbit > 0 {
                let passed = bits / (OPPORTUNITY_BYTES * 8);
                bits -= passed * OPPORTUNITY_BYTES * 8;
                at_ms.extend((0..passed).map(|_| now_ms));
                bunch_ms = now_ms + rng.between(1, self.max_gap_ms);
            }
        }
        at_ms.push(length_ms);
        Record::from_millis(at_ms)
    }

    /// Up to two levels up or down, within the table.
    fn walk(&self, level: usize, rng: &mut Rng) -> usize {
        let up = level + rng.below(5) as usize;
        up.saturating_sub(2).min(self.levels_kbit.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use haulier_proto::Instant;

    use super::*;
    use crate::record::Recorded;

    /// The seed of the records in this crate.
    const SEED: u64 = 4;

    /// `UPDATE_RECORDS=1` writes them.
    #[test]
    fn the_records_are_those_of_their_seed() {
        for (name, pattern, length_ms) in RECORDS {
            let made = pattern.record(SEED, length_ms);
            if std::env::var_os("UPDATE_RECORDS").is_some() {
                let path = format!("{}/records/{name}", env!("CARGO_MANIFEST_DIR"));
                std::fs::write(path, made.to_text()).unwrap();
            } else {
                assert_eq!(Record::named(name), Some(made), "{name}");
            }
        }
        assert_eq!(Record::named("lte"), None);
    }

    /// Rates of a tenth of a second, at the 5th, 50th and 95th percentile, the mean, and the longest time
    /// with nothing: beside a published record of LTE (0.6, 14.4, 39.5, 16.7 Mbit/s, 0.9 s) and one of EVDO
    /// (0, 0.36, 2.0, 0.59 Mbit/s, 5.7 s).
    #[test]
    fn they_are_like_real_ones() {
        let within = |name: &str,
                      mean_kbit: (u64, u64),
                      p95_kbit: (u64, u64),
                      gap_ms: (u64, u64)| {
            let recorded = Recorded::from(Record::named(name).unwrap());
            let length_ms = recorded.record.lasts().as_millis() as u64;
            let ms = Instant::from_millis;
            let tenth = |n| recorded.bytes_between(ms(n * 100), ms(n * 100 + 100)) * 8 / 100;
            let mut rates: Vec<u64> = (0..length_ms / 100).map(tenth).collect();
            rates.sort_unstable();
            let part = |percent: usize| rates[rates.len() * percent / 100];
            let (mut gap, mut last) = (0, 0);
            for at in 0..length_ms {
                if recorded.bytes_between(ms(at), ms(at + 1)) > 0 {
                    (gap, last) = (gap.max(at - last), at);
                }
            }
            let mean = recorded.record.mean_bps() / 1_000;
            println!("{name}: {} {} {}, mean {mean} kbit/s, {gap} ms", part(5), part(50), part(95));
            let is_in = |value, (min, max)| (min..=max).contains(&value);
            assert!(is_in(mean, mean_kbit) && is_in(part(95), p95_kbit) && is_in(gap, gap_ms));
        };
        within("lte-like.down", (8_000, 20_000), (25_000, 45_000), (100, 1_000));
        within("lte-like.up", (4_000, 12_000), (8_000, 20_000), (50, 1_000));
        within("evdo-like.down", (400, 1_000), (1_500, 3_000), (1_000, 6_000));
        within("evdo-like.up", (400, 1_000), (900, 2_000), (500, 4_000));
    }
}
