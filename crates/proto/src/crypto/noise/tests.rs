//! Both patterns end to end, what each refuses, and the forged answers.

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

fn start(nk: bool) -> (Initiator, Vec<u8>) {
    let public = nk.then(|| identity().public());
    Initiator::new(&psk(), public.as_ref(), PROLOGUE, [3; 32], HELLO).unwrap()
}

fn open(nk: bool, message: &[u8]) -> Result<Responder, NoiseError> {
    respond(&psk(), nk.then(identity).as_ref(), PROLOGUE, [4; 32], message)
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
        let (second, servers) = opened.answer(WELCOME).unwrap();
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
        let (second, servers) = open(nk, &first).unwrap().answer(WELCOME).unwrap();
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
        let (second, _) = open(nk, &first).unwrap().answer(WELCOME).unwrap();
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
        respond(psk, id, prologue, [4; 32], message).unwrap_err() == NoiseError::Refused
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
    let answer = |entropy| {
        respond(&psk(), None, PROLOGUE, entropy, &first).unwrap().answer(WELCOME).unwrap()
    };
    let ((message, keys), (other, others)) = (answer([5; 32]), answer([6; 32]));
    assert_ne!(message, other);
    assert_ne!(keys.client_to_server, others.client_to_server);
    assert_ne!(keys.server_to_client, others.server_to_client);
    assert_eq!(answer([5; 32]), (message, keys), "the same bytes replay the same handshake");
}

#[test]
fn entropy_is_given_once() {
    let mut draw = OneDraw(Some(psk()));
    draw.try_fill_bytes(&mut [0; 32]).unwrap();
    assert_eq!(draw.try_fill_bytes(&mut [0; 32]), Err(snow::Error::Rng));
    assert_eq!(OneDraw(Some(psk())).try_fill_bytes(&mut [0; 31]), Err(snow::Error::Rng));
}

#[test]
fn payloads_have_a_limit() {
    let limit = MAX_MESSAGE_BYTES - NOISE_OVERHEAD_BYTES;
    assert!(Initiator::new(&psk(), None, PROLOGUE, [3; 32], &vec![0; limit]).is_ok());
    let error = Initiator::new(&psk(), None, PROLOGUE, [3; 32], &vec![0; limit + 1]).unwrap_err();
    assert_eq!(error, NoiseError::TooLong);
}

/// A driver may move a connection to another thread between the messages.
#[test]
fn states_are_for_any_thread() {
    const fn any_thread<T: Send + Sync>() {}
    const { (any_thread::<Initiator>(), any_thread::<Responder>(), any_thread::<SplitSecrets>()) };
}
