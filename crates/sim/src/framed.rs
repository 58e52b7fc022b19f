//! A host that acts once a frame, as a game does.

use std::time::Duration;

use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};

use crate::Host;
use crate::link::UDP_IP_OVERHEAD;

/// A host that reads its socket and sends on frames only: datagrams wait for the next one.
#[derive(Clone, Debug)]
pub struct Framed<H> {
    /// The host.
    pub inner: H,
    /// Bytes of datagrams that found the socket's buffer full, headers counted.
    pub dropped_bytes: u64,
    /// The time between frames; with zero it acts at once.
    frame: Duration,
    next_frame: Instant,
    /// The frame being worked on.
    open: Option<Instant>,
    max_waiting: usize,
    is_stamped: bool,
    waiting: Vec<(Instant, FourTuple, Ecn, Vec<u8>)>,
}

impl<H> Framed<H> {
    /// A host with frames of this length, the first at `first_frame`. With a length of zero it acts at once.
    #[must_use]
    pub const fn new(inner: H, frame: Duration, first_frame: Instant) -> Self {
        Self {
            inner,
            dropped_bytes: 0,
            frame,
            next_frame: first_frame,
            open: None,
            max_waiting: usize::MAX,
            is_stamped: false,
            waiting: Vec::new(),
        }
    }

    /// Sets how many datagrams the socket's buffer holds between two frames; the rest is dropped. A kernel
    /// counts its own memory and not payload bytes: 208 KiB, Linux's default, hold 92 datagrams of 1200.
    #[must_use]
    pub const fn holding(mut self, datagrams: usize) -> Self {
        self.max_waiting = datagrams;
        self
    }

    /// The program pauses: the next frame is then, and what arrives until then waits.
    pub const fn pause_until(&mut self, until: Instant) {
        self.next_frame = until;
    }

    /// Passes the arrival time of each datagram to the host, as kernel timestamps do.
    #[must_use]
    pub const fn stamped(mut self) -> Self {
        self.is_stamped = true;
        self
    }
}

impl<H: Machine> Machine for Framed<H> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        if self.frame.is_zero() {
            self.inner.handle_marked_datagram(now, path, ecn, datagram);
        } else if self.waiting.len() >= self.max_waiting {
            self.dropped_bytes += datagram.len() as u64 + UDP_IP_OVERHEAD;
        } else {
            self.waiting.push((now, path, ecn, datagram.to_vec()));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (arrived, path, ecn, mut datagram) in self.waiting.drain(..) {
            let at = if self.is_stamped { arrived } else { now };
            self.inner.handle_marked_datagram(at, path, ecn, &mut datagram);
        }
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
        self.open = Some(now);
        self.next_frame = self.next_frame + self.frame;
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.frame.is_zero() || self.open == Some(now) {
            self.inner.poll_transmit(now, batch);
            if !batch.is_full() {
                self.open = None;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.frame.is_zero() { self.inner.poll_timeout() } else { Some(self.next_frame) }
    }
}

impl<H: Host> Host for Framed<H> {
    fn check_invariants(&self) {
        self.inner.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address;

    #[derive(Clone, Default)]
    struct Noting(Vec<Instant>);

    impl Machine for Noting {
        fn handle_datagram(&mut self, now: Instant, _path: FourTuple, _datagram: &mut [u8]) {
            self.0.push(now);
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_transmit(&mut self, _now: Instant, _batch: &mut Batch) {}

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    #[test]
    fn a_full_buffer_drops_and_the_rest_have_arrival_times() {
        let ms = Instant::from_millis;
        let host = Framed::new(Noting::default(), Duration::from_millis(16), ms(3)).holding(2);
        for (mut host, heard) in [(host.clone(), [ms(19); 2]), (host.stamped(), [ms(4), ms(5)])] {
            assert_eq!(host.poll_timeout(), Some(ms(3)));
            host.handle_timeout(ms(3));
            for at in [4, 5, 6] {
                host.handle_datagram(ms(at), address(1).into(), &mut [0; 100]);
            }
            assert!(host.inner.0.is_empty());
            assert_eq!(host.poll_timeout(), Some(ms(19)));
            host.handle_timeout(ms(19));
            assert_eq!((&host.inner.0[..], host.dropped_bytes), (&heard[..], 128));
        }
    }
}
