//! Both patterns end to end, against Noise's vectors and `snow`, what each refuses, and the forged answers.

use alloc::boxed::Box;
use alloc::vec;

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use proptest::prelude::*;
use snow::resolvers::{CryptoResolver, DefaultResolver};

use super::*;

const PROLOGUE: &[u8] = b"haulier/1 and ten bytes";
const HELLO: &[u8] = b"let me in";
const WELCOME: &[u8] = b"come in";

fn psk() -> Secret {
    Secret::from_bytes([1; 32])
}

fn identity() -> Identity {
    Identity::new(Secret::from_bytes([2; 32]))
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn secret(hex: &str) -> Secret {
    Secret::from_bytes(unhex(hex).try_into().unwrap())
}

fn dice(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

fn start(nk: bool) -> (Initiator, Vec<u8>) {
    let public = nk.then(|| identity().public());
    Initiator::new(&psk(), public.as_ref(), PROLOGUE, dice(3), HELLO).unwrap()
}

fn open(nk: bool, message: &[u8]) -> Result<Responder, NoiseError> {
    respond(&psk(), nk.then(identity).as_ref(), PROLOGUE, message)
}

/// RFC 7748, 6.1: Bob's keys.
#[test]
fn the_public_key_is_x25519s() {
    let bob = [
        0x5d, 0xab, 0x08, 0x7e, 0x62, 0x4a, 0x8a, 0x4b, 0x79, 0xe1, 0x7f, 0x8b, 0x83, 0x80, 0x0e,
        0xe6, 0x6f, 0x3b, 0xb1, 0x29, 0x26, 0x18, 0xb6, 0xfd, 0x1c, 0x2f, 0x8b, 0x27, 0xff, 0x88,
        0xe0, 0xeb,
    ];
    let public = Identity::new(Secret::from_bytes(bob)).public();
    assert_eq!(public[..8], [0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4]);
}

#[test]
fn both_patterns_agree_on_keys() {
    for nk in [false, true] {
        let (mut client, first) = start(nk);
        assert_eq!(first.len(), HELLO.len() + NOISE_OVERHEAD_BYTES);
        let opened = open(nk, &first).unwrap();
        assert_eq!(opened.hello(), HELLO);
        let (second, servers) = opened.answer(&dice(4), WELCOME).unwrap();
        assert_eq!(second.len(), WELCOME.len() + NOISE_OVERHEAD_BYTES);
        let (welcome, clients) = client.finish(&second).unwrap();
        assert_eq!(welcome, WELCOME);
        assert_eq!(clients, servers);
        assert_ne!(clients.client_to_server, clients.server_to_client);
        assert_eq!(client.finish(&second), Err(NoiseError::Finished));
    }
}

/// Anybody can send a client a message 2. If one of them ended the attempt, a stranger could keep every
/// player out with a datagram each.
#[test]
fn forged_answers_do_not_destroy_a_client() {
    for nk in [false, true] {
        let (mut client, first) = start(nk);
        let (second, servers) = open(nk, &first).unwrap().answer(&dice(4), WELCOME).unwrap();
        for forgery in 0..100 {
            let mut forged = second.clone();
            match forgery % 4 {
                0 => forged[forgery / 4] ^= 1,
                1 => forged.truncate(forgery / 2),
                2 => forged[..32].fill(0),
                _ => forged = (0..=255).cycle().skip(forgery).take(forgery * 13).collect(),
            }
            assert!(client.finish(&forged).is_err(), "forgery {forgery}");
        }
        let (welcome, clients) = client.finish(&second).unwrap();
        assert_eq!((&welcome[..], clients), (WELCOME, servers));
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    for nk in [false, true] {
        let (mut client, first) = start(nk);
        let (second, _) = open(nk, &first).unwrap().answer(&dice(4), WELCOME).unwrap();
        for (message, is_first) in [(&first, true), (&second, false)] {
            let mut refused = |bytes: &[u8]| {
                if is_first { open(nk, bytes).is_err() } else { client.finish(bytes).is_err() }
            };
            for bit in 0..8 * message.len() {
                let mut other = message.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                // X25519 passes over the highest bit of a public key, but Noise hashes it.
                assert!(refused(&other), "bit {bit}");
            }
            for length in 0..message.len() {
                assert!(refused(&message[..length]), "{length} bytes");
            }
            assert!(refused(&[0; MAX_MESSAGE_BYTES + 1]));
        }
    }
}

#[test]
fn strangers_get_no_answer() {
    let (_, first) = start(false);
    let other = Secret::from_bytes([9; 32]);
    fn refused(psk: &Secret, id: Option<&Identity>, prologue: &[u8], message: &[u8]) -> bool {
        respond(psk, id, prologue, message).unwrap_err() == NoiseError::Refused
    }
    assert!(refused(&other, None, PROLOGUE, &first));
    assert!(refused(&psk(), None, b"haulier/2", &first));
    assert!(refused(&psk(), Some(&identity()), PROLOGUE, &first), "NN taken for NK");
    let (_, first) = start(true);
    assert!(refused(&psk(), Some(&Identity::new(other)), PROLOGUE, &first));
    assert!(refused(&psk(), None, PROLOGUE, &first), "NK taken for NN");
}

/// Two answers to one message must differ in everything, or two lives of a server would share keys.
#[test]
fn fresh_entropy_gives_fresh_keys() {
    let (_, first) = start(false);
    let answer = |byte| open(false, &first).unwrap().answer(&dice(byte), WELCOME).unwrap();
    let ((message, keys), (other, others)) = (answer(5), answer(6));
    assert_ne!(message, other);
    assert_ne!(keys.client_to_server, others.client_to_server);
    assert_ne!(keys.server_to_client, others.server_to_client);
    assert_eq!(answer(5), (message, keys), "the same bytes replay the same handshake");
}

/// Noise's own vectors, of its test suite "cacophony": psk, prologue and keys are the same for both patterns.
/// Its first message of the transport shows that the split is right too.
#[test]
fn the_published_vectors_of_noise() {
    let psk = secret("54686973206973206d7920417573747269616e20706572737065637469766521");
    let prologue = unhex("4a6f686e2047616c74");
    let private = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893";
    let public = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";
    let identity = Identity::new(secret(private));
    assert_eq!(identity.public(), *secret(public).as_bytes());
    let (hello, welcome) = (b"Ludwig von Mises", b"Murray Rothbard");
    let ours = "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944";
    let theirs = "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843";
    let cases = [
        (
            None,
            "fda936bec35a8adfdff198386f7d5475880897edaaf7495314c99095a2e4d66a",
            "4cd2a371993ba41ea11448024fca32766b169183c9e691a7a433279da7e729",
            "bc44da303ae0beb08075fc4eb4e58235c67c2d1f53a4f2fff0bca7",
        ),
        (
            Some(&identity),
            "27635ede06947b2d3acd77a36788aaaf17e9f5a8ac252e560fb421ba161a2cf8",
            "d682eb9cf4fee6816c8c8cfd34c15774321e234e3a426d7cfd3f13e5e84d04",
            "b6645684db57679aa08f0b3352d58f32ec7f1e1a02083d5bd54277",
        ),
    ];
    for (identity, first_end, second_end, transport) in cases {
        let public = identity.map(Identity::public);
        let dice = secret("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
        let (mut client, first) =
            Initiator::new(&psk, public.as_ref(), &prologue, dice, hello).unwrap();
        assert_eq!(first, [unhex(ours), unhex(first_end)].concat());
        let opened = respond(&psk, identity, &prologue, &first).unwrap();
        assert_eq!(opened.hello(), hello);
        let dice = secret("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
        let (second, split) = opened.answer(&dice, welcome).unwrap();
        assert_eq!(second, [&unhex(theirs)[..], &unhex(second_end)].concat());
        assert_eq!(client.finish(&second), Ok((welcome.to_vec(), split.clone())));
        let mut sealed = b"F. A. Hayek".to_vec();
        let key = ChaCha20Poly1305::new(split.client_to_server.secret().as_bytes().into());
        let tag = key.encrypt_in_place_detached(&Default::default(), b"", &mut sealed).unwrap();
        assert_eq!([&sealed[..], &tag].concat(), unhex(transport));
    }
}

proptest! {
    /// The same bytes as `snow`, in both roles and patterns, whatever the keys.
    #[test]
    fn snow_agrees(
        secrets in any::<[[u8; 32]; 4]>(),
        prologue in proptest::collection::vec(any::<u8>(), 0..40),
        hello in proptest::collection::vec(any::<u8>(), 0..500),
        welcome in proptest::collection::vec(any::<u8>(), 0..100),
        nk in any::<bool>(),
    ) {
        let [psk, private, ours, theirs] = secrets.map(Secret::from_bytes);
        let identity = nk.then(|| Identity::new(private));
        let public = identity.as_ref().map(Identity::public);
        let (mut client, first) =
            Initiator::new(&psk, public.as_ref(), &prologue, ours.clone(), &hello).unwrap();
        let opened = respond(&psk, identity.as_ref(), &prologue, &first).unwrap();
        let (second, split) = opened.answer(&theirs, &welcome).unwrap();
        client.finish(&second).unwrap();

        let mut builder = snow_builder(nk, &psk, &prologue, &ours);
        if let Some(public) = &public {
            builder = builder.remote_public_key(public).unwrap();
        }
        let mut initiator = builder.build_initiator().unwrap();
        let mut builder = snow_builder(nk, &psk, &prologue, &theirs);
        if let Some(identity) = &identity {
            builder = builder.local_private_key(identity.0.as_bytes()).unwrap();
        }
        let mut responder = builder.build_responder().unwrap();
        let (mut message, mut payload) = (vec![0; MAX_MESSAGE_BYTES], vec![0; MAX_MESSAGE_BYTES]);
        let length = initiator.write_message(&hello, &mut message).unwrap();
        prop_assert_eq!(&first, &message[..length]);
        responder.read_message(&first, &mut payload).unwrap();
        let length = responder.write_message(&welcome, &mut message).unwrap();
        prop_assert_eq!(&second, &message[..length]);
        let (up, down) = responder.dangerously_get_raw_split();
        prop_assert_eq!(&up, split.client_to_server.secret().as_bytes());
        prop_assert_eq!(&down, split.server_to_client.secret().as_bytes());
    }
}

fn snow_builder<'a>(
    nk: bool,
    psk: &'a Secret,
    prologue: &'a [u8],
    ephemeral: &'a Secret,
) -> snow::Builder<'a> {
    let name = if nk { NK } else { NN };
    let builder = snow::Builder::with_resolver(name.parse().unwrap(), Box::new(NoRandom));
    let builder = builder.prologue(prologue).unwrap().psk(0, psk.as_bytes()).unwrap();
    builder.fixed_ephemeral_key_for_testing_only(ephemeral.as_bytes())
}

/// What `snow` needs here, without a generator: both private keys are given to it.
struct NoRandom;

impl CryptoResolver for NoRandom {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(Self))
    }
    fn resolve_dh(&self, choice: &snow::params::DHChoice) -> Option<Box<dyn snow::types::Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(
        &self,
        choice: &snow::params::HashChoice,
    ) -> Option<Box<dyn snow::types::Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(
        &self,
        choice: &snow::params::CipherChoice,
    ) -> Option<Box<dyn snow::types::Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl snow::types::Random for NoRandom {
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), snow::Error> {
        Err(snow::Error::Rng)
    }
}

#[test]
fn payloads_have_a_limit() {
    let limit = MAX_MESSAGE_BYTES - NOISE_OVERHEAD_BYTES;
    assert!(Initiator::new(&psk(), None, PROLOGUE, dice(3), &vec![0; limit]).is_ok());
    let error = Initiator::new(&psk(), None, PROLOGUE, dice(3), &vec![0; limit + 1]).unwrap_err();
    assert_eq!(error, NoiseError::TooLong);
}

/// A driver may move a connection to another thread between the messages.
#[test]
fn states_are_for_any_thread() {
    const fn any_thread<T: Send + Sync>() {}
    const { (any_thread::<Initiator>(), any_thread::<Responder>(), any_thread::<SplitSecrets>()) };
}
