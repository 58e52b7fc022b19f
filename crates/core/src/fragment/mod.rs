//! Packets above the MTU: cut into fragments, sent once, put together again (*Packet Fragmentation and
//! Reassembly*).
//!
//! [`split`] cuts. A [`Reassembler`], one for each peer, puts together; the fragments of all peers lie in
//! one [`FragmentPool`], so that one cap holds for all of them. How a [`Fragment`] looks in a datagram is up
//! to each wire.
//!
//! ```
//! use haulier_core::fragment::{FragmentPool, Reassembler, split};
//! use haulier_core::{Instant, Sequence};
//!
//! let snapshot = vec![7u8; 2_500];
//! let (mut pool, mut peer) = (FragmentPool::default(), Reassembler::new());
//! for fragment in split(Sequence::new(9), &snapshot)?.rev() {
//!     let whole = peer.handle_fragment(Instant::ZERO, &fragment, &mut pool)?;
//!     assert_eq!(whole.is_some(), fragment.index() == 0); // the last to come
//!     if let Some(packet) = whole {
//!         assert_eq!(packet, snapshot);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One lost fragment loses the packet: this is for data of two to four fragments that is out of date in a
//! tenth of a second. Data that must arrive is sent as a [`chunk`](crate::chunk).

mod order;
mod piece;
mod pool;
mod reassembly;
mod state;

pub use piece::{
    FRAGMENT_BYTES, Fragment, FragmentError, MAX_FRAGMENTED_BYTES, MAX_FRAGMENTS, split,
};
pub use pool::{FragmentPool, FragmentPoolConfig, PoolConfigError, PoolStats};
pub use reassembly::{Reassembler, ReassemblerStats, ReassemblyError};
pub use state::{EntryState, EntryTrigger};
