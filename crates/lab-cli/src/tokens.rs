//! Connect tokens of servers that are both ends here.

use haulier::proto::credentials::{ConnectToken, TokenClaims, TokenKey};
use haulier_shell::failure::Failure;

/// 32 bytes from the system's generator.
pub(crate) fn new_secret() -> Result<haulier::Secret, Failure> {
    haulier::random_secret().map_err(|error| Failure::Io(format!("no random bytes: {error}")))
}

/// A token with these claims.
pub(crate) fn new_token(
    key: &TokenKey,
    protocol_id: u64,
    claims: &TokenClaims,
) -> Result<ConnectToken, Failure> {
    haulier::issue_token(key, protocol_id, claims).map_err(|error| Failure::Io(error.to_string()))
}
