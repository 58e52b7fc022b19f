//! What a desk and its workers were made with, the same for all: settings and keys.
//!
//! The invariant: it never changes, so each worker reads it without asking anybody.

use alloc::sync::Arc;

use super::ServerConfig;
use crate::connection::{ConfigError, ConnectionConfig};
use crate::crypto::{CookieKey, Entropy, RequestKeys, ResetKey, Secret, Suites};
use crate::debug_as;

/// The settings, and the keys of one run.
pub(super) struct Rules {
    pub(super) config: ServerConfig,
    /// Shared by all connections.
    pub(super) connection: Arc<ConnectionConfig>,
    pub(super) suites: Suites,
    /// In a place of their own, which requests share: a copy that is moved about leaves others behind, which
    /// nothing wipes.
    pub(super) request_keys: Option<Arc<RequestKeys>>,
    pub(super) other_keys: Option<Arc<RequestKeys>>,
    pub(super) cookie_key: CookieKey,
}

debug_as! { Rules: |rules| config = rules.config }

impl Rules {
    /// Checks the settings. Draws the keys of this run: the reset key is apart, because it may be replaced.
    pub(super) fn new(
        config: ServerConfig,
        suites: Suites,
        entropy: &mut Entropy,
    ) -> Result<(Self, ResetKey), ConfigError> {
        config.check()?;
        if config.credentials.shares_reset_secret() {
            return Err(ConfigError::SharedResetSecret);
        }
        // Never from the secret of tickets, the token keys or the identity: clients and other servers have
        // those, and could end connections of this one.
        let reset_key = match &config.credentials.reset_secret {
            Some(secret) => ResetKey::derived(secret),
            None => ResetKey::random(entropy.next_secret()),
        };
        let keys_of = |secret: &Option<Secret>| {
            secret.as_ref().map(|secret| Arc::new(RequestKeys::new(secret, config.protocol_id)))
        };
        let request_keys = keys_of(&config.credentials.secret);
        let other_keys = keys_of(&config.credentials.other_secret);
        let cookie_key = CookieKey::new(entropy.next_secret());
        let connection = Arc::new(config.connection);
        Ok((Self { config, connection, suites, request_keys, other_keys, cookie_key }, reset_key))
    }
}
