//! A server that is awaited.

use std::io;
use std::time::Duration;

use haulier_proto::server::ServerConfig;
use haulier_udp::aio::ServerDriver;

use crate::face::server::names::*;
use crate::face::server::server_face;

server_face! {
    /// A server of a game and all its clients, on one socket, in the task that awaits it.
    ///
    /// A dropped server says nothing to its clients: await [`finish`](Self::finish), or
    /// [`shut_down`](Self::shut_down) and [`next_event`](Self::next_event) until `None`.
    ServerDriver
}

impl Server {
    /// Listens at the first of `local` that can be had; port 0 lets the system choose one. A host name is
    /// looked up by the system, which blocks: give an address.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its IO and time enabled.
    pub fn bind(local: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::listen(local, config)
    }

    /// The next thing to hear, and of which client; `None` once the server is shut down.
    ///
    /// Cancel-safe: dropped at its await, it has lost no event.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub async fn next_event(&mut self) -> io::Result<Option<(ConnectionId, ServerEvent)>> {
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            if self.is_shut_down() {
                return Ok(None);
            }
            self.driver.wait().await?;
        }
    }

    /// Goes away well: [`shut_down`](Self::shut_down), and waits until every client was told, but no longer
    /// than `most`. What still comes meanwhile is lost.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`io::ErrorKind::TimedOut`] if there was no time to tell all.
    pub async fn finish(mut self, most: Duration) -> io::Result<()> {
        self.shut_down();
        let told = async {
            loop {
                self.drain()?;
                if self.is_shut_down() {
                    return Ok(());
                }
                self.driver.wait().await?;
            }
        };
        tokio::time::timeout(most, told).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}
