//! What a file keeps beside its bytes, from `serve` and `send` to `fetch` and `recv`: whether it can be run,
//! when it was changed, and which users may read it, as far as the umask here allows it, too.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::{
    Dir, HAULIER, Pair, Program, Serving, data, fetch, haulier, recv, send, serve,
};

/// A file that can be run, last changed a second and a bit after 2001-09-09.
fn program(dir: &Dir, name: &str, content: &[u8]) -> String {
    let path = dir.file(name, content);
    dir.set_mode(name, 0o4755);
    date(&path);
    path
}

fn date(path: &str) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_001, 123_456_789);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

const DATE: (i64, i64) = (1_000_000_001, 123_456_789);

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn time(path: &str) -> (i64, i64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.mtime(), metadata.mtime_nsec())
}

/// A new file of ours here, by the umask.
fn usual(dir: &Dir) -> u32 {
    mode(&dir.file("usual", b""))
}

fn runnable(mode: u32) -> u32 {
    (mode | (mode & 0o444) >> 2) & 0o755
}

#[test]
fn a_directory_keeps_what_can_be_run_and_all_times() {
    let dir = Dir::new();
    dir.dir("tools");
    dir.dir("tools/bin");
    program(&dir, "tools/bin/run", b"#!/bin/sh\n");
    date(&dir.file("tools/readme", &data(5_000)));
    date(&dir.file("tools/large", &data(2_000_000)));
    let (usual, out) = (usual(&dir), dir.dir("out"));
    let serving = serve(&[&dir.path("tools")]);
    fetch(&[&serving.ticket, "-o", &out]).done();
    for name in ["bin/run", "readme", "large"] {
        let path = format!("{out}/tools/{name}");
        let expected = if name == "bin/run" { runnable(usual) } else { usual };
        assert_eq!((mode(&path), time(&path)), (expected, DATE), "{name}");
    }
    let list = fetch(&[&serving.ticket, "--list"]).done();
    let files = list["files"].as_array().unwrap();
    let run = files.iter().find(|file| file["name"] == "tools/bin/run").unwrap();
    assert_eq!(run["mode"], "0755");
    assert_eq!(run["modified_ns"], 1_000_000_001_123_456_789_i64);
}

#[test]
fn send_and_recv_keep_them_too() {
    let dir = Dir::new();
    let (file, out) = (program(&dir, "run", &data(300_000)), dir.path("out"));
    let (received, sent) = Pair::start(&["-o", &out], &file, &[]).finish();
    received.done();
    sent.done();
    assert_eq!((mode(&out), time(&out)), (runnable(usual(&dir)), DATE));
}

/// The umask of the end that stores the file counts, whatever the mode is at the other end.
#[test]
fn who_may_read_it_is_decided_where_it_is_stored() {
    let dir = Dir::new();
    let serving = serve(&[&program(&dir, "run", b"x"), "--open"]);
    let out = dir.path("out");
    let run = format!("umask 077; exec {HAULIER} fetch {} --open -o {out}", serving.addr);
    let status = Command::new("sh").args(["-c", &run]).output().unwrap().status;
    assert!(status.success());
    assert_eq!(mode(&out), 0o700, "and no set-user-id");
}

#[test]
fn a_file_is_no_more_open_than_at_its_giver() {
    let dir = Dir::new();
    dir.dir("tools");
    let modes = [0o400, 0o444, 0o600, 0o640, 0o644, 0o700, 0o750, 0o755];
    for mode in modes {
        let name = format!("tools/{mode:o}");
        dir.file(&name, b"x");
        dir.set_mode(&name, mode);
    }
    let serving = serve(&[&dir.path("tools"), "--open"]);
    for umask in [0o022, 0o027] {
        let out = dir.dir(&format!("out-{umask:o}"));
        let run = format!("umask {umask:o}; exec {HAULIER} fetch {} --open -o {out}", serving.addr);
        assert!(Command::new("sh").args(["-c", &run]).output().unwrap().status.success());
        for given in modes {
            let here = mode(&format!("{out}/tools/{given:o}"));
            assert_eq!(here, given & !umask, "{given:o} by {umask:o}: {here:o}");
        }
    }
}

/// Else other users could read it during the transfer, and its unfinished file after an interruption.
#[test]
fn a_private_file_is_private_from_its_first_byte_on() {
    let dir = Dir::new();
    let file = dir.file("save", &data(6_000_000));
    dir.set_mode("save", 0o600);
    let serving = serve(&[&file, "--rate", "20M"]);
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(300_000));
    assert_eq!(mode(&format!("{out}.haulier-part")), 0o600);
    first.finish().done();
    assert_eq!(mode(&out), 0o600);
}

#[test]
fn without_attributes_a_file_is_like_any_other_new_one() {
    let dir = Dir::new();
    let file = program(&dir, "run", b"x");
    let serving = serve(&[&file]);
    let out = dir.path("out");
    fetch(&[&serving.ticket, "-o", &out, "--no-attributes"]).done();
    assert_eq!(mode(&out), usual(&dir));
    assert!(time(&out).0 > DATE.0 + 1_000_000);
    let inbox = dir.dir("inbox");
    let taking = serve(&["--inbox", &inbox, "--most", "1G", "--no-attributes"]);
    send(&[&file, &taking.ticket]).done();
    assert_eq!(mode(&dir.path("inbox/run")), usual(&dir));
    let to = dir.path("received");
    let Serving { program, ticket, .. } = recv(&["-o", &to, "--no-attributes"]);
    send(&[&file, &ticket]).done();
    program.finish().done();
    assert_eq!(mode(&to), usual(&dir));
    let wrong = haulier(&["serve", &file, "--no-attributes"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.what);
}

/// A private file stays private when a new version takes its place; it can be run if the new one can.
#[test]
fn a_file_that_is_replaced_hands_on_who_may_read_it() {
    let dir = Dir::new();
    let serving = serve(&[&program(&dir, "run", &data(300_000))]);
    let out = dir.file("out", &data(299_999));
    for (before, after) in [(0o600, 0o700), (0o4644, 0o755)] {
        dir.file("out", &data(299_999));
        dir.set_mode("out", before);
        fetch(&[&serving.ticket, "-o", &out, "--force"]).done();
        assert_eq!((mode(&out), time(&out)), (after, DATE));
        assert!(dir.read("out") == data(300_000));
    }
}

/// The same bytes are not fetched: with --force they get what the other end says of them, else they stay as
/// they are.
#[test]
fn what_is_here_already_is_only_changed_with_force() {
    let dir = Dir::new();
    let serving = serve(&[&program(&dir, "run", &data(3_000))]);
    let out = dir.file("out", &data(3_000));
    dir.set_mode("out", 0o640);
    let before = time(&out);
    fetch(&[&serving.ticket, "-o", &out]).error(5);
    assert_eq!((mode(&out), time(&out)), (0o640, before));
    let done = fetch(&[&serving.ticket, "-o", &out, "--force"]).done();
    assert_eq!((mode(&out), time(&out)), (0o750, DATE));
    assert_eq!(done["here_bytes"], 3_000);
}

/// What was begun has no name yet, and gets all of it at its end.
#[test]
fn a_fetch_that_goes_on_keeps_them() {
    let dir = Dir::new();
    let serving = serve(&[&program(&dir, "run", &data(6_000_000)), "--rate", "40M"]);
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(3_000_000));
    first.signal("KILL");
    drop(first);
    fetch(&[&serving.ticket, "-o", &out]).done();
    assert_eq!((mode(&out), time(&out)), (runnable(usual(&dir)), DATE));
}

/// A pipe was changed at no time; what came of it was changed now, and not in 1970. It has the name that it
/// was given.
#[test]
fn a_pipe_is_served_under_a_name_and_is_new() {
    let dir = Dir::new();
    let args = ["serve", "--json", "--bind", "127.0.0.1:0", "-", "--name", "maps.tar", "--once"];
    let server = Program::start_with(&args, &data(700_000));
    let ticket = server.event("listening")["ticket"].as_str().unwrap().to_owned();
    let out = dir.dir("out");
    fetch(&[&ticket, "-o", &out]).done();
    server.finish().done();
    assert!(dir.read("out/maps.tar") == data(700_000));
    assert!(time(&dir.path("out/maps.tar")).0 > DATE.0);
    assert_eq!(mode(&dir.path("out/maps.tar")), usual(&dir));
}

/// From pipe to pipe, of unknown length.
#[test]
fn a_pipe_goes_to_a_pipe() {
    let args = ["serve", "--json", "--bind", "127.0.0.1:0", "-", "--once"];
    let server = Program::start_with(&args, &data(700_000));
    let ticket = server.event("listening")["ticket"].as_str().unwrap().to_owned();
    let run = haulier(&["fetch", "--json", &ticket, "-o", "-"]);
    run.done();
    assert!(run.stdout == data(700_000));
    server.finish().done();
}

#[test]
fn a_name_is_for_one_file() {
    let dir = Dir::new();
    let (a, b) = (dir.file("a", b"a"), dir.file("b", b"b"));
    let message = haulier(&["serve", "--json", &a, &b, "--name", "c"]).error(2);
    assert!(message.contains("--name is for one file"), "{message}");
    let serving = serve(&[&a, "--name", "c"]);
    fetch(&[&serving.ticket, "c", "-o", &dir.path("out")]).done();
}
