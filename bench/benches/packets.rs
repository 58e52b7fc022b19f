//! What the packet layer costs: an endpoint per packet, reassembly against a memcpy, acks, and the
//! fragments of an attacker that wants it to be slow.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench packets
//!
//! Everything runs in the steady state: windows are full, buffers have grown, what was sent is acked.
//! Where only a part of a round is of interest, the rest runs with the stopwatch held, a batch at a
//! time. Compare within one run only; `docs/PERFORMANCE.md` has the tables.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench program")]

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
};
use haulier_article::ack::{AckBits, ReceivedPackets, SentPackets};
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::{
    FRAGMENT_BYTES, Fragment, FragmentPool, FragmentPoolConfig, Reassembler, split,
};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::MAX_PAYLOAD_BYTES;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{Instant, MAX_PACKET_BYTES, PacketDropReason, Sequence};

type Group<'a> = BenchmarkGroup<'a, criterion::measurement::WallTime>;

const PROTOCOL: ProtocolId = ProtocolId::PACKETS;
const FULL: [u8; FRAGMENT_BYTES] = [7; FRAGMENT_BYTES];

/// Times a part of each round only. `round` does `pieces` pieces of work and returns how long it took.
fn in_rounds(iterations: u64, pieces: u64, mut round: impl FnMut() -> Duration) -> Duration {
    let rounds = iterations.div_ceil(pieces);
    let spent: Duration = (0..rounds).map(|_| round()).sum();
    spent.mul_f64(iterations as f64 / (rounds * pieces) as f64)
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Clock::now();
    work();
    start.elapsed()
}

/// A server that sends to a client that only listens, each with its pool, over a wire without loss.
struct Link {
    now: Instant,
    server: Endpoint,
    client: Endpoint,
    server_pool: FragmentPool,
    client_pool: FragmentPool,
    payload: Vec<u8>,
    datagrams: Vec<Vec<u8>>,
    under_way: usize,
}

impl Link {
    /// Asserts that a payload of this size arrives as it was sent, and is acked.
    fn new(bytes: usize) -> Self {
        // An ack packet for whatever arrived, as soon as the client is asked for datagrams.
        let config = EndpointConfig::default().with_ack_interval(Some(Duration::ZERO));
        let mut link = Self {
            now: Instant::ZERO,
            server: Endpoint::new(config).unwrap(),
            client: Endpoint::new(config).unwrap(),
            server_pool: FragmentPool::default(),
            client_pool: FragmentPool::default(),
            payload: (0..=255).cycle().take(bytes).collect(),
            datagrams: vec![Vec::new()],
            under_way: 0,
        };
        // The client has said something, so the server's packets have acks in their headers.
        for _ in 0..33 {
            link.client.send(link.now, b"forward, fire").unwrap();
            assert!(link.client.poll_datagram(link.now, &mut link.datagrams[0]));
            let opened =
                link.server.handle_datagram(link.now, &link.datagrams[0], &mut link.server_pool);
            opened.unwrap().unwrap().accept();
        }
        for round in 0..=255 {
            link.payload[0] = round;
            link.send();
            let expected = link.payload.clone();
            assert_eq!(link.receive(|payload| assert!(payload == expected)), 1);
            assert_eq!(link.ack_back(), 1);
            link.tick();
        }
        let acked = (link.client.stats().packets_acked, link.server.stats().packets_acked);
        assert_eq!(acked, (33, 256));
        link
    }

    fn send(&mut self) {
        self.server.send(self.now, black_box(&self.payload)).unwrap();
        loop {
            if self.under_way == self.datagrams.len() {
                self.datagrams.push(Vec::with_capacity(MAX_PACKET_BYTES));
            }
            if !self.server.poll_datagram(self.now, &mut self.datagrams[self.under_way]) {
                return;
            }
            self.under_way += 1;
        }
    }

    /// Returns how many packets came.
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        let mut packets = 0;
        for datagram in &self.datagrams[..self.under_way] {
            let opened = self.client.handle_datagram(self.now, datagram, &mut self.client_pool);
            if let Some(delivery) = opened.unwrap() {
                take(delivery.accept());
                packets += 1;
            }
        }
        self.under_way = 0;
        packets
    }

    /// Returns how many packets were acked.
    fn ack_back(&mut self) -> usize {
        let datagram = &mut self.datagrams[0];
        while self.client.poll_datagram(self.now, datagram) {
            let opened = self.server.handle_datagram(self.now, datagram, &mut self.server_pool);
            assert!(opened.unwrap().is_none());
        }
        let mut acked = 0;
        while let Some(event) = self.server.poll_event() {
            acked += usize::from(matches!(event, EndpointEvent::Acked { .. }));
        }
        acked
    }

    fn tick(&mut self) {
        self.now = self.now + Duration::from_millis(16);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
    }
}

fn take(payload: &[u8]) {
    black_box(payload);
}

/// One packet of each size through a pair of endpoints.
fn endpoint(c: &mut Criterion) {
    for (name, bytes) in
        [("100 B", 100), ("1100 B", 1100), ("3000 B", 3000), ("256 KiB", MAX_PAYLOAD_BYTES)]
    {
        let mut group = c.benchmark_group(format!("endpoint, {name}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        // Packets between two looks at the clock; as many as one ack packet tells of.
        let batch: usize = if bytes > 10_000 { 1 } else { 16 };
        let link = &mut Link::new(bytes);
        group.bench_function("send and poll_transmit", |b| {
            b.iter_custom(|iterations| {
                in_rounds(iterations, batch as u64, || {
                    let spent = timed(|| (0..batch).for_each(|_| link.send()));
                    assert_eq!((link.receive(take), link.ack_back()), (batch, batch));
                    link.tick();
                    spent
                })
            });
        });
        group.bench_function("handle_datagram and accept", |b| {
            b.iter_custom(|iterations| {
                in_rounds(iterations, batch as u64, || {
                    (0..batch).for_each(|_| link.send());
                    let spent = timed(|| assert_eq!(link.receive(take), batch));
                    assert_eq!(link.ack_back(), batch);
                    link.tick();
                    spent
                })
            });
        });
        group.bench_function("send, carry, receive, ack back, events, timeouts", |b| {
            b.iter(|| {
                link.send();
                assert_eq!((link.receive(take), link.ack_back()), (1, 1));
                link.tick();
            });
        });
        group.finish();
    }

    let mut group = c.benchmark_group("endpoint");
    let mut link = Link::new(100);
    group.bench_function("ack packet for 16: write, read, 16 events", |b| {
        b.iter_custom(|iterations| {
            in_rounds(iterations, 1, || {
                (0..16).for_each(|_| link.send());
                assert_eq!(link.receive(take), 16);
                let spent = timed(|| assert_eq!(link.ack_back(), 16));
                link.tick();
                spent
            })
        });
    });
    group.bench_function("timeouts of both ends, each 16 ms", |b| {
        b.iter_custom(|iterations| {
            in_rounds(iterations, 1, || {
                link.send();
                assert_eq!((link.receive(take), link.ack_back()), (1, 1));
                timed(|| link.tick())
            })
        });
    });
    group.finish();
}

/// A packet of `count` full fragments, as datagrams, under each of `sequences`.
fn recorded(count: usize, sequences: u16, order: &[usize]) -> Vec<Vec<Vec<u8>>> {
    let whole: Vec<u8> = (0..=255).cycle().take(count * FRAGMENT_BYTES).collect();
    let packet = |sequence: u16| {
        let fragments: Vec<_> = split(Sequence::new(sequence), &whole).unwrap().collect();
        let datagram = |&index: &usize| {
            let mut out = vec![0; MAX_PACKET_BYTES];
            let length =
                packet::write(FragmentPacket(fragments[index]), PROTOCOL, &mut out).unwrap();
            out.truncate(length);
            out
        };
        order.iter().map(datagram).collect()
    };
    (0..sequences).map(packet).collect()
}

fn parse(datagram: &[u8]) -> Fragment<'_> {
    let FragmentPacket(fragment) = packet::read(PROTOCOL, datagram).unwrap();
    fragment
}

/// Putting packets of 4 and of 256 fragments together, beside a memcpy of as many bytes.
fn reassembly(c: &mut Criterion) {
    // Few enough packets that all their datagrams stay in the second-level cache.
    for (count, sequences) in [(4, 16), (256, 2)] {
        let mut group = c.benchmark_group(format!("reassembly, {count} fragments"));
        let bytes = count * FRAGMENT_BYTES;
        group.throughput(Throughput::Bytes(bytes as u64));
        let source = vec![7u8; bytes];
        let mut copy = vec![0u8; bytes];
        group.bench_function("memcpy", |b| {
            b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&source)));
        });
        let shuffled: Vec<usize> = match count {
            4 => vec![2, 0, 3, 1],
            _ => (0..count).map(|i| (i * 97 + 31) % count).collect(),
        };
        let in_order: Vec<usize> = (0..count).collect();
        for (name, order) in [("in order", &in_order), ("shuffled", &shuffled)] {
            let packets = recorded(count, sequences, order);
            let parsed: Vec<Vec<Fragment<'_>>> = packets
                .iter()
                .map(|packet| packet.iter().map(|datagram| parse(datagram)).collect())
                .collect();
            reassemble(&mut group, name, &parsed, |fragment| *fragment);
            reassemble(&mut group, &format!("{name}, parsed with crc"), &packets, |d| parse(d));
        }
        let datagrams = &recorded(count, 1, &in_order)[0];
        group.bench_function("in order, parsed with crc, into a new pool", |b| {
            b.iter_batched_ref(
                || (Reassembler::new(), FragmentPool::default()),
                |(reassembler, pool)| {
                    for datagram in datagrams {
                        let fragment = parse(datagram);
                        let _ = reassembler.handle_fragment(Instant::ZERO, &fragment, pool);
                    }
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

/// Reassembles recorded packets again and again. Before each run through them the window is emptied with the
/// stopwatch held, because otherwise all would be duplicates.
fn reassemble<P>(
    group: &mut Group<'_>,
    name: &str,
    packets: &[Vec<P>],
    open: impl Fn(&P) -> Fragment<'_>,
) {
    let (mut reassembler, mut pool) = (Reassembler::new(), FragmentPool::default());
    let whole: Vec<u8> = (0..=255).cycle().take(packets[0].len() * FRAGMENT_BYTES).collect();
    for piece in &packets[0] {
        let done = reassembler.handle_fragment(Instant::ZERO, &open(piece), &mut pool).unwrap();
        done.inspect(|packet| assert!(*packet == whole));
    }
    assert_eq!(reassembler.stats().packets, 1);
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            in_rounds(iterations, packets.len() as u64, || {
                reassembler.clear(&mut pool);
                let before = reassembler.stats().packets;
                let spent = timed(|| {
                    for piece in packets.iter().flatten() {
                        let fragment = open(black_box(piece));
                        let done = reassembler.handle_fragment(Instant::ZERO, &fragment, &mut pool);
                        black_box(done.unwrap());
                    }
                });
                assert_eq!(reassembler.stats().packets - before, packets.len() as u64);
                spent
            })
        });
    });
}

/// A full window, all of it acked.
fn acked_window() -> SentPackets<Sequence> {
    let mut sent = SentPackets::new();
    for _ in 0..300 {
        let ack = sent.on_sent(Instant::ZERO, 100).sequence;
        assert_eq!(sent.on_ack(Instant::ZERO, AckBits { ack, bits: u32::MAX }).acked(), [ack]);
    }
    sent
}

fn acks(c: &mut Criterion) {
    let mut group = c.benchmark_group("acks");
    let now = Instant::from_millis(5);
    let mut sent = acked_window();
    group.bench_function("on_sent, over a packet that is lost by it", |b| {
        b.iter(|| sent.on_sent(now, 100));
    });
    let mut sent = acked_window();
    group.bench_function("on_ack, 1 of 33 is new", |b| {
        b.iter_custom(|iterations| {
            in_rounds(iterations, 128, || {
                let first = sent.next_sequence();
                (0..128).for_each(|_| _ = sent.on_sent(now, 100));
                let mut acked = 0;
                let spent = timed(|| {
                    for n in 0..128 {
                        let acks = AckBits { ack: first.plus(n), bits: u32::MAX };
                        acked += sent.on_ack(now, black_box(acks)).acked().len();
                    }
                });
                assert_eq!(acked, 128);
                spent
            })
        });
    });
    let next = acked_window().next_sequence();
    for (name, ack) in [
        ("none of 33 is new", next.minus(1)),
        ("33 numbers that were never sent", next.plus(1_000)),
    ] {
        let (mut sent, acks) = (acked_window(), AckBits { ack, bits: u32::MAX });
        assert!(sent.on_ack(now, acks).acked().is_empty());
        group.bench_function(format!("on_ack, {name}"), |b| {
            b.iter(|| sent.on_ack(now, black_box(acks)));
        });
    }
    // Seven times 33 packets are all that a window holds, so four windows for one look at the clock.
    let mut windows = vec![acked_window(); 4];
    group.bench_function("on_ack, 33 of 33 are new", |b| {
        b.iter_custom(|iterations| {
            in_rounds(iterations, 4 * 7, || {
                let first = windows[0].next_sequence();
                for sent in &mut windows {
                    (0..7 * 33).for_each(|_| _ = sent.on_sent(now, 100));
                }
                let mut acked = 0;
                let spent = timed(|| {
                    for sent in &mut windows {
                        for n in 1..=7 {
                            let acks = AckBits { ack: first.plus(33 * n - 1), bits: u32::MAX };
                            acked += sent.on_ack(now, black_box(acks)).acked().len();
                        }
                    }
                });
                assert_eq!(acked, 4 * 7 * 33);
                spent
            })
        });
    });

    let mut received = ReceivedPackets::<Sequence>::new();
    let mut next = Sequence::new(0);
    for _ in 0..300 {
        next = next.next();
        received.on_accepted(now, next, 100);
    }
    group.bench_function("ReceivedPackets::check and on_accepted", |b| {
        b.iter(|| {
            next = next.next();
            received.check(now, next).unwrap();
            received.on_accepted(now, next, 100);
        });
    });
    group.bench_function("ack_bits", |b| b.iter(|| black_box(&received).ack_bits()));
    group.finish();
}

/// The first fragment of a packet of many.
fn opening(sequence: Sequence, count: usize) -> Fragment<'static> {
    Fragment::new(sequence, 0, count, &FULL).unwrap()
}

fn attack(c: &mut Criterion) {
    let mut group = c.benchmark_group("attack");
    let now = Instant::ZERO;

    // A pool of the minimum size has no room for two packets, so every fragment evicts one.
    let small =
        FragmentPoolConfig::default().with_max_bytes_per_peer(448 + 2 * 1088).with_max_fragments(2);
    let (mut peer, mut pool) = (Reassembler::new(), FragmentPool::new(small).unwrap());
    let mut sequence = Sequence::new(0);
    let mut flood = |pool: &mut FragmentPool| {
        sequence = sequence.next();
        let _ = peer.handle_fragment(now, &opening(sequence, 2), pool);
    };
    (0..1_001).for_each(|_| flood(&mut pool));
    assert_eq!(pool.stats().evicted_for_own_peer, 1_000);
    group.bench_function("fragment that evicts a packet of one", |b| b.iter(|| flood(&mut pool)));

    let shared = FragmentPoolConfig::default().with_max_bytes(1024 * 1024);
    let (mut peers, mut pool) =
        (vec![Reassembler::new(); 1_000], FragmentPool::new(shared).unwrap());
    let (mut turn, mut sequence) = (0, Sequence::new(0));
    let mut flood = |pool: &mut FragmentPool| {
        let _ = peers[turn].handle_fragment(now, &opening(sequence, 2), pool);
        turn = (turn + 1) % peers.len();
        if turn == 0 {
            sequence = sequence.next();
        }
    };
    (0..3_000).for_each(|_| flood(&mut pool));
    assert_eq!((pool.stats().evicted_for_others, pool.stats().peers), (3_000 - 682, 682));
    group.bench_function("fragment that evicts a packet of another of 682 peers", |b| {
        b.iter(|| flood(&mut pool));
    });

    group.bench_function("fragment that evicts a packet of 255", |b| {
        b.iter_custom(|iterations| {
            let (mut peers, mut pool) = (vec![Reassembler::new(); 16], FragmentPool::default());
            let peers = peers.as_mut_slice();
            in_rounds(iterations, 16, || {
                peers.iter_mut().for_each(|peer| fill(peer, &mut pool));
                let before = pool.stats().evicted_for_own_peer;
                let last = Fragment::new(Sequence::new(3), 197, 256, &FULL).unwrap();
                let spent = timed(|| {
                    for peer in peers.iter_mut() {
                        let _ = peer.handle_fragment(now, black_box(&last), &mut pool);
                    }
                });
                assert_eq!(pool.stats().evicted_for_own_peer - before, 16);
                peers.iter_mut().for_each(|peer| peer.clear(&mut pool));
                spent
            })
        });
    });

    let (mut peer, mut pool) = (Reassembler::new(), FragmentPool::default());
    let mut sequence = Sequence::new(0);
    group.bench_function("fragment that jumps the window by 300", |b| {
        b.iter(|| {
            sequence = sequence.plus(300);
            let _ = peer.handle_fragment(now, &opening(sequence, 2), &mut pool);
        });
        assert_eq!(pool.stats().packets, 1);
    });

    group.bench_function("fragment that jumps over a window of 256 begun packets", |b| {
        b.iter_custom(|iterations| {
            let (mut peers, mut pool) = (vec![Reassembler::new(); 16], FragmentPool::default());
            let mut sequence = Sequence::new(0);
            in_rounds(iterations, 16, || {
                for peer in &mut peers {
                    for n in 1..=256 {
                        let fragment = opening(sequence.plus(n), 2);
                        peer.handle_fragment(now, &fragment, &mut pool).unwrap();
                    }
                }
                assert!(pool.stats().packets >= 16 * 256);
                sequence = sequence.plus(600);
                let jump = opening(sequence, 2);
                let spent = timed(|| {
                    for peer in &mut peers {
                        let _ = peer.handle_fragment(now, black_box(&jump), &mut pool);
                    }
                });
                assert_eq!(pool.stats().packets, 16);
                spent
            })
        });
    });

    let mut link = Link::new(100);
    let noise = [0x5a; MAX_PACKET_BYTES];
    group.bench_function("1200 bytes of noise, refused", |b| {
        b.iter(|| {
            let opened = link.client.handle_datagram(now, black_box(&noise), &mut link.client_pool);
            assert_eq!(opened.err(), Some(PacketDropReason::BadCrc));
        });
    });
    group.finish();
}

/// Three packets that lack one fragment of 256 each, and 197 fragments of a fourth: all that a peer may
/// hold, to 128 bytes.
fn fill(peer: &mut Reassembler, pool: &mut FragmentPool) {
    let evicted = pool.stats().evicted_for_own_peer;
    for (sequence, fragments) in [(0, 255), (1, 255), (2, 255), (3, 197)] {
        for index in 0..fragments {
            let fragment = Fragment::new(Sequence::new(sequence), index, 256, &FULL).unwrap();
            assert_eq!(peer.handle_fragment(Instant::ZERO, &fragment, pool), Ok(None));
        }
    }
    assert_eq!(pool.stats().evicted_for_own_peer, evicted);
}

criterion_group!(benches, endpoint, reassembly, acks, attack);
criterion_main!(benches);
