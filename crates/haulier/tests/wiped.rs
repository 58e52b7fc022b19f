//! What is freed holds no key. An allocator keeps a copy of every block that is freed, and the copies are
//! searched, which requires a separate test program and `unsafe`. One test after the other: they share it.
//!
//! It sees the heap of Rust: not the stack, and not what AWS-LC allocates in C.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use haulier::proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier::proto::connection::Suite;
use haulier::proto::credentials::{ConnectToken, Secret, TokenClaims, TokenKey, TokenServers};
use haulier::proto::internals::{
    AeadKey, Entropy, Initiator, RequestKeys, ResetKey, TrafficSecret, respond,
};
use haulier::proto::server::{ServerConfig, ServerCredentials, ServerMachine};
use haulier::proto::{AesSupport, Machine as _, Platform};
use haulier::{Client, Connect, Identity, Listen, Ticket};
use haulier_core::Instant;
use snow::resolvers::{CryptoResolver as _, DefaultResolver};

/// Bytes of freed blocks that are kept: more than any test here frees.
const KEPT: usize = 64 << 20;

/// Zeros between two blocks, so that nothing is found across them.
const GAP: usize = 64;

struct Kept(UnsafeCell<[u8; KEPT]>);

/// SAFETY: each freed block is copied to a range of its own, and read when nothing is kept any more.
unsafe impl Sync for Kept {}

static COPIES: Kept = Kept(UnsafeCell::new([0; KEPT]));
static USED: AtomicUsize = AtomicUsize::new(0);
static IS_KEEPING: AtomicBool = AtomicBool::new(false);

struct Keeping;

/// SAFETY: all is the system's; a block is read before it is given back.
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if IS_KEEPING.load(Ordering::SeqCst) {
            let at = USED.fetch_add(layout.size() + GAP, Ordering::SeqCst);
            if at + layout.size() <= KEPT {
                // SAFETY: the block is still ours, and the range is this call's alone.
                unsafe {
                    let to = COPIES.0.get().cast::<u8>().add(at);
                    block.copy_to_nonoverlapping(to, layout.size());
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Keeping = Keeping;

/// Everything that was freed while this ran.
fn freed<T>(act: impl FnOnce() -> T) -> (T, &'static [u8]) {
    let start = USED.load(Ordering::SeqCst);
    IS_KEEPING.store(true, Ordering::SeqCst);
    let result = act();
    IS_KEEPING.store(false, Ordering::SeqCst);
    let end = USED.load(Ordering::SeqCst);
    assert!(end <= KEPT, "{end} bytes were freed: keep more");
    // SAFETY: nothing writes to this range any more.
    let all = unsafe { std::slice::from_raw_parts(COPIES.0.get().cast::<u8>(), KEPT) };
    assert!(end > start, "nothing was freed, so nothing was searched");
    (result, &all[start..end])
}

fn holds(freed: &[u8], secret: &[u8]) -> bool {
    freed.windows(secret.len()).any(|window| window == secret)
}

/// The places in freed memory that may be a key: 32 bytes with few zeros.
fn candidates(freed: &[u8]) -> impl Iterator<Item = [u8; 32]> {
    freed
        .windows(32)
        .filter(|window| window.iter().filter(|&&byte| byte == 0).count() < 6)
        .map(|window| window.try_into().unwrap())
}

fn known(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

#[test]
fn freed_memory_holds_no_key() {
    the_search_finds_a_key();
    handshakes();
    machines(AesSupport::Hardware);
    machines(AesSupport::Software);
    tokens_and_tickets();
    handles();
}

/// The test of the test.
fn the_search_finds_a_key() {
    let ((), freed) = freed(|| drop(std::hint::black_box(Box::new([0xa7_u8; 40]))));
    assert!(holds(freed, &[0xa7; 32]));
    assert!(candidates(freed).any(|candidate| candidate == [0xa7; 32]));
}

/// Of a handshake remain neither the pre-shared key, the private keys, what they agree on, nor the keys of
/// the connection; and not the chaining key that these are derived from.
fn handshakes() {
    for nk in [false, true] {
        let (psk, identity) = (known(0xa1), nk.then(|| Identity::new(known(0xa2))));
        let public = identity.as_ref().map(Identity::public);
        let prologue = b"haulier/1";
        let (split, freed) = freed(|| {
            let new = |byte| Initiator::new(&psk, public.as_ref(), prologue, known(byte), b"hello");
            let (client, first) = new(0xa3).unwrap();
            let mut client = Box::new(client);
            let opened = Box::new(respond(&psk, identity.as_ref(), prologue, &first).unwrap());
            let (second, split) = opened.answer(&known(0xa4), b"welcome").unwrap();
            let mut forged = second.clone();
            forged[40] ^= 1;
            assert!(client.finish(&forged).is_err());
            let (_, same) = client.finish(&second).unwrap();
            assert!(same == split);
            // One attempt that is given up.
            drop(Box::new(new(0xa5).unwrap()));
            let next = Box::new(split.client_to_server.next());
            drop(next.key(Suite::ChaCha20Poly1305).unwrap());
            drop(next);
            Box::new(split)
        });
        for byte in 0xa1..=0xa5 {
            assert!(!holds(freed, &[byte; 32]), "key {byte:x}");
        }
        for traffic in [&split.client_to_server, &split.server_to_client] {
            for secret in [traffic.secret(), &traffic.key_secret(), traffic.next().secret()] {
                assert!(!holds(freed, secret.as_bytes()));
            }
        }
        let mut hash = DefaultResolver.resolve_hash(&snow::params::HashChoice::Blake2s).unwrap();
        let first = split.client_to_server.secret();
        for candidate in candidates(freed) {
            let (mut one, mut two) = ([0; 32], [0; 32]);
            hash.hkdf(&candidate, &[], 2, &mut one, &mut two, &mut []);
            assert_ne!(&one, first.as_bytes(), "a chaining key");
        }
    }
}

/// Both machines live a whole connection, with a key update, and are dropped. What opens the datagrams that
/// crossed is nowhere.
fn machines(aes: AesSupport) {
    let at: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let home: SocketAddr = "192.0.2.2:5000".parse().unwrap();
    let (seed, other_seed) = ([0xb1; 32], [0xb2; 32]);
    let mut wire = Vec::with_capacity(10_000);
    let (wire, freed) = freed(|| {
        let mut credentials = ServerCredentials::default()
            .with_secret(known(0xb3))
            .with_identity(Identity::new(known(0xb4)))
            .with_reset_secret(known(0xb5));
        for id in 0..9 {
            credentials = credentials.with_token_key(TokenKey { id, key: known(0xb6) });
        }
        let connection = haulier::ConnectionConfig::default().with_datagrams_per_key(3);
        let config =
            ServerConfig::new(7, credentials).with_connection(connection).with_addresses(vec![at]);
        let platform = Platform::new(seed, aes);
        let mut server =
            Box::new(ServerMachine::new(Instant::ZERO, 1 << 31, config, platform).unwrap());
        let identity = Some(Identity::new(known(0xb4)).public());
        let credentials = Credentials::Secret { secret: known(0xb3), identity };
        let config = ClientConfig::new(at, 7, credentials).with_connection(connection);
        let platform = Platform::new(other_seed, aes);
        let mut client = Box::new(ClientMachine::new(Instant::ZERO, config, platform).unwrap());
        let mut datagram = Vec::with_capacity(1500);
        for round in 0..100 {
            let now = Instant::from_millis(10 * round);
            client.handle_timeout(now);
            server.handle_timeout(now);
            while client.poll_datagram(now, &mut datagram).is_some() {
                if datagram[0] & 0xfc == 0x0c && wire.len() < 20 {
                    wire.push(datagram.clone());
                }
                let _counted = server.handle_datagram(now, home, &mut datagram);
                drop(datagram.clone());
            }
            while server.poll_datagram(now, &mut datagram).is_some() {
                let _counted = client.handle_datagram(now, at, &mut datagram);
                // As a caller frees the buffer that it received into: datagrams are opened in place.
                drop(datagram.clone());
            }
            while server.poll_event(now).is_some() {}
            while client.poll_event(now).is_some() {}
            if let Some(connection) = client.connection_mut() {
                connection.send_message(&b"a message"[..]).unwrap();
            }
        }
        let updates = client.connection().unwrap().stats().key_updates;
        assert!(updates >= 2, "{updates} key updates");
        wire
    });
    let keys = RequestKeys::new(&known(0xb3), 7);
    for secret in
        (0xb1..=0xb6).map(known).chain([keys.noise_psk().clone(), keys.check_key().clone()])
    {
        assert!(!holds(freed, secret.as_bytes()), "{:x?}", secret.as_bytes());
    }
    // The entropy that a machine starts with, and its reset tokens.
    let mut entropy = Entropy::new(seed);
    assert!(!holds(freed, entropy.next_secret().as_bytes()));
    let id: [u8; 8] = wire[0][1..9].try_into().unwrap();
    assert!(!holds(freed, &ResetKey::derived(&known(0xb5)).reset_token(id)), "a reset token");
    let suite = match aes {
        AesSupport::Hardware => Suite::Aes256Gcm,
        AesSupport::Software => Suite::ChaCha20Poly1305,
    };
    let opens = |key: &AeadKey| {
        wire.iter().any(|datagram| {
            let (covered, tag) = datagram.split_last_chunk().unwrap();
            let (header, text) = covered.split_at(13);
            let number = u32::from_le_bytes(header[9..].try_into().unwrap());
            key.open(number.into(), header, &mut text.to_vec(), tag).is_ok()
        })
    };
    let mut searched = 0;
    for candidate in candidates(freed) {
        searched += 1;
        let candidate = Secret::from_bytes(candidate);
        let is_key = AeadKey::new(&candidate, suite).is_ok_and(|key| opens(&key));
        let secret = TrafficSecret::new(candidate);
        assert!(!is_key && !secret.key(suite).is_ok_and(|key| opens(&key)), "a traffic secret");
    }
    println!("{} bytes freed, {searched} places searched", freed.len());
}

fn tokens_and_tickets() {
    let (texts, freed) = freed(|| {
        let key = TokenKey { id: 1, key: known(0xc1) };
        let token = key
            .issue(7, &TokenClaims::new(0, 1 << 40, TokenServers::Every), known(0xc2), [3; 24])
            .unwrap();
        let text = token.to_text();
        let token = Box::new(ConnectToken::parse(&text).unwrap());
        drop(Connect::from(&*token));
        let access = haulier::TicketAccess::Secret(known(0xc3));
        let ticket = Ticket::new(vec!["192.0.2.1:4000".parse().unwrap()], 7, access).unwrap();
        let line = ticket.to_text();
        drop(Box::new(Ticket::parse(&line).unwrap()));
        // Both cut off, which is found out after they were decoded.
        for length in 40..text.len() {
            assert!(ConnectToken::parse(&text[..length]).is_err());
        }
        for length in 40..line.len() {
            assert!(Ticket::parse(&line[..length]).is_err());
        }
        [text, line]
    });
    for byte in 0xc1..=0xc3 {
        assert!(!holds(freed, &[byte; 32]), "key {byte:x}");
    }
    // Nor as text: what was returned is the caller's.
    for text in texts {
        assert!(!text.as_bytes().windows(40).any(|part| holds(freed, part)), "{text}");
    }
}

/// A server and a client over sockets, with all that moves them about.
fn handles() {
    let ((), freed) = freed(|| {
        let mut credentials = ServerCredentials::default().with_secret(known(0xd1));
        credentials = credentials.with_token_key(TokenKey { id: 1, key: known(0xd2) });
        let config = ServerConfig::new(7, credentials);
        let server = Listen::bind("127.0.0.1:0").unwrap().inline().start(config).unwrap();
        let credentials = Credentials::Secret { secret: known(0xd1), identity: None };
        let connect = Connect::from(ClientConfig::new(server.local_addr(), 7, credentials));
        let client = Client::connect(connect.inline()).unwrap();
        for _ in 0..1_000 {
            while server.poll().unwrap().is_some() {}
            if client.wait(Duration::from_millis(1)).unwrap().is_some() {
                break;
            }
        }
        assert!(client.attempts().iter().all(|attempt| attempt.error.is_none()));
        let _server_first: (_, Client) = (server, client);
    });
    let keys = RequestKeys::new(&known(0xd1), 7);
    for secret in [&known(0xd1), &known(0xd2), keys.noise_psk(), keys.check_key()] {
        assert!(!holds(freed, secret.as_bytes()), "{:x?}", secret.as_bytes());
    }
}
