//! The ends of a join over haulier/1.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::proto::client::ClientConfig;
use haulier::udp::Socket;
use haulier::{
    Block, CloseCode, ConnectionConfig, Credentials, Event, Secret, ServerConfig,
    ServerCredentials, ServerEvent, TokenClaims, TokenKey,
};

use super::{Joined, TURN, took_too_long};
use crate::failure::Failure;
use crate::interrupt;
use crate::keygen::new_secret;
use crate::runners;

/// "haullab1".
const PROTOCOL_ID: u64 = 0x6861_756c_6c61_6231;

/// Known to everybody: see the head of `ends`.
const TOKEN_KEY: [u8; 32] = *b"haulier bench: the token key....";
const TICKET_SECRET: [u8; 32] = *b"haulier bench: the secret.......";

/// Gives the block to every client, while `goes_on`.
pub(in crate::bench) fn serve(
    socket: Socket,
    data: &Bytes,
    goes_on: impl Fn() -> bool,
) -> io::Result<()> {
    let credentials = ServerCredentials::default()
        .with_secret(Secret::from_bytes(TICKET_SECRET))
        .with_token_key(token_key());
    let config = ServerConfig::new(PROTOCOL_ID, credentials).with_connection(connection(data));
    let mut driver = runners::server(socket, config)?;
    let block = Block::new(0, data.clone());
    while goes_on() {
        driver.turn(TURN)?;
        let now = driver.clock().now();
        while let Some((id, event)) = driver.machine.poll_event(now) {
            let ServerEvent::Connecting { .. } = event else { continue };
            if let Some(connection) = driver.machine.connection_mut(id) {
                connection.send_block(now, &block).map_err(io::Error::other)?;
            }
        }
    }
    Ok(())
}

/// A token for a client at `place`, as a matchmaker would make it.
pub(in crate::bench) fn token(place: IpAddr) -> Result<Credentials, Failure> {
    let claims = TokenClaims::new(u64::MAX).with_client_address(Some(SocketAddr::new(place, 0)));
    let nonce = *new_secret()?.as_bytes();
    let nonce = nonce.first_chunk().copied().unwrap_or_default();
    let token = token_key().issue(PROTOCOL_ID, &claims, new_secret()?, nonce);
    token.map(Credentials::Token).map_err(|error| Failure::Usage(error.to_string()))
}

/// What a ticket holds.
pub(in crate::bench) fn ticket() -> Credentials {
    Credentials::Secret { secret: Secret::from_bytes(TICKET_SECRET), identity: None }
}

fn token_key() -> TokenKey {
    TokenKey { id: 1, key: Secret::from_bytes(TOKEN_KEY) }
}

fn connection(data: &Bytes) -> ConnectionConfig {
    ConnectionConfig::default().with_max_block_bytes(data.len() as u64)
}

/// Joins once, and takes leave. The connection has compared the block's BLAKE3 before it hands it over. A
/// client that joined goes on while `lingers`, so that the server's last datagrams find somebody.
pub(in crate::bench) fn fetch(
    server: SocketAddr,
    credentials: Credentials,
    expected: &Bytes,
    timeout: Duration,
    lingers: impl Fn() -> bool,
) -> Result<Joined, Failure> {
    let fail = |error: io::Error| Failure::socket("client", &error);
    let config =
        ClientConfig::new(server, PROTOCOL_ID, credentials).with_connection(connection(expected));
    let started = Instant::now();
    let mut driver = runners::client(config).map_err(fail)?;
    let mut connect = Duration::ZERO;
    while started.elapsed() < timeout {
        interrupt::check()?;
        driver.turn(TURN).map_err(fail)?;
        while let Some(event) = driver.machine.poll_event(driver.clock().now()) {
            match event {
                Event::Connected => connect = started.elapsed(),
                Event::Block { data, .. } => {
                    let total = started.elapsed();
                    if data != expected {
                        return Err(Failure::Verification("this is another block".into()));
                    }
                    driver.machine.close(driver.clock().now(), CloseCode::DONE, "");
                    driver.transmit().map_err(fail)?;
                    while lingers() {
                        driver.turn(TURN).map_err(fail)?;
                    }
                    return Ok(Joined { connect, total });
                }
                Event::Closed(reason) => {
                    return Err(Failure::TimeOut(format!("the join ended: {reason}")));
                }
                _ => {}
            }
        }
    }
    Err(took_too_long(timeout))
}
