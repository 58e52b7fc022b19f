//! Sealed datagrams of both directions and suites, and the golden ones.

use haulier_proto::credentials::Secret;
use haulier_proto::internals::{Frames, TrafficSecret};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const PROTOCOL: u64 = 7;
const CLIENT: WireId = WireId([1; 8]);
const SERVER: WireId = WireId([2; 8]);

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn opener(log: &str) -> Opener {
    Opener::new(KeyLog::read(log.as_bytes()).unwrap(), PROTOCOL)
}

/// A line of a key log with the first secret `[3; 32]`.
fn direction(kind: &str, suite: u8) -> String {
    format!("{kind} {} {} {suite} {}\n", hex(&CLIENT.0), hex(&SERVER.0), hex(&[3; 32]))
}

/// What an end of [`direction`] sends after this many key updates.
fn data(from: Role, number: u64, key_updates: u64, suite: Suite, frames: &[u8]) -> Vec<u8> {
    let mut secret = TrafficSecret::new(secret(3));
    for _ in 0..key_updates {
        secret = secret.next();
    }
    let to = if from == Role::Client { SERVER } else { CLIENT };
    let header = DataHeader { from, phase: key_updates % 2 == 1, to, number: number as u32 };
    let mut datagram = Vec::new();
    header.write(&mut datagram);
    let mut text = frames.to_vec();
    let tag = secret.key(suite).unwrap().seal(number, &datagram, &mut text).unwrap();
    [datagram, text, tag.to_vec()].concat()
}

fn frames(opened: &Opened, header_bytes: usize) -> &[u8] {
    &opened.datagram[header_bytes..opened.datagram.len() - 12]
}

#[test]
fn both_directions_and_both_suites_are_opened() {
    for (suite, number) in [(Suite::ChaCha20Poly1305, 0), (Suite::Aes256Gcm, 1)] {
        let mut opener = opener(&(direction("CLIENT", number) + &direction("SERVER", number)));
        for from in [Role::Client, Role::Server] {
            let sealed = data(from, 5, 0, suite, b"\x01");
            assert!(opener.knows(&sealed));
            let opened = opener.open(&sealed).unwrap();
            assert_eq!((opened.number, opened.key_updates), (Some(5), 0));
            assert_eq!(frames(&opened, DATA_HEADER_BYTES), b"\x01");
            assert!(is_open(PROTOCOL, &opened.datagram), "as in mode open");
            let sender = if from == Role::Client { CLIENT } else { SERVER };
            assert_eq!(opened.datagram[14..22], sender.0);
            // What is open already has nothing sealed in it.
            assert_eq!(opener.open(&opened.datagram), Err(Sealed::Nothing));
        }
    }
}

/// An update is followed in each direction by itself, with datagrams of the old key between those of the new
/// one; the header of what is written has phase 0, as mode `open` always has.
#[test]
fn key_updates_are_followed() {
    let mut opener = opener(&direction("CLIENT", 0));
    let suite = Suite::ChaCha20Poly1305;
    for (number, updates) in
        [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2), (5, 1), (6, 2), (7, 3), (8, 2)]
    {
        let opened = opener.open(&data(Role::Client, number, updates, suite, b"\x01")).unwrap();
        assert_eq!((opened.number, opened.key_updates), (Some(number), updates));
        assert_eq!(opened.datagram[0], 0x0c);
    }
}

/// A capture that began after many updates, and one with a pause.
#[test]
fn later_keys_are_searched_and_not_for_ever() {
    let suite = Suite::ChaCha20Poly1305;
    let mut late = opener(&direction("SERVER", 0));
    for updates in [41, 42, 42, 99] {
        let opened = late.open(&data(Role::Server, updates, updates, suite, b"\x01")).unwrap();
        assert_eq!(opened.key_updates, updates);
    }
    let mut flooded = opener(&direction("SERVER", 0));
    let mut forged = data(Role::Server, 1, 1, suite, b"\x01");
    forged[20] ^= 1;
    for _ in 0..40 {
        assert_eq!(flooded.open(&forged), Err(Sealed::WrongKey));
    }
    let far = data(Role::Server, 9, 2, suite, b"\x01");
    assert_eq!(flooded.open(&far), Err(Sealed::WrongKey), "the searches are used up");
    assert!(flooded.open(&data(Role::Server, 2, 1, suite, b"\x01")).is_ok(), "the next key is not");
}

#[test]
fn packet_numbers_grow_beyond_what_is_on_the_wire() {
    let mut opener = opener(&direction("CLIENT", 0));
    let suite = Suite::ChaCha20Poly1305;
    for number in [0, 1 << 31, 0xffff_fff0, (1 << 32) + 5, 0xffff_fff1, (1 << 32) + 6] {
        let opened = opener.open(&data(Role::Client, number, 0, suite, b"\x01")).unwrap();
        assert_eq!(opened.number, Some(number));
    }
}

#[test]
fn a_missing_key_is_told_from_a_wrong_one() {
    let mut opener = opener(&direction("CLIENT", 0));
    let mut sealed = data(Role::Client, 5, 0, Suite::ChaCha20Poly1305, b"\x01");
    let other_way = data(Role::Server, 5, 0, Suite::ChaCha20Poly1305, b"\x01");
    assert_eq!(opener.open(&other_way), Err(Sealed::NoKey));
    *sealed.last_mut().unwrap() ^= 1;
    assert_eq!(opener.open(&sealed), Err(Sealed::WrongKey));
    assert_eq!(opener.open(b"\x05 a retry, and all others in the clear"), Err(Sealed::Nothing));
    assert_eq!(opener.open(b""), Err(Sealed::Nothing));
}

/// A hello and a welcome that are sealed as Noise does: an ephemeral key, then nonce 0.
fn sealed_message(payload: &[u8]) -> Vec<u8> {
    let key = AeadKey::new(&secret(9), Suite::ChaCha20Poly1305).unwrap();
    let mut text = payload.to_vec();
    let tag = key.seal(0, b"hash so far", &mut text).unwrap();
    [vec![0x55; 32], text, tag.to_vec()].concat()
}

fn message_line(kind: &str) -> String {
    format!("{kind} {} {} {}\n", hex(&CLIENT.0), hex(&[9; 32]), hex(b"hash so far"))
}

#[test]
fn a_request_is_written_as_mode_open_has_it() {
    let hello = b"\x00\x04\x01\x00\x00\x00";
    let mut request = Vec::new();
    let parts = RequestParts {
        mode: Mode { source: Source::Secret, identity: true },
        client_id: CLIENT,
        cookie: Some([4; 20]),
        token: &[],
        hello_message: &sealed_message(hello),
        checked: &[],
        check: [0; 16],
    };
    assert!(parts.write(&mut request, |padding| padding.fill(0x99)));
    request.extend([0x77; 16]);
    let opened = opener(&message_line("HELLO")).open(&request).unwrap();
    let open = RequestParts::read(&opened.datagram).unwrap();
    assert_eq!(open.mode, Mode { source: Source::Open, identity: false });
    assert_eq!(
        (open.client_id, open.cookie, open.hello_message),
        (CLIENT, Some([4; 20]), &hello[..])
    );
    assert_eq!(open.check, open_check(PROTOCOL, open.checked));
    assert_eq!(opener("").open(&request), Err(Sealed::NoKey));
}

#[test]
fn a_response_is_opened_in_both_its_parts() {
    let welcome_message = sealed_message(b"\x0d\x08\x02\x02\x02\x02\x02\x02\x02\x02");
    let mut response = Vec::new();
    ResponseHeader { to: CLIENT, welcome_message: &welcome_message, number: 6 }
        .write(&mut response);
    let key = TrafficSecret::new(secret(3)).key(Suite::Aes256Gcm).unwrap();
    let mut text = b"\x01".to_vec();
    let tag = key.seal(6, &response, &mut text).unwrap();
    let response = [response, text, tag.to_vec()].concat();
    let log = message_line("WELCOME") + &direction("SERVER", 1);
    let opened = opener(&log).open(&response).unwrap();
    assert_eq!(opened.datagram.len(), MIN_RESPONSE_BYTES, "filled up with padding");
    let header = ResponseHeader::read(&opened.datagram).unwrap();
    assert_eq!(header.welcome_message[2..], SERVER.0);
    assert_eq!(frames(&opened, 25).last(), Some(&1));
    assert!(is_open(PROTOCOL, &opened.datagram));
    for half in [message_line("WELCOME"), direction("SERVER", 1)] {
        assert_eq!(opener(&half).open(&response), Err(Sealed::NoKey));
    }
}

/// The golden datagrams of another program, of both suites and with up to three key updates.
#[test]
fn the_golden_datagrams_are_opened() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/haulier1.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let noise = vectors["noise"].as_array().unwrap();
    let (mut opened, mut updated) = (0, 0);
    for row in vectors["data"].as_array().unwrap() {
        let number = u64::from_str_radix(&text(row, "packet_number")[2..], 16).unwrap();
        if row["mode"] == 0 {
            continue;
        }
        let handshake = noise.iter().find(|noise| noise["name"] == row["handshake"]).unwrap();
        let (kind, secret) = match row["from"] == "client" {
            true => ("CLIENT", text(handshake, "client_to_server")),
            false => ("SERVER", text(handshake, "server_to_client")),
        };
        let suite = &row["suite"];
        let (client, server) = (text(row, "client_id"), text(row, "server_id"));
        let log = format!("{kind} {client} {server} {suite} {secret}\n");
        let mut keys = KeyLog::read(log.as_bytes()).unwrap();
        let keys = match kind {
            "CLIENT" => std::mem::take(&mut keys.to_server),
            _ => std::mem::take(&mut keys.to_client),
        };
        let mut direction = Direction::new(keys.into_values().flatten().next().unwrap());
        direction.expected = number;
        let datagram = unhex(&text(row, "hex"));
        let header = DataHeader::read(&datagram).unwrap();
        let (associated, sealed, tag) = parts(&datagram, DATA_HEADER_BYTES).unwrap();
        let (number, phase) = (header.number, header.phase);
        let plain = direction.open(Ciphertext { number, phase, associated, text: sealed, tag });
        let plain = plain.unwrap_or_else(|| panic!("{}", row["name"]));
        assert_eq!(hex(&plain.frames), text(row, "plaintext"), "{}", row["name"]);
        assert_eq!(plain.key_updates, row["key_number"].as_u64().unwrap());
        opened += 1;
        updated += u32::from(plain.key_updates > 0);
    }
    assert!(opened > 20 && updated > 3, "{opened}, {updated}");
}

proptest! {
    /// Whatever is captured, and whatever the log says, nothing panics; and what is said to be opened reads
    /// as mode `open`.
    #[test]
    fn any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..1300), kind: u8, whole: bool) {
        let messages = message_line("HELLO") + &message_line("WELCOME");
        let directions = direction("CLIENT", 0) + &direction("SERVER", 1);
        let mut opener = opener(&(messages + &directions));
        if let Some(first) = bytes.first_mut() {
            *first = 4 + kind % 12;
        }
        if whole {
            bytes.resize(1200, 1);
            bytes[1..5].copy_from_slice(&1_u32.to_le_bytes());
        }
        if bytes.len() > 13 {
            bytes[1..9].copy_from_slice(&if kind & 1 == 0 { CLIENT.0 } else { SERVER.0 });
        }
        prop_assert!(opener.open(&bytes).is_err());
    }

    #[test]
    fn any_frames(number in 0_u64..1 << 31, frames in proptest::collection::vec(any::<u8>(), 0..100)) {
        let sealed = data(Role::Client, number, 0, Suite::ChaCha20Poly1305, &frames);
        let opened = opener(&direction("CLIENT", 0)).open(&sealed).unwrap();
        prop_assert_eq!(super::tests::frames(&opened, DATA_HEADER_BYTES), &frames);
        let _ = Frames::of(&frames).count();
    }
}
