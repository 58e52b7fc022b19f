//! Packets above the MTU: cut into fragments, sent once, put together again (*Packet Fragmentation and
//! Reassembly*).
//!
//! [`split`] cuts. A [`Reassembler`], one for each peer, puts together; the fragments of all peers lie in
//! one [`FragmentPool`], so that one cap holds for all of them. What a fragment looks like on the wire is
//! in [`packet::fragment`](crate::packet::fragment), and STANDARD §5 has the rules.
//!
//! ```
//! use haulier_proto::fragment::{FragmentPool, Reassembler, split};
//! use haulier_proto::{Instant, Sequence};
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
//! # Ok::<(), haulier_proto::DropReason>(())
//! ```
//!
//! One lost fragment loses the packet: it is for two to four fragments of what is out of date in a tenth
//! of a second. What must arrive is a [`chunk`](crate::chunk).

mod order;
mod pool;
mod reassembly;
mod state;

pub use pool::{FragmentPool, FragmentPoolConfig, PoolConfigError, PoolStats};
pub use reassembly::{Reassembler, ReassemblerStats};
pub use state::{EntryNews, EntryState};

use crate::packet::fragment::{FRAGMENT_BYTES, Fragment, MAX_FRAGMENTS};
use crate::{DropReason, Sequence};

/// The largest packet that fragments can carry: 256 of 1024 bytes.
pub const MAX_FRAGMENTED_BYTES: usize = MAX_FRAGMENTS * FRAGMENT_BYTES;

/// Cuts a packet into fragments, in the order in which they are sent. A packet of up to 1024 bytes is one
/// fragment; who sends packets of up to 1200 bytes whole does not ask.
///
/// # Errors
/// [`DropReason::FragmentEmpty`] for an empty packet, [`DropReason::PacketTooBig`] above
/// [`MAX_FRAGMENTED_BYTES`].
pub fn split(
    sequence: Sequence,
    packet: &[u8],
) -> Result<impl DoubleEndedIterator<Item = Fragment<'_>> + ExactSizeIterator, DropReason> {
    let count = packet.len().div_ceil(FRAGMENT_BYTES);
    match count {
        0 => return Err(DropReason::FragmentEmpty),
        1..=MAX_FRAGMENTS => {}
        _ => return Err(DropReason::PacketTooBig),
    }
    Ok((0..count).map(move |index| Fragment::of_packet(sequence, index, packet)))
}
