//! Peers that something else than the socket carries, beside those of the socket, on one server. The other
//! transport is this thread: it carries what comes out of a client's machine in, and back.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use haulier::proto::Machine;
use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::udp::Clock;
use haulier::{
    Block, Client, CloseCode, CloseReason, ConnectionId, Credentials, Event, GatewayError,
    GatewayPeer, GatewayPeerConfig, Heard, Listen, RefusalCode, Server, ServerConfig,
    ServerCredentials, ServerEvent, TokenServers, issue_token,
};

use crate::modes::{claims, token_key};
use crate::support::{MAX, PROTOCOL_ID, bind, block_on, bytes, config_for, with_secret};

/// An address without a host, reserved for documentation.
fn elsewhere(number: u8) -> SocketAddr {
    ([192, 0, 2, number], 5000).into()
}

/// A client of that server which something else carries.
struct Carried {
    machine: ClientMachine,
    peer: GatewayPeer,
    clock: Clock,
    events: Vec<Event>,
}

impl Carried {
    fn new(server: &Server, peer: GatewayPeerConfig) -> Self {
        Self::with(server, peer, config_for(server))
    }

    fn with(server: &Server, peer: GatewayPeerConfig, config: ClientConfig) -> Self {
        let clock = Clock::start();
        let machine = ClientMachine::new(clock.now(), config, haulier::udp::seed().unwrap());
        let peer = server.gateway().open(peer).unwrap();
        Self { machine: machine.unwrap(), peer, clock, events: Vec::new() }
    }

    fn receive(&mut self) {
        while let Some(datagram) = self.peer.poll_datagram() {
            let server = self.machine.server();
            let _counted =
                self.machine.handle_datagram(self.clock.now(), server, &mut datagram.to_vec());
        }
    }

    fn send(&mut self) -> Result<(), GatewayError> {
        let mut datagram = Vec::new();
        while self.machine.poll_datagram(self.clock.now(), &mut datagram).is_some() {
            self.peer.handle_datagram(&mut datagram)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), GatewayError> {
        self.receive();
        self.machine.handle_timeout(self.clock.now());
        self.events.extend(std::iter::from_fn(|| self.machine.poll_event(self.clock.now())));
        self.send()
    }

    fn block(&self) -> Option<&[u8]> {
        block(&self.events)
    }

    fn end(&self) -> Option<&CloseReason> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }
}

fn block(events: &[Event]) -> Option<&[u8]> {
    events.iter().find_map(|event| match event {
        Event::Block { data, .. } => Some(&data[..]),
        _ => None,
    })
}

/// Runs turns of the clients, and sends this block to each one that joins, until `is_so` is true.
fn until(
    server: &Server,
    world: &Block,
    carried: &mut [&mut Carried],
    mut is_so: impl FnMut(&mut [&mut Carried], &[(ConnectionId, ServerEvent)]) -> bool,
) -> Vec<(ConnectionId, ServerEvent)> {
    let (began, mut at_server) = (Instant::now(), Vec::new());
    while !is_so(carried, &at_server) {
        assert!(began.elapsed() < MAX, "{at_server:?}");
        carried.iter_mut().for_each(|client| client.turn().unwrap());
        while let Some((id, event)) = server.wait(Duration::from_millis(1)).unwrap() {
            if let ServerEvent::Connecting { .. } = event {
                server.send_block(id, world).unwrap();
            }
            at_server.push((id, event));
        }
    }
    at_server
}

fn message(events: &[Event], text: &str) -> bool {
    events
        .iter()
        .any(|event| matches!(event, Event::Message { data, .. } if &data[..] == text.as_bytes()))
}

/// What both kinds of players do on one server.
fn join_beside_native(server: &Server) {
    let world = Block::new(1, bytes(700_000));
    let native = Client::connect(config_for(server)).unwrap();
    // Of the same address and port, as behind one NAT, and without a proven address.
    let twin = GatewayPeerConfig::new(native.local_addr());
    let proven = GatewayPeerConfig::new(elsewhere(1)).with_proven_address();
    let (mut twin, mut proven) = (Carried::new(server, twin), Carried::new(server, proven));
    let mut at_native = Vec::new();
    let at_server = until(server, &world, &mut [&mut twin, &mut proven], |carried, _| {
        at_native.extend(std::iter::from_fn(|| native.poll().unwrap()));
        let are_there = carried.iter().all(|client| client.block() == Some(world.data()));
        are_there && block(&at_native) == Some(world.data())
    });
    let ids: Vec<_> = at_server
        .iter()
        .filter(|(_, event)| matches!(event, ServerEvent::Connecting { .. }))
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(ids.len(), 3);
    for (number, &id) in ids.iter().enumerate() {
        server.send_message(id, format!("to {number}").into_bytes()).unwrap();
    }
    native.send_message(&b"native"[..]).unwrap();
    for (client, text) in [(&mut twin, &b"twin"[..]), (&mut proven, b"proven")] {
        client.machine.connection_mut().unwrap().send_message(text).unwrap();
    }
    let mut heard = Vec::new();
    until(server, &world, &mut [&mut twin, &mut proven], |carried, at_server| {
        at_native.extend(std::iter::from_fn(|| native.poll().unwrap()));
        heard = ["native", "twin", "proven"]
            .map(|text| {
                at_server.iter().find(|(_, event)| {
                    matches!(event, ServerEvent::Connection(Event::Message { data, .. })
                        if &data[..] == text.as_bytes())
                })
            })
            .into_iter()
            .flatten()
            .map(|(id, _)| *id)
            .collect();
        let ends = [&at_native, &carried[0].events, &carried[1].events];
        let got =
            |events: &Vec<Event>| (0..3).filter(|n| message(events, &format!("to {n}"))).count();
        heard.len() == 3 && ends.iter().all(|events| got(events) == 1)
    });
    heard.sort_unstable();
    heard.dedup();
    assert_eq!(heard.len(), 3, "each message from a connection of its own");
    let stats = server.gateway().stats();
    assert_eq!((stats.peers, stats.lost_gone), (2, 0), "{stats:?}");
    assert!(stats.sent > 1200 && stats.received > 4, "{stats:?}");
}

#[test]
fn a_carried_client_joins_beside_a_native_one_of_the_same_address() {
    join_beside_native(&bind(with_secret()));
}

#[test]
fn a_server_without_a_thread_has_carried_clients() {
    let server = Listen::bind("127.0.0.1:0").unwrap().inline().start(with_secret()).unwrap();
    join_beside_native(&server);
}

#[test]
fn carried_clients_are_shared_out_among_workers() {
    let server = Listen::bind("127.0.0.1:0").unwrap().workers(3).start(with_secret()).unwrap();
    join_beside_native(&server);
}

#[test]
fn a_carried_client_is_told_the_reason_of_a_close_and_the_end_of_the_server() {
    let server = bind(with_secret());
    let world = Block::new(1, bytes(2_000));
    let new = |n| Carried::new(&server, GatewayPeerConfig::new(elsewhere(n)));
    let (mut kicked, mut last) = (new(1), new(2));
    let has_block =
        |carried: &mut [&mut Carried], _: &_| carried.iter().all(|client| client.block().is_some());
    let at_server = until(&server, &world, &mut [&mut kicked], has_block);
    server.close(at_server[0].0, CloseCode::application(300).unwrap(), "kicked");
    until(&server, &world, &mut [&mut kicked], |carried, _| carried[0].end().is_some());
    assert!(kicked.end().unwrap().to_string().contains("kicked"), "{:?}", kicked.end());

    until(&server, &world, &mut [&mut last], has_block);
    let gateway = server.gateway();
    assert!(!last.peer.is_closed());
    drop(server);
    // What was sent before the end is still there to take, and then the end.
    while let Some(datagram) = block_on(last.peer.next_datagram()) {
        let (now, from) = (last.clock.now(), last.machine.server());
        last.machine.handle_datagram(now, from, &mut datagram.to_vec()).unwrap();
    }
    assert!(last.peer.is_closed());
    assert_eq!(last.turn(), Err(GatewayError::Closed), "an ack of the close");
    let code = match last.end() {
        Some(CloseReason::There { code, .. }) => Some(*code),
        _ => None,
    };
    assert_eq!(code, Some(CloseCode::SHUTTING_DOWN), "{:?}", last.end());
    let closed = gateway.open(GatewayPeerConfig::new(elsewhere(3)));
    assert_eq!(closed.map(drop), Err(GatewayError::Closed));
}

/// Whoever awaits a datagram is woken by the server's thread.
#[test]
fn a_task_that_waits_for_a_datagram_is_woken() {
    #[derive(Default)]
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let server = bind(with_secret());
    let mut client = Carried::new(&server, GatewayPeerConfig::new(elsewhere(1)));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut next = pin!(client.peer.next_datagram());
    let mut poll = || next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    let mut request = Vec::new();
    client.machine.poll_datagram(client.clock.now(), &mut request).unwrap();
    client.peer.handle_datagram(&mut request).unwrap();
    let began = Instant::now();
    while !woken.0.load(Ordering::Acquire) {
        assert!(began.elapsed() < MAX, "it was not woken");
        let _event = server.wait(Duration::from_millis(1)).unwrap();
    }
    let Poll::Ready(Some(welcome)) = poll() else { panic!("there is the welcome") };
    let (now, from) = (client.clock.now(), client.machine.server());
    client.machine.handle_datagram(now, from, &mut welcome.to_vec()).unwrap();
}

/// The queue is never longer than it may be; what it lost is repaired as any loss.
#[test]
fn a_full_queue_loses_what_comes_and_the_block_arrives_all_the_same() {
    let server = bind(with_secret());
    let world = Block::new(1, bytes(200_000));
    let peer = GatewayPeerConfig::new(elsewhere(1)).with_proven_address().with_queue_datagrams(3);
    let mut client = Carried::new(&server, peer);
    client.send().unwrap();
    let began = Instant::now();
    while server.gateway().stats().lost_full == 0 {
        assert!(began.elapsed() < MAX, "nothing was lost");
        if let Some((id, ServerEvent::Connecting { .. })) =
            server.wait(Duration::from_millis(1)).unwrap()
        {
            server.send_block(id, &world).unwrap();
        }
    }
    let waiting = std::iter::from_fn(|| client.peer.poll_datagram()).count();
    assert_eq!(waiting, 3);
    until(&server, &world, &mut [&mut client], |carried, _| {
        carried[0].block() == Some(world.data())
    });
}

/// A native client with the longest datagrams that its system sends moves to a transport with 1200.
#[test]
fn a_datagram_that_the_transport_cannot_carry_is_lost_and_counted() {
    let server = bind(with_secret());
    let world = Block::new(1, bytes(300_000));
    let mut config = config_for(&server);
    config.connection.max_datagram_bytes = 1472;
    let peer = GatewayPeerConfig::new(elsewhere(1));
    let mut client = Carried::with(&server, peer, config);
    until(&server, &world, &mut [&mut client], |carried, _| {
        carried[0].block() == Some(world.data()) && server.gateway().stats().lost_long > 0
    });
    let small = server.gateway().open(peer.with_max_datagram_bytes(1199));
    assert_eq!(small.map(drop), Err(GatewayError::TooSmall(1199)));
}

/// A carrier hands in the datagrams of a stranger, and learns that none of them was verified: it keeps no
/// session for them.
#[test]
fn hostile_datagrams_do_not_concern_the_others() {
    let server = bind(with_secret());
    let world = Block::new(1, bytes(100_000));
    let mut client = Carried::new(&server, GatewayPeerConfig::new(elsewhere(1)));
    let stranger = server.gateway().open(GatewayPeerConfig::new(elsewhere(1))).unwrap();
    let mut random = bytes(70_000);
    for length in [0, 1, 20, 1199, 1200, 1201, 65_536, 70_000] {
        assert_eq!(stranger.handle_datagram(&mut random[..length]), Ok(Heard::Dropped));
    }
    let mut turned = 0;
    until(&server, &world, &mut [&mut client], |carried, _| {
        // Whatever the client sends, the stranger sends too, and changed.
        let client = &mut carried[0];
        let mut datagram = Vec::new();
        while client.machine.poll_datagram(client.clock.now(), &mut datagram).is_some() {
            let (mut changed, mut replayed) = (datagram.clone(), datagram.clone());
            changed[turned % datagram.len()] ^= 1 << (turned % 8);
            turned += 1;
            assert_eq!(stranger.handle_datagram(&mut changed), Ok(Heard::Dropped));
            assert_eq!(client.peer.handle_datagram(&mut datagram), Ok(Heard::Verified));
            assert_eq!(stranger.handle_datagram(&mut replayed), Ok(Heard::Dropped));
        }
        client.block() == Some(world.data())
    });
    // Refusals and resets, and nothing of the other's block.
    let to_stranger = std::iter::from_fn(|| stranger.poll_datagram()).map(|it| it.len());
    assert!(to_stranger.sum::<usize>() < 5_000);
    assert!(server.drops().iter().map(|(_, count)| count).sum::<u64>() > 8);
}

/// A session that broke, and the next one of the same browser: the client goes on there, from the same
/// address, and nothing is sent to that address by the socket.
#[test]
fn a_peer_that_vanishes_is_followed_to_another_session_of_the_same_address() {
    let server = bind(with_secret());
    let at_socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    at_socket.set_nonblocking(true).unwrap();
    let same = GatewayPeerConfig::new(at_socket.local_addr().unwrap());
    let small = Block::new(1, bytes(2_000));
    let mut client = Carried::new(&server, same);
    let at_server = until(&server, &small, &mut [&mut client], |carried, _| {
        carried[0].block() == Some(small.data())
    });
    // The old peer is gone: datagrams for it are lost.
    client.peer = server.gateway().open(same).unwrap();
    client.events.clear();
    let large = Block::new(2, bytes(300_000));
    server.send_block(at_server[0].0, &large).unwrap();
    let began = Instant::now();
    while server.gateway().stats().lost_gone == 0 {
        assert!(began.elapsed() < MAX, "nothing is sent to it");
        let _event = server.wait(Duration::from_millis(1)).unwrap();
    }
    client.machine.connection_mut().unwrap().send_message(&b"I am here"[..]).unwrap();
    until(&server, &small, &mut [&mut client], |carried, _| {
        carried[0].block() == Some(large.data())
    });
    let nothing = at_socket.recv_from(&mut [0; 2000]).map_err(|error| error.kind());
    assert_eq!(nothing.unwrap_err(), std::io::ErrorKind::WouldBlock);
    assert_eq!(server.connections(), [at_server[0].0], "it is the same connection");
}

/// To an address that is not proven goes three times of what came from there, at most. A transport that has
/// proven it saves the round trip.
#[test]
fn only_a_proven_address_is_sent_more_than_it_has_asked_with() {
    let server = bind(with_secret());
    let world = Block::new(1, bytes(200_000));
    let sent = |peer: GatewayPeerConfig, enough: usize| {
        let mut client = Carried::new(&server, peer);
        let mut request = Vec::new();
        client.machine.poll_datagram(client.clock.now(), &mut request).unwrap();
        client.peer.handle_datagram(&mut request).unwrap();
        let (began, mut bytes) = (Instant::now(), 0);
        while bytes < enough {
            assert!(began.elapsed() < MAX, "{bytes} of {enough}");
            if let Some((id, ServerEvent::Connecting { .. })) =
                server.wait(Duration::from_millis(1)).unwrap()
            {
                server.send_block(id, &world).unwrap();
            }
            bytes += std::iter::from_fn(|| client.peer.poll_datagram())
                .map(|it| it.len())
                .sum::<usize>();
        }
        bytes
    };
    let unproven = sent(GatewayPeerConfig::new(elsewhere(1)), 2 * 1200);
    assert!(unproven <= 3 * 1200, "{unproven}");
    sent(GatewayPeerConfig::new(elsewhere(2)).with_proven_address(), 9 * 1200);
}

/// The limit of connections from one source counts both kinds together.
#[test]
fn carried_clients_count_for_their_source_as_any_others() {
    let mut config = with_secret();
    config.limits = config.limits.with_connections_per_prefix(1);
    let server = bind(config);
    let world = Block::new(1, bytes(2_000));
    let native = Client::connect(config_for(&server)).unwrap();
    let mut at_native = Vec::new();
    until(&server, &world, &mut [], |_, _| {
        at_native.extend(std::iter::from_fn(|| native.poll().unwrap()));
        block(&at_native).is_some()
    });
    let here = SocketAddr::new(native.local_addr().ip(), 1);
    let mut beside = Carried::new(&server, GatewayPeerConfig::new(here));
    until(&server, &world, &mut [&mut beside], |carried, _| carried[0].end().is_some());
    let full = CloseReason::Refused(RefusalCode::Full);
    assert_eq!(beside.end(), Some(&full));
    let mut other = Carried::new(&server, GatewayPeerConfig::new(elsewhere(1)));
    until(&server, &world, &mut [&mut other], |carried, _| carried[0].block().is_some());
}

/// A token for a carried player is like one for a native player: for this server, at the address that the
/// player used.
#[test]
fn a_token_for_this_server_is_for_its_carried_clients() {
    let credentials = ServerCredentials::default().with_token_key(token_key());
    let config = ServerConfig::new(PROTOCOL_ID, credentials);
    let server = Server::bind("0.0.0.0:0", config).unwrap();
    let ours = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let at = SocketAddr::new(ours, server.local_addr().port());
    let world = Block::new(1, bytes(2_000));
    let client = |peer| {
        let claims = claims(TokenServers::Each(vec![at]));
        let token = issue_token(&token_key(), PROTOCOL_ID, &claims).unwrap();
        let config = ClientConfig::new(at, PROTOCOL_ID, Credentials::Token(token));
        Carried::with(&server, peer, config)
    };
    let mut right = client(GatewayPeerConfig::new(elsewhere(1)).with_local(ours));
    until(&server, &world, &mut [&mut right], |carried, _| carried[0].block().is_some());
    let mut nowhere = client(GatewayPeerConfig::new(elsewhere(2)));
    until(&server, &world, &mut [&mut nowhere], |carried, _| carried[0].end().is_some());
    assert_eq!(nowhere.end(), Some(&CloseReason::Refused(RefusalCode::WrongServer)));
}
