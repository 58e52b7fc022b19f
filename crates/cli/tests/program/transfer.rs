//! Files between `send` and `recv` on loopback: every size, every way in and out, text and JSON.

use std::io::Write as _;
use std::net::UdpSocket;

use serde_json::Value;

use crate::support::{Dir, Pair, Program, Serving, blake3_hex, data, haulier, recv, send};

/// Sends files of these sizes, all at once, and looks at both ends.
#[test]
fn files_of_every_size_arrive() {
    let sizes = [0, 1, 1024, 5_000, 262_143, 262_144, 262_145, 3_000_000];
    let dir = Dir::new();
    let start = |&size: &usize| {
        let file = dir.file(&format!("sent-{size}"), &data(size));
        Pair::start(&["-o", &dir.path(&format!("got-{size}"))], &file, &[])
    };
    let pairs: Vec<Pair> = sizes.iter().map(start).collect();
    for (&size, pair) in sizes.iter().zip(pairs) {
        let (recv, send) = pair.finish();
        for done in [recv.done(), send.done()] {
            assert_eq!(
                (done["bytes"].as_u64(), &done["blake3"]),
                (Some(size as u64), &blake3_hex(&data(size)).into())
            );
        }
        assert!(dir.read(&format!("got-{size}")) == data(size), "{size} bytes differ");
    }
    // Each file twice, and nothing half-written beside them.
    assert_eq!(dir.names("").len(), 2 * sizes.len(), "{:?}", dir.names(""));
}

#[test]
fn several_files_and_directories_arrive_under_their_paths() {
    let dir = Dir::new();
    for inner in ["maps", "maps/deep", "maps/empty"] {
        dir.dir(inner);
    }
    dir.file("maps/a.map", &data(40_000));
    dir.file("maps/deep/b.map", &data(2_000_000));
    let (one, inbox) = (dir.file("one.bin", &data(3_000)), dir.dir("inbox"));
    let Serving { program: recv, ticket, .. } = recv(&["-o", &inbox]);
    let sent = send(&[&one, &dir.path("maps"), &ticket]).done();
    assert_eq!(
        (sent["files"].as_u64(), sent["bytes"].as_u64()),
        (Some(3), Some(2_043_000)),
        "{sent}"
    );
    let names: Vec<Value> = recv
        .finish()
        .events()
        .into_iter()
        .filter(|it| it["event"] == "received")
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names.len(), 4, "the empty directory is here, and is no file: {names:?}");
    assert!(dir.read("inbox/maps/deep/b.map") == data(2_000_000));
    assert_eq!(dir.names("inbox"), ["maps", "one.bin"]);
    assert_eq!(dir.names("inbox/maps"), ["a.map", "deep", "empty"]);
}

/// Its length is known at its end, and its producer takes more time than a connection may be silent.
#[test]
fn a_pipe_of_any_length_that_takes_its_time_arrives() {
    let (dir, content) = (Dir::new(), data(1_500_000));
    let Serving { program: recv, ticket, .. } = recv(&["-o", &dir.path("out")]);
    let args = ["send", "--json", "-", &ticket, "--name", "world", "--timeout", "1"];
    let (send, mut stdin) = Program::start_piped(&args);
    stdin.write_all(&content[..1_200_000]).unwrap();
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    stdin.write_all(&content[1_200_000..]).unwrap();
    drop(stdin);
    let sent = send.finish().done();
    assert_eq!(
        (&sent["bytes"], &sent["blake3"]),
        (&1_500_000.into(), &blake3_hex(&content).into())
    );
    assert_eq!(recv.event("received")["name"], "world");
    recv.finish().done();
    assert!(dir.read("out") == content);
}

#[test]
fn standard_output_gets_the_file_and_nothing_else() {
    let dir = Dir::new();
    let file = dir.file("in", &data(400_000));
    let Serving { program: recv, ticket, .. } = recv(&["-o", "-"]);
    send(&[&file, &ticket]).done();
    let recv = recv.finish();
    recv.done();
    assert!(recv.stdout == data(400_000));
    // As text, the ticket is where the other words are.
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", "-"]);
    let ticket = format!("haulier1:{}", recv.line("haulier1:"));
    assert_eq!(haulier(&["send", &file, &ticket]).code, Some(0));
    assert!(recv.finish().stdout == data(400_000));
}

#[test]
fn as_text_the_ticket_is_the_line_on_standard_output() {
    let dir = Dir::new();
    let (file, inbox) = (dir.file("world.bin", &data(3_000)), dir.dir("inbox"));
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", &inbox]);
    let ticket = format!("haulier1:{}", recv.line("haulier1:"));
    let sent = haulier(&["send", &file, &ticket]);
    assert!(sent.text().contains("sent world.bin (2.9 KiB)"), "{}", sent.what);
    let recv = recv.finish();
    assert_eq!((recv.code, recv.text()), (Some(0), &*format!("{ticket}\n")), "{}", recv.what);
    assert!(recv.stderr.contains("client 1 has sent world.bin (2.9 KiB) after "), "{}", recv.what);
    assert!(recv.stderr.contains(&format!("blake3 {}", blake3_hex(&data(3_000)))), "{}", recv.what);
}

/// With keys in files the ends can know each other before either runs, and the order does not matter.
#[test]
fn who_comes_first_waits() {
    let dir = Dir::new();
    let (file, secret) = (dir.file("in", &data(300_000)), dir.path("secret"));
    haulier(&["keygen", "-o", &secret]);
    // An address of the loopback that no other test binds: the port stays free.
    let free = UdpSocket::bind("127.77.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["send", "--json", &file, &free, "--secret-file", &secret, "--timeout", "60"];
    let first = Program::start(&args);
    first.event("waiting");
    let args =
        ["recv", "--json", "--bind", &free, "--secret-file", &secret, "-o", &dir.path("out")];
    let second = Program::start(&args);
    first.finish().done();
    second.finish().done();
    assert!(dir.read("out") == data(300_000));
}

#[test]
fn everybody_and_tokens_and_other_protocols() {
    let dir = Dir::new();
    let (file, key, token) = (dir.file("in", &data(3_000)), dir.path("key"), dir.path("token"));
    let open = recv(&["-o", &dir.path("open"), "--open"]);
    send(&[&file, &open.addr, "--open"]).done();
    haulier(&["keygen", "--token", "-o", &key]);
    let with_token =
        recv(&["-o", &dir.path("token-out"), "--token-key", &key, "--protocol-id", "9"]);
    let issue = ["token", "issue", "--token-key", &key, "--client-id", "42", "--server"];
    haulier(
        &[&issue[..], &[&with_token.addr, "--expires", "60", "--protocol-id", "9", "-o", &token]]
            .concat(),
    );
    send(&[&file, "--ticket-file", &token]).done();
    for (program, out) in [(open.program, "open"), (with_token.program, "token-out")] {
        program.finish().done();
        assert_eq!(dir.read(out), data(3_000));
    }
}

/// It ends after a sender, whoever disturbs it, and takes one at a time.
#[test]
fn one_sender_at_a_time_and_then_the_end() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let Serving { program: recv, addr, ticket, .. } = recv(&["-o", &inbox]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 1_037, 1_200, 9_000] {
        stranger.send_to(&data(len), &addr).unwrap();
    }
    // It has nothing to send, and changes nothing.
    let message = crate::support::fetch(&[&ticket, "-o", &dir.path("out")]).error(3);
    assert!(message.contains("there is no file there"), "{message}");
    send(&[&dir.file("one", &data(3_000)), &ticket]).done();
    recv.finish().done();
    assert_eq!(dir.names("inbox"), ["one"]);
}

#[test]
fn with_stay_file_after_file_is_taken_until_it_is_interrupted() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    let Serving { program: recv, ticket, .. } = recv(&["-o", &inbox, "--stay"]);
    for (name, size) in [("one", 3_000), ("two", 400_000)] {
        send(&[&dir.file(name, &data(size)), &ticket]).done();
        assert!(dir.read(&format!("inbox/{name}")) == data(size), "{name}");
        recv.event_where("received", |event| event["name"] == name);
    }
    // A file of this name is there, and differs: it is kept, and the error is reported to the sender.
    let message = send(&[&dir.file("one", b"other"), &ticket]).error(5);
    assert!(message.contains("one: another file has this name there"), "{message}");
    // It is there, and is the same. Requests that were sent again on a busy machine are no part of the file.
    let done = send(&[&dir.path("two"), &ticket]).done();
    assert!(done["wire_bytes_out"].as_u64() < Some(200_000), "{done}");
    recv.signal("INT");
    let done = recv.finish().done();
    assert_eq!((done["files"].as_u64(), done["senders"].as_u64()), (Some(2), Some(4)), "{done}");
    assert_eq!(dir.names("inbox"), ["one", "two"]);
}
