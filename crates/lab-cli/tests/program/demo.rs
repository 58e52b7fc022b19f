//! `demo`: a world crosses an emulated link, and the numbers that come out fit together. Most of it on the
//! article wire, of which more is to be seen; the connection of haulier/1 comes last.

use serde_json::Value;

use crate::support::{Dir, Finished, blake3_hex, data, haulier as lab, keys};

/// Runs the demo on the article wire.
fn article(options: &[&str]) -> Finished {
    lab(&[&["demo", "--wire", "article"], options].concat())
}

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {event}"))
}

/// The last line, once its numbers fit together.
fn check(run: &Finished, bytes: usize) -> Value {
    let done = run.done();
    let expected = "acks_sent blake3 bytes event limit_ms lost ok queue_full ratio slices_resent \
        slices_sent total_ms wire_bytes";
    assert_eq!(keys(&done), expected);
    assert_eq!(number(&done, "bytes"), bytes as f64);
    // Each slice once, and some again.
    let full = bytes / 262_144 * 256;
    let slices = full + (bytes % 262_144).div_ceil(1024);
    assert_eq!(number(&done, "slices_sent") - number(&done, "slices_resent"), slices as f64);
    assert!(number(&done, "acks_sent") >= 1.0, "{done}");
    // Every slice has a header, and headers of UDP and IP.
    let overhead = 41.0 * number(&done, "slices_sent");
    assert!(number(&done, "wire_bytes") >= bytes as f64 + overhead, "{done}");
    let ratio = number(&done, "total_ms") / number(&done, "limit_ms");
    assert!((number(&done, "ratio") - ratio).abs() <= 0.01 * ratio, "{done}");
    done
}

#[test]
fn a_made_up_world_crosses_the_mobile_link() {
    let run = article(&["--json"]);
    let done = check(&run, 262_144);
    let start = &run.events()[0];
    assert_eq!((&start["event"], &start["profile"]), (&"start".into(), &"mobile".into()));
    assert_eq!(number(start, "rate_mbit"), 10.0);
    assert_eq!(number(start, "rtt_ms"), 100.0);
    assert_eq!(number(start, "loss"), 0.05);
    assert_eq!((number(start, "queue_kib"), number(start, "seed")), (256.0, 1.0));
    assert_eq!((start["burst"].as_bool(), number(start, "budget_mbit")), (Some(true), 1.0));
    assert!(number(&done, "lost") > 0.0, "{done}");
    // 50 ms, and 256 KiB in full packets at 9.5 Mbit/s.
    assert!((number(&done, "limit_ms") - 275.9).abs() < 0.2, "{done}");
}

#[test]
fn the_seed_makes_the_world() {
    let digest = |seed| {
        let run = article(&["--json", "--link", "fiber", "--seed", seed]);
        check(&run, 262_144)["blake3"].clone()
    };
    assert_eq!(digest("7"), digest("0x7"));
    assert_ne!(digest("7"), digest("8"));
}

/// More than a chunk, on a link without loss: nothing beats the physical limit.
#[test]
fn a_file_crosses_the_fiber_link() {
    let dir = Dir::new();
    let content = data(600_000);
    let run = article(&[&dir.file("in", &content), "--link", "fiber", "--json"]);
    let done = check(&run, content.len());
    assert_eq!(done["blake3"], blake3_hex(&content));
    assert!(number(&done, "ratio") >= 1.0, "{done}");
    assert_eq!(number(&done, "lost"), 0.0);
    let start = &run.events()[0];
    // No burst for more than a chunk; nine tenths of the link instead.
    assert_eq!((start["burst"].as_bool(), number(start, "budget_mbit")), (Some(false), 90.0));
}

#[test]
fn one_byte_is_enough() {
    let dir = Dir::new();
    check(&article(&["--json", "--link", "fiber", &dir.file("in", b"x")]), 1);
}

#[test]
fn the_link_can_be_changed() {
    let options = ["--rate", "50M", "--rtt", "10", "--loss", "0", "--queue", "1M"];
    let run = article(&[&["--json", "--link", "awful"], &options[..]].concat());
    let done = check(&run, 262_144);
    let start = &run.events()[0];
    assert_eq!((number(start, "rate_mbit"), number(start, "rtt_ms")), (50.0, 10.0));
    assert_eq!((number(start, "loss"), number(start, "queue_kib")), (0.0, 1024.0));
    assert_eq!((number(&done, "lost"), number(&done, "queue_full")), (0.0, 0.0));
    // 5 ms, and 256 KiB in full packets at 50 Mbit/s.
    assert!((number(&done, "limit_ms") - 47.9).abs() < 0.2, "{done}");
}

#[test]
fn a_short_queue_overflows_and_loss_loses() {
    let options = ["--rate", "20M", "--rtt", "20", "--loss", "30%", "--queue", "16k"];
    let options = [&options[..], &["--budget", "10M", "--burst"]].concat();
    let run = article(&[&["--json"], &options[..]].concat());
    let done = check(&run, 262_144);
    assert!(number(&done, "lost") > 0.0 && number(&done, "queue_full") > 0.0, "{done}");
    assert!(number(&done, "slices_resent") > 0.0, "{done}");
    assert_eq!(number(&run.events()[0], "budget_mbit"), 10.0);
}

#[test]
fn as_text_it_compares_with_the_physical_limit() {
    let run = article(&["--link", "cable", "--no-burst", "--budget", "40M"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let words = [
        "256.0 KiB over 50 Mbit/s, 40 ms round trip, 0.1 % loss (cable, seed 1)",
        "delivered and verified in ",
        "the physical limit of this link is 63 ms",
        " slices were sent, ",
        " crossed the link",
        "blake3 ",
    ];
    assert!(words.iter().all(|words| run.text().contains(words)), "{}", run.what);
}

#[test]
fn an_empty_file_has_nothing_to_show() {
    let dir = Dir::new();
    let message = article(&["--json", &dir.file("in", b"")]).error(2);
    assert!(message.contains("in is empty: there is nothing to show"), "{message}");
}

#[test]
fn a_link_that_is_too_bad_ends_with_a_sentence() {
    let message = article(&["--json", "--loss", "0.99", "--timeout", "0.5"]).error(3);
    assert!(message.contains("nothing got through for 0.5 s"), "{message}");
    assert!(message.contains("--timeout"), "{message}");
}

/// The last line of a join, once its numbers fit together.
fn check_join(run: &Finished, bytes: usize) -> Value {
    let done = run.done();
    let expected = "black_holes blake3 bytes connect_ms event limit_ms lost ok queue_full ratio \
        repair_slices_sent rtt_ms slices_resent slices_sent total_ms wire_bytes wire_bytes_in wire_bytes_out";
    assert_eq!(keys(&done), expected);
    assert_eq!(number(&done, "bytes"), bytes as f64);
    assert!(number(&done, "connect_ms") <= number(&done, "total_ms"), "{done}");
    let slices = bytes / 262_144 * 256 + (bytes % 262_144).div_ceil(1024);
    let more = number(&done, "slices_resent") + number(&done, "repair_slices_sent");
    let sent = number(&done, "slices_sent");
    // A machine that is busy enough loses every large datagram for a while: chunks are then cut anew.
    let cuts = 1.0 + number(&done, "black_holes");
    assert!(sent <= slices as f64 * cuts + more, "each source slice is new once in a cut: {done}");
    // A slice may be as large as its datagram, which is what the path was found to carry in a slow join.
    assert!(number(&done, "slices_sent") >= bytes.div_ceil(1472) as f64, "{done}");
    // Three copies of the request, and the other datagrams that arrived.
    assert!(number(&done, "wire_bytes_out") >= 3_600.0, "{done}");
    assert!(number(&done, "wire_bytes_in") > bytes as f64, "{done}");
    assert!(number(&done, "wire_bytes") > number(&done, "wire_bytes_in"), "{done}");
    let ratio = number(&done, "total_ms") / number(&done, "limit_ms");
    assert!((number(&done, "ratio") - ratio).abs() <= 0.01 * ratio, "{done}");
    done
}

#[test]
fn a_player_joins_over_the_mobile_link() {
    let run = lab(&["demo", "--json"]);
    let done = check_join(&run, 262_144);
    assert!(number(&done, "lost") > 0.0, "{done}");
    assert!(number(&done, "repair_slices_sent") > 0.0, "what is lost is repaired: {done}");
    // The link's rate need not be given.
    assert!(run.events()[0]["budget_mbit"].is_null());
    // A round trip at least: the request there, and the welcome back.
    assert!(number(&done, "connect_ms") >= 100.0, "{done}");
    // Twice 50 ms, and 256 KiB in full packets at 9.5 Mbit/s.
    assert!((number(&done, "limit_ms") - 325.9).abs() < 0.2, "{done}");
}

/// More than a chunk, on a link without loss: nothing beats the physical limit.
#[test]
fn a_player_gets_a_file_over_the_fiber_link() {
    let dir = Dir::new();
    let content = data(600_000);
    let run = lab(&["demo", &dir.file("in", &content), "--link", "fiber", "--json"]);
    let done = check_join(&run, content.len());
    assert_eq!(done["blake3"], blake3_hex(&content));
    assert!(number(&done, "ratio") >= 1.0, "{done}");
    check_join(&lab(&["demo", "--json", "--link", "fiber", &dir.file("x", b"x")]), 1);
}

#[test]
fn as_text_a_join_is_compared_with_the_physical_limit() {
    let run = lab(&["demo", "--link", "cable", "--budget", "40M"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let words = [
        "256.0 KiB over 50 Mbit/s, 40 ms round trip, 0.1 % loss (cable, seed 1)",
        "joined after ",
        "delivered and verified in ",
        "the physical limit of this link is 83 ms, with the time of the request",
        " crossed the link",
        "blake3 ",
    ];
    assert!(words.iter().all(|words| run.text().contains(words)), "{}", run.what);
}

#[test]
fn a_link_that_is_too_bad_for_a_join_ends_with_a_sentence() {
    let message = lab(&["demo", "--json", "--loss", "0.99", "--timeout", "0.5"]).error(3);
    assert!(message.contains("nothing got through for 0.5 s"), "{message}");
}

/// Three senders in virtual time: the same numbers in every run, and those of the playground's engine.
#[test]
fn three_senders_are_compared_with_the_limit() {
    let run = lab(&["demo", "--compare", "--json"]);
    let done = run.done();
    assert!((number(&done, "limit_ms") - 325.9).abs() < 0.2, "{done}");
    let takes: Vec<Value> =
        run.events().into_iter().filter(|event| event["event"] == "take").collect();
    let senders: Vec<&str> = takes.iter().filter_map(|take| take["sender"].as_str()).collect();
    assert_eq!(senders, ["haulier", "article", "slow-start"]);
    let scene = lab(&["playground", "--json", "--scene", done["scene"].as_str().unwrap()]);
    let played = scene.events().into_iter().filter(|event| event["event"] == "take");
    for (take, played) in takes.iter().zip(played) {
        assert_eq!(take["whole_ms"], played["whole_ms"]);
        assert_eq!(take["sent"], played["sent"]);
        assert!(number(take, "ratio") >= 1.0 && number(take, "lost") > 0.0, "{take}");
    }
    assert!(number(&takes[0], "whole_ms") < number(&takes[1], "whole_ms"), "{takes:?}");
    assert!(number(&takes[1], "whole_ms") < number(&takes[2], "whole_ms"), "{takes:?}");
}

#[test]
fn a_comparison_in_a_pipe_is_a_table_of_the_link_that_was_asked_for() {
    let run = lab(&["demo", "--slow", "--rate", "20M", "--rtt", "40", "--loss", "0"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let words = [
        "256.0 KiB over 20 Mbit/s, 40 ms round trip, 0.0 % loss",
        "haulier/1",
        "the article's sender",
        "slow start, as TCP",
        "the physical limit of this link, L, is 147 ms",
        " 0 lost",
    ];
    assert!(words.iter().all(|word| run.text().contains(word)), "{}", run.what);
    let message = lab(&["demo", "--compare", "--wire", "article", "--json"]).error(2);
    assert!(message.contains("--wire"), "{message}");
    let dir = Dir::new();
    let large = dir.file("large", &vec![1; (1 << 20) + 1]);
    let message = lab(&["demo", &large, "--compare", "--json"]).error_of(2, "usage");
    assert!(message.contains("bytes from 1 to 1M"), "{message}");
}
