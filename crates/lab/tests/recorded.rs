//! Long transfers over recorded links: what holds today of how much they use, and of their queue.

use std::time::Duration;

use haulier_lab::recorded::{RecordedLink, Sender};

/// The medians of three places in the record; the bounds are what holds, and the target is 0.85 of the link
/// with at most 100 ms.
#[test]
fn a_long_transfer_uses_a_recorded_link() {
    for (name, used, queue_ms) in [("lte-like", 0.5, 2_000), ("evdo-like", 0.4, 6_000)] {
        let link = RecordedLink::named(name).expect("one of this crate");
        for sender in Sender::ALL {
            let mut runs: Vec<_> =
                (1..=3).map(|seed| link.run(sender, link.lasts(), seed)).collect();
            for run in &runs {
                println!(
                    "{name}, {}: {:.2} of {:.2} Mbit/s used, queue p50 {:.0} p95 {:.0} ms (an empty one \
                     {:.0}), {:.1} % dropped",
                    sender.name(),
                    run.used,
                    run.link_mbit,
                    run.queue_p50.as_secs_f64() * 1e3,
                    run.queue_p95.as_secs_f64() * 1e3,
                    run.link_p95.as_secs_f64() * 1e3,
                    run.dropped * 1e2,
                );
            }
            if sender == Sender::Ours {
                assert!(runs.iter().all(|run| run.broken == 0), "{name}: {runs:?}");
                runs.sort_by(|a, b| a.used.total_cmp(&b.used));
                assert!(runs[1].used > used, "{name}: {runs:?}");
                runs.sort_by_key(|run| run.queue_p95);
                assert!(runs[1].queue_p95 < Duration::from_millis(queue_ms), "{name}: {runs:?}");
            }
        }
    }
}
