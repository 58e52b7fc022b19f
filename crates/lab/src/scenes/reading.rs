//! What a datagram holds, for each wire: which slice of the block, or what else.

use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::{NumberedPacket, claims_to_be_fragment};
use haulier_article::{ProtocolId, packet};
use haulier_proto::internals::frames::{Frame, Frames, SliceKind};
use haulier_proto::internals::{DATA_HEADER_BYTES, DataHeader, OPEN_TAG_BYTES, ResponseHeader};

use super::article::REQUEST;
use super::{Kind, Sender};
use crate::rivals::segment_number;

/// What a datagram is, and where in the block: its chunk, its index there, and whether the chunk ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) kind: Kind,
    pub(super) chunk: u32,
    pub(super) index: u32,
    pub(super) is_last: bool,
}

impl Content {
    const fn of(kind: Kind) -> Self {
        Self { kind, chunk: 0, index: 0, is_last: false }
    }
}

/// Reads a datagram of a lane, on its way down or up.
pub(super) fn read(sender: Sender, is_down: bool, datagram: &[u8]) -> Content {
    match sender {
        Sender::Haulier => haulier(datagram).unwrap_or(Content::of(Kind::Other)),
        Sender::Article | Sender::ArticlePaced => article(datagram),
        Sender::Fragments => fragments(is_down, datagram),
        Sender::SlowStart => slow_start(is_down, datagram),
    }
}

fn haulier(datagram: &[u8]) -> Option<Content> {
    let header = match datagram.first()? {
        4..=6 => return Some(Content::of(Kind::Request)),
        7 => ResponseHeader::bytes(ResponseHeader::read(datagram).ok()?.welcome_message.len()),
        _ => DataHeader::read(datagram).map(|_| DATA_HEADER_BYTES).ok()?,
    };
    let plain = datagram.get(header..datagram.len().checked_sub(OPEN_TAG_BYTES)?)?;
    let mut content = Content::of(Kind::Ack);
    for frame in Frames::of(plain) {
        match frame.ok()? {
            Frame::Slice(slice) => {
                let kind = if slice.kind == SliceKind::Repair { Kind::Repair } else { Kind::Slice };
                let is_last = matches!(slice.kind, SliceKind::Last(_));
                let (chunk, index) = (slice.at.index, slice.index.into());
                return Some(Content { kind, chunk, index, is_last });
            }
            Frame::Ack(_) | Frame::Arrivals(_) | Frame::Progress(_) | Frame::Padding => {}
            _ => content.kind = Kind::Other,
        }
    }
    Some(content)
}

fn article(datagram: &[u8]) -> Content {
    match packet::read(ProtocolId::ARTICLE, datagram) {
        Ok(ArticlePacket::Slice(slice)) => Content {
            kind: Kind::Slice,
            chunk: slice.chunk_id().get().into(),
            index: slice.index().get() as u32,
            is_last: slice.index().is_last(),
        },
        Ok(ArticlePacket::Ack(_)) => Content::of(Kind::Ack),
        Err(_) if datagram == REQUEST => Content::of(Kind::Request),
        Err(_) => Content::of(Kind::Other),
    }
}

/// Acks go both ways: that of an end which has nothing to send is a packet of its own.
fn fragments(is_down: bool, datagram: &[u8]) -> Content {
    if datagram == REQUEST {
        return Content::of(Kind::Request);
    }
    if claims_to_be_fragment(datagram)
        && let Ok(FragmentPacket(fragment)) = packet::read(ProtocolId::PACKETS, datagram)
    {
        let (chunk, index) = (fragment.sequence().get().into(), fragment.index() as u32);
        let is_last = fragment.index() + 1 == fragment.count();
        return Content { kind: Kind::Slice, chunk, index, is_last };
    }
    match packet::read(ProtocolId::PACKETS, datagram) {
        Ok(NumberedPacket::Payload { sequence, .. }) if is_down => {
            let chunk = sequence.get().into();
            Content { kind: Kind::Slice, chunk, index: 0, is_last: true }
        }
        Ok(_) => Content::of(Kind::Ack),
        Err(_) => Content::of(Kind::Other),
    }
}

fn slow_start(is_down: bool, datagram: &[u8]) -> Content {
    match segment_number(datagram) {
        Some(index) if is_down => Content { index, ..Content::of(Kind::Slice) },
        _ => Content::of(Kind::Ack),
    }
}
