//! The metrics for the `metrics` facade: whatever exporter the program has installed gets them.

#[cfg(not(feature = "metrics"))]
pub(crate) const fn publish(_snapshot: &crate::Snapshot) {}

#[cfg(feature = "metrics")]
pub(crate) use with_metrics::publish;

#[cfg(feature = "metrics")]
mod with_metrics {
    use haulier::DropReason;
    use metrics::{
        counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    };

    use crate::metric::{METRICS, Metric, MetricKind, Read, Unit};
    use crate::snapshot::Snapshot;

    impl Snapshot {
        /// Publishes all metrics to the facade. A [`View`](crate::View) does so with each of its snapshots;
        /// without a recorder it costs next to nothing. The names are those of
        /// [`METRICS`](crate::METRICS), those of counters with `_total`.
        pub fn publish(&self) {
            publish(self);
        }
    }

    pub(crate) fn publish(snapshot: &Snapshot) {
        METRICS.iter().for_each(|metric| one(metric, snapshot));
    }

    fn one(metric: &Metric, snapshot: &Snapshot) {
        let total = || format!("{}_total", metric.name);
        describe(metric);
        match metric.read {
            Read::Count(read) => counter!(total()).absolute(read(snapshot)),
            Read::Value(read) => gauge!(metric.name).set(read(snapshot)),
            Read::ByReason(read) => {
                for &reason in DropReason::ALL {
                    counter!(total(), "reason" => reason.name()).absolute(read(snapshot, reason));
                }
            }
            Read::Times(read) => {
                let histogram = histogram!(metric.name);
                read(snapshot).news.iter().for_each(|&seconds| histogram.record(seconds));
            }
        }
    }

    fn describe(metric: &Metric) {
        let unit = match metric.unit {
            Unit::Bytes => metrics::Unit::Bytes,
            Unit::Seconds => metrics::Unit::Seconds,
            Unit::None | Unit::Ratio => metrics::Unit::Count,
        };
        match metric.kind {
            MetricKind::Counter => {
                describe_counter!(format!("{}_total", metric.name), unit, metric.help);
            }
            MetricKind::Gauge => describe_gauge!(metric.name, unit, metric.help),
            MetricKind::Histogram => describe_histogram!(metric.name, unit, metric.help),
        }
    }
}
