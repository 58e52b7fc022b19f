//! `fragments.json`: fragment packets, packets that are sent whole, and packets cut into fragments and put
//! together again, in both encodings of the count.

use haulier_article::fragment::{Fragment, FragmentPool, Reassembler, split};
use haulier_article::packet::fragment::{FragmentPacket, RawFragmentPacket};
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{Instant, MAX_PACKET_BYTES, PacketDropReason, Sequence};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::three_types::{Abc4, Abc4Body};
use super::{hex, int, load, rows, size, text};
use crate::support::{data, framed};

const PROTOCOL: ProtocolId = ProtocolId::PACKETS;

pub(super) fn encode(fragment: Fragment<'_>, encoding: &Value) -> Vec<u8> {
    match text(encoding) {
        "raw" => framed(RawFragmentPacket(fragment), PROTOCOL),
        "minus1" => framed(FragmentPacket(fragment), PROTOCOL),
        other => panic!("unknown count encoding {other}"),
    }
}

pub(super) fn decode<'a>(
    bytes: &'a [u8],
    encoding: &Value,
) -> Result<Fragment<'a>, PacketDropReason> {
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
    assert_eq!(raw, Err(PacketDropReason::FragmentCountZero));
    let minus1 = framed(FragmentPacket(fragment), PROTOCOL);
    assert_eq!(packet::read(PROTOCOL, &minus1), Ok(FragmentPacket(fragment)));
}

/// STANDARD §5.1: type 0 is the fragment; the other three are the application's and never reassembled.
#[test]
fn another_packet_type_is_no_fragment() {
    let data = [1; 100];
    let fragment = Fragment::new(Sequence::new(9), 0, 1, &data).unwrap();
    let mut bytes = framed(FragmentPacket(fragment), PROTOCOL);
    bytes[6] |= 1; // the type's low bit, behind crc and sequence
    let crc = packet::checksum(PROTOCOL, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    let read = packet::read::<FragmentPacket<'_>>(PROTOCOL, &bytes);
    assert_eq!(read, Err(PacketDropReason::BadType));
}

/// The packet that a row describes.
fn regular(row: &Value) -> Abc4 {
    let number = |key: &str| i32::try_from(int(&row[key])).unwrap();
    let body = match int(&row["type"]) {
        1 => Abc4Body::A(["a", "b", "c"].map(number)),
        2 => Abc4Body::B((0..number("num_items")).map(|i| i * 7 % 201 - 100).collect()),
        _ => {
            let values = row["values"].as_array().unwrap();
            Abc4Body::C(std::array::from_fn(|i| values[i].as_f64().unwrap() as f32))
        }
    };
    Abc4 { sequence: u16::try_from(int(&row["sequence"])).unwrap(), body }
}

#[test]
fn regular_packets() {
    for row in rows(&load("fragments.json"), "regular_packets", 15) {
        let packet = regular(row);
        let bytes = framed(packet.clone(), PROTOCOL);
        assert_eq!(bytes.len(), size(&row["length"]), "{row}");
        assert_eq!(hex(&Sha256::digest(&bytes)), text(&row["sha256"]), "{row}");
        if let Some(expected) = row["hex"].as_str() {
            assert_eq!(hex(&bytes), expected);
        } else {
            assert_eq!(hex(&bytes[..64]), text(&row["first64_hex"]));
        }
        assert_eq!(packet::read_reassembled(PROTOCOL, &bytes), Ok(packet));
    }
}

/// Cut, compared with every fragment listed, read back, and put together in reverse order.
#[test]
fn split_packets() {
    let file = load("fragments.json");
    let regulars = rows(&file, "regular_packets", 15);
    for row in rows(&file, "split_packets", 8) {
        let of = regulars.iter().find(|regular| regular["name"] == row["packet"]).unwrap();
        let packet = framed(regular(of), PROTOCOL);
        assert_eq!(packet.len(), size(&row["packet_bytes"]));
        assert_eq!(hex(&Sha256::digest(&packet)), text(&row["packet_sha256"]));
        let sequence = Sequence::new(regular(of).sequence);
        let fragments: Vec<_> = split(sequence, &packet).unwrap().collect();
        assert_eq!(fragments.len(), size(&row["num_fragments"]));

        let encoding = &row["count_encoding"];
        let mut joined = Sha256::new();
        let mut datagrams = vec![];
        for (fragment, expected) in fragments.iter().zip(row["fragments"].as_array().unwrap()) {
            assert_eq!(fragment.index(), size(&expected["fragment_id"]));
            assert_eq!(fragment.data().len(), size(&expected["fragment_bytes"]));
            let bytes = encode(*fragment, encoding);
            assert_eq!(bytes.len(), size(&expected["length"]));
            assert_eq!(hex(&Sha256::digest(&bytes)), text(&expected["sha256"]));
            assert_eq!(hex(&bytes[..16]), text(&expected["first16_hex"]));
            joined.update(&bytes);
            datagrams.push(bytes);
        }
        assert_eq!(hex(&joined.finalize()), text(&row["concatenated_sha256"]));

        let (mut pool, mut peer) = (FragmentPool::default(), Reassembler::new());
        let mut whole = None;
        for bytes in datagrams.iter().rev() {
            assert_eq!(whole, None);
            let fragment = decode(bytes, encoding).unwrap();
            let put = peer.handle_fragment(Instant::ZERO, &fragment, &mut pool).unwrap();
            whole = put.map(<[u8]>::to_vec);
        }
        assert_eq!(whole.as_deref(), Some(&packet[..]));
        assert_eq!(packet::read_reassembled(PROTOCOL, &packet), Ok(regular(of)));
    }
}
