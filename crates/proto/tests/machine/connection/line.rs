//! Clients that wait in line for a seat (STANDARD-1 3.6, CROWDS).

use std::time::Duration;

use haulier_proto::client::{ClientMachine, Credentials};
use haulier_proto::connection::{CloseCode, CloseReason, Event, RefusalCode};
use haulier_proto::server::ServerConfig;
use haulier_proto::{DropReason, Machine};

use super::admission::{own, token, token_server};
use super::{client_with, end_of};
use crate::lan::{Lan, Way, client_config, server_address, server_config};

/// A server with two seats, and `line` places in line.
fn small(line: usize) -> ServerConfig {
    let mut config = server_config();
    (config.limits.connections, config.limits.line) = (2, line);
    config
}

fn places(lan: &Lan, n: usize) -> Vec<Option<u32>> {
    let place = |event: &Event| match event {
        Event::Queued { place, .. } => Some(*place),
        _ => None,
    };
    lan.client_events[n].iter().filter_map(place).collect()
}

fn is_in(lan: &Lan, n: usize) -> bool {
    lan.clients[n].connection().is_some_and(|it| it.state().is_open())
}

/// H-3.6c. Clients get seats in the order in which they asked, as soon as one leaves, and learn their places.
#[test]
fn who_waits_in_line_gets_the_next_seat() {
    let mut lan = Lan::new(small(10));
    for _ in 0..5 {
        lan.add(client_config());
        lan.settle();
    }
    assert_eq!([0, 1, 2, 3, 4].map(|n| is_in(&lan, n)), [true, true, false, false, false]);
    assert_eq!([2, 3, 4].map(|n| places(&lan, n)), [1, 2, 3].map(|place| vec![Some(place)]));
    assert_eq!(lan.server.stats().in_line, 3);
    // A minute: they ask now and then, and nobody gives up.
    lan.run(60_000);
    assert_eq!(lan.server.stats().in_line, 3);
    lan.client(1).close(CloseCode::DONE, "");
    lan.run(300);
    assert!(
        is_in(&lan, 2) && !is_in(&lan, 3),
        "it is called, and does not wait for its next question"
    );
    lan.client(0).close(CloseCode::DONE, "");
    lan.run(5_000);
    assert!(is_in(&lan, 3) && !is_in(&lan, 4));
    assert_eq!(places(&lan, 4).last(), Some(&Some(1)));
    lan.client(2).close(CloseCode::DONE, "");
    lan.run(300);
    assert!(is_in(&lan, 4));
    assert_eq!(lan.server.stats().in_line, 0);
}

/// A client that leaves the line is forgotten. A client that is called and does not come holds up no other
/// client for long.
#[test]
fn who_has_left_the_line_holds_nobody() {
    let mut lan = Lan::new(small(10));
    for _ in 0..4 {
        lan.add(client_config());
        lan.settle();
    }
    lan.clients[2].close(lan.now, CloseCode::DONE, "");
    lan.client(0).close(CloseCode::DONE, "");
    lan.run(8_000);
    assert!(is_in(&lan, 3));
    lan.client(1).close(CloseCode::DONE, "");
    lan.settle();
    let late = lan.add(client_config());
    lan.settle();
    assert!(is_in(&lan, late) && places(&lan, late).is_empty(), "there is no line any more");
    assert_eq!(lan.server.stats().in_line, 0);
}

/// Issue 32, the proof `line_hold`: one address takes 64 places, follows each call, and completes no
/// handshake. A client of another network is in after a turn of it; that was after ten seconds for each.
#[test]
fn an_address_with_many_places_holds_nobody_for_long() {
    let mut lan = Lan::new(small(100));
    for _ in 0..2 {
        lan.add(client_config());
    }
    lan.settle();
    for _ in 0..64 {
        lan.add(client_config());
    }
    lan.settle();
    let honest = lan.add(client_config());
    lan.addresses[honest] = ([198, 51, 100, 7], 4000).into();
    lan.settle();
    assert_eq!(lan.server.stats().in_line, 65);
    lan.client(0).close(CloseCode::DONE, "");
    let mut waited = 0;
    while !is_in(&lan, honest) {
        // All responses to the others are lost; retries and answers about the line arrive.
        lan.run_with(100, |way, datagram| match way {
            Way::Down(n) => n == honest || datagram[0] != 0x07,
            Way::Up(_) => true,
        });
        waited += 100;
        assert!(waited < 8_000, "{:?}", places(&lan, honest));
    }
    println!("{waited} ms");
}

/// A program that reads no events does not make its server hold more than its seats and its handshakes,
/// however many handshakes are ended to make room.
#[test]
fn a_program_that_reads_nothing_has_no_more_connections_than_it_may() {
    let mut config = small(10);
    (config.limits.connections, config.limits.handshakes) = (6, 3);
    let mut lan = Lan::new(config);
    for n in 0..40 {
        let mut client = ClientMachine::new(lan.now, client_config(), [n; 32]).expect("it works");
        let from = std::net::SocketAddr::from(([10, 1, n, 1], 4000));
        let mut datagram = Vec::new();
        client.poll_datagram(lan.now, &mut datagram);
        let _counted = lan.server.handle_datagram(lan.now, from, &mut datagram);
        // It hears nothing, and so completes nothing.
        while lan.server.poll_datagram(lan.now, &mut datagram).is_some() {}
        lan.now = lan.now + Duration::from_secs(1);
        lan.server.handle_timeout(lan.now);
    }
    assert_eq!(lan.server.stats().connections, 9, "{:?}", lan.server.stats());
}

/// Issue 32, the proof `seats`: a client that the program refuses is kept until it has received the refusal,
/// holds no seat, and counts as a handshake.
#[test]
fn a_handshake_that_is_refused_holds_no_seat() {
    let mut lan = Lan::new(small(10));
    for _ in 0..8 {
        lan.add(client_config());
    }
    // They hear nothing of the refusal.
    for _ in 0..3 {
        lan.settle_with(|way, _| !matches!(way, Way::Down(_)));
        let joining: Vec<_> = lan.server.connections().collect();
        for id in joining {
            let connection = lan.server.connection_mut(id).expect("it is there");
            connection.close(lan.now, CloseCode::NOT_ACCEPTED, "");
        }
    }
    lan.settle_with(|way, _| !matches!(way, Way::Down(_)));
    let stats = lan.server.stats();
    assert!(stats.connections >= 2 && stats.handshakes == stats.connections, "{stats:?}");
    let honest = lan.add(client_config());
    lan.settle_with(|way, _| {
        matches!(way, Way::Down(n) if n == honest) || !matches!(way, Way::Down(_))
    });
    assert!(is_in(&lan, honest), "{:?}", lan.server.stats());
}

/// Its token was valid when it came; after it has expired the client still gets its seat, and another one
/// with an expired token none.
#[test]
fn a_token_may_expire_in_line() {
    let mut config = token_server();
    (config.limits.connections, config.limits.line) = (1, 10);
    let mut lan = Lan::new(config);
    for n in 0..2 {
        lan.add(client_with(Credentials::Token(token(n, own()))));
        lan.settle();
    }
    assert_eq!(places(&lan, 1), [Some(1)]);
    lan.run(100_000);
    let late = lan.add(client_with(Credentials::Token(token(3, own()))));
    lan.client(0).close(CloseCode::DONE, "");
    lan.run(2_000);
    assert!(is_in(&lan, 1));
    let expired = CloseReason::Refused(RefusalCode::TokenExpired);
    assert_eq!(end_of(&lan, late), Some(&expired));
}

/// If the line is full too, that is reported to the client, and it asks again.
#[test]
fn a_full_line_is_said_and_waited_for() {
    let mut lan = Lan::new(small(1));
    for _ in 0..4 {
        lan.add(client_config());
        lan.settle();
    }
    assert_eq!((places(&lan, 2), places(&lan, 3)), (vec![Some(1)], vec![None]));
    lan.client(0).close(CloseCode::DONE, "");
    lan.run(40_000);
    assert!(is_in(&lan, 2) && places(&lan, 3) == [None, Some(1)], "{:?}", places(&lan, 3));
}

/// A client that does not want to wait hears that the server is full; one that waits does so for its time.
#[test]
fn a_client_waits_as_long_as_it_wants_to() {
    let mut lan = Lan::new(small(10));
    for seconds in [600, 600, 0, 20] {
        lan.add(client_config().with_max_time_in_line(Duration::from_secs(seconds)));
        lan.settle();
    }
    let full = CloseReason::Refused(RefusalCode::Full);
    assert_eq!(end_of(&lan, 2), Some(&full));
    lan.run(19_000);
    assert_eq!(end_of(&lan, 3), None);
    lan.run(4_000);
    assert_eq!(end_of(&lan, 3), Some(&full));
}

/// H-3.6c: an attacker without the secret cannot put a client into a line, nor make it ask more often.
#[test]
fn a_forged_or_repeated_answer_changes_nothing() {
    let mut lan = Lan::new(small(10));
    for _ in 0..3 {
        lan.add(client_config());
    }
    let mut answers = Vec::new();
    lan.settle_with(|way, datagram| {
        let is_answer = datagram[0] == 0x06 && way == Way::Down(2);
        if is_answer {
            answers.push(datagram.clone());
        }
        !is_answer
    });
    let mut forged = answers[0].clone();
    forged[11] ^= 1;
    let from = server_address();
    let refused = lan.clients[2].handle_datagram(lan.now, from, &mut forged);
    assert_eq!(refused, Err(DropReason::BadCheckValue));
    assert_eq!(lan.clients[2].handle_datagram(lan.now, from, &mut answers[0].clone()), Ok(()));
    lan.client(0).close(CloseCode::DONE, "");
    let mut call = None;
    lan.run_with(300, |way, datagram| {
        if way == Way::Down(2) && datagram[0] == 0x06 && datagram[11..15] == [0; 4] {
            call = Some(datagram.clone());
            return false;
        }
        true
    });
    let mut call = call.expect("a call");
    assert_eq!(lan.clients[2].handle_datagram(lan.now, from, &mut call.clone()), Ok(()));
    let again = lan.clients[2].handle_datagram(lan.now, from, &mut call);
    assert_eq!(again, Err(DropReason::NotNow));
}
