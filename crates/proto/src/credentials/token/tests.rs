//! Round trips, each refusal, every flipped bit and every cut.

use alloc::format;

use proptest::prelude::*;

use super::*;
use crate::credentials::{TokenRate, TokenServers};

const PROTOCOL: u64 = 0x1122_3344_5566_7788;
const EXPIRY: u64 = 2_000_000_000;

fn key() -> TokenKey {
    TokenKey { id: 7, key: Secret::from_bytes([1; 32]) }
}

fn secret() -> Secret {
    Secret::from_bytes([2; 32])
}

fn claims() -> TokenClaims {
    TokenClaims {
        client_id: *b"player 1",
        servers: TokenServers::Each(
            ["192.0.2.1:4000", "[2001:db8::1]:4001"].map(|text| text.parse().unwrap()).into(),
        ),
        issued_unix: EXPIRY - 60,
        expiry_unix: EXPIRY,
        client_address: Some("198.51.100.3:0".parse().unwrap()),
        min_rate: TokenRate::from_bps(80_000),
        max_rate: None,
        user_data: b"team red".to_vec(),
    }
}

fn issue(claims: &TokenClaims) -> ConnectToken {
    key().issue(PROTOCOL, claims, secret(), [3; 24]).unwrap()
}

#[test]
fn a_token_goes_all_the_way() {
    let token = issue(&claims()).with_identity([4; 32]);
    let carried = ConnectToken::from_bytes(&token.to_bytes()).unwrap();
    assert_eq!(carried, token);
    assert_eq!(ConnectToken::parse(&format!("  {}\n", token.to_text())), Ok(token));
    assert_eq!(carried.secret(), &secret());
    assert_eq!((carried.protocol_id(), carried.expiry_unix()), (PROTOCOL, EXPIRY));
    assert_eq!(
        (carried.servers(), carried.identity()),
        (claims().servers.addresses(), Some(&[4; 32]))
    );
    assert_eq!(TokenKey::id_of(carried.sealed()), Some(7));
    let opened = key().open(PROTOCOL, carried.sealed(), EXPIRY - 1).unwrap();
    assert_eq!(opened, OpenedToken { claims: claims(), secret: secret(), nonce: [3; 24] });
}

/// The bounds of the standard's request table are those of the fields. The largest is well below 640.
#[test]
fn the_smallest_and_the_largest() {
    let least = issue(&TokenClaims::new(0, EXPIRY, TokenServers::Every));
    assert_eq!(least.sealed().len(), MIN_SEALED_BYTES);
    assert_eq!(MIN_SEALED_BYTES, 113);
    let v6: SocketAddr = "[2001:db8::1]:4001".parse().unwrap();
    let most = TokenClaims {
        servers: TokenServers::Each(vec![v6; 8]),
        client_address: Some(v6),
        user_data: vec![9; 256],
        ..claims()
    };
    let token = issue(&most);
    assert_eq!(token.sealed().len(), 540);
    assert_eq!(key().open(PROTOCOL, token.sealed(), 0).unwrap().claims, most);
}

#[test]
fn claims_have_limits() {
    let refused =
        |claims: TokenClaims| key().issue(PROTOCOL, &claims, secret(), [3; 24]).unwrap_err();
    let none = TokenServers::Each(Vec::new());
    assert_eq!(refused(TokenClaims { servers: none, ..claims() }), IssueError::NoServer);
    let late = TokenClaims { issued_unix: EXPIRY, ..claims() };
    assert_eq!(refused(late), IssueError::ExpiresBeforeIssued);
    let servers = TokenServers::Each(vec![SocketAddr::from(([0; 4], 1)); 9]);
    assert_eq!(refused(TokenClaims { servers, ..claims() }), IssueError::TooManyServers);
    let user_data = vec![0; 257];
    assert_eq!(refused(TokenClaims { user_data, ..claims() }), IssueError::TooMuchUserData);
}

/// A token has bytes per second, the rest of the library bits: the conversion is in one place.
#[test]
fn a_rate_is_in_bits_and_never_zero() {
    let bps = |bps| TokenRate::from_bps(bps).map(TokenRate::bps);
    assert_eq!([0, 1, 8, 80_001].map(bps), [None, Some(8), Some(8), Some(80_008)]);
    let max = u64::from(u32::MAX) * 8;
    assert_eq!([max, max + 1, u64::MAX].map(bps), [Some(max), None, None]);
}

#[test]
fn each_refusal_in_its_order() {
    let sealed = issue(&claims()).sealed().to_vec();
    let other_key = TokenKey { key: Secret::from_bytes([9; 32]), ..key() };
    let other_id = TokenKey { id: 8, ..key() };
    let now = EXPIRY - 1;
    assert_eq!(key().open(PROTOCOL + 1, &sealed, now), Err(TokenError::BadSeal));
    assert_eq!(other_key.open(PROTOCOL, &sealed, now), Err(TokenError::BadSeal));
    assert_eq!(other_id.open(PROTOCOL, &sealed, now), Err(TokenError::UnknownKey));
    assert_eq!(other_id.open(PROTOCOL, &sealed, EXPIRY), Err(TokenError::Expired));
    let mut newer = sealed.clone();
    newer[0] = b'2';
    assert_eq!(key().open(PROTOCOL, &newer, EXPIRY), Err(TokenError::Malformed));
    assert_eq!(TokenKey::id_of(&newer), None);
    for length in [0, 1, 37, 112, 641, 1200] {
        let cut: Vec<u8> = sealed.iter().copied().cycle().take(length).collect();
        assert_eq!(key().open(PROTOCOL, &cut, now), Err(TokenError::Malformed), "{length}");
    }
}

#[test]
fn every_flipped_bit_and_every_cut_of_the_seal_is_refused() {
    let sealed = issue(&claims()).sealed().to_vec();
    for bit in 0..8 * sealed.len() {
        let mut other = sealed.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(key().open(PROTOCOL, &other, 0).is_err(), "bit {bit}");
    }
    for length in 0..sealed.len() {
        assert!(key().open(PROTOCOL, &sealed[..length], 0).is_err(), "{length} bytes");
    }
    for more in [1, 7, 100] {
        let longer = [&sealed[..], &vec![0; more]].concat();
        assert_eq!(key().open(PROTOCOL, &longer, 0), Err(TokenError::BadSeal));
    }
}

/// A matchmaker with a bug, or of a later version: sealed well, and still not taken.
#[test]
fn sealed_nonsense_is_refused_without_a_panic() {
    let claims_at = |offset: usize, value: u8| {
        let mut plain = Vec::new();
        claims().write(&secret(), &mut plain).unwrap();
        plain[offset] = value;
        TokenClaims::read(&plain, EXPIRY)
    };
    assert!(claims_at(0, 1).is_ok());
    assert_eq!(claims_at(48, 7).unwrap_err(), ReadError::Wrong, "unknown flag");
    assert_eq!(claims_at(49, 5).unwrap_err(), ReadError::Wrong, "no such address");
    assert_eq!(claims_at(56, 9).unwrap_err(), ReadError::Wrong, "nine servers");
    assert_eq!(claims_at(48, 1).unwrap_err(), ReadError::Wrong, "two servers, and not for several");
    let mut plain = Vec::new();
    claims().write(&secret(), &mut plain).unwrap();
    plain.push(0);
    assert_eq!(TokenClaims::read(&plain, EXPIRY).unwrap_err(), ReadError::Wrong, "left over");
}

#[test]
fn a_clients_part_says_what_is_wrong() {
    let token = issue(&claims());
    let bytes = token.to_bytes();
    for length in 4..bytes.len() {
        assert_eq!(ConnectToken::from_bytes(&bytes[..length]), Err(ConnectTokenError::CutOff));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(ConnectToken::from_bytes(&longer), Err(ConnectTokenError::Damaged));
    let with = |offset: usize, value| {
        let mut other = bytes.clone();
        other[offset] = value;
        ConnectToken::from_bytes(&other).unwrap_err()
    };
    assert_eq!(with(3, b'2'), ConnectTokenError::NotAToken);
    assert_eq!(with(52, 9), ConnectTokenError::Damaged, "nine servers");
    assert_eq!(with(53 + 26, 2), ConnectTokenError::Damaged, "unknown flag");
    assert_eq!(with(53 + 28, 3), ConnectTokenError::Damaged, "a sealed part above 640 bytes");
    assert_eq!(ConnectToken::parse("haulier1:AAAA"), Err(ConnectTokenError::NotAToken));
    assert_eq!(ConnectToken::parse("haulier-token1:A A"), Err(ConnectTokenError::Damaged));
    assert!(!format!("{token:?}").contains("secret"));
}

proptest! {
    #[test]
    fn any_claims_come_back(
        client_id in any::<[u8; 8]>(),
        servers in proptest::collection::vec(any::<SocketAddr>(), 0..=8),
        is_one in any::<bool>(),
        client_address in any::<Option<SocketAddr>>(),
        most in 1u32..,
        user_data in proptest::collection::vec(any::<u8>(), 0..=256),
    ) {
        // Neither scope nor flow of an IPv6 address is of any use on another machine.
        let plain = |a: SocketAddr| SocketAddr::new(a.ip(), a.port());
        let servers: Vec<_> = servers.into_iter().map(plain).collect();
        let servers = match &*servers {
            [] => TokenServers::Every,
            [one] if is_one => TokenServers::One(*one),
            _ => TokenServers::Each(servers),
        };
        let claims = TokenClaims {
            client_id,
            servers,
            issued_unix: 5,
            expiry_unix: EXPIRY,
            client_address: client_address.map(plain),
            min_rate: None,
            max_rate: TokenRate::from_bps(u64::from(most) * 8),
            user_data,
        };
        let token = issue(&claims);
        prop_assert_eq!(key().open(PROTOCOL, token.sealed(), 0).unwrap().claims, claims);
        prop_assert_eq!(ConnectToken::parse(&token.to_text()), Ok(token));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        prop_assert!(key().open(PROTOCOL, &bytes, 0).is_err());
        prop_assert!(ConnectToken::from_bytes(&[&MAGIC[..], &bytes].concat()).is_err());
        let _whatever = TokenClaims::read(&bytes, 0);
    }
}
