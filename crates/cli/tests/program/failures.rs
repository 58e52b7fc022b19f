//! What cannot be done is refused with the right exit code and a sentence that says what to do, as text
//! and as JSON, and nothing is changed by it.

use crate::support::{Dir, Pair, Serving, closed_port, data, haulier, recv, send, silent};

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
    assert!(recv.error(5).contains("world.bin exists; use --force"), "{}", recv.what);
    assert!(send.error(5).contains("another file has this name there"), "{}", send.what);
    assert_eq!(dir.read("inbox/world.bin"), b"precious");
    assert_eq!(dir.names("inbox"), ["world.bin"]);
}

#[test]
fn a_file_that_is_not_there_cannot_be_sent() {
    let dir = Dir::new();
    let message = failure(&["send", &dir.path("missing"), "127.0.0.1:9", "--open"], 5);
    assert!(message.contains("missing: no such file or directory"), "{message}");
}

#[test]
fn a_place_that_cannot_be_is_refused_before_anything_is_waited_for() {
    let dir = Dir::new();
    for out in ["no/out", "no/missing/"] {
        let message = failure(&["recv", "--bind", "127.0.0.1:0", "-o", &dir.path(out)], 5);
        assert!(message.contains("there is no directory"), "{message}");
    }
    let args = ["serve", "--bind", "127.0.0.1:0", "--inbox", &dir.path("no"), "--most", "1G"];
    assert!(failure(&args, 5).contains("there is no directory"));
    assert!(dir.names("").is_empty());
}

#[test]
fn several_files_do_not_fit_into_one() {
    let dir = Dir::new();
    let (one, two) = (dir.file("one", b"1"), dir.file("two", b"2"));
    let Serving { program, ticket, .. } = recv(&["-o", &dir.path("out")]);
    let message = send(&[&one, &two, &ticket]).error(3);
    assert!(message.contains("there is room for one file"), "{message}");
    send(&[&one, &ticket]).done();
    program.finish().done();
    assert_eq!(dir.names(""), ["one", "out", "two"]);
}

#[test]
fn a_closed_port_is_reported() {
    let dir = Dir::new();
    let (_held, addr) = closed_port("127.0.0.1");
    let send = ["send", &dir.file("in", &data(3_000)), &addr, "--open", "--timeout", "0.5"];
    let message = haulier(&[&["--json"], &send[..]].concat()).error(3);
    for words in
        [&*format!("nobody listens at {addr}"), "`haulier recv` or `haulier serve --inbox`"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn silence_ends_with_a_timeout() {
    let dir = Dir::new();
    // A socket that does not answer, like a firewall.
    let (_silent, addr) = silent();
    let file = dir.file("in", &data(3_000));
    let message = send(&[&file, &addr, "--open", "--timeout", "0.5"]).error(3);
    for words in [&*addr, "0.5 s", "haulier recv", "firewall"] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn no_sender_comes() {
    let dir = Dir::new();
    let out = dir.path("out");
    let message =
        haulier(&["recv", "--json", "--bind", "127.0.0.1:0", "-o", &out, "--timeout", "0.5"])
            .error(3);
    assert_eq!(message, "no sender came within 0.5 s");
    assert!(dir.names("").is_empty());
}

#[test]
fn a_port_in_use_is_named() {
    let dir = Dir::new();
    let (_taken, addr) = silent();
    let message = failure(&["recv", "--bind", &addr, "-o", &dir.path("out")], 5);
    assert_eq!(message, format!("cannot wait at {addr}: address already in use"));
}

/// Arguments that make no sense: exit code 2, the word that is wrong, and how to write it.
#[test]
fn usage() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    let to = "127.0.0.1:9";
    let out = dir.path("out");
    let recv = ["recv", "--bind", "127.0.0.1:0", "-o", &out];
    let with = |option: &'static str, value: &'static str| [&recv[..], &[option, value]].concat();
    let cases: &[(&[&str], &[&str])] = &[
        (&["send", &file, to, "--rate", "fast"], &["fast is no rate", "80M"]),
        (&["send", &file, to, "--timeout", "never"], &["never is no time", "0.5"]),
        (&["send", &file, to], &["an address alone lets nobody in"]),
        (&["send", &file], &["there is no ticket", "haulier recv", "HAULIER_TICKET"]),
        (&["send", to, "--open"], &["there is nothing to send"]),
        (&["send"], &["<FILE|DIR... TICKET|ADDR>"]),
        (&with("--timeout", "0"), &["0 is no time"]),
        (&with("--most", "all"), &["all is no size", "2G"]),
        (&["serve", "in", "--max-memory", "1k"], &["1k is too little memory", "1M on"]),
        (&["recv", "-o", &out, "--stay"], &["--stay takes file after file"]),
        (&["serve", "--inbox", &out], &["--most"]),
        (&["serve", "--most", "2G", &file], &["--inbox"]),
        (&["serve"], &["<FILE|DIR>"]),
        (&["inspect"], &["<HEX>"]),
        (&["inspect", "00", "--wire", "tcp"], &["tcp", "article"]),
        (&["teleport"], &["teleport"]),
        (&[], &["Usage", "serve"]),
    ];
    for (args, words) in cases {
        let run = haulier(args);
        assert_eq!(run.code, Some(2), "{}", run.what);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {}", run.what);
        assert!(run.stdout.is_empty(), "{}", run.what);
    }
    assert_eq!(dir.names(""), ["in"]);
}

/// A log would be filled with pictures, and nobody could end it by a key.
#[test]
#[cfg(feature = "tui")]
fn a_screen_needs_a_terminal() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    for args in [&["serve", &file, "--tui"][..], &["fetch", "haulier1:x", "--tui"]] {
        let message = failure(args, 2);
        assert!(message.contains("needs a terminal") && message.contains("--view"), "{message}");
    }
}

#[test]
fn a_view_says_when_its_address_is_taken() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let serve = ["serve", &file, "--json", "--bind", "127.0.0.1:0", "--view", &at];
    let message = haulier(&serve).error(5);
    assert!(message.contains(&at) && message.contains("in use"), "{message}");
}
