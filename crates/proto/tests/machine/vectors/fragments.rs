//! `fragments.json`: the fragment packets and the fragments of the split packets, in both encodings of
//! the count. (Splitting and reassembly are not part of the machine yet.)

use haulier_proto::packet::fragment::{Fragment, FragmentPacket, RawFragmentPacket};
use haulier_proto::packet::{self, Packet, ProtocolId};
use haulier_proto::{DropReason, MAX_PACKET_BYTES, Sequence};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{hex, load, rows, size, text};
use crate::support::data;

const PROTOCOL: ProtocolId = ProtocolId(0x5566_7788);

fn write<'a, P: Packet<'a>>(packet: P) -> Vec<u8> {
    let mut out = vec![0; MAX_PACKET_BYTES];
    let length = packet::write(packet, PROTOCOL, &mut out).unwrap();
    out.truncate(length);
    out
}

fn encode(fragment: Fragment<'_>, encoding: &Value) -> Vec<u8> {
    match text(encoding) {
        "raw" => write(RawFragmentPacket(fragment)),
        "minus1" => write(FragmentPacket(fragment)),
        other => panic!("unknown count encoding {other}"),
    }
}

fn decode<'a>(bytes: &'a [u8], encoding: &Value) -> Result<Fragment<'a>, DropReason> {
    match text(encoding) {
        "raw" => packet::read::<RawFragmentPacket<'_>>(PROTOCOL, bytes).map(|packet| packet.0),
        _ => packet::read::<FragmentPacket<'_>>(PROTOCOL, bytes).map(|packet| packet.0),
    }
}

#[test]
fn fragment_packets() {
    for row in rows(&load("fragments.json"), "cases", 177) {
        let (sequence, index) = (size(&row["sequence"]), size(&row["fragment_id"]));
        let packet = data(sequence, index * 1024 + size(&row["fragment_bytes"]));
        let fragment = Fragment::new(
            Sequence::new(u16::try_from(sequence).unwrap()),
            index,
            size(&row["num_fragments"]),
            &packet[index * 1024..],
        )
        .unwrap();
        let bytes = encode(fragment, &row["count_encoding"]);
        assert_eq!(bytes.len(), size(&row["length"]));
        assert_eq!(hex(&Sha256::digest(&bytes)), text(&row["sha256"]));
        assert_eq!(hex(&bytes[..bytes.len().min(64)]), text(&row["first64_hex"]));
        assert_eq!(decode(&bytes, &row["count_encoding"]), Ok(fragment));
    }
}

#[test]
fn the_original_encoding_cannot_say_256() {
    let data = [1; 1024];
    let fragment = Fragment::new(Sequence::new(9), 0, 256, &data).unwrap();
    let mut out = [0; MAX_PACKET_BYTES];
    let raw = packet::write(RawFragmentPacket(fragment), PROTOCOL, &mut out);
    assert_eq!(raw, Err(DropReason::FragmentCountZero));
    let minus1 = write(FragmentPacket(fragment));
    assert_eq!(packet::read(PROTOCOL, &minus1), Ok(FragmentPacket(fragment)));
}

/// STANDARD §5.1: type 0 is the fragment; the other three are the application's and never reassembled.
#[test]
fn another_packet_type_is_no_fragment() {
    let data = [1; 100];
    let mut bytes = write(FragmentPacket(Fragment::new(Sequence::new(9), 0, 1, &data).unwrap()));
    bytes[6] |= 1; // the type's low bit, behind crc and sequence
    let crc = packet::checksum(PROTOCOL, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    let read = packet::read::<FragmentPacket<'_>>(PROTOCOL, &bytes);
    assert_eq!(read, Err(DropReason::BadType));
}
