//! What `serve`, `fetch`, `send` and `recv` write down about their connections.

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
    let warnings = |events: &[serde_json::Value], path: &str| {
        let of = |event: &&serde_json::Value| {
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
    haulier(&["playground", "--scene", "senders=haulier&bytes=64k", "--pcap", &capture]).text();
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
