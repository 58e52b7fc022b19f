//! Events as objects of JavaScript. `haulier.d.ts` has their types.

use haulier_proto::connection::{CloseReason, Event};
use js_sys::{BigInt, Object, Reflect, Uint8Array};
use wasm_bindgen::JsValue;

/// The object of an event; `undefined` for those that a page has no use for.
pub(crate) fn object(event: Event) -> JsValue {
    let object = Object::new();
    let name = match event {
        Event::Connected => "connected",
        Event::Queued { place, estimate } => {
            set(&object, "place", place.map_or(JsValue::NULL, JsValue::from));
            set(&object, "estimateMs", in_ms(estimate));
            "queued"
        }
        Event::BlockProgress { tag, received, length, rate_bps, estimate } => {
            set(&object, "tag", BigInt::from(tag));
            set(&object, "receivedBytes", received as f64);
            set(&object, "lengthBytes", length as f64);
            set(&object, "rateBps", rate_bps as f64);
            set(&object, "estimateMs", in_ms(estimate));
            "progress"
        }
        Event::Block { tag, data } => {
            set(&object, "tag", BigInt::from(tag));
            set(&object, "data", Uint8Array::from(&data[..]));
            "block"
        }
        Event::BlockAnnounced { block, tag, length, digest } => {
            set(&object, "block", block.to_bits());
            set(&object, "tag", BigInt::from(tag));
            set(&object, "lengthBytes", length as f64);
            set(&object, "digest", Uint8Array::from(&digest[..]));
            "announced"
        }
        Event::BlockHere { tag } => {
            set(&object, "tag", BigInt::from(tag));
            "here"
        }
        Event::Chunk { block, tag, offset, data, .. } => {
            set(&object, "block", block.to_bits());
            set(&object, "tag", BigInt::from(tag));
            set(&object, "offsetBytes", offset as f64);
            set(&object, "data", Uint8Array::from(&data[..]));
            "chunk"
        }
        Event::BlockComplete { block, tag } => {
            set(&object, "block", block.to_bits());
            set(&object, "tag", BigInt::from(tag));
            "complete"
        }
        Event::BlockCancelled { block, tag, code } => {
            set(&object, "block", block.to_bits());
            set(&object, "tag", BigInt::from(tag));
            set(&object, "code", code);
            "cancelled"
        }
        Event::BlockSent { handle } => {
            set(&object, "handle", handle.to_bits());
            "sent"
        }
        Event::BlockDeclined { handle, code } => {
            set(&object, "handle", handle.to_bits());
            set(&object, "code", code);
            "declined"
        }
        Event::Message { channel, data } => {
            set(&object, "channel", channel);
            set(&object, "data", Uint8Array::from(&data[..]));
            "message"
        }
        Event::Packet { sequence, data } => {
            set(&object, "sequence", u32::from(sequence.get()));
            set(&object, "data", Uint8Array::from(&data[..]));
            "packet"
        }
        Event::MessageAcked { channel, number } => {
            set(&object, "channel", channel);
            set(&object, "number", number as f64);
            "message-acked"
        }
        Event::PacketAcked { sequence } => {
            set(&object, "sequence", u32::from(sequence.get()));
            "packet-acked"
        }
        Event::PacketLost { sequence } => {
            set(&object, "sequence", u32::from(sequence.get()));
            "packet-lost"
        }
        Event::MessageWritable { channel } => {
            set(&object, "channel", channel);
            "writable"
        }
        Event::Closed(reason) => {
            set(&object, "kind", reason.kind().name());
            set(&object, "message", reason.to_string());
            let (code, words) = match &reason {
                CloseReason::Here(code) => (JsValue::from(code.0), ""),
                CloseReason::There { code, reason } => (JsValue::from(code.0), &reason[..]),
                CloseReason::Refused(code) => (JsValue::from(code.to_string()), ""),
                _ => (JsValue::NULL, ""),
            };
            set(&object, "code", code);
            set(&object, "reason", words);
            "closed"
        }
        _ => return JsValue::UNDEFINED,
    };
    set(&object, "type", name);
    object.into()
}

pub(crate) fn set(object: &Object, name: &str, value: impl Into<JsValue>) {
    // It fails for objects that are frozen, and this one is new.
    let _always = Reflect::set(object, &name.into(), &value.into());
}

fn in_ms(time: Option<std::time::Duration>) -> JsValue {
    time.map_or(JsValue::NULL, |time| (time.as_secs_f64() * 1e3).into())
}
