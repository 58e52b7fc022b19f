//! Chunks cut in slices, sent until they are acked: *Sending Large Blocks of Data*.
//!
//! A [`Sender`] cuts one chunk at a time in slices of 1 KiB and sends those not yet acked; a
//! [`Receiver`] puts them together again and says which it has. They speak in [`Slice`]s and [`Ack`]s,
//! not in bytes: [`packet`](crate::packet) puts those on the article's wire, and who has packets of
//! their own takes only these two and carries the fields as they like.
//!
//! The chain that must never break: every slice of the chunk in progress, of a finished chunk that waits
//! unread, and of the chunk just before, sets the receiver's ack flag. Wherever it breaks, a sender
//! hangs; `tests/machine/hangs.rs` has the story of each way that happened.

mod assembly;
mod layout;
mod receiver;
mod sender;
mod sender_config;
mod sending;
mod slice_set;
mod state;

pub(crate) use assembly::Assembly;
pub use layout::{
    Ack, ChunkId, MAX_CHUNK_BYTES, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceIndex,
};
pub use receiver::{
    Arrival, ReceiveProgress, Receiver, ReceiverConfig, ReceiverEvent, ReceiverStats,
};
pub use sender::{
    Cancelled, ChunkHandle, SendChunkError, SendFailure, SendProgress, Sender, SenderEvent,
    SenderStats, SliceState,
};
pub use sender_config::{INITIAL_RESEND_DELAY, ResendDelay, SenderConfig};
pub use slice_set::SliceSet;
pub use state::{ReceiverNews, ReceiverState, SenderNews, SenderState};
