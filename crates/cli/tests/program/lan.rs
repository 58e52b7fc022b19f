//! `--lan`: a server is found by its name, and what lets a client in stays what it was. Real mDNS, between
//! programs on this host; names have the number of the process, for other hosts may answer, too.

use std::fs;
use std::process::Command;

use crate::support::{Dir, HAULIER, Program, haulier};

/// A name that no other test has.
fn name(what: &str) -> String {
    format!("test {what} {}", std::process::id())
}

#[test]
#[cfg(unix)]
fn a_server_is_listed_and_found_by_its_name_until_it_leaves() {
    let (dir, name) = (Dir::new(), name("open"));
    let file = dir.file("world.bin", b"a world");
    let lan = format!("--lan={name}");
    let serve = Program::start(&["serve", &file, "--json", "--open", &lan]);
    assert_eq!(serve.event("announced")["name"], name);

    let got = dir.path("got.bin");
    let fetch = ["fetch", &lan, "--open", "--json", "--wait", "60", "-o", &got];
    let run = haulier(&fetch);
    run.done();
    assert_eq!(fs::read(&got).unwrap(), b"a world");
    let found = run.event("found");
    assert_eq!((&found["name"], &found["lets_in"]), (&name.as_str().into(), &"open".into()));
    assert_eq!((&found["files"], &found["takes_files"]), (&1.into(), &false.into()));
    assert!(found["identity"].is_null() && found["version"] == 1, "{found}");

    let list = haulier(&["fetch", "--lan", "--json"]).done();
    let is_listed = |list: &serde_json::Value| {
        list["servers"].as_array().unwrap().iter().any(|server| server["name"] == name.as_str())
    };
    assert!(is_listed(&list), "{list}");
    let text = haulier(&["fetch", "--lan"]);
    assert!(text.text().contains(&name) && text.text().contains("heard in 3 s"), "{}", text.what);

    serve.signal("INT");
    assert_eq!(serve.finish().code, Some(0));
    let message = haulier(&["fetch", &lan, "--open", "--json", "--wait", "1"]).error(3);
    assert!(message.contains(&name) && message.contains("started with --lan"), "{message}");
}

/// The network says where; the ticket says who. Here the network lies.
#[test]
#[cfg(unix)]
fn a_name_does_not_stand_in_for_an_identity() {
    let (dir, name) = (Dir::new(), name("identity"));
    let file = dir.file("world.bin", b"a world");
    let lan = format!("--lan={name}");
    let keys = ["secret", "identity"].map(|kind| {
        let path = dir.path(kind);
        assert_eq!(haulier(&["keygen", &format!("--{kind}"), "-o", &path]).code, Some(0));
        path
    });
    let serve = |identity: &str| {
        let args =
            ["serve", &file, "--json", "--secret-file", &keys[0], "--identity-file", identity];
        Program::start(&[&args[..], &[&lan]].concat())
    };
    let fetch = |ticket: &str, got: &str, timeout: &str| {
        let mut command = Command::new(HAULIER);
        command.env("HAULIER_TICKET", ticket);
        let args = ["fetch", &lan, "--json", "--wait", "60", "--timeout", timeout, "-o", got];
        Program::spawn(command.args(args)).finish()
    };
    let honest = serve(&keys[1]);
    let ticket = honest.event("listening")["ticket"].as_str().unwrap().to_owned();
    honest.event("announced");
    let run = fetch(&ticket, &dir.path("got"), "60");
    run.done();
    assert_eq!(run.event("found")["identity"].as_str().map(str::len), Some(16));
    assert_eq!(run.event("found")["lets_in"], "ticket");
    honest.signal("INT");
    assert_eq!(honest.finish().code, Some(0));

    // It has the secret, for tickets get around, and the name.
    let other = dir.path("other");
    assert_eq!(haulier(&["keygen", "--identity", "-o", &other]).code, Some(0));
    let impostor = serve(&other);
    impostor.event("announced");
    let run = fetch(&ticket, &dir.path("none"), "1");
    let message = run.error(3);
    assert!(message.contains("the identity that you insist on"), "{message}");
    assert!(!fs::exists(dir.path("none")).unwrap());
}

#[test]
#[cfg(unix)]
fn files_are_sent_to_a_name() {
    let (dir, name) = (Dir::new(), name("inbox"));
    let lan = format!("--lan={name}");
    let recv = Program::start(&["recv", "--json", "--open", &lan, "-o", &dir.path("got")]);
    recv.event("announced");
    let file = dir.file("world.bin", b"a world");
    let run = haulier(&["send", &file, &lan, "--open", "--json", "--wait", "60"]);
    run.done();
    assert_eq!(run.event("found")["takes_files"], true);
    recv.finish().done();
    assert_eq!(fs::read(dir.path("got")).unwrap(), b"a world");
}

#[test]
fn what_makes_no_sense_is_said_before_anybody_looks() {
    let usage = |args: &[&str]| haulier(&[args, &["--json"]].concat()).error_of(2, "usage");
    let message = usage(&["fetch", "--lan", "kitchen"]);
    assert!(message.contains("--lan=kitchen"), "{message}");
    let message = usage(&["fetch", "--lan", "--open"]);
    assert!(message.contains("which server?"), "{message}");
    let message = usage(&["fetch", "--lan=kitchen"]);
    assert!(message.contains("lets nobody in") && message.contains("--ticket-file"), "{message}");
    let message = usage(&["fetch", "--lan=kitchen", "192.0.2.7:4016", "--open"]);
    assert!(message.contains("no TICKET"), "{message}");
    let dir = Dir::new();
    let message = usage(&["send", &dir.file("a", b"a"), "--lan", "--open"]);
    assert!(message.contains("`haulier fetch --lan` lists them"), "{message}");
    usage(&["serve", "x", "--lan=a.b"]);
    usage(&["fetch", "192.0.2.7:4016", "--open", "--wait", "3"]);
}
