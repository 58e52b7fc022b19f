//! The checks of datagrams that carry no seal: requests, refusals, cookies, resets and the mode `open`.
//!
//! Each is the start of a keyed BLAKE3, or in mode `open` a crc32 that finds damage and strangers and
//! proves nothing. All are compared in constant time; the crc too, it costs nothing.

use core::net::{IpAddr, SocketAddr};

use super::secret::keyed;
use super::{Secret, equal, kdf};

/// Bytes in a cookie: its time and 16 of a hash.
pub const COOKIE_BYTES: usize = 20;

/// The unit of a cookie's time, in seconds. The present unit and the last one are good, so a cookie
/// lives for 10 to 20 s: longer than any round trip, too short to gather many.
pub const COOKIE_UNIT_SECONDS: u32 = 10;

/// The two keys behind a request: of its check and of its Noise messages (STANDARD-1, 3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKeys {
    check: Secret,
    noise_psk: Secret,
}

impl RequestKeys {
    /// From the secret of a ticket or token, and the application's protocol id.
    #[must_use]
    pub fn new(secret: &Secret, protocol_id: u64) -> Self {
        let parts = [secret.as_bytes().as_slice(), &protocol_id.to_le_bytes()];
        Self {
            check: kdf("haulier/1 2026 request check", &parts),
            noise_psk: kdf("haulier/1 2026 noise psk", &parts),
        }
    }

    /// The key both Noise messages are mixed with.
    #[must_use]
    pub const fn noise_psk(&self) -> &Secret {
        &self.noise_psk
    }

    /// The key of [`check`](Self::check), for golden bytes.
    #[must_use]
    pub const fn check_key(&self) -> &Secret {
        &self.check
    }

    /// The check of a request or refusal whose bytes before it are these.
    #[must_use]
    pub fn check(&self, bytes: &[u8]) -> [u8; 16] {
        keyed(&self.check, &[bytes])
    }

    /// Whether this is the check over these bytes.
    #[must_use]
    pub fn verify(&self, bytes: &[u8], check: &[u8; 16]) -> bool {
        equal(&self.check(bytes), check)
    }
}

/// The check of a request or refusal in mode `open`: a crc32 that starts from the protocol id, then
/// 12 zero bytes.
#[must_use]
pub fn open_check(protocol_id: u64, bytes: &[u8]) -> [u8; 16] {
    let mut check = [0; 16];
    if let Some(crc) = check.first_chunk_mut() {
        *crc = crc_from(protocol_id, &[bytes]).to_le_bytes();
    }
    check
}

/// Whether this is the check over these bytes in mode `open`, its zeros too.
#[must_use]
pub fn verify_open_check(protocol_id: u64, bytes: &[u8], check: &[u8; 16]) -> bool {
    equal(&open_check(protocol_id, bytes), check)
}

/// The tag of a response or data datagram in mode `open`: the sender's id, then a crc32 over protocol
/// id, the datagram so far and that id.
#[must_use]
pub fn open_tag(protocol_id: u64, sender_id: [u8; 8], datagram_so_far: &[u8]) -> [u8; 12] {
    let crc = crc_from(protocol_id, &[datagram_so_far, &sender_id]).to_le_bytes();
    let mut tag = [0; 12];
    tag.iter_mut().zip(sender_id.into_iter().chain(crc)).for_each(|(to, from)| *to = from);
    tag
}

/// Whether this is the tag of a datagram that `sender_id` made in mode `open`.
#[must_use]
pub fn verify_open_tag(
    protocol_id: u64,
    sender_id: [u8; 8],
    datagram_so_far: &[u8],
    tag: &[u8; 12],
) -> bool {
    equal(&open_tag(protocol_id, sender_id, datagram_so_far), tag)
}

fn crc_from(protocol_id: u64, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&protocol_id.to_le_bytes());
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Makes and knows cookies: proofs that a client reads what is sent to its address (STANDARD-1, 3.5).
#[derive(Clone, Debug)]
pub struct CookieKey(Secret);

impl CookieKey {
    /// The key of one run of a server. Random; it outlives no restart.
    #[must_use]
    pub const fn new(random: Secret) -> Self {
        Self(random)
    }

    /// A cookie for this client at this address. `time` counts units of [`COOKIE_UNIT_SECONDS`] since any
    /// moment that is fixed for the run.
    #[must_use]
    pub fn make(&self, time: u32, client_id: [u8; 8], address: SocketAddr) -> [u8; COOKIE_BYTES] {
        let ip = match address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let (time, port) = (time.to_le_bytes(), address.port().to_le_bytes());
        let hash: [u8; 16] = keyed(&self.0, &[&time, &client_id, &ip.octets(), &port]);
        let mut cookie = [0; COOKIE_BYTES];
        cookie.iter_mut().zip(time.into_iter().chain(hash)).for_each(|(to, from)| *to = from);
        cookie
    }

    /// Whether a cookie was made here for this client at this address, in the present unit of time or the
    /// one before it.
    #[must_use]
    pub fn verify(
        &self,
        now: u32,
        client_id: [u8; 8],
        address: SocketAddr,
        cookie: &[u8; COOKIE_BYTES],
    ) -> bool {
        let Some(time) = cookie.first_chunk() else { return false };
        let time = u32::from_le_bytes(*time);
        // The time is no secret: it is in the clear, and what it must be everybody knows.
        now.wrapping_sub(time) <= 1 && equal(&self.make(time, client_id, address), cookie)
    }
}

/// Makes a server's ids and the resets of connections it no longer knows (STANDARD-1, 2.1 and 3.6).
#[derive(Clone, Debug)]
pub struct ResetKey(Secret);

impl ResetKey {
    /// The key that comes back after a restart, from what a server keeps: the secret of its ticket, or
    /// its token key.
    #[must_use]
    pub fn derived(kept: &Secret) -> Self {
        Self(kdf("haulier/1 2026 reset key", &[kept.as_bytes()]))
    }

    /// A key for one run, for a server that keeps nothing.
    #[must_use]
    pub const fn random(random: Secret) -> Self {
        Self(random)
    }

    /// The server's id that begins with these 4 random bytes.
    #[must_use]
    pub fn id(&self, random: [u8; 4]) -> [u8; 8] {
        let proof: [u8; 4] = keyed(&self.0, &[b"id", &random]);
        let mut id = [0; 8];
        id.iter_mut().zip(random.into_iter().chain(proof)).for_each(|(to, from)| *to = from);
        id
    }

    /// Whether an id was made with this key, in this life or a former one. Noise passes once in 2^32.
    #[must_use]
    pub fn is_own_id(&self, id: [u8; 8]) -> bool {
        id.first_chunk().is_some_and(|random| equal(&self.id(*random), &id))
    }

    /// What a reset of the connection with this server id must hold.
    #[must_use]
    pub fn reset_token(&self, server_id: [u8; 8]) -> [u8; 16] {
        keyed(&self.0, &[b"reset", &server_id])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; 32])
    }

    #[test]
    fn a_check_is_of_its_secret_protocol_and_bytes() {
        let keys = RequestKeys::new(&secret(1), 5);
        let check = keys.check(b"request");
        assert!(keys.verify(b"request", &check));
        assert!(!keys.verify(b"requesu", &check));
        assert!(!RequestKeys::new(&secret(2), 5).verify(b"request", &check));
        assert!(!RequestKeys::new(&secret(1), 6).verify(b"request", &check));
        assert_ne!(keys.check_key(), keys.noise_psk());
        for bit in 0..128 {
            let mut other = check;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!keys.verify(b"request", &other), "bit {bit}");
        }
    }

    /// The zeros after the crc are part of it, so that a datagram has one form only.
    #[test]
    fn an_open_check_has_its_zeros() {
        let check = open_check(7, b"request");
        assert_eq!(check[4..], [0; 12]);
        assert!(verify_open_check(7, b"request", &check));
        assert!(!verify_open_check(8, b"request", &check));
        let mut other = check;
        other[15] = 1;
        assert!(!verify_open_check(7, b"request", &other));
    }

    #[test]
    fn an_open_tag_names_its_sender() {
        let id = [1, 2, 3, 4, 5, 6, 7, 8];
        let tag = open_tag(7, id, b"datagram");
        assert_eq!(tag[..8], id);
        assert_eq!(tag[8..], open_check(7, b"datagram\x01\x02\x03\x04\x05\x06\x07\x08")[..4]);
        assert!(verify_open_tag(7, id, b"datagram", &tag));
        assert!(!verify_open_tag(7, [1; 8], b"datagram", &tag));
        assert!(!verify_open_tag(7, id, b"datagran", &tag));
    }

    #[test]
    fn a_cookie_is_for_one_client_at_one_address_for_two_units() {
        let key = CookieKey::new(secret(3));
        let (id, address) = ([9; 8], "192.0.2.1:4000".parse().unwrap());
        let cookie = key.make(100, id, address);
        let good = [99, 100, 101, 102].map(|now| key.verify(now, id, address, &cookie));
        assert_eq!(good, [false, true, true, false]);
        assert!(!key.verify(100, [8; 8], address, &cookie));
        assert!(!key.verify(100, id, "192.0.2.1:4001".parse().unwrap(), &cookie));
        assert!(!key.verify(100, id, "192.0.2.2:4000".parse().unwrap(), &cookie));
        assert!(!CookieKey::new(secret(4)).verify(100, id, address, &cookie));
        for bit in 0..8 * COOKIE_BYTES {
            let mut other = cookie;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verify(100, id, address, &other), "bit {bit}");
        }
    }

    /// A socket of both families reports an IPv4 client as a mapped one, one of IPv4 does not.
    #[test]
    fn a_mapped_address_is_the_address() {
        let key = CookieKey::new(secret(3));
        let plain = key.make(5, [0; 8], "192.0.2.1:4000".parse().unwrap());
        let mapped = key.make(5, [0; 8], "[::ffff:192.0.2.1]:4000".parse().unwrap());
        assert_eq!(plain, mapped);
    }

    #[test]
    fn the_turn_of_the_cookie_clock_is_no_gap() {
        let (key, address) = (CookieKey::new(secret(3)), "192.0.2.1:4000".parse().unwrap());
        let cookie = key.make(u32::MAX, [0; 8], address);
        assert!(key.verify(0, [0; 8], address, &cookie));
        assert!(!key.verify(1, [0; 8], address, &cookie));
    }

    #[test]
    fn a_server_knows_its_ids_from_noise_and_after_a_restart() {
        let key = ResetKey::derived(&secret(5));
        let id = key.id([1, 2, 3, 4]);
        assert_eq!(id[..4], [1, 2, 3, 4]);
        assert!(ResetKey::derived(&secret(5)).is_own_id(id));
        assert!(!ResetKey::random(secret(5)).is_own_id(id));
        assert_eq!(ResetKey::derived(&secret(5)).reset_token(id), key.reset_token(id));
        assert_ne!(key.reset_token(id), key.reset_token(key.id([1, 2, 3, 5])));
        for bit in 0..64 {
            let mut other = id;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_own_id(other), "bit {bit}");
        }
    }
}
