//! The dashboard and the documentation name the metrics that are published, and no others.

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::collections::BTreeSet;

use haulier_view::{METRICS, Metric, MetricKind};

const DASHBOARD: &str = include_str!("../../../docs/grafana/haulier.json");
const PAGE: &str = include_str!("../../../docs/VIEWS.md");

/// The names of the series of a metric, as Prometheus stores them.
fn series(metric: &Metric) -> Vec<String> {
    let ends: &[&str] = match metric.kind {
        MetricKind::Counter => &["_total"],
        MetricKind::Histogram => &["_bucket", "_count", "_sum"],
        _ => &[""],
    };
    ends.iter().map(|end| format!("{}{end}", metric.name)).collect()
}

/// Every word of a text that begins as our metrics do.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = text.split(|char| !is_part(char));
    words.filter(|word| word.starts_with("haulier_")).map(str::to_owned).collect()
}

/// A panel whose metric was renamed stays empty, and does not show why.
#[test]
fn the_dashboard_asks_for_what_is_published() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let published: BTreeSet<String> = METRICS.iter().flat_map(series).collect();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            let asked = named(target["expr"].as_str().unwrap());
            assert!(!asked.is_empty(), "{title}");
            assert!(asked.is_subset(&published), "{title}: {asked:?}");
        }
    }
    let shown = named(DASHBOARD);
    for metric in METRICS {
        assert!(
            series(metric).iter().any(|name| shown.contains(name)),
            "{} is on no panel",
            metric.name
        );
    }
}

#[test]
fn the_documentation_has_every_metric_with_its_help() {
    for metric in METRICS {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{}", metric.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in VIEWS.md", metric.name));
        assert!(
            row.contains(&format!("| {kind} | {} |", metric.help.trim_end_matches('.'))),
            "{row}"
        );
    }
}
