//! The measurements of a run.

use std::time::Duration;

use haulier_proto::Instant;

use super::{Cell, Role};
use crate::share::{ShareReport, Throughput, WINDOW, jain};

/// The completion of a flow that got nothing, and of one that was slower.
const MAX_COMPLETION: f64 = 100.0;

/// One flow of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// What it is in its mix.
    pub role: Role,
    /// When it began.
    pub starts: Duration,
    /// What it got in the measured time, over a fair share of the bottleneck.
    pub share: f64,
    /// See [`Outcome::completion`]; `None` for one that leaves.
    pub completion: Option<f64>,
    /// Bytes that it got in all.
    pub bytes: u64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Jain's index of those that are there in the measured time. Beside TCP: of ours alone. Where there is
    /// none of ours, of all.
    pub jain: f64,
    /// Bytes of blocks, and of TCP's stream, over what the bottleneck could carry in the measured time. With
    /// headers that is 0.94 of ours at most; bytes that were counted late, where a block ended, can be added.
    pub used: f64,
    /// Bytes that the full queue dropped, over those that it was offered, in the whole run.
    pub dropped: f64,
    /// The queueing delay, from the last start on: the median.
    pub queue_p50: Duration,
    /// The queueing delay, from the last start on: the 95th percentile.
    pub queue_p95: Duration,
    /// The time that the slowest flow of ours took for the bytes that a fair share of the link carries in
    /// half a run, over that half; 100 at most. If the run was too short for these bytes, the time is
    /// extrapolated from the flow's mean rate. In a run without flows of ours, the slowest flow of TCP.
    pub completion: f64,
    /// The mean share of ours beside TCP, over a fair share.
    pub beside_tcp: Option<f64>,
    /// Connections of ours that ended before the run.
    pub broken: usize,
    /// Flows of ours that got nothing at all, whether their connection ended or not.
    pub stalled: usize,
    /// Each flow.
    pub flows: Vec<FlowOutcome>,
}

impl Outcome {
    pub(super) fn of(cell: &Cell, report: &ShareReport) -> Self {
        let flows: Vec<FlowOutcome> = report
            .flows
            .iter()
            .enumerate()
            .map(|(flow, throughput)| FlowOutcome::of(cell, flow, throughput))
            .collect();
        let present = || flows.iter().filter(|flow| flow.role != Role::Leaves);
        let [of_ours, of_tcp] = [true, false].map(|is_ours| {
            present().filter(|flow| flow.role.is_ours() == is_ours).collect::<Vec<&FlowOutcome>>()
        });
        let judged = if of_ours.is_empty() { &of_tcp } else { &of_ours };
        let shares: Vec<f64> = judged.iter().map(|flow| flow.share).collect();
        let is_beside = !of_ours.is_empty() && !of_tcp.is_empty();
        let is_stalled = |flow: &&FlowOutcome| flow.role.is_ours() && flow.bytes == 0;
        Self {
            jain: jain(&shares),
            used: flows.iter().map(|flow| flow.share).sum::<f64>() / present().count() as f64,
            dropped: report.dropped_bytes as f64 / report.offered_bytes.max(1) as f64,
            queue_p50: report.queue_p50,
            queue_p95: report.queue_p95,
            completion: judged.iter().filter_map(|flow| flow.completion).fold(0.0, f64::max),
            beside_tcp: is_beside.then(|| shares.iter().sum::<f64>() / shares.len() as f64),
            broken: report.broken,
            stalled: flows.iter().filter(is_stalled).count(),
            flows,
        }
    }
}

impl FlowOutcome {
    fn of(cell: &Cell, flow: usize, throughput: &Throughput) -> Self {
        let (role, starts) = (cell.role(flow), cell.starts(flow));
        let [from, to] = cell.measured().map(|at| Instant::ZERO + at);
        let half = cell.lasts() / 2;
        let wanted = (cell.fair_bps() / 8.0 * half.as_secs_f64()) as u64;
        let completion = || {
            let took = time_for(throughput, Instant::ZERO + starts, to, wanted);
            took.map_or(MAX_COMPLETION, |took| took / half.as_secs_f64()).min(MAX_COMPLETION)
        };
        Self {
            role,
            starts,
            share: throughput.bps(from, to) / cell.fair_bps(),
            completion: (role != Role::Leaves).then(completion),
            bytes: throughput.between(Instant::ZERO, to),
        }
    }
}

/// The seconds from `starts` until `bytes` bytes had arrived. If fewer arrived until `end`, the seconds at
/// the mean rate until then; `None` if no byte arrived.
fn time_for(throughput: &Throughput, starts: Instant, end: Instant, bytes: u64) -> Option<f64> {
    let mut got = 0;
    for (window, more) in (1..).zip(throughput.windows()) {
        got += more;
        if got >= bytes {
            return Some((Instant::ZERO + WINDOW * window).since(starts).as_secs_f64());
        }
    }
    let pace = got as f64 / end.since(starts).as_secs_f64();
    (got > 0).then(|| bytes as f64 / pace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::Mix;

    fn constant(bytes_a_second: u64, [from, to]: [u64; 2]) -> Throughput {
        let mut throughput = Throughput::default();
        for window in from * 10..to * 10 {
            throughput.add(Instant::from_millis(window * 100), bytes_a_second / 10);
        }
        throughput
    }

    /// Two of 1 Mbit/s for 20 s: one got all of its share, one half, or nothing.
    #[test]
    fn an_outcome_is_what_the_flows_got() {
        let cell = |mix| {
            let all = |cell: &Cell| (cell.mix, cell.flows, cell.rate_kbit, cell.rtt_ms);
            Cell::all().find(|cell| all(cell) == (mix, 2, 1_000, 200)).unwrap()
        };
        let report = |second| ShareReport {
            flows: vec![constant(125_000, [0, 20]), second],
            dropped_bytes: 1,
            offered_bytes: 4,
            ..ShareReport::default()
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 0.02, "{a} is not {b}");
        let half = Outcome::of(&cell(Mix::Ours), &report(constant(62_500, [0, 20])));
        near(half.jain, 0.9);
        near(half.used, 0.75);
        near(half.dropped, 0.25);
        // It began after half a second, with which it was credited.
        near(half.completion, 1.95);
        assert_eq!(half.beside_tcp, None);
        let none = Outcome::of(&cell(Mix::Ours), &report(Throughput::default()));
        near(none.jain, 0.5);
        assert_eq!((none.stalled, half.stalled), (1, 0));
        near(none.completion, 100.0);
        let beside = Outcome::of(&cell(Mix::Cubic), &report(constant(62_500, [0, 20])));
        near(beside.beside_tcp.unwrap(), 1.0);
        near(beside.jain, 1.0);
        near(beside.completion, 1.0);
        let control = Outcome::of(&cell(Mix::OnlyBbr), &report(constant(62_500, [0, 20])));
        near(control.jain, 0.9);
        near(control.completion, 1.95);
        assert_eq!((control.beside_tcp, control.stalled), (None, 0));
    }
}
