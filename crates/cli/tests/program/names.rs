//! A sender's file name never leaves the directory that `recv -o DIR` names, and never reaches a terminal
//! as commands.

use crate::support::{Dir, Pair, data};

/// Sends `bytes` under `name` to a directory inside another; both ends refuse, and nothing is anywhere.
fn assert_refused(name: &str, bytes: usize) {
    let outer = Dir::new();
    let file = outer.file("world.bin", &data(bytes));
    let inbox = outer.dir("inbox");
    // A place outside by an absolute name, too.
    let name = name.replace("OUTSIDE", &outer.path("evil"));
    let options = ["--name", &name, "--rate", "400M"];
    let (recv, send) = Pair::start(&["-o", &inbox], &file, &options).finish();
    let (refused, reported) = (recv.error(5), send.error(5));
    assert!(refused.contains("is no plain file name; use -o FILE"), "{name:?}: {refused}");
    assert_eq!(reported, format!("the receiver could not store it: {refused}"));
    assert!(!reported.contains(char::is_control), "{reported:?}");
    assert!(outer.names("inbox").is_empty(), "{name:?}: {:?}", outer.names("inbox"));
    assert_eq!(outer.names(""), ["inbox", "world.bin"], "{name:?}");
}

#[test]
fn a_name_that_leaves_the_directory_is_refused() {
    for name in ["../evil", "OUTSIDE"] {
        assert_refused(name, 3_000);
    }
    assert!(!std::fs::exists("/etc/haulier-evil").unwrap());
    assert_refused("/etc/haulier-evil", 3_000);
    assert!(!std::fs::exists("/etc/haulier-evil").unwrap());
}

#[test]
fn a_name_with_directories_in_it_is_refused() {
    for name in ["a/b", "..\\evil", ".."] {
        assert_refused(name, 3_000);
    }
}

#[test]
fn a_name_that_a_terminal_or_another_system_obeys_is_refused() {
    for name in ["\u{1b}[2Jgone", "two\nlines", "what?"] {
        assert_refused(name, 3_000);
    }
}

/// A file that would be hidden, an option or a device gets a safe name, and the receiver shows both.
#[test]
fn a_name_that_is_more_than_a_name_gets_a_safe_form() {
    for (name, stored) in [(".bashrc", "_.bashrc"), ("-rf", "_-rf"), ("NUL", "_NUL")] {
        let dir = Dir::new();
        let (file, inbox) = (dir.file("world.bin", &data(3_000)), dir.dir("inbox"));
        let name = format!("--name={name}");
        let (recv, send) = Pair::start(&["-o", &inbox], &file, &[&name]).finish();
        send.done();
        assert_eq!(recv.done()["file"], format!("{inbox}/{stored}"));
        assert_eq!(dir.names("inbox"), [stored]);
    }
}

/// The receiver says no after the first chunk; the sender must get it in the middle of the run.
#[test]
fn a_large_file_is_refused_before_all_of_it_was_sent() {
    assert_refused("../evil", 2_000_000);
}

/// With `-o FILE` the name that the sender gives does not matter.
#[test]
fn with_an_output_file_the_name_is_only_a_word() {
    let outer = Dir::new();
    let file = outer.file("world.bin", &data(3_000));
    let inbox = outer.dir("inbox");
    let recv = ["-o", &format!("{inbox}/mine")];
    let (recv, send) = Pair::start(&recv, &file, &["--name", "../evil"]).finish();
    send.done();
    assert_eq!(recv.done()["name"], "../evil");
    assert_eq!((outer.names("inbox"), outer.names("").len()), (vec!["mine".into()], 2));
}
