//! The settings to connect with, from a ticket, a token or the program.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use haulier_core::debug_as;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::ConnectionConfig;
use haulier_proto::credentials::{ConnectToken, Ticket};

use super::error::ConnectError;
use super::handle::Drive;
use super::sinks::Sinks;
use super::{NOWHERE, over_sockets};
use crate::trace::TraceSink;

/// The settings to connect with: a ticket, a connect token or a [`ClientConfig`] converts to it.
///
/// A server may have several addresses. The first is tried, and another one whenever 250 ms have passed or
/// an address has failed, IPv6 and IPv4 alternating; the first to accept the client wins. A closed port is
/// reported at once, silence after the handshake timeout.
///
/// ```
/// # fn main() -> Result<(), haulier::ConnectError> {
/// # let ticket = haulier::Ticket::new(
/// #     vec!["192.0.2.1:4016".parse().unwrap()], 7, haulier::TicketAccess::Open)?.to_text();
/// use haulier::Connect;
///
/// let mut connect = Connect::try_from(ticket.as_str())?.with_request("name=alice");
/// connect.connection.max_rate_bps = 5_000_000; // or `with_connection`
/// assert_eq!(connect.servers.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Connect {
    /// The server's addresses, the likeliest first.
    pub servers: Vec<SocketAddr>,
    /// The application's protocol id, never sent; both ends must have the same.
    pub protocol_id: u64,
    /// What the client authenticates with.
    pub credentials: Credentials,
    /// What the application asks for, up to 400 bytes: it may be replayed, and is not secret.
    pub request: Vec<u8>,
    /// Copies of the request sent at once, 1 to 10: see [`ClientConfig::copies`]. Default 4.
    pub copies: u8,
    /// How long to wait in line while the server has no seat: see
    /// [`ClientConfig::max_time_in_line`]. Default 10 minutes.
    pub max_time_in_line: Duration,
    /// The settings of the connection. Each address has the whole handshake timeout.
    pub connection: ConnectionConfig,
    pub(crate) drive: Drive,
    pub(crate) sinks: Sinks,
}

debug_as! {
    Connect: |connect|
    servers = connect.servers,
    credentials = connect.credentials,
    request_bytes = connect.request.len(),
    copies = connect.copies,
    connection = connect.connection,
    drive = connect.drive,
    sinks = connect.sinks,
}

impl Connect {
    /// A connection to this server, with default settings.
    #[must_use]
    pub fn new(server: SocketAddr, protocol_id: u64, credentials: Credentials) -> Self {
        ClientConfig::new(server, protocol_id, credentials).into()
    }

    /// Sets the request, up to 400 bytes: it may be replayed, and is not secret.
    #[must_use]
    pub fn with_request(mut self, request: impl Into<Vec<u8>>) -> Self {
        self.request = request.into();
        self
    }

    /// Sets the server's addresses, the likeliest first: for a token that names none.
    #[must_use]
    pub fn with_servers(mut self, servers: impl Into<Vec<SocketAddr>>) -> Self {
        self.servers = servers.into();
        self
    }

    /// Copies of the request sent at once, 1 to 10: see [`ClientConfig::copies`]. Default 4.
    #[must_use]
    pub const fn with_copies(mut self, copies: u8) -> Self {
        self.copies = copies;
        self
    }

    /// How long to wait in line while the server has no seat: see
    /// [`ClientConfig::max_time_in_line`]. Default 10 minutes.
    #[must_use]
    pub const fn with_max_time_in_line(mut self, max: Duration) -> Self {
        self.max_time_in_line = max;
        self
    }

    /// The settings of the connection. Each address has the whole handshake timeout.
    #[must_use]
    pub const fn with_connection(mut self, connection: ConnectionConfig) -> Self {
        self.connection = connection;
        self
    }

    /// Hands the trace of the connection to this sink, in place of
    /// [`Client::poll_trace`](crate::Client::poll_trace). Several may be set. What is in the trace is the
    /// connection's setting ([`ConnectionConfig::trace`]): by default nothing.
    #[must_use]
    pub fn with_trace_sink(mut self, sink: impl TraceSink + 'static) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Drives the client without a network thread: it works only while [`Client::poll`](crate::Client::poll)
    /// or [`Client::wait`](crate::Client::wait) runs. For consoles and tests. Call one of them often, in a
    /// load screen too: a client not polled for the idle timeout (15 s) is disconnected.
    #[must_use]
    pub const fn inline(mut self) -> Self {
        self.drive = Drive::Inline;
        self
    }

    /// Drives the client by a task of the tokio runtime in which it connects, without a thread of its own.
    /// Its waits have the precision of tokio's timers, a millisecond.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub const fn on_tokio(mut self) -> Self {
        self.drive = Drive::Tokio;
        self
    }

    /// The configuration of a client for one of the servers.
    pub(crate) fn config(&self, server: SocketAddr) -> ClientConfig {
        let mut config = ClientConfig::new(server, self.protocol_id, self.credentials.clone());
        config.request.clone_from(&self.request);
        config.copies = self.copies;
        config.max_time_in_line = self.max_time_in_line;
        config.connection = over_sockets(self.connection);
        config
    }

    /// Checks that a client can send to its addresses.
    pub(crate) fn check(&self) -> Result<(), ConnectError> {
        if self.servers.is_empty() {
            return Err(ConnectError::NoServer);
        }
        for &server in &self.servers {
            if server.ip().is_unspecified() || server.port() == 0 {
                return Err(ConnectError::Unspecified(server));
            }
            if let SocketAddr::V6(v6) = server
                && is_link_local(v6.ip())
                && v6.scope_id() == 0
            {
                return Err(ConnectError::NoScope(server));
            }
        }
        Ok(())
    }
}

/// fe80::/10, which every interface has.
const fn is_link_local(ip: &Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

impl From<ClientConfig> for Connect {
    fn from(config: ClientConfig) -> Self {
        Self {
            servers: vec![config.server],
            protocol_id: config.protocol_id,
            credentials: config.credentials,
            request: config.request,
            copies: config.copies,
            max_time_in_line: config.max_time_in_line,
            connection: config.connection,
            drive: Drive::default(),
            sinks: Sinks::default(),
        }
    }
}

impl From<&Ticket> for Connect {
    fn from(ticket: &Ticket) -> Self {
        let credentials = Credentials::from(ticket);
        let servers = ticket.addresses().to_vec();
        Self { servers, ..Self::new(NOWHERE, ticket.protocol_id(), credentials) }
    }
}

/// A token need not have server addresses: then set [`Connect::servers`].
impl From<&ConnectToken> for Connect {
    fn from(token: &ConnectToken) -> Self {
        let credentials = Credentials::Token(token.clone());
        let servers = token.servers().to_vec();
        Self { servers, ..Self::new(NOWHERE, token.protocol_id(), credentials) }
    }
}

/// The text of a ticket (`haulier1:...`) or of a connect token (`haulier-token1:...`).
impl TryFrom<&str> for Connect {
    type Error = ConnectError;

    fn try_from(text: &str) -> Result<Self, ConnectError> {
        if text.trim_start().starts_with("haulier-token") {
            return Ok(Self::from(&ConnectToken::parse(text)?));
        }
        Ok(Self::from(&Ticket::parse(text)?))
    }
}

impl TryFrom<&String> for Connect {
    type Error = ConnectError;

    fn try_from(text: &String) -> Result<Self, ConnectError> {
        text.as_str().try_into()
    }
}
