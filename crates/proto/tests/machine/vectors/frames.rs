//! `haulier1.json`: every frame of haulier/1 is read, and written again; broken ones are refused.

use std::time::Duration;

use haulier_core::fragment::Fragment;
use haulier_proto::internals::frames::{
    BlockFrame, ChannelLimitFrame, ChunkAt, ChunksHereFrame, Frame, Frames, HashesFrame,
    MessageFrame, MessagePart, ProgressEntry, ProgressFrame, SliceFrame, SliceKind, SliceSize,
    SlicesHereFrame,
};
use haulier_proto::internals::{AckFrame, ArrivalsFrame, EcnCounts};
use haulier_proto::{DropReason, Instant, Sequence};
use serde_json::Value;

use crate::load::{hex_number, load, rows, size, text, unhex};

/// A number, in either form.
pub(super) fn number<T: TryFrom<u64, Error: std::fmt::Debug>>(value: &Value) -> T {
    value.as_u64().unwrap_or_else(|| hex_number(value)).try_into().unwrap()
}

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    unhex(text(value)).try_into().unwrap()
}

/// The bytes that a frame points to: given, by the data formula, or its entries or values.
pub(super) fn content(frame: &Value) -> Vec<u8> {
    if let Some(values) = frame["values"].as_array() {
        return values.iter().flat_map(|value| unhex(text(value))).collect();
    }
    if let Some(entries) = frame["entries"].as_array() {
        let mut out = Vec::new();
        for entry in entries {
            let map = unhex(text(&entry[2]));
            let (block, first) = (number(&entry[0]), number(&entry[1]));
            ProgressEntry { block, first, map: &map }.write(&mut out);
        }
        return out;
    }
    let is_there = |name: &&str| frame[*name].is_string();
    let data = ["map", "reason", "token"].into_iter().find(is_there).unwrap_or("data");
    let data = &frame[data];
    match data {
        Value::String(hex) => unhex(hex),
        Value::Object(formula) => {
            let (id, first) = (size(&formula["formula"]), size(&formula["first"]));
            let offsets = first..first + size(&formula["bytes"]);
            offsets.map(|o| ((o * 167 + (o >> 8) * 13 + id * 29 + 7) % 256) as u8).collect()
        }
        _ => Vec::new(),
    }
}

fn slice<'a>(frame: &Value, kind: SliceKind, data: &'a [u8]) -> Frame<'a> {
    let at = ChunkAt { block: number(&frame["block"]), index: number(&frame["chunk"]) };
    Frame::Slice(SliceFrame { at, kind, index: number(&frame["index"]), data })
}

fn ack(frame: &Value) -> AckFrame {
    let delay = Duration::from_micros(number(&frame["delay_us"]));
    let mut ack = AckFrame::new(number(&frame["largest"]), delay, number(&frame["first"]));
    for run in frame["runs"].as_array().unwrap() {
        assert!(ack.push_run(number(&run[0]), number(&run[1])));
    }
    match &frame["ecn"] {
        Value::Array(counts) => ack.with_ecn(EcnCounts {
            ect0: number(&counts[0]),
            ect1: number(&counts[1]),
            ce: number(&counts[2]),
        }),
        _ => ack,
    }
}

fn arrivals(frame: &Value) -> ArrivalsFrame {
    let at = Instant::from_nanos(number::<u64>(&frame["us"]) * 1000);
    let mut arrivals = ArrivalsFrame::new(number(&frame["number"]), at);
    for more in frame["more"].as_array().unwrap() {
        let before = Duration::from_micros(number(&more[1]));
        assert!(arrivals.push(number(&more[0]), before));
    }
    arrivals
}

pub(super) fn frame_of<'a>(frame: &'a Value, data: &'a [u8]) -> Frame<'a> {
    let block = || number(&frame["block"]);
    let slice_size = || SliceSize::new(size(&frame["slice_size"])).unwrap();
    match text(&frame["type"]) {
        "padding" => Frame::Padding,
        "ping" => Frame::Ping,
        "ack" | "ack_ecn" => Frame::Ack(ack(frame)),
        "arrivals" => Frame::Arrivals(arrivals(frame)),
        "progress" => {
            let (credit, lateness) = (number(&frame["credit"]), number(&frame["lateness_ms"]));
            let count = frame["entries"].as_array().unwrap().len();
            let floor = number(&frame["floor"]);
            Frame::Progress(ProgressFrame::new(credit, lateness, floor, count, data).unwrap())
        }
        "slice" => slice(frame, SliceKind::Source, data),
        "last_slice" => slice(frame, SliceKind::Last(slice_size()), data),
        "repair_slice" => slice(frame, SliceKind::Repair, data),
        "slices_here" => {
            let at = ChunkAt { block: block(), index: number(&frame["chunk"]) };
            Frame::SlicesHere(SlicesHereFrame { at, size: slice_size(), map: data })
        }
        "block" => Frame::Block(BlockFrame {
            number: number(&frame["number"]),
            tag: number(&frame["tag"]),
            length: number(&frame["length"]),
            root: bytes(&frame["root"]),
        }),
        "hashes" => {
            let (level, first) = (number(&frame["level"]), number(&frame["first"]));
            let values = data.as_chunks().0;
            Frame::Hashes(HashesFrame { block: block(), level, first, values })
        }
        "chunks_here" => {
            let first = number(&frame["first"]);
            Frame::ChunksHere(ChunksHereFrame { block: block(), first, map: data })
        }
        "cancel" => {
            let (code, opened) = (number(&frame["code"]), number(&frame["opened"]));
            Frame::Cancel { block: block(), code, opened }
        }
        "decline" => Frame::Decline { block: block(), code: number(&frame["code"]) },
        "root_here" => Frame::RootHere(bytes(&frame["root"])),
        "packet" => Frame::Packet { sequence: Sequence::new(number(&frame["sequence"])), data },
        "fragment" => {
            let sequence = Sequence::new(number(&frame["sequence"]));
            let (index, count) = (size(&frame["index"]), size(&frame["count_less_one"]) + 1);
            Frame::Fragment(Fragment::new(sequence, index, count, data).unwrap())
        }
        "message" => {
            let part = |whole| MessagePart { whole, offset: number(&frame["offset"]) };
            Frame::Message(MessageFrame {
                channel: number(&frame["channel"]),
                is_unordered: frame["unordered"].as_bool().unwrap(),
                number: number(&frame["number"]),
                part: frame["whole"].as_u64().map(|whole| part(u32::try_from(whole).unwrap())),
                data,
            })
        }
        "channel_limit" => Frame::ChannelLimit(ChannelLimitFrame {
            channel: number(&frame["channel"]),
            messages: number(&frame["messages"]),
            bytes: number(&frame["bytes"]),
        }),
        "ack_frequency" => Frame::AckFrequency {
            datagrams: number(&frame["datagrams"]),
            delay: Duration::from_micros(number(&frame["delay_us"])),
        },
        "path_challenge" => Frame::PathChallenge(bytes(&frame["bytes"])),
        "path_response" => Frame::PathResponse(bytes(&frame["bytes"])),
        "reset_token" => Frame::ResetToken(data.try_into().unwrap()),
        "close" => {
            let reason = std::str::from_utf8(data).unwrap();
            Frame::Close { code: number(&frame["code"]), reason }
        }
        "unknown" => Frame::Ignored { kind: number(&frame["number"]), body: data },
        other => panic!("a frame of type {other}"),
    }
}

fn assert_frame(row: &Value, name: &str, wire: &[u8]) {
    let frame = &row["frame"];
    let content = content(frame);
    let expected = frame_of(frame, &content);
    let read: Vec<_> = Frames::of(wire).collect();
    let copies = if frame["type"] == "padding" { size(&frame["count"]) } else { 1 };
    assert_eq!(read, vec![Ok(expected); copies], "{name}");
    let mut again = Vec::new();
    (0..copies).for_each(|_| expected.write(&mut again));
    // A delay of 2^24 us or more means no more than that it is too long.
    let is_long = frame["delay_us"].is_string() && number::<u64>(&frame["delay_us"]) > 1 << 24;
    assert!(again == wire || row["shortest"] == false || is_long, "{name}: {again:02x?}");
}

#[test]
fn every_frame_comes_back() {
    let file = load("haulier1.json");
    for row in rows(&file, "frames", 80) {
        let (name, wire) = (text(&row["name"]), unhex(text(&row["hex"])));
        assert_frame(row, name, &wire);
        let is_ack_eliciting = Frames::of(&wire).any(|frame| frame.unwrap().is_ack_eliciting());
        assert_eq!(row["ack_eliciting"], is_ack_eliciting, "{name}");
    }
    for row in rows(&file, "large_frames", 7) {
        let content = content(&row["frame"]);
        let mut wire = Vec::new();
        frame_of(&row["frame"], &content).write(&mut wire);
        assert_eq!(wire.len(), size(&row["length"]));
        assert_eq!(blake3::hash(&wire).to_hex().as_str(), text(&row["blake3"]));
        assert_frame(row, "large", &wire);
    }
}

#[test]
fn broken_frames_are_refused() {
    let file = load("haulier1.json");
    for row in rows(&file, "broken_frames", 113) {
        let (name, wire) = (text(&row["name"]), unhex(text(&row["hex"])));
        let refused = Frames::of(&wire).find_map(Result::err);
        match text(&row["reason"]) {
            // A datagram without frames is refused where it is opened.
            "empty" => assert!(wire.is_empty() && refused.is_none(), "{name}"),
            "bad_type" => assert_eq!(refused, Some(DropReason::BadType), "{name}"),
            "truncated" => assert_eq!(refused, Some(DropReason::Truncated), "{name}"),
            "repeated" => assert_eq!(refused, Some(DropReason::RepeatedFrame), "{name}"),
            "out_of_range" if name.starts_with("fragment") => assert!(refused.is_some(), "{name}"),
            "out_of_range" => assert_eq!(refused, Some(DropReason::OutOfRange), "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
}
