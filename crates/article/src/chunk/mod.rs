//! Chunks cut in slices, sent until they are acked: *Sending Large Blocks of Data*.
//!
//! A [`ChunkSender`] cuts one chunk at a time in slices of 1 KiB and sends those not yet acked; a
//! [`ChunkReceiver`] puts them together again and says which it has. They speak in [`Slice`]s and [`Ack`]s,
//! not in bytes: [`packet`](crate::packet) puts those on the article's wire, and who has packets of
//! their own takes only these two and carries the fields as they like.
//!
//! The chain that must never break: every slice of the chunk in progress, of a finished chunk that waits
//! unread, and of the chunk just before, sets the receiver's ack flag. Wherever it breaks, a sender
//! hangs; `tests/machine/hangs.rs` has the story of each way that happened.

mod receiver;
mod sender;
mod sender_config;
mod sending;
mod state;

pub use haulier_core::chunk::{
    Ack, ChunkId, MAX_CHUNK_BYTES, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceIndex, SliceSet,
};
pub use receiver::{
    ChunkReceiver, ChunkReceiverConfig, ChunkReceiverEvent, ChunkReceiverStats, ReceiveProgress,
    SliceArrival,
};
pub use sender::{
    Cancelled, ChunkHandle, ChunkSender, ChunkSenderEvent, ChunkSenderStats, SendChunkError,
    SendFailure, SendProgress, SliceState,
};
pub use sender_config::{ChunkSenderConfig, INITIAL_RESEND_DELAY, ResendDelay};
pub use state::{ReceiverNews, ReceiverState, SenderNews, SenderState};
