//! Summaries of many runs of one strategy.

use std::time::Duration;

use super::{Cell, Outcome};

/// The maximum median ratio of a good cell.
pub const GOOD_MEDIAN: f64 = 1.10;

/// The maximum worst ratio of a steady cell.
pub const STEADY_WORST: f64 = 1.25;

/// The runs of one strategy in one cell, one for each seed.
#[derive(Clone, Debug)]
pub struct CellRuns {
    /// The link.
    pub cell: Cell,
    /// One for each seed.
    pub runs: Vec<Outcome>,
}

impl CellRuns {
    /// The ratio at this quantile of the runs.
    pub fn ratio(&self, part: f64) -> f64 {
        percentile(self.runs.iter().map(Outcome::ratio), part)
    }
}

/// One strategy over all cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Cells.
    pub cells: usize,
    /// Runs.
    pub runs: usize,
    /// Runs without a block.
    pub hangs: usize,
    /// The median ratio to the limit of all runs.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The fraction of cells whose median is at most [`GOOD_MEDIAN`].
    pub good_cells: f64,
    /// The fraction of cells whose worst run is at most [`STEADY_WORST`].
    pub steady_cells: f64,
    /// The median of the worst cell.
    pub worst_cell: f64,
    /// Slices sent beyond those of the block, as a fraction of these: the mean.
    pub waste: f64,
    /// Slices sent beyond those of the block, as a fraction of these: the 95th percentile of the runs.
    pub waste_p95: f64,
    /// KiB that the bottleneck's full queue dropped: the mean.
    pub dropped_kib: f64,
    /// KiB that the bottleneck's full queue dropped: the 95th percentile of the runs.
    pub dropped_kib_p95: f64,
    /// Peak of the bottleneck's queue in KiB, median.
    pub queue_kib_p50: f64,
    /// Peak of the bottleneck's queue in KiB, 95th percentile of the runs.
    pub queue_kib_p95: f64,
    /// The mean queueing delay of the packets of a run, in ms: the mean over runs.
    pub wait_ms: f64,
    /// The mean queueing delay of the packets of a run, in ms: the 95th percentile of the runs.
    pub wait_ms_p95: f64,
}

impl Summary {
    /// The summary of these runs.
    pub fn new<'a>(cells: impl IntoIterator<Item = &'a CellRuns>) -> Self {
        let cells: Vec<&CellRuns> = cells.into_iter().collect();
        let runs = || cells.iter().flat_map(|cell| &cell.runs);
        let part_of_cells = |is_it: &dyn Fn(&CellRuns) -> bool| {
            cells.iter().filter(|cell| is_it(cell)).count() as f64 / cells.len().max(1) as f64
        };
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let ratio = |part| percentile(runs().map(Outcome::ratio), part);
        let dropped = || runs().map(|run| kib(run.dropped_bytes));
        let queue = |part| percentile(runs().map(|run| kib(run.peak_queue_bytes)), part);
        let wait = || runs().map(|run| ms(run.mean_wait));
        Self {
            cells: cells.len(),
            runs: runs().count(),
            hangs: runs().filter(|run| run.hang.is_some()).count(),
            p50: ratio(0.5),
            p95: ratio(0.95),
            p99: ratio(0.99),
            good_cells: part_of_cells(&|cell| cell.ratio(0.5) <= GOOD_MEDIAN),
            steady_cells: part_of_cells(&|cell| cell.ratio(1.0) <= STEADY_WORST),
            worst_cell: percentile(cells.iter().map(|cell| cell.ratio(0.5)), 1.0),
            waste: mean(runs().map(Outcome::waste)),
            waste_p95: percentile(runs().map(Outcome::waste), 0.95),
            dropped_kib: mean(dropped()),
            dropped_kib_p95: percentile(dropped(), 0.95),
            queue_kib_p50: queue(0.5),
            queue_kib_p95: queue(0.95),
            wait_ms: mean(wait()),
            wait_ms_p95: percentile(wait(), 0.95),
        }
    }
}

/// The quantile of the values, by nearest rank; 0 if there is no value.
fn percentile(numbers: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len().saturating_sub(1);
    numbers.get((last as f64 * part).round() as usize).copied().unwrap_or(0.0)
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = numbers.fold((0_u32, 0.0), |(count, sum), number| (count + 1, sum + number));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::outcome::HUNG;

    fn run(ratio: u32, slices_sent: u64, dropped_bytes: u64) -> Outcome {
        let limit = Duration::from_millis(100);
        let mean_wait = Duration::from_millis(ratio.into());
        Outcome {
            took: limit * ratio,
            limit,
            slices: 256,
            slices_sent,
            dropped_bytes,
            mean_wait,
            ..Outcome::default()
        }
    }

    #[test]
    fn percentiles_and_parts() {
        let cell = Cell::tuned().next().unwrap();
        let good = CellRuns { cell, runs: vec![run(1, 256, 0), run(1, 256, 0), run(2, 320, 0)] };
        let mut bad = CellRuns { cell, runs: vec![run(3, 512, 2048), run(4, 256, 0)] };
        let hung = Outcome { took: HUNG, hang: Some("why".into()), ..run(1, 256, 0) };
        bad.runs.push(hung);
        let summary = Summary::new(&[good, bad]);
        assert_eq!((summary.cells, summary.runs, summary.hangs), (2, 6, 1));
        // Sorted: 1, 1, 2, 3, 4, 600.
        assert_eq!((summary.p50, summary.p95, summary.p99), (3.0, 600.0, 600.0));
        assert_eq!((summary.good_cells, summary.steady_cells), (0.5, 0.0));
        assert_eq!(summary.worst_cell, 4.0);
        assert_eq!(summary.waste, (0.25 + 1.0) / 6.0);
        assert_eq!(summary.dropped_kib, 2.0 / 6.0);
        assert_eq!(summary.wait_ms, 2.0);
        assert_eq!(Summary::new([]), Summary::default());
    }
}
