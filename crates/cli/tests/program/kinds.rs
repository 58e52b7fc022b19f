//! What a user hears of a server that is not there, does not answer or refuses: at once, and in one word for
//! scripts. And how much is said: `--quiet`, `--verbose`.

use crate::support::{
    Dir, Program, Serving, closed_port, data, fetch, haulier, send, serve, silent,
};

/// The addresses that were asked, in order.
fn asked(run: &crate::support::Finished) -> Vec<String> {
    let events = run.events();
    let asking = events.iter().filter(|event| event["event"] == "asking");
    asking.map(|event| event["addr"].as_str().unwrap().to_owned()).collect()
}

/// The host says so at once, by ICMP; nothing waits for the 10 s in which an answer may come.
#[test]
fn a_dead_server_is_unreachable_at_once() {
    for host in ["127.0.0.1", "[::1]"] {
        let (_held, addr) = closed_port(host);
        let run = fetch(&[&addr, "--open", "--timeout", "1000"]);
        let message = run.error_of(3, "unreachable");
        assert!(message.starts_with(&format!("nobody listens at {addr}:")), "{message}");
        assert_eq!(asked(&run), [addr], "{}", run.what);
        assert_eq!(run.event("failed")["kind"], "unreachable");
    }
}

/// A ticket of a server that has ended is found unreachable at once, too.
#[test]
fn a_ticket_of_a_server_that_is_gone_is_unreachable_at_once() {
    let dir = Dir::new();
    let Serving { program, ticket, addr, .. } = serve(&[&dir.file("a", b"a")]);
    drop(program);
    let run = fetch(&[&ticket, "--timeout", "1000", "-o", &dir.path("out")]);
    assert!(run.error_of(3, "unreachable").contains(&addr), "{}", run.what);
}

/// A sender may start first: it reports that it waits for the receiver, and for how long.
#[test]
fn send_says_that_it_waits_for_a_receiver() {
    let dir = Dir::new();
    let (_held, addr) = closed_port("127.0.0.1");
    let run = send(&[&dir.file("a", b"a"), &addr, "--open", "--timeout", "0.5"]);
    run.error_of(3, "unreachable");
    assert_eq!(run.event("waiting")["seconds"], 0.5);
    assert_eq!(asked(&run), [addr], "said once: {}", run.what);
}

#[test]
fn silence_is_no_answer_and_what_is_asked_is_said_first() {
    let (_socket, addr) = silent();
    let program = Program::start(&["fetch", "--json", &addr, "--open", "--timeout", "0.5"]);
    let asking = program.event("asking");
    assert_eq!((&asking["addr"], &asking["seconds"]), (&addr.as_str().into(), &0.5.into()));
    let run = program.finish();
    assert!(run.error_of(3, "no-answer").contains("for 0.5 s"), "{}", run.what);
    assert_eq!(run.events()[0]["event"], "asking", "{}", run.what);
    let text = haulier(&["fetch", &addr, "--open", "--timeout", "0.5"]);
    assert_eq!(text.text(), "", "a script wants none of it: {}", text.what);
    let asking = format!("asking {addr}, for up to 0.5 s\n");
    assert!(text.stderr.starts_with(&asking), "{}", text.what);
}

/// Of two addresses one is closed and one is silent: the silent one is the server's, or nobody's.
#[test]
fn each_address_is_said_as_it_is_tried() {
    let dir = Dir::new();
    let (_held, closed) = closed_port("127.0.0.1");
    let (_socket, silent) = silent();
    let file = dir.file("a", b"a");
    let Serving { ticket, .. } = serve(&[&file, "--address", &closed, "--address", &silent]);
    let run = fetch(&[&ticket, "--timeout", "0.5", "-o", &dir.path("out")]);
    let message = run.error_of(3, "no-answer");
    assert_eq!(asked(&run), [&*closed, &*silent], "{}", run.what);
    assert!(message.starts_with(&format!("no answer from {silent} for 0.5 s")), "{message}");
    assert!(message.ends_with(&format!("(nobody listens at {closed})")), "{message}");
}

#[test]
fn a_refusal_is_refused_and_has_a_number() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("a", b"a")]);
    let run = fetch(&[&server.addr, "--open", "-o", &dir.path("out")]);
    assert!(run.error_of(3, "refused").contains("does not take everybody"), "{}", run.what);
    assert_eq!(run.event("error")["code"], 2, "{}", run.what);
}

#[test]
fn what_the_server_closes_is_closed_and_has_its_code() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("a", b"a")]);
    let run = fetch(&[&server.ticket, "b", "-o", &dir.path("out")]);
    assert!(run.error_of(3, "closed").contains("there is no file \"b\""), "{}", run.what);
    assert_eq!(run.event("error")["code"], 256);
    let run = send(&[&dir.file("c", b"c"), &server.ticket]);
    run.error_of(3, "closed");
    assert_eq!(run.event("error")["code"], 257);
}

/// A server that is killed says nothing more.
#[test]
#[cfg(unix)]
fn an_open_connection_that_falls_silent_is_a_timeout() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("a", &data(3_000_000)), "--rate", "1M"]);
    let client = Program::start(&[
        "fetch",
        "--json",
        &server.ticket,
        "--timeout",
        "1",
        "-o",
        &dir.path("out"),
    ]);
    client.event("progress");
    server.program.signal("STOP");
    let run = client.finish();
    server.program.signal("CONT");
    run.error_of(3, "timeout");
}

#[test]
fn a_text_that_is_no_ticket_is_credentials() {
    fetch(&["haulier1:AAAA"]).error_of(2, "credentials");
    fetch(&["haulier-token1:AAAA"]).error_of(2, "credentials");
    fetch(&["nonsense"]).error_of(2, "credentials");
}

/// No host is in `.invalid` (RFC 6761): the error names the host name as the cause, and not `--open`.
#[test]
fn a_name_that_does_not_resolve_is_said_to() {
    let dir = Dir::new();
    let (file, at) = (dir.file("a", b"a"), "no-such-host.invalid:4000");
    let runs = [
        fetch(&[at, "--open"]),
        fetch(&[at]),
        send(&[&file, at, "--open"]),
        haulier(&["--json", "serve", &file, "--bind", at]),
        haulier(&["--json", "serve", &file, "--view", at]),
    ];
    for run in runs {
        let message = run.error_of(3, "name");
        assert!(message.contains("the name no-such-host.invalid does not resolve"), "{message}");
        assert!(!message.contains("--open"), "{message}");
    }
    let text = haulier(&["serve", &file, "--bind", at]);
    assert!(text.stderr.starts_with("haulier: the name no-such-host"), "{}", text.what);
    let message = fetch(&["example.com", "--open"]).error_of(2, "usage");
    assert!(message.contains("HOST:PORT"), "{message}");
}

/// `localhost` is one name or two addresses: whichever it is, the server is found.
#[test]
fn a_name_may_stand_for_an_address() {
    let dir = Dir::new();
    let server = serve(&[&dir.file("a", b"abc"), "--open"]);
    let port = server.addr.rsplit_once(':').unwrap().1;
    fetch(&[&format!("localhost:{port}"), "--open", "-o", &dir.path("out")]).done();
    assert_eq!(dir.read("out"), b"abc");
}

#[test]
fn quiet_is_errors_and_the_ticket() {
    let dir = Dir::new();
    let file = dir.file("a", &data(100_000));
    let server = Program::start(&["serve", "-q", "--once", "--bind", "127.0.0.1:0", &file]);
    let ticket = format!("haulier1:{}", server.line("haulier1:"));
    let list = haulier(&["fetch", &ticket, "--list", "--quiet"]);
    assert!(list.text().contains("97.7 KiB  a"), "what was asked for: {}", list.what);
    let run = haulier(&["fetch", "--quiet", &ticket, "-o", &dir.path("out")]);
    assert_eq!((run.code, run.text(), &*run.stderr), (Some(0), "", ""), "{}", run.what);
    let server = server.finish();
    assert_eq!((server.text(), &*server.stderr), (&*format!("{ticket}\n"), ""), "{}", server.what);
    let again = haulier(&["-q", "fetch", &ticket, "-o", &dir.path("other")]);
    assert_eq!((again.code, again.text()), (Some(3), ""), "{}", again.what);
    assert!(again.stderr.starts_with("haulier: nobody listens at"), "{}", again.what);
}

#[test]
fn quiet_does_not_go_with_json_or_verbose() {
    for other in ["--json", "--verbose"] {
        let run = haulier(&["keygen", "-o", "-", "--quiet", other]);
        assert_eq!(run.code, Some(2), "{}", run.what);
        let said = format!("{}{}", run.stderr, run.text());
        assert!(said.contains("--quiet") && said.contains(other), "{}", run.what);
    }
}

#[test]
fn verbose_says_what_was_decided_on_standard_error() {
    let dir = Dir::new();
    let file = dir.file("a", &data(100_000));
    let server = Program::start(&["serve", "-v", "--once", "--bind", "127.0.0.1:0", &file]);
    let ticket = format!("haulier1:{}", server.line("haulier1:"));
    let run = haulier(&["fetch", "-v", &ticket, "-o", &dir.path("out")]);
    let server = server.finish();
    let words = [
        "addresses to try: 127.0.0.1:",
        "let in by a secret",
        "datagrams of up to",
        "97.7 KiB wanted",
    ];
    for word in words {
        assert!(run.stderr.contains(word), "{word}: {}", run.what);
        assert!(!run.text().contains(word), "{word}: {}", run.what);
    }
    let ciphers = ["AES-256-GCM", "ChaCha20-Poly1305"];
    assert!(ciphers.iter().any(|word| run.stderr.contains(word)), "{}", run.what);
    for word in
        ["addresses for clients: 127.0.0.1:", "lets in who has the ticket", "uplink not limited"]
    {
        assert!(server.stderr.contains(word), "{word}: {}", server.what);
    }
    let json = fetch(&["--verbose", &ticket, "-o", &dir.path("other")]);
    json.error_of(3, "unreachable");
    assert!(json.event("detail")["message"].as_str().unwrap().starts_with("addresses to try"));
}
