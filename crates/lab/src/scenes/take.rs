//! What was seen of a lane: a row for each datagram, and when it was over.

use std::time::Duration;

use super::Sender;

/// What a datagram holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A request, or its answer without data.
    Request = 0,
    /// A source slice, for the first time.
    Slice = 1,
    /// A repair slice.
    Repair = 2,
    /// A source slice that was sent before.
    Again = 3,
    /// What was received.
    Ack = 4,
    /// Anything else: the end of a connection, probes of the path.
    Other = 5,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// It arrived.
    Arrived = 0,
    /// The queue was full.
    Dropped = 1,
    /// It was lost on the link.
    Lost = 2,
    /// It was on its way when the run ended.
    UnderWay = 3,
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was sent.
    pub sent: Duration,
    /// When it arrived, was dropped, or would have arrived had it not been lost.
    pub ends: Duration,
    /// What became of it.
    pub outcome: Outcome,
    /// What it holds.
    pub kind: Kind,
    /// Whether it is from the server to the client.
    pub is_down: bool,
    /// The chunk of its slice, counted from 0.
    pub chunk: u32,
    /// The place of its slice among the source or the repair slices of its chunk.
    pub index: u32,
    /// Its bytes with headers.
    pub bytes: u32,
    /// How long it waited in the queue.
    pub waited: Duration,
}

/// A lane from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// The sender of this lane.
    pub sender: Sender,
    /// Every datagram, in the order of sending.
    pub rows: Vec<Row>,
    /// The source slices of each chunk, as they were cut.
    pub slices: Vec<u32>,
    /// When the client had the block.
    pub whole: Option<Duration>,
    /// When the server knew that; `None` if it never does, for it hangs or has no end.
    pub over: Option<Duration>,
    /// The hash of the world's trace: the same on every machine.
    pub hash: u64,
}

impl Take {
    /// Datagrams of this kind from the server.
    pub fn sent(&self, kind: Kind) -> usize {
        self.rows.iter().filter(|row| row.is_down && row.kind == kind).count()
    }
}
