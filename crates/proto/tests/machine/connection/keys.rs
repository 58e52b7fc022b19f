//! What two servers, or two copies of one, must not share; the limit of forged datagrams; a clock without a
//! time of day.

use haulier_proto::client::{ClientMachine, Credentials};
use haulier_proto::connection::{CloseCode, CloseReason, ConfigError, ConnectionState};
use haulier_proto::credentials::{Identity, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::internals::{DataHeader, Role, WireId};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerMachine};
use haulier_proto::{DropReason, Instant, Machine};

use super::{client_with, end_of, ends_at_server};
use crate::lan::{
    Lan, PROTOCOL_ID, UNIX_TIME, Way, address, client_config, secret, server_address, server_config,
};

fn token_key() -> TokenKey {
    TokenKey { id: 5, key: Secret::from_bytes([8; 32]) }
}

fn config(credentials: ServerCredentials) -> ServerConfig {
    ServerConfig::new(PROTOCOL_ID, credentials).with_addresses(vec![server_address()])
}

/// Data from this client, as an observer sees it.
fn observed(lan: &mut Lan, n: usize) -> Vec<u8> {
    let mut data = Vec::new();
    lan.client(n).ping();
    lan.settle_with(|way, datagram| {
        if way == Way::Up(n) && datagram[0] & 0xfc == 0x0c {
            data = datagram.to_vec();
        }
        true
    });
    data
}

/// What a server answers to data of this id.
fn answers(server: &mut ServerMachine, now: Instant, to: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut answer) = (Vec::new(), Vec::new());
    let mut probe = [&[0x0c], to, &[0; 20]].concat();
    let refused = server.handle_datagram(now, address(66), &mut probe);
    assert_eq!(refused, Err(DropReason::UnknownConnection));
    while server.poll_datagram(now, &mut answer).is_some() {
        all.push(answer.clone());
    }
    all
}

/// 3.6: the reset key came from the token key or the identity, which the servers of a fleet share. An
/// observer sent 26 bytes with the id of a connection to another server of the fleet, and had the reset that
/// ends it.
#[test]
fn a_sister_server_ends_no_connection() {
    let identity = Identity::new(Secret::from_bytes([21; 32]));
    let by_token = ServerCredentials::default().with_token_key(token_key());
    let by_secret = ServerCredentials::default().with_secret(secret()).with_identity(identity);
    let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 60, TokenServers::One(server_address()));
    let token = token_key().issue(PROTOCOL_ID, &claims, Secret::from_bytes([1; 32]), [1; 24]);
    let cases =
        [(by_token, client_with(Credentials::Token(token.unwrap()))), (by_secret, client_config())];
    let own = |byte| Some(Secret::from_bytes([byte; 32]));
    for (credentials, client) in cases {
        for (one, other) in [(None, None), (own(1), None), (None, own(1)), (own(1), own(2))] {
            let with = |reset_secret| {
                let mut credentials = credentials.clone();
                credentials.reset_secret = reset_secret;
                config(credentials)
            };
            let mut lan = Lan::joined(with(one), client.clone());
            let seen = observed(&mut lan, 0);
            for seed in 10..100 {
                let sister =
                    ServerMachine::new(lan.now, UNIX_TIME, with(other.clone()), [seed; 32]);
                // One id in 65,536 looks like the sister's own, and then its token is another.
                for mut reset in answers(&mut sister.unwrap(), lan.now, &seen[1..9]) {
                    let refused =
                        lan.clients[0].handle_datagram(lan.now, server_address(), &mut reset);
                    assert_eq!(refused, Err(DropReason::BadTag));
                }
            }
            assert_eq!(lan.client(0).state(), ConnectionState::Connected);
        }
    }
}

/// A reset secret must not be a secret that a client or another server has.
#[test]
fn a_reset_secret_is_nothing_elses_secret() {
    let identity = Identity::new(Secret::from_bytes([21; 32]));
    let credentials = ServerCredentials::default()
        .with_secret(secret())
        .with_other_secret(Secret::from_bytes([22; 32]))
        .with_token_key(token_key())
        .with_identity(identity);
    let with = |reset| {
        let config = config(credentials.clone().with_reset_secret(Secret::from_bytes(reset)));
        ServerMachine::new(Instant::ZERO, UNIX_TIME, config, [1; 32]).map(|_| ())
    };
    for shared in [*secret().as_bytes(), [22; 32], [8; 32], [21; 32]] {
        assert_eq!(with(shared), Err(ConfigError::SharedResetSecret));
    }
    assert_eq!(with([9; 32]), Ok(()));
}

/// 2.1: the ids of a server begin with 48 random bits, so that their tokens cannot be collected. With 32 bits
/// a hundred thousand of them have one twice; with 48, one in fifty thousand such runs has.
#[test]
fn ids_are_too_many_to_collect_their_tokens() {
    let resets = haulier_proto::internals::ResetKey::random(Secret::from_bytes([1; 32]));
    let mut entropy = haulier_proto::internals::Entropy::new([2; 32]);
    let ids: std::collections::BTreeSet<_> =
        (0..200_000).map(|_| resets.id(entropy.bytes())).collect();
    assert_eq!(ids.len(), 200_000);
}

/// RFC 9001, 6.6: a connection at which so many datagrams were forged that one more might pass is closed,
/// with a code that says so. The limit of the suite is 2^36 or more; here it is 5.
#[test]
fn forgeries_up_to_the_limit_close() {
    let mut server = server_config();
    server.connection.max_failed_openings = 5;
    let mut lan = Lan::joined(server, client_config());
    let seen = observed(&mut lan, 0);
    let to = WireId(seen[1..9].try_into().unwrap());
    for number in 0..5 {
        assert!(lan.peer().state().is_open(), "closed after {number}");
        let mut forged = Vec::new();
        let phase = number % 2 == 1;
        DataHeader { from: Role::Client, phase, to, number: 1_000 + number }.write(&mut forged);
        forged.resize(60, 7);
        let refused = lan.server.handle_datagram(lan.now, address(9), &mut forged);
        assert_eq!(refused, Err(DropReason::BadTag));
    }
    lan.settle();
    let here = CloseReason::Here(CloseCode::AEAD_LIMIT);
    assert_eq!(ends_at_server(&lan), [&here]);
    let there = CloseReason::There { code: CloseCode::AEAD_LIMIT, reason: String::new() };
    assert_eq!(end_of(&lan, 0), Some(&there));
}

/// A client's request, from this seed.
fn request(seed: u8) -> Vec<u8> {
    let mut client = ClientMachine::new(Instant::ZERO, client_config(), [seed; 32]).unwrap();
    let mut request = Vec::new();
    assert!(client.poll_datagram(Instant::ZERO, &mut request).is_some());
    request
}

/// What the handshake of a server shows of its keys: the public key that its own are agreed on with.
fn shown(millis: u64, from: usize, mut request: Vec<u8>, fresh: Option<[u8; 32]>) -> [u8; 32] {
    // A copy of the server: it has the same seed, and has done the same.
    let mut server =
        ServerMachine::new(Instant::ZERO, UNIX_TIME, server_config(), [1; 32]).unwrap();
    let now = Instant::from_millis(millis);
    assert!(server.wants_entropy(&request));
    if let Some(fresh) = fresh {
        server.mix_entropy(&fresh);
    }
    server.handle_datagram(now, address(from), &mut request).unwrap();
    let mut response = Vec::new();
    assert!(server.poll_datagram(now, &mut response).is_some());
    response[9..41].try_into().unwrap()
}

/// Two servers that come from one snapshot of a virtual machine share no keys: the time, the address and the
/// request are in them, and the driver's fresh random bytes, without which one request that is played to both
/// at the same moment would have the same answer.
#[test]
fn two_copies_of_a_server_share_no_keys() {
    let one = shown(0, 0, request(3), None);
    assert_eq!(one, shown(0, 0, request(3), None), "a seed replays a handshake");
    let others = [
        shown(0, 0, request(4), None),
        shown(1, 0, request(3), None),
        shown(0, 1, request(3), None),
        shown(0, 0, request(3), Some([1; 32])),
        shown(0, 0, request(3), Some([2; 32])),
    ];
    let all: std::collections::BTreeSet<_> = others.into_iter().chain([one]).collect();
    assert_eq!(all.len(), 6);
}

/// Two servers that were started from one snapshot, which had no connections, end none of each other's.
#[test]
fn copies_of_an_idle_server_end_no_connection() {
    let mut lan = Lan::new(server_config());
    lan.server.mix_entropy(&[1; 32]);
    lan.add(client_config());
    lan.settle();
    let seen = observed(&mut lan, 0);
    let mut copy = Lan::new(server_config()).server;
    assert_eq!(answers(&mut copy, lan.now, &seen[1..9]), [] as [Vec<u8>; 0]);
    copy.mix_entropy(&[2; 32]);
    assert_eq!(answers(&mut copy, lan.now, &seen[1..9]), [] as [Vec<u8>; 0]);
}

/// 6: a server that cannot tell the time refuses every token. Before, a clock that could not be read was one
/// that showed 1970, and all expired tokens passed.
#[test]
fn without_a_time_of_day_no_token_passes() {
    let credentials =
        ServerCredentials::default().with_token_key(token_key()).with_secret(secret());
    let mut lan = Lan::new(config(credentials));
    lan.server.forget_unix_time();
    for (n, expiry) in [UNIX_TIME - 60, UNIX_TIME + 60, u64::MAX].into_iter().enumerate() {
        let servers = TokenServers::One(server_address());
        let claims = TokenClaims::new(UNIX_TIME.min(expiry - 1), expiry, servers);
        let nonce = [n as u8; 24];
        let token = token_key().issue(PROTOCOL_ID, &claims, secret(), nonce).unwrap();
        lan.add(client_with(Credentials::Token(token)));
    }
    lan.add(client_config());
    lan.settle();
    assert_eq!(lan.server.drops().get(DropReason::NoTimeOfDay), 3);
    let joined = |lan: &Lan| {
        lan.clients.iter().map(|client| client.connection().is_some()).collect::<Vec<_>>()
    };
    assert_eq!(joined(&lan), [false, false, false, true], "only the one that needs no time");
    lan.server.set_unix_time(lan.now, UNIX_TIME);
    lan.run(400);
    assert_eq!(joined(&lan), [false, true, true, true]);
}
