//! What a second worker gains: the same clients at one worker and at two, each on its thread, one desk.
//!
//! Clients on the same cores would eat what there is to gain, so they are recorded. First each worker serves
//! its clients in virtual time, on a link that loses nothing, and every call is written down. Machines are
//! deterministic, so a fresh server with the same seeds does the same work when it is played the same calls:
//! that is measured, and compared by the bytes sent. Sockets are not part of it; theirs are the workers' own.
//!
//! `cargo bench -p haulier --bench workers`. Two kinds: worlds (4 MiB for each of 96 clients: seals), and
//! joins (3000 clients, 1 KiB: requests and key agreements, where the desk is asked the most). Beside the
//! time from the start to the last worker's end it prints the time that the busiest thread used of its core:
//! on a machine that does other things meanwhile only that counts.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::proto::connection::Block;
use haulier::proto::server::{AtDesk, Desk, ServerLimits, Worker};
use haulier::proto::{AesSupport, Batch, Ecn, FourTuple, Instant, Machine, Platform};
use haulier::{Credentials, Secret, ServerConfig, ServerCredentials, ServerEvent};

const PROTOCOL_ID: u64 = 7;

/// How many times each is measured; the best counts, as what disturbs only ever makes it longer.
const RUNS: usize = 5;

/// Datagrams in a batch, as over a socket.
const BATCH: usize = 54;

/// What a worker was called with.
enum Call {
    Datagram(Instant, FourTuple, Vec<u8>),
    /// A round without datagrams.
    Tick(Instant),
}

/// What is served.
struct Kind {
    name: &'static str,
    clients: usize,
    bytes: usize,
}

struct Locked<'a>(&'a Mutex<Desk>);

impl AtDesk for Locked<'_> {
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Desk) -> R) -> R {
        ask(&mut self.0.lock().unwrap())
    }
}

fn open(workers: usize) -> (Mutex<Desk>, Vec<Worker>) {
    let credentials = ServerCredentials::default().with_secret(Secret::from_bytes([1; 32]));
    let limits = ServerLimits::default()
        .with_connections(1 << 20)
        .with_handshakes(1 << 20)
        .with_handshakes_without_cookie(1 << 20);
    let config = ServerConfig::new(PROTOCOL_ID, credentials).with_limits(limits);
    let platforms = (1..).take(workers).map(|n| Platform::new([n; 32], AesSupport::Hardware));
    let (desk, workers) = Desk::open(Instant::ZERO, 0, config, platforms).unwrap();
    (Mutex::new(desk), workers)
}

fn address(n: usize) -> SocketAddr {
    let low = u32::try_from(n).unwrap();
    SocketAddr::from((Ipv4Addr::from_bits((10 << 24) + low), 5000))
}

/// A round: deadlines, the work of the application, and sending. `sent` is called with each datagram.
fn round(
    worker: &mut Worker,
    desk: &Mutex<Desk>,
    now: Instant,
    block: &Block,
    batch: &mut Batch,
    mut sent: impl FnMut(FourTuple, &mut [u8]),
) {
    worker.handle_timeout(now);
    while let Some((id, event)) = worker.poll_event(now) {
        if let ServerEvent::Connecting { .. } = event {
            worker.connection_mut(id).unwrap().send_block(now, block).unwrap();
        }
    }
    loop {
        worker.poll_transmit(now, batch);
        let is_full = batch.is_full();
        batch.iter_mut().for_each(|(to, datagram)| sent(to, datagram));
        batch.clear();
        if !is_full {
            break;
        }
    }
    worker.report(now, &mut Locked(desk));
}

/// Serves these clients until each has its block, and writes down every call.
fn record(
    worker: &mut Worker,
    desk: &Mutex<Desk>,
    block: &Block,
    range: std::ops::Range<usize>,
) -> Vec<Call> {
    let server = SocketAddr::from(([192, 0, 2, 1], 4000));
    let (first, mut calls, mut batch) = (range.start, Vec::new(), Batch::new(BATCH));
    let mut clients: Vec<_> = range
        .map(|n| {
            let access =
                Credentials::Secret { secret: Secret::from_bytes([1; 32]), identity: None };
            let config = ClientConfig::new(server, PROTOCOL_ID, access).with_copies(1);
            let mut seed = [0; 32];
            seed[..8].copy_from_slice(&(n as u64 + 1000).to_le_bytes());
            let platform = Platform::new(seed, AesSupport::Hardware);
            (ClientMachine::new(Instant::ZERO, config, platform).unwrap(), false)
        })
        .collect();
    let (mut up, mut now) = (Batch::new(BATCH), Instant::ZERO);
    while clients.iter().any(|(_, has_block)| !has_block) {
        now = now + Duration::from_millis(1);
        for (n, (client, has_block)) in clients.iter_mut().enumerate() {
            client.handle_timeout(now);
            client.poll_transmit(now, &mut up);
            for (_, datagram) in up.iter_mut() {
                let from = FourTuple::new(address(first + n));
                calls.push(Call::Datagram(now, from, datagram.to_vec()));
                let desk = &mut Locked(desk);
                let _used = worker.handle_datagram(now, desk, from, Ecn::NotEct, datagram);
            }
            up.clear();
            while let Some(event) = client.poll_event(now) {
                *has_block |= matches!(event, haulier::Event::Block { .. });
            }
        }
        calls.push(Call::Tick(now));
        round(worker, desk, now, block, &mut batch, |to, datagram| {
            let SocketAddr::V4(to) = to.remote else { return };
            let n = to.ip().to_bits() as usize - (10 << 24) - first;
            let _used = clients[n].0.handle_datagram(now, server, datagram);
        });
    }
    calls
}

/// The time that this thread has used of its core.
fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Plays each worker its calls, each on its thread. Returns the time from the start to the last end, that of
/// the busiest thread, and the bytes sent.
fn play(tapes: &[Vec<Call>], block: &Block) -> (Duration, Duration, Vec<u64>) {
    let (desk, workers) = open(tapes.len());
    // A copy, because datagrams are decrypted in place.
    let copy = |call: &Call| match call {
        Call::Datagram(now, from, bytes) => Call::Datagram(*now, *from, bytes.clone()),
        Call::Tick(now) => Call::Tick(*now),
    };
    let copies: Vec<Vec<Call>> = tapes.iter().map(|tape| tape.iter().map(copy).collect()).collect();
    let start = Barrier::new(tapes.len() + 1);
    let (desk, start) = (&desk, &start);
    thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .zip(copies)
            .map(|(mut worker, tape)| {
                scope.spawn(move || {
                    let mut batch = Batch::new(BATCH);
                    start.wait();
                    let began = own_time();
                    for call in tape {
                        match call {
                            Call::Datagram(now, from, mut bytes) => {
                                let desk = &mut Locked(desk);
                                let ecn = Ecn::NotEct;
                                let _used =
                                    worker.handle_datagram(now, desk, from, ecn, &mut bytes);
                            }
                            Call::Tick(now) => {
                                round(&mut worker, desk, now, block, &mut batch, |_, _| {});
                            }
                        }
                    }
                    (own_time() - began, worker.stats().bytes_sent)
                })
            })
            .collect();
        start.wait();
        let began = std::time::Instant::now();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let wall = began.elapsed();
        (wall, ends.iter().map(|end| end.0).max().unwrap(), ends.iter().map(|end| end.1).collect())
    })
}

fn main() {
    haulier::proto::prepare();
    let kinds = [
        Kind { name: "worlds", clients: 96, bytes: 4 << 20 },
        Kind { name: "joins", clients: 3000, bytes: 1 << 10 },
    ];
    for Kind { name, clients, bytes } in kinds {
        let block = Block::new(1, vec![7; bytes]);
        let all = [1, 2].map(|workers| {
            let (desk, mut crew) = open(workers);
            let part = clients / workers;
            let tapes: Vec<_> = crew
                .iter_mut()
                .enumerate()
                .map(|(n, worker)| record(worker, &desk, &block, n * part..(n + 1) * part))
                .collect();
            let expected: Vec<_> = crew.iter().map(|worker| worker.stats().bytes_sent).collect();
            let runs: Vec<_> = (0..RUNS).map(|_| play(&tapes, &block)).collect();
            assert!(runs.iter().all(|run| run.2 == expected), "another server than was recorded");
            let best = |time: fn(&(Duration, Duration, Vec<u64>)) -> Duration| {
                runs.iter().map(time).min().unwrap().as_secs_f64() * 1e3
            };
            let (wall, own) = (best(|run| run.0), best(|run| run.1));
            let mib = expected.iter().sum::<u64>() >> 20;
            println!(
                "{name}: {clients} clients, {workers} workers: {wall:.1} ms, busiest thread {own:.1} ms, \
                 {mib} MiB"
            );
            (wall, own)
        });
        let [one, two] = all;
        println!("{name}: gain {:.2}, by the busiest thread {:.2}", one.0 / two.0, one.1 / two.1);
    }
}
