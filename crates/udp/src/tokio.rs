//! Waiting for sockets in a task of tokio's.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tokio::io::Interest as Direction;
use tokio::net::UdpSocket;

use crate::Interest;

/// Wakes a task when one of its sockets is ready. Nothing is received or sent through it.
///
/// tokio remembers that a socket was ready until a read finds it empty, so the order is:
/// [`clear`](Self::clear), rounds, [`watch`](Self::watch), [`poll`](Self::poll). What arrives after the first
/// makes it ready again.
#[derive(Debug, Default)]
pub struct Readiness {
    /// A second handle on each socket, by its address.
    sockets: Vec<(SocketAddr, UdpSocket)>,
}

impl Readiness {
    /// Forgets that they were ready.
    pub fn clear(&self) {
        for (_, socket) in &self.sockets {
            for direction in [Direction::READABLE, Direction::WRITABLE] {
                let empty = || Err(io::ErrorKind::WouldBlock.into());
                let _empty: io::Result<()> = socket.try_io(direction, empty);
            }
        }
    }

    /// From now on the sockets are these.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Panics
    /// Outside of a runtime with its IO enabled.
    pub fn watch(&mut self, interests: &[Interest<'_>]) -> io::Result<()> {
        let is_own = |local| interests.iter().any(|interest| interest.socket.local_addr() == local);
        self.sockets.retain(|(local, _)| is_own(*local));
        for interest in interests {
            let local = interest.socket.local_addr();
            if !self.sockets.iter().any(|(known, _)| *known == local) {
                let socket = interest.socket.try_clone_inner()?;
                self.sockets.push((local, UdpSocket::from_std(socket)?));
            }
        }
        Ok(())
    }

    /// Whether a socket has what its runner waits for; if not, the task is woken when one has.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub fn poll(
        &self,
        context: &mut Context<'_>,
        interests: &[Interest<'_>],
    ) -> Poll<io::Result<()>> {
        for interest in interests {
            let local = interest.socket.local_addr();
            let own = self.sockets.iter().find(|(known, _)| *known == local);
            let Some((_, socket)) = own else { continue };
            if interest.is_readable
                && let ready @ Poll::Ready(_) = socket.poll_recv_ready(context)
            {
                return ready;
            }
            if interest.is_writable
                && let ready @ Poll::Ready(_) = socket.poll_send_ready(context)
            {
                return ready;
            }
        }
        Poll::Pending
    }
}
