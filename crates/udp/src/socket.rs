//! A non-blocking UDP socket with large buffers, and errors sorted by what they mean.
//!
//! "Make sure you increase the size of your OS socket buffers on both ends so they are larger than your
//! maximum chunk size (I recommend at least double), otherwise you'll be dropping slices packets before
//! they even hit the wire" (*Sending Large Blocks of Data*, "Kicking it up a notch").

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use haulier_proto::chunk::MAX_CHUNK_BYTES;
use socket2::{Domain, Protocol, Type};

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

/// What a receive gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram of so many bytes, from there.
    Datagram(usize, SocketAddr),
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
    /// Datagrams received.
    pub received: u64,
    /// Sends put off because the system had no room.
    pub blocked: u64,
    /// Errors that were passed over, such as ICMP "port unreachable".
    pub passed_over: u64,
    /// Of these, refusals: nobody listens at the other end, as its host says.
    pub refused: u64,
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    inner: mio::net::UdpSocket,
    remote: Option<SocketAddr>,
    buffers: BufferSizes,
    stats: SocketStats,
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
            inner: mio::net::UdpSocket::from_std(socket.into()),
            remote: None,
            buffers,
            stats: SocketStats::default(),
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

    /// The next datagram that waits, into `buffer`. A longer one is cut to it, so make it one byte longer
    /// than the longest you accept.
    ///
    /// # Errors
    /// Only those that will not pass.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.inner.recv_from(buffer) {
                Ok((bytes, from)) => {
                    self.stats.received += 1;
                    return Ok(Received::Datagram(bytes, from));
                }
                Err(error) => match sort(&error) {
                    Meaning::NotNow => return Ok(Received::Nothing),
                    Meaning::PassesOver => self.pass_over(&error),
                    Meaning::Fatal => return Err(error),
                },
            }
        }
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
            Ok(bytes) => {
                self.stats.sent += 1;
                self.stats.sent_bytes += bytes as u64;
                Ok(Sent::Taken)
            }
            Err(error) => match sort(&error) {
                Meaning::NotNow => {
                    self.stats.blocked += 1;
                    Ok(Sent::Blocked)
                }
                Meaning::PassesOver => {
                    self.pass_over(&error);
                    Ok(Sent::Lost)
                }
                Meaning::Fatal => Err(error),
            },
        }
    }

    /// To wait for the socket together with others.
    pub fn source(&mut self) -> &mut impl mio::event::Source {
        &mut self.inner
    }

    fn pass_over(&mut self, error: &io::Error) {
        self.stats.passed_over += 1;
        self.stats.refused += u64::from(error.kind() == ErrorKind::ConnectionRefused);
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
