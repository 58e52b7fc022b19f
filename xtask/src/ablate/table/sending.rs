//! When and which slice goes, and what comes back (docs/SENDER.md, 2 to 4).

use super::Mechanism;
use crate::copy::edit;

const ALLOWANCE: &str = "crates/control/src/law/allowance.rs";
const CHOICE: &str = "crates/proto/src/bulk/choice.rs";
const COMPOSE: &str = "crates/proto/src/connection/compose.rs";
const CONTROLLER: &str = "crates/control/src/controller.rs";
const FREQUENCY: &str = "crates/proto/src/outgoing/ack_frequency.rs";
const GATE: &str = "crates/control/src/pacer/mod.rs";
const PACING: &str = "crates/control/src/law/mod.rs";
const SENDER: &str = "crates/proto/src/bulk/sender.rs";
const START: &str = "crates/control/src/law/start.rs";

pub(super) const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        name: "start",
        without: "a known rate begins with a window at once",
        edits: &[edit(PACING, "        if is_ready ||", "        if is_ready || $off ||")],
    },
    Mechanism {
        name: "window",
        without: "long transfers go on at the rate of the link, unless others are seen",
        edits: &[edit(
            PACING,
            "let stays = is_near && share.is_none();",
            "let stays = (is_near || $off) && share.is_none();",
        )],
    },
    Mechanism {
        name: "start-judge",
        without: "the rounds of a start are not judged",
        edits: &[edit(
            START,
            "        if self.is_round() {",
            "        if self.is_round() && !$off {",
        )],
    },
    Mechanism {
        name: "allowance",
        without: "nothing bounds what is in flight before there is a window",
        edits: &[edit(
            PACING,
            "=> self.allowance.is_spent(self.in_flight.0),",
            "=> !$off && self.allowance.is_spent(self.in_flight.0),",
        )],
    },
    Mechanism {
        name: "ramp",
        without: "a transfer of any length goes on trust as one of a chunk does",
        edits: &[edit(ALLOWANCE, "if bytes > CHUNK {", "if bytes > CHUNK && !$off {")],
    },
    Mechanism {
        name: "stretch",
        without: "a ramp goes on until the path is full, and a short transfer has none",
        edits: &[edit(
            START,
            "        self.stretch.on_arrival(sample, self.known)",
            "        self.stretch.on_arrival(sample, self.known).filter(|_| !$off)",
        )],
    },
    Mechanism {
        name: "trust-disordered",
        without: "where arrivals are disordered there is a ramp, too",
        edits: &[edit(
            CONTROLLER,
            "if bottleneck.is_disordered() {",
            "if bottleneck.is_disordered() && !$off {",
        )],
    },
    Mechanism {
        name: "own-losses",
        without: "what is lost without a queue is not replaced either",
        edits: &[edit(
            ALLOWANCE,
            "} else if self.is_queued ||",
            "} else if $off || self.is_queued ||",
        )],
    },
    Mechanism {
        name: "start-first-flight",
        without: "what was sent on a guess is not judged",
        edits: &[edit(
            PACING,
            "let first = blind.next_after_train().min(self.next);",
            "let first = if $off { self.next } else { blind.next_after_train().min(self.next) };",
        )],
    },
    Mechanism {
        name: "start-early",
        without: "a start beside others lasts as long as one alone",
        edits: &[edit(
            PACING,
            "let is_shared = start.is_crowded() ||",
            "let is_shared = start.is_crowded() && !$off ||",
        )],
    },
    Mechanism {
        name: "start-flood",
        without: "a start of which most is lost is no sign of others",
        edits: &[edit(
            START,
            "        if is_flooded && arrived < CROWDED * known {",
            "        if is_flooded && arrived < CROWDED * known && !$off {",
        )],
    },
    Mechanism {
        name: "start-losses",
        without: "a start that loses much begins its window like any",
        edits: &[edit(START, "(kept < 1.0 - usual).then", "(kept < 1.0 - usual && !$off).then")],
    },
    Mechanism {
        name: "catch-up",
        without: "a window makes up for nothing: a datagram goes in each tick",
        edits: &[edit(
            "crates/control/src/law/windowed/mod.rs",
            "        let pace = self.pace.rate();\n        let most =",
            "        if $off {\n            return Span::ZERO;\n        }\n        \
             let pace = self.pace.rate();\n        let most =",
        )],
    },
    Mechanism {
        name: "lateness",
        without: "nothing is made up for when the caller is late",
        edits: &[edit(
            "crates/control/src/pacer/lateness.rs",
            "        self.late = late.clamp(Span::ZERO, MAX_LATE);",
            "        self.late = if $off { Span::ZERO } else { late.clamp(Span::ZERO, MAX_LATE) };",
        )],
    },
    Mechanism {
        name: "repair",
        without: "there are no repair slices, lost ones go again",
        edits: &[edit(
            SENDER,
            "Cutting { room, is_fine: false, max_slice, has_repair },",
            "Cutting { room, is_fine: false, max_slice, has_repair: has_repair && !$off },",
        )],
    },
    Mechanism {
        name: "ahead",
        without: "nothing is sent against losses that are not known",
        edits: &[edit(
            "crates/proto/src/bulk/chunk.rs",
            "self.needed() * share < NO_LOSS {",
            "self.needed() * share < NO_LOSS || $off {",
        )],
    },
    Mechanism {
        name: "margin",
        without: "at the full rate repair covers the mean of losses alone",
        edits: &[edit(
            CHOICE,
            "let sigmas = path.margin(if is_lowest { MARGIN } else { TAIL_MARGIN });",
            "let margin = path.margin(if is_lowest { MARGIN } else { TAIL_MARGIN });\n                \
             let sigmas = if $off { 0.0 } else { margin };",
        )],
    },
    Mechanism {
        name: "tail",
        without: "no further repair follows at half the rate",
        edits: &[edit(
            CHOICE,
            "                if has_more {\n",
            "                if has_more || $off {\n",
        )],
    },
    Mechanism {
        name: "tail-rate",
        without: "the tail goes at the full rate",
        edits: &[edit(GATE, ".filter(|_| it.is_tail))", ".filter(|_| it.is_tail && !$off))")],
    },
    Mechanism {
        name: "measured-losses",
        without: "before the end, too, losses are expected that were not measured",
        edits: &[edit(
            CHOICE,
            "let losses = if has_more { path.loss.measured() }",
            "let losses = if has_more && !$off { path.loss.measured() }",
        )],
    },
    Mechanism {
        name: "exact",
        without: "before the end, too, a repair slice goes for what is lost",
        edits: &[edit(
            CHOICE,
            "let lost = if choice.is_exact {",
            "let lost = if choice.is_exact && !$off {",
        )],
    },
    Mechanism {
        name: "loss-runs",
        without: "losses count as independent",
        edits: &[edit(
            "crates/control/src/belief/loss.rs",
            "        inflation.clamp(1.0, MAX_INFLATION)",
            "        if $off { 1.0 } else { inflation.clamp(1.0, MAX_INFLATION) }",
        )],
    },
    Mechanism {
        name: "chunk-window",
        without: "no more chunks are open on a fast or long path",
        edits: &[edit(
            SENDER,
            "            .saturating_add(bytes.in_units_of(window::CHUNK))",
            "            .saturating_add(if $off { 0 } else { bytes.in_units_of(window::CHUNK) })",
        )],
    },
    Mechanism {
        name: "reordering",
        without: "what another has overtaken is always lost at once",
        edits: &[edit(
            "crates/proto/src/transit/timing.rs",
            "        self.reordering.learn(self.next_like(overtaken));",
            "        if !$off {\n            self.reordering.learn(self.next_like(overtaken));\n        }",
        )],
    },
    Mechanism {
        name: "ack-frequency",
        without: "a receiver is not asked for fewer acks",
        edits: &[edit(
            FREQUENCY,
            "wanted.filter(|_| in_flight >= FEW_IN_FLIGHT || is_thin);",
            "wanted.filter(|_| !$off && (in_flight >= FEW_IN_FLIGHT || is_thin));",
        )],
    },
    Mechanism {
        name: "ack-thinning",
        without: "acks that get lost are not thinned",
        edits: &[edit(
            FREQUENCY,
            "        if numbers < COUNTED {",
            "        if numbers < COUNTED || $off {",
        )],
    },
    Mechanism {
        name: "thin-queued",
        without: "acks that get lost by chance are thinned, too",
        edits: &[edit(
            FREQUENCY,
            "        self.steps = match is_queued() && is_missing {",
            "        self.steps = match (is_queued() || $off) && is_missing {",
        )],
    },
    Mechanism {
        name: "large-probes",
        without: "slices of more than 1200 bytes wait for pings while an ack is overdue",
        edits: &[edit(
            COMPOSE,
            "            && !is_probing()",
            "            && (!is_probing() || $off)",
        )],
    },
    Mechanism {
        name: "silence-probes",
        without: "after a timeout slices go on as before",
        edits: &[edit(
            "crates/proto/src/bulk/silence.rs",
            "        self.timeouts == 0 || self.left > 0",
            "        self.timeouts == 0 || self.left > 0 || $off",
        )],
    },
    Mechanism {
        name: "ensemble",
        without: "the connections of a server to one address have a law each",
        edits: &[edit(
            "crates/proto/src/server/ensembles.rs",
            "        self.address_of.insert(id, address);\n",
            "        self.address_of.insert(id, address);\n        if $off {\n            \
             return Arrived::Alone;\n        }\n",
        )],
    },
];
