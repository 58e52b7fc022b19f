//! `packets.json`: payload and ack packets of the packet layer, whole, cut into fragments, and broken.

use haulier_article::ack::AckBits;
use haulier_article::fragment::{Fragment, FragmentPool, Reassembler, split};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{Instant, Sequence};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::fragments::encode;
use super::{hex, hex_number, int, load, rows, size, text, unhex};
use crate::support::{data, framed};

const PROTOCOL: ProtocolId = ProtocolId::PACKETS;

fn sequence(value: &Value) -> Sequence {
    Sequence::new(u16::try_from(int(value)).unwrap())
}

fn acks(row: &Value) -> Option<AckBits> {
    let bits = || u32::try_from(hex_number(&row["ack_bits"])).unwrap();
    (!row["ack"].is_null()).then(|| AckBits { ack: sequence(&row["ack"]), bits: bits() })
}

#[test]
fn packets_of_one_datagram() {
    for row in rows(&load("packets.json"), "cases", 41) {
        let payload = data(size(&row["sequence"]), size(&row["payload_bytes"]));
        let packet = match text(&row["packet"]) {
            "payload" => NumberedPacket::Payload {
                sequence: sequence(&row["sequence"]),
                acks: acks(row),
                payload: &payload,
            },
            _ => NumberedPacket::Ack(acks(row).unwrap()),
        };
        let bytes = framed(packet, PROTOCOL);
        assert_eq!(bytes.len(), size(&row["length"]), "{row}");
        assert_eq!(hex(&Sha256::digest(&bytes)), text(&row["sha256"]), "{row}");
        match row["hex"].as_str() {
            Some(expected) => assert_eq!(hex(&bytes), expected),
            None => assert_eq!(hex(&bytes[..64]), text(&row["first64_hex"])),
        }
        assert_eq!(packet::read(PROTOCOL, &bytes), Ok(packet), "{row}");
    }
}

#[test]
fn packets_of_many_fragments() {
    for row in rows(&load("packets.json"), "large", 7) {
        let payload = data(size(&row["sequence"]), size(&row["payload_bytes"]));
        let sequence = sequence(&row["sequence"]);
        let packet = NumberedPacket::Payload { sequence, acks: acks(row), payload: &payload };
        let bytes = framed(packet, PROTOCOL);
        assert_eq!(bytes.len(), size(&row["packet_bytes"]), "{row}");
        assert_eq!(hex(&Sha256::digest(&bytes)), text(&row["packet_sha256"]), "{row}");
        let fragments: Vec<Fragment<'_>> = split(sequence, &bytes).unwrap().collect();
        assert_eq!(fragments.len(), size(&row["num_fragments"]));
        let datagrams: Vec<Vec<u8>> =
            fragments.iter().map(|&fragment| encode(fragment, &"minus1".into())).collect();
        assert_eq!(hex(&Sha256::digest(datagrams.concat())), text(&row["concatenated_sha256"]));
        for expected in row["first_and_last"].as_array().unwrap() {
            let datagram = &datagrams[size(&expected["fragment_id"])];
            assert_eq!(datagram.len(), size(&expected["length"]));
            assert_eq!(hex(&Sha256::digest(datagram)), text(&expected["sha256"]));
        }
        let (mut pool, mut peer) = (FragmentPool::default(), Reassembler::new());
        for (i, datagram) in datagrams.iter().enumerate() {
            let FragmentPacket(fragment) = packet::read(PROTOCOL, datagram).unwrap();
            let whole = peer.handle_fragment(Instant::ZERO, &fragment, &mut pool).unwrap();
            assert_eq!(whole.is_some(), i + 1 == datagrams.len());
            if let Some(whole) = whole {
                assert_eq!(packet::read_reassembled(PROTOCOL, whole), Ok(packet));
            }
        }
    }
}

#[test]
fn broken_packets_are_refused_for_the_reason_listed() {
    for row in rows(&load("packets.json"), "malformed", 19) {
        let bytes = unhex(text(&row["hex"]));
        let read = packet::read::<NumberedPacket<'_>>(PROTOCOL, &bytes);
        let reason = read.expect_err(text(&row["name"]));
        assert_eq!(reason.name(), text(&row["reason"]), "{}", row["name"]);
        assert!(reason.is_hostile());
    }
}
