//! Ctrl-C ends every command with exit code 130 and leaves nothing half-written; sudden death of one end
//! is noticed by the other.

use std::io::Write as _;

use crate::support::{Dir, Pair, Program, data, listen, silent};

/// A transfer of which a part has arrived and much is missing: 16 s at this rate. The ends do without each
/// other for `timeout` seconds.
fn in_the_middle(dir: &Dir, timeout: &str, recv: &[&str]) -> Pair {
    let file = dir.file("in", &data(8_000_000));
    let out = dir.path("out");
    let recv = [&["-o", &out, "--timeout", timeout], recv].concat();
    let pair = Pair::start(&recv, &file, &["--rate", "4M", "--timeout", timeout]);
    pair.recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    pair
}

#[test]
fn until_it_is_verified_the_file_has_another_name() {
    let dir = Dir::new();
    let _pair = in_the_middle(&dir, "30", &[]);
    let names = dir.names("");
    assert_eq!((names.len(), &*names[1]), (2, "in"), "{names:?}");
    assert!(names[0].starts_with(".haulier-") && names[0].ends_with(".part"), "{names:?}");
}

#[test]
fn ctrl_c_at_the_receiver_leaves_nothing_and_is_reported_to_the_sender() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "30", &[]);
    pair.recv.signal("INT");
    let (recv, send) = pair.finish();
    assert!(recv.error(130).contains("nothing half-written was left"), "{}", recv.what);
    assert_eq!(send.error(3), "the receiver was interrupted");
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn ctrl_c_at_the_sender_leaves_nothing() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "1", &[]);
    pair.send.signal("INT");
    let (recv, send) = pair.finish();
    send.error(130);
    let message = recv.error(3);
    assert_eq!(message, "the sender stopped: nothing new for 1 s; nothing was stored");
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn ctrl_c_leaves_the_file_that_was_to_be_replaced() {
    let dir = Dir::new();
    dir.file("out", b"old");
    let pair = in_the_middle(&dir, "30", &["--force"]);
    pair.recv.signal("INT");
    pair.finish().0.error(130);
    assert_eq!(
        (dir.names(""), dir.read("out")),
        (vec!["in".into(), "out".into()], b"old".to_vec())
    );
}

#[test]
fn ctrl_c_in_the_middle_ends_a_receiver_that_stays() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "30", &["--stay"]);
    pair.recv.signal("INT");
    pair.finish().0.error(130);
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn a_sender_that_is_killed_is_missed() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "1", &[]);
    pair.send.signal("KILL");
    let (recv, send) = pair.finish();
    assert_eq!(send.code, None);
    assert!(recv.error(3).contains("the sender stopped"), "{}", recv.what);
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn a_receiver_that_is_killed_is_missed() {
    let dir = Dir::new();
    let pair = in_the_middle(&dir, "1", &[]);
    pair.recv.signal("KILL");
    let (_, send) = pair.finish();
    assert!(send.error(3).contains("stopped answering"), "{}", send.what);
    // What it had cannot be removed by the dead; at least it does not have the file's name.
    assert!(!dir.names("").contains(&"out".to_owned()));
}

/// The end of its data is never confused with the end of a file: the producer's, in `producer | send -`.
#[test]
fn ctrl_c_at_a_sender_of_a_pipe_leaves_nothing() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path("out"), "--timeout", "1"]);
    let send = ["send", "--json", "-", &addr, "--rate", "4M"];
    let send = Program::start_with(&send, &data(8_000_000));
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    send.signal("INT");
    send.finish().error(130);
    recv.finish().error(3);
    assert!(dir.names("").is_empty());
}

/// The producer has nothing to say for the moment; one Ctrl-C is enough all the same.
#[test]
fn ctrl_c_ends_a_sender_that_waits_for_its_pipe() {
    let dir = Dir::new();
    let (_recv, addr) = listen(&["-o", &dir.path("out")]);
    let (send, mut stdin) = Program::start_piped(&["send", "--json", "-", &addr]);
    // More than a pipe holds, less than a chunk: when it is through, the sender is waiting for more.
    stdin.write_all(&data(150_000)).unwrap();
    send.signal("INT");
    send.finish().error(130);
    drop(stdin);
}

#[test]
fn ctrl_c_and_sigterm_end_a_receiver_that_waits() {
    for signal in ["INT", "TERM"] {
        let dir = Dir::new();
        let (recv, _) = listen(&["-o", &dir.path("out")]);
        recv.signal(signal);
        recv.finish().error(130);
        assert!(dir.names("").is_empty());
    }
}

#[test]
fn ctrl_c_ends_a_sender_without_a_receiver() {
    let dir = Dir::new();
    let (_silent, addr) = silent();
    let file = dir.file("in", &data(3_000));
    let send = Program::start(&["send", "--json", &file, &addr, "--timeout", "50"]);
    send.event("sending");
    send.signal("INT");
    send.finish().error(130);
}

#[test]
fn ctrl_c_ends_what_runs_alone() {
    let commands: [&[&str]; 3] = [
        &["demo", "--json", "--link", "awful", "--rate", "200k", "--timeout", "50"],
        &["soak", "--json", "--seconds", "50"],
        &["bench", "article", "--json", "--seeds", "300"],
    ];
    for command in commands {
        let program = Program::start(command);
        program.event("progress");
        program.signal("INT");
        program.finish().error(130);
    }
}

#[test]
fn as_text_an_interrupt_is_said_in_words() {
    let dir = Dir::new();
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", &dir.path("out")]);
    recv.line("waiting at ");
    recv.signal("INT");
    let recv = recv.finish();
    let words = "haulier: interrupted; nothing half-written was left behind\n";
    assert_eq!((recv.code, &*recv.stderr), (Some(130), words));
}
