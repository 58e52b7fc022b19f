//! What cannot be done is refused with the right exit code and a sentence that says what to do, as text
//! and as JSON, and nothing is changed by it.

use std::net::UdpSocket;

use crate::support::{Dir, Pair, Program, data, haulier, listen, silent};

/// Runs a command that fails, as text and as JSON; both say the same, which is returned.
fn failure(args: &[&str], code: i32) -> String {
    let json = haulier(&[&["--json"], args].concat());
    let message = json.error(code);
    let text = haulier(args);
    assert_eq!(text.code, Some(code), "{}", text.what);
    assert_eq!(text.stderr, format!("haulier: {message}\n"), "{}", text.what);
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// A closed port of loopback, and the socket that keeps other programs from getting it: a connected socket
/// receives only from its own peer.
fn closed_port() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect("127.0.0.1:9").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    (socket, addr)
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let dir = Dir::new();
    let out = dir.file("out", b"precious");
    let message = failure(&["recv", "--bind", "127.0.0.1:0", "-o", &out], 5);
    assert!(message.contains(&out) && message.contains("use --force"), "{message}");
    assert_eq!((dir.read("out"), dir.names("")), (b"precious".to_vec(), vec!["out".into()]));
}

#[test]
fn with_force_an_existing_file_is_replaced() {
    let dir = Dir::new();
    let (file, out) = (dir.file("in", &data(3_000)), dir.file("out", &data(9_999)));
    let (recv, send) = Pair::start(&["-o", &out, "--force"], &file, &[]).finish();
    recv.done();
    send.done();
    assert_eq!((dir.read("out"), dir.names("").len()), (data(3_000), 2));
}

#[test]
fn an_existing_file_in_a_directory_is_not_overwritten_and_the_sender_knows() {
    let dir = Dir::new();
    let (file, inbox) = (dir.file("world.bin", &data(3_000)), dir.dir("inbox"));
    dir.file("inbox/world.bin", b"precious");
    let (recv, send) = Pair::start(&["-o", &inbox], &file, &[]).finish();
    let message = recv.error(5);
    assert!(message.contains("world.bin exists; use --force"), "{message}");
    assert!(send.error(5).contains(&message));
    assert_eq!(dir.read("inbox/world.bin"), b"precious");
    assert_eq!(dir.names("inbox"), ["world.bin"]);
}

/// It was not there when the receiver began to wait.
#[test]
fn a_file_that_appears_during_the_transfer_is_not_overwritten() {
    let dir = Dir::new();
    let file = dir.file("in", &data(600_000));
    let pair = Pair::start(&["-o", &dir.path("out")], &file, &["--rate", "4M"]);
    pair.recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    dir.file("out", b"precious");
    let (recv, send) = pair.finish();
    assert!(recv.error(5).contains("out: file exists"), "{}", recv.what);
    send.error(5);
    assert_eq!((dir.read("out"), dir.names("").len()), (b"precious".to_vec(), 2));
}

#[test]
fn a_file_that_is_not_there_cannot_be_sent() {
    let dir = Dir::new();
    let message = failure(&["send", &dir.path("missing"), "127.0.0.1:9"], 5);
    assert!(message.contains("missing: no such file or directory"), "{message}");
    failure(&["demo", &dir.path("missing")], 5);
}

#[test]
fn a_directory_is_not_a_file() {
    let dir = Dir::new();
    let message = failure(&["send", &dir.path(""), "127.0.0.1:9"], 2);
    assert!(message.contains("is a directory") && message.contains("tar c DIR"), "{message}");
    failure(&["send", "/", "127.0.0.1:9"], 2);
}

#[test]
fn a_place_that_cannot_be_is_refused_before_anything_is_waited_for() {
    let dir = Dir::new();
    let message = failure(&["recv", "--bind", "127.0.0.1:0", "-o", &dir.path("no/out")], 5);
    assert!(message.contains("there is no directory"), "{message}");
    assert!(dir.names("").is_empty());
}

/// `DIR/` says "a directory"; there is none, and no file can have that name.
#[test]
fn a_directory_that_is_not_there_is_refused_before_anything_is_waited_for() {
    let dir = Dir::new();
    let output = dir.path("missing/");
    failure(&["recv", "--bind", "127.0.0.1:0", "-o", &output, "--timeout", "1"], 5);
}

#[test]
fn a_closed_port_is_reported() {
    let dir = Dir::new();
    let (_held, addr) = closed_port();
    let send = ["send", &dir.file("in", &data(3_000)), &addr, "--timeout", "0.5"];
    let message = haulier(&[&["--json"], &send[..]].concat()).error(3);
    let expected =
        format!("nobody listens at {addr}: start `haulier recv --bind ADDR -o FILE` there first");
    assert_eq!(message, expected);
    let text = haulier(&send);
    assert_eq!((text.code, text.stderr), (Some(3), format!("haulier: {expected}\n")));
}

#[test]
fn silence_ends_with_a_timeout() {
    let dir = Dir::new();
    // A socket that does not answer, like a firewall.
    let (_silent, addr) = silent();
    let file = dir.file("in", &data(3_000));
    let message = haulier(&["send", "--json", &file, &addr, "--timeout", "0.5"]).error(3);
    for words in [&*addr, "0.5 s", "haulier recv", "--protocol-id", "firewall"] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn no_sender_comes() {
    let dir = Dir::new();
    let out = dir.path("out");
    let recv = ["recv", "--bind", "127.0.0.1:0", "-o", &out, "--timeout", "0.5"];
    let message = failure_after_listening(&recv);
    assert_eq!(message, "no sender came within 0.5 s");
    assert!(dir.names("").is_empty());
}

/// As [`failure`], for a receiver that had begun to wait.
fn failure_after_listening(recv: &[&str]) -> String {
    let message = haulier(&[recv, &["--json"]].concat()).error(3);
    let text = haulier(recv);
    assert_eq!((text.code, &*text.stderr), (Some(3), &*format!("haulier: {message}\n")));
    message
}

#[test]
fn another_protocol_id_is_hinted_at_on_both_sides() {
    let dir = Dir::new();
    let recv = ["-o", &dir.path("out"), "--timeout", "3", "--protocol-id", "0x11223345"];
    let file = dir.file("in", &data(3_000));
    let (recv, send) = Pair::start(&recv, &file, &["--timeout", "0.5"]).finish();
    assert!(send.error(3).contains("with the same --protocol-id"), "{}", send.what);
    let message = recv.error(3);
    assert!(message.contains("no sender came within 3 s; "), "{message}");
    assert!(message.contains("datagrams were dropped: is --protocol-id the same"), "{message}");
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn a_port_in_use_is_named() {
    let dir = Dir::new();
    let (_taken, addr) = silent();
    let message = failure(&["recv", "--bind", &addr, "-o", &dir.path("out")], 5);
    assert_eq!(message, format!("cannot wait at {addr}: address already in use"));
}

/// A receiver speaks with one sender; another one does not disturb it, and its error says what is known.
#[test]
fn a_second_sender_gives_up_and_the_first_gets_through() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path("out")]);
    let first = dir.file("first", &data(2_000_000));
    let first = Program::start(&["send", "--json", &first, &addr, "--rate", "4M"]);
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    let second = dir.file("second", &[1; 2_000]);
    haulier(&["send", "--json", &second, &addr, "--timeout", "0.5"]).error(3);
    first.finish().done();
    recv.finish().done();
    assert!(dir.read("out") == data(2_000_000));
}

/// Arguments that make no sense: exit code 2, the word that is wrong, and how to write it.
#[test]
fn usage() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    let to = "127.0.0.1:9";
    let out = dir.path("out");
    let bind = ["recv", "--bind", "127.0.0.1:0", "-o", &out];
    let with = |option: &'static str, value: &'static str| [&bind[..], &[option, value]].concat();
    let cases: &[(&[&str], &[&str])] = &[
        (&["send", &file, to, "--rate", "fast"], &["fast is no rate", "80M"]),
        (&["send", &file, to, "--rate", "0"], &["out of range"]),
        (&["send", &file, to, "--timeout", "never"], &["never is no time", "0.5"]),
        (&["send", &file, "nowhere"], &["nowhere is no address", "HOST:PORT"]),
        (&["send", &file], &["<ADDR>"]),
        (&["send", &file, to, "--protocol-id", "0x123456789"], &["is no protocol id"]),
        (&with("--timeout", "0"), &["0 is no time"]),
        (&["recv", "-o", &out], &["--bind"]),
        (&["recv", "--bind", "127.0.0.1:0"], &["--output"]),
        (&["demo", "--link", "perfect"], &["no link called perfect", "mobile", "shallow"]),
        (&["demo", "--loss", "100%"], &["100% is no loss", "5%"]),
        (&["demo", "--queue", "1"], &["1 is no queue", "64k"]),
        (&["demo", "--rtt", "x"], &["x is no time", "milliseconds"]),
        (&["soak", "--seed", "x"], &["x is no seed"]),
        (&["soak", "--transfers", "5", "--seconds", "5"], &["cannot be used with"]),
        (&["bench"], &["article"]),
        (&["inspect"], &["<HEX>"]),
        (&["inspect", "00", "--wire", "tcp"], &["tcp", "article"]),
        (&["teleport"], &["teleport"]),
        (&[], &["Usage", "demo"]),
    ];
    for (args, words) in cases {
        let run = haulier(args);
        assert_eq!(run.code, Some(2), "{}", run.what);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {}", run.what);
        assert!(run.stdout.is_empty(), "{}", run.what);
    }
    assert_eq!(dir.names(""), ["in"]);
}
