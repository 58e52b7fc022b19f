//! How the end of a connection is reported: codes and reasons of the application, and closes that are
//! answered and repeated (STANDARD-1, 5.3 and 5.4).

use haulier_proto::connection::{CloseCode, CloseReason, Event, RefusalCode};
use haulier_proto::server::{ServerEvent, ServerLimits};
use haulier_proto::{DropReason, Machine};

use super::{end_of, ends_at_server};
use crate::lan::{Lan, Way, client_config, server_address, server_config};

fn there(code: CloseCode, reason: &str) -> CloseReason {
    CloseReason::There { code, reason: reason.into() }
}

/// Each end closes, and the server rejects a request: code and reason arrive, up to the largest of both.
#[test]
fn codes_and_reasons_of_the_application_arrive() {
    for code in [256, 65_536, u32::MAX] {
        let code = CloseCode::application(code).unwrap();
        for reason in ["", "the world has ended", &"x".repeat(255)] {
            let mut lan = Lan::joined(server_config(), client_config());
            lan.client(0).close(code, reason);
            lan.run(100);
            assert_eq!(ends_at_server(&lan), [&there(code, reason)]);

            let mut lan = Lan::joined(server_config(), client_config());
            lan.peer().close(code, reason);
            lan.run(100);
            assert_eq!(end_of(&lan, 0), Some(&there(code, reason)));

            let mut lan = Lan::new(server_config());
            lan.add(client_config());
            lan.settle_with(|way, _| matches!(way, Way::Up(_)));
            assert!(matches!(lan.server_events[..], [(_, ServerEvent::Connecting { .. })]));
            lan.peer().close(code, reason);
            lan.run(1_000);
            assert_eq!(end_of(&lan, 0), Some(&there(code, reason)));
        }
    }
}

/// A code of the connection that this version does not know is not taken for another one.
#[test]
fn an_unknown_code_arrives_as_it_is() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.peer().close(CloseCode(200), "from the year 2030");
    lan.run(100);
    assert_eq!(end_of(&lan, 0), Some(&there(CloseCode(200), "from the year 2030")));
    let text = end_of(&lan, 0).unwrap().to_string();
    assert_eq!(text, "closed by the peer: unknown code 200 (from the year 2030)");
}

/// H-5.3: an answered close is not repeated, and an answer is not answered.
#[test]
fn a_close_that_is_answered_is_sent_once() {
    for is_client in [true, false] {
        let mut lan = Lan::joined(server_config(), client_config());
        lan.run(1_000);
        match is_client {
            true => lan.client(0).close(CloseCode::DONE, ""),
            false => lan.peer().close(CloseCode::DONE, ""),
        }
        let mut datagrams = Vec::new();
        lan.run_with(10_000, |way, datagram| {
            datagrams.push((matches!(way, Way::Up(_)), datagram.len()));
            true
        });
        let bytes = 13 + 3 + 16;
        assert_eq!(datagrams, [(is_client, bytes), (!is_client, bytes)], "a close and its answer");
        assert!(lan.clients[0].is_closed());
        assert_eq!(lan.server.stats().connections, 0);
        assert_eq!(lan.server.stats().resets, 0);
    }
}

/// H-5.3: a client that has received no close gets one in answer to its next datagram, and to each later one,
/// but at most every 50 ms, and no more bytes than it has sent.
#[test]
fn a_client_that_asks_after_the_end_is_told_it_again() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(1_000);
    let code = CloseCode::application(300).unwrap();
    lan.peer().close(code, "bye");
    let mut closes = 0;
    lan.run_with(8_000, |way, _| {
        closes += u32::from(matches!(way, Way::Down(_)));
        false
    });
    assert_eq!((closes, lan.server.stats().connections), (6, 0), "and then it has ended");
    assert_eq!((lan.server.stats().lingering, end_of(&lan, 0)), (1, None));
    // A datagram of the client, ten thousand times in half a second: it is lost on the way back.
    lan.client(0).send_message(&b"are you there?"[..]).unwrap();
    let (mut question, mut answer) = (Vec::new(), Vec::new());
    assert!(lan.clients[0].poll_datagram(lan.now, &mut question).is_some());
    let (mut answers, from) = (0, lan.addresses[0]);
    for _ in 0..500 {
        lan.now = lan.now + std::time::Duration::from_millis(1);
        for _ in 0..20 {
            let refused = lan.server.handle_datagram(lan.now, from, &mut question.clone());
            assert_eq!(refused, Err(DropReason::NotNow));
            answers += u32::from(lan.server.poll_datagram(lan.now, &mut answer).is_some());
        }
    }
    assert_eq!((answers, lan.server.stats().closes_repeated), (10, 10));
    let _taken = lan.clients[0].handle_datagram(lan.now, server_address(), &mut answer);
    lan.settle();
    assert_eq!(end_of(&lan, 0), Some(&there(code, "bye")));
    lan.run(16_000);
    assert_eq!((lan.server.stats().lingering, lan.server.stats().memory_bytes), (0, 0));
}

/// H-3.6a: each copy of a request is refused, so that a lost refusal is no silence.
#[test]
fn each_copy_of_a_refused_request_is_refused() {
    let mut config = server_config();
    config.limits = ServerLimits::default().with_connections(0).with_line(0);
    let mut lan = Lan::new(config);
    lan.add(client_config().with_copies(4));
    let mut refusals = 0;
    lan.settle_with(|way, _| {
        refusals += u32::from(matches!(way, Way::Down(_)));
        matches!(way, Way::Up(_)) || refusals == 4
    });
    assert_eq!((refusals, lan.server.stats().refused), (4, 4));
    assert_eq!(end_of(&lan, 0), Some(&CloseReason::Refused(RefusalCode::Full)));
}

/// What is kept of connections that have ended is bounded by the places that there are, counted, and gives
/// way to what clients send.
#[test]
fn ended_connections_are_few_and_counted() {
    for max_bytes in [1 << 20, 1_000] {
        let mut config = server_config();
        config.limits.connections = 20;
        config.limits.memory_bytes = max_bytes;
        let mut lan = Lan::new(config);
        for n in 0..100 {
            lan.add(client_config());
            lan.settle();
            lan.client(n).send_message(&b"hello"[..]).unwrap();
            lan.settle();
            assert_eq!(end_of(&lan, n), None, "its memory is the server's own");
            lan.client(n).close(CloseCode::DONE, "");
            lan.settle();
            let stats = lan.server.stats();
            assert_eq!(stats.connections, 0);
            assert!((1..=400 * 20).contains(&stats.memory_bytes), "{stats:?}");
            match max_bytes {
                1_000 => assert!((1..=8).contains(&stats.lingering), "{stats:?}"),
                _ => assert_eq!(stats.lingering, 20.min(n + 1)),
            }
        }
        lan.run(7_000);
        assert_eq!(lan.server.stats().memory_bytes, 0);
    }
}

/// A handshake that has to make room, and one that ends because of silence: the client gets the reason.
#[test]
fn a_handshake_that_is_given_up_is_told_why() {
    let mut config = server_config();
    config.limits = ServerLimits::default().with_handshakes(1).with_handshakes_without_cookie(64);
    let mut lan = Lan::new(config);
    let first = lan.add(client_config());
    // The first never hears its response; a second client comes when it is a second old.
    lan.run_with(1_100, |way, _| matches!(way, Way::Up(_)));
    let second = lan.add(client_config());
    lan.settle_with(|way, _| way != Way::Down(first));
    lan.run(3_000);
    assert!(lan.client_events[second].contains(&Event::Connected));
    assert_eq!(end_of(&lan, first), Some(&there(CloseCode::RESOURCES, "")));

    let mut config = server_config();
    config.connection.handshake_timeout = std::time::Duration::from_secs(2);
    let mut lan = Lan::new(config);
    lan.add(client_config());
    lan.run_with(2_100, |way, _| matches!(way, Way::Up(_)));
    lan.run(2_500);
    assert_eq!(end_of(&lan, 0), Some(&there(CloseCode::TIMED_OUT, "")));
}
