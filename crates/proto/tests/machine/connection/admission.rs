//! What is admitted once is not admitted again, and not elsewhere (STANDARD-1, 3.1 and 6).

use haulier_proto::client::{ClientMachine, Credentials};
use haulier_proto::connection::{Block, CloseCode, ConfigError, RefusalCode};
use haulier_proto::credentials::{ConnectToken, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{
    EarlierTokens, ServerConfig, ServerCredentials, ServerMachine, TokenAudience,
};
use haulier_proto::{DropReason, Instant, Machine};

use super::{client_with, end_of};
use crate::lan::{
    Lan, PROTOCOL_ID, UNIX_TIME, address, client_config, server_address, server_config,
};
use haulier_proto::connection::CloseReason;

fn token_key() -> TokenKey {
    TokenKey { id: 5, key: Secret::from_bytes([8; 32]) }
}

pub(super) fn token_server() -> ServerConfig {
    let mut config = server_config();
    config.credentials = ServerCredentials::default().with_token_key(token_key());
    config
}

/// A token of a minute for this server; the number makes it another one.
pub(super) fn token(n: u8, servers: TokenServers) -> ConnectToken {
    issued_at(UNIX_TIME, n, servers)
}

fn issued_at(unix_time: u64, n: u8, servers: TokenServers) -> ConnectToken {
    let claims = TokenClaims::new(unix_time, unix_time + 60, servers);
    token_key().issue(PROTOCOL_ID, &claims, Secret::from_bytes([n; 32]), [n; 24]).unwrap()
}

pub(super) fn own() -> TokenServers {
    TokenServers::One(server_address())
}

/// A client with this token asks this server from address `n`: whether it is taken, or why not.
fn ask(
    server: &mut ServerMachine,
    now: Instant,
    n: usize,
    token: &ConnectToken,
) -> Result<(), DropReason> {
    let config = client_with(Credentials::Token(token.clone()));
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&n.to_le_bytes());
    let mut client = ClientMachine::new(now, config, seed).unwrap();
    let mut request = Vec::new();
    assert!(client.poll_datagram(now, &mut request).is_some());
    server.handle_datagram(now, address(n), &mut request)
}

fn start(config: ServerConfig, unix_time: u64, seed: u8) -> ServerMachine {
    ServerMachine::new(Instant::ZERO, unix_time, config, [seed; 32]).unwrap()
}

/// Adds a client, which joins and leaves. Returns its request.
fn visit(lan: &mut Lan, credentials: Option<Credentials>) -> Vec<u8> {
    let n = lan.add(credentials.map_or_else(client_config, client_with));
    let mut request = None;
    lan.settle_with(|_, datagram| {
        if datagram[0] == 0x04 {
            request = Some(datagram.clone());
        }
        true
    });
    lan.client(n).close(CloseCode::DONE, "");
    lan.run(5_000);
    assert_eq!(lan.server.stats().connections, 0);
    request.unwrap()
}

/// H-6a. Once the memory was full, a second one of the same token was accepted, and a third.
#[test]
fn a_full_token_memory_refuses_another_token() {
    let mut config = token_server();
    config.limits.remembered = 2;
    let mut lan = Lan::new(config);
    for (n, code) in [(0, None), (1, None), (2, Some(RefusalCode::Full))] {
        let client = lan.add(client_with(Credentials::Token(token(n, own()))));
        lan.settle();
        assert_eq!(end_of(&lan, client), code.map(CloseReason::Refused).as_ref(), "{n}");
        assert_eq!(lan.clients[client].connection().is_some(), code.is_none());
    }
    let client = lan.add(client_with(Credentials::Token(token(1, own()))));
    lan.settle();
    assert_eq!(end_of(&lan, client), Some(&CloseReason::Refused(RefusalCode::TokenUsed)));
    // They expire, and there is room again.
    lan.now = Instant::from_millis(60_000);
    let late = issued_at(UNIX_TIME + 30, 3, own());
    assert_eq!(ask(&mut lan.server, lan.now, 9, &late), Ok(()));
}

/// H-6a. A recorded request with a token came back after enough others, with the token's claims.
#[test]
fn a_recorded_request_with_a_token_never_comes_back() {
    let mut config = token_server();
    config.limits.remembered = 8;
    let mut lan = Lan::new(config);
    let mut recorded = visit(&mut lan, Some(Credentials::Token(token(0, own()))));
    for n in 1..8 {
        visit(&mut lan, Some(Credentials::Token(token(n, own()))));
    }
    for n in [0, 99] {
        let replayed = lan.server.handle_datagram(lan.now, address(n), &mut recorded.clone());
        assert_eq!(replayed, Err(DropReason::Replayed));
    }
    assert_eq!(lan.server.poll_datagram(lan.now, &mut Vec::new()), None);
    lan.now = Instant::from_millis(61_000);
    let replayed = lan.server.handle_datagram(lan.now, address(99), &mut recorded);
    assert_eq!(replayed, Err(DropReason::TokenExpired));
}

/// H-3.1e. What is forgotten could be replayed, so nothing is: a full memory asks everyone for a cookie,
/// which the recorder of a request cannot have.
#[test]
fn a_full_memory_of_requests_asks_for_cookies_for_the_rest_of_the_run() {
    let mut config = server_config();
    config.limits.remembered = 8;
    let mut lan = Lan::new(config);
    let mut recorded = visit(&mut lan, None);
    for n in 0..20 {
        visit(&mut lan, None);
        let cookies = lan.server.drops().get(DropReason::NoCookie);
        assert_eq!(cookies, u64::saturating_sub(n, 6), "eight are remembered");
    }
    let before = lan.server.drops().get(DropReason::Replayed);
    let replayed = lan.server.handle_datagram(lan.now, address(99), &mut recorded);
    assert_eq!(replayed, Err(DropReason::Replayed), "one of the first is remembered for ever");
    assert_eq!(lan.server.drops().get(DropReason::Replayed), before + 1);
    assert_eq!(lan.server.poll_datagram(lan.now, &mut Vec::new()), None);
}

/// H-3.1e. A request with a valid cookie counts its address as validated: replayed in its name it would be
/// sent what the server can send. It is remembered as long as the cookie is valid.
#[test]
fn a_recorded_cookie_is_no_second_admission() {
    let mut config = server_config();
    config.limits.remembered = 1;
    let mut lan = Lan::new(config);
    visit(&mut lan, None);
    let recorded = visit(&mut lan, None);
    assert_eq!(recorded[14], 20, "it has a cookie");
    let home = lan.addresses[1];
    for ms in (lan.now.as_nanos() / 1_000_000..60_000).step_by(500) {
        let now = Instant::from_millis(ms);
        let replayed = lan.server.handle_datagram(now, home, &mut recorded.clone());
        let reason = replayed.unwrap_err();
        assert!(matches!(reason, DropReason::Replayed | DropReason::NoCookie), "{reason} at {ms}");
    }
    assert_eq!(lan.server.stats().requests, 2);
}

/// H-6a. Without a setting, a token for another server was accepted.
#[test]
fn a_server_with_token_keys_knows_its_addresses_or_says_that_it_takes_any() {
    let error = |config| ServerMachine::new(Instant::ZERO, 0, config, [1; 32]).unwrap_err();
    let mut config = token_server();
    config.addresses.clear();
    assert_eq!(error(config.clone()), ConfigError::NoServerAddress, "it has to be said");
    let mut forgetful = token_server();
    forgetful.limits.remembered = 0;
    assert_eq!(error(forgetful), ConfigError::NothingRemembered);
    let unsayable = token_server().with_first_block(Some(Block::new(1 << 62, vec![1; 10])));
    assert_eq!(error(unsayable), ConfigError::FirstBlockTag);
    let elsewhere = token(3, TokenServers::One(address(500)));
    let mut any = start(config.with_token_audience(TokenAudience::Any), UNIX_TIME, 1);
    assert_eq!(ask(&mut any, Instant::ZERO, 1, &elsewhere), Ok(()));
    let mut own = start(token_server(), UNIX_TIME, 2);
    assert_eq!(ask(&mut own, Instant::ZERO, 1, &elsewhere), Err(DropReason::WrongServer));
}

/// H-6a. Servers with one key share no memory, so a token is for one of them, unless its issuer says more.
#[test]
fn a_token_is_one_admission_in_a_fleet() {
    let config = |n| token_server().with_addresses(vec![address(n)]);
    let mut fleet =
        [(600, 1), (601, 2), (602, 3)].map(|(n, seed)| start(config(n), UNIX_TIME, seed));
    let cases = [
        (TokenServers::One(address(601)), 1),
        (TokenServers::Each(vec![address(600), address(602)]), 2),
        (TokenServers::Every, 3),
    ];
    for (n, (servers, admissions)) in (10..).zip(cases) {
        let token = token(n, servers);
        let mut taken = 0;
        for round in 0..2 {
            for server in &mut fleet {
                let from = usize::from(n) * 10 + round;
                taken += u32::from(ask(server, Instant::ZERO, from, &token).is_ok());
            }
        }
        assert_eq!(taken, admissions);
    }
}

/// H-6a. A used token was forgotten when the clock was ahead, and accepted again when it was set back.
#[test]
fn a_clock_that_is_set_back_revives_no_token() {
    let (now, expired, used) = (Instant::ZERO, token(1, own()), token(2, own()));
    let mut server = start(token_server(), UNIX_TIME, 1);
    assert_eq!(ask(&mut server, now, 1, &used), Ok(()));
    server.set_unix_time(now, UNIX_TIME + 120);
    assert_eq!(ask(&mut server, now, 2, &issued_at(UNIX_TIME + 100, 3, own())), Ok(()));
    server.set_unix_time(now, UNIX_TIME + 5);
    for token in [expired, used] {
        assert_eq!(ask(&mut server, now, 3, &token), Err(DropReason::TokenExpired));
    }
    assert_eq!(ask(&mut server, now, 4, &issued_at(UNIX_TIME + 100, 4, own())), Ok(()));
}

/// H-6d. A restarted server has forgotten which tokens were used before, so it takes none of them.
#[test]
fn a_restarted_server_refuses_tokens_of_before() {
    let (now, before) = (Instant::ZERO, token(1, own()));
    let mut server = start(token_server(), UNIX_TIME, 1);
    assert_eq!(ask(&mut server, now, 1, &before), Ok(()));
    let mut restarted = start(token_server(), UNIX_TIME + 1, 2);
    assert_eq!(ask(&mut restarted, now, 2, &before), Err(DropReason::TokenUsed));
    let after = issued_at(UNIX_TIME + 1, 2, own());
    assert_eq!(ask(&mut restarted, now, 3, &after), Ok(()));
    let config = token_server().with_earlier_tokens(EarlierTokens::Accepted);
    assert_eq!(ask(&mut start(config, UNIX_TIME + 1, 3), now, 4, &before), Ok(()));
}

/// A server with two tickets knows which of them a client has, and refuses a client with neither.
#[test]
fn clients_of_two_secrets_are_told_apart() {
    let secret = |byte| Secret::from_bytes([byte; 32]);
    let by = |byte| client_with(Credentials::Secret { secret: secret(byte), identity: None });
    let (first, other) = (Some(secret(1)), Some(secret(2)));
    for (first, other) in [(first.clone(), other.clone()), (first, None), (None, other)] {
        let mut config = server_config();
        (config.credentials.secret, config.credentials.other_secret) =
            (first.clone(), other.clone());
        let mut lan = Lan::new(config);
        for byte in 1..=3 {
            lan.add(by(byte));
        }
        lan.run(2_000);
        let is_in = |n: usize| lan.clients[n].connection().is_some();
        assert_eq!([is_in(0), is_in(1), is_in(2)], [first.is_some(), other.is_some(), false]);
        for id in lan.server.connections() {
            let connection = lan.server.connection(id).unwrap();
            assert_eq!(connection.has_other_secret(), connection.address() == address(1));
        }
        assert_eq!(end_of(&lan, 2), Some(&CloseReason::Refused(RefusalCode::Key)));
    }
}
