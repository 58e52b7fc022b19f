//! Long transfers over recorded links: the used part of what the link could carry, and its queue.
//!
//! A [`RecordedLink`] is a record each way with a delay and a queue; a run is one [`Sender`] alone on it for
//! a minute or more, from anywhere in the record. Its [`Outcome`] says what was used of the opportunities of
//! the measured time, and how long the queue was, sampled every 10 ms: a packet that waits for the end of an
//! outage waits in it.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::{Access, LinkConfig, Record, Recorded, Rng};

use crate::share::{Competitor, Share, config, percentile};

/// From when on use is measured: a start is no part of a long transfer.
const MEASURED_FROM: Duration = Duration::from_secs(5);

/// Bytes of each block: one after the other, more than a slow link carries in a run.
const BLOCK_BYTES: usize = 16 << 20;

/// A link whose rate was recorded.
#[derive(Clone, Debug)]
pub struct RecordedLink {
    /// Its name, for display.
    pub name: String,
    /// To the client.
    pub down: Record,
    /// From the client.
    pub up: Record,
    /// Round trip without queueing.
    pub rtt: Duration,
    /// The droptail queue, each way.
    pub queue_bytes: u64,
}

/// The sender of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// haulier/1.
    Ours,
    /// TCP CUBIC.
    Cubic,
    /// TCP BBR.
    Bbr,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Bytes of blocks, or of TCP's stream, that arrived in the measured time, over what the link could carry
    /// then, headers included.
    pub used: f64,
    /// What arrived, in Mbit/s.
    pub mbit: f64,
    /// What the link could carry, in Mbit/s.
    pub link_mbit: f64,
    /// The queueing delay: the median.
    pub queue_p50: Duration,
    /// The queueing delay: the 95th percentile.
    pub queue_p95: Duration,
    /// The 95th percentile of the time that a packet waits at an empty queue: the minimum for a sender that
    /// always sends.
    pub link_p95: Duration,
    /// Bytes that the full queue dropped, over those that it was offered.
    pub dropped: f64,
    /// Connections that ended before the run.
    pub broken: usize,
}

impl RecordedLink {
    /// The names of those that come with this crate.
    pub const NAMES: [&str; 2] = ["lte-like", "evdo-like"];

    /// One that comes with this crate.
    pub fn named(name: &str) -> Option<Self> {
        let (rtt_ms, queue_kib) = match name {
            "lte-like" => (55, 750),
            "evdo-like" => (120, 300),
            _ => return None,
        };
        Some(Self {
            name: name.into(),
            down: Record::named(&format!("{name}.down"))?,
            up: Record::named(&format!("{name}.up"))?,
            rtt: Duration::from_millis(rtt_ms),
            queue_bytes: queue_kib << 10,
        })
    }

    /// How long a run should be at least: twice the record.
    pub fn lasts(&self) -> Duration {
        self.down.lasts() * 2
    }

    /// Its access, from somewhere in the record on.
    pub fn access(&self, skipped: Duration) -> Access {
        let way = |record: &Record| LinkConfig {
            record: Some(Recorded { record: record.clone(), skipped }),
            queue_bytes: Some(self.queue_bytes),
            ..LinkConfig::default()
        };
        Access { up: way(&self.up), down: way(&self.down) }
    }

    /// One sender alone for this long. The same seed is the same run, and the same place in the record.
    ///
    /// # Panics
    /// If it is not longer than the part of it that is not measured.
    pub fn run(&self, sender: Sender, lasts: Duration, seed: u64) -> Outcome {
        assert!(lasts > MEASURED_FROM, "nothing of {lasts:?} is measured");
        let length_ms = self.down.lasts().as_millis() as u64;
        let skipped = Duration::from_millis(Rng::stream(seed, 3).below(length_ms));
        let access = self.access(skipped);
        let flow = match sender {
            Sender::Ours => Competitor::haulier(config()).with_blocks_of(BLOCK_BYTES),
            Sender::Cubic => Competitor::cubic(),
            Sender::Bbr => Competitor::bbr(),
        };
        let flows = vec![flow.with_extra_rtt(self.rtt)];
        let report = Share { access, flows, lasts }.run(seed);
        let [from, to] = [MEASURED_FROM, lasts].map(|at| Instant::ZERO + at);
        let recorded = Recorded { record: self.down.clone(), skipped };
        let (got, could) = (report.flows[0].between(from, to), recorded.bytes_between(from, to));
        let mbit = |bytes: u64| bytes as f64 * 8e-6 / (lasts - MEASURED_FROM).as_secs_f64();
        Outcome {
            used: got as f64 / could.max(1) as f64,
            mbit: mbit(got),
            link_mbit: mbit(could),
            queue_p50: report.queue_p50,
            queue_p95: report.queue_p95,
            link_p95: waits_p95(&recorded, lasts),
            dropped: report.dropped_bytes as f64 / report.offered_bytes.max(1) as f64,
            broken: report.broken,
        }
    }
}

/// How long the link makes wait, sampled every 10 ms.
fn waits_p95(recorded: &Recorded, lasts: Duration) -> Duration {
    let samples = (1..=lasts.as_millis() as u64 / 10).map(|n| Instant::from_millis(n * 10));
    let mut waits: Vec<Duration> = samples.map(|at| recorded.next_from(at).since(at)).collect();
    percentile(&mut waits, 95)
}

impl Sender {
    /// All of them: ours, then the others.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Cubic, Self::Bbr];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sender| sender.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue filler uses the link and fills its queue, so this shows that both are measured.
    #[test]
    fn cubic_fills_a_recorded_link_and_its_queue() {
        for name in RecordedLink::NAMES {
            let link = RecordedLink::named(name).unwrap();
            let run = link.run(Sender::Cubic, link.lasts(), 1);
            println!("{name}: {run:?}");
            assert!((0.6..1.0).contains(&run.used), "{run:?}");
            assert!(run.queue_p95 > Duration::from_millis(500), "{run:?}");
            assert!(run.dropped < 0.1, "{run:?}");
        }
        assert!(RecordedLink::named("lte").is_none());
    }

    #[test]
    fn seeds_begin_elsewhere_in_the_record() {
        let link = RecordedLink::named("lte-like").unwrap();
        let run = |seed| link.run(Sender::Bbr, Duration::from_secs(8), seed);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).link_mbit.to_bits(), run(2).link_mbit.to_bits());
    }
}
