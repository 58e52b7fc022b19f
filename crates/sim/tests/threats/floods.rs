//! T10, T11, T14: many strangers, and many with the key.

use std::time::Duration;

use haulier_proto::connection::{CloseReason, Event, RefusalCode};
use haulier_proto::credentials::{Secret, TokenKey};
use haulier_proto::server::{ServerLimits, ServerMachine};
use haulier_proto::{DropReason, Instant};
use haulier_sim::attack::raw::RawClient;
use haulier_sim::attack::{Hostile, HostileKind};
use haulier_sim::hosts::{ClientHost, Script};
use haulier_sim::{Rng, Shot, address};

use crate::support::{
    ATTACKER, BOTH, CLIENT, Keyed, SERVER, Ticker, Town, client_config, drain, drain_client, dsl,
    knock, last, ms, secret, server_config,
};
use crate::tokens::{NOW_UNIX, token_client, token_server};

/// Five thousand requests a second without the key, from many addresses: nothing is remembered, and an honest
/// join takes as long as without them.
#[test]
fn t10_a_flood_of_forged_requests_slows_no_join() {
    let time = |flood: u32| {
        let mut town = Town::new(Keyed::Secret, 100_000);
        let mut rng = Rng::new(3);
        let act = move |_, out: &mut Vec<Shot>| {
            let mut request = RawClient::new(None, rng.next_u64()).request();
            request[13] = 1;
            let from = address(100_000 + rng.below(100_000) as u32);
            out.push(Shot::spoofed(from, address(SERVER), request));
        };
        let every = Duration::from_micros(200);
        town.attacker(ATTACKER, Ticker { every, next: ms(0), left: flood, act });
        town.assert_joins(ms(5_000));
        let stats = town.server().server.stats();
        assert_eq!((stats.connections, stats.remembered), (1, 1));
        town.client().app.joined_after().unwrap()
    };
    assert_eq!(time(0), time(5_000));
}

/// A flood with the key, or in mode `open`, from addresses that are not the sender's: above 1,024 handshakes
/// the server asks for cookies, which a spoofed address never gets. The honest join completes, for the
/// price of a round trip.
#[test]
fn t10_a_spoofed_flood_with_the_key_costs_a_round_trip() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 100_000);
        let key = (keyed == Keyed::Secret).then(secret);
        let mut rng = Rng::new(3);
        let act = move |_, out: &mut Vec<Shot>| {
            let request = RawClient::new(key.as_ref(), rng.next_u64()).request();
            let from = address(100_000 + rng.below(100_000) as u32);
            out.push(Shot::spoofed(from, address(SERVER), request));
        };
        // It begins before the client does, and a thousand are in before the client's request arrives.
        let every = Duration::from_micros(10);
        town.attacker(ATTACKER, Ticker { every, next: ms(0), left: 20_000, act });
        town.assert_joins(ms(5_000));
        let server = &town.server().server;
        println!("{keyed:?} {:?} {:?}", town.client().app.joined_after(), server.stats());
        assert!(server.stats().handshakes <= 1_024);
        assert!(server.drops().get(DropReason::NoCookie) > 0, "cookies were asked for");
    }
}

/// An attacker with the key begins handshakes from its own address with cookies, and completes none: it gets
/// the share of one prefix, and the honest join completes. It once took all 256 places, and the server
/// refused all others as full.
#[test]
fn t10_uncompleted_handshakes_keep_no_client_out() {
    for attackers in [1u32, 8] {
        // A fourth of the usual places, and a fourth of the usual number of attackers.
        let limits = ServerLimits::default()
            .with_handshakes(64)
            .with_handshakes_without_cookie(16)
            .with_handshakes_per_prefix(16);
        let config = server_config(Keyed::Secret).with_limits(limits);
        let mut town = Town::with(config, client_config(Keyed::Secret), 50_000);
        for n in 0..attackers {
            let mind = Hostile::new(
                HostileKind::Holder,
                address(SERVER),
                secret(),
                u64::from(n),
                Duration::from_millis(20),
                ms(5_000),
            );
            town.attacker(1000 + n, mind);
        }
        // Let them fill all places first.
        town.world.run_to(ms(0));
        let config = client_config(Keyed::Secret);
        let late = ClientHost::new(Script::idle().leaving_after(1), config, ms(3_000), 9);
        let late = town.world.add(late, address(40), &dsl());
        let done =
            town.world.run_until(ms(20_000), |world| world.host(late).app.joined_after().is_some());
        let stats = town.server().server.stats();
        let host = town.world.host(late);
        println!("{attackers}: {:?} {stats:?}", host.app.joined_after());
        assert!(done, "{:?} {stats:?}", last(host));
        assert!(stats.handshakes <= 64);
    }
}

/// Complete connections take all places of a prefix: one more client from there is refused, with a check that
/// it can verify, and one from elsewhere is accepted. The places of the whole server are limited in the same
/// way.
#[test]
fn t14_places_are_limited_per_prefix_and_in_total() {
    let limits =
        ServerLimits::default().with_connections(6).with_connections_per_prefix(4).with_line(0);
    let config = server_config(Keyed::Secret).with_limits(limits);
    let mut server = ServerMachine::new(ms(0), 0, config, [1; 32]).unwrap();
    let mut join = |seed: u64, at: u32, port: u16| {
        let mut raw = RawClient::new(Some(&secret()), seed);
        let mut from = address(at);
        from.set_port(port);
        let (taken, answer) = knock(&mut server, &mut raw, ms(1), from);
        (taken, answer.first().map(|datagram| datagram[0]))
    };
    for n in 0..4u16 {
        assert_eq!(join(n.into(), 50, 5000 + n), (Ok(()), Some(0x07)));
    }
    assert_eq!(join(10, 50, 6000), (Err(DropReason::NoSlot), Some(0x06)));
    assert_eq!(join(11, 51, 6000).0, Ok(()));
    assert_eq!(join(12, 52, 6000).0, Ok(()));
    assert_eq!(join(13, 53, 6000), (Err(DropReason::NoSlot), Some(0x06)));
}

/// A token lets in one connection: the same request from another address is dropped, and another request
/// with it is refused, with a check.
#[test]
fn t9_a_token_is_used_once() {
    let (config, key) = token_server();
    let mut server = ServerMachine::new(ms(0), NOW_UNIX, config, [1; 32]).unwrap();
    let client = token_client(&key, NOW_UNIX + 60, 5);
    let make = |seed| {
        haulier_proto::client::ClientMachine::new(ms(0), client.clone(), [seed; 32]).unwrap()
    };
    let (mut first, mut second) = (make(1), make(2));
    let mut request = drain_client(&mut first, ms(0)).remove(0);
    server.handle_datagram(ms(0), address(CLIENT), &mut request.clone()).unwrap();
    while server.poll_event(ms(0)).is_some() {}
    let _response = drain(&mut server, ms(0));
    let elsewhere = server.handle_datagram(ms(0), address(77), &mut request);
    assert_eq!(elsewhere, Err(DropReason::Replayed));
    assert_eq!(drain(&mut server, ms(0)), []);
    let mut again = drain_client(&mut second, ms(0)).remove(0);
    let reused = server.handle_datagram(ms(0), address(CLIENT), &mut again);
    assert_eq!(reused, Err(DropReason::TokenUsed));
    let mut refusal = drain(&mut server, ms(0)).remove(0).1;
    second.handle_datagram(ms(0), address(SERVER), &mut refusal).unwrap();
    let closed = Event::Closed(CloseReason::Refused(RefusalCode::TokenUsed));
    assert_eq!(second.poll_event(ms(0)), Some(closed));
    assert_eq!(server.stats().requests, 1);
}

/// A token that has expired, or that another matchmaker made, is refused; and the time that counts is
/// the server's.
#[test]
fn t9_an_expired_or_foreign_token_is_refused() {
    let (config, key) = token_server();
    let other = TokenKey { id: 1, key: Secret::from_bytes([9; 32]) };
    for (client, reason) in [
        (token_client(&key, NOW_UNIX + 9, 5), DropReason::TokenExpired),
        (token_client(&other, NOW_UNIX + 99, 5), DropReason::BadToken),
    ] {
        let mut server = ServerMachine::new(ms(0), NOW_UNIX, config.clone(), [1; 32]).unwrap();
        let now = Instant::from_millis(10_000);
        let mut client = haulier_proto::client::ClientMachine::new(now, client, [1; 32]).unwrap();
        let mut request = drain_client(&mut client, now).remove(0);
        let taken = server.handle_datagram(now, address(CLIENT), &mut request);
        assert_eq!(taken, Err(reason));
        assert_eq!(server.stats().remembered, 0);
    }
}

/// Junk at the address of a connection that is there, from its own peer's address: the peer does not notice,
/// for nothing of it gets past the tag.
#[test]
fn t11_a_flood_at_a_connection_changes_nothing() {
    let time = |flood: u32| {
        let mut town = Town::new(Keyed::Secret, 300_000);
        let mut rng = Rng::new(5);
        let act = move |_, out: &mut Vec<Shot>| {
            for first in [0x0cu8, 0x0d, 0x0e, 0x04] {
                let mut bytes = rng.bytes(200);
                bytes[0] = first;
                out.push(Shot::spoofed(address(CLIENT), address(SERVER), bytes));
            }
        };
        let every = Duration::from_micros(200);
        town.attacker(ATTACKER, Ticker { every, next: ms(0), left: flood, act });
        town.assert_joins(ms(5_000));
        town.client().app.joined_after().unwrap()
    };
    assert_eq!(time(0), time(5_000));
}
