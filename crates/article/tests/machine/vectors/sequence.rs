//! `sequence.json`: comparisons, distances, rolling indexes and scripts for the sequence buffer.

use haulier_article::ack::is_more_recent;
use haulier_article::{Sequence, SequenceBuffer};
use serde_json::Value;

use super::{int, load, rows, size, text};

fn sequence(value: &Value) -> Sequence {
    Sequence::new(u16::try_from(int(value)).unwrap())
}

#[test]
fn comparisons_and_distances() {
    for row in rows(&load("sequence.json"), "compare", 319) {
        let (a, b) = (sequence(&row["a"]), sequence(&row["b"]));
        assert_eq!(a.is_newer_than(b), row["greater"].as_bool().unwrap(), "{row}");
        assert_eq!(b.is_newer_than(a), row["less"].as_bool().unwrap(), "{row}");
        assert_eq!(a.distance_from(b), int(&row["difference"]), "{row}");
    }
}

#[test]
fn the_older_comparison() {
    for row in rows(&load("sequence.json"), "more_recent", 212) {
        let number = |key: &str| u32::try_from(int(&row[key])).unwrap();
        let newer = is_more_recent(number("s1"), number("s2"), number("max"));
        assert_eq!(newer, row["more_recent"].as_bool().unwrap(), "{row}");
    }
}

/// Pairs of sequences, against the formula of the article: each of these with all others.
fn newer_is_the_article_formula(first: impl Iterator<Item = u16>) {
    let formula = |a: u16, b: u16| (a > b && a - b <= 32_768) || (a < b && b - a > 32_768);
    for a in first {
        for b in 0..=u16::MAX {
            let (x, y) = (Sequence::new(a), Sequence::new(b));
            assert_eq!(x.is_newer_than(y), formula(a, b), "{a} {b}");
            assert!(a == b || x.is_newer_than(y) != y.is_newer_than(x), "{a} {b}");
        }
    }
}

#[test]
fn newer_is_the_article_formula_and_antisymmetric() {
    newer_is_the_article_formula((0..=u16::MAX).step_by(251));
}

#[test]
#[ignore = "half a minute: the step `test-ignored` of CI"]
fn newer_is_the_article_formula_for_every_pair_and_antisymmetric() {
    newer_is_the_article_formula(0..=u16::MAX);
}

#[test]
fn rolling_indexes() {
    let mut compared = 0;
    for row in rows(&load("sequence.json"), "rolling_index", 40) {
        let sequence = sequence(&row["sequence"]);
        let index = match size(&row["size"]) {
            256 => SequenceBuffer::<(), 256>::index(sequence),
            1024 => SequenceBuffer::<(), 1024>::index(sequence),
            64 => SequenceBuffer::<(), 64>::index(sequence),
            // Sizes that do not divide 65,536 do not compile here; the rows show why (65,535 and 0
            // share a slot with their neighbours just after the wrap).
            other => {
                assert!(!65_536usize.is_multiple_of(other), "{row}: a good size was left out");
                assert_eq!(usize::from(sequence.get()) % other, size(&row["index"]), "{row}");
                continue;
            }
        };
        compared += 1;
        assert_eq!(index, size(&row["index"]), "{row}");
    }
    assert!(compared >= 20, "only {compared} rows compared");
}

fn run<const N: usize>(script: &Value) {
    let name = text(&script["name"]);
    let mut buffer = SequenceBuffer::<u16, N>::new();
    for op in script["ops"].as_array().unwrap() {
        let expected = &op["result"];
        match text(&op["op"]) {
            "insert" => {
                let number = sequence(&op["sequence"]);
                let taken = buffer.insert(number, number.get()).is_some();
                assert_eq!(taken, expected.as_bool().unwrap(), "{name}: {op}");
            }
            "insert_range" => {
                let (mut number, to) = (sequence(&op["from"]), sequence(&op["to"]));
                while number != to.next() {
                    assert!(buffer.insert(number, number.get()).is_some(), "{name}: {op}");
                    number = number.next();
                }
            }
            "find" => {
                let found = buffer.get(sequence(&op["sequence"]));
                assert_eq!(found.is_some(), expected.as_bool().unwrap(), "{name}: {op}");
            }
            "remove" => {
                buffer.remove(sequence(&op["sequence"]));
            }
            "reset" => buffer.clear(),
            "sequence" => assert_eq!(buffer.next_sequence(), sequence(expected), "{name}: {op}"),
            "ack_bits" => {
                // The original's convention: bit n is ack - n, bit 0 the ack itself.
                let ack = buffer.next_sequence().previous();
                let bit = |n: u16| u32::from(buffer.get(ack.minus(n)).is_some()) << n;
                let bits = (0..32).map(bit).sum::<u32>();
                assert_eq!(ack, sequence(&expected[0]), "{name}: {op}");
                assert_eq!(i64::from(bits), int(&expected[1]), "{name}: {op}");
            }
            other => panic!("unknown op {other}"),
        }
        buffer.check_invariants();
    }
}

#[test]
fn buffer_scripts() {
    for script in rows(&load("sequence.json"), "buffer_scripts", 19) {
        match size(&script["size"]) {
            8 => run::<8>(script),
            256 => run::<256>(script),
            other => panic!("no test for size {other}"),
        }
    }
}
