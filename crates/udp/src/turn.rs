//! One machine on one socket, in the caller's thread: what the drivers of clients and servers share.
//!
//! [`Rounds`] knows nothing of waiting, so that a reactor of another kind can do it; [`Turns`] waits for its
//! one socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::wire::MAX_DATAGRAM_BYTES;

use crate::outbox::DatagramSender;
use crate::{Clock, Inbox, Outbox, Received, Socket, Transmitted};

/// Datagrams after which one round receives no more, so that a flood cannot keep it from sending.
const RECEIVED_PER_ROUND: usize = 1024;

/// Datagrams that one round sends at most, so that a thousand joiners cannot keep it from hearing acks.
const SENT_PER_ROUND: usize = 1024;

/// How long a datagram that found no room waits at most before it is offered again.
const BLOCKED: Duration = Duration::from_millis(5);

/// One byte more than the longest datagram, so that a longer one is seen to be too long.
const TOO_LONG: usize = MAX_DATAGRAM_BYTES + 1;

/// What a driver drives.
pub(crate) trait Machine {
    /// A datagram came from there, and arrived then. Whether it was of use is the machine's business.
    fn handle_datagram(&mut self, arrived: Instant, from: SocketAddr, datagram: &mut [u8]);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr>;
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A socket that never blocks, and has sorted its errors: any kind of.
pub(crate) trait Carrier: DatagramSender {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<Received>;
}

/// What passes between a machine and a socket, whatever waits for the socket.
#[derive(Debug)]
pub(crate) struct Rounds {
    clock: Clock,
    inbox: Inbox,
    outbox: Outbox,
    /// More waits than one round may do; the system will not wake us for it.
    more: bool,
}

impl Rounds {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, inbox: Inbox::new(), outbox: Outbox::new(), more: false }
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Receives what is there, acts on what is due, sends what there is to send.
    pub(crate) fn round(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<()> {
        self.more = self.receive(carrier, machine)?;
        machine.handle_timeout(self.clock.now());
        self.more |= self.transmit(carrier, machine)?;
        Ok(())
    }

    /// Sends what there is to send, and does nothing else.
    pub(crate) fn flush(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<()> {
        self.more |= self.transmit(carrier, machine)?;
        Ok(())
    }

    /// How long there is nothing to do unless the socket says so, but no longer than `most`.
    pub(crate) fn pause(&self, machine: &impl Machine, most: Duration) -> Duration {
        if self.more {
            return Duration::ZERO;
        }
        // While a datagram waits for room, deadlines cannot be met. The socket wakes us when there is some,
        // but where a full queue of the interface (`ENOBUFS`) is the reason nobody does.
        if self.outbox.is_blocked() {
            return most.min(BLOCKED);
        }
        machine.poll_timeout().map_or(most, |at| most.min(self.clock.until(at)))
    }

    /// Whether a datagram waits for the socket to be writable.
    #[cfg(feature = "tokio")]
    pub(crate) const fn is_blocked(&self) -> bool {
        self.outbox.is_blocked()
    }

    /// Drops what waits for room.
    pub(crate) fn clear(&mut self) {
        self.outbox.clear();
    }

    fn receive(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<bool> {
        let mut received = 0;
        while received < RECEIVED_PER_ROUND {
            let Received::Datagrams(datagrams) = carrier.receive(&mut self.inbox)? else {
                return Ok(false);
            };
            received += datagrams;
            self.inbox.drain(&self.clock, |arrived, from, datagram| {
                let seen = datagram.len().min(TOO_LONG);
                machine.handle_datagram(arrived, from, &mut datagram[..seen]);
            });
        }
        Ok(true)
    }

    fn transmit(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<bool> {
        let clock = &self.clock;
        let transmitted = self.outbox.transmit(carrier, SENT_PER_ROUND, |datagram| {
            machine.poll_transmit(clock.now(), datagram)
        })?;
        Ok(transmitted == Transmitted::Most)
    }
}

/// Rounds on a [`Socket`], and the wait between them.
#[derive(Debug)]
pub(crate) struct Turns {
    socket: Socket,
    rounds: Rounds,
}

impl Turns {
    pub(crate) fn new(socket: Socket, clock: Clock) -> Self {
        Self { socket, rounds: Rounds::new(clock) }
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) const fn clock(&self) -> &Clock {
        self.rounds.clock()
    }

    /// Goes on with another socket. What waited in the old one is lost, like anything on the way.
    pub(crate) fn replace_socket(&mut self, socket: Socket) -> Socket {
        std::mem::replace(&mut self.socket, socket)
    }

    /// Drops what waits for room.
    pub(crate) fn clear(&mut self) {
        self.rounds.clear();
    }

    pub(crate) fn round(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.rounds.round(&mut self.socket, machine)
    }

    pub(crate) fn flush(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.rounds.flush(&mut self.socket, machine)
    }

    /// Sleeps until there is something to do, but no longer than `most`.
    pub(crate) fn wait(&self, machine: &impl Machine, most: Duration) -> io::Result<()> {
        self.socket.wait(self.rounds.pause(machine, most))
    }
}

impl Carrier for Socket {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<Received> {
        Self::receive(self, inbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sent;
    use crate::outbox::BatchSent;

    /// Has so many datagrams to send, numbered, and one deadline.
    struct Many {
        next: u16,
        most: u16,
    }

    impl Machine for Many {
        fn handle_datagram(&mut self, _: Instant, _: SocketAddr, _: &mut [u8]) {}

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_transmit(&mut self, _: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
            if self.next == self.most {
                return None;
            }
            datagram.clear();
            datagram.extend_from_slice(&self.next.to_be_bytes());
            self.next += 1;
            Some(SocketAddr::from(([192, 0, 2, 1], 4000)))
        }

        fn poll_timeout(&self) -> Option<Instant> {
            (self.next < self.most).then_some(Instant::ZERO)
        }
    }

    /// Has room for every third call.
    #[derive(Default)]
    struct Narrow {
        calls: usize,
        taken: Vec<u8>,
    }

    impl Carrier for Narrow {
        fn receive(&mut self, _: &mut Inbox) -> io::Result<Received> {
            Ok(Received::Nothing)
        }
    }

    impl DatagramSender for Narrow {
        fn max_segments(&self) -> usize {
            64
        }

        fn send(&mut self, datagram: &[u8], _: SocketAddr) -> io::Result<Sent> {
            self.calls += 1;
            if !self.calls.is_multiple_of(3) {
                return Ok(Sent::Blocked);
            }
            self.taken.extend_from_slice(datagram);
            Ok(Sent::Taken)
        }

        fn send_segments(
            &mut self,
            datagrams: &[u8],
            _: usize,
            to: SocketAddr,
        ) -> io::Result<BatchSent> {
            self.send(datagrams, to).map(BatchSent::As)
        }

        fn stop_segments(&mut self) {}
    }

    #[test]
    fn a_socket_that_blocks_loses_nothing_and_is_asked_again_soon() {
        const DAY: Duration = Duration::from_secs(86_400);
        let mut rounds = Rounds::new(Clock::start());
        let (mut machine, mut carrier) = (Many { next: 0, most: 3000 }, Narrow::default());
        for _ in 0..1000 {
            rounds.round(&mut carrier, &mut machine).unwrap();
            if carrier.taken.len() == 6000 {
                break;
            }
            // Blocked, or a round was long enough.
            assert!(rounds.pause(&machine, DAY) <= BLOCKED);
        }
        assert!(carrier.taken.chunks(2).eq((0..3000u16).map(u16::to_be_bytes)));
        rounds.round(&mut carrier, &mut machine).unwrap();
        assert_eq!(rounds.pause(&machine, DAY), DAY, "nothing is left");
    }
}
