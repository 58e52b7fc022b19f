//! `haulier1.json`: the fields and frames of the datagrams of haulier/1; each is read, and written again.

use std::time::Duration;

use haulier_proto::DropReason;
use haulier_proto::connection::RefusalCode;
use haulier_proto::internals::frames::{Frame, Frames};
use haulier_proto::internals::{
    DataHeader, EndParameters, Hello, InLine, Kind, Refusal, RequestParts, ResponseHeader, Retry,
    Welcome, WireId, read_reset, write_reset,
};
use serde_json::Value;

use super::frames::{content, frame_of, number};
use crate::load::{hex, hex_number, load, rows, size, text, unhex};

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    unhex(text(value)).try_into().unwrap()
}

fn id(value: &Value) -> WireId {
    WireId(bytes(value))
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
            assert_hello(parts.hello_message, &row["hello"], name);
        }
    }
}

#[test]
fn responses_their_welcomes_and_frames() {
    let file = load("haulier1.json");
    for row in rows(&file, "responses", 18) {
        let (name, datagram) = (text(&row["name"]), unhex(text(&row["hex"])));
        let message = unhex(text(&row["welcome_message"]));
        let header = ResponseHeader::read(&datagram).unwrap();
        assert_eq!(header.to, id(&row["client_id"]), "{name}");
        assert_eq!(header.welcome_message, message, "{name}");
        assert_eq!(u64::from(header.number), low(&row["packet_number"]), "{name}");
        let mut again = Vec::new();
        header.write(&mut again);
        assert_eq!(again, datagram[..again.len()], "{name}");
        if size(&row["mode"]) == 0 {
            assert_welcome(&message, &row["welcome"], name);
        }
        assert_frames(row);
    }
}

#[test]
fn data_and_their_frames() {
    let file = load("haulier1.json");
    for row in rows(&file, "data", 59) {
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
    for row in rows(&file, "refusals", 48) {
        let datagram = unhex(text(&row["hex"]));
        let refusal = Refusal::read(&datagram).unwrap();
        assert_eq!(usize::from(refusal.code.byte()), size(&row["code"]), "{}", row["name"]);
        assert_eq!(refusal.to, id(&row["client_id"]), "{}", row["name"]);
        assert_eq!(refusal.check, bytes(&row["check"]), "{}", row["name"]);
        let versions = row["versions"].as_array().unwrap().iter().map(number::<u32>);
        assert!(refusal.versions.iter().eq(versions), "{}", row["name"]);
    }
    for row in rows(&file, "in_lines", 7) {
        let datagram = unhex(text(&row["hex"]));
        let (line, checked, check) = InLine::read(&datagram).unwrap();
        let in_ms = |key: &str| row[key].as_u64().map(Duration::from_millis);
        assert_eq!(line.to, id(&row["client_id"]), "{}", row["name"]);
        assert_eq!(line.place.map(u64::from), row["place"].as_u64(), "{}", row["name"]);
        assert_eq!((line.estimate, Some(line.again)), (in_ms("estimate_ms"), in_ms("again_ms")));
        assert_eq!(check, bytes(&row["check"]), "{}", row["name"]);
        line.write(&mut again);
        assert_eq!(again, checked);
        assert!(Refusal::read(&datagram).is_err(), "it is no refusal");
    }
    for row in rows(&file, "version_answers", 5) {
        let datagram = unhex(text(&row["hex"]));
        let answer = Refusal::read(&datagram).unwrap();
        assert_eq!((answer.to, answer.code), (id(&row["client_id"]), RefusalCode::Version));
        let versions = row["versions"].as_array().unwrap().iter().map(number::<u32>);
        assert!(answer.versions.iter().eq(versions));
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
    let rows: Vec<_> = row["frames"].as_array().unwrap().iter().collect();
    let contents: Vec<Vec<u8>> = rows.iter().map(|frame| content(frame)).collect();
    let copies = |frame: &Value| match text(&frame["type"]) {
        "padding" => size(&frame["count"]),
        _ => 1,
    };
    let frames = rows.iter().zip(&contents);
    let expected: Vec<Frame<'_>> = frames
        .flat_map(|(frame, content)| std::iter::repeat_n(frame_of(frame, content), copies(frame)))
        .collect();
    let frames: Vec<_> = Frames::of(&plaintext).map(Result::unwrap).collect();
    assert!(frames == expected, "{name}");
    let mut again = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut again));
    assert!(again == plaintext, "{name}");
}

/// What an end says about itself.
fn assert_end(end: &EndParameters, row: &Value, name: &str) {
    let said = [
        ("idle_ms", end.idle_timeout.as_millis() as u64),
        ("largest_block", end.max_block_bytes),
        ("largest_datagram", end.max_datagram_bytes.into()),
        ("max_ack_delay_ms", end.max_ack_delay.as_millis() as u64),
        ("credit", end.credit),
        ("receive_buffer", end.receive_buffer_bytes),
        ("channels", end.channels.into()),
        ("channel_bytes", end.channel_bytes),
        ("repair_codes", end.repair_codes),
        ("announced_blocks", end.announced_blocks.into()),
    ];
    for (field, value) in said {
        assert_eq!(value, number::<u64>(&row[field]), "{name}: {field}");
    }
}

fn assert_hello(bytes: &[u8], row: &Value, name: &str) {
    let hello = Hello::read(bytes).unwrap();
    assert_end(&hello.end, row, name);
    assert_eq!(u64::from(hello.suites.bits() & 3), number::<u64>(&row["suites"]) & 3, "{name}");
    let versions = row["versions"].as_array().unwrap().iter().map(number::<u32>);
    assert!(hello.versions.iter().eq(versions), "{name}");
    assert_eq!(hex(hello.request), text(&row["request"]), "{name}");
    let roots = row["roots"].as_array().unwrap().iter().map(|root| unhex(text(root)));
    assert!(hello.roots.iter().map(|root| root.to_vec()).eq(roots), "{name}");
    let mut again = Vec::new();
    hello.write(&mut again);
    assert_eq!(Hello::read(&again), Ok(hello), "{name}");
}

fn assert_welcome(bytes: &[u8], row: &Value, name: &str) {
    let welcome = Welcome::read(bytes).unwrap();
    assert_end(&welcome.end, row, name);
    assert_eq!(welcome.server_id, id(&row["server_id"]), "{name}");
    assert_eq!(welcome.suite as u64, number::<u64>(&row["suite"]), "{name}");
    let mut again = Vec::new();
    welcome.write(&mut again);
    assert_eq!(Welcome::read(&again), Ok(welcome), "{name}");
}

#[test]
fn hellos_and_welcomes() {
    let file = load("haulier1.json");
    for row in rows(&file, "hellos", 11) {
        assert_hello(&unhex(text(&row["hex"])), &row["parameters"], text(&row["name"]));
    }
    for row in rows(&file, "welcomes", 7) {
        assert_welcome(&unhex(text(&row["hex"])), &row["parameters"], text(&row["name"]));
    }
    for row in rows(&file, "broken_parameters", 36) {
        let bytes = unhex(text(&row["hex"]));
        let is_refused = match text(&row["in"]) {
            "hello" => Hello::read(&bytes).is_err(),
            _ => Welcome::read(&bytes).is_err(),
        };
        assert!(is_refused, "{}", row["name"]);
    }
}
