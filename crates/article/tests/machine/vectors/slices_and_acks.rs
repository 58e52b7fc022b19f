//! `slices.json` and `acks.json`: the two packets of the article wire, written and read.

use haulier_article::bits::{Measure, Stream};
use haulier_article::chunk::{Ack, ChunkId, Slice, SliceCount, SliceSet};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::{self, END_OF_PACKET, Packet, ProtocolId};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{hex, hex_number, load, rows, size, text};
use crate::support::{data, framed};

/// What the unified function measures, with the frame round it.
fn measure(packet: ArticlePacket<'_>) -> usize {
    let mut measure = Measure::new();
    packet.serialize(&mut measure).unwrap();
    measure.check(END_OF_PACKET).unwrap();
    4 + measure.bytes()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The packet is these bytes, and these bytes are the packet.
fn assert_golden(packet: ArticlePacket<'_>, bytes: &[u8], row: &Value) {
    assert_eq!(bytes.len(), size(&row["length"]), "length");
    assert_eq!(measure(packet), bytes.len(), "measured length");
    assert_eq!(packet::read(ProtocolId::ARTICLE, bytes), Ok(packet));
    if let Some(golden) = row["hex"].as_str() {
        assert_eq!(hex(bytes), golden);
    }
}

#[test]
fn slice_packets() {
    for row in rows(&load("slices.json"), "cases", 127) {
        let (id, index) = (size(&row["chunk_id"]), size(&row["slice_id"]));
        let count = SliceCount::new(size(&row["num_slices"])).unwrap();
        let end = index * 1024 + size(&row["slice_bytes"]);
        let chunk = data(id, end);
        let slice = Slice::new(
            ChunkId::new(u16::try_from(id).unwrap()),
            count.index(index).unwrap(),
            &chunk[index * 1024..],
        )
        .unwrap();
        assert_eq!(slice.index().is_last(), row["last"].as_bool().unwrap());

        let bytes = framed(ArticlePacket::Slice(slice), ProtocolId::ARTICLE);
        assert_golden(ArticlePacket::Slice(slice), &bytes, row);
        assert_eq!(sha256(&bytes), text(&row["sha256"]));
        assert_eq!(hex(&bytes[..bytes.len().min(64)]), text(&row["first64_hex"]));
        let crc = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        assert_eq!(u64::from(crc), hex_number(&row["crc"]));
    }
}

#[test]
fn whole_chunks() {
    for row in rows(&load("slices.json"), "chunks", 8) {
        let id = size(&row["chunk_id"]);
        let chunk = data(id, size(&row["size"]));
        let count = SliceCount::for_bytes(chunk.len()).unwrap();
        assert_eq!(count.get(), size(&row["num_slices"]));
        assert_eq!(sha256(&chunk), text(&row["chunk_sha256"]));
        let id = ChunkId::new(u16::try_from(id).unwrap());
        let packets: Vec<u8> = count
            .indices()
            .flat_map(|i| {
                framed(
                    ArticlePacket::Slice(Slice::of_chunk(id, i, &chunk).unwrap()),
                    ProtocolId::ARTICLE,
                )
            })
            .collect();
        assert_eq!(packets.len(), size(&row["wire_bytes_total"]));
        assert_eq!(sha256(&packets), text(&row["packets_concatenated_sha256"]));
    }
}

#[test]
fn ack_packets() {
    for row in rows(&load("acks.json"), "cases", 120) {
        let flags = text(&row["acked"]);
        let count = SliceCount::new(size(&row["num_slices"])).unwrap();
        let mut received = SliceSet::empty(count);
        for (index, flag) in count.indices().zip(flags.bytes()) {
            if flag == b'1' {
                received.insert(index);
            }
        }
        assert_eq!(received.len(), size(&row["num_acked"]));
        let chunk_id = ChunkId::new(u16::try_from(size(&row["chunk_id"])).unwrap());
        let packet = ArticlePacket::Ack(Ack { chunk_id, received });
        assert_golden(packet, &framed(packet, ProtocolId::ARTICLE), row);
    }
}
