//! The limits of keys, and what forged datagrams cost.

use alloc::vec::Vec;

use super::*;
use crate::connection::ConnectionConfig;
use crate::crypto::Secret;

/// Bytes of the header of the datagrams here.
const HEADER: usize = 13;

const SUITE: Suite = Suite::ChaCha20Poly1305;

const NEVER: KeyLimits = KeyLimits { datagrams: u64::MAX, lifetime: Duration::MAX };

fn end(role: Role, config: &ConnectionConfig) -> Protection {
    let secret = |byte| TrafficSecret::new(Secret::from_bytes([byte; 32]));
    let secrets = SplitSecrets { client_to_server: secret(1), server_to_client: secret(2) };
    Protection::sealed(Instant::ZERO, role, SUITE, secrets, config).unwrap()
}

fn receiving(protection: &Protection) -> &Receiving {
    let Protection::Sealed(sealed) = protection else { panic!("mode open") };
    &sealed.receive
}

/// A sealed datagram with 7 bytes in it.
fn sealed(from: &mut Protection, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut datagram = DatagramBuffer::behind(&mut bytes);
    datagram.vec().resize(HEADER + 7, 5);
    assert!(from.seal(number, HEADER, &mut datagram, &[]));
    bytes
}

fn open(at: &mut Protection, number: u64, phase: bool, bytes: &[u8]) -> Result<(), DropReason> {
    let mut bytes = bytes.to_vec();
    let keep = Duration::from_secs(1);
    let head = Head { number, phase, bytes: HEADER };
    at.open(Instant::ZERO, head, &mut bytes, || keep).map(|_| ())
}

/// H-2.3a: without an ack there is no key update, and the key seals no more datagrams than its limit.
#[test]
fn a_key_at_its_limit_seals_nothing() {
    let mut protection = end(Role::Client, &ConnectionConfig::default());
    let Protection::Sealed(sealed) = &mut protection else { unreachable!() };
    sealed.send.sealed = MAX_SEALED_PER_KEY - 1;
    let mut seal = |number| {
        let mut bytes = Vec::new();
        let mut datagram = DatagramBuffer::behind(&mut bytes);
        datagram.vec().resize(20, 0);
        protection.seal(number, HEADER, &mut datagram, &[])
    };
    assert!(seal(1));
    assert!(!seal(2));
}

/// A forged datagram of the other phase used to derive a secret and a key: six times the cost of one of the
/// present phase. The next key is made once, however many are forged, and the peer's update uses it.
#[test]
fn forged_datagrams_derive_no_keys() {
    let config = ConnectionConfig::default();
    let (mut client, mut server) = (end(Role::Client, &config), end(Role::Server, &config));
    let first = sealed(&mut client, 0);
    open(&mut server, 0, false, &first).unwrap();
    assert!(receiving(&server).next.is_none(), "an idle connection has two keys");
    assert_eq!(open(&mut server, 1, true, &[7; 40]), Err(DropReason::BadTag));
    assert!(receiving(&server).next.is_some());
    // Another derivation would give something else now, which the peer's update does not open with.
    let Protection::Sealed(inside) = &mut server else { unreachable!() };
    inside.receive.secret = TrafficSecret::new(Secret::from_bytes([9; 32]));
    for number in 2..100 {
        assert_eq!(open(&mut server, number, true, &[7; 40]), Err(DropReason::BadTag));
    }
    assert_eq!(receiving(&server).failed, 99, "each one was an opening");
    client.on_acked(0);
    assert!(client.send_phase(Instant::ZERO, 200, KeyLimits { datagrams: 1, ..NEVER }));
    let second = sealed(&mut client, 200);
    open(&mut server, 200, true, &second).unwrap();
    assert!(receiving(&server).next.is_none());
    // A late one of the phase before still opens.
    let late = sealed(&mut end(Role::Client, &config), 3);
    open(&mut server, 3, false, &late).unwrap();
}

/// RFC 9001, 6.6: after as many failures as the suite endures nothing is opened, not even what is genuine.
/// They are counted over key updates.
#[test]
fn failed_openings_are_counted_over_all_keys() {
    let config = ConnectionConfig::default().with_max_failed_openings(3);
    let (mut client, mut server) = (end(Role::Client, &config), end(Role::Server, &config));
    let first = sealed(&mut client, 0);
    open(&mut server, 0, false, &first).unwrap();
    assert!(open(&mut server, 1, false, &[7; 40]).is_err());
    client.on_acked(0);
    assert!(client.send_phase(Instant::ZERO, 2, KeyLimits { datagrams: 1, ..NEVER }));
    let second = sealed(&mut client, 2);
    open(&mut server, 2, true, &second).unwrap();
    // With the previous key, and with the present one.
    assert!(open(&mut server, 1, false, &[7; 40]).is_err());
    assert!(!server.is_used_up());
    assert!(open(&mut server, 3, true, &[7; 40]).is_err());
    assert!(server.is_used_up());
    let third = sealed(&mut client, 3);
    assert_eq!(open(&mut server, 3, true, &third), Err(DropReason::NotNow));
}

#[test]
fn the_limits_are_those_of_rfc_9001() {
    assert_eq!(max_failed(Suite::ChaCha20Poly1305), 1 << 36);
    assert_eq!(max_failed(Suite::Aes256Gcm), 1 << 52);
    let limit = receiving(&end(Role::Client, &ConnectionConfig::default())).max_failed;
    assert_eq!(limit, max_failed(SUITE), "a setting lowers it, and never raises it");
}
