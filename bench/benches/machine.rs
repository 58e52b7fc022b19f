//! What the machine costs, against the memcpy that nobody can avoid: bits, checksum, sequence buffer,
//! cutting a chunk into packets, and putting it together again.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench machine
//!
//! Compare within one run only; `docs/PERFORMANCE.md` has ratios.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a bench program")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use haulier_article::bits::{Measure, Reader, Stream, Writer};
use haulier_article::chunk::{
    Ack, ChunkId, ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig,
    MAX_CHUNK_BYTES, Slice, SliceCount, SliceIndex, SliceSet,
};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::{self, Packet, ProtocolId};
use haulier_article::{Instant, MAX_PACKET_BYTES, Sequence, SequenceBuffer};

const PROTOCOL: ProtocolId = ProtocolId::ARTICLE;

fn bits(c: &mut Criterion) {
    let mut group = c.benchmark_group("bits");
    let mut buffer = [0u8; 64];
    let header = |stream: &mut dyn FnMut(u32, u32)| {
        for (value, width) in [(1, 1), (4_711, 16), (200, 8), (255, 8), (1_000, 10)] {
            stream(value, width);
        }
    };
    group.bench_function("write a 43-bit header", |b| {
        b.iter(|| {
            let mut writer = Writer::new(black_box(&mut buffer));
            header(&mut |value, width| {
                writer.bits(value, width).unwrap();
            });
            writer.finish().unwrap()
        });
    });
    group.bench_function("read a 43-bit header", |b| {
        b.iter(|| {
            let mut reader = Reader::new(black_box(&buffer));
            let mut sum = 0;
            header(&mut |_, width| sum += reader.bits(0, width).unwrap());
            sum
        });
    });
    let full = SliceSet::full(SliceCount::new(256).unwrap());
    let ack = ArticlePacket::Ack(Ack { chunk_id: ChunkId::new(1), received: full });
    group.bench_function("measure an ack of 256", |b| {
        b.iter(|| {
            let mut measure = Measure::new();
            black_box(ack).serialize(&mut measure).unwrap();
            measure.bits()
        });
    });
    let mut out = [0; MAX_PACKET_BYTES];
    group.bench_function("write and read an ack of 256, framed", |b| {
        b.iter(|| {
            let length = packet::write(black_box(ack), PROTOCOL, &mut out).unwrap();
            packet::read::<ArticlePacket<'_>>(PROTOCOL, &out[..length]).is_ok()
        });
    });
    group.finish();
}

fn crc(c: &mut Criterion) {
    let mut group = c.benchmark_group("crc");
    let body = vec![7u8; 1033];
    group.throughput(Throughput::Bytes(1033));
    group.bench_function("checksum of a slice packet", |b| {
        b.iter(|| packet::checksum(PROTOCOL, black_box(&body)));
    });
    group.finish();
}

fn sequence_buffer(c: &mut Criterion) {
    let mut group = c.benchmark_group("sequence buffer");
    let mut buffer = SequenceBuffer::<u64, 256>::new();
    let mut sequence = Sequence::new(0);
    group.bench_function("insert the next", |b| {
        b.iter(|| {
            sequence = sequence.next();
            buffer.insert(sequence, 1).is_some()
        });
    });
    group.bench_function("insert after a jump of 200", |b| {
        b.iter(|| {
            sequence = sequence.plus(200);
            buffer.insert(sequence, 1).is_some()
        });
    });
    group.bench_function("find", |b| b.iter(|| buffer.get(black_box(sequence)).copied()));
    group.finish();
}

/// Cutting and putting together 256 KiB, beside a memcpy of the same.
fn chunk(c: &mut Criterion) {
    let mut group = c.benchmark_group("256 KiB");
    group.throughput(Throughput::Bytes(MAX_CHUNK_BYTES as u64));
    let chunk: Vec<u8> = (0..=255).cycle().take(MAX_CHUNK_BYTES).collect();
    let mut copy = vec![0u8; MAX_CHUNK_BYTES];
    group.bench_function("memcpy", |b| {
        b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&chunk)));
    });
    // A received chunk is new memory, which the system clears page by page: the fair measure for it.
    group.bench_function("memcpy into new memory", |b| b.iter(|| black_box(&chunk).to_vec()));

    let shared = bytes::Bytes::from(chunk.clone());
    let mut out = [0; MAX_PACKET_BYTES];
    group.bench_function("slice (sender, no framing)", |b| {
        b.iter_batched_ref(
            || {
                let mut sender = ChunkSender::new(ChunkSenderConfig::default());
                sender.send_chunk(shared.clone()).unwrap();
                sender
            },
            |sender| {
                while let Some(slice) = sender.poll_slice(Instant::ZERO) {
                    copy[..slice.data().len()].copy_from_slice(slice.data());
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("slice and frame into packets", |b| {
        b.iter_batched_ref(
            || {
                let mut sender = ChunkSender::new(ChunkSenderConfig::default());
                sender.send_chunk(shared.clone()).unwrap();
                sender
            },
            |sender| {
                while let Some(slice) = sender.poll_slice(Instant::ZERO) {
                    packet::write(ArticlePacket::Slice(slice), PROTOCOL, &mut out).unwrap();
                }
            },
            BatchSize::SmallInput,
        );
    });

    let count = SliceCount::new(256).unwrap();
    let in_order: Vec<SliceIndex> = count.indices().collect();
    let shuffled: Vec<SliceIndex> =
        (0..256).map(|i| count.index((i * 97 + 31) % 256).unwrap()).collect();
    for (name, order) in [("in order", &in_order), ("shuffled", &shuffled)] {
        group.bench_function(format!("reassemble, {name}"), |b| {
            b.iter_batched_ref(
                || ChunkReceiver::new(ChunkReceiverConfig::default()),
                |receiver| {
                    for &index in order {
                        let slice = Slice::of_chunk(ChunkId::new(0), index, &chunk).unwrap();
                        receiver.handle_slice(Instant::ZERO, &slice).unwrap();
                    }
                    receiver.pop().unwrap()
                },
                BatchSize::SmallInput,
            );
        });
    }

    let packets: Vec<Vec<u8>> = in_order
        .iter()
        .map(|&index| {
            let slice = Slice::of_chunk(ChunkId::new(0), index, &chunk).unwrap();
            let length = packet::write(ArticlePacket::Slice(slice), PROTOCOL, &mut out).unwrap();
            out[..length].to_vec()
        })
        .collect();
    group.bench_function("parse packets and reassemble, in order", |b| {
        b.iter_batched_ref(
            || ChunkReceiver::new(ChunkReceiverConfig::default()),
            |receiver| {
                for packet in &packets {
                    if let Ok(ArticlePacket::Slice(slice)) = packet::read(PROTOCOL, packet) {
                        receiver.handle_slice(Instant::ZERO, &slice).unwrap();
                    }
                }
                receiver.pop().unwrap()
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, bits, crc, sequence_buffer, chunk);
criterion_main!(benches);
