//! haulier's packet layer, renet and laminar, doing the same in one run.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench beside
//!
//! # What is measured
//!
//! * **there**: one end sends a packet, its datagrams cross a wire in memory, the other end's application
//!   has it. Acks come back between the batches, while the stopwatch is held. haulier and laminar
//!   nevertheless repeat their acks in each header. renet's ends are new in each batch, because from its
//!   first answer on an end of renet sends ack packets.
//! * **there and back**: a packet there, an answer of 16 bytes back, and the tick of both ends: one frame
//!   of a game in the steady state, with every ack that the crate sends.
//! * **ack**: what 16 packets received cost when they are acked: made, carried, taken in.
//!
//! All three run at the layer that is one peer, without sockets, threads or a table of peers, and every
//! datagram is copied once into the wire. Before a pair is measured it carries 300 packets, each of which
//! must arrive intact and once; the first 256 go there and back, and must be acked. In the measurement
//! the bytes that arrive are counted.
//!
//! # What is comparable
//!
//! A packet goes from one application to the other and its sender's books know that it arrived. Sizes of
//! fragments are close (haulier 1024 bytes, the others 1200), and so are the datagrams' headers.
//!
//! # What is not
//!
//! * **Checks.** haulier makes and checks a crc32 of every datagram, and of every packet above 1200 bytes
//!   once more. renet leaves that to its transport (encryption, not measured), laminar has none.
//! * **Duplicates.** haulier refuses them. renet delivers unreliable messages as often as they come, and
//!   so does laminar, reliable ones too.
//! * **Reports.** haulier reports each packet as acked or lost, and its poll is measured. renet counts
//!   loss and reports nothing of single unreliable messages; laminar keeps only what has to be resent.
//! * **Reliability.** laminar acks and cuts only what is reliable, so its packets there and back are kept
//!   in a copy for a resend that never comes. Its unreliable ones, in "there", know nothing of acks.
//! * **Ack packets.** renet sends its acks as datagrams of their own: two a flush where others have one.
//!   In memory that is cheap, and on a socket it is a second system call, which is not measured here.
//! * **Allocations.** renet and laminar hand out owned messages and allocate for them. haulier lends, and
//!   an application that wants to keep the bytes has to copy them itself. renet gets its payload as a
//!   counted reference and copies nothing; laminar wants a `Vec`, made in the measurement.
//! * **Memory under attack.** Nothing here is hostile, lost or out of order. (laminar appends fragments in
//!   the order in which they come, so another order would not even arrive intact.)

#![allow(missing_docs, reason = "a bench program")]

use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use haulier_bench::{
    ANSWER_BYTES, Guarantee, HaulierPair, LaminarPair, Pair, Payload, RenetPair, check, exchange,
};

const SIZES: [(&str, usize); 4] =
    [("100 B", 100), ("1100 B", 1100), ("3000 B", 3000), ("16 KiB", 16 * 1024)];

/// Packets between two looks at the clock.
const BATCH: u64 = 16;

/// Times `work` for `BATCH` packets at a time, with `rest` in between that is not timed.
fn in_batches<P>(
    iterations: u64,
    pair: &mut P,
    mut work: impl FnMut(&mut P),
    mut rest: impl FnMut(&mut P),
) -> Duration {
    let batches = iterations.div_ceil(BATCH);
    let mut spent = Duration::ZERO;
    for _ in 0..batches {
        let start = Instant::now();
        (0..BATCH).for_each(|_| work(pair));
        spent += start.elapsed();
        rest(pair);
    }
    spent.mul_f64(iterations as f64 / (batches * BATCH) as f64)
}

fn there<P: Pair>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut pair: P, size: usize) {
    check(&mut pair, size);
    let payload = Payload::new(size, 1);
    let mut sends = |pair: &mut P| {
        let mut arrived = 0;
        pair.there(&payload, |bytes| arrived += bytes.len());
        assert_eq!(arrived, size);
    };
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| in_batches(iterations, &mut pair, &mut sends, P::settle));
    });
}

fn there_and_back<P: Pair>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut pair: P,
    size: usize,
) {
    check(&mut pair, size);
    let (payload, answer) = (Payload::new(size, 1), Payload::new(ANSWER_BYTES, 2));
    // renet's connections have just been renewed by the check.
    (0..100).for_each(|_| _ = exchange(&mut pair, &payload, &answer));
    group.bench_function(name, |b| {
        b.iter(|| assert_eq!(exchange(&mut pair, &payload, &answer), (size, ANSWER_BYTES)));
    });
}

fn packets(c: &mut Criterion) {
    for (name, size) in SIZES {
        let mut group = c.benchmark_group(format!("there, {name}"));
        group.throughput(Throughput::Bytes(size as u64));
        there(&mut group, "haulier", HaulierPair::new(), size);
        there(&mut group, "renet", RenetPair::new(), size);
        if size <= 1200 {
            let pair = LaminarPair::new(Guarantee::Unreliable);
            there(&mut group, "laminar, unreliable", pair, size);
        }
        there(&mut group, "laminar, reliable", LaminarPair::new(Guarantee::Reliable), size);
        group.finish();
    }
    for (name, size) in SIZES {
        let mut group = c.benchmark_group(format!("there and back, {name}"));
        there_and_back(&mut group, "haulier", HaulierPair::new(), size);
        there_and_back(&mut group, "renet", RenetPair::new(), size);
        let pair = LaminarPair::new(Guarantee::Reliable);
        there_and_back(&mut group, "laminar, reliable", pair, size);
        group.finish();
    }
}

/// The remaining work for 16 packets that were received: the ack is made, carried and taken in.
fn acks(c: &mut Criterion) {
    let mut group = c.benchmark_group("ack of 16 packets");
    let payload = Payload::new(100, 1);
    let timed = |iterations, round: &mut dyn FnMut() -> Duration| {
        (0..iterations).map(|_| round()).sum::<Duration>()
    };
    let mut pair = HaulierPair::new();
    check(&mut pair, 100);
    group.bench_function("haulier", |b| {
        b.iter_custom(|iterations| {
            timed(iterations, &mut || {
                (0..BATCH).for_each(|_| pair.there(&payload, |_| ()));
                let start = Instant::now();
                assert_eq!(pair.ack_back(), BATCH);
                let spent = start.elapsed();
                pair.tick();
                spent
            })
        });
    });
    let mut pair = RenetPair::new();
    check(&mut pair, 100);
    group.bench_function("renet", |b| {
        b.iter_custom(|iterations| {
            timed(iterations, &mut || {
                pair.renew();
                (0..BATCH).for_each(|_| pair.there(&payload, |_| ()));
                let start = Instant::now();
                pair.ack_back();
                start.elapsed()
            })
        });
    });
    group.finish();
}

criterion_group!(benches, packets, acks);
criterion_main!(benches);
