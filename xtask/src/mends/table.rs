//! The mends: for each the lines that mend a fault, what was there before, and what finds it then.
//!
//! The numbers are those of `oracle::KNOWN_FAULTS`, or of an issue. Where a fault lay in a design that is
//! gone, what stands in its way now is taken out.

use crate::copy::{Edit, edit};

/// A mend that can be taken out.
pub(super) struct Mend {
    /// In one word.
    pub(super) name: &'static str,
    pub(super) fault: u8,
    /// What happens without it.
    pub(super) what: &'static str,
    pub(super) edits: &'static [Edit],
    /// The test of `crates/sim/tests`, or after `lib::` of the core, that fails without it.
    pub(super) finder: &'static str,
}

const LIES: &str = "worlds::oracles::a_lie_costs_no_more_than_it_brings";

const DOOR: &str = "worlds::soak::an_honest_client_gets_in_whoever_is_at_the_door";

/// All of them.
pub(super) const MENDS: &[Mend] = &[
    Mend {
        name: "locator",
        fault: 1,
        what: "each decoding evaluates the locator at all points of the field",
        edits: &[edit(
            "crates/proto/src/bulk/erasures.rs",
            "let locator = log_locator(&self.is_missing);",
            "let mut all = self.is_missing.clone();\n        all.resize(1 << 16, false);\n        \
             let locator = log_locator(&all);",
        )],
        finder: LIES,
    },
    Mend {
        name: "no-blocks",
        fault: 5,
        what: "an end that takes no blocks keeps their slices",
        edits: &[edit(
            "crates/proto/src/incoming/mod.rs",
            "        if self.config.max_block_bytes == 0 {\n            \
             return Ok(Fate::NotKept);\n        }\n",
            "",
        )],
        finder: LIES,
    },
    Mend {
        name: "finished",
        fault: 8,
        what: "what is finished is told until it is acknowledged, without a limit or a count",
        edits: &[
            edit(
                "crates/proto/src/incoming/progress.rs",
                "while self.finished.len() > usize::from(MAX_BLOCKS).saturating_sub(open) {",
                "while self.finished.len() > usize::MAX - open {",
            ),
            edit(
                "crates/proto/src/incoming/progress.rs",
                "self.finished.capacity() * size_of::<Finished>()",
                "0",
            ),
            edit(
                "crates/proto/src/incoming/progress.rs",
                "self.finished.len() <= usize::from(MAX_BLOCKS).saturating_sub(open),",
                "self.finished.len() <= usize::MAX - open,",
            ),
        ],
        finder: LIES,
    },
    Mend {
        name: "unread",
        fault: 9,
        what: "an unread block counts for its bytes alone",
        edits: &[
            edit(
                "crates/proto/src/incoming/delivery.rs",
                "        EVENT_COST\n            + match self {",
                "        0 + match self {",
            ),
            edit(
                "crates/proto/src/incoming/delivery.rs",
                "    part.len() + PART_COST",
                "    part.len()",
            ),
        ],
        finder: LIES,
    },
    Mend {
        name: "staging",
        fault: 10,
        what: "many chunks wait for their announcement, and are hashed with it",
        edits: &[
            edit(
                "crates/proto/src/incoming/staging.rs",
                "if self.bytes + SLICE_COST + slice.data.len() > MAX_CHUNK_BYTES {",
                "if self.bytes + SLICE_COST + slice.data.len() > 32 * MAX_CHUNK_BYTES {",
            ),
            edit(
                "crates/proto/src/incoming/staging.rs",
                "assert!(self.bytes <= MAX_CHUNK_BYTES && ",
                "assert!(",
            ),
        ],
        finder: LIES,
    },
    Mend {
        name: "acks",
        fault: 10,
        what: "a datagram may have many acks, and each walks over all that is known",
        edits: &[
            edit(
                "crates/proto/src/wire/frames/mod.rs",
                "if self.seen & once as u8 != 0 {",
                "if self.seen & once as u8 == u8::MAX {",
            ),
            edit(
                "crates/proto/src/transit/runs.rs",
                ".then_some(record.acked_run as usize);",
                ".then_some(record.acked_run.min(1) as usize);",
            ),
        ],
        finder: LIES,
    },
    Mend {
        name: "reset-key",
        fault: 2,
        what: "the reset key is made from the token key",
        edits: &[edit(
            "crates/proto/src/server/rules.rs",
            "None => ResetKey::random(entropy.next_secret()),",
            "None => ResetKey::derived(&config.credentials.token_keys.first().map_or_else(\n                \
             || entropy.next_secret(),\n                |token_key| token_key.key.clone(),\n            )),",
        )],
        finder: "worlds::oracles::a_sister_resets_nothing",
    },
    Mend {
        name: "address",
        fault: 3,
        what: "an address in a token counts as proven",
        edits: &[edit(
            "crates/proto/src/connection/path/validation.rs",
            "usual.max(received.saturating_mul(TOKEN_FACTOR).min(max_in_token))",
            "u64::MAX - usual.max(TOKEN_FACTOR).max(max_in_token)",
        )],
        finder: "threats::t1_a_token_with_a_victims_address_sends_it_a_bounded_amount",
    },
    Mend {
        name: "audience",
        fault: 4,
        what: "a token for another server is taken",
        edits: &[edit(
            "crates/proto/src/server/admission.rs",
            "let is_for_any = config.token_audience == TokenAudience::Any;",
            "let is_for_any = config.token_audience == TokenAudience::default();",
        )],
        finder: "worlds::oracles::a_token_is_taken_once",
    },
    Mend {
        name: "largest",
        fault: 6,
        what: "when the memory is full, the connection that holds the most is closed",
        edits: &[edit(
            "crates/proto/src/server/shares.rs",
            "let Some(id) = largest(&holders, source) else { return };",
            "let id = holders.iter().max_by_key(|it| it.memory_bytes).map(|it| it.id);\n        \
             let (Some(id), _) = (id, largest(&holders, source)) else { return };",
        )],
        finder: "worlds::oracles::hoarders_push_nobody_out",
    },
    Mend {
        name: "slow",
        fault: 7,
        what: "a low rate that one client reported holds for all behind its address",
        edits: &[
            edit(
                "crates/control/src/belief/known.rs",
                "        if self.rate.is_none_or(|rate| rate <= FIRST_RATE) {\n            \
                 return Self::NOTHING;\n        }\n        \
                 Self { loss: LossEstimate::new(), trust: Trust::Earlier, ..self }",
                "        Self { trust: Trust::Own, ..self }",
            ),
            edit(
                "crates/proto/src/server/paths.rs",
                "if known.at <= old.at || is_more {",
                "if known.at <= old.at || is_more && known.rate.is_none() {",
            ),
        ],
        finder: "worlds::oracles::a_liar_harms_no_neighbour",
    },
    Mend {
        name: "fast",
        fault: 7,
        what: "a high rate that one client reported is believed of the next",
        edits: &[edit(
            "crates/control/src/belief/known.rs",
            "Self { loss: LossEstimate::new(), trust: Trust::Earlier, ..self }",
            "Self { loss: LossEstimate::new(), trust: Trust::Own, ..self }",
        )],
        finder: "worlds::oracles::a_liar_harms_no_neighbour",
    },
    Mend {
        name: "full-line",
        fault: 32,
        what: "a newcomer is turned away before those that left the line are forgotten",
        edits: &[
            edit(
                "crates/proto/src/server/line.rs",
                "        self.forget_old(now);\n        if !self.knows(&name, path) {",
                "        if self.has(&name) {\n            self.forget_old(now);\n        }\n        \
                 if !self.knows(&name, path) {",
            ),
            edit(
                "crates/proto/src/server/admission.rs",
                "        self.line.forget_old(now);\n",
                "",
            ),
        ],
        finder: DOOR,
    },
    Mend {
        name: "turns",
        fault: 32,
        what: "places are called in the order in which they were taken, whoever has them",
        edits: &[edit(
            "crates/proto/src/server/line.rs",
            "    [source.network(), source]",
            "    [source, source].map(|_| Prefix::of(([0, 0, 0, 0], 0).into()))",
        )],
        finder: DOOR,
    },
    Mend {
        name: "overdue",
        fault: 32,
        what: "a handshake that is not completed keeps its seat while others wait",
        edits: &[edit(
            "crates/proto/src/server/handshakes.rs",
            "filter(|_| self.free_seats() == 0)?;",
            "filter(|_| self.free_seats() == usize::MAX)?;",
        )],
        finder: DOOR,
    },
    Mend {
        name: "several",
        fault: 32,
        what: "one client is called at a time",
        edits: &[edit(
            "crates/proto/src/server/line.rs",
            "const CALLED_PER_SEAT: usize = 4;",
            "const CALLED_PER_SEAT: usize = 1;",
        )],
        finder: "worlds::soak::seeds_that_once_failed",
    },
    Mend {
        name: "refused",
        fault: 32,
        what: "a handshake that the program refuses keeps its seat and counts as none",
        edits: &[edit(
            "crates/proto/src/server/connections.rs",
            "            self.notes.push(Note::Unseated { name });",
            "            slot.is_handshake = false;\n            \
             self.notes.push(Note::HandshakeOver { name });",
        )],
        finder: DOOR,
    },
    Mend {
        name: "skipped",
        fault: 11,
        what: "the newest 16 skipped numbers are remembered, and acks of older ones are believed",
        edits: &[edit(
            "crates/proto/src/transit/skipped.rs",
            "self.0.push_back(number);",
            "self.0.push_back(number);\n        if self.0.len() > 16 {\n            \
             self.0.pop_front();\n        }",
        )],
        finder: "lib::transit::tests::ledger::a_skipped_number_is_remembered_for_as_long_as_an_ack_counts",
    },
    Mend {
        name: "liar",
        fault: 11,
        what: "what a receiver reported that was closed for a lie starts the next client at its address",
        edits: &[edit(
            "crates/proto/src/connection/closing.rs",
            "        self.path.blocks.forget();\n        self.close(now, code, reason);",
            "        self.close(now, code, reason);",
        )],
        finder: "worlds::oracles::a_receiver_is_sent_no_more_than_its_link_takes",
    },
    Mend {
        name: "edge",
        fault: 12,
        what: "a replay window that grows takes in numbers that had left it",
        edits: &[edit(
            "crates/proto/src/transit/window.rs",
            "self.oldest = self.oldest.max(oldest);",
            "self.oldest = oldest;",
        )],
        finder: "threats::t9_a_window_that_grows_takes_no_recording",
    },
];
