//! What memory, hash and cipher take for the bytes of a slice: time of this thread, whatever else runs.

use std::hint::black_box;
use std::time::Duration;

use haulier_proto::connection::Suite;
use haulier_proto::credentials::Secret;
use haulier_proto::internals::TrafficSecret;

use crate::table::{SLICE_BYTES, cpu};

/// More than the caches of one core hold.
const MEMORY_BYTES: usize = 64 << 20;

const CHUNK_BYTES: usize = 256 << 10;

pub(crate) fn print() {
    println!("{:<44} {:>8} {:>8}", "one thread, the best of 9", "ns/slice", "GB/s");
    let source = vec![7; MEMORY_BYTES];
    let mut target = vec![0; MEMORY_BYTES];
    row("memcpy of 64 MiB", || black_box(&mut target).copy_from_slice(black_box(&source)));
    row("memcpy of a slice, in cache", || {
        for _ in 0..MEMORY_BYTES / SLICE_BYTES {
            black_box(&mut target)[..SLICE_BYTES]
                .copy_from_slice(black_box(&source[..SLICE_BYTES]));
        }
    });
    row("BLAKE3 of chunks", || {
        for chunk in source.chunks(CHUNK_BYTES) {
            black_box(blake3::hash(chunk));
        }
    });
    for (name, suite) in
        [("AES-256-GCM", Suite::Aes256Gcm), ("ChaCha20-Poly1305", Suite::ChaCha20Poly1305)]
    {
        let key = TrafficSecret::new(Secret::from_bytes([1; 32])).key(suite).unwrap();
        let mut bytes = vec![7; SLICE_BYTES];
        let (mut number, mut sealed) = (0, vec![]);
        row(&format!("{name}, seal"), || {
            for _ in 0..MEMORY_BYTES / SLICE_BYTES {
                number += 1;
                black_box(key.seal(number, &[0; 13], &mut bytes).unwrap());
            }
        });
        let mut text = vec![7; 8 + SLICE_BYTES + 16];
        row(&format!("{name}, seal from memory"), || {
            for slice in source.chunks_exact(SLICE_BYTES) {
                number += 1;
                key.seal_from(number, &[0; 13], &mut text, slice).unwrap();
                black_box(&text);
            }
        });
        let tag = key.seal(0, &[0; 13], &mut bytes).unwrap();
        sealed.extend_from_slice(&bytes);
        row(&format!("{name}, copy and open"), || {
            for _ in 0..MEMORY_BYTES / SLICE_BYTES {
                bytes.copy_from_slice(&sealed);
                key.open(0, &[0; 13], &mut bytes, &tag).unwrap();
            }
        });
    }
}

/// Runs what goes through 64 MiB.
fn row(name: &str, mut run: impl FnMut()) {
    let mut best = Duration::MAX;
    for _ in 0..9 {
        let begun = cpu();
        run();
        best = best.min(cpu() - begun);
    }
    let each = best.as_nanos() as f64 * SLICE_BYTES as f64 / MEMORY_BYTES as f64;
    println!("{name:<44} {each:>8.0} {:>8.1}", SLICE_BYTES as f64 / each);
}
