//! What a connection costs: handshakes verified and refused, datagrams sealed and opened, a block through
//! both machines. Memory is counted by `crates/proto/tests/memory.rs`.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench connection

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a bench program")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, Event, Suite};
use haulier_proto::credentials::{Identity, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::internals::frames::{Cut, SliceSize};
use haulier_proto::internals::{TrafficSecret, encode_repair};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerMachine, TokenAudience};
use haulier_proto::{AesSupport, Batch, Instant, Machine, Platform};
use std::hint::black_box;
use std::net::SocketAddr;

const PROTOCOL_ID: u64 = 1;
const NOW: Instant = Instant::ZERO;

fn address() -> SocketAddr {
    "192.0.2.1:4000".parse().expect("an address")
}

fn secret() -> Secret {
    Secret::from_bytes([1; 32])
}

fn token_key() -> TokenKey {
    TokenKey { id: 1, key: Secret::from_bytes([2; 32]) }
}

fn identity() -> Identity {
    Identity::new(Secret::from_bytes([3; 32]))
}

fn server() -> ServerMachine {
    let credentials = ServerCredentials::default()
        .with_secret(secret())
        .with_token_key(token_key())
        .with_identity(identity())
        .with_open_access();
    let mut config = ServerConfig::new(PROTOCOL_ID, credentials);
    config.token_audience = TokenAudience::Any;
    config.limits.connections = usize::MAX;
    config.limits.connections_per_prefix = usize::MAX;
    config.limits.handshakes = usize::MAX;
    config.limits.handshakes_per_prefix = usize::MAX;
    config.limits.handshakes_without_cookie = usize::MAX;
    config.limits.answers_per_second = 0;
    ServerMachine::new(NOW, 0, config, Platform::new([4; 32], AesSupport::Hardware)).unwrap()
}

fn client(credentials: Credentials, n: u64) -> ClientMachine {
    let mut config = ClientConfig::new(address(), PROTOCOL_ID, credentials);
    config.copies = 1;
    let mut seed = [5; 32];
    seed[..8].copy_from_slice(&n.to_le_bytes());
    ClientMachine::new(NOW, config, Platform::new(seed, AesSupport::Hardware)).expect("a client")
}

fn request(credentials: Credentials, n: u64) -> Vec<u8> {
    let mut datagram = Vec::new();
    assert!(client(credentials, n).poll_datagram(NOW, &mut datagram).is_some());
    datagram
}

fn by_token(n: u64) -> Credentials {
    let claims = TokenClaims::new(0, 60, TokenServers::Every);
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(&n.to_le_bytes());
    let token = token_key().issue(PROTOCOL_ID, &claims, secret(), nonce).expect("a token");
    Credentials::Token(token)
}

fn by_secret(identity: Option<[u8; 32]>) -> Credentials {
    Credentials::Secret { secret: secret(), identity }
}

fn handshakes(c: &mut Criterion) {
    let mut group = c.benchmark_group("handshake");
    group.throughput(Throughput::Elements(1));
    let mut refused = |name: &str, mut make: Box<dyn FnMut() -> Vec<u8>>| {
        let mut server = server();
        let mut forged = make();
        group.bench_function(name, |b| {
            b.iter(|| {
                let refused = server.handle_datagram(NOW, address(), black_box(&mut forged));
                assert!(refused.is_err());
            });
        });
    };
    let broken = |credentials| {
        let mut datagram = request(credentials, 0);
        datagram[1199] ^= 1;
        datagram
    };
    refused("junk refused", Box::new(|| vec![7; 1200]));
    refused("forged check refused", Box::new(move || broken(by_secret(None))));
    refused("forged check with a real token refused", Box::new(move || broken(by_token(0))));
    let bad_token = || {
        let mut datagram = request(by_token(0), 0);
        datagram[60] ^= 1;
        datagram
    };
    refused("forged token refused", Box::new(bad_token));
    type Make = fn(u64) -> Credentials;
    let verified: [(&str, Make); 3] = [
        ("secret verified and answered", |_| by_secret(None)),
        ("token verified and answered", by_token),
        ("identity verified and answered", |_| by_secret(Some(identity().public()))),
    ];
    for (name, credentials) in verified {
        let (mut server, mut n, mut answer) = (server(), 0, Vec::new());
        group.bench_function(name, |b| {
            b.iter_batched(
                || {
                    n += 1;
                    request(credentials(n), n)
                },
                |mut datagram| {
                    server.handle_datagram(NOW, address(), &mut datagram).expect("let in");
                    while server.poll_event(NOW).is_some() {}
                    assert!(server.poll_datagram(NOW, &mut answer).is_some());
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn seals(c: &mut Criterion) {
    let mut group = c.benchmark_group("seal 1100 bytes");
    group.throughput(Throughput::Bytes(1100));
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let key = TrafficSecret::new(secret()).key(suite).expect("a key");
        let mut bytes = vec![1; 1100];
        let mut number = 0;
        group.bench_function(format!("{suite:?} seal"), |b| {
            b.iter(|| {
                number += 1;
                key.seal(number, &[0; 13], black_box(&mut bytes)).expect("sealed")
            });
        });
        let mut sealed = bytes.clone();
        let tag = key.seal(1, &[0; 13], &mut sealed).expect("sealed");
        group.bench_function(format!("{suite:?} open"), |b| {
            let mut bytes = sealed.clone();
            b.iter(|| {
                bytes.copy_from_slice(&sealed);
                key.open(1, &[0; 13], black_box(&mut bytes), &tag).expect("opened");
            });
        });
        group.bench_function(format!("{suite:?} forged refused"), |b| {
            let mut bytes = sealed.clone();
            b.iter(|| {
                bytes.copy_from_slice(&sealed);
                assert!(key.open(2, &[0; 13], black_box(&mut bytes), &tag).is_err());
            });
        });
    }
    group.finish();
}

/// Datagrams that are carried at a time, as a socket does it.
const BATCH: usize = 64;

/// A server and a client that has joined it.
fn joined() -> (ServerMachine, ClientMachine) {
    let (mut server, mut client) = (server(), client(by_secret(None), 0));
    let mut batch = Batch::new(BATCH);
    while carry(NOW, &mut batch, &mut server, &mut client) {}
    assert!(client.connection().is_some());
    (server, client)
}

/// Everything that either wants to send now arrives, a batch at a time. Returns whether there was anything.
fn carry(
    now: Instant,
    batch: &mut Batch,
    server: &mut ServerMachine,
    client: &mut ClientMachine,
) -> bool {
    let mut any = false;
    loop {
        batch.clear();
        server.poll_transmit(now, batch);
        for (_, datagram) in batch.iter_mut() {
            let _refused = client.handle_datagram(now, client.server(), datagram);
        }
        any |= !batch.is_empty();
        if !batch.is_full() {
            break;
        }
    }
    batch.clear();
    client.poll_transmit(now, batch);
    for (_, datagram) in batch.iter_mut() {
        let _refused = server.handle_datagram(now, address(), datagram);
    }
    while server.poll_event(now).is_some() {}
    any || !batch.is_empty()
}

fn blocks(c: &mut Criterion) {
    let mut group = c.benchmark_group("a block of 256 KiB");
    group.throughput(Throughput::Bytes(256 << 10));
    let block = Block::new(1, vec![7; 256 << 10]);
    group.bench_function("through a server and a client", |b| {
        let (mut server, mut client) = joined();
        let mut batch = Batch::new(BATCH);
        let id = server.connections().next().expect("one connection");
        let mut millis = 0;
        b.iter(|| {
            let connection = server.connection_mut(id).expect("it is there");
            let began = Instant::from_millis(millis);
            connection.send_block(began, &block).expect("room");
            loop {
                millis += 1;
                let now = Instant::from_millis(millis);
                server.handle_timeout(now);
                client.handle_timeout(now);
                while carry(now, &mut batch, &mut server, &mut client) {}
                let mut events = std::iter::from_fn(|| client.poll_event(now));
                if events.any(|event| matches!(event, Event::Block { .. })) {
                    break;
                }
            }
        });
    });
    group.finish();
}

/// All 256 repair slices of a chunk.
fn repair(c: &mut Criterion) {
    haulier_proto::prepare();
    let chunk: Vec<u8> =
        (0..256 * 1024u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let cut = Cut::new(chunk.len(), SliceSize::SMALLEST_OF_FULL_CHUNK).expect("a chunk");
    let mut group = c.benchmark_group("repair");
    group.throughput(Throughput::Bytes(chunk.len() as u64));
    group.bench_function("encode 256 of 256", |b| {
        b.iter(|| black_box(encode_repair(black_box(&chunk), cut)));
    });
    group.finish();
}

criterion_group!(benches, handshakes, seals, blocks, repair);
criterion_main!(benches);
