//! Chunks cut into slices, which are sent until they are acked: *Sending Large Blocks of Data*.
//!
//! A [`ChunkSender`] cuts one chunk at a time into slices of 1 KiB and sends those not yet acked; a
//! [`ChunkReceiver`] puts them together again and acknowledges those it has. They exchange [`Slice`]s and
//! [`Ack`]s, not bytes: [`packet`](crate::packet) puts those on the article's wire, and a program with
//! packets of its own can carry their fields in any form.
//!
//! The rule that must never break: every slice of the chunk in progress, of a complete chunk that waits
//! unread, and of the chunk just before makes an ack due. Where it breaks, a sender hangs;
//! `tests/machine/hangs.rs` shows how that has happened.

mod receiver;
mod sender;
mod sender_config;
mod sender_report;
mod sending;
mod state;

pub use haulier_core::chunk::{
    Ack, ChunkId, MAX_CHUNK_BYTES, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceIndex, SliceSet,
};
pub use receiver::{
    ChunkReceiver, ChunkReceiverConfig, ChunkReceiverEvent, ChunkReceiverStats, ReceiveProgress,
    SliceArrival,
};
pub use sender::ChunkSender;
pub use sender_config::{ChunkSenderConfig, INITIAL_RESEND_DELAY, ResendDelay};
pub use sender_report::{
    Cancelled, ChunkHandle, ChunkSenderEvent, ChunkSenderStats, SendChunkError, SendFailure,
    SendProgress, SliceState,
};
pub use state::{ReceiverState, ReceiverTrigger, SenderState, SenderTrigger};
