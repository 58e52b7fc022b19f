//! `haulier inspect`: what a datagram is.

use haulier::packet;
use haulier::packet::article::ArticlePacket;
use haulier::{DropReason, ProtocolId};
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) fn run(args: &InspectArgs, report: &Report) -> Result<(), Failure> {
    let datagrams = args
        .datagrams
        .iter()
        .map(|hex| unhex(hex))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::Usage)?;
    for datagram in datagrams {
        let read = packet::read(args.protocol_id, &datagram);
        if report.is_json() {
            report.print(&in_json(&read).to_string());
        } else {
            report.print(&in_words(&read, &datagram, args.protocol_id));
        }
    }
    Ok(())
}

fn in_json(read: &Result<ArticlePacket<'_>, DropReason>) -> Value {
    match read {
        Ok(ArticlePacket::Slice(slice)) => json!({
            "ok": true,
            "packet": "slice",
            "chunk": slice.chunk_id().get(),
            "slice": slice.index().get(),
            "slices": slice.index().count().get(),
            "bytes": slice.data().len(),
        }),
        Ok(ArticlePacket::Ack(ack)) => json!({
            "ok": true,
            "packet": "ack",
            "chunk": ack.chunk_id.get(),
            "slices": ack.received.count().get(),
            "acked": ack.received.iter().map(|index| index.get()).collect::<Vec<_>>(),
        }),
        Err(reason) => json!({ "ok": false, "drop": reason.name() }),
    }
}

fn in_words(
    read: &Result<ArticlePacket<'_>, DropReason>,
    datagram: &[u8],
    protocol: ProtocolId,
) -> String {
    let size = datagram.len();
    match read {
        Ok(ArticlePacket::Slice(slice)) => {
            let crc = packet::checksum(protocol, &datagram[4..]);
            format!(
                "slice packet, {size} bytes\n  crc      {crc:#010x}, right for protocol id {:#010x}\n  \
                 chunk    {}\n  slice    {} of {}\n  data     {} bytes: {}",
                protocol.0,
                slice.chunk_id().get(),
                slice.index().get(),
                slice.index().count().get(),
                slice.data().len(),
                preview(slice.data()),
            )
        }
        Ok(ArticlePacket::Ack(ack)) => {
            let crc = packet::checksum(protocol, &datagram[4..]);
            let flags: String = ack
                .received
                .count()
                .indices()
                .map(|index| if ack.received.contains(index) { '1' } else { '0' })
                .collect();
            format!(
                "ack packet, {size} bytes\n  crc      {crc:#010x}, right for protocol id {:#010x}\n  \
                 chunk    {}\n  acked    {} of {}: {flags}",
                protocol.0,
                ack.chunk_id.get(),
                ack.received.len(),
                ack.received.count().get(),
            )
        }
        Err(reason) => format!("dropped, {size} bytes: {reason} ({})", explain(*reason, size)),
    }
}

/// A refusal in a sentence.
fn explain(reason: DropReason, size: usize) -> String {
    match reason {
        DropReason::TooShort => format!("{size} bytes hold no checksum and no packet"),
        DropReason::TooLong => "a packet of this wire has at most 1200 bytes".into(),
        DropReason::BadCrc => "corrupted, of another protocol id, or of another protocol".into(),
        DropReason::SliceIdOutOfRange => "the slice index is not below the slice count".into(),
        DropReason::Truncated => "the bytes end before the packet does".into(),
        DropReason::NonzeroPadding => "padding bits must be zero".into(),
        DropReason::BadCheck => "the end-of-packet check is another value".into(),
        DropReason::TrailingBytes => "bytes follow the end of the packet".into(),
        other => other.name().replace('_', " "),
    }
}

fn preview(data: &[u8]) -> String {
    let mut text: String = data.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    if data.len() > 16 {
        text += "...";
    }
    text
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
