//! The ends of a join over haulier/1.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::{
    Block, Client, CloseCode, Connect, ConnectionConfig, Credentials, Event, Listen, NetworkError,
    Secret, Server, ServerConfig, ServerCredentials, TokenClaims, TokenKey, TokenServers,
};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;

use super::{Joined, TURN, took_too_long};
use crate::args::CallArgs;
use crate::tokens::new_token;

/// "haullab1".
const PROTOCOL_ID: u64 = 0x6861_756c_6c61_6231;

/// Public: see the head of `ends`.
const TOKEN_KEY: [u8; 32] = *b"haulier bench: the token key....";
const TICKET_SECRET: [u8; 32] = *b"haulier bench: the secret.......";

/// A server that answers, and gives the block to every client that joins. To make that ready takes some
/// milliseconds, in which a request would wait: whoever measures joins begins after it, as players do.
pub(in crate::bench) fn start(
    listen: Listen,
    data: &Bytes,
    calls: CallArgs,
) -> Result<Server, Failure> {
    let credentials = ServerCredentials::default()
        .with_secret(Secret::from_bytes(TICKET_SECRET))
        .with_token_key(token_key());
    let config = ServerConfig::new(PROTOCOL_ID, credentials)
        .with_first_block(Some(Block::new(0, data.clone())))
        .with_connection(connection(data));
    let listen = if calls.inline { listen.inline() } else { listen };
    Ok(listen.start(config)?)
}

/// Runs the server while `goes_on`.
pub(in crate::bench) fn serve(
    server: &Server,
    calls: CallArgs,
    goes_on: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut calls = Calls::new(calls);
    while goes_on() {
        calls.next(|| server.poll(), |max| server.wait(max))?;
    }
    Ok(())
}

/// A token for a client at `place`, as a matchmaker would make it, for a server that is started at any time.
pub(in crate::bench) fn token(place: IpAddr) -> Result<Credentials, Failure> {
    let claims = TokenClaims::new(u64::MAX - 1, u64::MAX, TokenServers::Every)
        .with_client_address(Some(SocketAddr::new(place, 0)));
    new_token(&token_key(), PROTOCOL_ID, &claims).map(Credentials::Token)
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

/// Joins once, and closes. The connection has compared the block's BLAKE3 before it hands it over. A client
/// that joined stays while `lingers`, so that the server's last datagrams still arrive.
pub(in crate::bench) fn fetch(
    server: SocketAddr,
    credentials: Credentials,
    expected: &Bytes,
    timeout: Duration,
    calls: CallArgs,
    lingers: impl Fn() -> bool,
) -> Result<Joined, Failure> {
    let mut connect = Connect::new(server, PROTOCOL_ID, credentials);
    connect.connection = connection(expected);
    let connect = if calls.inline { connect.inline() } else { connect };
    let started = Instant::now();
    let client = Client::connect(connect).map_err(|error| Failure::Io(error.to_string()))?;
    let (mut calls, mut connect) = (Calls::new(calls), Duration::ZERO);
    while started.elapsed() < timeout {
        interrupt::check()?;
        match calls.next(|| client.poll(), |max| client.wait(max))? {
            Some(Event::Connected) => connect = started.elapsed(),
            Some(Event::Block { data, .. }) => {
                let total = started.elapsed();
                if data != expected {
                    return Err(Failure::Verification("this is another block".into()));
                }
                client.close(CloseCode::DONE, "");
                while lingers() {
                    thread::sleep(TURN);
                }
                return Ok(Joined { connect, total });
            }
            Some(Event::Closed(reason)) => {
                return Err(Failure::peer(reason.kind(), format!("the join ended: {reason}")));
            }
            _ => {}
        }
    }
    Err(took_too_long(timeout))
}

/// When an end calls the library: whenever something happens, or once a frame.
struct Calls {
    frame: Option<Duration>,
    next_frame: Instant,
}

impl Calls {
    fn new(args: CallArgs) -> Self {
        let frame = args.frame_hz.map(|hz| Duration::from_secs(1) / u32::from(hz));
        Self { frame, next_frame: Instant::now() }
    }

    /// The next event; `None` after a while without one, or when a frame is over.
    fn next<T>(
        &mut self,
        poll: impl Fn() -> Result<Option<T>, NetworkError>,
        wait: impl Fn(Duration) -> Result<Option<T>, NetworkError>,
    ) -> Result<Option<T>, NetworkError> {
        let Some(frame) = self.frame else { return wait(TURN) };
        let event = poll()?;
        if event.is_none() {
            // A frame that took too long is not made up for.
            self.next_frame = (self.next_frame + frame).max(Instant::now());
            thread::sleep(self.next_frame.saturating_duration_since(Instant::now()));
        }
        Ok(event)
    }
}
