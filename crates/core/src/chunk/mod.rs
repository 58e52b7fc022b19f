//! A chunk in slices of 1 KiB: how it is cut, which slices have arrived, and how it is put together again.
//!
//! This is the layout of *Sending Large Blocks of Data*. Each wire has a sender and a receiver of its own.

mod assembly;
mod layout;
mod slice_set;

pub use assembly::Assembly;
pub use layout::{
    Ack, ChunkId, MAX_CHUNK_BYTES, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceIndex,
};
pub use slice_set::SliceSet;
