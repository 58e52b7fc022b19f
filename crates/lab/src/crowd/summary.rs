//! The cells of one mix together.

use super::Outcome;

/// A cell in which Jain's index is less is unfair.
const MIN_JAIN: f64 = 0.9;

/// A cell that uses less of its link is idle.
const MIN_USED: f64 = 0.8;

/// A cell that drops more of what it sends is wasteful.
const MAX_DROPPED: f64 = 0.1;

/// What the cells of a mix have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Cells.
    pub cells: usize,
    /// Cells that are fair, and use the link, and drop little.
    pub good_cells: usize,
    /// Cells whose Jain index is below 0.9.
    pub unfair_cells: usize,
    /// Cells that use less than 80 % of their link.
    pub idle_cells: usize,
    /// Cells that drop more than a tenth of what they send.
    pub dropping_cells: usize,
    /// Connections of ours that ended before their run.
    pub broken: usize,
    /// Flows of ours that got nothing.
    pub stalled: usize,
    /// Jain's index: the median of the cells.
    pub jain_p50: f64,
    /// Jain's index: a twentieth of the cells have less.
    pub jain_p5: f64,
    /// The part of the link that is used: the median of the cells.
    pub used_p50: f64,
    /// The part of the link that is used: a twentieth of the cells have less.
    pub used_p5: f64,
    /// The fraction dropped: the median of the cells.
    pub dropped_p50: f64,
    /// The fraction dropped: a twentieth of the cells have more.
    pub dropped_p95: f64,
    /// The cells' median queueing delays, in ms: the median.
    pub queue_ms_p50: f64,
    /// The cells' 95th percentiles of the queueing delay, in ms: a twentieth of the cells have more.
    pub queue_ms_p95: f64,
    /// The completion of the slowest: the median of the cells.
    pub completion_p50: f64,
    /// The completion of the slowest: a twentieth of the cells have more.
    pub completion_p95: f64,
    /// The share beside TCP over a fair one: a twentieth of the cells have less, half of them, and a
    /// twentieth more.
    pub beside_tcp: Option<[f64; 3]>,
}

impl Summary {
    /// The summary of these runs.
    pub fn new<'a>(runs: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let runs: Vec<&Outcome> = runs.into_iter().collect();
        let count = |is_it: fn(&Outcome) -> bool| runs.iter().filter(|run| is_it(run)).count();
        let of = |part, value: &dyn Fn(&Outcome) -> f64| {
            percentile(runs.iter().map(|run| value(run)).collect(), part)
        };
        let beside: Vec<f64> = runs.iter().filter_map(|run| run.beside_tcp).collect();
        Self {
            cells: runs.len(),
            good_cells: count(|run| !is_unfair(run) && !is_idle(run) && !is_dropping(run)),
            unfair_cells: count(is_unfair),
            idle_cells: count(is_idle),
            dropping_cells: count(is_dropping),
            broken: runs.iter().map(|run| run.broken).sum(),
            stalled: runs.iter().map(|run| run.stalled).sum(),
            jain_p50: of(0.5, &|run| run.jain),
            jain_p5: of(0.05, &|run| run.jain),
            used_p50: of(0.5, &|run| run.used),
            used_p5: of(0.05, &|run| run.used),
            dropped_p50: of(0.5, &|run| run.dropped),
            dropped_p95: of(0.95, &|run| run.dropped),
            queue_ms_p50: of(0.5, &|run| run.queue_p50.as_secs_f64() * 1e3),
            queue_ms_p95: of(0.95, &|run| run.queue_p95.as_secs_f64() * 1e3),
            completion_p50: of(0.5, &|run| run.completion),
            completion_p95: of(0.95, &|run| run.completion),
            beside_tcp: (!beside.is_empty())
                .then(|| [0.05, 0.5, 0.95].map(|part| percentile(beside.clone(), part))),
        }
    }
}

fn is_unfair(run: &Outcome) -> bool {
    run.jain < MIN_JAIN
}

fn is_idle(run: &Outcome) -> bool {
    run.used < MIN_USED
}

fn is_dropping(run: &Outcome) -> bool {
    run.dropped > MAX_DROPPED
}

/// The smallest value that at least this part of the values do not exceed; zero if `values` is empty.
fn percentile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * part).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_by_what_is_wrong_with_them() {
        let good = Outcome { jain: 0.95, used: 0.9, dropped: 0.02, ..Outcome::default() };
        let runs = [
            Outcome { beside_tcp: Some(0.5), ..good.clone() },
            Outcome { jain: 0.5, dropped: 0.3, ..good.clone() },
            Outcome { used: 0.2, completion: 7.0, broken: 1, ..good },
        ];
        let summary = Summary::new(&runs);
        let counts = (summary.good_cells, summary.unfair_cells, summary.idle_cells);
        assert_eq!((counts, summary.dropping_cells, summary.broken), ((1, 1, 1), 1, 1));
        assert_eq!((summary.jain_p5, summary.jain_p50, summary.used_p5), (0.5, 0.95, 0.2));
        assert_eq!((summary.dropped_p95, summary.completion_p95), (0.3, 7.0));
        assert_eq!(summary.beside_tcp, Some([0.5; 3]));
    }
}
