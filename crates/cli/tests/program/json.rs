//! `--json`: what scripts may build on. Every line is an object with an "event", and the last is "done"
//! or "error". The keys are those below; new ones may come, so a script must not mind them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Dir, Finished, Pair, blake3_hex, data, haulier};

fn assert_has(event: &Value, keys: &[&str]) {
    let here: BTreeSet<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !here.contains(**key)).collect();
    assert!(missing.is_empty(), "no {missing:?} in {event}");
}

/// The names of all events, each line being one.
fn names(run: &Finished) -> Vec<String> {
    let name = |event: &Value| event["event"].as_str().expect("a line without event").to_owned();
    run.events().iter().map(name).collect()
}

#[test]
fn a_transfer_from_the_first_line_to_the_last() {
    let dir = Dir::new();
    let (file, out) = (dir.file("world.bin", &data(600_000)), dir.path("out"));
    let (recv, send) = Pair::start(&["-o", &out], &file, &["--rate", "8M"]).finish();

    assert_eq!((&*names(&recv)[0], &*names(&send)[0]), ("listening", "asking"));
    assert_eq!(names(&send)[1], "connected");
    for run in [&recv, &send] {
        let names = names(run);
        assert!(names.contains(&"progress".into()), "{names:?}");
        assert_eq!(names.last().map(String::as_str), Some("done"));
        let events = run.events();
        let progress = events.iter().filter(|event| event["event"] == "progress");
        let done: Vec<u64> = progress.map(|event| event["bytes"].as_u64().unwrap()).collect();
        assert!(done.is_sorted() && done.iter().all(|&bytes| bytes <= 600_000), "{done:?}");
        assert!(run.stderr.is_empty(), "{}", run.what);
    }
    let of = |name: &str| recv.events().into_iter().find(|event| event["event"] == name).unwrap();
    assert_has(&of("listening"), &["addr", "ticket"]);
    assert_has(&of("offered"), &["client", "files", "bytes"]);
    assert_has(&of("received"), &["client", "name", "file", "bytes", "blake3", "ms"]);
    assert_has(&of("closed"), &["client", "addr", "code", "reason", "bytes", "ms"]);

    let digest = json!(blake3_hex(&data(600_000)));
    let (recv, send) = (recv.done(), send.done());
    let shares = ["here_bytes", "resumed_bytes", "copied_bytes"];
    assert_has(&recv, &[&["ok", "file", "bytes", "blake3", "total_ms"], &shares[..]].concat());
    assert_eq!((&recv["file"], &recv["bytes"]), (&json!(out), &json!(600_000)));
    let keys = ["ok", "files", "bytes", "blake3", "total_ms", "rtt_ms", "wire_bytes_out"];
    assert_has(&send, &keys);
    assert_eq!((&recv["blake3"], &send["blake3"]), (&digest, &digest));
    assert!(send["total_ms"].as_f64() > Some(0.0) && recv["total_ms"].as_f64() > Some(0.0));
}

/// The switch is global: it may stand before the command.
#[test]
fn the_switch_may_stand_anywhere() {
    let dir = Dir::new();
    let missing = dir.path("missing");
    haulier(&["--json", "send", &missing, "127.0.0.1:9", "--open"]).error(5);
    haulier(&["send", "--json", &missing, "127.0.0.1:9", "--open"]).error(5);
    haulier(&["send", &missing, "127.0.0.1:9", "--open", "--json"]).error(5);
}

/// A script that got an option wrong reads the answer where it reads all answers.
#[test]
fn wrong_arguments_are_an_event_too() {
    let wrong: [&[&str]; 3] = [
        &["--json", "send", "x", "127.0.0.1:9", "--rate", "fast"],
        &["send", "x", "127.0.0.1:9", "--rate", "fast", "--json"],
        &["recv", "--json", "--most", "x"],
    ];
    for args in wrong {
        haulier(args).error(2);
    }
}

/// Without the switch nothing looks like JSON.
#[test]
fn without_the_switch_there_is_none() {
    let run = haulier(&["inspect", "00"]);
    assert!(!run.text().contains('{'), "{}", run.what);
}
