//! The bounds for the program: sessions of files with the real pool, writers, disk and loop, and peers that
//! say anything. There is no connection: the sessions get the events that one would make of hostile bytes.
//!
//! Each scenario is a process with a limit on its memory, so that its numbers are its own, and an allocation
//! that is too large is a finding. Offsets, counts and lengths are drawn from the whole range of their
//! fields. A finding prints the line that replays it:
//! `HAULIER_BOUNDS=upload:7 cargo test -p haulier-files --test bounds -- --nocapture the_child`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::single_range_in_vec_init,
    reason = "tests, and sets of pieces are lists of ranges"
)]

mod draw;
mod fetching;
mod liar;
mod meter;
mod uploading;

use std::process::Command;

/// Which scenario a child is, and its seed; without it the test that is the child has nothing to do.
const SCENARIO: &str = "HAULIER_BOUNDS";

/// What a child may map, in KiB: 3 GiB. The bounds are below it, so that a child says what it found where it
/// can.
const MAX_KIB: u64 = 3 << 20;

/// Scenarios of each kind in an ordinary run.
const SEEDS: u64 = 8;

fn run(kind: &str, seeds: impl IntoIterator<Item = u64>) {
    let program = std::env::current_exe().unwrap();
    for seed in seeds {
        let scenario = format!("{kind}:{seed}");
        let limited = format!("ulimit -v {MAX_KIB}; exec \"$0\" --exact the_child --nocapture");
        let mut child = Command::new("sh");
        child.args(["-c", &limited]).arg(&program).env(SCENARIO, &scenario);
        let output = child.output().unwrap();
        let words =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{scenario}: {}\n{words}\nreplay: {SCENARIO}={scenario} cargo test -p haulier-files --test \
             bounds -- --nocapture the_child",
            output.status
        );
    }
}

/// One scenario, if there is one to be.
#[test]
fn the_child() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let (kind, seed) = scenario.split_once(':').unwrap();
    let seed = seed.parse().unwrap();
    let done = match kind {
        "upload" => uploading::to_an_inbox(seed),
        "receive" => uploading::to_a_fetch(seed),
        "fetch" => fetching::beside_an_honest_one(seed),
        _ => panic!("no scenario"),
    };
    println!("{scenario}: {done:?}");
    if let Some(finding) = done.exceeds() {
        panic!("{scenario}: {}", finding.what);
    }
}

/// Also: what lies in the folder costs at most what the quota says, at every moment.
#[test]
fn a_hostile_uploader_costs_no_more_than_it_brings() {
    run("upload", 1..=SEEDS);
}

#[test]
fn a_hostile_server_costs_a_fetch_no_more_than_it_brings() {
    run("receive", 1..=SEEDS);
}

#[test]
fn hostile_fetchers_make_no_honest_one_wait() {
    run("fetch", 1..=SEEDS / 3);
}
