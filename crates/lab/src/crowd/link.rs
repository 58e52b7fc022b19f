//! The bottleneck of a cell, and the flows over it.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::{Access, CoDel, EcnPath, LinkConfig, RateChange};

use super::{Cell, Mix, Role};
use crate::share::{Competitor, Share, config};

/// What a slow way up has of the way down's rate: cable and DSL have a tenth to a fortieth.
const SLOW_UP_PART: u64 = 20;

/// How much faster than a bottleneck the way of the acks is, where the way up is the bottleneck.
const UPLOAD_DOWN_TIMES: u64 = 10;

/// A step of the rate lasts `STEP` plus `STEP_RTTS` round trips.
const STEP: Duration = Duration::from_secs(2);
const STEP_RTTS: u32 = 4;

/// Where a link delivers in bunches, they are this far apart: aggregates of Wi-Fi under load.
const BUNCH: Duration = Duration::from_millis(8);

/// Bytes of all blocks of a run at most, for servers hold what they send; and of one. Where one block follows
/// another, bytes of the second are counted a little late: few should, on slow links too.
const MAX_BLOCKS_BYTES: u64 = 256 << 20;
const BLOCK_BYTES: (u64, u64) = (1 << 20, 16 << 20);

impl Cell {
    /// The flows and the link between them.
    pub(super) fn share(&self) -> Share {
        let flows = (0..self.flows as usize).map(|flow| self.competitor(flow)).collect();
        Share { access: self.access(), flows, lasts: self.lasts() }
    }

    /// Bits that the bottleneck can carry from one time of the run to another.
    pub(super) fn bits_between(&self, [from, to]: [Duration; 2]) -> f64 {
        let bps = self.link_kbit() as f64 * 1e3;
        let changes = self.steps();
        let (mut at, mut rate, mut bits) = (from, bps, 0.0);
        for change in changes {
            let until = change.at.since(Instant::ZERO).clamp(at, to);
            bits += rate * (until - at).as_secs_f64();
            (at, rate) = (until, change.rate_bps as f64);
        }
        bits + rate * (to - at).as_secs_f64()
    }

    fn access(&self) -> Access {
        let bps = self.link_kbit() * 1_000;
        let plain = LinkConfig::new(bps, Duration::ZERO).with_queue(self.queue_bytes());
        let both = Access::from(plain.clone());
        match self.mix {
            // Its queue in bytes stays the same: the modem is one.
            Mix::SlowUp => {
                let up = LinkConfig { rate_bps: Some(bps / SLOW_UP_PART), ..plain };
                Access { up, ..both }
            }
            Mix::Upload => {
                let down = LinkConfig { rate_bps: Some(bps * UPLOAD_DOWN_TIMES), ..plain };
                Access { down, ..both }
            }
            Mix::CoDel | Mix::Marks => {
                let ecn = if self.mix == Mix::Marks { EcnPath::Carried } else { plain.ecn };
                let codel = Some(CoDel::for_rate(bps));
                LinkConfig { codel, ecn, ..plain }.into()
            }
            Mix::Steps => {
                let down = LinkConfig { rate_changes: self.steps(), ..plain };
                Access { down, ..both }
            }
            Mix::Bunches => {
                let down = LinkConfig { aggregation: BUNCH, ..plain };
                Access { down, ..both }
            }
            _ => both,
        }
    }

    /// Half of the rate, and the whole of it, in turn.
    fn steps(&self) -> Vec<RateChange> {
        if self.mix != Mix::Steps {
            return Vec::new();
        }
        let (step, bps) = (STEP + self.rtt() * STEP_RTTS, self.link_kbit() * 1_000);
        let times = (1..).map(|n| (n, step * n)).take_while(|&(_, at)| at < self.lasts());
        let change =
            |(n, at)| RateChange { at: Instant::ZERO + at, rate_bps: bps / (1 + n as u64 % 2) };
        times.map(change).collect()
    }

    fn competitor(&self, flow: usize) -> Competitor {
        // A block takes ten seconds of a fair share, where that is not too much.
        let (least, most) = BLOCK_BYTES;
        let most = most.min(MAX_BLOCKS_BYTES / u64::from(self.flows));
        let bytes = (self.rate_kbit * 10_000 / 8).clamp(least, most) as usize;
        let ours = Competitor::haulier(config()).with_blocks_of(bytes);
        let competitor = match self.role(flow) {
            Role::Cubic => Competitor::cubic(),
            Role::Bbr => Competitor::bbr(),
            Role::Leaves => ours.leaving_at(Instant::ZERO + self.turns()),
            Role::Stays | Role::Joins if self.mix == Mix::Upload => ours.uploading(),
            Role::Stays | Role::Joins => ours,
        };
        competitor.with_extra_rtt(self.rtt()).starting_at(Instant::ZERO + self.starts(flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(mix: Mix) -> Cell {
        let is_it = |cell: &Cell| {
            (cell.mix, cell.flows, cell.rate_kbit, cell.rtt_ms) == (mix, 2, 1_000, 50)
        };
        Cell::all().find(is_it).unwrap()
    }

    #[test]
    fn links_differ_in_what_their_mix_says() {
        let access = |mix| cell(mix).access();
        let rates = |mix| {
            let Access { up, down } = access(mix);
            [up.rate_bps.unwrap(), down.rate_bps.unwrap()].map(|bps| bps / 1_000)
        };
        assert_eq!(rates(Mix::Ours), [2_000, 2_000]);
        assert_eq!(rates(Mix::SlowUp), [100, 2_000]);
        assert_eq!(rates(Mix::Upload), [2_000, 20_000]);
        let ecn = |mix| (access(mix).down.codel.is_some(), access(mix).down.ecn);
        assert_eq!(ecn(Mix::CoDel), (true, EcnPath::Bleached));
        assert_eq!(ecn(Mix::Marks), (true, EcnPath::Carried));
        assert_eq!(access(Mix::Bunches).down.aggregation, BUNCH);
    }

    /// Nothing was marked once: the servers' own way cleared the ECN field.
    #[test]
    fn what_carries_ecn_marks_in_place_of_dropping() {
        let report = |mix| {
            let cell = Cell { queue_permille: 2_000, ..cell(mix) };
            Share { lasts: Duration::from_secs(4), ..cell.share() }.run(1)
        };
        assert_eq!(report(Mix::CoDel).marked, 0);
        assert!(report(Mix::Marks).marked > 0);
    }

    /// By hand: 16.25 s, in steps of 2.2 s from 2 Mbit/s on.
    #[test]
    fn a_rate_in_steps_carries_three_quarters() {
        let seconds = |from, to| [from, to].map(Duration::from_secs_f64);
        let steps = cell(Mix::Steps);
        assert!((steps.bits_between(seconds(0.0, 4.4)) - 6.6e6).abs() < 1.0);
        assert!((steps.bits_between(seconds(3.2, 5.4)) - 3.2e6).abs() < 1.0);
        assert!((cell(Mix::Ours).bits_between(seconds(3.2, 5.4)) - 4.4e6).abs() < 1.0);
        assert_eq!(steps.access().down.rate_changes.len(), 7);
    }
}
