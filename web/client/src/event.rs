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
        Event::BlockCancelled { tag, code, .. } => {
            set(&object, "tag", BigInt::from(tag));
            set(&object, "code", code);
            "cancelled"
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
