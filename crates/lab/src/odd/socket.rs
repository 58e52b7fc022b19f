//! A client that reads its socket once per frame, and a socket that holds only so much.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;

use super::Party;
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Host, Rng};

/// How a socket is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// From one read to the next, and from one send; zero is at once.
    pub every: Duration,
    /// Datagrams that the socket's buffer holds between two reads; the rest is dropped. `None` is no limit.
    /// A kernel counts its own memory and not bytes: 208 KiB, Linux's default, hold 92 datagrams of 1200.
    pub holds: Option<usize>,
}

/// A datagram that waits: when it came, from where, and its bytes.
type Waiting = (Instant, SocketAddr, Vec<u8>);

/// A host behind a socket that is read now and then. The host is told when each datagram came, as kernels
/// do, and sends when it reads.
#[derive(Debug)]
pub struct SlowSocket<H> {
    /// The host.
    pub host: H,
    /// Bytes of datagrams that found the buffer full, headers counted.
    pub dropped_bytes: u64,
    reading: Reading,
    next_read: Instant,
    /// The read that goes on.
    open: Option<Instant>,
    waiting: VecDeque<Waiting>,
}

impl<H> SlowSocket<H> {
    /// A host with its socket; the first read is somewhere in the first interval.
    #[must_use]
    pub fn new(host: H, reading: Reading, seed: u64) -> Self {
        let phase = Rng::stream(seed, 91).below(reading.every.as_nanos() as u64);
        Self {
            host,
            dropped_bytes: 0,
            reading,
            next_read: Instant::from_nanos(phase),
            open: None,
            waiting: VecDeque::new(),
        }
    }

    const fn is_at_once(&self) -> bool {
        self.reading.every.is_zero()
    }
}

impl<H: Host> Host for SlowSocket<H> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        if self.is_at_once() {
            self.host.handle_datagram(now, from, datagram);
        } else if self.reading.holds.is_some_and(|room| self.waiting.len() >= room) {
            self.dropped_bytes += datagram.len() as u64 + UDP_IP_OVERHEAD;
        } else {
            self.waiting.push_back((now, from, datagram.to_vec()));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (at, from, mut datagram) in self.waiting.drain(..) {
            self.host.handle_datagram(at, from, &mut datagram);
        }
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        self.open = Some(now);
        self.next_read = self.next_read + self.reading.every;
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        if !self.is_at_once() && self.open != Some(now) {
            return None;
        }
        let to = self.host.poll_transmit(now, datagram);
        if to.is_none() {
            self.open = None;
        }
        to
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_at_once() { self.host.poll_timeout() } else { Some(self.next_read) }
    }

    fn check_invariants(&self) {
        self.host.check_invariants();
    }
}

impl<P: Party> Party for SlowSocket<P> {
    fn blocks(&self) -> usize {
        self.host.blocks()
    }

    fn send_block(&mut self, now: Instant) {
        self.host.send_block(now);
    }

    fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_sim::join::address;

    #[derive(Debug, Default)]
    struct Noting(Vec<Instant>);

    impl Host for Noting {
        fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, _datagram: &mut [u8]) {
            self.0.push(now);
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<SocketAddr> {
            None
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_the_rest_says_when_it_came() {
        let reading = Reading { every: Duration::from_millis(16), holds: Some(2) };
        let mut socket = SlowSocket::new(Noting::default(), reading, 1);
        let first = socket.poll_timeout().unwrap();
        for millis in [1, 2, 3] {
            let at = first + Duration::from_millis(millis);
            socket.handle_datagram(at, address(1), &mut [0; 100]);
        }
        assert!(socket.host.0.is_empty());
        socket.handle_timeout(first + Duration::from_millis(16));
        assert_eq!(socket.host.0, [1, 2].map(|millis| first + Duration::from_millis(millis)));
        assert_eq!(socket.dropped_bytes, 128);
        assert_eq!(socket.poll_timeout(), Some(first + Duration::from_millis(16)));
    }
}
