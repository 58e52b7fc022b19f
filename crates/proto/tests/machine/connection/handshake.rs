//! Which clients are accepted, in one round trip, and which are refused (STANDARD-1, 3 and 6).

use haulier_proto::client::{ClientMachine, Credentials};
use haulier_proto::connection::{Block, CloseReason, Event, RefusalCode, Suite};
use haulier_proto::credentials::{
    ConnectToken, Identity, Secret, TokenClaims, TokenKey, TokenServers,
};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerEvent};
use haulier_proto::{AesSupport, DropReason, Instant, Machine};

use super::{client_with, end_of};
use crate::lan::{
    Lan, PROTOCOL_ID, UNIX_TIME, Way, address, client_config, secret, server_address, server_config,
};

fn with_credentials(credentials: ServerCredentials) -> ServerConfig {
    let mut config = server_config();
    config.credentials = credentials;
    config
}

fn token_key() -> TokenKey {
    TokenKey { id: 5, key: Secret::from_bytes([8; 32]) }
}

fn claims() -> TokenClaims {
    TokenClaims::new(UNIX_TIME, UNIX_TIME + 60, TokenServers::One(server_address()))
        .with_client_id([1; 8])
        .with_client_address(None)
        .with_min_rate(None)
        .with_max_rate(None)
        .with_user_data(b"red team".to_vec())
}

fn token(claims: &TokenClaims, nonce: u8) -> ConnectToken {
    token_key().issue(PROTOCOL_ID, claims, Secret::from_bytes([nonce; 32]), [nonce; 24]).unwrap()
}

fn token_server() -> ServerConfig {
    with_credentials(ServerCredentials::default().with_token_key(token_key()))
}

/// The requests that client `n` sends now.
fn requests(lan: &mut Lan, n: usize) -> Vec<Vec<u8>> {
    let (mut all, mut datagram) = (Vec::new(), Vec::new());
    while lan.clients[n].poll_datagram(lan.now, &mut datagram).is_some() {
        all.push(datagram.clone());
    }
    all
}

/// H-3.1b, the order of checks, with one request for each: what is wrong with it, the drop reason, the
/// answer.
#[test]
fn each_check_of_a_request_refuses_alone() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let request = requests(&mut lan, 0).remove(0);
    let broken = |at: usize, byte: u8| {
        let mut request = request.clone();
        request[at] = byte;
        request
    };
    let mut short = request.clone();
    short.truncate(1199);
    let cases = [
        (short, DropReason::WrongLength, 0),
        (broken(1, 2), DropReason::WrongVersion, 31),
        (broken(13, 3), DropReason::OutOfRange, 0),
        (broken(13, 0), DropReason::WrongMode, 27),
        (broken(13, 0x11), DropReason::WrongMode, 27),
        (broken(14, 7), DropReason::OutOfRange, 0),
        (broken(15, 1), DropReason::OutOfRange, 0),
        (broken(18, 9), DropReason::Truncated, 0),
        (broken(1183, request[1183] ^ 1), DropReason::BadCheckValue, 27),
        (broken(1199, request[1199] ^ 1), DropReason::BadCheckValue, 27),
    ];
    let mut answer = Vec::new();
    for (mut datagram, reason, answered) in cases {
        let refused = lan.server.handle_datagram(lan.now, address(0), &mut datagram);
        assert_eq!(refused, Err(reason));
        let to = lan.server.poll_datagram(lan.now, &mut answer);
        assert_eq!(to.map_or(0, |_| answer.len()), answered, "{reason}");
        assert_eq!(lan.server.stats().connections, 0);
    }
    // The original request is accepted.
    assert!(lan.server.handle_datagram(lan.now, address(0), &mut request.clone()).is_ok());
}

/// H-3.1b: nothing that the check covers is read before the check is verified. Here the hello is damaged by
/// a sender that knows the secret.
#[test]
fn a_damaged_hello_creates_nothing() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let mut request = requests(&mut lan, 0).remove(0);
    request[40] ^= 1;
    let keys = haulier_proto::internals::RequestKeys::new(&secret(), PROTOCOL_ID);
    let check = keys.check(&request[..1184]);
    request[1184..].copy_from_slice(&check);
    let refused = lan.server.handle_datagram(lan.now, address(0), &mut request);
    assert_eq!(refused, Err(DropReason::BadHandshake));
    assert_eq!(lan.server.stats().connections, 0);
    assert_eq!(lan.server.poll_datagram(lan.now, &mut Vec::new()), None);
}

#[test]
fn a_request_and_its_answer_take_one_round_trip() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_config().with_request(b"map 7".to_vec()));
    for mut request in requests(&mut lan, n) {
        lan.server.handle_datagram(lan.now, address(n), &mut request).unwrap();
    }
    let (id, event) = lan.server.poll_event(lan.now).unwrap();
    let ServerEvent::Connecting { request, token: None } = event else { panic!("{event:?}") };
    assert_eq!(request, &b"map 7"[..]);
    let world = Block::new(7, vec![1; 5_000]);
    lan.server.connection_mut(id).unwrap().send_block(lan.now, &world).unwrap();
    let mut datagram = Vec::new();
    assert!(lan.server.poll_datagram(lan.now, &mut datagram).is_some());
    lan.clients[n].handle_datagram(lan.now, server_address(), &mut datagram).unwrap();
    let done = lan.client(n).receiving().unwrap().done;
    assert!((1024..1100).contains(&done), "the response has the first slice: {done}");
}

/// H-3.2a: any single response of the first flight establishes the connection.
#[test]
fn any_response_of_the_first_flight_is_enough() {
    for chosen in 0..9 {
        let mut lan = Lan::new(server_config());
        let n = lan.add(client_config().with_copies(3));
        for mut request in requests(&mut lan, n) {
            lan.server.handle_datagram(lan.now, address(n), &mut request).unwrap();
        }
        let (id, _) = lan.server.poll_event(lan.now).unwrap();
        let world = Block::new(7, vec![1; 50_000]);
        lan.server.connection_mut(id).unwrap().send_block(lan.now, &world).unwrap();
        let (mut flight, mut datagram) = (Vec::new(), Vec::new());
        while lan.server.poll_datagram(lan.now, &mut datagram).is_some() {
            assert_eq!(datagram[0], 0x07);
            flight.push(datagram.clone());
        }
        assert_eq!(flight.len(), 9, "three requests allow nine responses");
        assert!(flight.iter().map(Vec::len).sum::<usize>() <= 3 * 3 * 1200);
        lan.clients[n].handle_datagram(lan.now, server_address(), &mut flight[chosen]).unwrap();
        assert!(lan.clients[n].connection().is_some(), "response {chosen}");
        // Lost frames are retransmitted, and the block arrives.
        lan.run(3_000);
        let is_block = |event: &Event| matches!(event, Event::Block { tag: 7, .. });
        assert!(lan.client_events[n].iter().any(is_block), "after response {chosen}");
    }
}

/// H-3.1d: copies raise the amplification limit, make no second connection, and are ignored from another
/// address.
#[test]
fn copies_of_a_request_make_one_connection() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_config().with_copies(10));
    let copies = requests(&mut lan, n);
    assert_eq!(copies.len(), 10);
    assert!(
        copies.windows(2).all(|two| two[0][..900] != two[1][..900]),
        "each has its own padding"
    );
    for mut copy in copies.clone() {
        lan.server.handle_datagram(lan.now, address(n), &mut copy).unwrap();
    }
    assert_eq!(lan.server.stats().requests, 1);
    for mut copy in copies {
        let refused = lan.server.handle_datagram(lan.now, address(50), &mut copy);
        assert_eq!(refused, Err(DropReason::Replayed));
    }
    assert_eq!(lan.server.stats().requests, 1);
}

/// A replayed request of a closed connection opens none, from any address.
#[test]
fn a_request_cannot_be_replayed_after_its_connection() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_config());
    let mut request = requests(&mut lan, n).remove(0);
    let mut first = request.clone();
    lan.server.handle_datagram(lan.now, address(n), &mut first).unwrap();
    lan.run_with(11_000, |_, _| false);
    assert_eq!(lan.server.stats().connections, 0, "the client never continued");
    // As long as the client may still ask, it gets the close in answer: once, in fewer bytes than it sent.
    let mut close = Vec::new();
    for (from, is_answered) in [(address(n), true), (address(n), false), (address(50), false)] {
        let refused = lan.server.handle_datagram(lan.now, from, &mut request.clone());
        assert_eq!(refused, Err(DropReason::Replayed));
        let answer = lan.server.poll_datagram(lan.now, &mut close);
        assert_eq!(answer.is_some(), is_answered);
        assert!(close.len() < 300, "{} bytes", close.len());
    }
    assert_eq!(lan.server.stats().closes_repeated, 1);
    lan.run_with(16_000, |_, _| false);
    let refused = lan.server.handle_datagram(lan.now, address(n), &mut request);
    assert_eq!(refused, Err(DropReason::Replayed));
    assert_eq!(lan.server.poll_datagram(lan.now, &mut Vec::new()), None);
}

#[test]
fn a_wrong_secret_is_refused_with_a_reason() {
    let mut lan = Lan::new(server_config());
    let secret = Secret::from_bytes([99; 32]);
    let n = lan.add(client_with(Credentials::Secret { secret, identity: None }));
    lan.run(900);
    assert_eq!(end_of(&lan, n), None, "a refusal without a check takes effect after 1 s");
    lan.run(200);
    assert_eq!(end_of(&lan, n), Some(&CloseReason::Refused(RefusalCode::Key)));
}

/// An observer on the path can send a false refusal; it does not stop a client that the server accepts.
#[test]
fn a_false_refusal_is_only_a_hint() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_config());
    let request = requests(&mut lan, n).remove(0);
    let mut refusal = vec![0x06];
    refusal.extend_from_slice(&request[5..13]);
    refusal.extend_from_slice(&[2, 0]);
    refusal.extend_from_slice(&[0; 16]);
    lan.clients[n].handle_datagram(lan.now, server_address(), &mut refusal).unwrap();
    // A refusal that claims to be verified needs the check.
    refusal[9] = 3;
    let refused = lan.clients[n].handle_datagram(lan.now, server_address(), &mut refusal);
    assert_eq!(refused, Err(DropReason::BadCheckValue));
    lan.run(400);
    assert!(lan.clients[n].connection().is_some(), "its second request is answered");
}

#[test]
fn a_full_server_refuses_with_a_check() {
    let mut config = server_config();
    (config.limits.connections, config.limits.line) = (1, 0);
    let mut lan = Lan::new(config);
    lan.add(client_config());
    lan.settle();
    let late = lan.add(client_config());
    lan.settle();
    lan.clients[late].handle_timeout(lan.now);
    lan.settle();
    assert_eq!(end_of(&lan, late), Some(&CloseReason::Refused(RefusalCode::Full)));
}

#[test]
fn a_server_that_shuts_down_closes_every_connection() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.server.shut_down(lan.now);
    lan.settle();
    assert!(matches!(end_of(&lan, 0), Some(CloseReason::There { code, .. }) if code.0 == 5));
    let late = lan.add(client_config());
    lan.settle();
    assert_eq!(end_of(&lan, late), Some(&CloseReason::Refused(RefusalCode::ShuttingDown)));
    lan.run(4_000);
    assert_eq!(lan.server.stats().connections, 0);
}

/// A refusal of another version names those that the server supports.
#[test]
fn an_unknown_version_is_refused_with_the_supported_ones() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let mut request = requests(&mut lan, 0).remove(0);
    request[1] = 9;
    let _refused = lan.server.handle_datagram(lan.now, address(0), &mut request);
    let mut answer = Vec::new();
    assert!(lan.server.poll_datagram(lan.now, &mut answer).is_some());
    assert_eq!(answer[9..12], [1, 1, 1], "code 1, one version, version 1");
    lan.clients[0].handle_datagram(lan.now, server_address(), &mut answer).unwrap();
    let lost = |way, _: &mut Vec<u8>| !matches!(way, Way::Up(_));
    lan.run_with(1_100, lost);
    assert_eq!(end_of(&lan, 0), Some(&CloseReason::Refused(RefusalCode::Version)));
}

#[test]
fn an_absent_server_is_noticed() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_config());
    lan.run_with(10_001, |_, _| false);
    assert_eq!(end_of(&lan, n), Some(&CloseReason::NoAnswer));
    // One each 250 ms, for ten seconds.
    assert_eq!(lan.clients[n].wire_bytes().sent, 40 * 1200);
}

#[test]
fn a_token_lets_its_client_in_once() {
    let mut lan = Lan::new(token_server());
    let token = token(&claims(), 1);
    let n = lan.add(client_with(Credentials::Token(token.clone())));
    lan.settle();
    assert!(lan.clients[n].connection().is_some());
    let asked = lan.server_events.iter().find_map(|(_, event)| match event {
        ServerEvent::Connecting { token, .. } => token.clone(),
        _ => None,
    });
    assert_eq!(asked.unwrap().user_data, b"red team");
    let thief = lan.add(client_with(Credentials::Token(token)));
    lan.settle();
    assert_eq!(end_of(&lan, thief), Some(&CloseReason::Refused(RefusalCode::TokenUsed)));
}

#[test]
fn an_expired_token_is_refused_with_a_reason() {
    let mut lan = Lan::new(token_server());
    lan.now = Instant::from_millis(62_000);
    lan.server.set_unix_time(lan.now, UNIX_TIME + 62);
    let n = lan.add(client_with(Credentials::Token(token(&claims(), 2))));
    lan.run(1_100);
    assert_eq!(end_of(&lan, n), Some(&CloseReason::Refused(RefusalCode::TokenExpired)));
}

#[test]
fn a_token_for_another_server_is_refused() {
    let mut lan = Lan::new(token_server());
    let mut claims = claims();
    claims.servers = TokenServers::One(address(500));
    let n = lan.add(client_with(Credentials::Token(token(&claims, 3))));
    lan.run(1_100);
    assert_eq!(end_of(&lan, n), Some(&CloseReason::Refused(RefusalCode::WrongServer)));
    assert_eq!(lan.server.drops().get(DropReason::WrongServer), 1, "the refusal is verified");
}

/// H-6c: a token with the client's address raises the limit of the first flight to 80 times; one with another
/// address does not lower it.
#[test]
fn an_address_in_a_token_only_raises_the_credit() {
    for (client_address, responses) in [(address(0), 20..81), (address(5_000), 3..4)] {
        let mut lan = Lan::new(token_server());
        let claims = claims().with_client_address(Some(client_address));
        let n = lan.add(client_with(Credentials::Token(token(&claims, 4))));
        for mut request in requests(&mut lan, n) {
            lan.server.handle_datagram(lan.now, address(n), &mut request).unwrap();
        }
        let (id, _) = lan.server.poll_event(lan.now).unwrap();
        let world = Block::new(7, vec![1; 50_000]);
        lan.server.connection_mut(id).unwrap().send_block(lan.now, &world).unwrap();
        let (mut sent, mut datagram) = (0, Vec::new());
        while lan.server.poll_datagram(lan.now, &mut datagram).is_some() {
            sent += 1;
        }
        assert!(responses.contains(&sent), "{sent} responses");
    }
}

#[test]
fn a_required_identity_is_checked() {
    let identity = Identity::new(Secret::from_bytes([21; 32]));
    let public = identity.public();
    let credentials = ServerCredentials::default().with_secret(secret()).with_identity(identity);
    let mut lan = Lan::new(with_credentials(credentials));
    let right =
        lan.add(client_with(Credentials::Secret { secret: secret(), identity: Some(public) }));
    let none = lan.add(client_with(Credentials::Secret { secret: secret(), identity: None }));
    let other = Identity::new(Secret::from_bytes([22; 32])).public();
    let wrong =
        lan.add(client_with(Credentials::Secret { secret: secret(), identity: Some(other) }));
    lan.run(300);
    assert!(lan.clients[right].connection().is_some());
    assert!(lan.clients[none].connection().is_some(), "a client that requires none connects");
    assert!(lan.clients[wrong].connection().is_none());
}

/// 3.5 and 3.6: above its limit of handshakes a server requires a cookie, and the client connects one
/// round trip later.
#[test]
fn a_busy_server_asks_for_a_cookie() {
    let mut config = server_config();
    config.limits.handshakes_without_cookie = 1;
    let mut lan = Lan::new(config);
    let first = lan.add(client_config());
    let mut request = requests(&mut lan, first).remove(0);
    lan.server.handle_datagram(lan.now, address(first), &mut request).unwrap();
    let second = lan.add(client_config());
    let mut lengths = Vec::new();
    lan.settle_with(|way, datagram| {
        if way == Way::Down(second) {
            lengths.push(datagram.len());
        }
        way != Way::Down(first)
    });
    assert_eq!(lengths[0], 29, "a retry");
    assert!(lan.clients[second].connection().is_some());
    assert_eq!(lan.server.drops().get(DropReason::NoCookie), 1);
    // The cookie is valid for its address only.
    let third = lan.add(client_config());
    let mut request = requests(&mut lan, third).remove(0);
    let refused = lan.server.handle_datagram(lan.now, address(third), &mut request);
    assert_eq!(refused, Err(DropReason::NoCookie));
    let mut retry = Vec::new();
    assert!(lan.server.poll_datagram(lan.now, &mut retry).is_some());
    lan.clients[third].handle_datagram(lan.now, server_address(), &mut retry).unwrap();
    let mut with_cookie = requests(&mut lan, third).remove(0);
    let elsewhere = lan.server.handle_datagram(lan.now, address(99), &mut with_cookie.clone());
    assert_eq!(elsewhere, Err(DropReason::NoCookie));
    assert!(lan.server.handle_datagram(lan.now, address(third), &mut with_cookie).is_ok());
}

#[test]
fn open_mode_is_off_by_default() {
    let mut lan = Lan::new(server_config());
    let n = lan.add(client_with(Credentials::Open));
    lan.run(1_100);
    assert_eq!(end_of(&lan, n), Some(&CloseReason::Refused(RefusalCode::Key)));
    let open = ServerCredentials::default().with_open_access();
    let mut lan = Lan::joined(with_credentials(open), client_with(Credentials::Open));
    lan.client(0).send_message(&b"hello"[..]).unwrap();
    lan.settle();
    let hello = ServerEvent::Connection(Event::Message { channel: 0, data: b"hello"[..].into() });
    assert!(lan.server_events.iter().any(|(_, event)| *event == hello));
}

/// H-3.2b.
#[test]
fn aes_is_taken_where_both_have_it() {
    use AesSupport::{Hardware, Software};
    for (server_has, client_has, suite) in [
        (Hardware, Hardware, Suite::Aes256Gcm),
        (Hardware, Software, Suite::ChaCha20Poly1305),
        (Software, Hardware, Suite::ChaCha20Poly1305),
    ] {
        let mut lan = Lan::with_aes(server_config(), server_has, client_has);
        lan.add(client_config());
        lan.settle();
        assert_eq!(lan.client(0).stats().suite, Some(suite));
        assert_eq!(lan.peer().stats().suite, Some(suite));
    }
}

/// A server that restarts with the same seed would use the same keys for the same request; the driver must
/// provide a new seed. With another seed the machine sends other bytes.
#[test]
fn two_runs_of_a_server_share_no_keys() {
    let mut first_flights = Vec::new();
    for seed in [[1; 32], [2; 32]] {
        let config = server_config();
        let mut server =
            haulier_proto::server::ServerMachine::new(Instant::ZERO, UNIX_TIME, config, seed)
                .unwrap();
        let mut client = ClientMachine::new(Instant::ZERO, client_config(), [3; 32]).unwrap();
        let mut datagram = Vec::new();
        assert!(client.poll_datagram(Instant::ZERO, &mut datagram).is_some());
        server.handle_datagram(Instant::ZERO, address(0), &mut datagram).unwrap();
        assert!(server.poll_datagram(Instant::ZERO, &mut datagram).is_some());
        first_flights.push(datagram[9..].to_vec());
    }
    let same = first_flights[0].iter().zip(&first_flights[1]).filter(|(a, b)| a == b).count();
    assert!(same < 16, "{same} bytes are equal");
}

/// H-2.1: ids of open connections differ, and the server distinguishes its own from random ones.
#[test]
fn every_connection_has_an_id_of_its_own() {
    let mut lan = Lan::new(server_config());
    let mut ids = std::collections::BTreeSet::new();
    for n in 0..200 {
        lan.add(client_config());
        lan.settle_with(|way, datagram| {
            if way == Way::Up(n) && datagram[0] == 0x0c {
                ids.insert(datagram[1..9].to_vec());
            }
            true
        });
    }
    assert_eq!(ids.len(), 200);
}

/// H-3.6a: the rate of refusals is limited for all sources together, without state for each.
#[test]
fn refusals_are_rate_limited() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let request = requests(&mut lan, 0).remove(0);
    let mut answers = 0;
    for millis in 0..2_000u64 {
        lan.now = Instant::from_millis(millis);
        for n in 0..5 {
            let mut forged = request.clone();
            forged[1199] ^= 1;
            let from = address(n * 1_000 + millis as usize);
            assert!(lan.server.handle_datagram(lan.now, from, &mut forged).is_err());
        }
        while lan.server.poll_datagram(lan.now, &mut Vec::new()).is_some() {
            answers += 1;
        }
    }
    assert!((250..=301).contains(&answers), "{answers} refusals of 10,000 in 2 s");
}
