//! Waiting for a socket in a task of tokio's.

use std::io;
use std::task::{Context, Poll};

use tokio::io::Interest as Direction;
use tokio::net::UdpSocket;

use crate::{Interest, Socket};

/// Tells a task when a socket is ready. Nothing is received or sent through it.
///
/// tokio remembers that a socket was ready until somebody has found it empty, so the order is:
/// [`clear`](Self::clear), a round, [`poll`](Self::poll). What arrives after the first makes it ready again.
#[derive(Debug)]
pub struct Readiness(UdpSocket);

impl Readiness {
    /// That of this socket.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Panics
    /// Outside of a runtime with its IO enabled.
    pub fn new(socket: &Socket) -> io::Result<Self> {
        UdpSocket::from_std(socket.try_clone_inner()?).map(Self)
    }

    /// Forgets that it was ready.
    pub fn clear(&self) {
        for direction in [Direction::READABLE, Direction::WRITABLE] {
            let _empty: io::Result<()> =
                self.0.try_io(direction, || Err(io::ErrorKind::WouldBlock.into()));
        }
    }

    /// Whether the socket has what its runner waits for; if not, the task is woken when it has.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub fn poll(&self, context: &mut Context<'_>, interest: &Interest<'_>) -> Poll<io::Result<()>> {
        if interest.is_readable
            && let ready @ Poll::Ready(_) = self.0.poll_recv_ready(context)
        {
            return ready;
        }
        if interest.is_writable
            && let ready @ Poll::Ready(_) = self.0.poll_send_ready(context)
        {
            return ready;
        }
        Poll::Pending
    }
}
