//! What the comparison says of the three crates beside their speed, asserted; and what each of them costs
//! in datagrams, bytes and allocations, which is the same in every run:
//!
//!     cargo test --manifest-path bench/Cargo.toml -- --nocapture

use haulier_bench::{
    ANSWER_BYTES, Fault, Guarantee, HaulierPair, LaminarPair, Pair, Payload, RenetPair, check,
    exchange,
};

const SIZES: [usize; 4] = [100, 1100, 3000, 16 * 1024];
const ROUNDS: u64 = 600;

/// Whether each of a few packets arrives intact, and how many times.
fn arrivals<P: Pair>(pair: &mut P, size: usize, fault: Fault) -> (bool, usize) {
    pair.wire().fault = fault;
    let payload = Payload::new(size, 9);
    let (mut is_intact, mut times) = (true, 0);
    pair.there(&payload, |bytes| {
        is_intact &= bytes == payload.bytes;
        times += 1;
    });
    (is_intact, times)
}

fn haulier() -> HaulierPair {
    HaulierPair::new()
}

fn laminar() -> LaminarPair {
    LaminarPair::new(Guarantee::Reliable)
}

#[test]
fn everything_arrives_over_a_good_wire() {
    for size in SIZES {
        check(&mut haulier(), size);
        check(&mut RenetPair::new(), size);
        check(&mut laminar(), size);
    }
    for size in [100, 1100] {
        check(&mut LaminarPair::new(Guarantee::Unreliable), size);
    }
}

#[test]
fn only_haulier_refuses_duplicates() {
    let fault = Fault::Twice;
    assert_eq!(arrivals(&mut haulier(), 100, fault), (true, 1));
    assert_eq!(arrivals(&mut RenetPair::new(), 100, fault), (true, 2));
    assert_eq!(arrivals(&mut LaminarPair::new(Guarantee::Unreliable), 100, fault), (true, 2));
    assert_eq!(arrivals(&mut laminar(), 100, fault), (true, 2));
}

#[test]
fn laminar_wants_fragments_in_order() {
    let fault = Fault::Reversed;
    assert_eq!(arrivals(&mut haulier(), 3000, fault), (true, 1));
    assert_eq!(arrivals(&mut RenetPair::new(), 3000, fault), (true, 1));
    assert_eq!(arrivals(&mut laminar(), 3000, fault), (false, 1));
}

#[test]
fn only_haulier_allocates_nothing() {
    println!("per round (there, answer back, tick): datagrams, bytes, allocations");
    for size in SIZES {
        assert_eq!(costs("haulier", haulier(), size), 0);
        assert!(costs("renet", RenetPair::new(), size) > 0);
        assert!(costs("laminar", laminar(), size) > 0);
    }
}

/// Prints what a round costs; returns its allocations.
fn costs<P: Pair>(name: &str, mut pair: P, size: usize) -> u64 {
    let (payload, answer) = (Payload::new(size, 1), Payload::new(ANSWER_BYTES, 2));
    let mut run = |rounds| {
        for _ in 0..rounds {
            assert_eq!(exchange(&mut pair, &payload, &answer), (size, ANSWER_BYTES));
        }
        (pair.wire().datagrams, pair.wire().bytes)
    };
    let before = run(ROUNDS);
    let mut after = before;
    let counted = allocation_counter::measure(|| after = run(ROUNDS));
    let each = |sum: u64| sum as f64 / ROUNDS as f64;
    let (datagrams, bytes) = (each(after.0 - before.0), each(after.1 - before.1));
    let allocations = each(counted.count_total);
    println!("{size:6} B {name:8} {datagrams:6.2} {bytes:9.1} {allocations:6.2}");
    counted.count_total
}
