//! What haulier/1 sends (STANDARD-1, sections 2 to 4): the clear fields of each datagram. What is encrypted
//! is called sealed; in mode `open`, which the tag of the right protocol id gives away, there are frames to
//! show.

use std::time::Duration;

use haulier::proto::internals::frames::{Frame, Frames};
use haulier::proto::internals::{
    DATA_HEADER_BYTES, DataHeader, EndParameters, Hello, InLine, Kind, OPEN_TAG_BYTES, Refusal,
    RequestParts, ResponseHeader, Retry, Role, Source, TAG_BYTES, Welcome, open_check, open_tag,
    read_reset,
};
use haulier::{DropReason, TokenKey};
use serde_json::{Map, Value, json};

use super::frames::in_json;
use super::preview;

/// A datagram with its fields, in order.
pub(super) struct Fields {
    packet: &'static str,
    fields: Vec<(&'static str, Value)>,
}

/// Reads a datagram, in mode `open` with this protocol id.
pub(super) fn read(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    match Kind::of(datagram)? {
        Kind::Request => request(protocol_id, datagram),
        Kind::Retry => {
            let retry = Retry::read(datagram)?;
            Ok(of("retry", vec![("to", hex(&retry.to.0)), ("cookie", hex(&retry.cookie))]))
        }
        Kind::Refusal if InLine::is(datagram) => in_line(protocol_id, datagram),
        Kind::Refusal => refusal(protocol_id, datagram),
        Kind::Response => response(protocol_id, datagram),
        Kind::Reset => Ok(of("reset", vec![("token", hex(&read_reset(datagram)?))])),
        Kind::Data { .. } => data(protocol_id, datagram),
    }
}

fn refusal(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    let refusal = Refusal::read(datagram)?;
    Ok(of(
        "refusal",
        vec![
            ("to", hex(&refusal.to.0)),
            ("reason", json!(refusal.code.name())),
            ("versions", json!(refusal.versions.iter().collect::<Vec<_>>())),
            ("check", check(protocol_id, refusal.checked, refusal.check)),
        ],
    ))
}

fn in_line(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    let (line, checked, its_check) = InLine::read(datagram)?;
    let in_ms = |time: Duration| json!(time.as_millis() as u64);
    Ok(of(
        "in_line",
        vec![
            ("to", hex(&line.to.0)),
            ("place", json!(line.place)),
            ("estimate_ms", line.estimate.map_or(Value::Null, in_ms)),
            ("again_ms", in_ms(line.again)),
            ("check", check(protocol_id, checked, its_check)),
        ],
    ))
}

/// The kind of a refusal's check, as far as it can be known without its key.
fn check(protocol_id: u64, checked: &[u8], check: [u8; 16]) -> Value {
    json!(match check {
        zero if zero == [0; 16] => "zero",
        open if open == open_check(protocol_id, checked) => "open",
        _ => "sealed",
    })
}

fn request(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    let parts = RequestParts::read(datagram)?;
    let mode = match parts.mode.source {
        Source::Open => "open",
        Source::Secret => "secret",
        Source::Token => "token",
    };
    let mut fields = vec![
        ("mode", json!(mode)),
        ("identity", json!(parts.mode.identity)),
        ("from", hex(&parts.client_id.0)),
        ("cookie", parts.cookie.map_or(Value::Null, |cookie| hex(&cookie))),
    ];
    if let Some(id) = TokenKey::id_of(parts.token) {
        fields.push(("token_key", json!(format!("{id:#010x}"))));
        fields.push(("token_bytes", json!(parts.token.len())));
    }
    if parts.mode.source != Source::Open {
        fields.push(("sealed_bytes", json!(parts.hello_message.len())));
        return Ok(of("request", fields));
    }
    if open_check(protocol_id, parts.checked) != parts.check {
        return Err(DropReason::BadCheckValue);
    }
    let hello = Hello::read(parts.hello_message)?;
    fields.push(("versions", json!(hello.versions.iter().collect::<Vec<_>>())));
    fields.extend(end(&hello.end));
    fields.push(("roots_here", hello.roots.iter().map(|root| hex(root)).collect()));
    fields.push(("request", json!(preview(hello.request))));
    Ok(of("request", fields))
}

fn response(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    let open = opened(protocol_id, datagram);
    let header = ResponseHeader::read(datagram)?;
    let welcome_bytes = header.welcome_message.len();
    let mut fields = vec![("to", hex(&header.to.0)), ("number", json!(header.number))];
    if open.is_some() {
        let welcome = Welcome::read(header.welcome_message)?;
        fields.push(("from", hex(&welcome.server_id.0)));
        fields.extend(end(&welcome.end));
    }
    with_frames("response", fields, datagram, ResponseHeader::bytes(welcome_bytes), open)
}

/// What an end says about itself.
fn end(end: &EndParameters) -> [(&'static str, Value); 10] {
    [
        ("idle_ms", json!(end.idle_timeout.as_millis())),
        ("largest_block", json!(end.max_block_bytes)),
        ("largest_datagram", json!(end.max_datagram_bytes)),
        ("max_ack_delay_ms", json!(end.max_ack_delay.as_millis())),
        ("credit", json!(end.credit)),
        ("receive_buffer", json!(end.receive_buffer_bytes)),
        ("channels", json!(end.channels)),
        ("channel_bytes", json!(end.channel_bytes)),
        ("repair_codes", json!(end.repair_codes)),
        ("announced_blocks", json!(end.announced_blocks)),
    ]
}

fn data(protocol_id: u64, datagram: &[u8]) -> Result<Fields, DropReason> {
    let header = DataHeader::read(datagram)?;
    let from = if header.from == Role::Client { "client" } else { "server" };
    let fields = vec![
        ("from", json!(from)),
        ("to", hex(&header.to.0)),
        ("phase", json!(u8::from(header.phase))),
        ("number", json!(header.number)),
    ];
    with_frames("data", fields, datagram, DATA_HEADER_BYTES, opened(protocol_id, datagram))
}

/// The bytes before the tag, and the sender's id in it, if it is a right tag of mode `open`.
fn opened(protocol_id: u64, datagram: &[u8]) -> Option<(&[u8], [u8; 8])> {
    let (before, tag) = datagram.split_last_chunk::<OPEN_TAG_BYTES>()?;
    let id = *tag.first_chunk()?;
    (open_tag(protocol_id, id, before) == *tag).then_some((before, id))
}

fn with_frames(
    packet: &'static str,
    mut fields: Vec<(&'static str, Value)>,
    datagram: &[u8],
    header_bytes: usize,
    open: Option<(&[u8], [u8; 8])>,
) -> Result<Fields, DropReason> {
    let Some((before, sender)) = open else {
        let sealed = datagram.len().checked_sub(header_bytes + TAG_BYTES);
        fields.push(("sealed_bytes", json!(sealed.ok_or(DropReason::Truncated)?)));
        return Ok(of(packet, fields));
    };
    let plain = before.get(header_bytes..).ok_or(DropReason::Truncated)?;
    let mut frames: Vec<Value> = Vec::new();
    for frame in Frames::of(plain) {
        let frame = frame?;
        match frames.last_mut() {
            // A byte each: those after each other are one, which has their number.
            Some(last) if frame == Frame::Padding && last["frame"] == "padding" => {
                last["bytes"] = json!(last["bytes"].as_u64().unwrap_or_default() + 1);
            }
            _ => frames.push(in_json(&frame)),
        }
    }
    if frames.is_empty() {
        return Err(DropReason::TooShort);
    }
    fields.push(("sender", hex(&sender)));
    fields.push(("frames", frames.into()));
    Ok(of(packet, fields))
}

impl Fields {
    /// The kind of datagram.
    pub(super) const fn packet(&self) -> &'static str {
        self.packet
    }

    /// A field, by its name.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Appends a field.
    pub(super) fn push(&mut self, name: &'static str, value: Value) {
        self.fields.push((name, value));
    }

    /// Takes over what `open`, the same datagram in mode `open`, shows of what is sealed here.
    pub(super) fn take_over(&mut self, open: Self) {
        self.fields.retain(|(name, _)| *name != "sealed_bytes");
        for (name, value) in open.fields {
            if self.field(name).is_none() {
                self.push(name, value);
            }
        }
    }

    pub(super) fn in_json(&self) -> Value {
        let mut object = json!({ "ok": true, "wire": "haulier1", "packet": self.packet });
        for (name, value) in &self.fields {
            object[*name] = value.clone();
        }
        object
    }

    pub(super) fn in_words(&self, bytes: usize) -> String {
        let mut text = format!("{}, {bytes} bytes", self.packet);
        for (name, value) in &self.fields {
            let (name, value) = (name.replace('_', " "), value);
            match value {
                Value::Array(frames) if frames.iter().all(Value::is_object) => {
                    for frame in frames {
                        text += &format!("\n  {}", frame_in_words(frame));
                    }
                }
                Value::String(word) => text += &format!("\n  {name:<13} {word}"),
                Value::Null => text += &format!("\n  {name:<13} none"),
                other => text += &format!("\n  {name:<13} {other}"),
            }
        }
        text
    }
}

fn frame_in_words(frame: &Value) -> String {
    let empty = Map::new();
    let fields = frame.as_object().unwrap_or(&empty).iter();
    let rest = fields.filter(|(name, _)| *name != "frame");
    let rest: Vec<String> = rest.map(|(name, value)| format!("{name} {value}")).collect();
    let name = frame["frame"].as_str().unwrap_or_default().replace('_', " ");
    format!("frame         {name} {}", rest.join(", ")).trim_end().into()
}

/// Why a datagram is refused, as JSON.
pub(super) fn refusal_in_json(reason: DropReason) -> Value {
    json!({ "ok": false, "wire": "haulier1", "drop": reason.name() })
}

/// Why a datagram is refused, in a sentence.
pub(super) fn refusal_in_words(reason: DropReason, bytes: usize) -> String {
    let sentence = match reason {
        DropReason::TooLong => "a datagram has at most 1200 bytes".into(),
        DropReason::TooShort => "there is nothing to read: no byte, or no frame".into(),
        DropReason::UnknownKind => "the first byte is none of 04 to 08 and 0c to 0f".into(),
        DropReason::WrongLength => "a request has 1200 bytes".into(),
        DropReason::Truncated => "the bytes end before the datagram does".into(),
        DropReason::BadCheckValue => "corrupted, or its --protocol-id is another one".into(),
        other => other.name().replace('_', " "),
    };
    format!("dropped, {bytes} bytes: {reason} ({sentence})")
}

fn of(packet: &'static str, fields: Vec<(&'static str, Value)>) -> Fields {
    Fields { packet, fields }
}

pub(super) fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
