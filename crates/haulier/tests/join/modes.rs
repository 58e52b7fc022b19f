//! Which clients a server accepts, by secret, token, identity, or all; and how it refuses others.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use haulier::proto::client::ClientConfig;
use haulier::{
    Client, CloseCode, CloseReason, Connect, ConnectError, Credentials, Event, Identity,
    RefusalCode, Secret, Server, ServerConfig, ServerCredentials, ServerEvent, Ticket, TokenClaims,
    TokenKey, TokenServers, issue_token,
};

use crate::support::{MAX, PROTOCOL_ID, Pair, bind, config_for, secret, with_secret};

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub(crate) fn token_key() -> TokenKey {
    TokenKey { id: 3, key: Secret::from_bytes([3; 32]) }
}

pub(crate) fn claims(servers: TokenServers) -> TokenClaims {
    TokenClaims::new(unix_time(), unix_time() + 300, servers)
}

fn ticket(server: &Server) -> String {
    server.ticket(&[server.local_addr()]).unwrap().unwrap().to_text()
}

fn joined(server: Server, client: Client) -> Pair {
    let mut pair = Pair::new(server, client);
    pair.until(|pair| pair.has_connected());
    pair
}

fn refused(server: Server, client: Client) -> CloseReason {
    let mut pair = Pair::new(server, client);
    pair.until(|pair| pair.client_end().is_some());
    assert!(pair.client.is_closed());
    pair.client_end().unwrap().clone()
}

#[test]
fn a_ticket_is_enough_and_the_request_arrives() {
    let server = bind(with_secret());
    let connect = Connect::try_from(&ticket(&server)).unwrap().with_request("name=alice");
    let client = Client::connect(connect).unwrap();
    let pair = joined(server, client);
    let ServerEvent::Connecting { request, token } = &pair.at_server[0].1 else { panic!() };
    assert_eq!((&request[..], token), (&b"name=alice"[..], &None));
    assert!(pair.client.stats().unwrap().suite.is_some(), "it is encrypted");
}

#[test]
fn mode_open_lets_everybody_in_without_encryption() {
    let credentials = ServerCredentials::default().with_open_access();
    let server = bind(ServerConfig::new(PROTOCOL_ID, credentials));
    let client = Client::connect(&ticket(&server)).unwrap();
    let pair = joined(server, client);
    assert_eq!(pair.client.stats().unwrap().suite, None);
}

#[test]
fn a_token_lets_its_client_in_and_says_who_it_is() {
    let credentials = ServerCredentials::default().with_token_key(token_key());
    let server = bind(ServerConfig::new(PROTOCOL_ID, credentials));
    let servers = TokenServers::One(server.local_addr());
    let claims = claims(servers).with_client_id(*b"alice   ");
    let text = issue_token(&token_key(), PROTOCOL_ID, &claims).unwrap().to_text();
    assert_eq!(server.ticket(claims.servers.addresses()).unwrap(), None, "no secret to give away");

    let client = Client::connect(&text).unwrap();
    let pair = joined(server, client);
    let ServerEvent::Connecting { token, .. } = &pair.at_server[0].1 else { panic!() };
    assert_eq!(token.as_ref(), Some(&claims));

    let again = refused(pair.server, Client::connect(&text).unwrap());
    assert_eq!(again, CloseReason::Refused(RefusalCode::TokenUsed));
}

/// At `[::]` everything of IPv4 has another form than in the token: the client, and the server itself.
#[test]
fn a_server_of_both_families_takes_a_token_that_names_ipv4() {
    let credentials = ServerCredentials::default().with_token_key(token_key());
    let mut config = ServerConfig::new(PROTOCOL_ID, credentials);
    config.addresses = vec!["[::ffff:192.0.2.1]:9".parse().unwrap()];
    let server = Server::bind("[::]:0", config).unwrap();
    let claims = claims(TokenServers::One("192.0.2.1:9".parse().unwrap()))
        .with_client_address(Some("127.0.0.1:1".parse().unwrap()));
    let token = issue_token(&token_key(), PROTOCOL_ID, &claims).unwrap();
    let mut connect = Connect::from(&token);
    let port = server.local_addr().port();
    connect.servers = vec![SocketAddr::from(([127, 0, 0, 1], port))];
    let _joined = joined(server, Client::connect(connect).unwrap());
}

#[test]
fn an_expired_token_is_refused_as_that() {
    let credentials = ServerCredentials::default().with_token_key(token_key());
    let server = bind(ServerConfig::new(PROTOCOL_ID, credentials));
    let now = unix_time();
    let claims = TokenClaims::new(now - 60, now - 1, TokenServers::Every);
    let token = issue_token(&token_key(), PROTOCOL_ID, &claims).unwrap();
    let mut connect = Connect::from(&token);
    let error = Client::connect(connect.clone()).unwrap_err();
    assert!(matches!(error, ConnectError::NoServer), "{error}");
    connect.servers = vec![server.local_addr()];
    let reason = refused(server, Client::connect(connect).unwrap());
    assert_eq!(reason, CloseReason::Refused(RefusalCode::TokenExpired));
}

#[test]
fn the_ticket_of_a_server_with_an_identity_insists_on_it() {
    let identity = Identity::new(Secret::from_bytes([9; 32]));
    let credentials = ServerCredentials::default().with_secret(secret()).with_identity(identity);
    let server = bind(ServerConfig::new(PROTOCOL_ID, credentials));
    let text = ticket(&server);
    assert!(Ticket::parse(&text).unwrap().identity().is_some());
    let client = Client::connect(&text).unwrap();
    let _joined = joined(server, client);
}

#[test]
fn a_server_without_the_private_key_is_not_the_right_one() {
    // It has the secret, and another identity: it cannot even read the hello.
    let identity = Identity::new(Secret::from_bytes([9; 32]));
    let credentials = ServerCredentials::default().with_secret(secret()).with_identity(identity);
    let server = bind(ServerConfig::new(PROTOCOL_ID, credentials));
    let right = Identity::new(Secret::from_bytes([8; 32])).public();
    let mut config = config_for(&server);
    config.credentials = Credentials::Secret { secret: secret(), identity: Some(right) };
    config.connection.handshake_timeout = Duration::from_secs(1);
    let reason = refused(server, Client::connect(config).unwrap());
    assert_eq!(reason, CloseReason::NoAnswer);
}

#[test]
fn another_secret_is_refused_as_that() {
    let server = bind(with_secret());
    let mut config = config_for(&server);
    let other = Secret::from_bytes([8; 32]);
    config.credentials = Credentials::Secret { secret: other, identity: None };
    let reason = refused(server, Client::connect(config).unwrap());
    assert_eq!(reason, CloseReason::Refused(RefusalCode::Key));
}

#[test]
fn a_full_server_says_so() {
    let mut config = with_secret();
    (config.limits.connections, config.limits.line) = (1, 0);
    let mut pair = Pair::connected(config);
    let first = pair.client.local_addr();
    let _first = pair.client.clone();
    pair.client = Client::connect(config_for(&pair.server)).unwrap();
    assert_ne!(first, pair.client.local_addr());
    pair.at_client.clear();
    pair.until(|pair| pair.client_end().is_some());
    assert_eq!(pair.client_end(), Some(&CloseReason::Refused(RefusalCode::Full)));
}

/// With a line the client hears its place, and is in as soon as the other has left.
#[test]
fn who_waits_in_line_gets_the_seat_of_who_leaves() {
    let mut config = with_secret();
    config.limits.connections = 1;
    let mut pair = Pair::connected(config);
    let first = pair.client.clone();
    pair.client = Client::connect(config_for(&pair.server)).unwrap();
    pair.at_client.clear();
    pair.until(|pair| {
        pair.at_client.iter().any(|event| matches!(event, Event::Queued { place: Some(1), .. }))
    });
    assert_eq!(pair.server.stats().in_line, 1);
    first.close(CloseCode::DONE, "");
    drop(first);
    pair.at_client.clear();
    pair.until(|pair| pair.at_client.contains(&Event::Connected));
    assert_eq!(pair.server.stats().in_line, 0);
}

/// Also what is longer than any datagram of the wire.
#[test]
fn noise_is_counted_and_answered_with_nothing() {
    let server = bind(with_secret());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for bytes in [0, 1, 1199, 1200, 1201, 9000] {
        stranger.send_to(&vec![0xff; bytes], server.local_addr()).unwrap();
    }
    let began = Instant::now();
    while server.stats().datagrams_received < 6 {
        assert!(began.elapsed() < MAX, "{:?}", server.stats());
        assert_eq!(server.wait(Duration::from_millis(1)).unwrap(), None);
    }
    assert_eq!(server.drops().iter().map(|(_, count)| count).sum::<u64>(), 6);
    assert_eq!(server.stats().datagrams_sent, 0);
}

#[test]
fn the_application_can_turn_a_client_away() {
    let server = bind(with_secret());
    let client = Client::connect(config_for(&server)).unwrap();
    let mut pair = Pair::new(server, client);
    pair.until(|pair| !pair.at_server.is_empty());
    let id = pair.id();
    pair.server.close(id, CloseCode::NOT_ACCEPTED, "not on the list");
    pair.until(|pair| pair.client_end().is_some());
    let reason =
        CloseReason::There { code: CloseCode::NOT_ACCEPTED, reason: "not on the list".to_owned() };
    assert_eq!(pair.client_end(), Some(&reason));
    assert!(pair.at_client.contains(&Event::Connected), "the close came inside a welcome");
}

#[test]
fn a_text_that_is_neither_says_what_to_do() {
    let said = |text: &str| Client::connect(text).unwrap_err().to_string();
    assert!(said("hello").contains("copy the whole line"), "{}", said("hello"));
    assert!(said("haulier-token1:AAAA").contains("token"), "{}", said("haulier-token1:AAAA"));
    let nowhere: SocketAddr = "192.0.2.1:1".parse().unwrap();
    let mut config = ClientConfig::new(nowhere, PROTOCOL_ID, Credentials::Open);
    config.request = vec![0; 401];
    let error = Client::connect(config).unwrap_err();
    assert!(matches!(error, ConnectError::Config(_)), "{error:?}");
}
