//! How a connection ends, or lives on: closes, drops, restarts, silence, another address.

use std::net::UdpSocket;
use std::time::Duration;

use haulier::udp::{Clock, Runner, Socket};
use haulier::{
    Block, Client, CloseCode, CloseReason, Connect, Event, Listen, Secret, SendError, Server,
    ServerConfig, ServerEvent,
};
use haulier_proto::client::ClientMachine;

use crate::support::{MAX, Pair, bind, bytes, config_at, config_for, mortal_server, with_secret};

#[test]
fn a_close_is_heard_with_its_reason_on_the_other_side() {
    let mut pair = Pair::connected(with_secret());
    let code = CloseCode::application(300).unwrap();
    pair.client.close(code, "tea is ready");
    pair.until(|pair| pair.client.is_closed() && pair.server_end().is_some());
    assert_eq!(pair.client_end(), Some(&CloseReason::Here(code)));
    let reason = CloseReason::There { code, reason: "tea is ready".to_owned() };
    assert_eq!(pair.server_end(), Some(&reason));
    assert_eq!(pair.server.stats().connections, 0);
    assert_eq!(pair.server.state(pair.id()), None);
    assert_eq!(pair.server.send_message(pair.id(), "still there?"), Err(SendError::NotOpen));
}

/// The server's application says why, before and after the connection is open, and all 32 bits and 255 bytes
/// of it arrive.
#[test]
fn a_server_closes_and_rejects_with_a_code_and_a_reason_of_its_own() {
    let (code, reason) = (CloseCode::application(u32::MAX).unwrap(), "ä".repeat(127));
    for is_rejected in [false, true] {
        let server = bind(with_secret());
        let client = Client::connect(config_for(&server)).unwrap();
        let mut pair = Pair::new(server, client);
        if is_rejected {
            let (id, event) = pair.server.wait(MAX).unwrap().expect("no time-out");
            assert!(matches!(event, ServerEvent::Connecting { .. }), "{event:?}");
            pair.server.close(id, code, &reason);
        } else {
            pair.until(|pair| pair.has_connected());
            let id = pair.id();
            pair.server.close(id, code, &reason);
            // What the application has said stands.
            pair.server.shut_down();
        }
        pair.until(|pair| pair.client_end().is_some());
        let there = CloseReason::There { code, reason: reason.clone() };
        assert_eq!(pair.client_end(), Some(&there), "rejected: {is_rejected}");
    }
}

#[test]
fn finish_waits_until_what_was_said_has_arrived() {
    let pair = Pair::connected(with_secret());
    let block = Block::new(5, bytes(300_000));
    pair.client.send_block(&block).unwrap();
    for number in 0..100 {
        pair.client.send_message(format!("message {number}")).unwrap();
    }
    let Pair { server, client, .. } = pair;
    let leaving = std::thread::spawn(move || client.finish(MAX));
    let (mut messages, mut blocks, mut end) = (0, 0, None);
    while end.is_none() {
        match server.wait(MAX).unwrap().expect("no time-out").1 {
            ServerEvent::Connection(Event::Message { .. }) => messages += 1,
            ServerEvent::Connection(Event::Block { .. }) => blocks += 1,
            ServerEvent::Connection(Event::Closed(reason)) => end = Some(reason),
            _ => {}
        }
    }
    assert_eq!((messages, blocks), (100, 1));
    assert_eq!(end, Some(CloseReason::There { code: CloseCode::DONE, reason: String::new() }));
    assert_eq!(leaving.join().unwrap().unwrap(), CloseReason::Here(CloseCode::DONE));
}

#[test]
fn a_server_that_shuts_down_closes_its_connections() {
    let mut pair = Pair::connected(with_secret());
    pair.server.shut_down();
    pair.until(|pair| pair.server.is_shut_down() && pair.client_end().is_some());
    let reason = CloseReason::There { code: CloseCode::SHUTTING_DOWN, reason: String::new() };
    assert_eq!(pair.client_end(), Some(&reason));
    assert_eq!(pair.server.wait(MAX).unwrap(), None, "nothing will come any more");
}

/// Kills the server, begins another at its address, and returns how the client's connection ended.
fn restarted(config: &ServerConfig) -> CloseReason {
    let (mut dying, address) = mortal_server(config.clone());
    let client = Client::connect(config_at(address)).unwrap();
    while client.state().is_none() || dying.machine.stats().accepted == 0 {
        dying.turn(Duration::from_millis(1)).unwrap();
    }
    drop(dying);
    let again = Server::bind(address, config.clone()).unwrap();
    let mut pair = Pair::new(again, client);
    pair.client.send_message("are you there?").unwrap();
    pair.until(|pair| pair.client_end().is_some());
    pair.client_end().unwrap().clone()
}

#[test]
fn a_restarted_server_with_a_reset_secret_is_noticed_at_once() {
    let mut config = with_secret();
    config.credentials.reset_secret = Some(Secret::from_bytes([9; 32]));
    assert_eq!(restarted(&config), CloseReason::ConnectionUnknown);
}

/// It keeps nothing over a restart that its clients do not have, so any of them could forge its resets.
#[test]
fn a_restarted_server_with_a_secret_alone_is_noticed_by_its_silence() {
    let mut config = with_secret();
    config.connection.idle_timeout = Duration::from_secs(1);
    assert_eq!(restarted(&config), CloseReason::TimedOut);
}

#[test]
fn a_client_that_vanishes_is_noticed_after_the_idle_time_out() {
    let mut config = with_secret();
    config.connection.idle_timeout = Duration::from_secs(1);
    let server = bind(config);
    let (clock, config) = (Clock::start(), config_for(&server));
    let socket = Socket::connect(config.server).unwrap();
    let machine = ClientMachine::new(clock.now(), config, [6; 32]).unwrap();
    let mut client = Runner::new(machine, socket, clock);
    while server.stats().accepted == 0 {
        client.turn(Duration::from_millis(1)).unwrap();
    }
    drop(client);
    assert_eq!(end_at(&server), CloseReason::TimedOut);
}

/// How the server's one connection ends.
fn end_at(server: &Server) -> CloseReason {
    loop {
        let (_, event) = server.wait(MAX).unwrap().expect("no time-out");
        if let ServerEvent::Connection(Event::Closed(reason)) = event {
            return reason;
        }
    }
}

#[test]
fn a_client_that_is_dropped_says_so() {
    for inline in [false, true] {
        let server = bind(with_secret());
        let connect = Connect::from(config_for(&server));
        let connect = if inline { connect.inline() } else { connect };
        let mut pair = Pair::new(server, Client::connect(connect).unwrap());
        pair.until(|pair| pair.has_connected());
        let Pair { server, client, .. } = pair;
        let clone = client.clone();
        drop(client);
        assert!(clone.state().is_some_and(|state| state.is_open()), "there is another handle");
        drop(clone);
        let reason = CloseReason::There { code: CloseCode::DONE, reason: String::new() };
        assert_eq!(end_at(&server), reason);
    }
}

#[test]
fn a_server_that_is_dropped_says_so_and_its_port_is_free_at_once() {
    for inline in [false, true] {
        let listen = Listen::bind("127.0.0.1:0").unwrap();
        let listen = if inline { listen.inline() } else { listen };
        let server = listen.start(with_secret()).unwrap();
        let address = server.local_addr();
        let mut pair = Pair::new(server, Client::connect(config_at(address)).unwrap());
        pair.until(|pair| pair.has_connected());
        let Pair { server, client, .. } = pair;
        drop(server);
        Server::bind(address, with_secret()).unwrap();
        let reason = loop {
            if let Event::Closed(reason) = client.wait(MAX).unwrap().expect("no time-out") {
                break reason;
            }
        };
        let code = CloseCode::SHUTTING_DOWN;
        assert_eq!(reason, CloseReason::There { code, reason: String::new() });
    }
}

/// The client says so at once: with keep-alives this rare, waiting for one would be no progress, and the end.
#[test]
fn a_transfer_goes_on_from_another_address() {
    let mut config = with_secret();
    config.connection.idle_timeout = Duration::from_secs(3600);
    config.connection.max_rate_bps = 50_000_000;
    let server = bind(config);
    let mut config = config_for(&server);
    config.connection.idle_timeout = Duration::from_secs(3600);
    let client = Client::connect(config).unwrap();
    let mut pair = Pair::new(server, client);
    pair.until(|pair| pair.has_connected());
    let id = pair.id();
    let block = Block::new(1, bytes(2_000_000));
    pair.server.send_block(id, &block).unwrap();
    pair.until(|pair| {
        pair.client_count(
            |event| matches!(event, Event::BlockProgress { received, .. } if *received > 300_000),
        ) > 0
    });
    let old = pair.client.local_addr();
    pair.client.rebind().unwrap();
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::Block { .. })) > 0);
    let is_whole =
        |event: &Event| matches!(event, Event::Block { data, .. } if data == block.data());
    assert_eq!(pair.client_count(is_whole), 1);
    assert_eq!(pair.server_count(|event| *event == Event::AddressChanged), 1);
    // Also when there is nothing else to say.
    pair.until(|pair| pair.client.all_acked());
    pair.client.rebind().unwrap();
    pair.until(|pair| pair.server_count(|event| *event == Event::AddressChanged) == 2);
    let new = pair.client.local_addr();
    assert_ne!(old, new);
    let seen = pair.server.with_connection(id, |connection| connection.address());
    assert_eq!(seen.unwrap().port(), new.port());
    assert!(!pair.client.rebind_if_moved().unwrap(), "the address is the same");
    assert_eq!(pair.client.local_addr(), new);
}

#[test]
fn a_client_can_give_up_before_it_is_connected() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = Client::connect(config_at(silent.local_addr().unwrap())).unwrap();
    client.close(CloseCode::DONE, "");
    let event = client.poll().unwrap();
    assert_eq!(event, Some(Event::Closed(CloseReason::Here(CloseCode::DONE))));
    assert!(client.is_closed());
    assert_eq!(client.wait(MAX).unwrap(), None);
}
