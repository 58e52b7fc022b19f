//! A server that takes tokens, and clients that have one.

use std::net::SocketAddr;

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::address;
use haulier_sim::hosts::PROTOCOL_ID;

use crate::support::{Keyed, SERVER, client_config, connection};

pub(crate) const NOW_UNIX: u64 = 1_795_219_200;

pub(crate) fn token_server() -> (ServerConfig, TokenKey) {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let credentials = ServerCredentials::default().with_token_key(key.clone());
    let config = ServerConfig::new(PROTOCOL_ID, credentials).with_addresses(vec![address(SERVER)]);
    (config.with_connection(connection()), key)
}

/// A token that was issued now.
pub(crate) fn claims(expiry: u64) -> TokenClaims {
    TokenClaims::new(NOW_UNIX, expiry, TokenServers::One(address(SERVER)))
}

fn client(key: &TokenKey, claims: &TokenClaims, nonce: u8) -> ClientConfig {
    let secret = Secret::from_bytes([nonce; 32]);
    let token = key.issue(PROTOCOL_ID, claims, secret, [nonce; 24]).unwrap();
    let mut config = client_config(Keyed::Secret);
    config.credentials = Credentials::Token(token);
    config
}

pub(crate) fn token_client(key: &TokenKey, expiry: u64, nonce: u8) -> ClientConfig {
    client(key, &claims(expiry), nonce)
}

/// The token says that the client is at this address.
pub(crate) fn token_client_at(key: &TokenKey, nonce: u8, at: SocketAddr) -> ClientConfig {
    client(key, &claims(NOW_UNIX + 3600).with_client_address(Some(at)), nonce)
}

/// The token names the client, and says that it is at this address.
pub(crate) fn token_client_named(
    key: &TokenKey,
    nonce: u8,
    name: [u8; 8],
    at: SocketAddr,
) -> ClientConfig {
    let claims = claims(NOW_UNIX + 3600).with_client_id(name).with_client_address(Some(at));
    client(key, &claims, nonce)
}
