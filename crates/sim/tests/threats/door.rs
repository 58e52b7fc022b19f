//! T14: clients that take the line and the seats, and never mean to come. Many of all kinds at once are in
//! the soak of the door; here are the three kinds that once kept all others out (issue 32).

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{CloseCode, Event};
use haulier_proto::internals::Frame;
use haulier_proto::server::{ServerEvent, ServerLimits, ServerMachine};
use haulier_proto::{Instant, Machine as _};
use haulier_sim::address;
use haulier_sim::attack::raw::RawClient;

use crate::support::{
    BOTH, Keyed, client_config, drain, drain_client, knock, ms, secret, server_config,
};

fn server(keyed: Keyed, limits: ServerLimits) -> ServerMachine {
    let config = server_config(keyed).with_limits(limits);
    ServerMachine::new(ms(0), 0, config, [1; 32]).unwrap()
}

fn raw(keyed: Keyed, seed: u64) -> RawClient {
    RawClient::new((keyed == Keyed::Secret).then(secret).as_ref(), seed)
}

/// One of the clients that play, which leave when the script says so.
fn player(server: &mut ServerMachine, keyed: Keyed, n: u32) -> (RawClient, SocketAddr) {
    let (mut raw, from) = (raw(keyed, u64::from(n)), address(500 + n));
    knock(server, &mut raw, ms(0), from).0.unwrap();
    (raw, from)
}

fn leaves(server: &mut ServerMachine, player: &mut (RawClient, SocketAddr), now: Instant) {
    let link = player.0.link.as_mut().unwrap();
    let mut datagram = link.frames(&[Frame::Close { code: 0, reason: "" }]);
    let _counted = server.handle_datagram(now, player.1, &mut datagram);
}

/// An honest client of another network comes now, and steps of 50 ms are taken until it is in. Returns when
/// that is. `beside` sees all datagrams to others, and the clock.
fn joins(
    server: &mut ServerMachine,
    keyed: Keyed,
    from: Instant,
    mut beside: impl FnMut(&mut ServerMachine, Instant, Vec<(SocketAddr, Vec<u8>)>),
) -> Option<Duration> {
    let (mut now, at) = (from, SocketAddr::from(([198, 51, 100, 7], 4000)));
    let mut client = ClientMachine::new(now, client_config(keyed), [2; 32]).unwrap();
    while now.since(from) < Duration::from_secs(60) {
        for mut datagram in drain_client(&mut client, now) {
            let _counted = server.handle_datagram(now, at, &mut datagram);
        }
        now = now + Duration::from_millis(50);
        server.handle_timeout(now);
        while server.poll_event(now).is_some() {}
        let (own, others) = drain(server, now).into_iter().partition(|(to, _)| *to == at);
        beside(server, now, others);
        let own: Vec<(SocketAddr, Vec<u8>)> = own;
        for (_, mut datagram) in own {
            let _counted = client.handle_datagram(now, address(1), &mut datagram);
        }
        client.handle_timeout(now);
        while let Some(event) = client.poll_event(now) {
            if event == Event::Connected {
                return Some(now.since(from));
            }
        }
        server.check_invariants();
    }
    None
}

/// 16,384 clients of sixteen addresses took all places in line and never sent again. No client got in any
/// more, with all seats free, until a restart: a newcomer was refused before the line was checked.
#[test]
fn t14_a_line_full_of_clients_that_left_keeps_nobody_out() {
    for keyed in BOTH {
        let places = 16_384;
        let limits = ServerLimits::default().with_connections(1).with_line(places);
        let mut server = server(keyed, limits);
        let mut player = player(&mut server, keyed, 1);
        for n in 0..places as u32 {
            let mut from = address(1000 + n % 16);
            from.set_port(1024 + (n / 16) as u16);
            let mut ghost = raw(keyed, u64::from(100 + n));
            for _ in 0..2 {
                knock(&mut server, &mut ghost, ms(10 + u64::from(n) / 20), from).0.unwrap_err();
            }
        }
        assert_eq!(server.stats().in_line, places);
        leaves(&mut server, &mut player, ms(2_000));
        let took = joins(&mut server, keyed, ms(3_000), |_, _, _| {});
        println!("{keyed:?}: in after {took:?}");
        assert!(took.is_some_and(|took| took < Duration::from_secs(1)), "{:?}", server.stats());
    }
}

/// One address holds 64 places, comes whenever it is called, and completes no handshake. An honest client
/// waited for 395 s; it has the next turn.
#[test]
fn t14_an_address_that_holds_the_line_costs_one_turn() {
    let keyed = Keyed::Secret;
    for places in [64, 1000] {
        let mut server = server(keyed, ServerLimits::default().with_connections(8));
        let mut players: Vec<_> = (0..8).map(|n| player(&mut server, keyed, n)).collect();
        let evil = |n: usize| SocketAddr::from(([203, 0, 113, 66], 1024 + n as u16));
        let mut evils: Vec<_> = (0..places).map(|n| raw(keyed, 1000 + n as u64)).collect();
        let mut responses = vec![false; places];
        for (n, raw) in evils.iter_mut().enumerate() {
            for _ in 0..2 {
                knock(&mut server, raw, ms(10), evil(n)).0.unwrap_err();
            }
        }
        leaves(&mut server, &mut players[0], ms(500));
        let took = joins(&mut server, keyed, ms(1_000), |server, now, others| {
            for (to, datagram) in others {
                if to.ip() != evil(0).ip() {
                    continue;
                }
                let n = usize::from(to.port() - 1024);
                responses[n] |= datagram[0] == 0x07;
                // A call is followed, and nothing else.
                if !responses[n] && datagram.get(9..15) == Some(&[10, 3, 0, 0, 0, 0]) {
                    let _counted = server.handle_datagram(now, to, &mut evils[n].request());
                }
            }
            // Each asks again once a second; clients that play send that they are there.
            for n in 0..places {
                let is_due = now.as_nanos() / 50_000_000 % 20 == n as u64 % 20;
                if is_due && !responses[n] {
                    let _counted = server.handle_datagram(now, evil(n), &mut evils[n].request());
                }
            }
            for (raw, from) in &mut players[1..] {
                let mut ping = raw.link.as_mut().unwrap().frames(&[Frame::Ping]);
                let _counted = server.handle_datagram(now, *from, &mut ping);
            }
        });
        println!("{places} places: in after {took:?}");
        assert!(took.is_some_and(|took| took < Duration::from_secs(9)), "{:?}", server.stats());
    }
}

/// 200 addresses asked 14,000 times a second for a seat, and the program refused each: all 16,384 seats were
/// taken after 1.3 s, by connections that counted as nothing.
#[test]
fn t14_handshakes_that_the_program_refuses_hold_no_seat() {
    let keyed = Keyed::Open;
    let mut server = server(keyed, ServerLimits::default());
    let mut most = 0;
    for n in 0..30_000_u32 {
        let (now, mut from) = (ms(u64::from(n) / 14), address(1000 + n % 200));
        from.set_port(2000 + (n / 200) as u16);
        server.handle_timeout(now);
        let mut raw = raw(keyed, u64::from(n));
        for _ in 0..2 {
            let _counted = server.handle_datagram(now, from, &mut raw.request());
            while let Some((id, event)) = server.poll_event(now) {
                if let ServerEvent::Connecting { .. } = event {
                    let connection = server.connection_mut(id).unwrap();
                    connection.close(now, CloseCode::NOT_ACCEPTED, "");
                }
            }
            for (_, datagram) in drain(&mut server, now) {
                // It follows a retry. It ignores a refusal.
                if datagram[0] == 0x05 {
                    let _cookie = raw.handle(now, &datagram);
                }
            }
        }
        most = most.max(server.stats().connections);
        assert_eq!(server.stats().handshakes, server.stats().connections, "each counts");
    }
    println!("{most} at most; {:?}", server.stats());
    assert!(most <= 12_288 && server.stats().in_line == 0);
    let took = joins(&mut server, keyed, ms(30_000 / 14), |_, _, _| {});
    assert!(took.is_some_and(|took| took < Duration::from_secs(1)), "{took:?}");
}
