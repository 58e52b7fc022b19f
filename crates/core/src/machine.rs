//! The joint between a protocol and what drives it.

use alloc::vec::Vec;

use crate::{Batch, FourTuple, Instant};

/// A protocol without input or output of its own.
///
/// Whatever drives it repeats four steps: hand in what arrived; hand in the time, if a deadline has passed;
/// send all it has to send, until a batch comes back that is not full; and sleep until
/// [`poll_timeout`](Self::poll_timeout) or the next datagram. What an application does to the machine
/// between two steps may make something due, so the last two follow that as well.
///
/// Time never goes back by more than a clock does; a machine stays right if it does, and is only slower.
pub trait Machine {
    /// A datagram arrived at `now`, which may be earlier than the time of other calls: the system stamps
    /// what waits. The machine may change the bytes, to decrypt them in place. What it cannot use it counts.
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]);

    /// Acts on deadlines that have passed; harmless at any other time.
    fn handle_timeout(&mut self, now: Instant);

    /// Appends what there is to send now, until nothing is left or the batch is full. A datagram in the batch
    /// counts as sent: it is the caller's to deliver, in this order.
    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch);

    /// When to call [`handle_timeout`](Self::handle_timeout) and then
    /// [`poll_transmit`](Self::poll_transmit), if nothing else happens before: a time that has passed means
    /// at once, `None` not until something arrives.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next datagram alone, in place of what is in `datagram`, and where it goes; `None` when there is
    /// none now. For a transport that takes one at a time and for tests; a batch costs less.
    fn poll_datagram(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<FourTuple> {
        let mut batch = Batch::new(1);
        self.poll_transmit(now, &mut batch);
        let (to, bytes) = batch.iter().next()?;
        datagram.clear();
        datagram.extend_from_slice(bytes);
        Some(to)
    }
}

impl<M: Machine + ?Sized> Machine for &mut M {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        (**self).handle_datagram(now, path, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        (**self).poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}
