//! What is said as text of a transfer: where, how much of it, and that it is true.

use std::io::Write as _;

use crate::support::{Dir, Finished, Program, data, haulier};

/// `serve` as text on loopback, and its ticket.
fn serve(args: &[&str]) -> (Program, String) {
    let program = Program::start(&[&["serve", "--bind", "127.0.0.1:0"], args].concat());
    let ticket = format!("haulier1:{}", program.line("haulier1:"));
    (program, ticket)
}

/// `fetch` as text, which has to work.
fn fetch(args: &[&str]) -> Finished {
    let run = haulier(&[&["fetch"], args].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    run
}

/// Three files in a directory, with an empty one beside them.
fn maps(dir: &Dir) -> String {
    let maps = dir.dir("maps");
    dir.dir("maps/void");
    for name in ["a", "b", "c"] {
        dir.file(&format!("maps/{name}"), &data(2_000));
    }
    maps
}

/// `fetch --list | wc -l` counted what was said of the connection.
#[test]
fn the_list_is_all_of_standard_output() {
    let dir = Dir::new();
    let (_server, ticket) = serve(&[&maps(&dir)]);
    let run = fetch(&[&ticket, "--list"]);
    assert_eq!(run.text().lines().count(), 5, "{}", run.what);
    assert!(run.stderr.contains("connected with "), "{}", run.what);
}

/// A server of a directory said a line for each of its files and clients.
#[test]
fn a_client_is_one_line_and_its_files_are_for_verbose() {
    let dir = Dir::new();
    let maps = maps(&dir);
    for (verbose, lines) in [(&[][..], 0), (&["-v"], 3)] {
        let (server, ticket) = serve(&[&[&*maps, "--once"], verbose].concat());
        fetch(&[&ticket, "-o", &dir.path(&format!("out{lines}/"))]);
        let server = server.finish();
        let each = server.stderr.lines().filter(|line| line.starts_with("client 1 has maps/"));
        // Directories are no files, but a client says that it has them, too.
        assert!(each.clone().count() >= lines, "{}", server.what);
        assert!(lines > 0 || each.count() == 0, "{}", server.what);
        let has = "client 1 has 3 files (5.9 KiB) after ";
        assert!(server.stderr.contains(has), "{}", server.what);
        assert!(server.stderr.contains("3 files fetched (5.9 KiB)"), "{}", server.what);
        assert!(server.stderr.contains("serving 3 files (5.9 KiB) at "), "{}", server.what);
    }
}

/// "fetched 24.5 MiB" was said where nothing was.
#[test]
fn what_is_here_is_not_said_to_be_fetched() {
    let dir = Dir::new();
    let (_server, ticket) = serve(&[&maps(&dir)]);
    let out = dir.path("out/");
    let first = fetch(&[&ticket, "-o", &out]);
    assert!(first.text().starts_with("fetched 5.9 KiB in "), "{}", first.what);
    assert!(first.text().contains("verified: 3 files in "), "{}", first.what);
    // Most of so little is what every connection costs.
    assert!(!first.text().contains("crossed the wire"), "{}", first.what);
    let again = fetch(&[&ticket, "-o", &out]);
    assert!(
        again.text().starts_with("all is here already, 5.9 KiB, verified in "),
        "{}",
        again.what
    );
    std::fs::remove_file(dir.path("out/maps/a")).unwrap();
    let part = fetch(&[&ticket, "-o", &out]);
    assert!(
        part.text().contains("3 files in ") && part.text().contains(" (2 were here)"),
        "{}",
        part.what
    );
}

/// Of a pipe it was said that it has 0 bytes, and takes no time.
#[test]
fn a_pipe_has_a_size_at_its_end_and_none_before() {
    let dir = Dir::new();
    let args = ["serve", "--bind", "127.0.0.1:0", "-", "--name", "maps.tar", "--once"];
    let (server, mut stdin) = Program::start_piped(&args);
    let ticket = format!("haulier1:{}", server.line("haulier1:"));
    let client = Program::start(&["fetch", "--json", &ticket, "-o", &dir.path("out")]);
    stdin.write_all(&data(1_200_000)).unwrap();
    let progress = client.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    assert!(progress["total"].is_null() && progress["remaining_s"].is_null(), "{progress}");
    drop(stdin);
    client.finish().done();
    let server = server.finish();
    for words in [
        "serving maps.tar (a pipe) at ",
        "client 1 has maps.tar (1.1 MiB) after ",
        "1 file fetched (1.1 MiB)",
    ] {
        assert!(server.stderr.contains(words), "{words}: {}", server.what);
    }
}

#[test]
fn empty_directories_are_no_files() {
    let dir = Dir::new();
    let (server, ticket) = serve(&[&dir.dir("void")]);
    let run = fetch(&[&ticket, "-o", &dir.path("out/")]);
    assert!(run.text().contains("empty directories, and no file, in "), "{}", run.what);
    server.signal("INT");
    let server = server.finish();
    assert!(server.stderr.contains("warning: there is no file in there"), "{}", server.what);
    assert!(server.stderr.contains("serving void (an empty directory) at "), "{}", server.what);
}

/// It said `loss 2.00 %`, which is what a sender begins with, beside `0 lost`.
#[test]
fn verbose_says_of_loss_what_was_counted() {
    let dir = Dir::new();
    let (_server, ticket) = serve(&[&dir.file("a", &data(5_000))]);
    let run = fetch(&["-v", &ticket, "-o", &dir.path("out")]);
    assert!(!run.stderr.contains("loss "), "{}", run.what);
    assert!(run.stderr.contains(", with the handshake), "), "{}", run.what);
}
