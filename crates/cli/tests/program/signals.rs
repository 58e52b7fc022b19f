//! Ctrl-C ends every command with exit code 130 and leaves nothing half-written under a name; sudden death of
//! one end is noticed by the other.

use std::io::Write as _;

use crate::support::{Dir, Pair, Program, data, recv, silent};

/// The files in the directory after a transfer to `out` was interrupted.
const KEPT: [&str; 3] = ["in", "out.haulier-journal", "out.haulier-part"];

/// A transfer of which a part has arrived and much is missing: 16 s at this rate. The ends do without each
/// other for `timeout` seconds.
fn in_the_middle(dir: &Dir, timeout: &str, recv: &[&str]) -> Pair {
    let file = dir.file("in", &data(8_000_000));
    let out = dir.path("out");
    let recv = [&["-o", &*out], recv].concat();
    let pair = Pair::start(&recv, &file, &["--rate", "4M", "--timeout", timeout]);
    pair.recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    pair
}

#[test]
fn ctrl_c_at_the_receiver_keeps_what_came_and_is_reported_to_the_sender() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "30", &[]);
    assert_eq!(dir.names(""), KEPT);
    pair.recv.signal("INT");
    let (recv, send) = pair.finish();
    assert!(recv.error(130).contains("what has arrived is kept"), "{}", recv.what);
    assert!(send.error(3).contains("was stopped before all was there"), "{}", send.what);
    assert_eq!(dir.names(""), KEPT);
}

/// Whoever vanished comes back, or another one with the ticket does.
#[test]
fn ctrl_c_at_the_sender_is_no_end_for_the_receiver() {
    let dir = Dir::new();
    let content = data(8_000_000);
    let file = dir.file("in", &content);
    let serving = recv(&["-o", &dir.path("out")]);
    let args = ["send", "--json", &file, &serving.ticket, "--rate", "4M"];
    let first = Program::start(&args);
    serving.program.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    first.signal("INT");
    assert!(first.finish().error(130).contains("goes on from there"));
    let closed = serving.program.event("closed");
    assert_eq!(closed["reason"], "it was stopped", "{closed}");
    crate::support::send(&[&file, &serving.ticket]).done();
    let done = serving.program.finish().done();
    assert!(done["resumed_bytes"].as_u64() > Some(0), "{done}");
    assert!(dir.read("out") == content);
}

#[test]
fn ctrl_c_leaves_the_file_that_was_to_be_replaced() {
    let dir = Dir::new();
    dir.file("out", b"old");
    let pair = in_the_middle(&dir, "30", &["--force"]);
    pair.recv.signal("INT");
    pair.finish().0.error(130);
    assert_eq!(dir.read("out"), b"old");
}

#[test]
fn a_receiver_that_is_killed_is_missed() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "1", &[]);
    pair.recv.signal("KILL");
    let (_, send) = pair.finish();
    assert!(send.error(3).contains("stopped answering"), "{}", send.what);
    assert_eq!(dir.names(""), KEPT);
}

/// The producer writes nothing for the moment; one Ctrl-C is enough nevertheless.
#[test]
fn ctrl_c_ends_a_sender_that_waits_for_its_pipe() {
    let dir = Dir::new();
    let serving = recv(&["-o", &dir.path("out")]);
    let (send, mut stdin) = Program::start_piped(&["send", "--json", "-", &serving.ticket]);
    stdin.write_all(&data(150_000)).unwrap();
    send.event("connected");
    send.signal("INT");
    send.finish().error(130);
    drop(stdin);
    // The end of its data is never taken for the end of a file.
    assert!(!dir.names("").contains(&"out".into()));
}

#[test]
fn ctrl_c_and_sigterm_end_a_receiver_that_waits() {
    for signal in ["INT", "TERM"] {
        let dir = Dir::new();
        let serving = recv(&["-o", &dir.path("out")]);
        serving.program.signal(signal);
        serving.program.finish().error(130);
        assert!(dir.names("").is_empty());
    }
}

#[test]
fn ctrl_c_ends_a_sender_without_a_receiver() {
    let dir = Dir::new();
    let (silent, addr) = silent();
    let file = dir.file("in", &data(3_000));
    let send = Program::start(&["send", "--json", &file, &addr, "--open", "--timeout", "50"]);
    // Its request is here: it waits.
    silent.recv(&mut [0; 1200]).unwrap();
    send.signal("INT");
    send.finish().error(130);
}

#[test]
fn as_text_an_interrupt_is_said_in_words() {
    let dir = Dir::new();
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", &dir.path("out")]);
    recv.line("haulier1:");
    recv.signal("INT");
    let recv = recv.finish();
    let words = "\nhaulier: interrupted; nothing half-written was left behind\n";
    assert!(recv.code == Some(130) && recv.stderr.ends_with(words), "{}", recv.what);
}
