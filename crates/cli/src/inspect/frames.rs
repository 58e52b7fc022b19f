//! The frames of haulier/1, each as an object (STANDARD-1, section 4).

use haulier::proto::internals::frames::{Frame, SliceFrame, SliceKind};
use haulier::proto::internals::{AckFrame, ArrivalsFrame};
use serde_json::{Value, json};

use super::haulier1::hex;

/// What may be the number of the next packet, which an inspected datagram does not say: each number of 32
/// bits is the nearest below one of these.
const NEXT_NUMBERS: [u64; 4] = [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 32];

pub(super) fn in_json(frame: &Frame<'_>) -> Value {
    match frame {
        Frame::Padding => json!({ "frame": "padding", "bytes": 1 }),
        Frame::Ping => json!({ "frame": "ping" }),
        Frame::Ack(ack) => acked(ack),
        Frame::Arrivals(arrivals) => arrived(arrivals),
        Frame::Progress(progress) => json!({
            "frame": "progress",
            "credit": progress.credit,
            "lateness_ms": progress.lateness_ms,
            "floor": progress.floor,
            "blocks": progress.entries().map(|entry| json!({
                "block": entry.block,
                "first": entry.first,
                "done_after": entry.map.iter().map(|byte| byte.count_ones()).sum::<u32>(),
            })).collect::<Vec<_>>(),
        }),
        Frame::Slice(slice) => sliced(slice),
        Frame::SlicesHere(frame) => json!({
            "frame": "slices_here",
            "block": frame.at.block,
            "chunk": frame.at.index,
            "slice_bytes": frame.size.bytes(),
            "slices": frame.map.iter().map(|byte| byte.count_ones()).sum::<u32>(),
        }),
        Frame::Block(block) => json!({
            "frame": "block",
            "block": block.number,
            "tag": block.tag,
            "length": block.length,
            "blake3": hex(&block.root),
        }),
        Frame::Hashes(hashes) => json!({
            "frame": "hashes",
            "block": hashes.block,
            "level": hashes.level,
            "first": hashes.first,
            "values": hashes.values.iter().map(|value| hex(value)).collect::<Vec<_>>(),
        }),
        Frame::ChunksHere(frame) => json!({
            "frame": "chunks_here",
            "block": frame.block,
            "first": frame.first,
            "chunks": frame.map.iter().map(|byte| byte.count_ones()).sum::<u32>(),
        }),
        Frame::Cancel { block, code, opened } => {
            json!({ "frame": "cancel", "block": block, "code": code, "chunks_opened": opened })
        }
        Frame::Decline { block, code } => {
            json!({ "frame": "decline", "block": block, "code": code })
        }
        Frame::RootHere(root) => json!({ "frame": "root_here", "blake3": hex(root) }),
        other => not_of_blocks(other),
    }
}

fn not_of_blocks(frame: &Frame<'_>) -> Value {
    match frame {
        Frame::Packet { sequence, data } => json!({
            "frame": "packet", "sequence": sequence.get(), "bytes": data.len(),
        }),
        Frame::Fragment(fragment) => json!({
            "frame": "fragment",
            "sequence": fragment.sequence().get(),
            "fragment": fragment.index(),
            "fragments": fragment.count(),
            "bytes": fragment.data().len(),
        }),
        Frame::Message(message) => json!({
            "frame": "message",
            "channel": message.channel,
            "number": message.number,
            "unordered": message.is_unordered,
            "offset": message.part.map(|part| part.offset),
            "whole": message.part.map(|part| part.whole),
            "bytes": message.data.len(),
        }),
        Frame::ChannelLimit(limit) => json!({
            "frame": "channel_limit",
            "channel": limit.channel,
            "messages": limit.messages,
            "bytes": limit.bytes,
        }),
        Frame::AckFrequency { datagrams, delay } => json!({
            "frame": "ack_frequency", "datagrams": datagrams, "delay_us": delay.as_micros(),
        }),
        Frame::PathChallenge(bytes) => json!({ "frame": "path_challenge", "bytes": hex(bytes) }),
        Frame::PathResponse(bytes) => json!({ "frame": "path_response", "bytes": hex(bytes) }),
        Frame::ResetToken(token) => json!({ "frame": "reset_token", "token": hex(*token) }),
        Frame::Close { code, reason } => {
            json!({ "frame": "close", "code": code, "reason": reason })
        }
        Frame::Ignored { kind, body } => {
            json!({ "frame": "ignored", "type": kind, "bytes": body.len() })
        }
        _ => Value::Null,
    }
}

fn acked(ack: &AckFrame) -> Value {
    let largest = ack.largest(0);
    // The ranges below the largest, as far as the datagram itself says which numbers they are.
    let ranges = ack.ranges(largest.saturating_add(1)).into_iter().flatten();
    let ranges: Vec<_> = ranges.map(|range| [*range.start(), *range.end()]).collect();
    let mut object = json!({
        "frame": "ack",
        "largest": largest,
        "delay_us": ack.delay().map(|delay| delay.as_micros()),
        "ranges": ranges,
    });
    if let Some(ecn) = ack.ecn() {
        object["ecn"] = json!({ "ect0": ecn.ect0, "ect1": ecn.ect1, "ce": ecn.ce });
    }
    object
}

fn arrived(arrivals: &ArrivalsFrame) -> Value {
    let arrived = NEXT_NUMBERS.iter().find_map(|&next| arrivals.arrivals(next));
    let arrived = arrived.into_iter().flatten();
    let arrived: Vec<_> = arrived.map(|(number, micros)| [number, micros.into()]).collect();
    json!({ "frame": "arrivals", "arrivals": arrived })
}

fn sliced(slice: &SliceFrame<'_>) -> Value {
    let mut object = json!({
        "frame": match slice.kind {
            SliceKind::Source => "slice",
            SliceKind::Last(_) => "last_slice",
            SliceKind::Repair => "repair_slice",
        },
        "block": slice.at.block,
        "chunk": slice.at.index,
        "slice": slice.index,
        "bytes": slice.data.len(),
    });
    if let SliceKind::Last(size) = slice.kind {
        object["slice_bytes"] = json!(size.bytes());
    }
    object
}
