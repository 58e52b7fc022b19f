//! Full disks: the receiver says so, and the sender says that the receiver says so.

use std::fs::File;
use std::process::Command;

use crate::support::{Dir, HAULIER, Program, data, recv, send};

#[test]
fn a_full_device_on_standard_output() {
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let recv = ["recv", "--json", "--bind", "127.0.0.1:0", "-o", "-"];
    let recv = Program::spawn_to(full, Command::new(HAULIER).args(recv));
    let ticket = recv.event("listening")["ticket"].as_str().unwrap().to_owned();
    send(&[&file, &ticket]);
    assert!(recv.finish().error(5).contains("no space left on device"));
}

#[test]
fn a_device_with_room() {
    let dir = Dir::new();
    let serving = recv(&["-o", "/dev/null"]);
    send(&[&dir.file("in", &data(3_000)), &serving.ticket]).done();
    serving.program.finish().done();
}

/// Like a disk that is full after 32 KiB: the system lets the receiver write no longer files.
#[test]
fn a_disk_that_is_full_in_the_middle_of_a_file() {
    let dir = Dir::new();
    let (file, inbox) = (dir.file("in", &data(3_000_000)), dir.dir("inbox"));
    // 64 blocks of 512 bytes; the signal is ignored, so that writing fails with an error.
    let limited = r#"ulimit -f 64; trap "" XFSZ; exec "$0" "$@""#;
    let out = format!("{inbox}/out");
    let recv = [HAULIER, "recv", "--json", "--bind", "127.0.0.1:0", "-o", &out];
    let recv = Program::spawn(Command::new("sh").args(["-c", limited]).args(recv));
    let ticket = recv.event("listening")["ticket"].as_str().unwrap().to_owned();
    let message = send(&[&file, &ticket]).error(5);
    assert!(message.contains("in: "), "{message}");
    let received = recv.finish().error(5);
    assert!(received.contains("too large") && received.contains(&out), "{received}");
    assert!(!dir.names("inbox").contains(&"out".into()), "{:?}", dir.names("inbox"));
}
