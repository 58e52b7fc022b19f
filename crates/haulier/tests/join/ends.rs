//! How a connection ends, or lives on: closes, restarts, silence, another address.

use std::time::Duration;

use haulier::{
    Block, Client, CloseCode, CloseReason, Event, Identity, Secret, SendError, Server, ServerConfig,
};

use crate::support::{MOST, Pair, bind, bytes, config_for, with_secret};

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
    assert!(pair.server.connection(pair.id()).is_none());
    assert_eq!(pair.server.send_message(pair.id(), "still there?"), Err(SendError::NotOpen));
}

#[test]
fn finish_waits_until_what_was_said_has_arrived() {
    let mut pair = Pair::connected(with_secret());
    let block = Block::new(5, bytes(300_000));
    pair.client.send_block(&block).unwrap();
    for number in 0..100 {
        pair.client.send_message(format!("message {number}")).unwrap();
    }
    let Pair { mut server, client, .. } = pair;
    let leaving = std::thread::spawn(move || client.finish(MOST));
    let (mut messages, mut blocks, mut end) = (0, 0, None);
    while end.is_none() {
        match server.wait(MOST).unwrap().expect("no time-out").1 {
            haulier::ServerEvent::Connection(Event::Message(_)) => messages += 1,
            haulier::ServerEvent::Connection(Event::Block { .. }) => blocks += 1,
            haulier::ServerEvent::Connection(Event::Closed(reason)) => end = Some(reason),
            _ => {}
        }
    }
    assert_eq!((messages, blocks), (100, 1));
    assert_eq!(end, Some(CloseReason::There { code: CloseCode::DONE, reason: String::new() }));
    assert_eq!(leaving.join().unwrap().unwrap(), CloseReason::Here(CloseCode::DONE));
}

#[test]
fn a_server_that_shuts_down_tells_its_clients() {
    let mut pair = Pair::connected(with_secret());
    pair.server.shut_down();
    pair.until(|pair| pair.server.is_shut_down() && pair.client_end().is_some());
    let reason = CloseReason::There { code: CloseCode::SHUTTING_DOWN, reason: String::new() };
    assert_eq!(pair.client_end(), Some(&reason));
    assert_eq!(pair.server.wait(MOST).unwrap(), None, "nothing will come any more");
}

/// Drops the server, begins another at its address, and returns how the client's connection ended.
fn restarted(config: &ServerConfig) -> CloseReason {
    let Pair { server, client, .. } = Pair::connected(config.clone());
    let address = server.local_addr().unwrap();
    drop(server);
    let again = Server::bind(address, config.clone()).unwrap();
    let mut pair = Pair::new(again, client);
    pair.client.send_message("are you there?").unwrap();
    pair.until(|pair| pair.client_end().is_some());
    pair.client_end().unwrap().clone()
}

#[test]
fn a_restarted_server_with_an_identity_is_noticed_at_once() {
    let mut config = with_secret();
    config.credentials.identity = Some(Identity::new(Secret::from_bytes([9; 32])));
    assert_eq!(restarted(&config), CloseReason::ServerRestarted);
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
    let pair = Pair::connected(config);
    let Pair { mut server, client, .. } = pair;
    drop(client);
    let end = loop {
        if let haulier::ServerEvent::Connection(Event::Closed(reason)) =
            server.wait(MOST).unwrap().expect("no time-out").1
        {
            break reason;
        }
    };
    assert_eq!(end, CloseReason::TimedOut);
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
    let old = pair.client.local_addr().unwrap();
    pair.client.rebind().unwrap();
    assert_ne!(old, pair.client.local_addr().unwrap());
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::Block { .. })) > 0);
    let is_whole =
        |event: &Event| matches!(event, Event::Block { data, .. } if data == block.data());
    assert_eq!(pair.client_count(is_whole), 1);
    assert_eq!(pair.server_count(|event| *event == Event::AddressChanged), 1);
    let port = pair.client.local_addr().unwrap().port();
    assert_eq!(pair.server.connection(id).unwrap().address().port(), port);
}

#[test]
fn a_client_can_give_up_before_it_is_connected() {
    let server = haulier::Server::bind("127.0.0.1:0", with_secret()).unwrap();
    let mut client = Client::connect(config_for(&server)).unwrap();
    client.close(CloseCode::DONE, "");
    let event = client.poll().unwrap();
    assert_eq!(event, Some(Event::Closed(CloseReason::Here(CloseCode::DONE))));
    assert!(client.is_closed());
    assert_eq!(client.wait(MOST).unwrap(), None);
}
