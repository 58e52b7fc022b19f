//! What is shown while a transfer goes on: that an end does not answer, how fast a slow link is, and how many
//! files there are.

use serde_json::{Value, json};

use crate::support::{Dir, Program, data, fetch, recv, send, serve};

fn has_bytes(event: &Value) -> bool {
    event["bytes"].as_u64() > Some(0)
}

/// A server that is stopped is a path that went dark: that is said long before the patience is over, without
/// an estimate.
#[test]
fn an_end_that_does_not_answer_is_said_within_seconds() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", &data(8_000_000)), "--rate", "8M"]);
    let args = ["fetch", "--json", &serving.ticket, "-o", &dir.path("out"), "--timeout", "200"];
    let fetch = Program::start(&args);
    fetch.event_where("progress", has_bytes);
    serving.program.signal("STOP");
    let dark = fetch.event_where("progress", |event| event["no_answer_s"].as_u64() >= Some(3));
    assert_eq!(dark["gives_up_s"], 200.0, "{dark}");
    let dark = fetch.event_where("progress", |event| event["no_answer_s"].as_u64() >= Some(5));
    assert!(dark["remaining_s"].is_null() && dark["bytes_per_second"] == 0, "{dark}");
    serving.program.signal("CONT");
    fetch.finish().done();
    assert!(dir.read("out") == data(8_000_000));
}

/// As text, where there is no terminal.
#[test]
fn an_end_that_does_not_answer_is_said_in_words() {
    let dir = Dir::new();
    let serving = recv(&["-o", &dir.path("out")]);
    let file = dir.file("in", &data(8_000_000));
    let send = Program::start(&["send", &file, &serving.ticket, "--rate", "4M"]);
    serving.program.event_where("progress", has_bytes);
    serving.program.signal("STOP");
    let words = send.error_line(|line| line.contains("no answer for"));
    assert!(words.contains("giving up at 60 s") && !words.contains("ETA"), "{words}");
    serving.program.signal("CONT");
}

/// A chunk of 256 KiB takes ten seconds.
#[test]
fn a_slow_link_has_a_rate_before_its_first_chunk() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", &data(3_000_000)), "--rate", "200k"]);
    let fetch = Program::start(&["fetch", "--json", &serving.ticket, "-o", &dir.path("out")]);
    let has_rate = |event: &Value| event["bytes_per_second"].as_u64() > Some(0);
    let first = fetch.event_where("progress", has_rate);
    assert_eq!(first["bytes"], 0, "{first}");
    assert!(first["unfinished_bytes"].as_u64() > Some(0), "{first}");
    // And an estimate: two minutes, of which the first flight has some.
    let later = fetch.event_where("progress", |event| !event["remaining_s"].is_null());
    assert!(later["remaining_s"].as_f64() > Some(5.0), "{later}");
    fetch.signal("KILL");
}

#[test]
fn a_receiver_says_that_its_sender_is_silent() {
    let dir = Dir::new();
    let serving = recv(&["-o", &dir.path("out")]);
    let file = dir.file("in", &data(8_000_000));
    let send = Program::start(&["send", &file, &serving.ticket, "--rate", "4M"]);
    serving.program.event_where("progress", has_bytes);
    send.signal("STOP");
    let is_dark = |event: &Value| event["no_answer_s"].as_u64() >= Some(3);
    let dark = serving.program.event_where("progress", is_dark);
    assert_eq!(dark["gives_up_s"], 120.0, "{dark}");
    send.signal("CONT");
    serving.program.finish().done();
}

#[test]
fn empty_directories_are_no_files() {
    let dir = Dir::new();
    dir.dir("maps");
    dir.dir("maps/empty");
    dir.dir("maps/void");
    dir.file("maps/one", b"one");
    dir.file("maps/two", b"two");
    let maps = dir.path("maps");
    let serving = serve(&[&maps, "--once"]);
    let done = fetch(&[&serving.ticket, "-o", &dir.path("out/")]).done();
    assert_eq!(done["files"], 2, "{done}");
    assert_eq!(serving.program.finish().done()["files"], 2);
    assert_eq!(dir.names("out/maps"), ["empty", "one", "two", "void"]);
    let serving = recv(&["-o", &dir.path("in/")]);
    let sent = send(&[&maps, &serving.ticket]).done();
    assert_eq!(sent["files"], 2, "{sent}");
    let received = serving.program.finish();
    assert_eq!(received.event("offered")["files"], json!(2));
    assert_eq!(received.done()["files"], 2);
}
