//! A server and a client over loopback, looked at.

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use haulier::{
    Block, Client, Connect, Credentials, DropReason, Event, Server, ServerConfig,
    ServerCredentials, ServerEvent,
};
use haulier_view::{End, METRICS, MetricKind, Names, Snapshot, View, Watch};

const LONG: Duration = Duration::from_secs(30);

fn server() -> Server {
    let credentials = ServerCredentials::default().with_open_access();
    Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials)).unwrap()
}

fn client(server: &Server) -> Client {
    Client::connect(Connect::new(server.local_addr(), 7, Credentials::Open)).unwrap()
}

/// A server with a block on its way to a client that has some of it: both ends are looked at.
fn on_its_way(name: &str) -> (Server, Client, Snapshot, Snapshot) {
    let server = server();
    let names = Names::new();
    let mut here = Watch::new(server.clone()).with_names(names.clone());
    assert_eq!(here.snapshot().connections.len(), 0);
    let client = client(&server);
    let world = Block::new(9, vec![3; 3 << 20]);
    loop {
        if let Some((id, ServerEvent::Connecting { .. })) = server.wait(LONG).unwrap() {
            server.set_max_rate_bps(id, 2_000_000);
            names.set(id, name);
            server.send_block(id, &world).unwrap();
            break;
        }
    }
    while !matches!(client.wait(LONG).unwrap(), Some(Event::BlockProgress { .. })) {}
    // The first slices may be there before the server has heard that the client is.
    let connected = ServerEvent::Connection(Event::Connected);
    while server.wait(LONG).unwrap().is_none_or(|(_, event)| event != connected) {}
    let there = Watch::new(client.clone()).snapshot();
    let here = here.snapshot();
    (server, client, here, there)
}

#[test]
fn both_ends_of_a_block_on_its_way() {
    let (_server, _client, here, there) = on_its_way("player <b>one</b>\u{1b}[2J");
    assert_eq!((here.end, there.end), (End::Server, End::Client));
    assert_eq!((here.totals.requests, here.totals.connections), (1, 1));
    let (one, two) = (&here.connections[0], &there.connections[0]);
    assert_eq!(one.name, "player <b>one</b>[2J", "as text, without what moves a cursor");
    let (block, is_received) = one.block().unwrap();
    assert_eq!((block.tag, block.length, is_received), (9, 3 << 20, false));
    let (block, is_received) = two.block().unwrap();
    assert_eq!((block.tag, is_received), (9, true));
    assert!(block.done > 0 && two.stats.bytes_received > 0);
    for map in [one.map().unwrap(), two.map().unwrap()] {
        assert_eq!(map.chunks, 12);
        assert!(!map.open.is_empty());
    }
    assert!(here.sent_bps > 0, "since the look before");
    assert!(here.amounts.slices_sent > 0 && one.memory_bytes > 0);
    let json = here.to_json();
    assert_eq!(json["connections"][0]["sending_map"]["chunks"], 12);
    assert_eq!(json["connections"][0]["state"], "connected");
    assert!(there.to_json()["connections"][0]["receiving"]["done"].as_u64() > Some(0));
}

/// A snapshot of thousands is as large as one of two hundred.
#[test]
fn connections_beyond_two_hundred_are_only_counted() {
    let server = server();
    let _clients: Vec<Client> = (0..205).map(|_| client(&server)).collect();
    let mut here = 0;
    while here < 205 {
        if let Some((_, ServerEvent::Connecting { .. })) = server.wait(LONG).unwrap() {
            here += 1;
        }
    }
    let snapshot = Watch::new(server).snapshot();
    assert_eq!((snapshot.connections.len(), snapshot.unlisted), (200, 5));
    assert_eq!(snapshot.totals.connections, 205);
}

/// A monitor must find each metric once, and no name of a client.
#[test]
fn the_metrics_of_a_look() {
    let (server, _client, mut here, _there) = on_its_way("somebody");
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    while server.drops().get(DropReason::UnknownKind) == 0 {
        stranger.send_to(&[0xFF; 40], server.local_addr()).unwrap();
    }
    here.drops = server.drops().iter().collect();
    let text = here.to_openmetrics();
    assert!(text.ends_with("\n# EOF\n") && !text.contains("somebody"));
    for metric in METRICS {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let head = format!("# TYPE {} {kind}\n", metric.name);
        assert_eq!(text.matches(&head).count(), 1, "{head}");
        assert!(metric.name.ends_with(metric.unit.name()), "{}", metric.name);
        assert!(metric.kind != MetricKind::Counter || !metric.name.ends_with("_total"));
    }
    assert!(text.contains("\nhaulier_connections 1\n"));
    let unknown = text.lines().find(|line| line.contains("reason=\"unknown_kind\"")).unwrap();
    assert!(!unknown.ends_with(" 0"), "{unknown}");
    assert!(text.contains("\nhaulier_rtt_seconds_bucket{le=\"+Inf\"} 1\n"), "{text}");
}

fn ask(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "{request}\r\nHost: {at}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_view_is_read_and_nothing_else() {
    let (server, _client, ..) = on_its_way("");
    let view = View::start("127.0.0.1:0".parse().unwrap(), server).unwrap();
    let at = view.address();
    assert_eq!(view.warning(), None);
    let page = ask(at, "GET / HTTP/1.1");
    assert!(
        page.contains("200 OK") && page.contains("content-security-policy: default-src 'self'")
    );
    assert!(page.contains("live.js"));
    for file in ["live.js", "table.js", "text.js", "paint.js", "theme.css", "live.css"] {
        assert!(ask(at, &format!("GET /{file} HTTP/1.1")).contains("200 OK"), "{file}");
    }
    let one = ask(at, "GET /snapshot.json HTTP/1.1");
    let one: serde_json::Value =
        serde_json::from_str(one.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(one["totals"]["requests"], 1);
    let metrics = ask(at, "GET /metrics HTTP/1.1");
    assert!(metrics.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(ask(at, "HEAD /metrics HTTP/1.1").ends_with("\r\n\r\n"));
    assert!(ask(at, "POST / HTTP/1.1").contains("405"));
    assert!(ask(at, "GET /../Cargo.toml HTTP/1.1").contains("404"));
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("421"), "{answer}");
}

/// A page that is left open gets one snapshot after the other.
#[test]
fn events_go_on() {
    let view = View::start("127.0.0.1:0".parse().unwrap(), server()).unwrap();
    let mut stream = TcpStream::connect(view.address()).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", view.address()).unwrap();
    let (mut text, mut part) = (String::new(), [0; 4096]);
    while text.matches("data: {").count() < 3 {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "it ended: {text}");
        text += std::str::from_utf8(&part[..read]).unwrap();
    }
    assert!(text.contains("content-type: text/event-stream"));
    drop(view);
}

#[test]
fn an_address_for_everybody_has_a_warning() {
    let view = View::start("0.0.0.0:0".parse().unwrap(), server()).unwrap();
    assert!(view.warning().unwrap().contains("use a loopback address"));
    assert!(view.url().starts_with("http://127.0.0.1:"));
}
