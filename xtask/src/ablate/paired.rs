//! Two rows compared cell by cell: what differs, and by how much that scatters.

/// Of fewer differences the error is chance itself.
const MIN_COUNT: usize = 6;

/// The mean of some differences, and its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) error: f64,
    pub(super) count: usize,
    /// All differences are zero.
    pub(super) is_same: bool,
}

impl Mean {
    pub(super) fn of(differences: &[f64]) -> Self {
        let n = differences.len().max(1) as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let squares: f64 = differences.iter().map(|it| (it - mean) * (it - mean)).sum();
        let error = (squares / (n - 1.0).max(1.0) / n).sqrt();
        Self {
            mean,
            error,
            count: differences.len(),
            is_same: differences.iter().all(|&it| it == 0.0),
        }
    }

    /// Whether it is more than this many standard errors from nothing, and there are enough cells to say so.
    pub(super) fn is_beyond(&self, errors: f64, least: f64) -> bool {
        self.count >= MIN_COUNT && self.mean.abs() > errors * self.error && self.mean.abs() >= least
    }
}

/// The value below which this part of some values is.
pub(super) fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = part * values.len().saturating_sub(1) as f64;
    values.get(at.round() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_an_error() {
        let mean = Mean::of(&[1.0, 3.0]);
        assert_eq!((mean.mean, mean.error, mean.is_same), (2.0, 1.0, false));
        assert!(!mean.is_beyond(1.9, 2.0), "two are too few");
        let mean = Mean { count: MIN_COUNT, ..mean };
        assert!(mean.is_beyond(1.9, 2.0) && !mean.is_beyond(2.1, 0.0) && !mean.is_beyond(1.9, 2.1));
        assert!(Mean::of(&[0.0; 3]).is_same);
        assert_eq!(quantile([3.0, 1.0, 2.0].into_iter(), 0.95), 3.0);
    }
}
