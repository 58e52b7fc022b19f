//! What was in a datagram, in short: enough to draw it, and none of the application's bytes.

use alloc::vec::Vec;
use core::time::Duration;

use crate::chunk::MAX_CHUNK_BYTES;
use crate::wire::frames::{Frame, Frames, SliceFrame, SliceKind};

/// Frames that are kept of a datagram. A full datagram of messages has some forty, and a peer can send one of
/// a thousand pings.
const MAX_FRAMES: usize = 32;

/// A frame of a datagram (STANDARD-1, section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFrame {
    /// Bytes without effect.
    Padding {
        /// How many.
        bytes: usize,
    },
    /// Ack-eliciting, and nothing else.
    Ping,
    /// Which datagrams were received.
    Ack {
        /// Packet numbers, the first and last of each range, the newest range first: at most 32.
        ranges: Vec<(u64, u64)>,
        /// The delay of the ack at its sender, if that is known.
        delay: Option<Duration>,
    },
    /// When datagrams arrived.
    Arrivals,
    /// The state of a receiver of blocks.
    Progress {
        /// All blocks with lower numbers are finished.
        floor: u32,
        /// Chunks and announcements that may be counted in all.
        credit: u64,
    },
    /// A slice of a block.
    Slice {
        /// The number of the block in its direction.
        block: u32,
        /// The chunk of the block.
        chunk: u32,
        /// Where its bytes begin in the block; of a repair slice, where its chunk does.
        offset: u64,
        /// Its bytes.
        bytes: usize,
        /// Its sort.
        sort: SliceSort,
    },
    /// Which slices of a chunk were received.
    SlicesHere {
        /// The number of the block.
        block: u32,
        /// The chunk.
        chunk: u32,
    },
    /// Announces a block.
    Block {
        /// The number of the block.
        number: u32,
        /// The tag that its sender gave it.
        tag: u64,
        /// Its size in bytes.
        length: u64,
    },
    /// A page of a block's tree.
    Hashes {
        /// The number of the block.
        block: u32,
    },
    /// Chunks that the receiver has already.
    ChunksHere {
        /// The number of the block.
        block: u32,
    },
    /// The sender gives a block up.
    Cancel {
        /// The number of the block.
        block: u32,
        /// The application's code.
        code: u32,
    },
    /// The receiver does not want a block.
    Decline {
        /// The number of the block.
        block: u32,
        /// The application's code.
        code: u32,
    },
    /// The receiver has a block already.
    RootHere,
    /// A time-critical packet.
    Packet {
        /// Its sequence.
        sequence: u16,
        /// Its bytes.
        bytes: usize,
    },
    /// A fragment of one.
    Fragment {
        /// The sequence of the packet.
        sequence: u16,
        /// Its index.
        index: usize,
        /// The fragments that the packet has.
        count: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// A message, or a part of one.
    Message {
        /// Its channel.
        channel: u8,
        /// Its number on the channel.
        number: u64,
        /// Where the part begins.
        offset: u32,
        /// Its bytes.
        bytes: usize,
    },
    /// What may be sent on a channel.
    ChannelLimit {
        /// The channel.
        channel: u8,
        /// Bytes in all.
        bytes: u64,
    },
    /// How often acks are wanted.
    AckFrequency {
        /// At the latest after this number of datagrams.
        datagrams: u8,
        /// And after this time.
        delay: Duration,
    },
    /// Asks for an answer from an address.
    PathChallenge,
    /// The answer.
    PathResponse,
    /// The token of a reset, which is a secret and not shown.
    ResetToken,
    /// Closes the connection.
    Close {
        /// Why, as a number.
        code: u32,
    },
    /// A frame that this version ignores.
    Ignored {
        /// Its type.
        kind: u8,
        /// Its bytes.
        bytes: usize,
    },
    /// There were more.
    Others {
        /// How many.
        count: usize,
    },
}

/// What a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SliceSort {
    /// Bytes of the block.
    Source,
    /// Bytes of the block that this end has sent before. The other end does not see the difference.
    Resent,
    /// A repair slice, from which any other of its chunk can be computed.
    Repair,
}

/// The frames of a plaintext, and whether one is ack-eliciting. With `is_all` false it is the announcements
/// of blocks alone. `next` is the number after the last one of the datagrams that an ack in it speaks of.
pub(super) fn read(plaintext: &[u8], next: u64, is_all: bool) -> (Vec<TraceFrame>, bool) {
    let (mut frames, mut is_ack_eliciting, mut others) = (Vec::new(), false, 0);
    for frame in Frames::of(plaintext).map_while(Result::ok) {
        is_ack_eliciting |= frame.is_ack_eliciting();
        if !is_all && !matches!(frame, Frame::Block(_)) {
            continue;
        }
        if let Some(TraceFrame::Padding { bytes }) = frames.last_mut()
            && frame == Frame::Padding
        {
            *bytes += 1;
            continue;
        }
        let is_again = |last: &TraceFrame| *last == TraceFrame::Ping && frame == Frame::Ping;
        if frames.last().is_some_and(is_again) {
            continue;
        }
        match frames.len() < MAX_FRAMES {
            true => frames.push(of(&frame, next)),
            false => others += 1,
        }
    }
    if others > 0 {
        frames.push(TraceFrame::Others { count: others });
    }
    (frames, is_ack_eliciting)
}

fn of(frame: &Frame<'_>, next: u64) -> TraceFrame {
    match *frame {
        Frame::Padding => TraceFrame::Padding { bytes: 1 },
        Frame::Ping => TraceFrame::Ping,
        Frame::Ack(ack) => {
            let ranges = ack.ranges(next).into_iter().flatten();
            let ranges = ranges.map(|range| (*range.start(), *range.end())).collect();
            TraceFrame::Ack { ranges, delay: ack.delay() }
        }
        Frame::Arrivals(_) => TraceFrame::Arrivals,
        Frame::Progress(it) => TraceFrame::Progress { floor: it.floor, credit: it.credit },
        Frame::Slice(slice) => of_slice(&slice),
        Frame::SlicesHere(here) => {
            TraceFrame::SlicesHere { block: here.at.block, chunk: here.at.index }
        }
        Frame::Block(block) => {
            TraceFrame::Block { number: block.number, tag: block.tag, length: block.length }
        }
        Frame::Hashes(hashes) => TraceFrame::Hashes { block: hashes.block },
        Frame::ChunksHere(here) => TraceFrame::ChunksHere { block: here.block },
        Frame::Cancel { block, code, .. } => TraceFrame::Cancel { block, code },
        Frame::Decline { block, code } => TraceFrame::Decline { block, code },
        Frame::RootHere(_) => TraceFrame::RootHere,
        Frame::Packet { sequence, data } => {
            TraceFrame::Packet { sequence: sequence.get(), bytes: data.len() }
        }
        Frame::Fragment(it) => TraceFrame::Fragment {
            sequence: it.sequence().get(),
            index: it.index(),
            count: it.count(),
            bytes: it.data().len(),
        },
        Frame::Message(it) => TraceFrame::Message {
            channel: it.channel,
            number: it.number,
            offset: it.part.map_or(0, |part| part.offset),
            bytes: it.data.len(),
        },
        Frame::ChannelLimit(limit) => {
            TraceFrame::ChannelLimit { channel: limit.channel, bytes: limit.bytes }
        }
        Frame::AckFrequency { datagrams, delay } => TraceFrame::AckFrequency { datagrams, delay },
        Frame::PathChallenge(_) => TraceFrame::PathChallenge,
        Frame::PathResponse(_) => TraceFrame::PathResponse,
        Frame::ResetToken(_) => TraceFrame::ResetToken,
        Frame::Close { code, .. } => TraceFrame::Close { code },
        Frame::Ignored { kind, body } => TraceFrame::Ignored { kind, bytes: body.len() },
    }
}

fn of_slice(slice: &SliceFrame<'_>) -> TraceFrame {
    let (sort, slices) = match slice.kind {
        SliceKind::Repair => (SliceSort::Repair, 0),
        SliceKind::Source | SliceKind::Last(_) => (SliceSort::Source, u64::from(slice.index)),
    };
    let size = slice.size().map_or(0, |size| size.bytes() as u64);
    let chunk = u64::from(slice.at.index) * MAX_CHUNK_BYTES as u64;
    TraceFrame::Slice {
        block: slice.at.block,
        chunk: slice.at.index,
        offset: chunk + slices * size,
        bytes: slice.data.len(),
        sort,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest datagram has room for 65,000 pings: a list of them would take megabytes.
    #[test]
    fn of_many_frames_few_are_kept() {
        let mut plaintext = Vec::new();
        for _ in 0..500 {
            Frame::Ping.write(&mut plaintext);
            Frame::PathResponse([7; 8]).write(&mut plaintext);
        }
        let (frames, is_ack_eliciting) = read(&plaintext, 0, true);
        assert!(is_ack_eliciting);
        assert_eq!(frames.len(), MAX_FRAMES + 1);
        assert_eq!(frames.last(), Some(&TraceFrame::Others { count: 1_000 - MAX_FRAMES }));
        let padded = [&[1, 1, 1][..], &[0; 60_000]].concat();
        let (frames, _) = read(&padded, 0, true);
        assert_eq!(frames, [TraceFrame::Ping, TraceFrame::Padding { bytes: 60_000 }]);
    }
}
