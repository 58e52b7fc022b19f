//! The driver over real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use haulier_article::chunk::{ChunkSenderEvent, SendFailure};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent};
use haulier_udp::{Driver, Socket};

const TURN: Duration = Duration::from_millis(2);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn peer(config: &ArticleConfig) -> ArticlePeer {
    ArticlePeer::new(config.clone())
}

/// A connected pair. Rates are high, so that the tests do not wait.
fn pair() -> (Driver, Driver) {
    let mut config = ArticleConfig::default();
    config.sender.rate_bps = 400_000_000;
    let client = Driver::new(Socket::bind(loopback()).unwrap(), peer(&config)).unwrap();
    let to = client.local_addr().unwrap();
    (Driver::new(Socket::connect(to).unwrap(), peer(&config)).unwrap(), client)
}

#[test]
fn a_burst_of_256_kib_fits_the_buffers() {
    let (mut server, mut client) = pair();
    println!("granted: {:?}", client.socket().buffers());
    let world: Vec<u8> = (0..256 * 1024u32).map(|i| (i * 7) as u8).collect();
    server.peer.send_chunk(world.clone()).unwrap();
    let received = loop {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
        if let Some(chunk) = client.peer.pop_chunk() {
            break chunk;
        }
    };
    assert_eq!(received, world);
}

#[test]
fn both_directions_at_once() {
    let (mut server, mut client) = pair();
    server.peer.send_chunk(vec![1; 100_000]).unwrap();
    client.peer.send_chunk(vec![2; 50_000]).unwrap();
    let (mut there, mut back) = (None, None);
    while there.is_none() || back.is_none() {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
        there = there.or_else(|| client.peer.pop_chunk());
        back = back.or_else(|| server.peer.pop_chunk());
    }
    assert_eq!(there.unwrap(), vec![1; 100_000]);
    assert_eq!(back.unwrap(), vec![2; 50_000]);
}

#[test]
fn the_first_to_speak_the_protocol_is_the_remote_and_strangers_are_not_heard() {
    let (mut server, mut client) = pair();
    let stranger = UdpSocket::bind(loopback()).unwrap();
    let to = client.local_addr().unwrap();
    stranger.send_to(b"not of this protocol", to).unwrap();
    client.turn(TURN).unwrap();
    assert_eq!(client.remote(), None);

    server.peer.send_chunk(vec![1; 10_000]).unwrap();
    while client.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
    assert!(client.remote().is_some());
    let (heard, dropped) = (client.strangers(), client.peer.drops().hostile());
    stranger.send_to(b"still not", to).unwrap();
    while client.strangers() == heard {
        client.turn(TURN).unwrap();
    }
    assert_eq!(client.peer.drops().hostile(), dropped, "not even looked at");
}

/// One slice of a chunk that never comes must not keep everybody else out for good.
#[test]
fn a_stranger_whose_chunk_never_comes_is_let_go() {
    let mut config = ArticleConfig::default();
    config.receiver.abandon_after = Some(Duration::from_millis(200));
    let mut client = Driver::new(Socket::bind(loopback()).unwrap(), peer(&config)).unwrap();
    let to = client.local_addr().unwrap();
    let mut stranger = peer(&config);
    stranger.send_chunk(vec![9; 100_000]).unwrap();
    let mut slice = Vec::new();
    assert!(stranger.poll_datagram(haulier_article::Instant::ZERO, &mut slice));
    UdpSocket::bind(loopback()).unwrap().send_to(&slice, to).unwrap();
    while client.remote().is_none() {
        client.turn(TURN).unwrap();
    }
    let mut server = Driver::new(Socket::connect(to).unwrap(), peer(&config)).unwrap();
    server.peer.send_chunk(vec![1; 10_000]).unwrap();
    while client.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
    assert_eq!(client.peer.pop_chunk().unwrap(), vec![1; 10_000]);
}

/// Nobody listens: the system answers every packet with an ICMP error, which a connected socket reports
/// on its next call. The transfer ends by its own time-out, with its own error.
#[test]
fn icmp_errors_do_not_end_a_transfer_but_the_time_out_does() {
    let nobody = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let mut config = ArticleConfig::default();
    config.sender.give_up_after = Some(Duration::from_millis(400));
    let mut driver = Driver::new(Socket::connect(nobody).unwrap(), peer(&config)).unwrap();
    driver.peer.send_chunk(vec![1; 30_000]).unwrap();
    let reason = loop {
        driver.turn(TURN).unwrap();
        if let Some(PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. })) =
            driver.peer.poll_event()
        {
            break reason;
        }
    };
    assert_eq!(reason, SendFailure::NoProgress);
    assert!(driver.socket().stats().refused > 0, "{:?}", driver.socket().stats());
}

/// An address that cannot be reached at all: a send fails, the driver does not.
#[test]
fn a_datagram_that_cannot_be_sent_is_a_lost_one() {
    let mut socket = Socket::bind(loopback()).unwrap();
    // A socket on loopback has no way to another machine; nothing leaves this one.
    let sent = socket.send(b"x", "192.0.2.1:9".parse().unwrap());
    assert_eq!(sent.unwrap(), haulier_udp::Sent::Lost);
    let oversized = socket.send(&[0; 70_000], loopback_port(&socket));
    assert_eq!(oversized.unwrap(), haulier_udp::Sent::Lost);
    assert_eq!(socket.send(b"x", loopback_port(&socket)).unwrap(), haulier_udp::Sent::Taken);
}

fn loopback_port(socket: &Socket) -> SocketAddr {
    socket.local_addr().unwrap()
}

/// IPv6 where the machine has it.
#[test]
fn ipv6() {
    let Ok(socket) = Socket::bind("[::1]:0".parse().unwrap()) else {
        println!("no IPv6 here");
        return;
    };
    let config = ArticleConfig::default();
    let mut client = Driver::new(socket, peer(&config)).unwrap();
    let remote = client.local_addr().unwrap();
    let mut server = Driver::new(Socket::connect(remote).unwrap(), peer(&config)).unwrap();
    server.peer.send_chunk(vec![6; 5_000]).unwrap();
    while client.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
}
