//! Whole worlds in virtual time, from the crate's outside: transfers over bad links, crowds, streams, paths,
//! seeds that once failed. One program, so that its tests keep every core busy and are linked once; attacks
//! are `threats`, and what counts an allocator's work in the whole process is elsewhere.

#![allow(clippy::unwrap_used, reason = "a test program")]

mod corpus;
mod crowd;
mod during_play;
mod fast_links;
mod frames;
mod home;
mod join;
mod lan;
mod oracles;
mod outages;
mod packets;
mod paths;
mod readers;
mod shares;
mod small_blocks;
mod soak;
mod streams;
mod uplink;
mod waits;
mod workers;
mod world;
