//! What the packet layer sends: fragments, payload packets and ack packets (STANDARD §5 and §9), as
//! JSON and in words.
//!
//! Its ack packet is `"acks"` in JSON, because `"ack"` was taken by that of chunks, which has other
//! fields.

use haulier_article::ack::AckBits;
use haulier_article::fragment::Fragment;
use haulier_article::packet::fragment::{FragmentPacket, RawFragmentPacket};
use haulier_article::packet::numbered::{NumberedPacket, claims_to_be_fragment};
use haulier_article::{PacketDropReason, ProtocolId, packet};
use serde_json::{Value, json};

use super::{Words, preview};

pub(super) enum LayerPacket<'a> {
    Fragment(Fragment<'a>),
    Numbered(NumberedPacket<'a>),
}

/// Reads as an endpoint does, but that it can read the count of the 2016 original too.
pub(super) fn read(
    protocol: ProtocolId,
    raw_count: bool,
    datagram: &[u8],
) -> Result<LayerPacket<'_>, PacketDropReason> {
    if !claims_to_be_fragment(datagram) {
        return packet::read(protocol, datagram).map(LayerPacket::Numbered);
    }
    let fragment = if raw_count {
        packet::read(protocol, datagram).map(|RawFragmentPacket(fragment)| fragment)
    } else {
        packet::read(protocol, datagram).map(|FragmentPacket(fragment)| fragment)
    };
    fragment.map(LayerPacket::Fragment)
}

pub(super) fn in_json(packet: &LayerPacket<'_>) -> Value {
    match packet {
        LayerPacket::Fragment(fragment) => json!({
            "packet": "fragment",
            "sequence": fragment.sequence().get(),
            "fragment": fragment.index(),
            "fragments": fragment.count(),
            "bytes": fragment.data().len(),
        }),
        LayerPacket::Numbered(NumberedPacket::Payload { sequence, acks, payload }) => json!({
            "packet": "payload",
            "sequence": sequence.get(),
            "ack": acks.map(|acks| acks.ack.get()),
            "ack_bits": acks.map(|acks| acks.bits),
            "acks": acks.map(acked).unwrap_or_default(),
            "bytes": payload.len(),
        }),
        LayerPacket::Numbered(NumberedPacket::Ack(acks)) => json!({
            "packet": "acks",
            "ack": acks.ack.get(),
            "ack_bits": acks.bits,
            "acks": acked(*acks),
        }),
    }
}

pub(super) fn in_words(packet: &LayerPacket<'_>) -> Words {
    match packet {
        LayerPacket::Fragment(fragment) => Words {
            title: "fragment packet",
            fields: vec![
                ("sequence", fragment.sequence().get().to_string()),
                ("type", "0, a fragment".into()),
                ("fragment", format!("{} of {}", fragment.index(), fragment.count())),
                ("data", preview(fragment.data())),
            ],
        },
        LayerPacket::Numbered(NumberedPacket::Payload { sequence, acks, payload }) => {
            let mut fields = vec![
                ("sequence", sequence.get().to_string()),
                ("type", "1, a payload packet".into()),
                ("has acks", if acks.is_some() { "yes" } else { "no" }.into()),
            ];
            fields.extend(acks.map(ack_fields).into_iter().flatten());
            fields.push(("payload", preview(payload)));
            Words { title: "payload packet", fields }
        }
        LayerPacket::Numbered(NumberedPacket::Ack(acks)) => {
            let mut fields = vec![
                ("sequence", "0, it has none".to_owned()),
                ("type", "2, an ack packet of the packet layer".into()),
            ];
            fields.extend(ack_fields(*acks));
            Words { title: "ack packet", fields }
        }
    }
}

/// The two fields as they are, then what they mean together.
fn ack_fields(acks: AckBits) -> [(&'static str, String); 3] {
    let acked: Vec<_> = acked(acks).iter().map(u16::to_string).collect();
    [
        ("ack", acks.ack.get().to_string()),
        ("ack bits", format!("{:#010x}", acks.bits)),
        ("acked", acked.join(", ")),
    ]
}

/// Everything they acknowledge, newest first.
fn acked(acks: AckBits) -> Vec<u16> {
    acks.sequences().map(|sequence| sequence.get()).collect()
}
