//! Where received files go if their directory is not there yet; and where a ticket goes that is to be hidden.

use crate::support::{Dir, Program, data, fetch, haulier, recv, send, serve, wait_until};

/// Two files in a directory, served.
fn maps(dir: &Dir) -> String {
    let maps = dir.dir("maps");
    dir.dir("maps/deep");
    dir.dir("maps/void");
    dir.file("maps/a", &data(5_000));
    dir.file("maps/deep/b", &data(90_000));
    maps
}

/// The first thing that a newcomer does: `fetch TICKET -o new/`, and `-o new`.
#[test]
fn a_directory_that_is_not_there_is_made() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    for (out, name) in [("slash/", ""), ("plain", ""), ("named", "maps"), ("deep/", "maps/deep/b")]
    {
        let path = dir.path(out);
        let name = (!name.is_empty()).then_some(name);
        let args: Vec<&str> = [&*serving.ticket, "-o", &path].into_iter().chain(name).collect();
        fetch(&args).done();
        let file = format!("{}/maps/deep/b", out.trim_end_matches('/'));
        assert!(dir.read(&file) == data(90_000), "{out}");
    }
    // One file has the name that was said.
    fetch(&[&serving.ticket, "maps/a", "-o", &dir.path("one")]).done();
    assert!(dir.read("one") == data(5_000));
    // An empty directory has no file that could have it: this waited until it gave up.
    fetch(&[&serving.ticket, "maps/void", "-o", &dir.path("empty")]).done();
    assert_eq!(dir.names("empty/maps"), ["void"]);
    // What it would be in is not made: it may be a typing mistake.
    let message = fetch(&[&serving.ticket, "-o", &dir.path("no/new")]).error_of(5, "io");
    assert!(message.contains("/no: `mkdir "), "{message}");
    assert!(!dir.names("").contains(&"no".into()));
}

#[test]
fn a_file_is_no_place_for_several() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    let mine = dir.file("mine", b"precious");
    for args in [&["-o", &*mine, "--force"][..], &["-o", "-"]] {
        let run = fetch(&[&[&*serving.ticket], args].concat());
        let message = run.error_of(2, "usage");
        assert!(message.contains("say which file you want"), "{message}");
    }
    let message = fetch(&[&serving.ticket, "-o", &format!("{mine}/")]).error_of(5, "io");
    assert!(message.contains("mine is no directory"), "{message}");
    assert_eq!(dir.read("mine"), b"precious");
}

/// `--list` shows it with a slash.
#[test]
fn a_directory_is_found_with_a_slash_at_its_end() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    let inbox = dir.dir("inbox");
    fetch(&[&serving.ticket, "maps/deep/", "-o", &inbox]).done();
    assert_eq!(dir.names("inbox/maps"), ["deep"]);
}

#[test]
fn a_receiver_makes_its_directory() {
    let dir = Dir::new();
    let (a, b) = (dir.file("a", b"one"), dir.file("b", b"two"));
    let serving = recv(&["-o", &dir.path("new/")]);
    send(&[&a, &b, &serving.ticket]).done();
    serving.program.finish().done();
    assert_eq!((dir.read("new/a"), dir.read("new/b")), (b"one".to_vec(), b"two".to_vec()));
}

/// `serve > ticket` makes a file that others can read, which `--ticket-file` then refuses.
#[cfg(unix)]
#[test]
fn a_ticket_goes_to_a_file_that_only_its_owner_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new();
    let (file, ticket) = (dir.file("in", b"one"), dir.path("ticket"));
    // Of an earlier run, and readable by all.
    dir.file("ticket", b"old");
    dir.set_mode("ticket", 0o644);
    let server = serve(&[&file, "--ticket-out", &ticket, "--once"]);
    assert_eq!(server.ticket, "", "it is in no log");
    assert_eq!(server.program.event("listening")["ticket_file"], *ticket);
    assert_eq!(std::fs::metadata(&ticket).unwrap().permissions().mode() & 0o777, 0o600);
    fetch(&["--ticket-file", &ticket, "-o", &dir.path("out")]).done();
    server.program.finish().done();
    let old = dir.read("ticket");
    let args = ["serve", &file, "--bind", "127.0.0.1:0", "--ticket-out", &ticket, "--once"];
    let text = Program::start(&args);
    wait_until(|| (dir.read("ticket") != old).then_some(())).expect("a new ticket");
    fetch(&["--ticket-file", &ticket, "-o", &dir.path("again")]).done();
    let text = text.finish();
    assert_eq!((text.code, text.text()), (Some(0), ""), "{}", text.what);
}

#[test]
fn a_ticket_that_is_not_there_is_no_file_for_one() {
    let dir = Dir::new();
    let (file, ticket, key) = (dir.file("in", b"one"), dir.path("ticket"), dir.path("key"));
    haulier(&["keygen", "--token", "-o", &key]);
    let args = ["serve", "--json", &file, "--bind", "127.0.0.1:0", "--ticket-out", &ticket];
    let message = haulier(&[&args[..], &["--token-key", &key]].concat()).error_of(2, "usage");
    assert!(message.contains("there is no ticket"), "{message}");
    let message = haulier(&[&args[..], &["--open"]].concat()).error_of(2, "usage");
    assert!(message.contains("--ticket-out"), "{message}");
    // The file is empty because its server does not listen yet, or has failed.
    let empty = dir.secret("empty", b"\n");
    let message = fetch(&["--ticket-file", &empty]).error_of(2, "credentials");
    assert!(message.contains("empty is empty: there is a ticket in it once"), "{message}");
    let message = Program::start_with(&["fetch", "--json", "-"], b"").finish();
    let message = message.error_of(2, "credentials");
    assert!(message.contains("standard input is empty"), "{message}");
}
