//! The datagrams of a trace as qlog has packets.

use haulier_proto::connection::trace::{DatagramKind, SliceSort, TraceDatagram, TraceFrame};
use serde_json::{Map, Value, json};

use super::{VantagePoint, millis};

/// The data of a packet that was sent or received. `is_clients` says whether the client sent it.
pub(super) fn packet(datagram: &TraceDatagram, is_clients: bool) -> Value {
    let by = if is_clients { VantagePoint::Client } else { VantagePoint::Server };
    let frames: Vec<_> = datagram.frames.iter().map(|it| frame(it, by)).collect();
    json!({
        "header": header(datagram.kind, datagram.number),
        "raw": { "length": datagram.bytes },
        "frames": frames,
    })
}

/// Responses and data have numbers of one space, and an ack in one names those of the other; a viewer looks
/// for them under one type of packet.
fn header(kind: DatagramKind, number: u64) -> Value {
    match kind {
        DatagramKind::Request => json!({ "packet_type": "initial", "packet_number": number }),
        _ => numbered(number),
    }
}

/// A header of which the number is known.
pub(super) fn numbered(number: u64) -> Value {
    json!({ "packet_type": "1RTT", "packet_number": number })
}

/// The stream that stands for a block: unidirectional, as QUIC numbers those of each end.
pub(super) fn stream_of(block: u32, sender: VantagePoint) -> u64 {
    let end = match sender {
        VantagePoint::Client => 2,
        VantagePoint::Server => 3,
    };
    4 * u64::from(block) + end
}

const fn other(end: VantagePoint) -> VantagePoint {
    match end {
        VantagePoint::Client => VantagePoint::Server,
        VantagePoint::Server => VantagePoint::Client,
    }
}

/// A frame that the end `by` sent.
fn frame(frame: &TraceFrame, by: VantagePoint) -> Value {
    let (kind, fields) = match frame {
        TraceFrame::Padding { bytes } => ("padding", json!({ "payload_length": bytes })),
        TraceFrame::Ping => ("ping", json!({})),
        TraceFrame::Ack { ranges, delay } => {
            let ranges: Vec<_> = ranges.iter().rev().map(|&(first, last)| [first, last]).collect();
            let delay = delay.map(millis);
            ("ack", json!({ "ack_delay": delay, "acked_ranges": ranges }))
        }
        TraceFrame::Slice { block, chunk, offset, bytes, sort } => {
            return slice((*block, *chunk), *offset, *bytes, *sort, by);
        }
        TraceFrame::Packet { sequence, bytes } => {
            ("datagram", json!({ "length": bytes, "haulier_sequence": sequence }))
        }
        TraceFrame::Fragment { sequence, index, count, bytes } => (
            "datagram",
            json!({
                "length": bytes, "haulier_sequence": sequence,
                "haulier_fragment": index, "haulier_fragments": count,
            }),
        ),
        TraceFrame::Message { channel, number, offset, bytes } => (
            "haulier:message",
            json!({ "channel": channel, "number": number, "offset": offset, "length": bytes }),
        ),
        TraceFrame::Close { code } => {
            let space = if *code < 256 { "transport" } else { "application" };
            ("connection_close", json!({ "error_space": space, "raw_error_code": code }))
        }
        TraceFrame::PathChallenge => ("path_challenge", json!({})),
        TraceFrame::PathResponse => ("path_response", json!({})),
        TraceFrame::Block { number, tag, length } => (
            "haulier:block",
            json!({ "stream_id": stream_of(*number, by), "tag": tag, "length": length }),
        ),
        TraceFrame::Hashes { block } => of_block("haulier:hashes", *block, by),
        TraceFrame::Cancel { block, code } => (
            "reset_stream",
            json!({ "stream_id": stream_of(*block, by), "error_code": code, "final_size": 0 }),
        ),
        TraceFrame::Decline { block, code } => {
            let stream = stream_of(*block, other(by));
            ("stop_sending", json!({ "stream_id": stream, "error_code": code }))
        }
        TraceFrame::ChunksHere { block } => of_block("haulier:chunks_here", *block, other(by)),
        TraceFrame::SlicesHere { block, chunk } => {
            let stream = stream_of(*block, other(by));
            ("haulier:slices_here", json!({ "stream_id": stream, "chunk": chunk }))
        }
        TraceFrame::RootHere => ("haulier:root_here", json!({})),
        TraceFrame::Progress { floor, credit } => {
            ("haulier:progress", json!({ "floor": floor, "credit": credit }))
        }
        TraceFrame::Arrivals => ("haulier:arrivals", json!({})),
        TraceFrame::ChannelLimit { channel, bytes } => {
            ("haulier:channel_limit", json!({ "channel": channel, "maximum": bytes }))
        }
        TraceFrame::AckFrequency { datagrams, delay } => (
            "haulier:ack_frequency",
            json!({ "datagrams": datagrams, "max_ack_delay": millis(*delay) }),
        ),
        TraceFrame::ResetToken => ("haulier:reset_token", json!({})),
        TraceFrame::Ignored { kind, bytes } => {
            ("unknown", json!({ "raw_frame_type": kind, "raw_length": bytes }))
        }
        TraceFrame::Others { count } => ("haulier:others", json!({ "count": count })),
        _ => ("unknown", json!({})),
    };
    with_type(kind, fields)
}

fn of_block(kind: &'static str, block: u32, sender: VantagePoint) -> (&'static str, Value) {
    (kind, json!({ "stream_id": stream_of(block, sender) }))
}

/// Source bytes are those of a stream. A repair slice has none of them.
fn slice(
    (block, chunk): (u32, u32),
    offset: u64,
    bytes: usize,
    sort: SliceSort,
    by: VantagePoint,
) -> Value {
    let stream = stream_of(block, by);
    let fields = json!({ "stream_id": stream, "offset": offset, "length": bytes });
    match sort {
        SliceSort::Repair => {
            let fields = json!({ "stream_id": stream, "chunk": chunk, "length": bytes });
            with_type("haulier:repair_slice", fields)
        }
        SliceSort::Resent => {
            let mut frame = with_type("stream", fields);
            frame["haulier_resent"] = json!(true);
            frame
        }
        _ => with_type("stream", fields),
    }
}

fn with_type(kind: &str, fields: Value) -> Value {
    let mut frame = Map::new();
    frame.insert("frame_type".into(), kind.into());
    if let Value::Object(fields) = fields {
        frame.extend(fields);
    }
    Value::Object(frame)
}
