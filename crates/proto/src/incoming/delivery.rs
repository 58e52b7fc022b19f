//! The queue for the application: whole blocks or chunks, and the fates of blocks.
//!
//! The invariant: everything here is charged with its real cost, both data and the place in the queue, so a
//! peer gets no memory that its credit does not show (an unread block of one byte once cost 4.4 times what
//! it was charged).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::bulk::cut::ChunkAt;
use crate::bulk::tree::Value;

/// In which form the application gets received blocks. Whatever it is, each byte was verified against the
/// block's BLAKE3.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{ConnectionConfig, Delivery};
///
/// // Written to a disk as they come; the memory is a window, whatever the block has.
/// let config = ConnectionConfig::default()
///     .with_delivery(Delivery::Chunks)
///     .with_max_block_bytes(100 << 30);
/// assert_eq!(config.delivery, Delivery::Chunks);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// A block at a time, its bytes in one piece: [`Event::Block`](crate::connection::Event::Block). The
    /// memory is that of the largest block.
    #[default]
    Blocks,
    /// Each chunk of 256 KiB when it is verified, in any order: for an application that writes them to a
    /// disk ([`Event::Chunk`](crate::connection::Event::Chunk), and at last
    /// [`Event::BlockComplete`](crate::connection::Event::BlockComplete)). The memory is a window, however
    /// large the block.
    Chunks,
    /// Like [`Chunks`](Self::Chunks), but the chunks of each block come in their order: for an application
    /// that reads them from the first byte on.
    InOrder,
}

/// What the receiving end reports to the application.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum IncomingEvent {
    /// A block was announced; it can be declined.
    Announced { block: u32, tag: u64, length: u64, root: [u8; 32] },
    /// More of a block has arrived: bytes, in whole slices.
    Progress {
        block: u32,
        tag: u64,
        received: u64,
        length: u64,
        rate_bps: u64,
        estimate: Option<Duration>,
    },
    /// A block was received and verified.
    Block { block: u32, tag: u64, data: Bytes },
    /// A chunk was received and verified.
    Chunk { at: ChunkAt, tag: u64, data: Bytes, value: Value },
    /// All chunks of a block were delivered.
    Complete { block: u32, tag: u64 },
    /// The application has all of an announced block already.
    Here { block: u32, tag: u64 },
    /// Its sender gave a block up.
    Cancelled { block: u32, tag: u64, code: u32 },
}

impl core::fmt::Debug for IncomingEvent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Announced { block, length, .. } => {
                write!(f, "Announced({block}, {length} bytes)")
            }
            Self::Progress { block, received, .. } => write!(f, "Progress({block}, {received})"),
            Self::Block { block, data, .. } => write!(f, "Block({block}, {} bytes)", data.len()),
            Self::Chunk { at, data, .. } => write!(f, "Chunk({at:?}, {} bytes)", data.len()),
            Self::Complete { block, .. } => write!(f, "Complete({block})"),
            Self::Here { block, .. } => write!(f, "Here({block})"),
            Self::Cancelled { block, code, .. } => write!(f, "Cancelled({block}, {code})"),
        }
    }
}

/// Bytes that an event costs besides its data: its place in a queue that grows by doubling, and what an
/// allocator adds.
const EVENT_COST: usize = 2 * size_of::<Ready>() + 64;

/// Bytes that a chunk costs besides its data, in the list of its block.
pub(super) const PART_COST: usize = 2 * size_of::<(u32, (Bytes, Value))>() + 16;

#[derive(Debug)]
enum Ready {
    /// A block, still in chunks: they become one piece when the application takes it, because no datagram
    /// may cost the copy of a block.
    Block {
        block: u32,
        tag: u64,
        length: u64,
        parts: Vec<Bytes>,
    },
    Event(IncomingEvent),
}

impl Ready {
    fn cost(&self) -> usize {
        EVENT_COST
            + match self {
                Self::Block { parts, .. } => parts.iter().map(part_cost).sum(),
                Self::Event(IncomingEvent::Chunk { data, .. }) => data.len(),
                Self::Event(_) => 0,
            }
    }
}

/// What a verified chunk costs while it waits for its block.
pub(super) fn part_cost(part: &Bytes) -> usize {
    part.len() + PART_COST
}

/// The queue of what the application has not taken.
#[derive(Debug)]
pub(super) struct ReadyQueue {
    queue: VecDeque<Ready>,
    /// The sum of their costs.
    cost: usize,
}

impl ReadyQueue {
    pub(super) const fn new() -> Self {
        Self { queue: VecDeque::new(), cost: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that it costs.
    pub(super) const fn cost(&self) -> usize {
        self.cost
    }

    /// A block is complete: its chunks, in their order.
    pub(super) fn push_block(&mut self, block: u32, tag: u64, length: u64, parts: Vec<Bytes>) {
        self.push(Ready::Block { block, tag, length, parts });
    }

    pub(super) fn push_event(&mut self, event: IncomingEvent) {
        self.push(Ready::Event(event));
    }

    fn push(&mut self, ready: Ready) {
        self.cost += ready.cost();
        self.queue.push_back(ready);
    }

    pub(super) fn pop(&mut self) -> Option<IncomingEvent> {
        let ready = self.queue.pop_front()?;
        self.cost -= ready.cost();
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
        Some(match ready {
            Ready::Block { block, tag, length, parts } => {
                IncomingEvent::Block { block, tag, data: join(length, parts) }
            }
            Ready::Event(event) => event,
        })
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.cost, self.queue.iter().map(Ready::cost).sum::<usize>());
    }
}

/// The bytes of a block. A block of one chunk is not copied.
fn join(length: u64, mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() <= 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut data = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    parts.into_iter().for_each(|part| data.extend_from_slice(&part));
    data.into()
}
