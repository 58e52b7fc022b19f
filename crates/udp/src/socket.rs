//! A non-blocking UDP socket with large buffers, which sends and receives many datagrams with one call.
//!
//! "Make sure you increase the size of your OS socket buffers on both ends so they are larger than your
//! maximum chunk size (I recommend at least double), otherwise you'll be dropping slices packets before
//! they even hit the wire" (*Sending Large Blocks of Data*, "Kicking it up a notch"). The calls are
//! `quinn-udp`'s, which knows how each system does it (`docs/decisions/0011-batches.md`), except for
//! receiving on Linux ([`receive`](crate::receive)).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use haulier_core::chunk::MAX_CHUNK_BYTES;
use haulier_core::{Ecn, Run};
use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Type};

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::errors::is_call_refused;
use crate::{Carrier, Inbox};

/// What is asked of the system for each buffer: 4 MiB, which holds 14 bursts of 256 KiB. (A slice of 1 KiB
/// costs the kernel more than twice its size, so "at least double" in bytes is one burst in packets.)
pub const WANTED_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Below this a socket cannot hold one burst: twice the chunk, and Linux reports the double of what it
/// grants.
const ENOUGH_BUFFER_BYTES: usize = 2 * MAX_CHUNK_BYTES;

/// The maximum number of datagrams that are no run in one call: with 64 its price, some 500 ns, is small
/// beside what the system takes for each datagram.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MAX_SEVERAL: usize = 64;

/// Whether a connected socket accepts an address with a datagram, and so an ECN field: not on macOS and the
/// BSDs.
const TAKES_ADDRESS: bool =
    cfg!(any(target_os = "linux", target_os = "android", target_os = "windows"));

/// What the system granted, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferSizes {
    /// Bytes for what arrived and was not read.
    pub receive_bytes: usize,
    /// Bytes for what was sent and has not left.
    pub send_bytes: usize,
}

impl BufferSizes {
    /// Whether one burst fits each buffer.
    #[must_use]
    const fn are_enough(&self) -> bool {
        self.receive_bytes >= ENOUGH_BUFFER_BYTES && self.send_bytes >= ENOUGH_BUFFER_BYTES
    }

    /// Bytes of full datagrams that wait to be read at most, for `ConnectionConfig::receive_buffer_bytes`:
    /// half of what the system reports. Linux counts 2304 bytes for a datagram of 1200, and other systems
    /// what they need for it, too.
    #[must_use]
    pub const fn payload_bytes(&self) -> u64 {
        self.receive_bytes as u64 / 2
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
            self.receive_bytes / 1024,
            self.send_bytes / 1024,
            ENOUGH_BUFFER_BYTES / 1024,
        ))
    }
}

/// A non-blocking UDP socket. Its datagrams are never split by IP: one that is longer than the path takes is
/// lost.
#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    state: UdpSocketState,
    max_segments: usize,
    /// The system sends several datagrams with one call, as far as is known.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    takes_several: bool,
    local: SocketAddr,
    remote: Option<SocketAddr>,
    buffers: BufferSizes,
}

impl Socket {
    /// A socket that receives from any address at `local`; port 0 lets the system choose one. At `[::]` it
    /// receives IPv4 too.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        Self::open(local, None, false)
    }

    /// Another socket at the same address, of the same program. The system divides what arrives: all from one
    /// address goes to one of them. From then on other programs of the same user could do the same.
    ///
    /// # Errors
    /// As the system says; `Unsupported` where [`divides_ports`] says so.
    pub fn bind_beside(&self) -> io::Result<Self> {
        if !divides_ports() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        share_port(&socket2::SockRef::from(&self.inner))?;
        Self::open(self.local, None, true)
    }

    /// A socket connected to `remote`: the system drops datagrams from elsewhere, and reports when
    /// the port there is closed. A link-local address needs its scope.
    ///
    /// # Errors
    /// As the system says, for example when there is no route.
    pub fn connect(remote: SocketAddr) -> io::Result<Self> {
        let anywhere = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::open(SocketAddr::new(anywhere, 0), Some(remote), false)
    }

    fn open(local: SocketAddr, remote: Option<SocketAddr>, is_beside: bool) -> io::Result<Self> {
        let domain = Domain::for_address(local);
        let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        // The system may grant less, or refuse; what counts is what it says afterwards.
        let _granted = socket.set_recv_buffer_size(WANTED_BUFFER_BYTES);
        let _granted = socket.set_send_buffer_size(WANTED_BUFFER_BYTES);
        if local.is_ipv6() && local.ip().is_unspecified() {
            // IPv4 too, also where that is not the default (Windows), or not to be had.
            let _granted = socket.set_only_v6(false);
        }
        if is_beside {
            share_port(&socket)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        if let Some(remote) = remote {
            socket.connect(&remote.into())?;
        }
        let buffers = BufferSizes {
            receive_bytes: socket.recv_buffer_size()?,
            send_bytes: socket.send_buffer_size()?,
        };
        let state = UdpSocketState::new((&socket).into())?;
        let max_segments = state.max_gso_segments().max(1);
        let inner = UdpSocket::from(socket);
        let local = inner.local_addr()?;
        Ok(Self {
            inner,
            state,
            max_segments,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            takes_several: true,
            local,
            remote,
            buffers,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the system granted.
    #[must_use]
    pub const fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Asks for another receive buffer than the usual one. What the system grants is in
    /// [`buffers`](Self::buffers) afterwards.
    ///
    /// # Errors
    /// As the system says.
    #[doc(hidden)]
    pub fn set_receive_buffer(&mut self, bytes: usize) -> io::Result<()> {
        let socket = socket2::SockRef::from(&self.inner);
        socket.set_recv_buffer_size(bytes)?;
        self.buffers.receive_bytes = socket.recv_buffer_size()?;
        Ok(())
    }

    /// Whether IP never splits its datagrams: without that nothing can be learned from a probe.
    #[must_use]
    pub fn forbids_fragmentation(&self) -> bool {
        !self.state.may_fragment()
    }

    /// A second handle on the same socket, to wait for it.
    #[cfg(feature = "tokio")]
    pub(crate) fn try_clone_inner(&self) -> io::Result<UdpSocket> {
        self.inner.try_clone()
    }
}

impl Carrier for Socket {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        let is_wildcard = self.remote.is_none() && self.local.ip().is_unspecified();
        inbox.fill(is_wildcard, |buffers, metas| {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            return crate::receive::receive(&self.inner, buffers, metas);
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            self.state.recv((&self.inner).into(), buffers, metas)
        })
    }

    /// On a connected socket to its remote, wherever the run is for.
    fn send(&mut self, run: &Run<'_>) -> io::Result<()> {
        let ecn = codepoint(run.ecn);
        // The simple calls cost less.
        let is_simple = run.datagrams == 1 && ecn.is_none();
        let (destination, local) = match self.remote {
            Some(_) if is_simple || run.datagrams == 1 && !TAKES_ADDRESS => {
                return self.inner.send(run.bytes).map(drop);
            }
            Some(remote) => (remote, None),
            None => (run.path.remote, run.path.local),
        };
        if is_simple && local.is_none() {
            return self.inner.send_to(run.bytes, destination).map(drop);
        }
        let transmit = Transmit {
            destination,
            ecn,
            contents: run.bytes,
            segment_size: (run.datagrams > 1).then_some(run.segment_bytes),
            src_ip: local,
        };
        self.state.try_send((&self.inner).into(), &transmit)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn send_several(&mut self, datagrams: &[Run<'_>]) -> io::Result<usize> {
        let Some(first) = datagrams.first() else { return Ok(0) };
        if self.takes_several {
            let ecn = codepoint(first.ecn).map_or(0, |it| it as u8);
            match crate::send::send(&self.inner, datagrams, self.remote, ecn) {
                Err(error) if is_call_refused(&error) => self.takes_several = false,
                sent => return sent,
            }
        }
        self.send(first).map(|()| 1)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn max_several(&self) -> usize {
        if self.takes_several { MAX_SEVERAL } else { 1 }
    }

    fn max_segments(&self) -> usize {
        self.max_segments
    }

    fn limit_segments(&mut self, max_segments: usize) {
        self.max_segments = self.max_segments.min(max_segments.max(1));
    }
}

/// Whether several sockets at one address divide what arrives by where it is from. Other systems than Linux
/// have no such option for UDP, or give everything to one of them.
#[must_use]
pub const fn divides_ports() -> bool {
    cfg!(any(target_os = "linux", target_os = "android"))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn share_port(_socket: &socket2::Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The ECN field as the system takes it.
const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_come_with_a_remedy() {
        let few = BufferSizes { receive_bytes: 212_992, send_bytes: 212_992 };
        assert!(few.warning().unwrap().contains("net.core.rmem_max"));
        let many = BufferSizes { receive_bytes: 8 << 20, send_bytes: 8 << 20 };
        assert_eq!(many.warning(), None);
    }
}
