//! Datagrams that reached another worker than the one that has their connection.
//!
//! The system gives all datagrams of one pair of addresses to one socket. So strays are those of a client
//! whose address has changed, and now and then a copy of a request. The invariant: a queue is never longer
//! than [`MAX_STRAYS`]; what finds no room is lost, as in a full socket.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::{Ecn, FourTuple, Instant, debug_as};

/// The strays that wait for a worker at most, some 300 KB: the acks of a gigabit in the millisecond that a
/// worker takes to wake up are 40.
pub const MAX_STRAYS: usize = 256;

/// A datagram for another worker.
pub struct Stray {
    /// When it arrived.
    pub at: Instant,
    /// Where from, and where to.
    pub path: FourTuple,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Its bytes, as they arrived.
    pub datagram: Vec<u8>,
}

debug_as! { Stray: |stray| path = stray.path, bytes = stray.datagram.len() }

/// The strays that wait for one worker.
#[derive(Debug, Default)]
pub struct Strays(VecDeque<Stray>);

impl Strays {
    /// Appends one. Returns whether there was room.
    pub fn push(&mut self, stray: Stray) -> bool {
        let has_room = self.0.len() < MAX_STRAYS;
        if has_room {
            self.0.push_back(stray);
        }
        has_room
    }

    /// All that wait, in their order.
    #[must_use]
    pub fn take(&mut self) -> VecDeque<Stray> {
        core::mem::take(&mut self.0)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_strays_is_never_longer_than_it_may_be() {
        let mut strays = Strays::default();
        let path = FourTuple::new(([192, 0, 2, 1], 5000).into());
        for n in 0..2 * MAX_STRAYS {
            let datagram = alloc::vec![7; n];
            let stray = Stray { at: Instant::ZERO, path, ecn: Ecn::NotEct, datagram };
            assert_eq!(strays.push(stray), n < MAX_STRAYS);
        }
        let lengths = strays.take().into_iter().map(|stray| stray.datagram.len());
        assert!(lengths.eq(0..MAX_STRAYS) && strays.is_empty());
    }
}
