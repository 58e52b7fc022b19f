//! What `serve` and `fetch` cannot do, with the right exit code and a sentence that says what to do; and
//! sudden ends in the middle, which leave no file and no client that waits.

use crate::support::{Dir, Program, Serving, data, fetch, haulier, serve, silent};

/// The files in the directory after a fetch to `out` was interrupted.
const KEPT: [&str; 3] = ["in", "out.haulier-journal", "out.haulier-part"];

/// A file of which a part has arrived and much is missing: 32 s at this rate. The client does without its
/// server for `timeout` seconds.
struct Middle {
    serving: Serving,
    fetch: Program,
}

fn in_the_middle(dir: &Dir, timeout: &str, options: &[&str]) -> Middle {
    let file = dir.file("in", &data(8_000_000));
    let serving = serve(&[&[&*file, "--rate", "2M"], options].concat());
    let (out, ticket) = (dir.path("out"), &*serving.ticket);
    let fetch = Program::start(&["fetch", "--json", ticket, "-o", &out, "--timeout", timeout]);
    fetch.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    Middle { serving, fetch }
}

#[cfg(unix)]
#[test]
fn ctrl_c_at_serve_is_reported_to_its_clients() {
    for signal in ["INT", "TERM"] {
        let dir = Dir::new();
        let middle = in_the_middle(&dir, "30", &[]);
        middle.serving.program.signal(signal);
        let message = middle.fetch.finish().error(3);
        assert!(message.contains("was shut down before the file was here"), "{message}");
        // It writes nothing, so that nothing of it could be half-written.
        let message = middle.serving.program.finish().error(130);
        assert!(message.contains("clients in the middle of a file: 1;"), "{message}");
        assert_eq!(dir.names(""), KEPT);
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_at_an_idle_serve_is_how_serving_ends() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"x")]);
    fetch(&[&serving.ticket, "-o", &dir.path("out")]).done();
    serving.program.event("closed");
    serving.program.signal("INT");
    assert_eq!(serving.program.finish().done()["files"], 1);
}

#[cfg(unix)]
#[test]
fn ctrl_c_at_fetch_leaves_what_the_next_goes_on_with_and_no_connection() {
    let dir = Dir::new();
    dir.file("out", b"old");
    let file = dir.file("in", &data(8_000_000));
    let serving = serve(&[&file, "--rate", "2M"]);
    let args = ["fetch", "--json", &serving.ticket, "-o", &dir.path("out"), "--force"];
    let fetch = Program::start(&args);
    fetch.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    fetch.signal("INT");
    assert!(fetch.finish().error(130).contains("goes on from there"));
    let closed = serving.program.event("closed");
    assert_eq!(closed["reason"], "it was stopped", "{closed}");
    assert!(closed["bytes"].as_u64().unwrap() < 8_000_000, "{closed}");
    let kept = ["in", "out", "out.haulier-journal", "out.haulier-part"];
    assert_eq!(
        (dir.names(""), dir.read("out")),
        (kept.map(String::from).to_vec(), b"old".to_vec())
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_fetch_without_a_server() {
    let dir = Dir::new();
    let (silent, addr) = silent();
    let args = ["fetch", "--json", &addr, "--open", "-o", &dir.path("out"), "--timeout", "50"];
    let fetch = Program::start(&args);
    // Its request is here: it waits.
    silent.recv(&mut [0; 1200]).unwrap();
    fetch.signal("INT");
    fetch.finish().error(130);
    assert!(dir.names("").is_empty());
}

#[cfg(unix)]
#[test]
fn a_serve_that_is_killed_is_missed() {
    let dir = Dir::new();
    let middle = in_the_middle(&dir, "1", &[]);
    middle.serving.program.signal("KILL");
    let message = middle.fetch.finish().error(3);
    assert!(message.contains("stopped answering"), "{message}");
    assert_eq!(dir.names(""), KEPT);
}

/// A server's place is free again when its client is gone.
#[test]
fn a_full_server_says_so() {
    let dir = Dir::new();
    let middle = in_the_middle(&dir, "30", &["--max-clients", "1"]);
    let other = dir.path("other");
    let message = fetch(&[&middle.serving.ticket, "-o", &other, "--max-wait", "0"]).error(3);
    assert!(message.contains("is full") && message.contains("try again"), "{message}");
    drop(middle.fetch);
    assert_eq!(dir.names(""), KEPT);
}

/// A client that comes when all seats are taken waits in line, reports that, and gets the next seat.
#[cfg(unix)]
#[test]
fn who_comes_to_a_full_server_waits_in_line() {
    let dir = Dir::new();
    let middle = in_the_middle(&dir, "30", &["--max-clients", "1"]);
    let other = dir.path("other");
    let ticket = &*middle.serving.ticket;
    let waits = Program::start(&["fetch", "--json", ticket, "-o", &other, "--timeout", "30"]);
    assert_eq!(waits.event("queued")["place"], 1);
    middle.fetch.signal("INT");
    middle.fetch.finish().error(130);
    waits.event("connected");
    waits.signal("INT");
    waits.finish().error(130);
}

#[test]
fn the_ticket_of_another_run_is_refused_with_what_to_do() {
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    let serving = serve(&[&file]);
    let other = serve(&[&file, "--address", &serving.addr]);
    let message = fetch(&[&other.ticket, "-o", &dir.path("out")]).error(3);
    assert!(message.contains("of another run of the server"), "{message}");
    assert!(message.contains("that it prints now"), "{message}");
    assert_eq!(dir.names(""), ["in"]);
}

/// The right secret and another file behind it.
#[test]
fn a_file_that_is_not_the_tickets_is_not_stored() {
    let dir = Dir::new();
    let secret = dir.path("secret");
    haulier(&["keygen", "-o", &secret]);
    dir.dir("other");
    let right = dir.file("world.bin", b"right");
    let serving = serve(&[&dir.file("other/world.bin", b"wrong"), "--secret-file", &secret]);
    let options = ["--secret-file", &secret, "--address", &serving.addr];
    let ticket = serve(&[&[&*right], &options[..]].concat()).ticket;
    let message = fetch(&[&ticket, "-o", &dir.path("out")]).error(4);
    assert!(message.contains("not the one of the ticket"), "{message}");
    assert_eq!(dir.names(""), ["other", "secret", "world.bin"]);
    let closed = serving.program.event("closed");
    assert_eq!(
        (&closed["code"], &closed["reason"]),
        (&260.into(), &"not the file of the ticket".into())
    );
}

#[test]
fn a_mistyped_ticket_is_refused_and_not_repeated() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"x")]);
    let ticket = &serving.ticket;
    let middle = ticket.len() / 2;
    let other = if &ticket[middle..=middle] == "A" { "B" } else { "A" };
    let typo = format!("{}{other}{}", &ticket[..middle], &ticket[middle + 1..]);
    for (bad, words) in [
        (&*typo, "mistyped"),
        // Which of the two it is depends on its bits.
        (&ticket[..ticket.len() - 7], "cut off"),
        (&ticket[..ticket.len() - 8], "cut off"),
        (&ticket[1..], "not a ticket"),
        ("haulier1:", "cut off"),
        ("haulier2:AAAA", "newer version"),
        ("", "not a ticket"),
    ] {
        let run = fetch(&[bad, "-o", &dir.path("out")]);
        let message = run.error(2);
        assert!(message.contains(words), "{bad}: {message}");
        assert!(bad.len() < 20 || !message.contains(&bad[10..20]), "{message}");
    }
}

#[test]
fn what_makes_no_sense_is_said_before_anything_is_sent() {
    let dir = Dir::new();
    let out = dir.path("out");
    let usage = |args: &[&str]| fetch(&[&["-o", &out], args].concat()).error(2);
    assert!(usage(&[]).contains("HAULIER_TICKET"));
    assert!(usage(&["127.0.0.1:9"]).contains("an address alone lets nobody in"));
    let token = dir.secret("token", b"haulier-token1:AAAA");
    let message = usage(&["127.0.0.1:9", "--token-file", &token]);
    assert!(message.contains("token") && !message.contains("AAAA"), "{message}");
    let serving = serve(&[&dir.file("in", b"x")]);
    assert!(usage(&[&serving.ticket, "--open"]).contains("go with an ADDR"));
    assert!(fetch(&[&serving.ticket, "", "-o", &out]).error(2).contains("1 to 394 bytes"));
}

#[test]
fn no_such_file_is_said_with_a_remedy() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"x")]);
    for name in ["other", "../in", "/etc/passwd"] {
        let message = fetch(&[&serving.ticket, name, "-o", &dir.path("out")]).error(3);
        assert!(message.contains(name) && message.contains("--list"), "{message}");
        let closed = |event: &serde_json::Value| event["code"] == 256;
        let event = serving.program.event_where("closed", closed);
        assert_eq!(event["reason"], "nothing of this name is there");
    }
    assert_eq!(dir.names(""), ["in"]);
}

#[test]
fn an_existing_file_is_kept() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("world.bin", b"new")]);
    let inbox = dir.dir("inbox");
    let old = dir.file("inbox/world.bin", b"precious");
    for args in [["-o", &*old], ["-o", &*inbox]] {
        for name in [&["world.bin"][..], &[]] {
            let message = fetch(&[&[&*serving.ticket], name, &args[..]].concat()).error(5);
            assert!(message.contains("world.bin exists; use --force"), "{message}");
        }
    }
    serving.program.event_where("closed", |event| event["code"] == 263);
    assert_eq!(dir.read("inbox/world.bin"), b"precious");
    fetch(&[&serving.ticket, "-o", &inbox, "--force"]).done();
    assert_eq!((dir.read("inbox/world.bin"), dir.names("inbox").len()), (b"new".to_vec(), 1));
}

#[test]
fn a_directory_that_is_not_there_is_said_before_anything_is_sent() {
    let dir = Dir::new();
    let message = fetch(&["127.0.0.1:9", "--open", "-o", &dir.path("no/out")]).error(5);
    assert!(message.contains("there is no directory"), "{message}");
}

#[test]
fn a_file_that_cannot_be_served_is_said_at_once() {
    let dir = Dir::new();
    let serve = |args: &[&str]| haulier(&[&["serve", "--json"], args].concat());
    assert!(serve(&[&dir.path("no")]).error(5).contains("no such file"));
    dir.dir("maps");
    let twice = [dir.file("a", b"1"), dir.file("maps/a", b"2")];
    assert!(serve(&[&twice[0], &twice[1]]).error(2).contains("two of the files are called a"));
}

/// Root reads everything, so there is nothing to see for it.
#[cfg(unix)]
#[test]
fn an_unreadable_file_is_said_at_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new();
    let file = dir.file("in", b"x");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::read(&file).is_ok() {
        eprintln!("skipped: this user reads every file");
        return;
    }
    assert!(haulier(&["serve", "--json", &file]).error(5).contains("permission denied"));
}

#[test]
fn an_address_in_use_is_said() {
    let dir = Dir::new();
    let (_taken, addr) = silent();
    let message = haulier(&["serve", "--json", &dir.file("in", b"x"), "--bind", &addr]).error(5);
    assert!(message.contains(&addr), "{message}");
}

#[test]
fn a_closed_port_is_reported_with_what_to_do() {
    let dir = Dir::new();
    let (silent, addr) = silent();
    let out = dir.path("out");
    let fetch = |addr: &str| fetch(&[addr, "--open", "-o", &out, "--timeout", "0.5"]).error(3);
    assert!(fetch(&addr).contains("no answer from"));
    drop(silent);
    let message = fetch(&addr);
    assert!(message.contains("nobody listens at"), "{message}");
    // No socket may send to the broadcast address, so nothing was asked.
    assert!(fetch("255.255.255.255:9").contains("cannot be reached from here"));
}
