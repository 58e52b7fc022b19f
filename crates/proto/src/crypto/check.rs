//! The checks of datagrams that are not encrypted: requests, refusals, cookies, resets and the mode `open`.
//!
//! Each is the start of a keyed BLAKE3; in mode `open` it is a crc32, which detects damage and datagrams of
//! other protocols, and proves nothing. All are compared in constant time.

use core::net::{IpAddr, SocketAddr};

use super::secret::keyed;
use super::{Secret, equal, kdf};

/// Bytes in a cookie: 4 of its time, 16 of a hash.
pub const COOKIE_BYTES: usize = 20;

/// The unit of a cookie's time, in seconds. The current and the previous unit are valid, so a cookie lasts 10
/// to 20 s: longer than any round trip, and too short to collect many.
pub(crate) const COOKIE_UNIT_SECONDS: u32 = 10;

/// The two keys of a request: for its check, and for its Noise messages (STANDARD-1, 3.1).
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

    /// The pre-shared key of both Noise messages.
    #[must_use]
    pub const fn noise_psk(&self) -> &Secret {
        &self.noise_psk
    }

    /// The key of [`check`](Self::check), to be compared with golden bytes.
    #[must_use]
    pub const fn check_key(&self) -> &Secret {
        &self.check
    }

    /// The check of a request or refusal, over the bytes before it.
    #[must_use]
    pub fn check(&self, bytes: &[u8]) -> [u8; 16] {
        keyed(&self.check, &[bytes])
    }
}

/// The check of a request or refusal in mode `open`: a crc32 over the protocol id and the bytes before it,
/// then 12 zero bytes.
#[must_use]
pub fn open_check(protocol_id: u64, bytes: &[u8]) -> [u8; 16] {
    let mut check = [0; 16];
    if let Some(crc) = check.first_chunk_mut() {
        *crc = crc_from(protocol_id, &[bytes]).to_le_bytes();
    }
    check
}

/// The tag of a response or data datagram in mode `open`: the sender's id, then a crc32 over the protocol id,
/// the datagram up to the tag, and the sender's id.
#[must_use]
pub fn open_tag(protocol_id: u64, sender_id: [u8; 8], datagram_so_far: &[u8]) -> [u8; 12] {
    let crc = crc_from(protocol_id, &[datagram_so_far, &sender_id]).to_le_bytes();
    let mut tag = [0; 12];
    tag.iter_mut().zip(sender_id.into_iter().chain(crc)).for_each(|(to, from)| *to = from);
    tag
}

/// Whether this is the tag of a datagram from `sender_id` in mode `open`.
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

/// Makes and verifies cookies, which prove that a client receives datagrams at its address (STANDARD-1, 3.5).
#[derive(Clone, Debug)]
pub struct CookieKey(Secret);

impl CookieKey {
    /// A random key, for one run of a server.
    #[must_use]
    pub const fn new(random: Secret) -> Self {
        Self(random)
    }

    /// A cookie for this client at this address. `time` counts units of `COOKIE_UNIT_SECONDS` from an
    /// origin that is fixed for the run.
    #[must_use]
    pub fn make(&self, time: u32, client_id: [u8; 8], address: SocketAddr) -> [u8; COOKIE_BYTES] {
        let time = time.to_le_bytes();
        let hash: [u8; 16] = keyed(&self.0, &[&time, &client_id, &address_bytes(address)]);
        let mut cookie = [0; COOKIE_BYTES];
        cookie.iter_mut().zip(time.into_iter().chain(hash)).for_each(|(to, from)| *to = from);
        cookie
    }

    /// Whether this cookie was made with this key for this client at this address, in the current or previous
    /// unit of time.
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
        // The time is public, so it need not be compared in constant time.
        now.wrapping_sub(time) <= 1 && equal(&self.make(time, client_id, address), cookie)
    }
}

/// Random bytes at the start of a server's id. The 2^48 ids of a key are too many to collect their tokens:
/// a client that has made a million connections knows the token of one later connection in 2^28.
const ID_RANDOM_BYTES: usize = 6;

/// An address as 16 bytes, IPv4 mapped, and its port.
#[must_use]
pub(crate) fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; 18];
    let all = ip.octets().into_iter().chain(address.port().to_le_bytes());
    bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    bytes
}

/// Makes a server's ids, and the reset tokens of its connections (STANDARD-1, 2.1 and 3.6).
///
/// With the key one can end every connection whose id one sees. So no two servers may have the same key: one
/// of them would give away the tokens of the other.
#[derive(Clone, Debug)]
pub struct ResetKey(Secret);

impl ResetKey {
    /// A key that is the same after a restart, from a secret that this server keeps and nobody else has, not
    /// even another server of its owner.
    #[must_use]
    pub fn derived(secret: &Secret) -> Self {
        Self(kdf("haulier/1 2026 reset key", &[secret.as_bytes()]))
    }

    /// A random key, for one run of a server that has no such secret.
    #[must_use]
    pub const fn random(random: Secret) -> Self {
        Self(random)
    }

    /// The server's id that starts with these random bytes. The other two are a check, so that a server
    /// knows its ids from noise and from those of other servers. Without the key all 8 look random.
    #[must_use]
    pub fn id(&self, random: [u8; ID_RANDOM_BYTES]) -> [u8; 8] {
        self.numbered_id(random).0
    }

    /// The same, with the number that the key makes of these bytes: it tells a server's threads whose
    /// connection it is, and nobody else anything.
    pub(crate) fn numbered_id(&self, random: [u8; ID_RANDOM_BYTES]) -> ([u8; 8], u32) {
        let [c0, c1, number @ ..] = keyed::<6>(&self.0, &[b"id", &random]);
        let check = [c0, c1];
        let mut id = [0; 8];
        id.iter_mut().zip(random.into_iter().chain(check)).for_each(|(to, from)| *to = from);
        (id, u32::from_le_bytes(number))
    }

    /// The number of an id that was made with this key; `None` for others.
    pub(crate) fn number(&self, id: [u8; 8]) -> Option<u32> {
        let (own, number) = self.numbered_id(*id.first_chunk()?);
        equal(&own, &id).then_some(number)
    }

    /// Whether an id was made with this key, before or after a restart. Of other ids one in 2^16 is taken
    /// for one, which gives away a token that no client has.
    #[must_use]
    pub fn is_own_id(&self, id: [u8; 8]) -> bool {
        self.number(id).is_some()
    }

    /// The token in a reset of the connection with this server id.
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
        assert_eq!(check, keys.check(b"request"));
        assert_ne!(check, keys.check(b"requesu"));
        assert_ne!(check, RequestKeys::new(&secret(2), 5).check(b"request"));
        assert_ne!(check, RequestKeys::new(&secret(1), 6).check(b"request"));
        assert_ne!(keys.check_key(), keys.noise_psk());
    }

    /// The zeros after the crc are compared too, so that a datagram has only one valid form.
    #[test]
    fn an_open_check_has_its_zeros() {
        let check = open_check(7, b"request");
        assert_eq!(check[4..], [0; 12]);
        assert_ne!(check, open_check(8, b"request"));
        assert_ne!(check, open_check(7, b"requesu"));
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
    fn a_cookie_is_valid_for_one_client_at_one_address_in_two_units() {
        let key = CookieKey::new(secret(3));
        let (id, address) = ([9; 8], "192.0.2.1:4000".parse().unwrap());
        let cookie = key.make(100, id, address);
        let valid = [99, 100, 101, 102].map(|now| key.verify(now, id, address, &cookie));
        assert_eq!(valid, [false, true, true, false]);
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

    /// Threads of a server find their connections by a number that only the key gives.
    #[test]
    fn an_id_has_a_number_under_its_key_and_under_no_other() {
        let key = ResetKey::derived(&secret(5));
        let mut counts = [0; 4];
        for n in 0..4_000_u16 {
            let [low, high] = n.to_le_bytes();
            let (id, number) = key.numbered_id([low, high, 0, 0, 0, 0]);
            assert_eq!((id, key.number(id)), (key.id([low, high, 0, 0, 0, 0]), Some(number)));
            assert_eq!(ResetKey::derived(&secret(6)).number(id), None);
            counts[number as usize % 4] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    /// A dual-stack socket reports an IPv4 client with a mapped address, an IPv4 socket does not.
    #[test]
    fn a_mapped_address_equals_the_ipv4_address() {
        let key = CookieKey::new(secret(3));
        let plain = key.make(5, [0; 8], "192.0.2.1:4000".parse().unwrap());
        let mapped = key.make(5, [0; 8], "[::ffff:192.0.2.1]:4000".parse().unwrap());
        assert_eq!(plain, mapped);
    }

    #[test]
    fn cookies_stay_valid_when_their_time_wraps() {
        let (key, address) = (CookieKey::new(secret(3)), "192.0.2.1:4000".parse().unwrap());
        let cookie = key.make(u32::MAX, [0; 8], address);
        assert!(key.verify(0, [0; 8], address, &cookie));
        assert!(!key.verify(1, [0; 8], address, &cookie));
    }

    #[test]
    fn a_server_knows_its_ids_from_noise_and_after_a_restart() {
        let key = ResetKey::derived(&secret(5));
        let id = key.id([1, 2, 3, 4, 5, 6]);
        assert_eq!(id[..6], [1, 2, 3, 4, 5, 6]);
        assert!(ResetKey::derived(&secret(5)).is_own_id(id));
        assert!(!ResetKey::random(secret(5)).is_own_id(id));
        assert_eq!(ResetKey::derived(&secret(5)).reset_token(id), key.reset_token(id));
        assert_ne!(key.reset_token(id), key.reset_token(key.id([1, 2, 3, 4, 5, 7])));
        for bit in 0..64 {
            let mut other = id;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_own_id(other), "bit {bit}");
        }
    }
}
