//! The metrics as the text of OpenMetrics 1.0, for Prometheus and what understands it.
//!
//! Written here rather than by a library: all names and labels are the program's own, so there is nothing to
//! escape, and a registry would be a second copy of every number. The test that counts reads it with the
//! strict parser of another implementation.

use std::fmt::Write as _;

use haulier::DropReason;

use crate::metric::{METRICS, Metric, MetricKind, Read};
use crate::snapshot::{Histogram, Snapshot};

/// The type of the text, for its HTTP header.
pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Snapshot {
    /// All metrics as text, of the type [`OPENMETRICS_TYPE`].
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut out = String::with_capacity(16 << 10);
        for metric in METRICS {
            head(&mut out, metric);
            lines(&mut out, metric, self);
        }
        out.push_str("# EOF\n");
        out
    }
}

// Writing to a string does not fail.

fn head(out: &mut String, metric: &Metric) {
    let Metric { name, unit, help, .. } = metric;
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.name().is_empty() {
        let _ = writeln!(out, "# UNIT {name} {}", unit.name());
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

fn lines(out: &mut String, metric: &Metric, snapshot: &Snapshot) {
    let name = metric.name;
    match metric.read {
        Read::Count(read) => {
            let _ = writeln!(out, "{name}_total {}", read(snapshot));
        }
        Read::Value(read) => {
            let _ = writeln!(out, "{name} {}", read(snapshot));
        }
        Read::ByReason(read) => {
            for &reason in DropReason::ALL {
                let count = read(snapshot, reason);
                let _ = writeln!(out, "{name}_total{{reason=\"{}\"}} {count}", reason.name());
            }
        }
        Read::Times(read) => histogram(out, name, read(snapshot)),
    }
}

fn histogram(out: &mut String, name: &str, histogram: &Histogram) {
    let mut below = 0;
    for (bound, count) in Histogram::BOUNDS.iter().zip(histogram.buckets) {
        below += count;
        // A bound is a float, and written as one.
        let _ = writeln!(out, "{name}_bucket{{le=\"{bound:?}\"}} {below}");
    }
    let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {}", histogram.count);
    let _ = writeln!(out, "{name}_count {}", histogram.count);
    let _ = writeln!(out, "{name}_sum {}", histogram.sum);
}
