//! The interface between a protocol and what drives it.

use alloc::vec::Vec;

use crate::{Batch, Ecn, FourTuple, Instant};

/// A protocol without input or output of its own.
///
/// Whatever drives it repeats four steps: hand in what arrived; hand in the time, if a deadline has passed;
/// send all it has to send, until a batch comes back that is not full; and sleep until
/// [`poll_timeout`](Self::poll_timeout) or the next datagram. After the application has called the machine
/// something may be due as well, so the last two steps follow that too.
///
/// A machine stays correct if time jumps back, and is only slower.
pub trait Machine {
    /// A datagram arrived at `now`, which may be earlier than the time of other calls: the system stamps
    /// datagrams that wait. The machine may change the bytes, to decrypt them in place. A datagram that it
    /// cannot use is counted.
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]);

    /// A datagram arrived, from a transport that knows the ECN field of the IP header. A transport that does
    /// not know it calls [`handle_datagram`](Self::handle_datagram).
    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let _unused = ecn;
        self.handle_datagram(now, path, datagram);
    }

    /// Several datagrams arrived together, end to end: each has `bytes` bytes except the last, which may be
    /// shorter. A transport that receives them joined (GRO) asks once for all of them.
    #[doc(hidden)]
    fn handle_joined_datagrams(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        bytes: usize,
        datagrams: &mut [u8],
    ) {
        if datagrams.is_empty() {
            return self.handle_marked_datagram(now, path, ecn, datagrams);
        }
        for datagram in datagrams.chunks_mut(bytes.max(1)) {
            self.handle_marked_datagram(now, path, ecn, datagram);
        }
    }

    /// Acts on deadlines that have passed; harmless at any other time.
    fn handle_timeout(&mut self, now: Instant);

    /// Appends the datagrams to send now, until none is left or the batch is full. A datagram in the batch
    /// counts as sent: the caller delivers it, in this order.
    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch);

    /// When to call [`handle_timeout`](Self::handle_timeout) and then
    /// [`poll_transmit`](Self::poll_transmit), if nothing else happens before: a time in the past means at
    /// once, and `None` means not before something arrives.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether this datagram may make the machine draw keys. Whatever drives it then calls
    /// [`mix_entropy`](Self::mix_entropy) first, if it has random bytes: once for all datagrams that it hands
    /// in together.
    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        let _unused = datagram;
        false
    }

    /// Mixes in 32 random bytes that were drawn just now and are used for nothing else. A machine that was
    /// copied with all its memory, by a snapshot of its virtual machine, would otherwise draw what its copy
    /// draws. Harmless at any time, whatever the bytes.
    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        let _unused = fresh;
    }

    /// Replaces the contents of `datagram` with the next datagram and returns where it goes; `None` when no
    /// datagram is ready. For tests, and for transports that take one at a time; a batch costs less.
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

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        (**self).handle_marked_datagram(now, path, ecn, datagram);
    }

    fn handle_joined_datagrams(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        bytes: usize,
        datagrams: &mut [u8],
    ) {
        (**self).handle_joined_datagrams(now, path, ecn, bytes, datagrams);
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

    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        (**self).wants_entropy(datagram)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        (**self).mix_entropy(fresh);
    }
}
