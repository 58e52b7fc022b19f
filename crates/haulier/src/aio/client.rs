//! A client that is awaited.

use std::io;
use std::time::{Duration, Instant};

use haulier_proto::connection::{CloseCode, CloseReason, Event};
use haulier_udp::aio::ClientDriver;

use crate::face::client::names::*;
use crate::face::client::{client_face, time_left};
use crate::face::connect::{Attempts, Connect, ConnectError};

client_face! {
    /// A client of a game, and its connection to a server, in the task that awaits it.
    ///
    /// A dropped client says nothing to its server, which notices after the idle time-out: await
    /// [`finish`](Self::finish), or [`close`](Self::close) and [`next_event`](Self::next_event) until `None`.
    ClientDriver
}

impl Client {
    /// Connects, and returns when the server's welcome is verified. What `to` may be:
    /// [`haulier::Client::connect`](crate::Client::connect) says it.
    ///
    /// # Errors
    /// [`ConnectError`]; `Closed` if the server refuses or does not answer.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its IO and time enabled.
    pub async fn connect(
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
    ) -> Result<Self, ConnectError> {
        let mut client = Self::open(to.try_into().map_err(Into::into)?)?;
        loop {
            match client.next_event().await? {
                Some(Event::Connected) => return Ok(client),
                Some(Event::Closed(reason)) => return Err(ConnectError::Closed(reason)),
                // Nothing is heard before, and an end is told.
                Some(_) => {}
                None => return Err(ConnectError::Closed(CloseReason::NoAnswer)),
            }
        }
    }

    /// The next thing to hear; `None` once the client is closed and nothing will ever come.
    ///
    /// Cancel-safe: dropped at its await, it has lost no event.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub async fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            if self.is_closed() {
                return Ok(None);
            }
            self.driver.wait().await?;
        }
    }

    /// Leaves well: waits until all blocks and messages sent are acknowledged, closes with `done`, and waits
    /// until that is said, all within `most`. What still comes meanwhile is lost. Returns how it ended.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`io::ErrorKind::TimedOut`] if not everything was acknowledged: the
    /// connection is closed all the same.
    pub async fn finish(mut self, most: Duration) -> io::Result<CloseReason> {
        let until = Instant::now().checked_add(most);
        let (mut ended, mut was_acked) = (None, true);
        loop {
            let is_late = time_left(until).is_zero();
            was_acked &= !is_late || self.all_acked();
            ended = ended.or(self.finishing(is_late)?);
            if self.is_closed() || is_late {
                break;
            }
            if let Ok(waited) = tokio::time::timeout(time_left(until), self.driver.wait()).await {
                waited?;
            }
        }
        self.flush()?;
        match was_acked {
            true => Ok(ended.unwrap_or(CloseReason::Here(CloseCode::DONE))),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
