//! The distributions over cells, as the scripts print them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::CROWD_PATIENCE;
use crate::rush::{RushReport, Sender};

/// A sender that is slower than the first by this part is still first.
const AS_FIRST: f64 = 1.05;

/// One sender over all links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSummary {
    /// Links.
    pub links: usize,
    /// The part of them on which it is first, or within a twentieth of the first.
    pub first: f64,
    /// The time over the physical limit: the median; infinite if it failed.
    pub p50: f64,
    /// The time over the physical limit: a tenth of the links have more.
    pub p90: f64,
    /// The time over the physical limit: a twentieth of the links have more.
    pub p95: f64,
    /// Links on which it failed.
    pub failures: usize,
}

impl LinkSummary {
    /// Of what each sender took on each link, as multiples of the limit; what failed is infinite.
    pub fn new(sender: Sender, links: &[BTreeMap<Sender, f64>]) -> Self {
        let mine = || links.iter().filter_map(|link| link.get(&sender).copied());
        let is_first = |link: &&BTreeMap<Sender, f64>| {
            let first = link.values().copied().fold(f64::INFINITY, f64::min);
            link.get(&sender).is_some_and(|&mine| mine.is_finite() && mine <= first * AS_FIRST)
        };
        let sorted = sorted(mine());
        Self {
            links: sorted.len(),
            first: links.iter().filter(is_first).count() as f64 / links.len().max(1) as f64,
            p50: median(&sorted),
            p90: at(&sorted, 0.9),
            p95: at(&sorted, 0.95),
            failures: sorted.iter().filter(|ratio| ratio.is_infinite()).count(),
        }
    }
}

/// Over all crowds: the time of one sender over that of another in the same cell. What is not done counts as
/// done when patience is over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// The median.
    pub p50: f64,
    /// The largest.
    pub worst: f64,
}

/// One sender over all crowds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrowdSummary {
    /// Crowds.
    pub crowds: usize,
    /// The part of the packets that the bottleneck dropped: the median.
    pub dropped_p50: f64,
    /// The part of the packets that the bottleneck dropped: a tenth of the crowds have more.
    pub dropped_p90: f64,
    /// The part of the packets that the bottleneck dropped: the maximum.
    pub dropped_worst: f64,
    /// Of all that was dropped in all crowds, the part that was sent before the first feedback of its join.
    pub blind: f64,
    /// When the last was done, in seconds: the median.
    pub last_s: f64,
    /// The mean time of a join, in seconds: the median.
    pub mean_s: f64,
    /// When the last was done, over that of CUBIC.
    pub last: Beside,
    /// The mean time of a join, over that of CUBIC.
    pub mean: Beside,
    /// Jain's index of the mean rates: the median.
    pub jain_p50: f64,
    /// Jain's index of the mean rates: the minimum.
    pub jain_worst: f64,
    /// Crowds that were not done in time.
    pub not_done: usize,
}

impl CrowdSummary {
    /// Of the runs of all senders in each crowd. Where CUBIC did not run, nothing is beside it.
    pub fn new(sender: Sender, crowds: &[BTreeMap<Sender, RushReport>]) -> Self {
        let runs: Vec<&RushReport> = crowds.iter().filter_map(|crowd| crowd.get(&sender)).collect();
        let of = |value: &dyn Fn(&RushReport) -> f64| sorted(runs.iter().map(|run| value(run)));
        let beside = |time: fn(&RushReport) -> f64| {
            let both = crowds.iter().filter_map(|crowd| {
                Some((time(crowd.get(&sender)?), time(crowd.get(&Sender::Cubic)?)))
            });
            let ratios = sorted(both.map(|(mine, cubic)| mine / cubic));
            Beside { p50: median(&ratios), worst: at(&ratios, 1.0) }
        };
        let (dropped, jain) = (of(&RushReport::dropped_part), of(&RushReport::jain));
        let sum = |count: fn(&RushReport) -> u64| runs.iter().map(|run| count(run)).sum::<u64>();
        Self {
            crowds: runs.len(),
            dropped_p50: median(&dropped),
            dropped_p90: at(&dropped, 0.9),
            dropped_worst: at(&dropped, 1.0),
            blind: sum(|run| run.dropped_blind) as f64 / sum(|run| run.dropped).max(1) as f64,
            last_s: median(&of(&last_s)),
            mean_s: median(&of(&mean_s)),
            last: beside(last_s),
            mean: beside(mean_s),
            jain_p50: median(&jain),
            jain_worst: at(&jain, 0.0),
            not_done: runs.iter().filter(|run| run.failures() > 0).count(),
        }
    }
}

fn last_s(run: &RushReport) -> f64 {
    seconds(run.last())
}

fn mean_s(run: &RushReport) -> f64 {
    seconds(run.mean())
}

fn seconds(time: Option<Duration>) -> f64 {
    time.unwrap_or(CROWD_PATIENCE).as_secs_f64()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of an even number the mean of the middle two, as Python's `statistics.median`; 0 of none.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        even if even % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// The value that this part of them is below; 0 of none.
fn at(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_first_and_by_how_much() {
        let links = [
            BTreeMap::from([(Sender::Token, 1.04), (Sender::Cubic, 1.0)]),
            BTreeMap::from([(Sender::Token, 1.1), (Sender::Cubic, 2.0)]),
            BTreeMap::from([(Sender::Token, f64::INFINITY), (Sender::Cubic, f64::INFINITY)]),
        ];
        let token = LinkSummary::new(Sender::Token, &links);
        assert_eq!((token.links, token.failures), (3, 1));
        assert!((token.first - 2.0 / 3.0).abs() < 1e-9 && (token.p50 - 1.1).abs() < 1e-9);
        assert!(token.p90.is_infinite());
        let cubic = LinkSummary::new(Sender::Cubic, &links);
        assert!((cubic.first - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(LinkSummary::new(Sender::Bbr, &links).links, 0);
    }

    #[test]
    fn crowds_are_beside_cubic_in_the_same_cell() {
        let run = |seconds: u64, dropped, dropped_blind| RushReport {
            times: vec![(seconds > 0).then(|| Duration::from_secs(seconds))],
            offered: 10,
            dropped,
            dropped_blind,
            ..RushReport::default()
        };
        let crowds = [
            BTreeMap::from([(Sender::Token, run(3, 2, 1)), (Sender::Cubic, run(2, 1, 0))]),
            BTreeMap::from([(Sender::Token, run(0, 6, 1)), (Sender::Cubic, run(9, 1, 0))]),
        ];
        let token = CrowdSummary::new(Sender::Token, &crowds);
        assert_eq!((token.crowds, token.not_done), (2, 1));
        assert!((token.last.p50 - 5.75).abs() < 1e-9 && (token.last.worst - 10.0).abs() < 1e-9);
        assert!((token.dropped_p50 - 0.4).abs() < 1e-9 && (token.dropped_worst - 0.6).abs() < 1e-9);
        assert!((token.blind - 0.25).abs() < 1e-9);
        assert_eq!(CrowdSummary::new(Sender::Cubic, &crowds).last.worst.to_bits(), 1_f64.to_bits());
    }
}
