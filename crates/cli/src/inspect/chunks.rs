//! What the chunk system sends: slices and acks of chunks (STANDARD §4), as JSON and in words.

use haulier_article::packet::article::ArticlePacket;
use serde_json::{Value, json};

use super::{Words, preview};

pub(super) fn in_json(packet: &ArticlePacket<'_>) -> Value {
    match packet {
        ArticlePacket::Slice(slice) => json!({
            "packet": "slice",
            "chunk": slice.chunk_id().get(),
            "slice": slice.index().get(),
            "slices": slice.index().count().get(),
            "bytes": slice.data().len(),
        }),
        ArticlePacket::Ack(ack) => json!({
            "packet": "ack",
            "chunk": ack.chunk_id.get(),
            "slices": ack.received.count().get(),
            "acked": ack.received.iter().map(|index| index.get()).collect::<Vec<_>>(),
        }),
    }
}

pub(super) fn in_words(packet: &ArticlePacket<'_>) -> Words {
    match packet {
        ArticlePacket::Slice(slice) => {
            let (index, count) = (slice.index().get(), slice.index().count().get());
            Words {
                title: "slice packet",
                fields: vec![
                    ("chunk", slice.chunk_id().get().to_string()),
                    ("slice", format!("{index} of {count}")),
                    ("data", preview(slice.data())),
                ],
            }
        }
        ArticlePacket::Ack(ack) => {
            let (acked, count) = (ack.received.len(), ack.received.count());
            let flag = |index| if ack.received.contains(index) { '1' } else { '0' };
            let flags: String = count.indices().map(flag).collect();
            Words {
                title: "ack packet",
                fields: vec![
                    ("chunk", ack.chunk_id.get().to_string()),
                    ("acked", format!("{acked} of {}: {flags}", count.get())),
                ],
            }
        }
    }
}
