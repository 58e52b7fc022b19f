//! `recv --stay`: one file after the other, until Ctrl-C.

use serde_json::Value;

use crate::fake;
use crate::support::{Dir, Finished, Program, data, haulier, listen};

/// Ends a receiver that waits, and returns its `file` events.
fn end(recv: Program) -> (Finished, Vec<Value>) {
    recv.signal("INT");
    let recv = recv.finish();
    let files = recv.events().into_iter().filter(|event| event["event"] == "file").collect();
    (recv, files)
}

#[test]
fn two_files_are_taken_one_after_the_other() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let (recv, addr) = listen(&["-o", &inbox, "--stay"]);
    for (name, size) in [("one", 3_000), ("two", 400_000)] {
        let file = dir.file(name, &data(size));
        haulier(&["send", "--json", &file, &addr, "--rate", "400M"]).done();
        assert!(dir.read(&format!("inbox/{name}")) == data(size), "{name}");
        // The receipt is sent before the event is printed.
        recv.event_where("file", |event| event["name"] == name);
    }
    let (recv, files) = end(recv);
    assert_eq!(recv.done()["files"], 2);
    assert_eq!(files.iter().map(|file| &file["bytes"]).collect::<Vec<_>>(), [3_000, 400_000]);
    assert_eq!(dir.names("inbox"), ["one", "two"]);
}

#[test]
fn as_text_it_says_how_many_came() {
    let dir = Dir::new();
    let file = dir.file("one", &data(10));
    let recv = ["recv", "--bind", "127.0.0.1:0", "-o", &dir.dir("inbox"), "--stay"];
    let recv = Program::start(&recv);
    assert_eq!(haulier(&["send", &file, &recv.line("waiting at ")]).code, Some(0));
    recv.line("blake3 ");
    recv.signal("INT");
    let recv = recv.finish();
    assert_eq!(recv.code, Some(0), "{}", recv.what);
    assert!(recv.text().ends_with("1 files received\n"), "{}", recv.what);
}

/// A bad name, a lie, a file that is there already: each is reported to its sender, and the next may come.
#[test]
fn a_transfer_that_fails_does_not_end_it() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let (recv, addr) = listen(&["-o", &inbox, "--stay"]);
    let file = dir.file("one", &data(3_000));
    haulier(&["send", "--json", &file, &addr, "--name", "../evil"]).error(5);
    recv.event("warning");
    let mut lie = fake::chunks("lie", None, &data(100));
    lie[0][50] ^= 1;
    fake::send(&addr, lie);
    recv.event_where("warning", |event| event["message"].as_str().unwrap().contains("BLAKE3"));
    haulier(&["send", "--json", &file, &addr]).done();
    recv.event("file");
    let error = haulier(&["send", "--json", &file, &addr]).error(5);
    assert!(error.contains("one exists; use --force to overwrite it"), "{error}");
    recv.event_where("warning", |event| event["message"].as_str().unwrap().contains("exists"));
    let (recv, files) = end(recv);
    assert_eq!((recv.done()["files"].as_u64(), files.len()), (Some(1), 1));
    assert_eq!((dir.names("inbox"), dir.names("").len()), (vec!["one".into()], 2));
}

#[test]
fn a_sender_that_dies_does_not_end_it() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let (recv, addr) = listen(&["-o", &inbox, "--stay", "--timeout", "1"]);
    let large = dir.file("large", &data(8_000_000));
    let send = Program::start(&["send", "--json", &large, &addr, "--rate", "4M"]);
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    drop(send);
    let stopped = |event: &Value| event["message"].as_str().unwrap().contains("sender stopped");
    recv.event_where("warning", stopped);
    assert!(dir.names("inbox").is_empty());
    let file = dir.file("small", &data(3_000));
    haulier(&["send", "--json", &file, &addr]).done();
    recv.event("file");
    let (recv, _) = end(recv);
    assert_eq!(recv.done()["files"], 1);
    assert_eq!(dir.names("inbox"), ["small"]);
}

#[test]
fn without_any_file_ctrl_c_is_no_failure() {
    let dir = Dir::new();
    let (recv, _) = listen(&["-o", &dir.path("out"), "--stay"]);
    assert_eq!(end(recv).0.done()["files"], 0);
}

/// A second file for the one name cannot be stored; its sender is not kept in the dark, and one Ctrl-C
/// still ends the receiver.
#[test]
fn an_output_file_that_is_taken_by_the_first_file_is_no_endless_loop() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path("out"), "--stay"]);
    haulier(&["send", "--json", &dir.file("one", &data(3_000)), &addr]).done();
    recv.event("file");
    let send = ["send", "--json", &dir.file("two", b"two"), &addr, "--timeout", "1"];
    let second = haulier(&send);
    // Whether it goes on or gives up is its own choice.
    recv.signal("INT");
    let recv = recv.finish();
    assert!(recv.stdout.len() < 10_000, "{} bytes of\n{}", recv.stdout.len(), recv.what);
    assert_ne!(second.code, Some(0), "{}", second.what);
    assert_eq!(dir.read("out"), data(3_000));
    assert_eq!(dir.names(""), ["one", "out", "two"]);
}

/// With `--force` the same name takes one file after the other.
#[test]
fn with_force_the_last_file_stays() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path("out"), "--stay", "--force"]);
    for (name, size) in [("one", 3_000), ("two", 2_000)] {
        haulier(&["send", "--json", &dir.file(name, &data(size)), &addr]).done();
        recv.event_where("file", |event| event["name"] == name);
    }
    assert_eq!(end(recv).0.done()["files"], 2);
    assert_eq!((dir.read("out"), dir.names("").len()), (data(2_000), 3));
}
