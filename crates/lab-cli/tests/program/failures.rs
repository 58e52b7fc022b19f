//! What cannot be done is refused, with the right code and a sentence that helps; and Ctrl-C.

use crate::support::{Dir, haulier as lab};

/// The message of a command that fails with this code.
fn failure(args: &[&str], code: i32) -> String {
    lab(&[args, &["--json"]].concat()).error(code)
}

#[test]
fn arguments_that_make_no_sense_say_what_would() {
    let cases: [(&[&str], &[&str]); 8] = [
        (&["demo", "--link", "perfect"], &["no link called perfect", "mobile", "shallow"]),
        (&["demo", "--loss", "100%"], &["100% is no loss", "5%"]),
        (&["demo", "--queue", "1"], &["1 is no queue", "64k"]),
        (&["demo", "--rtt", "x"], &["x is no time", "milliseconds"]),
        (&["soak", "--seed", "x"], &["x is no seed"]),
        (&["soak", "--transfers", "5", "--seconds", "5"], &["cannot be used with"]),
        (&["bench"], &["article"]),
        (&[], &["Usage", "demo"]),
    ];
    for (args, words) in cases {
        let run = lab(args);
        assert_eq!(run.code, Some(2), "{}", run.what);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {}", run.what);
        assert!(run.stdout.is_empty(), "{}", run.what);
    }
    lab(&["demo", "--json", "--link", "perfect"]).error(2);
}

#[test]
fn a_demo_of_what_is_not_there() {
    failure(&["demo", &Dir::new().path("missing")], 5);
    let message = failure(&["demo", "--tui"], 2);
    assert!(message.contains("needs a terminal") && message.contains("--view"), "{message}");
}

#[test]
fn a_view_says_when_its_address_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let message = failure(&["demo", "--view", &at], 5);
    assert!(message.contains(&at) && message.contains("in use"), "{message}");
    let message = failure(&["demo", "--wire", "article", "--view", &at], 2);
    assert!(message.contains("leave --tui and --view out"), "{message}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_each_command() {
    let commands: [&[&str]; 3] = [
        &["demo", "--json", "--link", "awful", "--rate", "200k", "--timeout", "50"],
        &["soak", "--json", "--seconds", "50"],
        &["bench", "article", "--json", "--seeds", "300"],
    ];
    for command in commands {
        let program = crate::support::Program::start(command);
        program.event("progress");
        program.signal("INT");
        program.finish().error(130);
    }
}
