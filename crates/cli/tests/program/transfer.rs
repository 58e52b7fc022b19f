//! Files between `send` and `recv` on loopback: every size, every way in and out, text and JSON.

use std::io::Write as _;
use std::net::UdpSocket;

use serde_json::json;

use crate::support::{Dir, HAULIER, Pair, Program, blake3_hex, data, haulier, listen};

/// Sends files of these sizes, all at once, and looks at both ends.
fn assert_arrive(sizes: &[usize], options: &[&str]) {
    let dir = Dir::new();
    let start = |&size: &usize| {
        let file = dir.file(&format!("sent-{size}"), &data(size));
        Pair::start(&["-o", &dir.path(&format!("got-{size}"))], &file, options)
    };
    let pairs: Vec<Pair> = sizes.iter().map(start).collect();
    for (&size, pair) in sizes.iter().zip(pairs) {
        let (recv, send) = pair.finish();
        let (recv, send) = (recv.done(), send.done());
        let expected = (size.into(), blake3_hex(&data(size)).into());
        assert_eq!((&recv["bytes"], &recv["blake3"]), (&expected.0, &expected.1), "{size}");
        assert_eq!((&send["bytes"], &send["blake3"]), (&expected.0, &expected.1), "{size}");
        assert!(send["wire_bytes"].as_u64().unwrap() > size as u64, "{send}");
        assert!(dir.read(&format!("got-{size}")) == data(size), "{size} bytes differ");
    }
    // Each file twice, and nothing half-written beside them.
    assert_eq!(dir.names("").len(), 2 * sizes.len(), "{:?}", dir.names(""));
}

#[test]
fn small_files_arrive() {
    assert_arrive(&[0, 1, 1024, 5_000], &[]);
}

/// At and over the size of a chunk, where one run of slices becomes two.
#[test]
fn files_about_a_chunk_arrive() {
    assert_arrive(&[262_144 - 104, 262_144, 262_145], &["--rate", "400M"]);
}

#[test]
fn three_megabytes_arrive() {
    assert_arrive(&[3_000_000], &["--rate", "400M"]);
}

#[test]
fn the_burst_can_be_forced_and_switched_off() {
    assert_arrive(&[100_000, 600_000], &["--rate", "400M", "--burst"]);
    assert_arrive(&[100_000, 600_000], &["--rate", "400M", "--no-burst"]);
}

#[test]
fn an_own_protocol_id_works() {
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    let recv = ["-o", &dir.path("out"), "--protocol-id", "0xdeadbeef"];
    // The same number, in decimal.
    let pair = Pair::start(&recv, &file, &["--protocol-id", "3735928559"]);
    pair.finish().0.done();
    assert_eq!(dir.read("out"), data(3_000));
}

#[test]
fn as_text_both_ends_say_in_words_that_it_is_verified() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(5_000));
    let out = dir.path("out");
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", &out]);
    let addr = recv.line("waiting at ");
    let send = haulier(&["send", &file, &addr]);
    let recv = recv.finish();
    assert_eq!((recv.code, send.code), (Some(0), Some(0)), "{}\n{}", recv.what, send.what);
    let digest = format!("blake3 {}", blake3_hex(&data(5_000)));
    for words in ["received 4.9 KiB in ", " s and verified: ", &out, &digest] {
        assert!(recv.text().contains(words), "{words:?}: {}", recv.what);
    }
    let sending = format!("sending world.bin to {addr}");
    for words in [&sending, "sent 4.9 KiB in ", "stored there, verified", "slices", &digest] {
        assert!(send.text().contains(words), "{words:?}: {}", send.what);
    }
    assert!(!recv.stderr.contains("haulier:") && !send.stderr.contains("haulier:"));
}

#[test]
fn pipes_work_as_input_and_output() {
    for size in [0, 5_000, 700_000] {
        let (recv, addr) = listen(&["-o", "-"]);
        let send = ["send", "--json", "-", &addr, "--rate", "400M"];
        let send = Program::start_with(&send, &data(size));
        let begun = send.event("sending");
        assert_eq!((&begun["name"], &begun["bytes"]), (&json!("stdin"), &json!(null)));
        let (recv, send) = (recv.finish(), send.finish());
        assert_eq!(send.done()["blake3"], blake3_hex(&data(size)));
        assert_eq!(recv.done()["file"], "standard output");
        // The file and nothing else: events went to standard error.
        assert!(recv.stdout == data(size), "{size}: {} bytes came out", recv.stdout.len());
    }
}

/// A producer that pauses: what it has written so far is sent, not kept back.
#[test]
fn a_slow_pipe_is_sent_as_it_comes() {
    let (recv, addr) = listen(&["-o", "-"]);
    let send = ["send", "--json", "-", &addr, "--rate", "400M"];
    let (send, mut stdin) = Program::start_piped(&send);
    let content = data(400_000);
    let (now, later) = content.split_at(300_000);
    stdin.write_all(now).unwrap();
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    stdin.write_all(later).unwrap();
    drop(stdin);
    send.finish().done();
    assert!(recv.finish().stdout == content);
}

#[test]
fn as_text_standard_output_holds_the_file_alone() {
    let recv = Program::start(&["recv", "--bind", "127.0.0.1:0", "-o", "-"]);
    let addr = recv.line("waiting at ");
    let send = Program::start_with(&["send", "-", &addr, "--name", "a b"], &data(2_000));
    let (recv, send) = (recv.finish(), send.finish());
    assert_eq!((recv.code, send.code), (Some(0), Some(0)), "{}\n{}", recv.what, send.what);
    assert_eq!(recv.stdout, data(2_000));
    assert!(recv.stderr.contains("verified: standard output"), "{}", recv.what);
    assert!(send.text().contains("sending a b to"), "{}", send.what);
}

#[test]
fn a_directory_keeps_the_senders_name() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(3_000));
    let inbox = dir.dir("inbox");
    for output in [inbox.clone(), format!("{inbox}/")] {
        let (recv, send) = Pair::start(&["-o", &output, "--force"], &file, &[]).finish();
        send.done();
        let done = recv.done();
        assert_eq!(done["name"], "world.bin");
        assert!(done["file"].as_str().unwrap().ends_with("inbox/world.bin"), "{done}");
        assert_eq!(dir.names("inbox"), ["world.bin"]);
        assert_eq!(dir.read("inbox/world.bin"), data(3_000));
    }
}

#[test]
fn another_name_can_be_given() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(3_000));
    let inbox = dir.dir("inbox");
    for name in ["other.bin", "Wörld 2 (neu).map", "no extension"] {
        let (recv, send) = Pair::start(&["-o", &inbox], &file, &["--name", name]).finish();
        send.done();
        assert_eq!(recv.done()["name"], name);
        assert_eq!(dir.read(&format!("inbox/{name}")), data(3_000));
    }
    assert_eq!(dir.names("inbox").len(), 3);
}

/// A private temporary file must not become a private file.
#[cfg(unix)]
#[test]
fn the_file_may_be_read_like_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new();
    let (file, out) = (dir.file("in", &data(10)), dir.path("out"));
    let (recv, _) = Pair::start(&["-o", &out], &file, &[]).finish();
    recv.done();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&out), mode(&file));
}

#[test]
fn ipv6_works() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let dir = Dir::new();
    let out = dir.path("out");
    let recv = Program::start(&["recv", "--json", "--bind", "[::1]:0", "-o", &out]);
    let addr = recv.event("listening")["addr"].as_str().unwrap().to_owned();
    assert!(addr.starts_with("[::1]:"), "{addr}");
    haulier(&["send", "--json", &dir.file("in", &data(300_000)), &addr, "--rate", "400M"]).done();
    recv.finish().done();
    assert!(dir.read("out") == data(300_000));
}

/// The order in which the ends start does not matter.
#[cfg(target_os = "linux")]
#[test]
fn a_sender_waits_for_its_receiver() {
    let dir = Dir::new();
    let file = dir.file("in", &data(3_000));
    // An address of the loopback that no other test binds: the port stays free.
    let free = UdpSocket::bind("127.77.0.1:0").unwrap().local_addr().unwrap().to_string();
    let send = Program::start(&["send", "--json", &file, &free, "--timeout", "50"]);
    send.event("progress");
    let recv = Program::start(&["recv", "--json", "--bind", &free, "-o", &dir.path("out")]);
    recv.finish().done();
    send.finish().done();
    assert_eq!(dir.read("out"), data(3_000));
}

/// Noise before and between, from other ports, of another protocol and of the right one.
#[test]
fn strangers_change_nothing() {
    let dir = Dir::new();
    let file = dir.file("in", &data(500_000));
    let (recv, addr) = listen(&["-o", &dir.path("out")]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let noise = |datagram: &[u8]| stranger.send_to(datagram, &addr).unwrap();
    for len in [0, 1, 4, 5, 1_037, 1_200, 1_201, 9_000] {
        noise(&data(len));
    }
    let send = Program::start(&["send", "--json", &file, &addr, "--rate", "4M"]);
    recv.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    // A slice that would be taken from the right sender: chunk 1, slice 255 of 256, the byte f0.
    let slice = [0x44, 0x6c, 0x95, 0x76, 2, 0, 0xfe, 0xff, 1, 0, 0xf0, 0xe2, 0xac, 8, 0x99];
    for _ in 0..20 {
        noise(&slice);
    }
    send.finish().done();
    recv.finish().done();
    assert!(dir.read("out") == data(500_000));
}

/// A reader of the events that goes away, as `head` does, does not stop a transfer.
#[cfg(unix)]
#[test]
fn a_closed_output_does_not_stop_it() {
    use std::process::Command;
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path("out")]);
    let file = dir.file("in", &data(400_000));
    let script = "\"$@\" | head -n 1";
    let send = ["-c", script, "sh", HAULIER, "send", "--json", &file, &addr, "--rate", "2M"];
    let send = Program::spawn(Command::new("sh").args(send)).finish();
    assert_eq!(send.events().len(), 1, "{}", send.what);
    recv.finish().done();
    assert!(dir.read("out") == data(400_000));
}
