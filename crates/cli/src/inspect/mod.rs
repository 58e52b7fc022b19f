//! `haulier inspect`: what a datagram is.
//!
//! A datagram does not say which protocol it is of; its checksum does, given the protocol id. So
//! there is a list of readings, a layer with an id each, and the first that accepts the datagram is
//! shown. What the fields are called is in [`chunks`] and [`packets`], why none accepted in [`refusal`].
//!
//! Datagrams of haulier/1 say what they are in their first byte; [`haulier1`] has all of it. Those of a file
//! are read by [`capture`].

mod capture;
mod chunks;
mod frames;
mod haulier1;
mod packets;
mod refusal;

use haulier_article::packet::article::ArticlePacket;
use haulier_article::{PacketDropReason, ProtocolId, packet};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::word;
use serde_json::{Value, json};

use self::packets::LayerPacket;
use self::refusal::Refusal;
use crate::args::{FILES_PROTOCOL_ID, InspectArgs, Layer, Wire};

pub(crate) fn run(args: &InspectArgs, report: &Report) -> Result<(), Failure> {
    if args.raw_count && args.layer == Some(Layer::Chunks) {
        let sentence = "--raw-count is for fragments, and --layer chunks has none";
        return Err(Failure::Usage(sentence.into()));
    }
    if let Some(path) = &args.pcap {
        return capture::run(args, path, report);
    }
    let datagrams = args
        .datagrams
        .iter()
        .map(|hex| unhex(hex))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::Usage)?;
    if args.wire == Some(Wire::Haulier1) {
        return haulier1(args, &datagrams, report);
    }
    let readings = readings(args)?;
    for datagram in datagrams {
        let said = match (read(&readings, &datagram), report.is_json()) {
            (Ok(packet), true) => packet.in_json().to_string(),
            (Ok(packet), false) => packet.in_words(&datagram),
            (Err(refusal), true) => refusal.in_json(&readings).to_string(),
            (Err(refusal), false) => refusal.in_words(&readings, datagram.len()),
        };
        report.print(&said);
    }
    Ok(())
}

/// All of it on the wire haulier/1.
fn haulier1(args: &InspectArgs, datagrams: &[Vec<u8>], report: &Report) -> Result<(), Failure> {
    if args.raw_count || args.layer.is_some() {
        let sentence = "--layer and --raw-count are for the article wire";
        return Err(Failure::Usage(sentence.into()));
    }
    let protocol_id = args.protocol_id.unwrap_or(FILES_PROTOCOL_ID);
    for datagram in datagrams {
        let said = match (haulier1::read(protocol_id, datagram), report.is_json()) {
            (Ok(fields), true) => fields.in_json().to_string(),
            (Ok(fields), false) => fields.in_words(datagram.len()),
            (Err(reason), true) => haulier1::refusal_in_json(reason).to_string(),
            (Err(reason), false) => haulier1::refusal_in_words(reason, datagram.len()),
        };
        report.print(&said);
    }
    Ok(())
}

/// One way to read a datagram.
#[derive(Clone, Copy)]
struct Reading {
    layer: Layer,
    protocol: ProtocolId,
    raw_count: bool,
}

/// What the arguments leave open. Chunks come first: their end check makes a wrong guess unlikely, where
/// a fragment is any bytes behind a header.
fn readings(args: &InspectArgs) -> Result<Vec<Reading>, Failure> {
    let too_wide = |_| Failure::Usage("--protocol-id has 32 bits on the article wire".into());
    let own = args.protocol_id.map(u32::try_from).transpose().map_err(too_wide)?;
    let layers = match &args.layer {
        Some(layer) => std::slice::from_ref(layer),
        None => &[Layer::Chunks, Layer::Packets],
    };
    let reading = |&layer| Reading {
        layer,
        protocol: own.map(ProtocolId).unwrap_or(match layer {
            Layer::Chunks => ProtocolId::ARTICLE,
            Layer::Packets => ProtocolId::PACKETS,
        }),
        raw_count: args.raw_count,
    };
    Ok(layers.iter().map(reading).collect())
}

/// The packet of the first reading that accepts the datagram; else the refusal of the first that the
/// checksum fits.
fn read<'a>(readings: &[Reading], datagram: &'a [u8]) -> Result<Packet<'a>, Refusal> {
    let mut refusal = Refusal { reason: PacketDropReason::BadCrc, by: None };
    for &reading in readings {
        let read = match reading.layer {
            Layer::Chunks => packet::read(reading.protocol, datagram).map(Content::Chunk),
            Layer::Packets => {
                packets::read(reading.protocol, reading.raw_count, datagram).map(Content::Packet)
            }
        };
        match read {
            Ok(content) => return Ok(Packet { reading, content }),
            Err(reason) if refusal.reason == PacketDropReason::BadCrc => {
                refusal = Refusal::new(reason, reading);
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

/// A datagram that was accepted, and how it was read.
struct Packet<'a> {
    reading: Reading,
    content: Content<'a>,
}

enum Content<'a> {
    Chunk(ArticlePacket<'a>),
    Packet(LayerPacket<'a>),
}

/// A packet in words: its name, then its fields in their order.
struct Words {
    title: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl Packet<'_> {
    fn in_json(&self) -> Value {
        let mut object = match &self.content {
            Content::Chunk(packet) => chunks::in_json(packet),
            Content::Packet(packet) => packets::in_json(packet),
        };
        object["ok"] = json!(true);
        object["layer"] = json!(word(&self.reading.layer));
        object
    }

    fn in_words(&self, datagram: &[u8]) -> String {
        let words = match &self.content {
            Content::Chunk(packet) => chunks::in_words(packet),
            Content::Packet(packet) => packets::in_words(packet),
        };
        let protocol = self.reading.protocol;
        // What was accepted has a checksum, so there is a byte 4.
        let crc = packet::checksum(protocol, &datagram[4..]);
        let crc = format!("{crc:#010x}, right for protocol id {:#010x}", protocol.0);
        let mut text = format!("{}, {} bytes", words.title, datagram.len());
        for (name, value) in std::iter::once(("crc", crc)).chain(words.fields) {
            text += &format!("\n  {name:<8} {value}");
        }
        text
    }
}

/// How many bytes, and the first of them: a thousand would fill the terminal.
fn preview(data: &[u8]) -> String {
    if data.is_empty() {
        return "0 bytes".into();
    }
    let start: String = data.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let rest = if data.len() > 16 { "..." } else { "" };
    format!("{} bytes: {start}{rest}", data.len())
}

fn unhex(hex: &str) -> Result<Vec<u8>, String> {
    let digits = hex.strip_prefix("0x").unwrap_or(hex);
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let error = || format!("{hex:?} is no datagram: write hex digits, two for each byte");
    if !digits.len().is_multiple_of(2) {
        return Err(error());
    }
    let byte = |pair: &[char]| {
        let high = pair[0].to_digit(16)?;
        Some((high * 16 + pair[1].to_digit(16)?) as u8)
    };
    digits.chunks_exact(2).map(byte).collect::<Option<_>>().ok_or_else(error)
}
