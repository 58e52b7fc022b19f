//! Why a datagram is nothing: the reason as the library counts it, and the same in a sentence.

use haulier_article::PacketDropReason;
use haulier_shell::units::word;
use serde_json::{Value, json};

use super::Reading;

/// A reason, and the reading that found it. Without one, the datagram did not get as far: its size or
/// its checksum is wrong for all of them.
pub(super) struct Refusal {
    pub(super) reason: PacketDropReason,
    pub(super) by: Option<Reading>,
}

impl Refusal {
    pub(super) fn new(reason: PacketDropReason, reading: Reading) -> Self {
        use PacketDropReason::{BadCrc, TooLong, TooShort};
        let is_of_all = matches!(reason, TooLong | TooShort | BadCrc);
        Self { reason, by: (!is_of_all).then_some(reading) }
    }

    pub(super) fn in_json(&self, readings: &[Reading]) -> Value {
        let layer = self.by.map(|reading| word(&reading.layer));
        let mut object = json!({ "ok": false, "layer": layer, "drop": self.reason.name() });
        if self.reason == PacketDropReason::BadCrc {
            object["tried"] = json!(ids(readings));
        }
        object
    }

    pub(super) fn in_words(&self, readings: &[Reading], size: usize) -> String {
        let reason = self.reason;
        let sentence = match self.by {
            None => explain_frame(reason, readings, size),
            Some(reading) => explain(reason, reading.raw_count),
        };
        let layer = self.by.map(|reading| format!(", read as {}", word(&reading.layer)));
        format!("dropped, {size} bytes{}: {reason} ({sentence})", layer.unwrap_or_default())
    }
}

/// The protocol ids that were tried, each once.
fn ids(readings: &[Reading]) -> Vec<String> {
    let mut ids: Vec<_> =
        readings.iter().map(|reading| format!("{:#010x}", reading.protocol.0)).collect();
    ids.dedup();
    ids
}

fn explain_frame(reason: PacketDropReason, readings: &[Reading], size: usize) -> String {
    match reason {
        PacketDropReason::TooShort => format!("{size} bytes hold no checksum and no packet"),
        PacketDropReason::TooLong => "a packet of this wire has at most 1200 bytes".into(),
        _ => {
            let ids = ids(readings).join(" nor ");
            let neither = if ids.contains(" nor ") { "neither" } else { "not" };
            format!("corrupted, of another protocol, or its protocol id is {neither} {ids}")
        }
    }
}

/// Both ways to write a count are 8 bits that nothing distinguishes. Which refusals a wrong guess leads to
/// is known, so they say how to try the other.
fn explain(reason: PacketDropReason, raw_count: bool) -> String {
    match reason {
        PacketDropReason::BadType => {
            "a packet is of type 0, a fragment, 1, a payload packet, or 2, an ack packet".into()
        }
        PacketDropReason::OutOfRange => {
            "a number is outside its range: an ack packet must have sequence 0".into()
        }
        PacketDropReason::SliceIdOutOfRange => {
            "the slice index is not below the slice count".into()
        }
        PacketDropReason::Truncated => "the bytes end before the packet does".into(),
        PacketDropReason::NonzeroPadding => "padding bits must be zero".into(),
        PacketDropReason::BadCheck => "the end-of-packet check is another value".into(),
        PacketDropReason::TrailingBytes => "bytes follow the end of the packet".into(),
        PacketDropReason::FragmentEmpty => "a fragment has at least 1 byte".into(),
        PacketDropReason::FragmentTooBig => "a fragment has at most 1024 bytes".into(),
        PacketDropReason::FragmentCountZero => {
            "a packet has at least 1 fragment; is it a count less one? Leave out --raw-count".into()
        }
        PacketDropReason::FragmentIdOutOfRange if raw_count => {
            "the fragment index is not below the fragment count; is it a count less one? Leave out \
             --raw-count"
                .into()
        }
        PacketDropReason::FragmentIdOutOfRange => {
            "the fragment index is not below the fragment count".into()
        }
        PacketDropReason::MiddleFragmentNotFull if raw_count => {
            "only the last fragment may have less than 1024 bytes".into()
        }
        PacketDropReason::MiddleFragmentNotFull => {
            "only the last fragment may have less than 1024 bytes; is it the 2016 original's? Try \
             --raw-count"
                .into()
        }
        other => other.name().replace('_', " "),
    }
}
