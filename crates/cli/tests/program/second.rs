//! The second program (`vectors/second`, in Python) and this one against each other: each fetches what the
//! other serves. It is made from STANDARD-1 alone, so what both understand is what the page says.
//!
//! Where there is no `python3` these tests say so and check nothing.

use std::process::{Command, Stdio};

use crate::support::{Dir, Program, Serving, data, fetch, serve};

/// A file of a byte, one of a whole chunk, and one of many chunks, whose hashes take frames of their own.
const SIZES: [usize; 3] = [1, 256 << 10, 3 << 20];

/// Python with this script and arguments; `None` where no Python is installed.
fn second(script: &str, args: &[&str]) -> Option<Program> {
    let version = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        println!("skipped: there is no python3 to run vectors/second/{script}");
        return None;
    }
    let path = format!("{}/../../vectors/second/{script}", env!("CARGO_MANIFEST_DIR"));
    Some(Program::spawn(Command::new("python3").arg("-B").arg(path).args(args)))
}

/// It fetches each file from `haulier serve`.
fn fetches(options: &[&str]) {
    for bytes in SIZES {
        let dir = Dir::new();
        let (content, stored) = (data(bytes), dir.path("stored"));
        let file = dir.file("world", &content);
        let Serving { program, ticket, .. } = serve(&[options, &["--once", &file]].concat());
        let Some(second) = second("fetch.py", &[&ticket, "-o", &stored]) else { return };
        let second = second.finish();
        assert_eq!(second.code, Some(0), "{}", second.what);
        assert_eq!(second.text(), format!("'world', {bytes} bytes, in {stored}\n"));
        assert!(dir.read("stored") == content, "{bytes} bytes differ");
        let done = program.finish().done();
        assert_eq!((&done["files"], &done["bytes"]), (&1.into(), &bytes.into()));
    }
}

/// `haulier fetch` gets each file from it.
fn serves(options: &[&str]) {
    for bytes in SIZES {
        let dir = Dir::new();
        let (content, stored) = (data(bytes), dir.path("stored"));
        let file = dir.file("world", &content);
        let options = [options, &["--once", &file]].concat();
        let Some(second) = second("serve.py", &options) else { return };
        let ticket = format!("haulier1:{}", second.line("haulier1:"));
        let done = fetch(&[&ticket, "-o", &stored]).done();
        assert_eq!(done["bytes"], bytes);
        assert!(dir.read("stored") == content, "{bytes} bytes differ");
        let second = second.finish();
        assert_eq!(second.code, Some(0), "{}", second.what);
    }
}

#[test]
fn the_second_program_fetches_with_a_secret() {
    fetches(&[]);
}

#[test]
fn the_second_program_fetches_in_mode_open() {
    fetches(&["--open"]);
}

#[test]
fn the_second_program_serves_with_a_secret() {
    serves(&[]);
}

#[test]
fn the_second_program_serves_in_mode_open_and_with_repair() {
    serves(&["--open"]);
    serves(&["--repair", "8"]);
}

#[test]
fn the_second_program_serves_with_an_identity() {
    serves(&["--identity"]);
}
