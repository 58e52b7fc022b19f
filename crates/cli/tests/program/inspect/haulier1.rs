//! `inspect --wire haulier1`: the datagrams of a real handshake, as far as their protection shows them.

use std::net::SocketAddr;

use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::proto::server::ServerMachine;
use haulier::proto::{Instant, Machine};
use haulier::{Block, Credentials, Secret, ServerConfig, ServerCredentials, ServerEvent};
use serde_json::{Value, json};

use crate::support::haulier;

const PROTOCOL: u64 = 0x6861_756c_6669_6c65;

/// The first datagrams: a request, the responses with a block, the client's data.
fn handshake(credentials: Credentials, served: ServerCredentials) -> [Vec<Vec<u8>>; 3] {
    let (now, server, client) = (Instant::ZERO, "192.0.2.1:1", "192.0.2.2:2");
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let mut config = ClientConfig::new(at(server), PROTOCOL, credentials);
    config.copies = 1;
    config.request = b"HLF1\x01world".to_vec();
    let mut client_end = ClientMachine::new(now, config, [1; 32]).unwrap();
    let mut server_end =
        ServerMachine::new(now, 0, ServerConfig::new(PROTOCOL, served), [2; 32]).unwrap();
    let mut datagram = Vec::new();
    assert!(client_end.poll_datagram(now, &mut datagram).is_some());
    let requests = vec![datagram.clone()];
    server_end.handle_datagram(now, at(client), &mut datagram.clone()).unwrap();
    while let Some((id, event)) = server_end.poll_event(now) {
        if matches!(event, ServerEvent::Connecting { .. }) {
            let connection = server_end.connection_mut(id).unwrap();
            connection.send_block(now, &Block::new(7, vec![5; 100])).unwrap();
        }
    }
    let mut responses = Vec::new();
    while server_end.poll_datagram(now, &mut datagram).is_some() {
        responses.push(datagram.clone());
        client_end.handle_datagram(now, at(server), &mut datagram).unwrap();
    }
    let mut data = Vec::new();
    while client_end.poll_datagram(now, &mut datagram).is_some() {
        data.push(datagram.clone());
    }
    [requests, responses, data]
}

fn inspect(datagram: &[u8], options: &[&str]) -> Value {
    let hex: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
    let run = haulier(&[&["inspect", "--json", "--wire", "haulier1", &hex], options].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    run.events().remove(0)
}

#[test]
fn what_is_sealed_is_called_so() {
    let secret = Secret::from_bytes([9; 32]);
    let served = ServerCredentials::default().with_secret(secret.clone());
    let datagrams = handshake(Credentials::Secret { secret, identity: None }, served);
    let [request, response, data] = datagrams.map(|run| inspect(&run[0], &[]));
    assert_eq!((&request["packet"], &request["mode"]), (&json!("request"), &json!("secret")));
    assert_eq!((&request["cookie"], &request["identity"]), (&Value::Null, &json!(false)));
    assert!(request["sealed_bytes"].as_u64().unwrap() > 48, "{request}");
    assert_eq!((&response["packet"], &response["to"]), (&json!("response"), &request["from"]));
    assert!(response["sealed_bytes"].is_u64() && response["frames"].is_null(), "{response}");
    assert_eq!((&data["packet"], &data["from"]), (&json!("data"), &json!("client")));
    assert!(data["sealed_bytes"].is_u64() && data["frames"].is_null(), "{data}");
}

#[test]
fn what_is_open_is_shown() {
    let served = ServerCredentials::default().with_open_access();
    let [request, responses, data] = handshake(Credentials::Open, served);
    let said = inspect(&request[0], &[]);
    assert_eq!((&said["mode"], &said["idle_ms"]), (&json!("open"), &json!(15_000)));
    let names = |run: &[Vec<u8>]| -> Vec<String> {
        let said = run.iter().map(|datagram| inspect(datagram, &[])).collect::<Vec<_>>();
        let frames = said.iter().flat_map(|said| said["frames"].as_array().unwrap());
        frames.map(|frame| frame["frame"].as_str().unwrap().to_owned()).collect()
    };
    let sent = names(&responses);
    assert!(sent.contains(&"block".into()) && sent.contains(&"last_slice".into()), "{sent:?}");
    assert!(names(&data).contains(&"ack".into()));
    // Under another id it looks like a sealed one; of a request, the check is visible.
    let other = ["--protocol-id", "7"];
    assert!(inspect(&data[0], &other)["sealed_bytes"].is_u64());
    assert_eq!(inspect(&request[0], &other)["drop"], "bad_check_value");
}

#[test]
fn what_is_nothing_is_dropped_with_the_reason() {
    for (datagram, drop) in [
        (&[][..], "too_short"),
        (&[0x50; 30], "unknown_kind"),
        (&[0x04; 30], "wrong_length"),
        (&[0x08; 10], "truncated"),
        (&[0x0c; 20], "truncated"),
        (&[0x05; 1201], "too_long"),
    ] {
        let said = inspect(datagram, &[]);
        assert_eq!(said, json!({ "ok": false, "wire": "haulier1", "drop": drop }));
    }
}

#[test]
fn what_belongs_to_the_other_wire_is_refused() {
    let run =
        |options: &[&str]| haulier(&[&["inspect", "--json", "40"], options].concat()).error(2);
    assert!(run(&["--wire", "haulier1", "--raw-count"]).contains("for the article wire"));
    assert!(run(&["--wire", "haulier1", "--layer", "chunks"]).contains("for the article wire"));
    assert!(run(&["--protocol-id", "0x123456789"]).contains("32 bits"));
}

/// The golden datagrams of mode `open`: every one is read, with the frames that it was made of.
#[test]
fn golden_datagrams_are_read_whole() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/haulier1.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let protocol_id = ["--protocol-id", golden["protocol_id"].as_str().unwrap()];
    let rows = ["data", "responses"].map(|table| golden[table].as_array().unwrap().iter());
    let rows: Vec<&Value> = rows.into_iter().flatten().filter(|row| row["mode"] == 0).collect();
    assert_eq!(rows.len(), 20);
    let hex: Vec<&str> = rows.iter().map(|row| row["hex"].as_str().unwrap()).collect();
    let options = ["inspect", "--json", "--wire", "haulier1"];
    let run = haulier(&[&options[..], &protocol_id, &hex].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    for (said, row) in run.events().iter().zip(&rows) {
        assert_eq!(said["ok"], true, "{row}: {said}");
        let frames = row["frames"].as_array().unwrap();
        assert_eq!(said["frames"].as_array().unwrap().len(), frames.len(), "{row}: {said}");
        for (said, frame) in said["frames"].as_array().unwrap().iter().zip(frames) {
            check_frame(said, frame);
        }
    }
}

/// Places in line, beside the refusals that share their first byte.
#[test]
fn golden_places_in_line_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/haulier1.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for row in golden["in_lines"].as_array().unwrap() {
        let hex = row["hex"].as_str().unwrap();
        let id = golden["protocol_id"].as_str().unwrap();
        let run = haulier(&["inspect", "--json", "--wire", "haulier1", "--protocol-id", id, hex]);
        let said = &run.events()[0];
        assert_eq!(said["packet"], "in_line", "{said}");
        for key in ["place", "estimate_ms", "again_ms"] {
            assert_eq!(said[key], row[key], "{key} of {said}");
        }
        let check = if row["secret"].is_null() { "open" } else { "sealed" };
        assert_eq!((&said["check"], &said["to"]), (&json!(check), &row["client_id"]));
    }
}

/// What both say of a frame by the same name is the same.
fn check_frame(said: &Value, frame: &Value) {
    let (name, bytes) = match frame["type"].as_str().unwrap() {
        "ack_ecn" => ("ack", None),
        "unknown" => ("ignored", None),
        "padding" => ("padding", Some(frame["count"].as_u64().unwrap())),
        name => (name, None),
    };
    assert_eq!(said["frame"], name, "{frame}");
    let bytes = bytes.or_else(|| Some(frame["data"].as_str()?.len() as u64 / 2));
    for (key, expected) in frame.as_object().unwrap() {
        let value = &said[key];
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let expected = expected.as_str().and_then(number).or(expected.as_u64());
        if let (Some(expected), true) = (expected, key != "type" && value.is_u64()) {
            assert_eq!(value.as_u64(), Some(expected), "{key} of {said}");
        }
    }
    if let (Some(bytes), true) = (bytes, name != "close") {
        assert_eq!(said["bytes"], bytes, "{said}");
    }
}

/// Data of a server in mode `open` with these frames.
fn open_data(frames: &[u8]) -> Vec<u8> {
    let mut datagram = [&[0x0e][..], &[1; 8], &77_u32.to_le_bytes(), frames].concat();
    let tag = haulier::proto::internals::open_tag(PROTOCOL, [2; 8], &datagram);
    datagram.extend(tag);
    datagram
}

/// The number of an arrival has 32 bits, and small ones once showed as no arrivals at all.
#[test]
fn arrivals_of_any_number_are_shown() {
    for number in [0, 5, (1 << 31) - 1, 1 << 31, u32::MAX] {
        let frame = [&[4][..], &number.to_le_bytes(), &9_u32.to_le_bytes(), &[0]].concat();
        let said = inspect(&open_data(&frame), &[]);
        assert_eq!(said["frames"][0]["arrivals"], json!([[number, 9]]), "{said}");
    }
}

/// H-4a: no frame at all is dropped.
#[test]
fn data_without_a_frame_is_dropped() {
    let said = inspect(&open_data(&[]), &[]);
    assert_eq!(said, json!({ "ok": false, "wire": "haulier1", "drop": "too_short" }));
}
