//! Two servers that share a token key, as a fleet behind one matchmaker does.
//!
//! [`sisters`] delivers a client's datagrams to the wrong server, too, and that one's answers to the client.
//! [`tokens`] presents tokens to both, again and again, while the clocks of the servers step. The invariant:
//! what one server says or forgets never counts for the other, and one token is one admission.

use std::collections::BTreeMap;
use std::time::Duration;

use haulier_core::{Instant, Machine};
use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::Event;
use haulier_proto::credentials::{ConnectToken, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerLimits, ServerMachine};

use crate::hosts::{PROTOCOL_ID, UNIX_TIME};
use crate::{Rng, address};

/// Tokens, and how often one of them is presented.
const TOKENS: u64 = 6;
const PRESENTATIONS: u64 = 40;

/// Requests that the servers remember: fewer than are presented.
const REMEMBERED: usize = 16;

const CLIENT: u32 = 7;
const OBSERVER: u32 = 8;

fn token_key() -> TokenKey {
    TokenKey { id: 1, key: Secret::from_bytes([5; 32]) }
}

fn server(number: u32, limits: ServerLimits) -> ServerMachine {
    let credentials = ServerCredentials::default().with_token_key(token_key());
    let config = ServerConfig::new(PROTOCOL_ID, credentials)
        .with_limits(limits)
        .with_addresses(vec![address(number)]);
    let seed = [number as u8; 32];
    ServerMachine::new(Instant::ZERO, UNIX_TIME, config, seed).expect("a configuration that works")
}

fn token(rng: &mut Rng, expiry_unix: u64, number: u32) -> ConnectToken {
    let server = TokenServers::One(address(number));
    let claims = TokenClaims::new(UNIX_TIME, expiry_unix, server);
    let secret = Secret::from_bytes(rng.key());
    let nonce = rng.bytes(24).try_into().expect("24 bytes");
    token_key().issue(PROTOCOL_ID, &claims, secret, nonce).expect("claims within their limits")
}

fn client(rng: &mut Rng, now: Instant, token: &ConnectToken, number: u32) -> ClientMachine {
    let credentials = Credentials::Token(token.clone());
    let config = ClientConfig::new(address(number), PROTOCOL_ID, credentials).with_copies(1);
    ClientMachine::new(now, config, rng.key()).expect("a configuration that works")
}

/// A client of server 1, whose datagrams an observer without keys also delivers to server 2.
///
/// # Errors
/// What ended the client's connection.
pub fn sisters(seed: u64) -> Result<(), String> {
    let mut rng = Rng::stream(seed, 95);
    let [mut own, mut sister] = [1, 2].map(|number| server(number, ServerLimits::default()));
    let mut now = Instant::from_millis(1_000);
    let token = token(&mut rng, UNIX_TIME + 3_600, 1);
    let mut client = client(&mut rng, now, &token, 1);
    let mut datagram = Vec::new();
    for round in 0..60 {
        now = now + Duration::from_millis(rng.between(1, 200));
        client.handle_timeout(now);
        while client.poll_datagram(now, &mut datagram).is_some() {
            let mut shown = datagram.clone();
            shown.truncate(rng.between(1, shown.len() as u64) as usize);
            shown.resize(shown.len().max(rng.between(1, 64) as usize), 0);
            for copy in [&mut datagram.clone(), &mut shown] {
                let _dropped = sister.handle_datagram(now, address(OBSERVER), copy);
            }
            let _counted = own.handle_datagram(now, address(CLIENT), &mut datagram);
        }
        for server in [&mut own, &mut sister] {
            server.handle_timeout(now);
            while server.poll_event(now).is_some() {}
            while server.poll_datagram(now, &mut datagram).is_some() {
                // All of it in the name of server 1.
                let _dropped = client.handle_datagram(now, address(1), &mut datagram);
            }
        }
        while let Some(event) = client.poll_event(now) {
            if let Event::Closed(reason) = event {
                return Err(format!("a sister ended the connection in round {round}: {reason:?}"));
            }
        }
    }
    assert!(client.connection().is_some(), "the client is connected");
    Ok(())
}

/// Tokens for either server, presented to both by client after client, while the time of day is set ahead
/// and back.
///
/// # Errors
/// Which token was taken twice, at the wrong server, or expired.
pub fn tokens(seed: u64) -> Result<(), String> {
    let mut rng = Rng::stream(seed, 96);
    let limits = ServerLimits::default().with_remembered(REMEMBERED);
    let mut servers = [1, 2].map(|number| server(number, limits));
    let issued: Vec<_> = (0..TOKENS)
        .map(|_| {
            let expiry = UNIX_TIME + rng.between(10, 200);
            let number = rng.between(1, 2) as u32;
            (token(&mut rng, expiry, number), number)
        })
        .collect();
    let mut taken: BTreeMap<usize, u32> = BTreeMap::new();
    let mut unix = [UNIX_TIME; 2];
    for step in 0..PRESENTATIONS {
        let now = Instant::from_millis(1_000 + step);
        let at = rng.below(2) as usize;
        if rng.below(3) == 0 {
            unix[at] = UNIX_TIME + rng.below(250);
            servers[at].set_unix_time(now, unix[at]);
        }
        let which = rng.below(TOKENS) as usize;
        let (token, number) = &issued[which];
        let mut client = client(&mut rng, now, token, at as u32 + 1);
        let mut request = Vec::new();
        client.poll_datagram(now, &mut request).ok_or("no request")?;
        let server = &mut servers[at];
        let before = server.stats().requests;
        let _refused = server.handle_datagram(now, address(CLIENT + step as u32), &mut request);
        while server.poll_event(now).is_some() {}
        if server.stats().requests == before {
            continue;
        }
        let what = format!("token {which} at server {}, at {}", at + 1, unix[at] - UNIX_TIME);
        if *number as usize != at + 1 {
            return Err(format!("{what}: it is for server {number}"));
        }
        if token.expiry_unix() <= unix[at] {
            return Err(format!("{what}: it has expired"));
        }
        let times = taken.entry(which).or_default();
        *times += 1;
        if *times > 1 {
            return Err(format!("{what}: it was taken before"));
        }
    }
    assert!(!taken.is_empty(), "some token is valid somewhere");
    Ok(())
}
