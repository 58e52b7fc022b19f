//! Published vectors, every flipped bit, and the two providers against each other.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn secret(hex: &str) -> Secret {
    Secret::from_bytes(unhex(hex).try_into().unwrap())
}

/// Of the ciphers, since no published vector has a nonce of ours.
fn check_vector(cipher: &Cipher, nonce: &str, aad: &str, plain: &[u8], sealed: &str) {
    let (nonce, aad, sealed) = (unhex(nonce).try_into().unwrap(), unhex(aad), unhex(sealed));
    let mut bytes = plain.to_vec();
    let tag = cipher.seal(nonce, &aad, &mut bytes).unwrap();
    assert_eq!([&bytes[..], &tag].concat(), sealed);
    cipher.open(nonce, &aad, &mut bytes, &tag).unwrap();
    assert_eq!(bytes, plain);
}

/// RFC 8439, 2.8.2.
#[test]
fn the_chacha_vector_of_its_rfc() {
    let key = secret("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
    let cipher = Cipher::new(&key, Suite::ChaCha20Poly1305).unwrap();
    let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
                  the future, sunscreen would be it.";
    let sealed = "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
                  3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
                  92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
                  3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691";
    check_vector(&cipher, "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7", plain, sealed);
}

/// Test case 16 of McGrew and Viega, "The Galois/Counter Mode of Operation".
#[cfg(any(feature = "aws-lc", feature = "rust-crypto"))]
#[test]
fn the_aes_vector_of_the_gcm_paper() {
    let key = secret("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    let cipher = Cipher::new(&key, Suite::Aes256Gcm).unwrap();
    let plain = unhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    let sealed = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                  8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662\
                  76fc6ece0f4e1768cddf8853bb2d551b";
    let aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    check_vector(&cipher, "cafebabefacedbaddecaf888", aad, &plain, sealed);
}

fn suites() -> impl Iterator<Item = Suite> {
    [Suite::ChaCha20Poly1305, Suite::Aes256Gcm].into_iter().filter(|suite| suite.is_built_in())
}

#[test]
fn a_suite_that_is_not_built_in_has_no_key() {
    for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
        let key = AeadKey::new(&Secret::from_bytes([1; 32]), suite);
        assert_eq!(key.is_ok(), suite.is_built_in(), "{suite:?}");
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for suite in suites() {
        let key = AeadKey::new(&Secret::from_bytes([1; 32]), suite).unwrap();
        let (head, plain) = (*b"head", [5; 40]);
        let mut sealed = plain;
        let tag = key.seal(77, &head, &mut sealed).unwrap();
        for bit in 0..8 * (4 + 40 + 16) {
            let mut all = [&head[..], &sealed, &tag].concat();
            all[bit / 8] ^= 1 << (bit % 8);
            let (aad, rest) = all.split_at_mut(4);
            let (bytes, tag) = rest.split_at_mut(40);
            let tag: [u8; 16] = (&*tag).try_into().unwrap();
            assert_eq!(key.open(77, aad, bytes, &tag), Err(OpenError), "{suite:?}, bit {bit}");
        }
        for number in [76, 78, 77 + (1 << 32), 77 << 32] {
            assert_eq!(key.open(number, &head, &mut sealed.clone(), &tag), Err(OpenError));
        }
        key.open(77, &head, &mut sealed, &tag).unwrap();
        assert_eq!(sealed, plain);
    }
}

/// The nonce is in the order of all numbers of the wire, its zeros first.
#[test]
fn the_nonce_is_zeros_and_the_number() {
    assert_eq!(nonce(0x0102_0304_0506_0708), [0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
}

/// A connection has up to four keys, and a server thousands of connections.
#[test]
fn a_key_is_a_few_words() {
    assert!(size_of::<AeadKey>() <= 4 * size_of::<usize>(), "{}", size_of::<AeadKey>());
}

proptest! {
    /// A text of which a part is elsewhere is sealed as if it were in one piece.
    #[test]
    fn a_text_in_two_places_is_one(
        key in any::<[u8; 32]>(),
        number in any::<u64>(),
        head in proptest::collection::vec(any::<u8>(), 0..40),
        rest in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        let key = Secret::from_bytes(key);
        for suite in suites() {
            let key = AeadKey::new(&key, suite).unwrap();
            let mut whole = [&head[..], &rest].concat();
            let tag = key.seal(number, b"aad", &mut whole).unwrap();
            let mut sealed = head.clone();
            sealed.resize(head.len() + rest.len() + TAG_BYTES, 0xa5);
            key.seal_from(number, b"aad", &mut sealed, &rest).unwrap();
            prop_assert_eq!([&whole[..], &tag].concat(), sealed);
            let mut short = alloc::vec![0; rest.len() + TAG_BYTES - 1];
            prop_assert_eq!(key.seal_from(number, b"aad", &mut short, &rest), Err(SealError));
        }
    }
}

#[cfg(feature = "aws-lc")]
proptest! {
    /// What one provider seals the other opens, byte for byte.
    #[test]
    fn providers_agree(
        key in any::<[u8; 32]>(),
        number in any::<u64>(),
        aad in proptest::collection::vec(any::<u8>(), 0..100),
        plain in proptest::collection::vec(any::<u8>(), 0..1200),
    ) {
        let key = Secret::from_bytes(key);
        for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
            let Ok(other) = rust_crypto::Cipher::new(&key, suite) else { continue };
            let (mut a, mut b) = (plain.clone(), plain.clone());
            let ours = AeadKey::new(&key, suite).unwrap();
            let tag = ours.seal(number, &aad, &mut a).unwrap();
            prop_assert_eq!(tag, other.seal(nonce(number), &aad, &mut b).unwrap());
            prop_assert_eq!(&a, &b);
            ours.open(number, &aad, &mut b, &tag).unwrap();
            other.open(nonce(number), &aad, &mut a, &tag).unwrap();
            prop_assert_eq!(&a, &plain);
            prop_assert_eq!(&b, &plain);
            prop_assert!(other.open(nonce(number) , &aad, &mut a, &[0; 16]).is_err());
        }
    }
}
