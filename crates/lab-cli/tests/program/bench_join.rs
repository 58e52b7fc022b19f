//! `bench join` and `bench peer`: real sockets and the real clock, so that no number is compared with another
//! that a slower machine would not reach as well.

use std::process::Command;

use serde_json::Value;

use crate::support::{Finished, HAULIER, Program, haulier as lab};

fn join(options: &[&str]) -> Finished {
    lab(&[&["bench", "join"], options].concat())
}

/// What scripts build on: an object for each link and each kind of join in the last line.
#[test]
fn the_last_line_has_every_join() {
    let run = join(&["--profiles", "fiber", "--seeds", "2", "--json"]);
    let done = run.done();
    assert_eq!((&done["bytes"], &done["seeds"]), (&262_144.into(), &2.into()));
    assert_eq!((&done["runs"], &done["failed"]), (&6.into(), &0.into()));
    let joins = done["joins"].as_object().unwrap();
    assert_eq!(joins.keys().collect::<Vec<_>>(), ["fiber"]);
    for kind in ["token", "ticket", "article"] {
        let cell = &done["joins"]["fiber"][kind];
        let number = |key: &str| cell[key].as_f64().unwrap_or_else(|| panic!("{kind}: {cell}"));
        // One round trip of 20 ms, and 256 KiB in packets of 1200 bytes at 100 Mbit/s.
        assert_eq!(number("limit_ms"), 41.5);
        assert!(number("p50_ms") >= 20.0 && number("p95_ms") >= number("p50_ms"), "{cell}");
        assert!(number("p50") > 0.5 && number("p95") >= number("p50"), "{cell}");
        assert!(number("sent") > 1.0, "every byte crossed the link, in packets: {cell}");
        assert_eq!(cell["failed"], 0);
    }
    let cells = run.events().iter().filter(|event| event["event"] == "cell").count();
    assert_eq!(cells, 3);
}

#[test]
fn as_text_it_is_a_table() {
    let run =
        join(&["--profiles", "cable,fiber", "--only", "token", "--seeds", "1", "--bytes", "20k"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let text = run.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {}", run.what));
    assert!(at("20.0 KiB a join, 1 seeds\n") < at("sent/N"), "{}", run.what);
    assert!(at("\nfiber  ") < at("\ncable  "), "from friendly to hostile: {}", run.what);
    assert!(!text.contains("article") && text.ends_with("2 joins\n"), "{}", run.what);
}

/// 250 ms of delay leave no time for a block within 50 ms.
#[test]
fn a_join_that_takes_too_long_has_failed() {
    let options =
        ["--profiles", "awful", "--seeds", "1", "--only", "token,article", "--timeout", "0.05"];
    let run = join(&[&options[..], &["--json"]].concat());
    assert_eq!(run.error(1), "2 of 2 joins failed");
    let events = run.events();
    let summary = events.iter().find(|event| event["event"] == "summary").unwrap();
    assert_eq!((&summary["ok"], &summary["failed"]), (&false.into(), &2.into()));
    let cell = &summary["joins"]["awful"]["article"];
    assert!(cell["p50_ms"].is_null() && cell["p95"].is_null() && cell["failed"] == 1, "{cell}");
    let run = join(&options);
    assert!(run.text().contains("fail") && run.stderr.contains("no block within"), "{}", run.what);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &[&str], words: &str| {
        let run = join(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--profiles", "fiber,moon"], "there is no link called moon");
    refused(&["--only", "token,udp"], "token, ticket, article");
    refused(&["--seeds", "0"], "0 is not in 1..");
    refused(&["--bytes", "2048M"], "from 1200 to 1024M");
    refused(&["--bytes", "much"], "is no size");
}

/// A server that listens on a port of the system's choice, and that port.
fn serve(options: &[&str]) -> (Program, String) {
    let args = ["bench", "peer", "serve", "--port", "0", "--bytes", "300k"];
    let mut command = Command::new(HAULIER);
    let server = Program::spawn(command.args(args).args(options).env("SERVER_ADDR", "127.0.0.1"));
    let addr = server.line("listening at ");
    let (_, port) = addr.rsplit_once(':').unwrap();
    (server, port.to_owned())
}

/// The last line of a client, which is JSON without `--json`: an emulator reads it.
fn fetch(port: &str, options: &[&str]) -> (Finished, Value) {
    let args = ["bench", "peer", "fetch", "--bytes", "300k", "--port", port];
    let mut command = Command::new(HAULIER);
    let places = [("SERVER_ADDR", "127.0.0.1"), ("CLIENT_ADDR", "127.0.0.1")];
    let run = Program::spawn(command.args(args).args(options).envs(places)).finish();
    let last = serde_json::from_str(run.text().lines().last().unwrap_or_default());
    let result = last.unwrap_or_else(|error| panic!("{error}: {}", run.what));
    (run, result)
}

fn assert_joined((run, result): &(Finished, Value), name: &str) {
    assert_eq!((&result["peer"], &result["ok"]), (&name.into(), &true.into()), "{}", run.what);
    assert_eq!((&result["bytes"], run.code), (&307_200.into(), Some(0)));
    let times = (result["connect_ms"].as_f64().unwrap(), result["total_ms"].as_f64().unwrap());
    assert!(0.0 <= times.0 && times.0 <= times.1, "{}", run.what);
}

#[test]
fn the_ends_of_a_join_are_programs() {
    let (_server, port) = serve(&[]);
    assert_joined(&fetch(&port, &[]), "haulier-token");
    assert_joined(&fetch(&port, &["--credentials", "ticket"]), "haulier-ticket");
    assert_joined(&fetch(&port, &["--credentials", "token"]), "haulier-token");
}

/// The client compares the block with the one that both know.
#[test]
fn the_block_is_right_however_the_ends_call_the_library() {
    let ways: [&[&str]; 4] =
        [&[], &["--frame-hz", "60"], &["--inline"], &["--frame-hz", "30", "--inline"]];
    for serving in ways {
        let (_server, port) = serve(serving);
        for fetching in ways {
            assert_joined(&fetch(&port, fetching), "haulier-token");
        }
    }
    let (run, _) = fetch("9", &["--wire", "article", "--inline"]);
    assert!(run.stderr.contains("go with --wire haulier1"), "{}", run.what);
}

/// Two chunks, and a second client that is a stranger to the first one's peer.
#[test]
fn the_article_s_sender_is_a_program() {
    let (_server, port) = serve(&["--wire", "article"]);
    for _ in 0..2 {
        assert_joined(&fetch(&port, &["--wire", "article"]), "haulier-article");
    }
}

#[test]
fn an_end_without_the_other_says_so() {
    let (server, port) = serve(&["--wire", "article"]);
    let (run, result) = fetch(&port, &["--timeout", "0.3"]);
    assert_eq!((run.code, &result["ok"]), (Some(3), &false.into()), "{}", run.what);
    assert!(result["error"].as_str().unwrap().contains("no block within 0.3 s"), "{result}");
    drop(server);
    let mut command = Command::new(HAULIER);
    let fetch = command.args(["bench", "peer", "fetch", "--json"]).env("SERVER_ADDR", "nowhere");
    let run = Program::spawn(fetch).finish();
    assert!(run.error(2).contains("SERVER_ADDR"), "{}", run.what);
}
