//! How a command ends when something beside it goes wrong: signals in pairs, readers that are not there,
//! outputs that are full or closed, folders that cannot be read. No temporary file stays, and the exit code
//! is the right one.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::{Dir, HAULIER, Program, Serving, closed_port, data, fetch, haulier, serve};

/// A server of one file, of which a stream gets much within a second and all of it not before 16.
fn slow_server(dir: &Dir) -> Serving {
    serve(&[&dir.file("in", &data(8_000_000)), "--rate", "4M"])
}

/// `fetch` to this place, with its temporary files in `dir/tmp`.
fn fetch_beside(dir: &Dir, ticket: &str, out: &str) -> Program {
    let tmp = dir.path("tmp");
    fs::create_dir_all(&tmp).unwrap();
    let args = ["fetch", "--json", ticket, "-o", out];
    Program::spawn(Command::new(HAULIER).args(args).env("TMPDIR", tmp))
}

fn has_bytes(event: &serde_json::Value) -> bool {
    event["bytes"].as_u64() > Some(0)
}

/// GNU `timeout` signals its child and then its group, so that two come at once.
fn signal_twice(program: &Program) {
    program.signal("INT");
    program.signal("TERM");
}

#[test]
fn two_signals_at_once_leave_no_spool() {
    let dir = Dir::new();
    let server = slow_server(&dir);
    let fetch = fetch_beside(&dir, &server.ticket, "-");
    fetch.event_where("progress", has_bytes);
    assert_eq!(dir.names("tmp").len(), 1);
    signal_twice(&fetch);
    let message = fetch.finish().error(130);
    assert!(!message.contains("goes on"), "of a stream nothing is kept: {message}");
    assert!(dir.names("tmp").is_empty(), "{:?}", dir.names("tmp"));
}

/// The sender may go on with a file; a stream begins anew.
#[test]
fn an_interrupted_receiver_of_a_stream_promises_nothing() {
    let dir = Dir::new();
    let file = dir.file("in", &data(8_000_000));
    let args = ["recv", "--json", "--bind", "127.0.0.1:0", "-o", "-"];
    let recv = Program::spawn(Command::new(HAULIER).args(args));
    let ticket = recv.event("listening")["ticket"].as_str().unwrap().to_owned();
    let send = Program::start(&["send", "--json", &file, &ticket, "--rate", "4M"]);
    recv.event_where("progress", has_bytes);
    recv.signal("INT");
    let message = recv.finish().error(130);
    assert!(!message.contains("goes on"), "{message}");
    send.finish().error(3);
}

#[test]
fn two_signals_at_once_tell_the_clients_of_a_server() {
    let dir = Dir::new();
    let server = slow_server(&dir);
    let fetch = fetch_beside(&dir, &server.ticket, &dir.path("out"));
    fetch.event_where("progress", has_bytes);
    signal_twice(&server.program);
    assert!(fetch.finish().error_of(3, "closed").contains("the server was shut down"));
    assert!(server.program.finish().error(130).contains("in the middle of a file"));
}

/// Nothing can be done when it is killed, so whoever comes next does it.
#[test]
fn a_spool_that_sigkill_left_is_removed_by_the_next_one() {
    let dir = Dir::new();
    let server = slow_server(&dir);
    let first = fetch_beside(&dir, &server.ticket, "-");
    first.event_where("progress", has_bytes);
    first.signal("KILL");
    assert_eq!(first.finish().code, None);
    let left = dir.names("tmp");
    assert_eq!(left.len(), 1);
    let second = fetch_beside(&dir, &server.ticket, "-");
    second.event("connected");
    let used = dir.names("tmp");
    assert!(used.len() == 1 && used != left, "{left:?} {used:?}");
    second.signal("TERM");
    second.finish().error(130);
    assert!(dir.names("tmp").is_empty(), "{:?}", dir.names("tmp"));
}

#[test]
fn a_pipe_without_a_reader_is_said_and_one_signal_ends_it() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("in", b"a world")]);
    let pipe = dir.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for signal in ["INT", "TERM"] {
        let fetch = fetch_beside(&dir, &server.ticket, &pipe);
        let said = fetch.event("waiting");
        assert!(said["message"].as_str().unwrap().contains("waiting for a reader"), "{said}");
        fetch.signal(signal);
        let message = fetch.finish().error(130);
        assert!(message.contains(&pipe), "{message}");
    }
    let fetch = fetch_beside(&dir, &server.ticket, &pipe);
    fetch.event("waiting");
    let mut got = Vec::new();
    File::open(&pipe).unwrap().read_to_end(&mut got).unwrap();
    assert_eq!(got, b"a world");
    fetch.finish().done();
    assert!(dir.names("tmp").is_empty());
}

/// The end of a pipe that nobody reads: what is written to it fails.
fn closed_pipe() -> Stdio {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let end = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    end.into()
}

/// Standard error that cannot be written is no reason to end otherwise than without it.
#[test]
fn without_standard_error_exit_codes_stay_right() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("in", b"a world")]);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let (_kept, nobody) = closed_port("127.0.0.1");
    let nowhere = dir.path("nowhere/out");
    for (number, log) in [full as fn() -> Stdio, closed_pipe].into_iter().enumerate() {
        let out = dir.path(&format!("out{number}"));
        let cases: [(&[&str], i32); 5] = [
            (&["fetch", &server.ticket, "-o", &out, "--log", "info"], 0),
            (&["fetch", &server.ticket, "-o", &out, "--verbose", "--force"], 0),
            (&["fetch", &server.ticket, "-o", &nowhere], 5),
            (&["fetch", "--open", &nobody, "-o", &out, "--force"], 3),
            (&["serve", &out, &out], 2),
        ];
        for (args, code) in cases {
            let mut command = Command::new(HAULIER);
            let status = command.args(args).stdout(Stdio::null()).stderr(log()).status();
            assert_eq!(status.unwrap().code(), Some(code), "{args:?}");
        }
        assert_eq!(dir.read(&format!("out{number}")), b"a world");
    }
}

/// A server with its log on a full disk goes on, also where there is something to warn of.
#[test]
fn a_server_without_standard_error_goes_on() {
    let dir = Dir::new();
    dir.dir("in");
    let file = dir.file("in/a", b"a world");
    dir.file("in/b", b"another one");
    let mut server = Command::new(HAULIER);
    server.args(["serve", &dir.path("in"), "--bind", "127.0.0.1:0", "--ticket-out"]);
    let ticket = dir.path("ticket");
    let mut server =
        server.arg(&ticket).stdout(Stdio::null()).stderr(closed_pipe()).spawn().unwrap();
    let is_there = || fs::metadata(&ticket).is_ok_and(|it| it.len() > 0).then_some(());
    crate::support::wait_until(is_there).unwrap();
    // It changes after it was offered, of which the server warns.
    fs::write(file, b"a world that is another one").unwrap();
    for name in ["in/a", "in/b"] {
        let out = dir.path(&name.replace('/', "-"));
        haulier(&["fetch", "--json", "--ticket-file", &ticket, name, "-o", &out]);
    }
    assert_eq!(dir.read("in-b"), b"another one");
    Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// A script that asks for a list, and whose disk is full, hears of it.
#[test]
fn what_was_asked_for_and_cannot_be_written_is_a_failure() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("in", b"a world")]);
    let out = dir.path("out");
    let cases: [&[&str]; 3] = [&["--list"], &["--list", "--json"], &["--json", "-o", &out]];
    for args in cases {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(HAULIER);
        let command = command.args(["fetch", &server.ticket]).args(args);
        let run = Program::spawn_to(full, command).finish();
        assert_eq!(run.code, Some(5), "{}", run.what);
        assert!(run.stderr.contains("standard output: no space left on device"), "{}", run.what);
    }
    assert_eq!(dir.read("out"), b"a world");
    // A reader that leaves, as `head` does, has all that it wants.
    let mut command = Command::new(HAULIER);
    command.args(["fetch", &server.ticket, "--list"]).stdout(closed_pipe());
    assert_eq!(command.stderr(Stdio::null()).status().unwrap().code(), Some(0));
}

/// A drop box: others may put files in, and may not list it.
#[test]
fn a_folder_that_may_be_written_and_not_read_gets_its_file() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("in", b"a world")]);
    let inbox = dir.dir("inbox");
    // Root may read everything, so it becomes another user, which has to find the program.
    let program = dir.path("haulier");
    fs::copy(HAULIER, &program).unwrap();
    dir.set_mode("haulier", 0o755);
    dir.set_mode("", 0o755);
    dir.set_mode("inbox", 0o333);
    let out = format!("{inbox}/out");
    let mut command = Command::new(&program);
    command.args(["fetch", "--json", &server.ticket, "-o", &out]).env("HOME", &inbox);
    if fs::metadata(&inbox).is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0) {
        command.uid(65_534).gid(65_534);
    }
    Program::spawn(&mut command).finish().done();
    assert_eq!(dir.read("inbox/out"), b"a world");
    dir.set_mode("inbox", 0o755);
    assert_eq!(dir.names("inbox"), ["out"]);
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0);
}

#[test]
fn a_stream_without_a_place_for_its_spool_says_how_to_give_one() {
    let dir = Dir::new();
    let nowhere = dir.path("nowhere");
    let args = ["fetch", "--json", "192.0.2.7:4016", "--open", "-o", "-"];
    let run = Program::spawn(Command::new(HAULIER).args(args).env("TMPDIR", &nowhere)).finish();
    let message = run.error(5);
    assert!(message.contains(&nowhere) && message.contains("TMPDIR"), "{message}");
}

/// The command that the message advises makes the same command work.
#[test]
fn the_advice_for_a_place_that_is_not_there_works() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("in", b"a world")]);
    let file = dir.file("file", b"no directory");
    for below in ["x", "x/y/z"] {
        let message = fetch(&[&server.ticket, "-o", &format!("{file}/{below}")]).error(5);
        assert!(message.starts_with(&format!("{file} is no directory")), "{message}");
        assert!(!message.contains("mkdir"), "{message}");
    }
    let out = dir.path("a new/folder/of it's own/out");
    let message = fetch(&[&server.ticket, "-o", &out]).error(5);
    let advice = message.split('`').nth(1).unwrap_or_default();
    assert!(advice.starts_with("mkdir "), "{message}");
    assert!(Command::new("sh").args(["-c", advice]).status().unwrap().success(), "{advice}");
    fetch(&[&server.ticket, "-o", &out]).done();
}
