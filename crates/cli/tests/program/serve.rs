//! Files between `serve` and `fetch` on loopback: every size, every way to hand over a ticket, every way
//! out, text and JSON.

use std::io::Write as _;
use std::process::Command;

use serde_json::json;

use crate::support::{
    Dir, HAULIER, Program, blake3_hex, data, fetch, haulier, keys, serve, silent,
};

/// Fast enough for loopback.
const FAST: [&str; 2] = ["--rate", "400M"];

/// At and over the size of a chunk, where one run of slices becomes two, and more.
#[test]
fn files_of_all_sizes_arrive() {
    for size in [0, 1, 1024, 1025, 262_144, 262_145, 5_000_000] {
        let dir = Dir::new();
        let file = dir.file("world.bin", &data(size));
        let serving = serve(&[&[&*file, "--once"], &FAST[..]].concat());
        let done = fetch(&[&serving.ticket, "-o", &dir.path("out")]).done();
        assert_eq!(done["bytes"], size, "{done}");
        assert_eq!(done["blake3"], blake3_hex(&data(size)), "{done}");
        assert!(dir.read("out") == data(size), "{size} bytes differ");
        assert_eq!(dir.names(""), ["out", "world.bin"]);
        let done = serving.program.finish().done();
        assert_eq!((&done["files"], &done["bytes"]), (&json!(1), &json!(size)), "{done}");
    }
}

#[test]
fn the_fields_of_json_are_those_and_no_others() {
    let dir = Dir::new();
    let (file, inbox) = (dir.file("world.bin", &data(5_000)), dir.dir("inbox"));
    let serving = serve(&[&file, "--once"]);
    let run = fetch(&[&serving.ticket, "-o", &inbox]);
    let done = run.done();
    let expected = "blake3 bytes came_bytes connect_ms copied_bytes event file here_bytes ok packed_bytes \
                    resumed_bytes rtt_ms saved_bytes total_ms wire_bytes_in wire_bytes_out";
    assert_eq!(keys(&done), expected);
    assert!(done["file"].as_str().unwrap().ends_with("inbox/world.bin"), "{done}");
    let number = |key: &str| done[key].as_f64().unwrap();
    assert!(number("connect_ms") <= number("total_ms"), "{done}");
    // Three copies of a request, and the file with its headers.
    assert!(number("wire_bytes_out") >= 3_600.0 && number("wire_bytes_in") > 5_000.0, "{done}");
    assert_eq!(keys(&run.events()[0]), "addr event seconds");
    assert_eq!(keys(&run.events()[1]), "addr connect_ms event");
    assert_eq!(run.events()[1]["addr"], serving.addr);

    let events = serving.program.finish().events();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let names: Vec<_> = names.into_iter().filter(|&name| name != "warning").collect();
    assert_eq!(names, ["listening", "connected", "sent", "closed", "done"]);
    let event = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(keys(event("listening")), "addr event ticket");
    assert_eq!(keys(event("connected")), "addr client event");
    assert_eq!(keys(event("sent")), "bytes client event ms name");
    let closed = "addr bytes client code event ms reason";
    assert_eq!(keys(event("closed")), closed);
    assert_eq!(event("closed")["code"], 0);
    assert_eq!(
        (&event("sent")["name"], &event("sent")["bytes"]),
        (&json!("world.bin"), &json!(5_000))
    );
    let last = json!({ "event": "done", "ok": true, "clients": 1, "files": 1, "bytes": 5_000 });
    assert_eq!(*event("done"), last);
}

/// No hidden file comes of one that is served.
#[test]
fn a_hidden_file_is_stored_under_a_name_that_is_not() {
    let dir = Dir::new();
    let (file, inbox) = (dir.file(".bashrc", &data(5_000)), dir.dir("inbox"));
    let serving = serve(&[&file, "--once"]);
    let fetch = haulier(&["fetch", &serving.ticket, "-o", &inbox]);
    assert_eq!(fetch.code, Some(0), "{}", fetch.what);
    let text = fetch.text();
    assert!(text.contains("inbox/_.bashrc"), "{text}");
    assert_eq!(dir.names("inbox"), ["_.bashrc"]);
}

#[test]
fn as_text_the_ticket_is_all_of_standard_output() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(5_000));
    let serve = Program::start(&["serve", &file, "--once"]);
    let ticket = format!("haulier1:{}", serve.line("haulier1:"));
    let fetch = haulier(&["fetch", &ticket, "-o", &dir.path("out")]);
    assert_eq!(fetch.code, Some(0), "{}", fetch.what);
    let serve = serve.finish();
    assert_eq!((serve.code, serve.text()), (Some(0), &*format!("{ticket}\n")), "{}", serve.what);
    let log = ["serving world.bin (4.9 KiB) at 0.0.0.0:", "client 1 at ", "asks for world.bin"];
    for words in log.iter().chain(&["client 1 has world.bin (4.9 KiB) after "]) {
        assert!(serve.stderr.contains(words), "{words:?}: {}", serve.what);
    }
    let digest = format!("blake3 {}", blake3_hex(&data(5_000)));
    assert!(fetch.stderr.contains("connected with "), "{}", fetch.what);
    for words in ["fetched 4.9 KiB in ", " s and verified: ", "/out", &digest] {
        assert!(fetch.text().contains(words), "{words:?}: {}", fetch.what);
    }
    assert!(!serve.stderr.contains(&ticket[20..]) && !fetch.what.contains("haulier: "));
}

#[test]
fn a_file_goes_down_a_pipe() {
    for size in [0, 5_000, 700_000] {
        let dir = Dir::new();
        let serving = serve(&[&[&*dir.file("in", &data(size))], &FAST[..]].concat());
        let run = fetch(&[&serving.ticket, "-o", "-"]);
        assert_eq!(run.done()["file"], "standard output");
        assert!(run.stdout == data(size), "{size}");
    }
}

/// A ticket that is not an argument stays hidden from other users.
#[test]
fn a_ticket_comes_by_pipe_file_and_variable() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("a", b"one"), &dir.file("b", b"two")]);
    let out = dir.path("out");
    let ticket = format!("  {}\n", serving.ticket);
    let options = ["a", "-o", &out, "--force"];
    Program::start_with(&[&["fetch", "--json", "-"], &options[..]].concat(), ticket.as_bytes())
        .finish()
        .done();
    let file = dir.secret("ticket", ticket.as_bytes());
    fetch(&[&["--ticket-file", &file], &options[..]].concat()).done();
    assert_eq!(dir.read("out"), b"one");
    let by_variable = |args: &[&str]| {
        let mut command = Command::new(HAULIER);
        command.args(["fetch", "--json", "-o", &out, "--force"]).args(args);
        Program::spawn(command.env("HAULIER_TICKET", &*serving.ticket)).finish()
    };
    by_variable(&["b"]).done();
    assert_eq!(dir.read("out"), b"two");
    assert!(by_variable(&[]).error_of(2, "usage").contains("say which file you want"));
    // What is said beats what lies about.
    let other = serve(&[&dir.file("c", b"three")]);
    by_variable(&[&other.ticket]).done();
    assert_eq!(dir.read("out"), b"three");
}

/// `haulier serve --once | haulier fetch -` hung: the server keeps its end of the pipe open, and the end of
/// the pipe was waited for.
#[test]
fn a_ticket_ends_with_its_line() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"one")]);
    let (fetch, mut stdin) =
        Program::start_piped(&["fetch", "--json", "-", "-o", &dir.path("out")]);
    writeln!(stdin, "{}", serving.ticket).unwrap();
    fetch.finish().done();
    drop(stdin);
}

#[test]
fn of_several_files_each_is_fetched_by_its_name() {
    let dir = Dir::new();
    let files = ["a.bin", "Wörld 2 (neu).map", "no extension"];
    let paths: Vec<String> = files.iter().map(|name| dir.file(name, name.as_bytes())).collect();
    let serving = serve(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let inbox = dir.dir("inbox");
    for name in files {
        fetch(&[&serving.ticket, name, "-o", &inbox]).done();
        assert_eq!(dir.read(&format!("inbox/{name}")), name.as_bytes());
    }
    let one = dir.file("one", b"");
    let which = fetch(&[&serving.ticket, "-o", &one]).error_of(2, "usage");
    assert!(which.contains("which file") && which.contains("--list"), "{which}");
    // All of them go where no others are; or where they are, if they may be replaced.
    for (more, here, folder) in
        [(&["--copies", "1"][..], 0, "inbox/fetched"), (&["--force"], 3, "inbox")]
    {
        let done = fetch(&[&[&*serving.ticket, "-o", &inbox], more].concat()).done();
        assert_eq!((&done["files"], &done["files_here"]), (&json!(3), &json!(here)), "{done}");
        assert!(done["folder"].as_str().unwrap().ends_with(folder), "{done}");
    }
}

#[test]
fn the_list_says_what_there_is() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("b", &data(5_000)), &dir.file("a", b"")]);
    let done = fetch(&[&serving.ticket, "--list"]).done();
    let shown = |name: &str| {
        let file = &done["files"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(keys(file), "blake3 bytes mode modified_ns name");
        assert!(file["mode"].as_str().is_some_and(|mode| mode.starts_with("06")), "{file}");
        (file["bytes"].as_u64().unwrap(), file["blake3"].as_str().unwrap().to_owned())
    };
    assert_eq!(shown("a"), (0, blake3_hex(b"")));
    assert_eq!(shown("b"), (5_000, blake3_hex(&data(5_000))));
    let text = haulier(&["fetch", &serving.ticket, "--list"]);
    assert!(text.text().contains("4.9 KiB  b\n"), "{}", text.what);
    // A client that only listed has no file: `--once` goes on, which the next client shows.
    fetch(&[&serving.ticket, "a", "-o", &dir.path("out")]).done();
}

#[test]
fn once_is_for_a_file_and_not_for_a_look() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("a", b"one"), "--once"]);
    fetch(&[&serving.ticket, "--list"]).done();
    fetch(&[&serving.ticket, "b", "-o", &dir.path("out")]).error(3);
    fetch(&[&serving.ticket, "-o", &dir.path("out")]).done();
    assert_eq!(serving.program.finish().done()["clients"], 3);
}

#[test]
fn many_clients_fetch_at_once() {
    let dir = Dir::new();
    let serving = serve(&[&[&*dir.file("in", &data(600_000))], &FAST[..]].concat());
    let start = |n: usize| {
        let out = dir.path(&format!("out{n}"));
        Program::start(&["fetch", "--json", &serving.ticket, "-o", &out])
    };
    let fetching: Vec<Program> = (0..6).map(start).collect();
    for (n, fetch) in fetching.into_iter().enumerate() {
        fetch.finish().done();
        assert!(dir.read(&format!("out{n}")) == data(600_000));
    }
}

#[test]
fn open_lets_everybody_in() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", &data(300_000)), "--open", "--rate", "50M"]);
    fetch(&[&serving.addr, "--open", "-o", &dir.path("a")]).done();
    fetch(&[&serving.ticket, "-o", &dir.path("b")]).done();
    assert!(dir.read("a") == data(300_000) && dir.read("b") == data(300_000));
}

#[test]
fn an_own_protocol_id_works() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"x"), "--open", "--protocol-id", "0xdeadbeefcafe"]);
    let id = ["--open", "--protocol-id", "244837814094590"];
    fetch(&[&[&*serving.addr, "-o", &dir.path("out")], &id[..]].concat()).done();
    let other = fetch(&[&serving.addr, "--open", "-o", &dir.path("no")]).error(3);
    assert!(other.contains("--protocol-id"), "{other}");
}

#[test]
fn copies_are_sent_at_once() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", b"x")]);
    let out = |copies| {
        let options = ["--copies", copies, "-o", &dir.path("out"), "--force"];
        let done = fetch(&[&[&*serving.ticket], &options[..]].concat()).done();
        done["wire_bytes_out"].as_u64().unwrap()
    };
    assert!(out("10") >= 12_000 && out("1") < 12_000);
}

/// The first address of the ticket is dead; the next one is asked soon enough.
#[test]
fn a_ticket_with_a_dead_address_works() {
    let dir = Dir::new();
    let (file, secret) = (dir.file("in", &data(3_000)), dir.path("secret"));
    haulier(&["keygen", "-o", &secret]);
    let with_secret = ["--secret-file", &*secret];
    let serving = serve(&[&[&*file], &with_secret[..]].concat());
    let (_silent, dead) = silent();
    let options = ["--address", &dead, "--address", &serving.addr];
    let other = serve(&[&[&*file], &with_secret[..], &options[..]].concat());
    assert_eq!(fetch(&[&other.ticket, "-o", &dir.path("out")]).done()["bytes"], 3_000);
}

/// What outlives a restart: the ticket, if the secret lies in a file.
#[test]
fn a_secret_from_a_file_makes_the_ticket_last() {
    let dir = Dir::new();
    let (file, secret, identity) = (dir.file("in", b"x"), dir.path("secret"), dir.path("id"));
    haulier(&["keygen", "-o", &secret]);
    haulier(&["keygen", "--identity", "-o", &identity]);
    let options = [&*file, "--secret-file", &secret, "--identity-file", &identity];
    let first = serve(&options);
    let again = serve(&[&options[..], &["--address", &first.addr]].concat());
    assert_eq!(first.ticket, again.ticket);
    fetch(&[&again.ticket, "-o", &dir.path("a")]).done();
    let by_file = ["--secret-file", &*secret, "--identity-file", &identity];
    fetch(&[&[&*first.addr, "-o", &dir.path("b")], &by_file[..]].concat()).done();
    // Another server with the secret alone does not pass for this one.
    let other = serve(&[&file, "--secret-file", &secret]);
    let message = fetch(&[&[&*other.addr, "-o", &dir.path("c")], &by_file[..]].concat()).error(3);
    assert!(message.contains("refuses"), "{message}");
    // A server with the secret and another identity does not pass for this one either.
    let own = dir.path("own");
    haulier(&["keygen", "--identity", "-o", &own]);
    let other = serve(&[&file, "--secret-file", &secret, "--identity-file", &own]);
    let in_vain = [&*other.addr, "-o", &dir.path("c"), "--timeout", "0.5"];
    let message = fetch(&[&in_vain[..], &by_file[..]].concat()).error(3);
    assert!(message.contains("the identity that you insist on"), "{message}");
    assert!(!dir.names("").contains(&"c".to_owned()));
}

/// A reader of the events that goes away, as `head` does, does not stop a transfer.
#[cfg(unix)]
#[test]
fn a_closed_output_does_not_stop_it() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", &data(400_000)), "--rate", "8M"]);
    let out = dir.path("out");
    let fetch = ["sh", HAULIER, "fetch", "--json", &serving.ticket, "-o", &out];
    let script = ["-c", "\"$@\" | head -n 1"];
    let run = Program::spawn(Command::new("sh").args(script).args(fetch)).finish();
    assert_eq!(run.events().len(), 1, "{}", run.what);
    assert!(dir.read("out") == data(400_000));
}

/// A browser asks by the name of the host, or of a proxy. Others are refused: anybody can point a name here.
#[test]
fn a_view_answers_to_its_names_and_to_no_others() {
    use std::io::{Read as _, Write as _};
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    let names = ["--view-host", "box.example", "--view-host", "kitchen"];
    let serving = serve(&[&[&*file, "--view", "127.0.0.1:0"], &names[..]].concat());
    let url = serving.program.event("view")["address"].as_str().unwrap().to_owned();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let status = |host: &str| {
        let mut stream = std::net::TcpStream::connect(at).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for host in [at, "box.example", "BOX.example:8443", "kitchen:80"] {
        assert_eq!(status(host), "200", "{host}");
    }
    for host in ["evil.example", "box.example.evil", "a.kitchen"] {
        assert_eq!(status(host), "421", "{host}");
    }
    let refused = haulier(&["serve", &file, "--view", at, "--view-host", "http://box.example"]);
    assert_eq!(refused.code, Some(2), "{}", refused.what);
}
