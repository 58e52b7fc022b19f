//! Checks that no other test covers: each test fails when its check is removed.

use haulier_proto::client::{ClientMachine, Credentials};
use haulier_proto::connection::{Block, CloseReason, Event, RefusalCode, Suite};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenRate, TokenServers};
use haulier_proto::internals::{
    DataHeader, EndParameters, RequestKeys, RequestParts, ResponseHeader, Retry, Role, Welcome,
    WireId, open_tag, respond,
};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerEvent};
use haulier_proto::{DropReason, Machine};
use std::time::Duration;

use super::{client_with, end_of};
use crate::lan::{
    Lan, PROTOCOL_ID, UNIX_TIME, Way, address, client_config, secret, server_address, server_config,
};

fn open_server() -> ServerConfig {
    let credentials = ServerCredentials::default().with_open_access();
    let mut config = server_config();
    config.credentials = credentials;
    config
}

fn request_of(lan: &mut Lan, n: usize) -> Vec<u8> {
    let mut datagram = Vec::new();
    assert!(lan.clients[n].poll_datagram(lan.now, &mut datagram).is_some());
    datagram
}

/// In mode `open` only the client that a response names accepts it.
#[test]
fn a_response_to_another_client_is_refused() {
    let mut lan = Lan::new(open_server());
    lan.add(client_with(Credentials::Open));
    lan.add(client_with(Credentials::Open));
    let mut request = request_of(&mut lan, 0);
    lan.server.handle_datagram(lan.now, address(0), &mut request).unwrap();
    let mut response = Vec::new();
    assert!(lan.server.poll_datagram(lan.now, &mut response).is_some());
    let refused = lan.clients[1].handle_datagram(lan.now, server_address(), &mut response.clone());
    assert_eq!(refused, Err(DropReason::UnknownConnection));
    lan.clients[0].handle_datagram(lan.now, server_address(), &mut response).unwrap();
}

/// Data with another id, and data from an end of the same role, are refused before their tag is checked.
#[test]
fn data_with_a_foreign_header_is_refused() {
    let mut lan = Lan::joined(open_server(), client_with(Credentials::Open));
    let mut last = Vec::new();
    lan.peer().send_message(&b"x"[..]).unwrap();
    lan.settle_with(|way, datagram| {
        if matches!(way, Way::Down(_)) {
            last.clone_from(datagram);
        }
        true
    });
    let to = DataHeader::read(&last).unwrap().to;
    let mut stranger = last.clone();
    stranger[5] ^= 1;
    let refused = lan.clients[0].handle_datagram(lan.now, server_address(), &mut stranger);
    assert_eq!(refused, Err(DropReason::UnknownConnection));
    let mut own = Vec::new();
    DataHeader { from: Role::Client, phase: false, to, number: 5_000 }.write(&mut own);
    own.push(1);
    let tag = open_tag(PROTOCOL_ID, to.0, &own);
    own.extend_from_slice(&tag);
    assert_eq!(
        lan.clients[0].handle_datagram(lan.now, server_address(), &mut own),
        Err(DropReason::WrongRole)
    );
}

/// A client accepts four cookies, and no endless sequence of them.
#[test]
fn a_client_accepts_at_most_four_cookies() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let request = request_of(&mut lan, 0);
    let to = WireId(request[5..13].try_into().unwrap());
    let (mut taken, mut retry) = (0, Vec::new());
    for n in 0..20 {
        Retry { to, cookie: [n; 20] }.write(&mut retry);
        taken += u32::from(
            lan.clients[0].handle_datagram(lan.now, server_address(), &mut retry).is_ok(),
        );
        // A repeated retry, as each copy of a request causes one, is not answered.
        assert!(lan.clients[0].handle_datagram(lan.now, server_address(), &mut retry).is_err());
        let mut out = Vec::new();
        while lan.clients[0].poll_datagram(lan.now, &mut out).is_some() {}
    }
    assert_eq!(taken, 4);
}

/// A response with a suite that the client did not offer is refused, even with the right keys.
#[test]
fn a_suite_that_was_not_offered_is_refused() {
    let config = client_config();
    let mut client = ClientMachine::new(haulier_proto::Instant::ZERO, config, [1; 32]).unwrap();
    let mut request = Vec::new();
    assert!(client.poll_datagram(haulier_proto::Instant::ZERO, &mut request).is_some());
    let parts = RequestParts::read(&request).unwrap();
    let keys = RequestKeys::new(&secret(), PROTOCOL_ID);
    let prologue = RequestParts::prologue(parts.mode, parts.client_id);
    let opened = respond(keys.noise_psk(), None, &prologue, parts.hello_message).unwrap();
    let mut welcome = Vec::new();
    Welcome { server_id: WireId([1; 8]), suite: Suite::Aes256Gcm, end: EndParameters::default() }
        .write(&mut welcome);
    let (message, secrets) = opened.answer(&Secret::from_bytes([5; 32]), &welcome).unwrap();
    let mut response = Vec::new();
    ResponseHeader { to: parts.client_id, welcome_message: &message, number: 0 }
        .write(&mut response);
    let (head, mut frames) = (response.clone(), vec![1]);
    let key = secrets.server_to_client.key(Suite::Aes256Gcm).unwrap();
    let tag = key.seal(0, &head, &mut frames).unwrap();
    response.extend_from_slice(&frames);
    response.extend_from_slice(&tag);
    let refused =
        client.handle_datagram(haulier_proto::Instant::ZERO, server_address(), &mut response);
    assert_eq!(refused, Err(DropReason::BadHandshake));
    assert!(client.connection().is_none());
}

#[test]
fn the_connections_of_one_prefix_are_limited() {
    let mut config = server_config();
    config.limits.connections_per_prefix = 3;
    let mut lan = Lan::new(config);
    // Clients 0 to 999 share an address, 1000 and on have the next.
    (0..4).for_each(|_| {
        lan.add(client_config());
    });
    lan.settle();
    assert_eq!(lan.server.stats().connections, 3);
    lan.clients[3].handle_timeout(lan.now);
    lan.settle();
    assert_eq!(end_of(&lan, 3), Some(&CloseReason::Refused(RefusalCode::Full)));
    lan.addresses[3] = address(1_000);
    let elsewhere = lan.add(client_config());
    lan.addresses[elsewhere] = address(2_000);
    lan.settle();
    assert!(lan.clients[elsewhere].connection().is_some());
}

/// The memory that clients occupy at a server has a common limit. The connection that holds the most is
/// closed, without an effect on the others.
#[test]
fn the_connection_with_the_most_memory_is_closed_first() {
    let mut config = server_config();
    config.limits.memory_bytes = 1_000_000;
    let mut lan = Lan::new(config);
    (0..3).for_each(|_| {
        lan.add(client_config());
    });
    lan.settle();
    // Half a block each, but a whole one of the second; the server does not read.
    let sizes = [300_000, 900_000, 200_000];
    for (n, size) in sizes.into_iter().enumerate() {
        lan.client(n).set_max_rate_bps(80_000_000);
        lan.client(n).send_block(&Block::new(1, vec![1; size])).unwrap();
    }
    let mut out = Vec::new();
    for _ in 0..1_000 {
        lan.now = lan.now + Duration::from_millis(1);
        lan.server.handle_timeout(lan.now);
        for n in 0..3 {
            lan.clients[n].handle_timeout(lan.now);
            while lan.clients[n].poll_datagram(lan.now, &mut out).is_some() {
                let _ = lan.server.handle_datagram(lan.now, lan.addresses[n], &mut out);
                assert!(lan.server.stats().memory_bytes <= 1_000_000 + (256 << 10));
            }
        }
        while let Some(to) = lan.server.poll_datagram(lan.now, &mut out) {
            let n = lan.addresses.iter().position(|&address| address == to.remote).unwrap();
            let _ = lan.clients[n].handle_datagram(lan.now, server_address(), &mut out);
        }
    }
    lan.settle();
    assert!(matches!(end_of(&lan, 1), Some(CloseReason::There { code, .. }) if code.0 == 7));
    assert_eq!((end_of(&lan, 0), end_of(&lan, 2)), (None, None));
    let held = lan.server.stats().memory_bytes;
    assert!((1..400).contains(&held), "{held} bytes: everything was read but the end of one");
    lan.run(16_000);
    assert_eq!(lan.server.stats().memory_bytes, 0, "and that is over");
    let blocks = lan
        .server_events
        .iter()
        .filter(|(_, event)| matches!(event, ServerEvent::Connection(Event::Block { .. })));
    assert_eq!(blocks.count(), 2);
}

/// Memory of the application for a client, such as a list of files, counts to the limit of the server.
#[test]
fn what_the_application_holds_counts_as_its_clients() {
    let mut config = server_config();
    config.limits.memory_bytes = 1_000_000;
    let mut lan = Lan::new(config);
    (0..2).for_each(|_| {
        lan.add(client_config());
    });
    lan.settle();
    let ids: Vec<_> = lan.server.connections().collect();
    for (id, bytes) in ids.iter().zip([400_000, 500_000]) {
        lan.server.connection_mut(*id).unwrap().set_application_bytes(bytes);
    }
    lan.run(1_000);
    assert_eq!((end_of(&lan, 0), end_of(&lan, 1)), (None, None));
    lan.server.connection_mut(ids[1]).unwrap().set_application_bytes(700_000);
    lan.client(0).send_message(vec![1]).unwrap();
    lan.run(1_000);
    let ends = [end_of(&lan, 0), end_of(&lan, 1)];
    let code = |end: &&CloseReason| match end {
        CloseReason::There { code, .. } => code.0,
        _ => 0,
    };
    let codes: Vec<_> = ends.iter().flatten().map(code).collect();
    assert_eq!(codes, [7], "{ends:?}");
    assert!(lan.server.stats().memory_bytes < 700_000);
}

/// A token may limit its client's rate; the application cannot raise it by mistake.
#[test]
fn a_token_limits_the_rate() {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let mut config = server_config();
    config.credentials.token_keys = vec![key.clone()];
    let mut lan = Lan::new(config);
    let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 60, TokenServers::Every)
        .with_max_rate(TokenRate::from_bps(400_000));
    let token = key.issue(PROTOCOL_ID, &claims, Secret::from_bytes([1; 32]), [1; 24]).unwrap();
    lan.add(client_with(Credentials::Token(token)));
    lan.settle();
    lan.peer().set_max_rate_bps(80_000_000);
    lan.peer().send_block(&Block::new(1, vec![1; 400_000])).unwrap();
    lan.run(4_000);
    let sent = lan.peer().stats().bytes_sent;
    assert!((180_000..=215_000).contains(&sent), "{sent} bytes in 4 s at 50 kB/s");
}

/// A rate of 0 is refused in the settings. Set later, it closed the connection after 15 s.
#[test]
fn a_rate_of_0_is_the_lowest_that_works() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.peer().set_max_rate_bps(0);
    lan.peer().send_block(&Block::new(1, vec![1; 8_000])).unwrap();
    lan.run(60_000);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
}

/// Answers to strangers are queued, as many as a round of datagrams can cause, whatever comes.
#[test]
fn queued_answers_are_bounded() {
    let mut config = server_config();
    config.limits.answers_per_second = 1_000_000;
    let mut lan = Lan::new(config);
    lan.add(client_config());
    let request = request_of(&mut lan, 0);
    for n in 0..2_000 {
        let mut forged = request.clone();
        forged[1199] ^= 1;
        assert!(lan.server.handle_datagram(lan.now, address(n * 1_000), &mut forged).is_err());
    }
    let mut answers = 0;
    while lan.server.poll_datagram(lan.now, &mut Vec::new()).is_some() {
        answers += 1;
    }
    assert_eq!(answers, 1_024);
}

/// H-3.5a limits datagrams too, not only bytes: many small ones would fit.
#[test]
fn three_datagrams_are_sent_for_one_however_small() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let mut request = request_of(&mut lan, 0);
    lan.server.handle_datagram(lan.now, address(0), &mut request).unwrap();
    let mut sent = 0;
    for _ in 0..9_000 {
        lan.now = lan.now + Duration::from_millis(1);
        lan.server.handle_timeout(lan.now);
        while lan.server.poll_event(lan.now).is_some() {}
        while lan.server.poll_datagram(lan.now, &mut Vec::new()).is_some() {
            sent += 1;
        }
    }
    assert_eq!(sent, 3, "the probe timeout would have sent more");
}

/// The challenge that the server sends to the new address of a client that moved.
fn challenged() -> (Lan, Vec<u8>) {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    lan.client(0).send_message(vec![0; 900]).unwrap();
    lan.addresses[0] = address(900);
    let mut challenge = Vec::new();
    lan.settle_with(|way, datagram| {
        if matches!(way, Way::Down(_)) {
            challenge.clone_from(datagram);
        }
        matches!(way, Way::Up(_))
    });
    assert_eq!(challenge.len(), 13 + 9 + 16);
    (lan, challenge)
}

/// H-5.2: a path response validates the address it comes from, and no other.
#[test]
fn a_path_response_from_elsewhere_validates_nothing() {
    let (mut lan, mut challenge) = challenged();
    let old = address(0);
    lan.clients[0].handle_datagram(lan.now, server_address(), &mut challenge).unwrap();
    let mut answer = Vec::new();
    assert!(lan.clients[0].poll_datagram(lan.now, &mut answer).is_some());
    lan.server.handle_datagram(lan.now, address(5_000), &mut answer).unwrap();
    assert_eq!(lan.peer().address(), old);
}

/// An unanswered challenge is sent five times, whatever the amplification limit allows.
#[test]
fn unanswered_challenges_end() {
    let (mut lan, _) = challenged();
    let mut challenges = 1;
    for _ in 0..4 {
        lan.client(0).send_message(vec![0; 900]).unwrap();
        lan.settle_with(|way, _| matches!(way, Way::Up(_)));
    }
    lan.run_with(8_000, |way, _| {
        challenges += u32::from(matches!(way, Way::Down(_)));
        false
    });
    assert_eq!(challenges, 5);
}

/// A delayed datagram from an earlier address of the client starts no challenge.
#[test]
fn a_late_datagram_from_elsewhere_starts_no_challenge() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    let mut held = Vec::new();
    for _ in 0..2 {
        lan.client(0).send_message(vec![0; 900]).unwrap();
        lan.settle_with(|way, datagram| {
            let is_first = matches!(way, Way::Up(_)) && held.is_empty();
            if is_first {
                held.clone_from(datagram);
            }
            !is_first
        });
    }
    lan.server.handle_datagram(lan.now, address(901), &mut held).unwrap();
    let mut out = Vec::new();
    while let Some(to) = lan.server.poll_datagram(lan.now, &mut out) {
        assert_ne!(to.remote, address(901));
    }
}

/// A client that moves all the time does not fill the event queue: one unread change is enough.
#[test]
fn unread_path_changes_are_merged() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    lan.server_events.clear();
    let (mut out, mut moves) = (Vec::new(), 0);
    for n in 0..20 {
        lan.addresses[0] = address(900 + n);
        lan.now = lan.now + Duration::from_millis(50);
        lan.client(0).send_message(vec![0; 900]).unwrap();
        // The server's events are not read in between.
        for _ in 0..4 {
            while lan.clients[0].poll_datagram(lan.now, &mut out).is_some() {
                let _ = lan.server.handle_datagram(lan.now, lan.addresses[0], &mut out);
            }
            while lan.server.poll_datagram(lan.now, &mut out).is_some() {
                let _ = lan.clients[0].handle_datagram(lan.now, server_address(), &mut out);
            }
        }
        moves += u32::from(lan.peer().address() == lan.addresses[0]);
    }
    assert_eq!(moves, 20);
    lan.settle();
    let moved = ServerEvent::Connection(Event::AddressChanged);
    assert_eq!(lan.server_events.iter().filter(|(_, event)| *event == moved).count(), 1);
}

/// A path response that is not the newest datagram starts no challenge of its own: an attacker that holds it
/// back and sends it from another address takes nothing over.
#[test]
fn a_late_path_response_from_elsewhere_validates_nothing() {
    let (mut lan, mut challenge) = challenged();
    lan.clients[0].handle_datagram(lan.now, server_address(), &mut challenge).unwrap();
    let (mut answer, mut newer) = (Vec::new(), Vec::new());
    assert!(lan.clients[0].poll_datagram(lan.now, &mut answer).is_some());
    lan.client(0).send_message(vec![0; 900]).unwrap();
    assert!(lan.clients[0].poll_datagram(lan.now, &mut newer).is_some());
    lan.server.handle_datagram(lan.now, address(900), &mut newer).unwrap();
    lan.server.handle_datagram(lan.now, address(5_000), &mut answer).unwrap();
    assert_eq!(lan.peer().address(), address(0));
}

/// Retries share that queue: of 1,100 clients that come at once, 1,024 are sent their cookies.
#[test]
fn queued_retries_are_bounded() {
    let mut config = server_config();
    config.limits.handshakes_without_cookie = 0;
    let mut lan = Lan::new(config);
    for n in 0..1_100 {
        lan.add(client_config());
        let mut request = request_of(&mut lan, n);
        let asked = lan.server.handle_datagram(lan.now, address(n), &mut request);
        assert_eq!(asked, Err(DropReason::NoCookie));
    }
    let mut retries = 0;
    while lan.server.poll_datagram(lan.now, &mut Vec::new()).is_some() {
        retries += 1;
    }
    assert_eq!(retries, 1_024);
}

/// Incomplete handshakes of one source use up its own places, and no other source is refused for them.
#[test]
fn the_handshakes_of_one_source_are_limited() {
    let mut config = server_config();
    config.limits.handshakes_per_prefix = 2;
    let mut lan = Lan::new(config);
    let mut outcomes = Vec::new();
    for n in 0..4 {
        lan.add(client_config());
        let mut request = request_of(&mut lan, n);
        // The last one is from another source.
        let from = address(if n < 3 { n } else { 5_000 });
        outcomes.push(lan.server.handle_datagram(lan.now, from, &mut request));
    }
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(DropReason::NoSlot), Ok(())]);
    let mut out = Vec::new();
    while lan.server.poll_datagram(lan.now, &mut out).is_some() {
        assert_eq!(out[0], 0x07, "no refusal");
    }
}
