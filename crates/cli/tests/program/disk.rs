//! Full disks: the receiver says so, the sender says that the receiver says so, and nothing is left.

use std::fs::File;
use std::process::Command;

use crate::support::{Dir, HAULIER, Program, data, haulier, listen};

#[test]
fn a_full_device_on_standard_output() {
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let recv = ["recv", "--json", "--bind", "127.0.0.1:0", "-o", "-"];
    let recv = Program::spawn_to(full, Command::new(HAULIER).args(recv));
    let addr = recv.event("listening")["addr"].as_str().unwrap().to_owned();
    let send = haulier(&["send", "--json", &file, &addr]);
    let message = recv.finish().error(5);
    assert_eq!(message, "standard output: no space left on device");
    assert_eq!(send.error(5), format!("the receiver could not store it: {message}"));
}

#[test]
fn a_full_device_by_its_name() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", "/dev/full"]);
    let send = haulier(&["send", "--json", &dir.file("in", &data(3_000)), &addr]);
    let message = recv.finish().error(5);
    assert_eq!(message, "/dev/full: no space left on device");
    assert!(send.error(5).contains(&message));
}

#[test]
fn a_device_with_room() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", "/dev/null"]);
    haulier(&["send", "--json", &dir.file("in", &data(3_000)), &addr]).done();
    recv.finish().done();
}

/// Like a disk that is full after 32 KiB: the system lets the receiver write no longer files.
#[test]
fn a_disk_that_is_full_in_the_middle_of_a_file() {
    // Within the first chunk, and in the middle of a run that goes on.
    for size in [100_000, 3_000_000] {
        let dir = Dir::new();
        let file = dir.file("in", &data(size));
        let inbox = dir.dir("inbox");
        // 64 blocks of 512 bytes; the signal is ignored, so that writing fails with an error.
        let limited = r#"ulimit -f 64; trap "" XFSZ; exec "$0" "$@""#;
        let out = format!("{inbox}/out");
        let recv = [HAULIER, "recv", "--json", "--bind", "127.0.0.1:0", "-o", &out];
        let recv = Program::spawn(Command::new("sh").args(["-c", limited]).args(recv));
        let addr = recv.event("listening")["addr"].as_str().unwrap().to_owned();
        let send = haulier(&["send", "--json", &file, &addr, "--rate", "50M"]);
        let message = recv.finish().error(5);
        assert_eq!(message, format!("{out}: file too large"));
        assert_eq!(send.error(5), format!("the receiver could not store it: {message}"));
        assert!(dir.names("inbox").is_empty(), "{:?}", dir.names("inbox"));
    }
}
