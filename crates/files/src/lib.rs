//! Files and directories over haulier: streamed from and to disk, verified as they come, resumed, and only
//! what is missing. `docs/FILES.md` is the design.
//!
//! The disk, on a few threads of a [`DiskPool`](pool::DiskPool): [`writer`] writes what comes and keeps a [`journal`] of it,
//! [`reader`] reads ahead and hashes, [`tree_cache`] keeps what was hashed. [`recipe`] finds what two versions of a file
//! have in common; [`packing`] makes chunks smaller. All of it is for systems with Unix's files.

pub mod errors;
pub mod journal;
pub mod model;
pub mod packing;
pub mod pool;
pub mod reader;
pub mod recipe;
pub mod storage;
mod system;
pub mod tree_cache;
pub mod unfinished;
pub mod values;
pub mod writer;
