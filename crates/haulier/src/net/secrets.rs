//! Fresh secrets, connect tokens and tickets: what needs random bytes, or a server's own.

use std::io;
use std::net::SocketAddr;

use haulier_proto::credentials::{
    ConnectToken, Secret, Ticket, TicketAccess, TicketError, TokenClaims, TokenKey,
};
use haulier_proto::server::ServerConfig;

use super::error::IssueTokenError;

/// A fresh secret, from the operating system: of a server, of a token key, of an
/// [`Identity`](haulier_proto::credentials::Identity).
///
/// # Errors
/// When the system has no random bytes to give.
pub fn random_secret() -> io::Result<Secret> {
    haulier_udp::seed().map(Secret::from_bytes)
}

/// Makes a connect token, with a secret and a nonce of its own: what a matchmaker does.
///
/// ```
/// use haulier::{TokenClaims, TokenKey, issue_token, random_secret};
///
/// let key = TokenKey { id: 1, key: random_secret()? };
/// let claims = TokenClaims::new(1_900_000_000);
/// let text = issue_token(&key, 7, &claims)?.to_text();
/// assert!(text.starts_with("haulier-token1:"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// For claims that break a limit of [`TokenClaims`]; when the system has no random bytes to give.
pub fn issue_token(
    key: &TokenKey,
    protocol_id: u64,
    claims: &TokenClaims,
) -> Result<ConnectToken, IssueTokenError> {
    let mut nonce = [0; 24];
    nonce.copy_from_slice(&haulier_udp::seed()?[..24]);
    Ok(key.issue(protocol_id, claims, random_secret()?, nonce)?)
}

/// A ticket to a server of this configuration; `None` if it takes nothing but tokens.
pub(crate) fn ticket(
    config: &ServerConfig,
    addresses: &[SocketAddr],
) -> Result<Option<Ticket>, TicketError> {
    let credentials = &config.credentials;
    let access = match &credentials.secret {
        Some(secret) => TicketAccess::Secret(secret.clone()),
        None if credentials.open => TicketAccess::Open,
        None => return Ok(None),
    };
    let is_open = access == TicketAccess::Open;
    let ticket = Ticket::new(addresses.to_vec(), config.protocol_id, access)?;
    match &credentials.identity {
        Some(identity) if !is_open => ticket.with_identity(identity.public()).map(Some),
        _ => Ok(Some(ticket)),
    }
}
