//! Many datagrams with one call, over real sockets on loopback. What blocks or is refused is tested inside,
//! against a system that does so at will: loopback always has room.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_udp::{Clock, Inbox, Outbox, Received, Socket, Transmitted};

/// After this a test has failed, however slow the machine is.
const MOST: Duration = Duration::from_secs(60);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Sends all of these, each to its address.
fn send(socket: &mut Socket, datagrams: &[(SocketAddr, Vec<u8>)]) {
    let mut outbox = Outbox::new();
    let mut waiting: VecDeque<_> = datagrams.iter().cloned().collect();
    loop {
        let sent = socket.transmit(&mut outbox, 1024, |buffer| {
            let (to, bytes) = waiting.pop_front()?;
            *buffer = bytes;
            Some(to)
        });
        if sent.unwrap() == Transmitted::All {
            return;
        }
        socket.wait(Duration::from_millis(5)).unwrap();
    }
}

/// The next datagrams, so many, with their times.
fn receive(socket: &mut Socket, clock: &Clock, wanted: usize) -> Vec<(Instant, Vec<u8>)> {
    let (mut inbox, mut all) = (Inbox::new(), Vec::new());
    let began = std::time::Instant::now();
    while all.len() < wanted {
        assert!(began.elapsed() < MOST, "only {} of {wanted}", all.len());
        if socket.receive(&mut inbox).unwrap() == Received::Nothing {
            socket.wait(Duration::from_millis(100)).unwrap();
        }
        inbox.drain(clock, |at, _, datagram| all.push((at, datagram.to_vec())));
    }
    all
}

/// Runs of equal sizes, sizes that rise and fall, and empty ones, mixed for two addresses. More than one
/// call holds, in both directions.
fn unequal(first: SocketAddr, second: SocketAddr) -> Vec<(SocketAddr, Vec<u8>)> {
    (0..600usize)
        .map(|i| {
            let to = if i / 70 % 2 == 0 { first } else { second };
            let size = if i % 50 < 40 { 1200 } else { [0, 7, 1200, 900, 901, 1][i % 6] };
            (to, [&i.to_le_bytes()[..], &vec![i as u8; 1200]].concat()[..size].to_vec())
        })
        .collect()
}

fn arrives_complete_and_in_order(most_segments: usize) {
    let mut sender = Socket::bind(loopback()).unwrap();
    sender.limit_segments(most_segments);
    let mut ends =
        [Socket::bind(loopback()).unwrap(), Socket::connect(sender.local_addr().unwrap()).unwrap()];
    let [first, second] = [&ends[0], &ends[1]].map(|socket| socket.local_addr().unwrap());
    let second = SocketAddr::from(([127, 0, 0, 1], second.port()));
    let all = unequal(first, second);
    send(&mut sender, &all);
    for (end, to) in ends.iter_mut().zip([first, second]) {
        let wanted: Vec<_> =
            all.iter().filter(|(at, _)| *at == to).map(|(_, bytes)| bytes).collect();
        let received = receive(end, &Clock::start(), wanted.len());
        assert!(received.iter().map(|(_, bytes)| bytes).eq(wanted));
        assert_eq!(end.stats().received, received.len() as u64);
    }
    let stats = sender.stats();
    assert_eq!(stats.sent, 600);
    assert_eq!(stats.sent_bytes, all.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    assert_eq!(stats.batches > 0, sender.max_segments() > 1, "{stats:?}");
}

#[test]
fn unequal_datagrams_to_two_addresses_arrive_complete_and_in_order() {
    arrives_complete_and_in_order(usize::MAX);
}

#[test]
fn one_by_one_too() {
    arrives_complete_and_in_order(1);
}

/// As many as the system says go together, and not one more: then it would refuse, and have no batches.
#[test]
fn short_ones_go_as_many_as_the_system_takes() {
    let mut receiver = Socket::bind(loopback()).unwrap();
    let to = receiver.local_addr().unwrap();
    let mut sender = Socket::connect(to).unwrap();
    let before = sender.max_segments();
    let all: Vec<_> = (0..250u8).map(|i| (to, vec![i; 20])).collect();
    send(&mut sender, &all);
    let received = receive(&mut receiver, &Clock::start(), all.len());
    assert!(received.iter().map(|(_, bytes)| bytes).eq(all.iter().map(|(_, bytes)| bytes)));
    assert_eq!(sender.max_segments(), before);
    assert_eq!(
        sender.stats().batches,
        if before > 1 { 250_u64.div_ceil(before as u64) } else { 0 }
    );
}

/// A program that looks once in a frame must not take the frame for the link.
#[test]
fn a_datagram_that_waited_is_stamped_with_its_arrival() {
    let clock = Clock::start();
    let mut receiver = Socket::bind(loopback()).unwrap();
    let to = receiver.local_addr().unwrap();
    let sender = UdpSocket::bind(loopback()).unwrap();
    // Not at the clock's very beginning, before which nothing can arrive.
    thread::sleep(Duration::from_millis(40));
    let before = clock.now();
    sender.send_to(b"first", to).unwrap();
    thread::sleep(Duration::from_millis(30));
    sender.send_to(b"second", to).unwrap();
    thread::sleep(Duration::from_millis(30));
    let read = clock.now();
    let received = receive(&mut receiver, &clock, 2);
    let [first, second] = [received[0].0, received[1].0];
    assert!(first <= second && second <= clock.now(), "{before:?} {received:?}");
    if cfg!(target_os = "linux") {
        // The two clocks run apart by less than this, if nobody sets one of them.
        let least = Duration::from_millis(20);
        assert!(first + Duration::from_millis(5) >= before, "{before:?} {received:?}");
        assert!(second.since(first) >= least && read.since(second) >= least, "{received:?}");
    }
}

/// A server at [::] answers IPv4 by its mapped addresses, in batches too.
#[test]
fn mapped_addresses_are_sent_to() {
    let Ok(mut server) = Socket::bind("[::]:0".parse().unwrap()) else {
        println!("no IPv6 here");
        return;
    };
    let port = server.local_addr().unwrap().port();
    let mut client = Socket::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    client.send(b"hello", client.remote().unwrap()).unwrap();
    let (mut inbox, mut from) = (Inbox::new(), None);
    while from.is_none() {
        server.wait(Duration::from_millis(100)).unwrap();
        server.receive(&mut inbox).unwrap();
        inbox.drain(&Clock::start(), |_, address, _| from = Some(address));
    }
    let from = from.unwrap();
    assert!(from.is_ipv6(), "{from}");
    let all: Vec<_> = (0..100u8).map(|i| (from, vec![i; 1200])).collect();
    send(&mut server, &all);
    let received = receive(&mut client, &Clock::start(), 100);
    assert!(received.iter().map(|(_, bytes)| bytes).eq(all.iter().map(|(_, bytes)| bytes)));
}
