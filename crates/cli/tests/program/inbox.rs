//! `serve --inbox`: which clients may send which files, how many bytes, and which unfinished files stay. Also
//! uploads that continue where they ended.

use crate::support::{Dir, Program, Serving, data, fetch, haulier, send, serve};

fn number(event: &serde_json::Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("no {key} in {event}"))
}

#[test]
fn files_are_served_and_taken_by_one_server() {
    let dir = Dir::new();
    let (world, inbox) = (dir.file("world.bin", &data(2_000_000)), dir.dir("inbox"));
    let Serving { program, ticket, send_ticket, .. } =
        serve(&[&world, "--inbox", &inbox, "--most", "100M"]);
    let replays: Vec<String> =
        (1..4).map(|n| dir.file(&format!("replay{n}"), &data(1_000_000 * n))).collect();
    let start = |file: &String| Program::start(&["send", "--json", file, &send_ticket]);
    let sending: Vec<Program> = replays.iter().map(start).collect();
    fetch(&[&ticket, "-o", &dir.path("out")]).done();
    for (n, sending) in (1..4).zip(sending) {
        sending.finish().done();
        let event = program.event_where("received", |event| event["name"] == format!("replay{n}"));
        assert_eq!(number(&event, "bytes"), 1_000_000 * n, "{event}");
        assert!(dir.read(&format!("inbox/replay{n}")) == data(1_000_000 * n as usize), "{n}");
    }
    assert!(dir.read("out") == data(2_000_000));
    program.signal("INT");
    let done = program.finish().done();
    assert_eq!((number(&done, "files"), number(&done, "received_files")), (1, 3), "{done}");
    assert_eq!(dir.names("inbox"), ["replay1", "replay2", "replay3"]);
}

/// Whoever might fetch could also send: a ticket in a chat let strangers fill the inbox.
#[test]
fn a_ticket_is_for_fetching_or_for_sending() {
    let dir = Dir::new();
    let (world, inbox) = (dir.file("world.bin", &data(3_000)), dir.dir("inbox"));
    let Serving { program, ticket, send_ticket, .. } =
        serve(&[&world, "--inbox", &inbox, "--most", "100M"]);
    let message = send(&[&world, &ticket]).error(3);
    assert!(message.contains("takes no files: this ticket is for fetching"), "{message}");
    for more in [&["--list"][..], &["-o", &dir.path("out")]] {
        let message = fetch(&[&[&*send_ticket], more].concat()).error(3);
        assert!(message.contains("this ticket is for sending"), "{message}");
    }
    send(&[&world, &send_ticket]).done();
    fetch(&[&ticket, "-o", &dir.path("out")]).done();
    assert_eq!(
        (dir.names("inbox"), dir.names("")),
        (vec!["world.bin".into()], vec!["inbox".into(), "out".into(), "world.bin".into()])
    );
    drop(program);
}

/// Each of the two has its file, and its word on standard output, which `fetch -` reads.
#[test]
fn two_tickets_are_told_apart_by_their_words_and_files() {
    let dir = Dir::new();
    let (world, inbox) = (dir.file("world.bin", &data(3_000)), dir.dir("inbox"));
    let (first, second) = (dir.path("first"), dir.path("second"));
    let (secret, send_secret) = (dir.path("secret"), dir.path("send-secret"));
    for secret in [&secret, &send_secret] {
        haulier(&["keygen", "--secret", "-o", secret]);
    }
    let start = |more: &[&str]| {
        let args = ["serve", &world, "--bind", "127.0.0.1:0", "--inbox", &inbox, "--most", "1M"];
        Program::start(&[&args[..], more].concat())
    };
    let server = start(&["--secret-file", &secret, "--send-secret-file", &send_secret]);
    let (to_fetch, to_send) = (server.line("fetch "), server.line("send "));
    assert_ne!(to_fetch, to_send);
    Program::start_with(
        &["fetch", "-", "-o", &dir.path("out")],
        format!("fetch {to_fetch}\n").as_bytes(),
    )
    .finish();
    assert!(dir.read("out") == data(3_000));
    drop(server);
    let files = ["--ticket-out", &*first, "--send-ticket-out", &second];
    let server = serve(&[&[&*world, "--inbox", &inbox, "--most", "1M"], &files[..]].concat());
    assert_eq!((&*server.ticket, &*server.send_ticket), ("", ""));
    assert_eq!(send(&[&world, "--ticket-file", &second]).code, Some(0));
    assert!(send(&[&world, "--ticket-file", &first]).error(3).contains("for fetching"));
    drop(server);
    let args = ["--secret-file", &secret, "--send-secret-file", &secret];
    let refused = start(&args).finish();
    assert_eq!(refused.code, Some(2), "{}", refused.what);
    assert!(refused.stderr.contains("whoever may fetch could send"), "{}", refused.stderr);
}

#[test]
fn without_an_inbox_nothing_is_taken() {
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    let serving = serve(&[&file]);
    let message = send(&[&file, &serving.ticket]).error(3);
    assert!(message.contains("takes no files: it was started without --inbox"), "{message}");
}

/// What is in it counts, finished or not; what is over is refused before a byte of it comes.
#[test]
fn more_than_the_inbox_holds_is_refused_at_once() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    dir.file("inbox/old", &data(3 << 20));
    dir.file("inbox/begun.haulier-part", &data(2 << 20));
    let Serving { program, ticket, .. } = serve(&["--inbox", &inbox, "--most", "8M"]);
    let large = dir.file("large", &data(4 << 20));
    let refused = send(&[&large, &ticket]);
    let message = refused.error(3);
    // With its journal.
    let numbers = "4.1 MiB, and 3.0 are left of 8.0 MiB for all clients together";
    assert!(message.contains("does not take that much") && message.contains(numbers), "{message}");
    let warning = program.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("may not send") && warning.contains(numbers), "{warning}");
    assert!(
        !refused.events().iter().any(|event| event["event"] == "progress" && event["bytes"] != 0)
    );
    assert_eq!(dir.names("inbox"), ["begun.haulier-part", "old"]);
    // Room that is made is found.
    std::fs::remove_file(dir.path("inbox/old")).unwrap();
    send(&[&large, &ticket]).done();
    assert_eq!(dir.names("inbox"), ["begun.haulier-part", "large"]);
}

#[test]
fn each_client_has_its_own_limit() {
    let dir = Dir::new();
    let (inbox, key) = (dir.dir("inbox"), dir.path("key"));
    haulier(&["keygen", "--token", "-o", &key]);
    let args = ["--inbox", &inbox, "--most", "100M", "--most-each", "3M", "--token-key", &key];
    let serving = serve(&args);
    let token = |client: &str, name: &str| {
        let path = dir.path(name);
        let issue = ["token", "issue", "--token-key", &key, "--client-id", client, "--server"];
        haulier(&[&issue[..], &[&serving.addr, "--expires", "60", "-o", &path]].concat());
        path
    };
    let (first, second) = (dir.file("first", &data(2 << 20)), dir.file("second", &data(2 << 20)));
    send(&[&first, "--ticket-file", &token("1", "token1")]).done();
    let message = send(&[&second, "--ticket-file", &token("1", "token2")]).error(3);
    assert!(message.contains("2.1 MiB, and 1.0 are left of 3.0 MiB for each client"), "{message}");
    send(&[&second, "--ticket-file", &token("2", "token3")]).done();
    assert_eq!(dir.names("inbox"), ["first", "second"]);
}

#[test]
fn a_pipe_ends_where_the_quota_does() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let Serving { program, ticket, .. } = serve(&["--inbox", &inbox, "--most", "2M"]);
    let args = ["send", "--json", "-", &ticket];
    let message = Program::start_with(&args, &data(5 << 20)).finish().error(5);
    assert!(message.contains("stdin: it is more than is taken there"), "{message}");
    program.event_where("warning", |event| event["message"].as_str().unwrap().contains("stdin"));
    assert!(!dir.names("inbox").contains(&"stdin".into()));
}

/// The first process gets no chance to say that it goes; the second takes its place.
#[test]
fn a_send_that_is_killed_goes_on_where_it_was() {
    let (dir, content) = (Dir::new(), data(20_000_000));
    let (file, inbox) = (dir.file("world", &content), dir.dir("inbox"));
    // There is room for one of it.
    let Serving { program, ticket, .. } = serve(&["--inbox", &inbox, "--most", "25M"]);
    let first = Program::start(&["send", "--json", &file, &ticket, "--rate", "40M"]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(14_000_000));
    first.signal("KILL");
    drop(first);
    let done = send(&[&file, &ticket]).done();
    let wire = number(&done, "wire_bytes_out");
    println!("{wire} bytes over the wire");
    assert!(wire < 14_000_000, "{done}");
    program.event_where("closed", |event| event["reason"] == "it was stopped");
    assert!(dir.read("inbox/world") == content);
    assert_eq!(dir.names("inbox"), ["world"]);
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was() {
    let (dir, content) = (Dir::new(), data(20_000_000));
    let (file, inbox, secret) = (dir.file("world", &content), dir.dir("inbox"), dir.path("secret"));
    haulier(&["keygen", "-o", &secret]);
    let args = ["--inbox", &inbox, "--most", "25M", "--secret-file", &secret];
    let first = serve(&args);
    let args2 = ["send", "--json", &file, &first.ticket, "--rate", "40M", "--timeout", "1"];
    let sending = Program::start(&args2);
    sending.event_where("progress", |event| event["bytes"].as_u64() > Some(14_000_000));
    first.program.signal("KILL");
    let message = sending.finish().error(3);
    assert!(message.contains("stopped answering") && message.contains("is kept"), "{message}");
    drop(first);
    let second = serve(&args);
    let done = send(&[&file, &second.ticket]).done();
    assert!(number(&done, "wire_bytes_out") < 14_000_000, "{done}");
    assert!(dir.read("inbox/world") == content);
}

#[test]
fn files_there_are_kept_unless_it_is_said_and_then_only_what_changed_comes() {
    let (dir, mut content) = (Dir::new(), data(8_000_000));
    let inbox = dir.dir("inbox");
    dir.file("inbox/world", &content);
    content.splice(3_000_000..3_010_000, *b"an insertion");
    let file = dir.file("world", &content);
    let careful = serve(&["--inbox", &inbox, "--most", "100M"]);
    let message = send(&[&file, &careful.ticket]).error(5);
    assert!(message.contains("world: another file has this name there"), "{message}");
    assert!(dir.read("inbox/world") == data(8_000_000));
    let forced = serve(&["--inbox", &inbox, "--most", "100M", "--force"]);
    let done = send(&[&file, &forced.ticket]).done();
    assert!(number(&done, "wire_bytes_out") < 1_000_000, "{done}");
    assert!(dir.read("inbox/world") == content);
    assert_eq!(dir.names("inbox"), ["world"]);
}

/// One of the two is refused the file; nothing of both is mixed.
#[test]
fn two_that_send_the_same_name() {
    let (dir, key, inbox) = (Dir::new(), "key", "inbox");
    let (key, inbox) = (dir.path(key), dir.dir(inbox));
    haulier(&["keygen", "--token", "-o", &key]);
    let serving = serve(&["--inbox", &inbox, "--most", "100M", "--token-key", &key]);
    let token = |client: &str| {
        let path = dir.path(client);
        let issue = ["token", "issue", "--token-key", &key, "--client-id", client, "--server"];
        haulier(&[&issue[..], &[&serving.addr, "--expires", "60", "-o", &path]].concat());
        path
    };
    let (one, two) = (dir.file("one", &data(12_000_000)), dir.file("two", &data(2_000)));
    let args =
        ["send", "--json", &one, "--name", "same", "--ticket-file", &token("1"), "--rate", "12M"];
    let first = Program::start(&args);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    let message = send(&[&two, "--name", "same", "--ticket-file", &token("2")]).error(5);
    assert!(message.contains("or is being sent"), "{message}");
    first.finish().done();
    assert!(dir.read("inbox/same") == data(12_000_000));
    assert_eq!(dir.names("inbox"), ["same"]);
}

#[test]
fn names_that_are_not_safe_are_not_sent() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    for name in ["../evil", "/etc/passwd", "a\\b", "con", "x.haulier-part", "", "."] {
        let message = send(&[&file, "127.0.0.1:9", "--open", "--name", name]).error(2);
        assert!(message.contains("cannot be offered"), "{name}: {message}");
    }
}
