//! New secrets, connect tokens and tickets.

use std::io;
use std::net::SocketAddr;

use haulier_proto::credentials::{
    ConnectToken, Secret, Ticket, TicketAccess, TicketError, TokenClaims, TokenKey,
};
use haulier_proto::server::ServerConfig;

use super::error::IssueTokenError;

/// A new secret, from the operating system: for a server, for a token key, for an
/// [`Identity`](haulier_proto::credentials::Identity).
///
/// # Errors
/// When the system provides no random bytes.
pub fn random_secret() -> io::Result<Secret> {
    haulier_udp::seed().map(Secret::from_bytes)
}

/// Makes a connect token, with a new secret and nonce, as a matchmaker does.
///
/// ```
/// use haulier::{TokenClaims, TokenKey, TokenServers, issue_token, random_secret};
///
/// let key = TokenKey { id: 1, key: random_secret()? };
/// let (now, server) = (1_900_000_000, "192.0.2.7:4016".parse()?);
/// let claims = TokenClaims::new(now, now + 60, TokenServers::One(server));
/// let text = issue_token(&key, 7, &claims)?.to_text();
/// assert!(text.starts_with("haulier-token1:"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// For claims that exceed a limit of [`TokenClaims`]; when the system provides no random bytes.
pub fn issue_token(
    key: &TokenKey,
    protocol_id: u64,
    claims: &TokenClaims,
) -> Result<ConnectToken, IssueTokenError> {
    let mut nonce = [0; 24];
    nonce.copy_from_slice(&haulier_udp::seed()?[..24]);
    Ok(key.issue(protocol_id, claims, random_secret()?, nonce)?)
}

/// A ticket to a server of this configuration; `None` if it accepts only tokens.
pub(crate) fn ticket(
    config: &ServerConfig,
    addresses: &[SocketAddr],
) -> Result<Option<Ticket>, TicketError> {
    let credentials = &config.credentials;
    match &credentials.secret {
        Some(secret) => by_secret(config, secret, addresses).map(Some),
        None if credentials.open => {
            Ticket::new(addresses.to_vec(), config.protocol_id, TicketAccess::Open).map(Some)
        }
        None => Ok(None),
    }
}

/// A ticket to such a server with its other secret; `None` if it has no other secret.
pub(crate) fn other_ticket(
    config: &ServerConfig,
    addresses: &[SocketAddr],
) -> Result<Option<Ticket>, TicketError> {
    let other = config.credentials.other_secret.as_ref();
    other.map(|secret| by_secret(config, secret, addresses)).transpose()
}

fn by_secret(
    config: &ServerConfig,
    secret: &Secret,
    addresses: &[SocketAddr],
) -> Result<Ticket, TicketError> {
    let access = TicketAccess::Secret(secret.clone());
    let ticket = Ticket::new(addresses.to_vec(), config.protocol_id, access)?;
    match &config.credentials.identity {
        Some(identity) => ticket.with_identity(identity.public()),
        None => Ok(ticket),
    }
}
