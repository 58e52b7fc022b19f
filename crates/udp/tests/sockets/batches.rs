//! Many datagrams with one call, and when each of them arrived.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use haulier_core::{Ecn, FourTuple};
use haulier_udp::{Carrier as _, Clock, Runner, Socket};

use crate::support::{Mail, loopback, mail, until};

/// Sends all of these, each to its address. Returns the sender.
fn send(socket: Socket, datagrams: &[(SocketAddr, Vec<u8>)]) -> Runner<Mail> {
    let mut sender = mail(socket);
    let to_send = datagrams.iter().map(|(to, bytes)| (FourTuple::new(*to), bytes.clone()));
    sender.machine.to_send = to_send.collect();
    let wanted = datagrams.len() as u64;
    until(&mut sender, |sender| sender.stats().sent == wanted);
    sender
}

/// The next `wanted` datagrams.
fn receive(socket: Socket, wanted: usize) -> Vec<Vec<u8>> {
    let mut receiver = mail(socket);
    until(&mut receiver, |receiver| receiver.machine.received.len() >= wanted);
    assert_eq!(receiver.stats().received, wanted as u64);
    receiver.machine.received.into_iter().map(|(_, _, bytes)| bytes).collect()
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

fn arrives_complete_and_in_order(max_segments: usize) {
    let mut sender = Socket::bind(loopback()).unwrap();
    sender.limit_segments(max_segments);
    let ends = [Socket::bind(loopback()).unwrap(), Socket::connect(sender.local_addr()).unwrap()];
    let [first, second] = [&ends[0], &ends[1]].map(Socket::local_addr);
    let all = unequal(first, second);
    let sender = send(sender, &all);
    for (end, to) in ends.into_iter().zip([first, second]) {
        let wanted: Vec<_> =
            all.iter().filter(|(at, _)| *at == to).map(|(_, bytes)| bytes).collect();
        assert!(receive(end, wanted.len()).iter().eq(wanted));
    }
    let stats = sender.stats();
    assert_eq!(stats.sent_bytes, all.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    // Where the system does not split, it takes several that are no run.
    let takes_several = sender.carrier().max_several() > 1;
    let is_split = sender.carrier().max_segments() > 1;
    assert_eq!(stats.batches > 0, is_split || takes_several, "{stats:?}");
    if takes_several {
        // Runs end where the sizes change.
        let each = if is_split { 7 } else { 40 };
        assert!(stats.send_calls * each <= stats.sent, "{stats:?}");
    }
}

#[test]
fn unequal_datagrams_to_two_addresses_arrive_complete_and_in_order() {
    arrives_complete_and_in_order(usize::MAX);
}

#[test]
fn one_by_one_too() {
    arrives_complete_and_in_order(1);
}

/// As many as fit a run go together, and not one more: then the system would refuse, and split none.
#[test]
fn short_ones_go_as_many_as_the_system_takes() {
    let receiver = Socket::bind(loopback()).unwrap();
    let to = receiver.local_addr();
    let sender = Socket::connect(to).unwrap();
    let before = sender.max_segments();
    let all: Vec<_> = (0..250u8).map(|i| (to, vec![i; 20])).collect();
    let sender = send(sender, &all);
    assert!(receive(receiver, all.len()).iter().eq(all.iter().map(|(_, bytes)| bytes)));
    assert_eq!(sender.carrier().max_segments(), before);
    let each = before.min(54) as u64;
    assert_eq!(sender.stats().batches, if before > 1 { 250_u64.div_ceil(each) } else { 0 });
}

/// A program that looks once in a frame must not take the frame for the link.
#[test]
fn a_datagram_that_waited_is_stamped_with_its_arrival() {
    let clock = Clock::start();
    let socket = Socket::bind(loopback()).unwrap();
    let to = socket.local_addr();
    let mut receiver = Runner::new(Mail::default(), socket, clock);
    let sender = UdpSocket::bind(loopback()).unwrap();
    // Linux begins to stamp some time after the first socket that asks for it, on a busy machine late, and
    // until then it stamps what is read.
    let is_stamped = |receiver: &mut Runner<Mail>| {
        receiver.machine.received.clear();
        sender.send_to(b"soon", to).unwrap();
        thread::sleep(Duration::from_millis(10));
        let read = clock.now();
        until(receiver, |receiver| receiver.machine.received.len() == 1);
        read.since(receiver.machine.received[0].0) >= Duration::from_millis(5)
    };
    assert!((0..1000).any(|_| !cfg!(target_os = "linux") || is_stamped(&mut receiver)));
    receiver.machine.received.clear();
    let before = clock.now();
    sender.send_to(b"first", to).unwrap();
    thread::sleep(Duration::from_millis(30));
    sender.send_to(b"second", to).unwrap();
    thread::sleep(Duration::from_millis(30));
    let read = clock.now();
    until(&mut receiver, |receiver| receiver.machine.received.len() == 2);
    let received = &receiver.machine.received;
    let [first, second] = [received[0].0, received[1].0];
    assert!(first <= second && second <= clock.now(), "{before:?} {received:?}");
    if cfg!(target_os = "linux") {
        // The two clocks drift by less than this, unless one of them is set.
        let min = Duration::from_millis(20);
        assert!(first + Duration::from_millis(5) >= before, "{before:?} {received:?}");
        assert!(second.since(first) >= min && read.since(second) >= min, "{received:?}");
    }
}

/// A server at [::] answers IPv4 by its mapped addresses, in batches too.
#[test]
fn mapped_addresses_are_sent_to() {
    let Ok(server) = Socket::bind("[::]:0".parse().unwrap()) else {
        return println!("no IPv6 here");
    };
    let to = SocketAddr::from(([127, 0, 0, 1], server.local_addr().port()));
    let client = send(Socket::connect(to).unwrap(), &[(to, b"hello".to_vec())]);
    let mut server = mail(server);
    until(&mut server, |server| !server.machine.received.is_empty());
    let path = server.machine.received[0].1;
    assert!(path.remote.is_ipv6(), "{path:?}");
    server.machine.to_send = (0..100u8).map(|i| (path, vec![i; 1200])).collect();
    until(&mut server, |server| server.stats().sent == 100);
    let mut client = client;
    until(&mut client, |client| client.machine.received.len() == 100);
    let received = client.machine.received.iter().map(|(_, _, bytes)| bytes.clone());
    assert!(received.eq((0..100u8).map(|i| vec![i; 1200])));
}

/// What Linux joins has one ECN field, which holds for each datagram of it: with too little room for what the
/// system says, it was read as not set, and the sender took the path for one that clears it.
#[test]
fn each_datagram_that_was_joined_has_its_mark() {
    for (at, to) in
        [("127.0.0.1:0", [127, 0, 0, 1]), ("0.0.0.0:0", [127, 0, 0, 1]), ("[::]:0", [127, 0, 0, 1])]
    {
        each_has_its_mark(at, to.into());
    }
    each_has_its_mark("[::1]:0", "::1".parse().unwrap());
    each_has_its_mark("[::]:0", "::1".parse().unwrap());
}

fn each_has_its_mark(at: &str, to: IpAddr) {
    let Ok(socket) = Socket::bind(at.parse().unwrap()) else {
        return println!("no IPv6 here");
    };
    let to = SocketAddr::new(to, socket.local_addr().port());
    let mut receiver = mail(socket);
    for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::NotEct] {
        // Without GSO, too, where several go with one call that are no run.
        let mut socket = Socket::connect(to).unwrap();
        if ecn == Ecn::Ect0 {
            socket.limit_segments(1);
        }
        let mut sender = mail(socket);
        sender.machine.ecn = Some(ecn);
        sender.machine.to_send = (0..40u8).map(|i| (FourTuple::new(to), vec![i; 1200])).collect();
        until(&mut sender, |sender| sender.stats().sent == 40);
        let calls = receiver.stats().receive_calls;
        until(&mut receiver, |receiver| receiver.machine.marks.len() == 40);
        assert_eq!(receiver.machine.marks, [ecn; 40], "at {at}");
        receiver.machine.marks.clear();
        if cfg!(target_os = "linux") {
            assert!(receiver.stats().receive_calls < calls + 20, "none was joined");
        }
    }
}

/// A server of several addresses answers several clients without GSO: each from the address that was asked.
#[test]
fn answers_to_several_leave_from_where_each_was_asked() {
    for (at, to) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")] {
        let Ok(mut server) = Socket::bind(at.parse().unwrap()) else {
            return println!("no IPv6 here");
        };
        server.limit_segments(1);
        let to = SocketAddr::new(to.parse().unwrap(), server.local_addr().port());
        let mut server = mail(server);
        let mut clients: Vec<_> = (0..5)
            .map(|_| send(Socket::connect(to).unwrap(), &[(to, b"hello".to_vec())]))
            .collect();
        until(&mut server, |server| server.machine.received.len() == clients.len());
        let paths: Vec<_> = server.machine.received.iter().map(|(_, path, _)| *path).collect();
        server.machine.ecn = Some(Ecn::Ect0);
        server.machine.to_send =
            (0..50u8).map(|i| (paths[usize::from(i) % 5], vec![i; 1200])).collect();
        until(&mut server, |server| server.stats().sent == 50);
        for client in &mut clients {
            // Connected: what is from another address does not arrive.
            until(client, |client| client.machine.received.len() == 10);
            assert_eq!(client.machine.marks, [Ecn::Ect0; 10], "from {at} to {to}");
        }
        if cfg!(target_os = "linux") {
            assert_eq!(server.stats().send_calls, 1, "from {at} to {to}");
        }
    }
}
