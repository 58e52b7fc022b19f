//! The packet layer under `inspect`: fragments in both encodings, payload packets, ack packets, and how
//! they are distinguished from chunks.

use haulier_article::{ProtocolId, packet};
use serde_json::{Value, json};

use super::{bad_crc, inspect, refused, rows};
use crate::support::haulier;

/// The examples of STANDARD: fragment 1 of 2 (§5.2), two payload packets and their acks (§9.7).
const FRAGMENT: &str = "74 64 ec a7  01 01  04 04 00  58 ff a6 4d f4 9b 42 e9 90 37";
const PAYLOAD: &str = "b4 f4 c5 61  01 01 01  6a 75 6d 70  e2 ac 08 99";
const PAYLOAD_WITH_ACKS: &str = "88 0c 07 d9  02 01 25 03 08 00 00 00 04  6a 75 6d 70  e2 ac 08 99";
const ACKS: &str = "dd dd cc 5a  00 00 92 01 04 00 00 00 02  e2 ac 08 99";

/// The same fragment as the 2016 original writes it.
const RAW_FRAGMENT: &str = "f529e6a2010104080058ffa64df49b42e99037";

/// A slice of a chunk (§4.3).
const SLICE: &str = "75be2b4800020a0a0c006861756c696572e2ac0899";

/// A datagram of these bytes behind the right checksum.
fn framed(protocol: u32, body: &str) -> String {
    let digits: String = body.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    let crc = packet::checksum(ProtocolId(protocol), &bytes);
    format!("{:08x}{digits}", crc.swap_bytes())
}

/// What is said of one datagram.
fn said(args: &[&str]) -> Value {
    let run = haulier(&[&["inspect", "--json"], args].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    run.events().remove(0)
}

fn text(args: &[&str]) -> String {
    haulier(&[&["inspect"], args].concat()).text().to_owned()
}

#[test]
fn golden_fragments() {
    for (encoding, count, options) in [("minus1", 39, &[][..]), ("raw", 37, &["--raw-count"])] {
        let mut rows = rows("fragments.json");
        rows.retain(|(_, row)| row["count_encoding"] == encoding);
        assert_eq!(rows.len(), count);
        for (said, (_, row)) in inspect(&rows, options).iter().zip(&rows) {
            let expected = json!({
                "ok": true,
                "layer": "packets",
                "packet": "fragment",
                "sequence": row["sequence"],
                "fragment": row["fragment_id"],
                "fragments": row["num_fragments"],
                "bytes": row["fragment_bytes"],
            });
            assert_eq!(*said, expected);
        }
    }
}

/// The layer is said, because the foreign protocol id in these rows is that of chunks.
#[test]
fn malformed_fragments() {
    let default = ["--layer", "packets"];
    let raw = ["--layer", "packets", "--raw-count"];
    for (encoding, count, options) in [("minus1", 16, &default[..]), ("raw", 18, &raw)] {
        let mut rows = rows("malformed.json");
        rows.retain(|(_, row)| row["count_encoding"] == encoding);
        assert_eq!(rows.len(), count);
        for (said, (_, row)) in inspect(&rows, options).iter().zip(&rows) {
            let expected = match row["reason"].as_str().unwrap() {
                "bad_crc" => bad_crc(&["0x55667788"]),
                reason => refused(reason, "packets"),
            };
            assert_eq!(*said, expected, "{row}");
        }
    }
}

#[test]
fn malformed_packets_that_are_no_fragments() {
    let bodies = [
        ("0101 01  6a756d70 e2ac0898", "bad_check"),
        ("0101 01  6a756d70 e2ac0899 00", "bad_check"),
        ("0101 09  6a756d70 e2ac0899", "nonzero_padding"),
        ("0101 01  e2ac08", "truncated"),
        ("0101 03  6a756d70 e2ac0899", "bad_type"),
        ("0000 92 01 04 00 00 00 02  e2ac0899 00", "trailing_bytes"),
        ("0000 92 01 04 00 00", "truncated"),
        ("0100 92 01 04 00 00 00 02  e2ac0899", "out_of_range"),
    ];
    for (body, reason) in bodies {
        assert_eq!(said(&[&framed(0x5566_7788, body)]), refused(reason, "packets"), "{body}");
    }
}

#[test]
fn the_worked_examples_of_the_standard() {
    let run = haulier(&["inspect", "--json", FRAGMENT, PAYLOAD, PAYLOAD_WITH_ACKS, ACKS]);
    let bits = 0x8000_0001_u32;
    let expected = [
        json!({
            "ok": true, "layer": "packets", "packet": "fragment", "sequence": 257,
            "fragment": 1, "fragments": 2, "bytes": 10,
        }),
        json!({
            "ok": true, "layer": "packets", "packet": "payload", "sequence": 257,
            "ack": null, "ack_bits": null, "acks": [], "bytes": 4,
        }),
        json!({
            "ok": true, "layer": "packets", "packet": "payload", "sequence": 258,
            "ack": 100, "ack_bits": bits, "acks": [100, 99, 68], "bytes": 4,
        }),
        json!({
            "ok": true, "layer": "packets", "packet": "acks",
            "ack": 100, "ack_bits": bits, "acks": [100, 99, 68],
        }),
    ];
    assert_eq!(run.events(), expected);
    assert_eq!(run.code, Some(0));
}

/// Datagrams of both layers in one run, each read as what it is.
#[test]
fn as_text_every_field_is_named() {
    let run = haulier(&[
        "inspect",
        PAYLOAD,
        PAYLOAD_WITH_ACKS,
        SLICE,
        ACKS,
        FRAGMENT,
        "85ab834f0900000000",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let expected = "\
payload packet, 15 bytes
  crc      0x61c5f4b4, right for protocol id 0x55667788
  sequence 257
  type     1, a payload packet
  has acks no
  payload  4 bytes: 6a756d70
payload packet, 21 bytes
  crc      0xd9070c88, right for protocol id 0x55667788
  sequence 258
  type     1, a payload packet
  has acks yes
  ack      100
  ack bits 0x80000001
  acked    100, 99, 68
  payload  4 bytes: 6a756d70
slice packet, 21 bytes
  crc      0x482bbe75, right for protocol id 0x11223344
  chunk    256
  slice    5 of 6
  data     7 bytes: 6861756c696572
ack packet, 17 bytes
  crc      0x5accdddd, right for protocol id 0x55667788
  sequence 0, it has none
  type     2, an ack packet of the packet layer
  ack      100
  ack bits 0x80000001
  acked    100, 99, 68
fragment packet, 19 bytes
  crc      0xa7ec6474, right for protocol id 0x55667788
  sequence 257
  type     0, a fragment
  fragment 1 of 2
  data     10 bytes: 58ffa64df49b42e99037
dropped, 9 bytes, read as packets: fragment_empty (a fragment has at least 1 byte)
";
    assert_eq!(run.text(), expected);
}

/// Every refusal that only this layer knows has a sentence, not its own name again.
#[test]
fn as_text_refusals_are_explained() {
    let mut rows = rows("malformed.json");
    rows.retain(|(_, row)| row["layer"] == "fragment" && row["crc_valid"] == true);
    for (hex, row) in &rows {
        let raw: &[&str] = if row["count_encoding"] == "raw" { &["--raw-count"] } else { &[] };
        let (text, reason) = (text(&[raw, &[hex]].concat()), row["reason"].as_str().unwrap());
        let (_, sentence) = text.split_once(&format!(": {reason} (")).expect(reason);
        assert!(!sentence.contains(&reason.replace('_', " ")), "{text}");
    }
    let type_3 = text(&[&framed(0x5566_7788, "0100 03  6a756d70 e2ac0899")]);
    assert!(type_3.contains("read as packets: bad_type (a packet is of type 0, "), "{type_3}");
    let numbered_ack = text(&[&framed(0x5566_7788, "0100 92 01 04 00 00 00 02 e2ac0899")]);
    assert!(numbered_ack.contains("an ack packet must have sequence 0"), "{numbered_ack}");
}

/// The commonest mistake with the two encodings, from either side.
#[test]
fn a_fragment_in_the_other_encoding_says_what_to_try() {
    assert_eq!(said(&[RAW_FRAGMENT]), refused("middle_fragment_not_full", "packets"));
    assert!(text(&[RAW_FRAGMENT]).contains("Try --raw-count)"));
    assert_eq!(said(&["--raw-count", FRAGMENT]), refused("fragment_id_out_of_range", "packets"));
    assert!(text(&["--raw-count", FRAGMENT]).contains("Leave out --raw-count)"));
    let one_of_one = "e2dff4f6000000000007";
    assert_eq!(said(&["--raw-count", one_of_one]), refused("fragment_count_zero", "packets"));
    assert!(text(&["--raw-count", one_of_one]).contains("Leave out --raw-count)"));
}

/// 33 packets, across the turn of the numbers; and no payload.
#[test]
fn everything_acknowledged_is_listed() {
    // has acks, ack 1, all bits: 1 + 16 + 32 bits behind two of the type.
    let packet = framed(0x5566_7788, "0000 0d 00 f8 ff ff ff 07 e2ac0899");
    let newest_first: Vec<u16> = (0..33).map(|back| 1_u16.wrapping_sub(back)).collect();
    let object = said(&[&packet]);
    assert_eq!((&object["acks"], &object["bytes"]), (&json!(newest_first), &json!(0)));
    let text = text(&[&packet]);
    assert!(text.contains("  acked    1, 0, 65535, 65534, "), "{text}");
    assert!(text.ends_with("  payload  0 bytes\n"), "{text}");
}

#[test]
fn one_layer_is_tried_when_one_is_asked_for() {
    assert_eq!(said(&["--layer", "packets", SLICE]), bad_crc(&["0x55667788"]));
    assert_eq!(said(&["--layer", "chunks", PAYLOAD]), bad_crc(&["0x11223344"]));
    assert_eq!(said(&["--layer", "packets", PAYLOAD])["packet"], "payload");
    assert_eq!(said(&["--layer", "chunks", SLICE])["packet"], "slice");
    let sentence = text(&["--layer", "packets", SLICE]);
    assert!(sentence.contains("its protocol id is not 0x55667788)"), "{sentence}");
}

/// With one id for both layers the checksum no longer distinguishes them.
#[test]
fn with_a_protocol_id_of_its_own_a_datagram_is_what_accepts_it() {
    let id = ["--protocol-id", "0xcafe"];
    let with = |more: &[&str], datagram: &str| said(&[&id[..], more, &[datagram]].concat());
    let slice = framed(0xcafe, &SLICE[8..]);
    let fragment = framed(0xcafe, &RAW_FRAGMENT[8..]);
    let payload = framed(0xcafe, "0101 01 6a756d70 e2ac0899");
    assert_eq!(with(&[], &slice)["packet"], "slice");
    assert_eq!(with(&[], &payload)["packet"], "payload");
    assert_eq!(with(&["--raw-count"], &fragment)["packet"], "fragment");
    // A chunk of one byte can be read as a fragment: chunks go first, and `--layer` has the last word.
    let both = framed(0xcafe, "00 00 00 00 00 00 2a e2 ac 08 99");
    assert_eq!(with(&[], &both)["packet"], "slice");
    assert_eq!(with(&["--layer", "packets"], &both)["packet"], "fragment");
    // What neither accepts is refused as chunks, unless the layer is said.
    let empty = framed(0xcafe, "0900 00 00 00");
    assert_eq!(with(&[], &empty), refused("truncated", "chunks"));
    assert_eq!(with(&["--layer", "packets"], &empty), refused("fragment_empty", "packets"));
    assert_eq!(with(&[], SLICE), bad_crc(&["0x0000cafe"]));
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let message = haulier(&["inspect", "--json", "--layer", "slices", SLICE]).error(2);
    assert!(message.contains("[possible values: chunks, packets]"), "{message}");
    let message =
        haulier(&["inspect", "--json", "--raw-count", "--layer", "chunks", SLICE]).error(2);
    assert!(message.contains("--layer chunks has none"), "{message}");
    let run = haulier(&["inspect", "--raw-count", "--layer", "chunks", SLICE]);
    assert_eq!((run.code, run.stdout.len()), (Some(2), 0), "{}", run.what);
    assert_eq!(run.stderr, format!("haulier: {message}\n"));
}
