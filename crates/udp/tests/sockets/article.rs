//! Peers of the article's wire: whom one speaks with, and what ends a transfer.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use haulier_article::chunk::{ChunkSenderEvent, SendFailure};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent, PeerMachine};
use haulier_core::{Batch, Instant};
use haulier_udp::{Clock, Runner, Socket};

use crate::support::{loopback, mail, until};

const TURN: Duration = Duration::from_millis(2);

type End = Runner<PeerMachine>;

fn end(config: &ArticleConfig, socket: Socket) -> End {
    Runner::new(PeerMachine::new(ArticlePeer::new(config.clone())), socket, Clock::start())
}

fn connected(config: &ArticleConfig, remote: SocketAddr) -> End {
    let machine = PeerMachine::connected(ArticlePeer::new(config.clone()), remote);
    Runner::new(machine, Socket::connect(remote).unwrap(), Clock::start())
}

/// A connected pair. Rates are high, so that the tests do not wait.
fn pair() -> (End, End) {
    let mut config = ArticleConfig::default();
    config.sender.rate_bps = 400_000_000;
    let client = end(&config, Socket::bind(loopback()).unwrap());
    (connected(&config, client.carrier().local_addr()), client)
}

#[test]
fn a_burst_of_256_kib_fits_the_buffers() {
    let (mut server, mut client) = pair();
    println!("granted: {:?}", client.carrier().buffers());
    let world: Vec<u8> = (0..256 * 1024u32).map(|i| (i * 7) as u8).collect();
    server.machine.peer.send_chunk(world.clone()).unwrap();
    let received = loop {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
        if let Some(chunk) = client.machine.peer.pop_chunk() {
            break chunk;
        }
    };
    assert_eq!(received, world);
}

#[test]
fn both_directions_at_once() {
    let (mut server, mut client) = pair();
    server.machine.peer.send_chunk(vec![1; 100_000]).unwrap();
    client.machine.peer.send_chunk(vec![2; 50_000]).unwrap();
    let (mut there, mut back) = (None, None);
    while there.is_none() || back.is_none() {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
        there = there.or_else(|| client.machine.peer.pop_chunk());
        back = back.or_else(|| server.machine.peer.pop_chunk());
    }
    assert_eq!(there.unwrap(), vec![1; 100_000]);
    assert_eq!(back.unwrap(), vec![2; 50_000]);
}

#[test]
fn the_first_to_speak_the_protocol_is_the_remote_and_strangers_are_not_heard() {
    let (mut server, mut client) = pair();
    let stranger = UdpSocket::bind(loopback()).unwrap();
    let to = client.carrier().local_addr();
    stranger.send_to(b"not of this protocol", to).unwrap();
    client.turn(TURN).unwrap();
    assert_eq!(client.machine.remote(), None);

    server.machine.peer.send_chunk(vec![1; 10_000]).unwrap();
    while client.machine.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
    assert!(client.machine.remote().is_some());
    let (strangers, dropped) = (client.machine.strangers(), client.machine.peer.drops().hostile());
    stranger.send_to(b"still not", to).unwrap();
    while client.machine.strangers() == strangers {
        client.turn(TURN).unwrap();
    }
    assert_eq!(client.machine.peer.drops().hostile(), dropped, "not even looked at");
}

/// One slice of a chunk that never comes must not keep all others out for good.
#[test]
fn a_stranger_whose_chunk_never_comes_is_released() {
    let mut config = ArticleConfig::default();
    config.receiver.abandon_after = Some(Duration::from_millis(200));
    let mut client = end(&config, Socket::bind(loopback()).unwrap());
    let to = client.carrier().local_addr();
    let mut stranger = ArticlePeer::new(config.clone());
    stranger.send_chunk(vec![9; 100_000]).unwrap();
    let mut batch = Batch::new(1);
    stranger.poll_transmit(Instant::ZERO, to.into(), &mut batch);
    let (_, slice) = batch.iter().next().unwrap();
    UdpSocket::bind(loopback()).unwrap().send_to(slice, to).unwrap();
    while client.machine.remote().is_none() {
        client.turn(TURN).unwrap();
    }
    let mut server = connected(&config, to);
    server.machine.peer.send_chunk(vec![1; 10_000]).unwrap();
    while client.machine.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
    assert_eq!(client.machine.peer.pop_chunk().unwrap(), vec![1; 10_000]);
}

/// A closed port: the system answers every packet with an ICMP error, which a connected socket reports
/// on its next call. The transfer ends by its own time-out, with its own error.
#[test]
fn icmp_errors_do_not_end_a_transfer_but_the_time_out_does() {
    let closed_port = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let mut config = ArticleConfig::default();
    config.sender.give_up_after = Some(Duration::from_millis(400));
    let mut driver = connected(&config, closed_port);
    driver.machine.peer.send_chunk(vec![1; 30_000]).unwrap();
    let reason = loop {
        driver.turn(TURN).unwrap();
        if let Some(PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. })) =
            driver.machine.peer.poll_event()
        {
            break reason;
        }
    };
    assert_eq!(reason, SendFailure::NoProgress);
    assert!(driver.stats().refused > 0, "{:?}", driver.stats());
}

/// An address that cannot be reached at all, and one that is too long: a send fails, the runner does not.
#[test]
fn a_datagram_that_cannot_be_sent_is_a_lost_one() {
    let socket = Socket::bind(loopback()).unwrap();
    let own = socket.local_addr().into();
    // A socket on loopback has no way to another machine; nothing leaves this one.
    let other = "192.0.2.1:9".parse::<std::net::SocketAddr>().unwrap().into();
    let mut runner = mail(socket);
    runner.machine.to_send = [(other, vec![1]), (own, vec![2; 70_000]), (own, vec![3])].into();
    until(&mut runner, |runner| !runner.machine.received.is_empty());
    assert_eq!(runner.machine.received[0].2, [3]);
    assert_eq!((runner.stats().sent, runner.stats().passed_over), (1, 2));
}

/// IPv6 where the machine has it.
#[test]
fn ipv6() {
    let Ok(socket) = Socket::bind("[::1]:0".parse().unwrap()) else {
        println!("no IPv6 here");
        return;
    };
    let config = ArticleConfig::default();
    let mut client = end(&config, socket);
    let remote = client.carrier().local_addr();
    let mut server = connected(&config, remote);
    server.machine.peer.send_chunk(vec![6; 5_000]).unwrap();
    while client.machine.peer.receiver().unread() == 0 {
        server.turn(TURN).unwrap();
        client.turn(TURN).unwrap();
    }
}
