//! What an exporter of the program's own gets of a snapshot.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use haulier::{Server, ServerConfig, ServerCredentials};
use haulier_view::{METRICS, MetricKind, Watch};
use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Keeps descriptions and values.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    described: BTreeMap<String, (Option<Unit>, String)>,
    labels: Vec<(String, String)>,
    counted: BTreeMap<String, u64>,
}

struct Count(Kept, String);

impl CounterFn for Count {
    fn increment(&self, _value: u64) {
        unreachable!("a snapshot has totals");
    }

    fn absolute(&self, value: u64) {
        self.0.0.lock().unwrap().counted.insert(self.1.clone(), value);
    }
}

impl Kept {
    fn describe(&self, key: &KeyName, unit: Option<Unit>, help: &SharedString) {
        let mut seen = self.0.lock().unwrap();
        seen.described.insert(key.as_str().to_owned(), (unit, help.to_string()));
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(&key, unit, &help);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(&key, unit, &help);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(&key, unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned()));
        self.0.lock().unwrap().labels.extend(labels);
        Counter::from_arc(Arc::new(Count(self.clone(), key.name().to_owned())))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn the_facade_has_every_metric_with_unit_and_help() {
    let credentials = ServerCredentials::default().with_open_access();
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials)).unwrap();
    let mut snapshot = Watch::new(server).snapshot();
    snapshot.totals.accepted = 41;
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || snapshot.publish());
    let seen = kept.0.lock().unwrap();
    assert_eq!(seen.counted["haulier_joins_total"], 41);
    assert_eq!(seen.described.len(), METRICS.len());
    for metric in METRICS {
        let end = if metric.kind == MetricKind::Counter { "_total" } else { "" };
        let (unit, help) = &seen.described[&format!("{}{end}", metric.name)];
        assert_eq!(help, metric.help);
        assert_eq!(*unit == Some(Unit::Bytes), metric.name.ends_with("_bytes"), "{}", metric.name);
    }
    // The reasons of drops, which are a fixed set, and nothing that names a client.
    assert!(seen.labels.iter().all(|(key, _)| key == "reason"));
    assert_eq!(seen.labels.len(), haulier::DropReason::ALL.len());
}
