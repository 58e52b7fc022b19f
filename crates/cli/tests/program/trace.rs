//! What `serve`, `fetch`, `send` and `recv` write down about their connections.

use serde_json::Value;

use crate::scenes::capture_scene;
use crate::support::{Dir, data, fetch, haulier, serve};

/// Both ends append the same lines, for their owner alone, and say that it is dangerous.
#[test]
fn key_logs_have_the_keys_of_both_ends() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(100_000));
    let (here, there) = (dir.path("here.keys"), dir.path("there.keys"));
    let serving = serve(&[&file, "--once", "--keylog", &here]);
    let run = fetch(&[&serving.ticket, "-o", &dir.path("out"), "--keylog", &there]);
    run.done();
    let warnings = |events: &[Value], path: &str| {
        let of = |event: &&Value| {
            event["event"] == "warning" && event["message"].as_str().unwrap().contains(path)
        };
        events.iter().filter(of).count()
    };
    assert_eq!(warnings(&run.events(), &there), 1);
    let served = serving.program.finish();
    served.done();
    assert_eq!(warnings(&served.events(), &here), 1);
    let keys = String::from_utf8(dir.read("here.keys")).unwrap();
    assert_eq!(keys.lines().count(), 4, "{}", keys.lines().count());
    assert!(keys.as_bytes() == dir.read("there.keys"), "the two differ");
    // What reads captures takes it. None of this capture is of these connections.
    let capture = dir.path("capture");
    capture_scene("senders=haulier&bytes=64k", false, &capture);
    let read = haulier(&["inspect", "--pcap", &capture, "--keylog", &here]);
    assert_eq!(read.code, Some(0), "{}", read.what);
    assert!(!read.text().is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&here).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        dir.set_mode("here.keys", 0o640);
        let refused = haulier(&["--json", "serve", &file, "--keylog", &here]).error(6);
        assert!(refused.contains("chmod 600"), "{refused}");
    }
}

/// Both ends write what the other received, in the sequences of a qlog.
#[test]
fn qlogs_have_what_crossed() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(400_000));
    let (here, there) = (dir.path("here.sqlog"), dir.path("there.sqlog"));
    let serving = serve(&[&file, "--once", "--qlog", &here]);
    let done = fetch(&[&serving.ticket, "-o", &dir.path("out"), "--qlog", &there]).done();
    serving.program.finish().done();
    let read = |name: &str| -> Vec<Value> {
        let text = String::from_utf8(dir.read(name)).unwrap();
        text.split('\u{1e}').skip(1).map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    let (server, client) = (read("here.sqlog"), read("there.sqlog"));
    assert_eq!(server[0]["trace"]["vantage_point"]["type"], "server");
    assert_eq!(client[0]["trace"]["vantage_point"]["type"], "client");
    let of = |records: &[Value], name: &str| -> (u64, u64) {
        let named = records.iter().filter(|it| it["name"] == name);
        let lengths = named.map(|it| it["data"]["raw"]["length"].as_u64().unwrap());
        lengths.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length))
    };
    let sent = of(&client, "transport:packet_sent");
    assert_eq!(sent.1, done["wire_bytes_out"].as_u64().unwrap());
    let received = of(&client, "transport:packet_received");
    assert!(received.1 > 400_000, "{received:?}");
    // The server may have sent a close that the client did not wait for.
    assert!(of(&server, "transport:packet_sent").1 >= received.1);
    let starts = server.iter().filter(|it| it["name"] == "connectivity:connection_started");
    assert_eq!(starts.count(), 1);
    assert!(server[1..].iter().all(|it| it["group_id"].is_string()));
}

/// A line for each thing that happened to the connection, on standard error alone.
#[test]
fn a_log_goes_to_standard_error() {
    let dir = Dir::new();
    let file = dir.file("world.bin", &data(100_000));
    let serving = serve(&[&file, "--once"]);
    let log = |level: &str| {
        let out = dir.path(&format!("out-{level}"));
        fetch(&[&serving.ticket, "-o", &out, "--log", level])
    };
    let run = log("haulier=info");
    run.done();
    for words in ["INFO connection{peer=127.0.0.1:", "haulier: connected", "haulier: closed"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("DEBUG"), "{}", run.stderr);
    let refused = haulier(&["--json", "fetch", &serving.ticket, "--log", "haulier=loudly"]);
    let message = refused.error(2);
    assert!(message.contains("info, debug or trace"), "{message}");
}
