//! `haulier1.json`: the fields and frames of the datagrams of haulier/1; each is read, and written again.

use haulier_core::chunk::{Ack, ChunkId, Slice, SliceCount, SliceSet};
use haulier_core::fragment::Fragment;
use haulier_proto::internals::{
    AckFrame, BlockFrame, DataHeader, Frame, Frames, Hello, Kind, Refusal, RequestParts,
    ResponseHeader, Retry, Welcome, WireId, read_reset, write_reset,
};
use haulier_proto::{DropReason, Sequence};
use serde_json::Value;

use crate::load::{hex, hex_number, load, rows, size, text, unhex};

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    unhex(text(value)).try_into().unwrap()
}

fn id(value: &Value) -> WireId {
    WireId(bytes(value))
}

fn small<T: TryFrom<usize, Error: std::fmt::Debug>>(value: &Value) -> T {
    size(value).try_into().unwrap()
}

#[test]
fn requests_and_their_hellos() {
    let file = load("haulier1.json");
    for row in rows(&file, "requests", 10) {
        let (name, datagram) = (text(&row["name"]), unhex(text(&row["hex"])));
        assert_eq!(Kind::of(&datagram), Ok(Kind::Request), "{name}");
        let parts = match RequestParts::read(&datagram) {
            Err(reason) => {
                assert_eq!(reason, DropReason::WrongVersion, "{name}");
                assert_ne!(size(&row["version"]), 1, "{name}");
                continue;
            }
            Ok(parts) => parts,
        };
        assert_eq!(usize::from(parts.mode.byte()), size(&row["mode"]), "{name}");
        assert_eq!(parts.client_id, id(&row["client_id"]), "{name}");
        assert_eq!(hex(parts.token), text(&row["sealed_token"]), "{name}");
        assert_eq!(hex(parts.hello_message), text(&row["hello_message"]), "{name}");
        let cookie = parts.cookie.map_or(String::new(), |cookie| hex(&cookie));
        assert_eq!(cookie, text(&row["cookie"]), "{name}");
        let mut again = Vec::new();
        let padding = unhex(text(&row["padding"]));
        assert!(parts.write(&mut again, |place| place.copy_from_slice(&padding)), "{name}");
        assert_eq!(hex(&again), hex(&datagram[..1184]), "{name}");
        if parts.mode.byte() == 0 {
            let fields = &row["hello"];
            let hello = Hello::read(parts.hello_message).unwrap();
            assert_eq!(hello.idle_timeout.as_millis() as usize, size(&fields["idle_ms"]), "{name}");
            assert_eq!(usize::from(hello.suites.bits()), size(&fields["suites"]), "{name}");
            let mut again = Vec::new();
            hello.write(&mut again);
            assert_eq!(again, parts.hello_message, "{name}");
        }
    }
}

#[test]
fn responses_their_welcomes_and_frames() {
    let file = load("haulier1.json");
    for row in rows(&file, "responses", 21) {
        let (name, datagram) = (text(&row["name"]), unhex(text(&row["hex"])));
        let message = unhex(text(&row["welcome_message"]));
        let header = ResponseHeader::read(&datagram, message.len()).unwrap();
        assert_eq!(header.to, id(&row["client_id"]), "{name}");
        assert_eq!(header.welcome_message, message, "{name}");
        assert_eq!(u64::from(header.number), low(&row["packet_number"]), "{name}");
        let mut again = Vec::new();
        header.write(&mut again);
        assert_eq!(again, datagram[..again.len()], "{name}");
        if size(&row["mode"]) == 0 {
            let welcome = Welcome::read(&message).unwrap();
            assert_eq!(welcome.server_id, id(&row["server_id"]), "{name}");
            assert_eq!(welcome.reset_token, bytes(&row["welcome"]["reset_token"]), "{name}");
            let mut again = Vec::new();
            welcome.write(&mut again);
            assert_eq!(again, message, "{name}");
        }
        assert_frames(row);
    }
}

#[test]
fn data_and_their_frames() {
    let file = load("haulier1.json");
    for row in rows(&file, "data", 89) {
        let (name, datagram) = (text(&row["name"]), unhex(text(&row["hex"])));
        let header = DataHeader::read(&datagram).unwrap();
        let to = if row["from"] == "client" { "server_id" } else { "client_id" };
        assert_eq!(header.to, id(&row[to]), "{name}");
        assert_eq!(u64::from(header.number), low(&row["packet_number"]), "{name}");
        let phase = row["key_phase"].as_u64().or(row["key_number"].as_u64()).unwrap() & 1;
        assert_eq!(u64::from(header.phase), phase, "{name}");
        let mut again = Vec::new();
        header.write(&mut again);
        assert_eq!(again, datagram[..13], "{name}");
        assert_frames(row);
    }
}

#[test]
fn retries_refusals_and_resets() {
    let file = load("haulier1.json");
    let mut again = Vec::new();
    for row in rows(&file, "retries", 7) {
        let datagram = unhex(text(&row["hex"]));
        let retry = Retry::read(&datagram).unwrap();
        assert_eq!((retry.to, retry.cookie), (id(&row["client_id"]), bytes(&row["cookie"])));
        retry.write(&mut again);
        assert_eq!(again, datagram);
    }
    for row in rows(&file, "refusals", 46) {
        let datagram = unhex(text(&row["hex"]));
        let refusal = Refusal::read(&datagram).unwrap();
        assert_eq!(usize::from(refusal.code.byte()), size(&row["code"]), "{}", row["name"]);
        assert_eq!(refusal.to, id(&row["client_id"]), "{}", row["name"]);
        assert_eq!(refusal.check, bytes(&row["check"]), "{}", row["name"]);
        let versions = row["versions"].as_array().unwrap().iter().map(small::<u8>);
        assert!(refusal.versions.iter().copied().eq(versions), "{}", row["name"]);
    }
    for row in rows(&file, "resets", 7) {
        let datagram = unhex(text(&row["hex"]));
        write_reset(read_reset(&datagram).unwrap(), &mut again);
        assert_eq!(again, datagram);
    }
}

fn low(value: &Value) -> u64 {
    hex_number(value) & 0xffff_ffff
}

/// The plaintext is read as the frames of the row, and the frames are written as the plaintext.
fn assert_frames(row: &Value) {
    let (name, plaintext) = (&row["name"], unhex(text(&row["plaintext"])));
    let expected: Vec<_> = row["frames"].as_array().unwrap().iter().collect();
    let data: Vec<Vec<u8>> = expected
        .iter()
        .map(|frame| frame["data"].as_str().map(unhex).unwrap_or_default())
        .collect();
    let expected: Vec<Frame<'_>> = expected
        .iter()
        .zip(&data)
        .flat_map(|(frame, data)| {
            let copies = if frame["type"] == "padding" { size(&frame["count"]) } else { 1 };
            std::iter::repeat_n(frame_of(frame, data), copies)
        })
        .collect();
    let frames: Vec<_> = Frames::of(&plaintext).map(|frame| frame.unwrap()).collect();
    assert!(frames == expected, "{name}");
    let mut again = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut again));
    assert!(again == plaintext, "{name}");
}

fn frame_of<'a>(frame: &'a Value, data: &'a [u8]) -> Frame<'a> {
    let count = || SliceCount::new(size(&frame["count"])).unwrap();
    match text(&frame["type"]) {
        "padding" => Frame::Padding,
        "ping" => Frame::Ping,
        "ack" => {
            let delay = std::time::Duration::from_micros(small::<u64>(&frame["delay"]));
            let largest = u64::from(small::<u32>(&frame["largest"]));
            let mut ack = AckFrame::new(largest, delay, small(&frame["first"]));
            for run in frame["runs"].as_array().unwrap() {
                let run = run.as_array().unwrap();
                assert!(ack.push_run(small(&run[0]), small(&run[1])));
            }
            Frame::Ack(ack)
        }
        "slice" => {
            let index = count().index(size(&frame["index"])).unwrap();
            let chunk_id = ChunkId::new(small(&frame["chunk"]));
            Frame::Slice(Slice::new(chunk_id, index, data).unwrap())
        }
        "chunk_ack" => {
            let mut received = SliceSet::empty(count());
            let flags = text(&frame["acked"]).chars().enumerate();
            for (at, _) in flags.filter(|(_, flag)| *flag == '1') {
                received.insert(count().index(at).unwrap());
            }
            Frame::ChunkAck(Ack { chunk_id: ChunkId::new(small(&frame["chunk"])), received })
        }
        "packet" => Frame::Packet { sequence: Sequence::new(small(&frame["sequence"])), data },
        "fragment" => {
            let sequence = Sequence::new(small(&frame["sequence"]));
            let (index, count) = (size(&frame["index"]), size(&frame["count"]));
            Frame::Fragment(Fragment::new(sequence, index, count, data).unwrap())
        }
        "message" => Frame::Message { number: small(&frame["number"]), data },
        "message_limit" => Frame::MessageLimit(small(&frame["number"])),
        "path_challenge" => Frame::PathChallenge(bytes(&frame["bytes"])),
        "path_response" => Frame::PathResponse(bytes(&frame["bytes"])),
        "close" => Frame::Close { code: small(&frame["code"]), reason: text(&frame["reason"]) },
        "block" => Frame::Block(BlockFrame {
            number: small(&frame["number"]),
            tag: hex_number(&frame["tag"]),
            length: hex_number(&frame["length"]),
            digest: bytes(&frame["blake3"]),
        }),
        other => panic!("a frame of type {other}"),
    }
}
