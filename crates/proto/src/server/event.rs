//! What a server reports: the events of its connections, and before them the request of each.

use bytes::Bytes;

use crate::connection::Event;
use crate::credentials::TokenClaims;

/// An event of a server. Its `Debug` prints lengths, never the application's bytes.
///
/// # Examples
/// ```
/// use haulier_proto::connection::Event;
/// use haulier_proto::server::ServerEvent;
///
/// /// Whom the matchmaker says this is.
/// fn player(event: &ServerEvent) -> Option<u64> {
///     match event {
///         ServerEvent::Connecting { token: Some(claims), .. } => Some(u64::from_le_bytes(claims.client_id)),
///         _ => None,
///     }
/// }
/// assert_eq!(player(&ServerEvent::Connection(Event::Connected)), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client with valid credentials has sent a request. Its address is not validated yet. To reject it,
    /// close the connection.
    Connecting {
        /// The application's request.
        request: Bytes,
        /// The content of its token, if it has one.
        token: Option<TokenClaims>,
    },
    /// An event of its connection.
    Connection(Event),
}

impl core::fmt::Debug for ServerEvent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Connecting { request, token } => {
                write!(
                    f,
                    "Connecting {{ request: {} bytes, token: {} }}",
                    request.len(),
                    token.is_some()
                )
            }
            Self::Connection(event) => f.debug_tuple("Connection").field(event).finish(),
        }
    }
}
