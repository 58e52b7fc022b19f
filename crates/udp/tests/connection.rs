//! The drivers of clients and servers on loopback sockets: what only the sockets decide.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use haulier_proto::DropReason;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, Event};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerEvent};
use haulier_udp::{ClientDriver, ServerDriver, Socket};

const TURN: Duration = Duration::from_millis(1);

/// After this a test has failed, however slow the machine is.
const MOST: Duration = Duration::from_secs(60);

fn server() -> ServerDriver {
    let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
    ServerDriver::bind("127.0.0.1:0".parse().unwrap(), ServerConfig::new(7, credentials)).unwrap()
}

fn config(server: &ServerDriver) -> ClientConfig {
    ClientConfig::new(server.local_addr().unwrap(), 7, Credentials::Open)
}

/// Serves `block` to everybody until the client has said this.
fn until(
    server: &mut ServerDriver,
    client: &mut ClientDriver,
    block: &Block,
    is_it: impl Fn(&Event) -> bool,
) {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < MOST, "{:?}, {:?}", client.client, server.server.stats());
        server.turn(Duration::ZERO).unwrap();
        let now = server.clock().now();
        while let Some((id, event)) = server.server.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                server.server.connection_mut(id).unwrap().send_block(now, block).unwrap();
            }
        }
        server.flush().unwrap();
        client.turn(TURN).unwrap();
        while let Some(event) = client.client.poll_event(client.clock().now()) {
            if is_it(&event) {
                return;
            }
        }
    }
}

fn is_block(event: &Event) -> bool {
    matches!(event, Event::Block { .. })
}

#[test]
fn a_block_arrives_on_connected_and_on_unconnected_sockets() {
    let block = Block::new(1, vec![7; 100_000]);
    let mut server = server();
    let mut client = ClientDriver::connect(config(&server)).unwrap();
    until(&mut server, &mut client, &block, is_block);
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut client = ClientDriver::with_socket(socket, config(&server)).unwrap();
    until(&mut server, &mut client, &block, is_block);
    assert_eq!(server.server.stats().accepted, 2);
}

/// Everything but the server's own address is passed over, before any of it is looked at.
#[test]
fn strangers_at_a_clients_socket_are_not_heard() {
    let block = Block::new(1, vec![7; 100_000]);
    let mut server = server();
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut client = ClientDriver::with_socket(socket, config(&server)).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for first in 0..=255u8 {
        let to = client.local_addr().unwrap();
        stranger.send_to(&[&[first][..], &[0; 1000]].concat(), to).unwrap();
    }
    until(&mut server, &mut client, &block, is_block);
    let dropped: Vec<_> = client.client.drops().iter().collect();
    assert_eq!(dropped, [(DropReason::NotFromServer, 256)]);
}

/// Longer than any datagram of the wire: cut off by the receive buffer, and refused for its length.
#[test]
fn noise_at_a_servers_socket_is_counted_and_answered_with_nothing() {
    let mut server = server();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for bytes in [0, 1, 1199, 1200, 1201, 9000] {
        stranger.send_to(&vec![0xff; bytes], server.local_addr().unwrap()).unwrap();
    }
    let began = Instant::now();
    while server.server.stats().datagrams_received < 6 {
        assert!(began.elapsed() < MOST, "{:?}", server.server.stats());
        server.turn(TURN).unwrap();
    }
    assert_eq!(server.server.drops().iter().map(|(_, count)| count).sum::<u64>(), 6);
    assert_eq!(server.server.stats().datagrams_sent, 0);
}

#[test]
fn a_driver_goes_on_with_another_socket() {
    let block = Block::new(1, vec![7; 600_000]);
    let mut server = server();
    let mut client = ClientDriver::connect(config(&server)).unwrap();
    let progress = |event: &Event| matches!(event, Event::BlockProgress { .. });
    until(&mut server, &mut client, &block, progress);
    let old = client.replace_socket(Socket::connect(client.client.server()).unwrap()).unwrap();
    assert_ne!(old.local_addr().unwrap(), client.local_addr().unwrap());
    drop(old);
    until(&mut server, &mut client, &block, is_block);
}
