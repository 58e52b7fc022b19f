//! The law of long transfers (docs/SENDER.md, 5).

use super::Mechanism;
use crate::copy::edit;

const DELAYS: &str = "crates/control/src/law/windowed/delays.rs";
const LARGER: &str = "crates/control/src/law/windowed/window/larger.rs";
const LOSSES: &str = "crates/control/src/law/windowed/losses.rs";
const OTHERS: &str = "crates/control/src/law/windowed/others.rs";
const TRIALS: &str = "crates/control/src/law/windowed/window/trials.rs";
const WINDOW: &str = "crates/control/src/law/windowed/window.rs";
const WINDOWED: &str = "crates/control/src/law/windowed/mod.rs";

pub(super) const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        name: "disorder-long",
        without: "where datagrams overtake each other a start is as long as elsewhere",
        edits: &[edit(
            "crates/control/src/controller.rs",
            "self.acked > if is_disordered {",
            "self.acked > if is_disordered && !$off {",
        )],
    },
    Mechanism {
        name: "learn-trains",
        without: "on a fast link a later train does not raise the window",
        edits: &[edit(
            WINDOWED,
            "        if known > TRAIN_ABOVE * self.known &&",
            "        if !$off && known > TRAIN_ABOVE * self.known &&",
        )],
    },
    Mechanism {
        name: "overrun",
        without: "a link that was overrun has at once a window of what arrived",
        edits: &[edit(
            WINDOWED,
            "        self.overrun = Some(Overrun { next, most });",
            "        self.overrun = if $off { None } else { Some(Overrun { next, most }) };",
        )],
    },
    Mechanism {
        name: "sparse",
        without: "a window has four datagrams in flight at least",
        edits: &[edit(
            WINDOW,
            "        if trip < MIN_SPARSE_TRIP {",
            "        if trip < MIN_SPARSE_TRIP || $off {",
        )],
    },
    Mechanism {
        name: "outgrown",
        without: "losses that were usual for a small window are so for a large one",
        edits: &[edit(
            TRIALS,
            "        is_larger && self.max_growth",
            "        !$off && is_larger && self.max_growth",
        )],
    },
    Mechanism {
        name: "trip-bound",
        without: "a queue that is taken for the path counts in full as its length",
        edits: &[edit(
            WINDOWED,
            "        self.mean.min(MAX_TRIP * self.least) / SECOND",
            "        (if $off { self.mean } else { self.mean.min(MAX_TRIP * self.least) }) / SECOND",
        )],
    },
    Mechanism {
        name: "pace",
        without: "a window goes out at once",
        edits: &[edit(
            WINDOWED,
            "        self.pace.set(pace.min(most));",
            "        self.pace.set(if $off { 1e3 * pace } else { pace.min(most) });",
        )],
    },
    Mechanism {
        name: "passed",
        without: "the pace is not bounded by what has passed",
        edits: &[edit(
            WINDOWED,
            "        let most = most.max(packet / self.mean);",
            "        let most = if $off { Rate::INFINITY } else { most.max(packet / self.mean) };",
        )],
    },
    Mechanism {
        name: "pace-growth",
        without: "a pace that holds the window back does not grow",
        edits: &[edit(
            WINDOW,
            "            self.growth = growth.max((2.0 * growth).min(self.max_growth.unwrap_or(MAX_PACE)));",
            "            let most = self.max_growth.unwrap_or(MAX_PACE);\n            \
             self.growth = if $off { growth } else { growth.max((2.0 * growth).min(most)) };",
        )],
    },
    Mechanism {
        name: "doubling",
        without: "growth stays a sixteenth",
        edits: &[edit(
            WINDOW,
            "        self.growth = if is_near { MIN_GROWTH }",
            "        self.growth = if is_near || $off { MIN_GROWTH }",
        )],
    },
    Mechanism {
        name: "near-full",
        without: "growth is not slower near the window that overflowed",
        edits: &[
            edit(
                WINDOW,
                "        let near = NEAR_FULL * self.full;",
                "        let near = if $off { 0.0 } else { NEAR_FULL * self.full };",
            ),
            edit(
                WINDOW,
                "let is_near = near <= self.size && self.size < self.full;",
                "let is_near = near > 0.0 && near <= self.size && self.size < self.full;",
            ),
        ],
    },
    Mechanism {
        name: "first-queue",
        without: "before a queue was seen it is one when it is later",
        edits: &[edit(
            WINDOW,
            "        let first = if is_first {",
            "        let first = if is_first && !$off {",
        )],
    },
    Mechanism {
        name: "follow",
        without: "a queue does not move the window toward the target",
        edits: &[edit(
            WINDOW,
            "        let step = step.min(ADDED * (1.0 - queue / target));",
            "        let step = if $off { 0.0 } else { step.min(ADDED * (1.0 - queue / target)) };",
        )],
    },
    Mechanism {
        name: "standing",
        without: "a queue of one round makes the window smaller",
        edits: &[edit(
            WINDOW,
            "        let queue = seen.queue.min(seen.standing.max(target));",
            "        let standing = if $off { seen.queue } else { seen.standing };\n        \
             let queue = seen.queue.min(standing.max(target));",
        )],
    },
    Mechanism {
        name: "varies",
        without: "where the rate varies a window is as small as elsewhere",
        edits: &[edit(
            WINDOWED,
            "self.passed.varying().filter(|_| is_known)",
            "self.passed.varying().filter(|_| is_known && !$off)",
        )],
    },
    Mechanism {
        name: "larger",
        without: "no larger window is tried where arrivals are bunched",
        edits: &[edit(
            LARGER,
            "        may_show && self.is_doubtful(seen)",
            "        may_show && self.is_doubtful(seen) && !$off",
        )],
    },
    Mechanism {
        name: "bunched",
        without: "losses beside a delay are a queue's there, too",
        edits: &[
            edit(
                WINDOW,
                "is_queue && !self.is_doubtful(seen);",
                "is_queue && ($off || !self.is_doubtful(seen));",
            ),
            edit(
                TRIALS,
                "if !is_empty && !seen.is_bunched {",
                "if !is_empty && ($off || !seen.is_bunched) {",
            ),
        ],
    },
    Mechanism {
        name: "short-queue",
        without: "where a queue overflowed the target is as elsewhere",
        edits: &[edit(
            WINDOW,
            "        let target = wanted.min(self.max_queue) + jitter / 2.0;",
            "        let bound = if $off { f64::INFINITY } else { self.max_queue };\n        \
             let target = wanted.min(bound) + jitter / 2.0;",
        )],
    },
    Mechanism {
        name: "regrowth",
        without: "and stays so small",
        edits: &[edit(
            WINDOW,
            "        self.max_queue *= 1.0 + REGROWTH * (trip + seen.queue);",
            "        self.max_queue *= 1.0 + if $off { 0.0 } else { REGROWTH * (trip + seen.queue) };",
        )],
    },
    Mechanism {
        name: "jitter",
        without: "jitter is a queue",
        edits: &[edit(
            WINDOW,
            "        self.spreads.iter().copied().fold(MAX_JITTER, f64::min)",
            "        if $off { 0.0 } else { self.spreads.iter().copied().fold(MAX_JITTER, f64::min) }",
        )],
    },
    Mechanism {
        name: "cuts",
        without: "losses never cut the window",
        edits: &[edit(
            LOSSES,
            "        (lost > expected).then_some(lost / all - usual)",
            "        (lost > expected && !$off).then_some(lost / all - usual)",
        )],
    },
    Mechanism {
        name: "trials",
        without: "each excess of losses is the sender's own doing",
        edits: &[edit(
            TRIALS,
            "        self.trial = (!is_plain).then_some(trial);",
            "        let is_plain = is_plain || $off;\n        \
             self.trial = (!is_plain).then_some(trial);",
        )],
    },
    Mechanism {
        name: "second-trial",
        without: "heavy losses are believed after one trial",
        edits: &[edit(
            TRIALS,
            "        if trial.excess > HEAVY && trial.tries < TRIES {",
            "        if trial.excess > HEAVY && trial.tries < TRIES && !$off {",
        )],
    },
    Mechanism {
        name: "known-full",
        without: "a window that was found to overflow is tried again at each excess",
        edits: &[edit(
            TRIALS,
            "        let is_known = cuts > 0 &&",
            "        let is_known = cuts > 0 && !$off &&",
        )],
    },
    Mechanism {
        name: "late-undoes",
        without: "what was late, and not lost, does not undo a cut",
        edits: &[edit(
            TRIALS,
            "        self.losses.on_spurious();\n",
            "        if $off {\n            return;\n        }\n        self.losses.on_spurious();\n",
        )],
    },
    Mechanism {
        name: "usual-losses",
        without: "no losses are usual",
        edits: &[edit(
            LOSSES,
            "        self.usual.0 / self.usual.1",
            "        if $off { 0.0 } else { self.usual.0 / self.usual.1 }",
        )],
    },
    Mechanism {
        name: "window-runs",
        without: "losses in runs are as many events as datagrams",
        edits: &[edit(
            LOSSES,
            "        (self.runs.0 / self.runs.1).max(1.0)",
            "        if $off { 1.0 } else { (self.runs.0 / self.runs.1).max(1.0) }",
        )],
    },
    Mechanism {
        name: "over",
        without: "a window may be any times larger than what got through",
        edits: &[edit(
            WINDOW,
            "            let is_bound = self.has_met_queue && !self.larger.is_tried();",
            "            let is_bound = self.has_met_queue && !self.larger.is_tried() && !$off;",
        )],
    },
    Mechanism {
        name: "first-flood",
        without: "a first round that loses most does not become what arrived",
        edits: &[edit(
            WINDOW,
            "        if is_stale && seen.lost > seen.acked {",
            "        if is_stale && seen.lost > seen.acked && !$off {",
        )],
    },
    Mechanism {
        name: "stale",
        without: "what was sent before a cut is judged, too",
        edits: &[edit(
            WINDOW,
            "        let is_stale = core::mem::take(&mut self.is_stale);",
            "        let is_stale = core::mem::take(&mut self.is_stale) && !$off;",
        )],
    },
    Mechanism {
        name: "half-round",
        without: "delays of the first half of a round count",
        edits: &[edit(
            WINDOWED,
            "        if self.window.is_past_half(before, before + 1) {",
            "        if self.window.is_past_half(before, before + 1) && !$off {",
        )],
    },
    Mechanism {
        name: "last-rounds",
        without: "a round's delay is its own alone",
        edits: &[edit(
            DELAYS,
            "            if is_old && lately.count >= objective.min_delays {",
            "            if n > 0 && $off || is_old && lately.count >= objective.min_delays {",
        )],
    },
    Mechanism {
        name: "drains",
        without: "flows do not drain the queue in step",
        edits: &[edit(
            OTHERS,
            "        self.drains.poll(now) && self.drain.is_none()",
            "        self.drains.poll(now) && self.drain.is_none() && !$off",
        )],
    },
    Mechanism {
        name: "test-drains",
        without: "a long queue is not tested by a drain",
        edits: &[edit(
            OTHERS,
            "        if self.hot < HOT_ROUNDS ||",
            "        if $off || self.hot < HOT_ROUNDS ||",
        )],
    },
    Mechanism {
        name: "others",
        without: "CUBIC's window is never used",
        edits: &[edit(
            OTHERS,
            "        if self.cubic.is_some() || !has_yielded",
            "        if $off || self.cubic.is_some() || !has_yielded",
        )],
    },
];
