//! Which address of its server a client ends at, and what it says of the others.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

use haulier::{
    AttemptError, Client, CloseReason, Connect, ConnectError, Credentials, Event, ListenError,
    RefusalCode, Server, ServerConfig, ServerCredentials,
};

use crate::support::{MAX, PROTOCOL_ID, Pair, bind, block_on, config_at, config_for, with_secret};

/// A closed port of loopback.
fn closed_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A client of these addresses, and of one more that has its server.
fn joined(others: &[SocketAddr]) -> Pair {
    let server = bind(with_secret());
    let mut connect = Connect::from(config_for(&server));
    connect.servers.splice(0..0, others.iter().copied());
    let mut pair = Pair::new(server, Client::connect(connect).unwrap());
    pair.until(|pair| pair.has_connected());
    assert_eq!(pair.client.server(), pair.server.local_addr());
    pair
}

#[test]
fn the_next_address_is_asked_where_one_is_silent_full_or_closed() {
    // Takes the datagrams, and answers none.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut config = with_secret();
    (config.limits.connections, config.limits.line) = (0, 0);
    let full = bind(config);
    let others = [silent.local_addr().unwrap(), closed_port(), full.local_addr()];
    let pair = joined(&others);
    let attempts = pair.client.attempts();
    let asked: Vec<_> = attempts.iter().map(|attempt| attempt.server).collect();
    assert!(asked.starts_with(&others), "{attempts:?}");
    assert!(attempts[0].error.is_none(), "it may still answer: {attempts:?}");
    assert!(matches!(attempts[1].error, Some(AttemptError::NobodyListens)), "{attempts:?}");
    // The server's refusal may come after the next one's welcome.
    let refused = CloseReason::Refused(RefusalCode::Full);
    match &attempts[2].error {
        Some(AttemptError::Closed(reason)) => assert_eq!(*reason, refused),
        error => assert!(error.is_none(), "{attempts:?}"),
    }
    let wire_bytes = pair.client.wire_bytes();
    assert!(wire_bytes.sent > 3 * 1200 && wire_bytes.received > 0, "{wire_bytes:?}");
}

#[test]
fn a_closed_port_ends_it_at_once_and_says_so() {
    let closed = closed_port();
    let mut config = config_at(closed);
    // If it waited for this, the test would fail.
    config.connection.handshake_timeout = 100 * MAX;
    let client = Client::connect(config.clone()).unwrap();
    let event = client.wait(MAX).unwrap();
    assert_eq!(event, Some(Event::Closed(CloseReason::Unreachable)));
    assert!(client.is_closed());
    let error = block_on(Client::connect(config).unwrap().connected()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("nobody listens") && text.contains(&closed.to_string()), "{text}");
}

#[test]
fn the_error_for_an_unusable_address_says_what_to_do() {
    let message = |server: &str| {
        let connect = Connect::new(server.parse().unwrap(), PROTOCOL_ID, Credentials::Open);
        Client::connect(connect).unwrap_err().to_string()
    };
    assert!(message("0.0.0.0:4016").contains("use an address"), "{}", message("0.0.0.0:4016"));
    assert!(message("[::]:4016").contains("use an address"), "{}", message("[::]:4016"));
    assert!(message("[fe80::1]:4016").contains("scope_id"), "{}", message("[fe80::1]:4016"));
    let server = bind(with_secret());
    let ticket =
        |address: &str| server.ticket(&[address.parse().unwrap()]).unwrap_err().to_string();
    assert!(ticket("0.0.0.0:4016").contains("0.0.0.0"), "{}", ticket("0.0.0.0:4016"));
    assert!(ticket("[fe80::1%1]:4016").contains("link-local"), "{}", ticket("[fe80::1%1]:4016"));
}

/// A scope is kept: link-local addresses of loopback need theirs.
#[test]
fn a_missing_route_is_reported_at_once() {
    let broadcast = Connect::new("255.255.255.255:9".parse().unwrap(), 7, Credentials::Open);
    let error = Client::connect(broadcast).unwrap_err();
    let ConnectError::Failed(attempts) = &error else { panic!("{error:?}") };
    assert!(matches!(attempts[0].error, Some(AttemptError::NoRoute(_))), "{error}");
}

/// The system says "address already in use", and not which of a program's sockets that is.
#[test]
fn a_server_that_cannot_listen_says_where() {
    let first = bind(with_secret());
    let error = Server::bind(first.local_addr(), with_secret()).unwrap_err();
    assert!(error.to_string().contains(&first.local_addr().to_string()), "{error}");
    assert!(
        matches!(&error, ListenError::Io(io) if io.kind() == ErrorKind::AddrInUse),
        "{error:?}"
    );
}

#[test]
fn a_server_that_would_let_nobody_in_does_not_start() {
    let config = ServerConfig::new(PROTOCOL_ID, ServerCredentials::default());
    let error = Server::bind("127.0.0.1:0", config).unwrap_err();
    assert!(matches!(error, ListenError::NobodyAccepted), "{error:?}");
    assert_eq!(error.kind(), haulier::ErrorKind::Usage);
}
