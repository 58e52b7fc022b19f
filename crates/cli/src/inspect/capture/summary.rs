//! What was in a capture, counted.

use std::collections::{BTreeMap, HashSet};

use haulier_capture::layers::{Skipped, UdpDatagram};
use haulier_shell::units::show_bytes;
use serde_json::{Value, json};

use super::wires::{Keys, Said};

/// The maximum number of connections that are counted: an attack may have more, and is counted as this many.
const MAX_CONNECTIONS: usize = 1 << 16;

/// The counts of a capture.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Datagrams and their bytes, by kind.
    kinds: BTreeMap<&'static str, (u64, u64)>,
    neither: (u64, u64),
    skipped: BTreeMap<Skipped, u64>,
    /// The ids of clients.
    connections: HashSet<String>,
    /// Refusals of servers, by their reason.
    refusals: BTreeMap<String, u64>,
    /// Datagrams that a receiver drops, by the reason.
    malformed: BTreeMap<&'static str, u64>,
    opened: u64,
    no_key: u64,
    wrong_key: u64,
}

impl Summary {
    pub(super) fn skipped(&mut self, skipped: Skipped) {
        *self.skipped.entry(skipped).or_default() += 1;
    }

    pub(super) fn count(&mut self, said: &Said, datagram: &UdpDatagram<'_>) {
        let bytes = datagram.payload.len() as u64;
        let count = match said.packet() {
            Some(packet) => self.kinds.entry(packet).or_default(),
            None => &mut self.neither,
        };
        *count = (count.0 + 1, count.1 + bytes);
        match said {
            Said::Haulier1 { fields, keys, .. } => {
                match keys {
                    Keys::Unused => {}
                    Keys::Opened => self.opened += 1,
                    Keys::Missing => self.no_key += 1,
                    Keys::Wrong => self.wrong_key += 1,
                }
                match (fields.packet(), fields.field("from"), fields.field("reason")) {
                    ("request", Some(Value::String(client)), _)
                        if self.connections.len() < MAX_CONNECTIONS =>
                    {
                        self.connections.insert(client.clone());
                    }
                    ("refusal", _, Some(Value::String(reason))) => {
                        *self.refusals.entry(reason.clone()).or_default() += 1;
                    }
                    _ => {}
                }
            }
            Said::Haulier1Refused(reason) => *self.malformed.entry(reason.name()).or_default() += 1,
            Said::ArticleRefused { reason, .. } => {
                *self.malformed.entry(reason.name()).or_default() += 1;
            }
            Said::Article { .. } | Said::Neither => {}
        }
    }

    pub(super) fn in_json(&self) -> Value {
        let kinds = self.kinds.iter().map(|(kind, (datagrams, bytes))| {
            ((*kind).to_owned(), json!({ "datagrams": datagrams, "bytes": bytes }))
        });
        let skipped = self.skipped.iter().map(|(why, n)| (why.name().to_owned(), json!(n)));
        json!({
            "kinds": Value::Object(kinds.collect()),
            "connections": self.connections.len(),
            "refusals": self.refusals,
            "malformed": self.malformed,
            "opened": self.opened,
            "no_key": self.no_key,
            "wrong_key": self.wrong_key,
            "neither": { "datagrams": self.neither.0, "bytes": self.neither.1 },
            "not_read": Value::Object(skipped.collect()),
        })
    }

    pub(super) fn in_words(&self) -> String {
        let mut lines = vec![String::new()];
        let all = self.kinds.values().fold((0, 0), |all, kind| (all.0 + kind.0, all.1 + kind.1));
        lines.push(format!("{} datagrams, {}", all.0, show_bytes(all.1)));
        for (kind, (datagrams, bytes)) in &self.kinds {
            let kind = kind.replace('_', " ");
            lines.push(format!("  {kind:<10} {datagrams:>8}  {}", show_bytes(*bytes)));
        }
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                lines.push(format!("{count} {what}"));
            }
        };
        say(self.connections.len() as u64, "connections, by the ids of their clients");
        say(self.opened, "opened with the key log");
        say(self.no_key, "sealed, and no key in the key log");
        say(self.wrong_key, "sealed, and not with the key of the key log");
        for (reason, count) in &self.refusals {
            say(*count, &format!("refused by the server: {}", reason.replace('_', " ")));
        }
        for (reason, count) in &self.malformed {
            say(*count, &format!("malformed: {}", reason.replace('_', " ")));
        }
        say(self.neither.0, "of neither wire");
        for (skipped, count) in &self.skipped {
            say(*count, &format!("not read: {}", skipped.name().replace('_', " ")));
        }
        lines.join("\n")
    }
}
