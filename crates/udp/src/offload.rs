//! One call for many datagrams, where the system has one: over `quinn-udp`, which knows how each of them
//! does it (`docs/decisions/0011-batches.md`).

use std::io;
use std::net::SocketAddr;

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use crate::Inbox;

/// What a socket can do at once.
#[derive(Debug)]
pub(crate) struct Offload {
    state: UdpSocketState,
    segments: usize,
}

impl Offload {
    /// Asks the system. Sets the socket's options: joined datagrams and their stamps, and no fragments of IP.
    pub(crate) fn new(socket: UdpSockRef<'_>) -> io::Result<Self> {
        let state = UdpSocketState::new(socket)?;
        let segments = state.max_gso_segments().max(1);
        Ok(Self { state, segments })
    }

    /// Datagrams that [`send`](Self::send) takes at most.
    pub(crate) const fn max_segments(&self) -> usize {
        self.segments
    }

    /// From now on `most` at most; not more than the system takes.
    pub(crate) fn limit_segments(&mut self, most: usize) {
        self.segments = self.segments.min(most.max(1));
    }

    /// Receives what waits into `inbox`. Returns how many datagrams.
    pub(crate) fn receive(&self, socket: UdpSockRef<'_>, inbox: &mut Inbox) -> io::Result<usize> {
        inbox.fill(|buffers, metas| self.state.recv(socket, buffers, metas))
    }

    /// Sends datagrams of `segment` bytes, of which the last may be shorter: all of them or none.
    pub(crate) fn send(
        &self,
        socket: UdpSockRef<'_>,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: datagrams,
            segment_size: Some(segment),
            src_ip: None,
        };
        self.state.try_send(socket, &transmit)
    }
}

/// Whether an error of [`Offload::send`] may mean that the system does not split: `EIO` where a driver of
/// the interface cannot, `EINVAL` where the kernel does not know how.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    /// The same on Linux and Android, where it matters.
    const EIO: i32 = 5;
    error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error() == Some(EIO)
}
