//! No allocation for what strangers can ask for: counted for the whole process, so this is a program of its
//! own.

use haulier_proto::connection::Suite;
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey};
use haulier_proto::internals::{
    AeadKey, CookieKey, Entropy, RequestKeys, ResetKey, open_check, open_tag,
};

/// Strangers can ask for each of these as often as they like, and a datagram needs one of them.
#[test]
fn seals_and_checks_do_not_allocate() {
    let secret = Secret::from_bytes([1; 32]);
    let keys = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm].map(|s| AeadKey::new(&secret, s));
    let (cookies, resets) = (CookieKey::new(secret.clone()), ResetKey::derived(&secret));
    let (mut datagram, address) = ([5; 1184], ([127, 0, 0, 1], 4000).into());
    let counted = allocation_counter::measure(|| {
        for key in keys.iter().flatten() {
            let tag = key.seal(1, b"head", &mut datagram).unwrap();
            key.open(1, b"head", &mut datagram, &tag).unwrap();
            assert!(key.open(2, b"head", &mut datagram, &tag).is_err());
        }
        let requests = RequestKeys::new(&secret, 1);
        let cookie = cookies.make(1, [0; 8], address);
        assert!(cookies.verify(1, [0; 8], address, &cookie));
        let id = resets.id(Entropy::new([0; 32]).bytes());
        assert!(resets.is_own_id(id));
        let _bytes = (resets.reset_token(id), requests.check(&datagram));
        let _bytes = (open_check(1, &datagram), open_tag(1, id, &datagram));
    });
    assert_eq!(counted.count_total, 0);
}

/// A forged token costs its sender a datagram and the server no memory.
#[test]
fn a_forged_token_takes_no_memory() {
    let key = TokenKey { id: 1, key: Secret::from_bytes([1; 32]) };
    let claims = TokenClaims::new(10).with_user_data(vec![1; 256]);
    let token = key.issue(1, &claims, Secret::from_bytes([2; 32]), [3; 24]).unwrap();
    let mut forged = token.sealed().to_vec();
    forged[200] ^= 1;
    let counted = allocation_counter::measure(|| {
        assert!(key.open(1, &forged, 5).is_err());
        assert!(key.open(2, token.sealed(), 5).is_err());
        assert!(key.open(1, token.sealed(), 10).is_err());
        assert!(key.open(1, &[b'1'; 640], 5).is_err());
    });
    assert_eq!(counted.count_total, 0);
}
