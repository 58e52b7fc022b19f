//! How a rate is found: hints, trains, guesses, windows and disorder (docs/SENDER.md, 1).

use super::Mechanism;
use crate::copy::edit;

const BLIND: &str = "crates/control/src/law/blind.rs";
const BOTTLENECK: &str = "crates/control/src/belief/bottleneck.rs";
const FINDER: &str = "crates/control/src/belief/rate_finder.rs";
const PATH: &str = "crates/control/src/controller.rs";
const PACING: &str = "crates/control/src/law/mod.rs";
const TRAINS: &str = "crates/control/src/law/trains.rs";

pub(super) const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        name: "request-hint",
        without: "the copies of the request give no first rate",
        edits: &[edit(
            PATH,
            "        self.pacing.set_hint(rate);\n",
            "        if $off {\n            return;\n        }\n        self.pacing.set_hint(rate);\n",
        )],
    },
    Mechanism {
        name: "trains",
        without: "no slices go back to back",
        edits: &[edit(TRAINS, "        self.left > 0\n", "        self.left > 0 && !$off\n")],
    },
    Mechanism {
        name: "second-train",
        without: "a start has one train",
        edits: &[edit(
            TRAINS,
            "        if !self.is_second {",
            "        if !self.is_second && !$off {",
        )],
    },
    Mechanism {
        name: "pairs",
        without: "no pair of arrivals bounds a guess",
        edits: &[edit(
            "crates/control/src/law/pairs.rs",
            "if self.count < MIN_PAIRS {",
            "if self.count < MIN_PAIRS || $off {",
        )],
    },
    Mechanism {
        name: "pair-wait",
        without: "after a slow handshake a guess does not wait for the first pair",
        edits: &[edit(
            BLIND,
            "        is_heard && self.pairs",
            "        !$off && is_heard && self.pairs",
        )],
    },
    Mechanism {
        name: "at-once",
        without: "a train that arrives at once does not raise the guess",
        edits: &[edit(
            BLIND,
            "self.is_at_once = self.pairs.at_once()",
            "self.is_at_once = !$off && self.pairs.at_once()",
        )],
    },
    Mechanism {
        name: "guess-losses",
        without: "a guess that overruns the link is kept",
        edits: &[edit(
            BLIND,
            "        self.seen.total() >= FIRST_WINDOW",
            "        !$off && self.seen.total() >= FIRST_WINDOW",
        )],
    },
    Mechanism {
        name: "marks",
        without: "ECN's marks change nothing",
        edits: &[edit(
            PATH,
            "        self.pacing.on_congestion_mark(number);",
            "        if $off {\n            return;\n        }\n        \
             self.pacing.on_congestion_mark(number);",
        )],
    },
    Mechanism {
        name: "known",
        without: "nothing is known of a path from other connections or before",
        edits: &[edit(
            PATH,
            "        let (floor, is_own) =",
            "        let known = if $off { Known::NOTHING } else { known };\n        \
             let (floor, is_own) =",
        )],
    },
    Mechanism {
        name: "recalled",
        without: "a rate of an earlier connection is believed at once",
        edits: &[edit(
            PATH,
            "recalled: (!is_own && known.rate.is_some())",
            "recalled: (!is_own && known.rate.is_some() && !$off)",
        )],
    },
    Mechanism {
        name: "rate-windows",
        without: "only trains give a rate",
        edits: &[edit(
            FINDER,
            "        self.measure_window(samples, loss, now, is_long);",
            "        if !$off {\n            self.measure_window(samples, loss, now, is_long);\n        }",
        )],
    },
    Mechanism {
        name: "squeezed",
        without: "a window gives no first rate, however slowly it arrived",
        edits: &[edit(FINDER, "None if is_squeezed =>", "None if is_squeezed && !$off =>")],
    },
    Mechanism {
        name: "lower-bound",
        without: "a window without a queue does not raise the rate",
        edits: &[edit(
            FINDER,
            "                self.set(old.max(min));",
            "                \
             self.set(if $off { old } else { old.max(min) });",
        )],
    },
    Mechanism {
        name: "follow-windows",
        without: "busy windows of a long transfer do not move the rate",
        edits: &[edit(
            FINDER,
            "                self.set(old + FOLLOWED * (old.clamp(min, max) - old));",
            "                let step = if $off { 0.0 } else { FOLLOWED };\n                \
             self.set(old + step * (old.clamp(min, max) - old));",
        )],
    },
    Mechanism {
        name: "envelope",
        without: "disordered arrivals are measured like ordered ones",
        edits: &[edit(
            "crates/control/src/belief/samples.rs",
            "        self.is_overtaken() || self.clock - self.bunched_at < BASE_LIFETIME\n",
            "        !$off && (self.is_overtaken() || self.clock - self.bunched_at < BASE_LIFETIME)\n",
        )],
    },
    Mechanism {
        name: "look-up",
        without: "a doubtful rate is not looked upward from",
        edits: &[edit(FINDER, "if is_empty && !is_long &&", "if !$off && is_empty && !is_long &&")],
    },
    Mechanism {
        name: "upward",
        without: "a rate that clocks cannot tell is not searched for",
        edits: &[edit(
            BOTTLENECK,
            "        if !self.finder.is_at_least() {",
            "        if !self.finder.is_at_least() || $off {",
        )],
    },
    Mechanism {
        name: "at-once-faster",
        without: "a much higher rate waits for the queue of the lower one",
        edits: &[edit(PATH, "        has_waited\n", "        has_waited && !$off\n")],
    },
    Mechanism {
        name: "near",
        without: "a short path is like any other",
        edits: &[edit(
            PATH,
            "let is_near = self.rtt_span < NEAR;",
            "let is_near = self.rtt_span < NEAR && !$off;",
        )],
    },
    Mechanism {
        name: "near-lots",
        without: "on a short path no more of the queue is tried than was seen",
        edits: &[edit(
            BOTTLENECK,
            "            Some(rate) if self.is_near => {",
            "            Some(rate) if self.is_near && !$off => {",
        )],
    },
    Mechanism {
        name: "near-ticks",
        without: "ticks of a short path are as long as any",
        edits: &[edit(
            "crates/control/src/law/link.rs",
            "        if self.is_near { tick_through",
            "        if self.is_near && !$off { tick_through",
        )],
    },
    Mechanism {
        name: "floor",
        without: "a rate has no floor",
        edits: &[edit(
            PACING,
            "        let law = Law::Blind(Box::new(Blind::new(None)));\n        let floor =",
            "        let floor = if $off { Rate::MIN } else { floor };\n        \
             let law = Law::Blind(Box::new(Blind::new(None)));\n        let floor =",
        )],
    },
];
