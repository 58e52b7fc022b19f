//! A non-blocking UDP socket with large buffers, and errors sorted by what they mean.
//!
//! "Make sure you increase the size of your OS socket buffers on both ends so they are larger than your
//! maximum chunk size (I recommend at least double), otherwise you'll be dropping slices packets before
//! they even hit the wire" (*Sending Large Blocks of Data*, "Kicking it up a notch").

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use haulier_core::chunk::MAX_CHUNK_BYTES;
use socket2::{Domain, Protocol, Type};

use crate::offload::{Offload, is_refusal};
use crate::outbox::{BatchSent, DatagramSender};
use crate::{Inbox, Outbox, Transmitted, wait};

/// What is asked of the system for each buffer: 4 MiB, which holds 14 bursts of 256 KiB. (A slice of 1 KiB
/// costs the kernel more than twice its size, so "at least double" in bytes is one burst in packets.)
pub const WANTED_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Below this a socket cannot hold one burst: twice the chunk, and Linux reports the double of what it
/// grants.
const ENOUGH_BUFFER_BYTES: usize = 2 * MAX_CHUNK_BYTES;

/// Errors that say "not now" without being `WouldBlock`: the interface's queue is full. `ENOBUFS` on
/// Linux, and on macOS and the BSDs.
const NO_BUFFER_SPACE: [i32; 2] = [105, 55];

/// `EBADF` and `ENOTSOCK`, on Linux, macOS and Windows: the descriptor is no socket (any more).
const NO_SOCKET: [i32; 5] = [9, 88, 38, 10_009, 10_038];

/// What the system granted, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Bytes for what arrived and was not read.
    pub receive: usize,
    /// Bytes for what was sent and has not left.
    pub send: usize,
}

impl BufferSizes {
    /// Whether one burst fits each buffer.
    #[must_use]
    pub const fn are_enough(&self) -> bool {
        self.receive >= ENOUGH_BUFFER_BYTES && self.send >= ENOUGH_BUFFER_BYTES
    }

    /// A sentence for the user when they are not, with what to do.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.are_enough() {
            return None;
        }
        Some(format!(
            "the system grants socket buffers of only {} KiB (receive) and {} KiB (send), under the {} \
             KiB that a burst needs: slices will be lost in this machine. Raise net.core.rmem_max and \
             net.core.wmem_max to {WANTED_BUFFER_BYTES}, or switch the burst off",
            self.receive / 1024,
            self.send / 1024,
            ENOUGH_BUFFER_BYTES / 1024,
        ))
    }
}

/// Errors that one receive passes over, so that one which does not pass (a system without memory) cannot hold
/// the program: it is told that nothing is waiting, and asks again with its next turn.
const PASSED_OVER: usize = 64;

/// What a receive gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many datagrams, at least one.
    Datagrams(usize),
    /// Nothing is waiting.
    Nothing,
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The system took it.
    Taken,
    /// The system has no room: offer the same datagram again when the socket is writable.
    Blocked,
    /// It is lost like any packet on the way: an ICMP error of an earlier one, a route that is gone for
    /// the moment. The protocol repeats what matters.
    Lost,
}

/// Counters of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes in them, without headers.
    pub sent_bytes: u64,
    /// Calls that sent several of them.
    pub batches: u64,
    /// Datagrams received.
    pub received: u64,
    /// Calls that received them.
    pub receive_calls: u64,
    /// Sends put off because the system had no room.
    pub blocked: u64,
    /// Errors that were passed over, such as ICMP "port unreachable".
    pub passed_over: u64,
    /// Of these, refusals: nobody listens at the other end, as its host says.
    pub refused: u64,
}

/// A non-blocking UDP socket. Its datagrams are never split by IP: one that is longer than the path takes is
/// lost.
#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    offload: Offload,
    remote: Option<SocketAddr>,
    buffers: BufferSizes,
    stats: SocketStats,
    /// Whether its own buffer is what had no room for the last send: then it tells when there is some.
    awaits_room: bool,
}

impl Socket {
    /// A socket that hears everybody at `local`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = open(local)?;
        let buffers =
            BufferSizes { receive: socket.recv_buffer_size()?, send: socket.send_buffer_size()? };
        Ok(Self {
            offload: Offload::new((&socket).into())?,
            inner: socket.into(),
            remote: None,
            buffers,
            stats: SocketStats::default(),
            awaits_room: false,
        })
    }

    /// A socket that speaks with `remote` alone: the system keeps all others out, and reports when
    /// nobody listens there.
    ///
    /// # Errors
    /// As the system says, for example when there is no route.
    pub fn connect(remote: SocketAddr) -> io::Result<Self> {
        let mut socket = Self::bind(any_local(remote))?;
        socket.inner.connect(remote)?;
        socket.remote = Some(remote);
        Ok(socket)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Whom it is connected with.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// What the system granted.
    #[must_use]
    pub const fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &SocketStats {
        &self.stats
    }

    /// How many datagrams one call sends at most: 1 where the system cannot split a batch.
    #[must_use]
    pub const fn max_segments(&self) -> usize {
        self.offload.max_segments()
    }

    /// Sends no more than `most` datagrams with one call; 1 sends each alone. For an interface whose driver
    /// splits badly.
    pub fn limit_segments(&mut self, most: usize) {
        self.offload.limit_segments(most);
    }

    /// Receives what waits, up to what `inbox` holds. What was in it is gone. Ask again until
    /// [`Received::Nothing`].
    ///
    /// # Errors
    /// Only those that will not pass.
    pub fn receive(&mut self, inbox: &mut Inbox) -> io::Result<Received> {
        for _ in 0..PASSED_OVER {
            match self.offload.receive((&self.inner).into(), inbox) {
                Ok(0) => return Ok(Received::Nothing),
                Ok(datagrams) => {
                    self.stats.received += datagrams as u64;
                    self.stats.receive_calls += 1;
                    return Ok(Received::Datagrams(datagrams));
                }
                Err(error) => match sort(&error) {
                    Meaning::NotNow => return Ok(Received::Nothing),
                    Meaning::PassesOver => self.pass_over(&error),
                    Meaning::Fatal => return Err(error),
                },
            }
        }
        Ok(Received::Nothing)
    }

    /// Sends a datagram to `to`, or on a connected socket to its remote.
    ///
    /// # Errors
    /// Only those that will not pass.
    pub fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        let sent = match self.remote {
            Some(_) => self.inner.send(datagram),
            None => self.inner.send_to(datagram, to),
        };
        match sent {
            Ok(bytes) => Ok(self.count(1, bytes)),
            Err(error) => self.judge(error),
        }
    }

    /// Sends what waits in `outbox`, and then what `poll` hands out: each datagram into the buffer, and whom
    /// it is for, until `None`. Many go with one call where the system can. `most` is how many datagrams are
    /// asked for.
    ///
    /// # Errors
    /// Only those that will not pass.
    pub fn transmit(
        &mut self,
        outbox: &mut Outbox,
        most: usize,
        poll: impl FnMut(&mut Vec<u8>) -> Option<SocketAddr>,
    ) -> io::Result<Transmitted> {
        outbox.transmit(self, most, poll)
    }

    /// Sleeps until there is something to receive, or room again after a send found none, but no longer than
    /// `most`. See [`wait`](crate::wait()) for several sockets.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait(&self, most: Duration) -> io::Result<()> {
        wait::wait_one(self, most)
    }

    pub(crate) const fn awaits_room(&self) -> bool {
        self.awaits_room
    }

    /// The system took so much.
    fn count(&mut self, datagrams: usize, bytes: usize) -> Sent {
        self.awaits_room = false;
        self.stats.sent += datagrams as u64;
        self.stats.sent_bytes += bytes as u64;
        Sent::Taken
    }

    /// What an error means for what was to be sent.
    fn judge(&mut self, error: io::Error) -> io::Result<Sent> {
        match sort(&error) {
            Meaning::NotNow => {
                self.awaits_room = error.kind() == ErrorKind::WouldBlock;
                self.stats.blocked += 1;
                Ok(Sent::Blocked)
            }
            Meaning::PassesOver => {
                self.pass_over(&error);
                Ok(Sent::Lost)
            }
            Meaning::Fatal => Err(error),
        }
    }

    fn pass_over(&mut self, error: &io::Error) {
        self.stats.passed_over += 1;
        self.stats.refused += u64::from(error.kind() == ErrorKind::ConnectionRefused);
    }
}

impl DatagramSender for Socket {
    fn max_segments(&self) -> usize {
        Self::max_segments(self)
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        Self::send(self, datagram, to)
    }

    fn send_segments(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<BatchSent> {
        let to = self.remote.unwrap_or(to);
        match self.offload.send((&self.inner).into(), datagrams, segment, to) {
            Ok(()) => {
                self.stats.batches += 1;
                Ok(BatchSent::As(self.count(datagrams.len().div_ceil(segment), datagrams.len())))
            }
            Err(error) if is_refusal(&error) => Ok(BatchSent::Refused),
            Err(error) => self.judge(error).map(BatchSent::As),
        }
    }

    fn stop_segments(&mut self) {
        self.limit_segments(1);
    }
}

/// To wait for the socket together with anything else: with `poll`, `epoll`, or a reactor over them. Reading
/// or writing through it is not for others: the system joins datagrams.
#[cfg(unix)]
impl std::os::fd::AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// To wait for the socket together with anything else.
#[cfg(windows)]
impl std::os::windows::io::AsSocket for Socket {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.inner.as_socket()
    }
}

/// A socket with large buffers that never blocks, at `local`.
pub(crate) fn open(local: SocketAddr) -> io::Result<socket2::Socket> {
    let socket =
        socket2::Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    // The system may grant less, or refuse; what counts is what it says afterwards.
    let _granted = socket.set_recv_buffer_size(WANTED_BUFFER_BYTES);
    let _granted = socket.set_send_buffer_size(WANTED_BUFFER_BYTES);
    if local.is_ipv6() && local.ip().is_unspecified() {
        // A server at [::] hears IPv4 too, also where that is not the default (Windows), or not to be had.
        let _granted = socket.set_only_v6(false);
    }
    socket.set_nonblocking(true)?;
    socket.bind(&local.into())?;
    Ok(socket)
}

/// Where a socket that speaks with `remote` may be: anywhere, in its family.
pub(crate) fn any_local(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// What an error means for the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Try again later.
    NotNow,
    /// About one packet, past or present; the socket is fine.
    PassesOver,
    /// About the socket or the program.
    Fatal,
}

/// Sorts errors. Fatal is only "this is no socket", all others pass over: one peer's ICMP error, one odd
/// packet or one address without a route must not end a socket that others use.
pub(crate) fn sort(error: &io::Error) -> Meaning {
    if error.raw_os_error().is_some_and(|code| NO_BUFFER_SPACE.contains(&code)) {
        return Meaning::NotNow;
    }
    match error.kind() {
        ErrorKind::WouldBlock => Meaning::NotNow,
        _ if error.raw_os_error().is_some_and(|code| NO_SOCKET.contains(&code)) => Meaning::Fatal,
        _ => Meaning::PassesOver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_of_a_single_packet_is_fatal() {
        let meaning = |code| sort(&io::Error::from_raw_os_error(code));
        // Linux: EPERM, EINTR, EINVAL, EMSGSIZE, ENETDOWN, ENETUNREACH, ECONNRESET, ECONNREFUSED, EHOSTDOWN,
        // EHOSTUNREACH.
        for code in [1, 4, 22, 90, 100, 101, 104, 111, 112, 113] {
            assert_eq!(
                meaning(code),
                Meaning::PassesOver,
                "{}",
                io::Error::from_raw_os_error(code)
            );
        }
        // EAGAIN, ENOBUFS.
        assert_eq!([11, 105].map(meaning), [Meaning::NotNow; 2]);
        // EBADF, ENOTSOCK.
        assert_eq!([9, 88].map(meaning), [Meaning::Fatal; 2]);
    }

    #[test]
    fn small_buffers_are_told_with_a_remedy() {
        let few = BufferSizes { receive: 212_992, send: 212_992 };
        assert!(few.warning().unwrap().contains("net.core.rmem_max"));
        let many = BufferSizes { receive: 8 << 20, send: 8 << 20 };
        assert_eq!(many.warning(), None);
    }
}
