//! `bench random`: virtual time, so that the same seed gives the same cells and the same numbers.

use serde_json::Value;

use crate::support::{Dir, Finished, haulier as lab};

fn random(options: &[&str]) -> Finished {
    lab(&[&["bench", "random"], options].concat())
}

fn events(run: &Finished, name: &str) -> Vec<Value> {
    run.events().into_iter().filter(|event| event["event"] == name).collect()
}

/// Each cell has a line, and what it names gives the same cell again.
#[test]
fn it_says_what_each_sender_makes_of_each_cell() {
    let few = ["--seed", "7", "--links", "2", "--crowds", "1", "--sizes", "64k", "--json"];
    let run = random(&few);
    let done = run.done();
    let (links, crowds) = (events(&run, "link"), events(&run, "crowd"));
    assert_eq!((links.len(), crowds.len()), (2, 1), "{}", run.what);
    assert_eq!(links[0]["words"], "link:0: 64.0 KiB, 6.96 Mbit/s, 4.4 ms, 8 KiB, 1.4 % lost up");
    assert_eq!(crowds[0]["words"], "crowd:0: 5 x 860 KiB, 4.9 Mbit/s, 65 ms, 19 KiB");
    for cell in links.iter().chain(&crowds) {
        let senders: Vec<&String> = cell["senders"].as_object().unwrap().keys().collect();
        assert_eq!(senders, ["tcp_bbr", "tcp_cubic", "ticket", "token"], "{cell}");
    }
    assert!(links[0]["senders"]["token"]["limits"].as_f64() > Some(1.0), "{}", links[0]);
    assert_eq!(crowds[0]["senders"]["token"]["failures"], 0, "{}", crowds[0]);
    assert_eq!(
        (&done["seed"], &done["failures"], &done["runs"]),
        (&7.into(), &0.into(), &12.into())
    );
    assert_eq!(done["links"][0]["senders"]["token"]["links"], 2, "{done}");
    assert!(
        (done["crowds"]["tcp_cubic"]["last_over_cubic_p50"].as_f64().unwrap() - 1.0).abs() < 1e-9
    );
    let again = crowds[0]["again"].as_str().unwrap();
    assert_eq!(again, "haulier-lab bench random --seed 7 --only crowd:0");
    let run = random(&["--seed", "7", "--only", "crowd:0", "--json"]);
    assert_eq!(events(&run, "crowd"), crowds, "{}", run.what);
}

#[test]
fn as_text_it_is_tables_with_the_worst_cells() {
    let dir = Dir::new();
    let out = dir.path("out.json");
    let run = random(&[
        "--seed",
        "7",
        "--cells",
        "1",
        "--sizes",
        "64k",
        "--servers",
        "each",
        "--senders",
        "token,tcp_cubic",
        "--out",
        &out,
    ]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let text = run.text();
    assert!(text.contains("| 1 links, 64.0 KiB | first % | p50 L |"), "{}", run.what);
    assert!(text.contains("\n| token | ") && text.contains("\n| tcp_cubic | "), "{}", run.what);
    assert!(!text.contains("ticket"), "{}", run.what);
    let again = "again: haulier-lab bench random --seed 7 --servers each --only crowd:0\n";
    assert!(text.contains(again) && text.contains("--seed 7 --only link:0\n"), "{}", run.what);
    assert!(text.ends_with("seed 7, 0 joins of ours got no block in time\n"), "{}", run.what);
    let out: Value = serde_json::from_slice(&dir.read("out.json")).unwrap();
    assert_eq!(out["cells"].as_array().unwrap().len(), 2);
}

#[test]
fn a_crowd_can_be_named() {
    let crowd = "10:50:64:2:65536";
    let run = random(&["--crowds-of", crowd, "--senders", "token", "--json"]);
    let crowds = events(&run, "crowd");
    assert_eq!(crowds.len(), 1, "{}", run.what);
    let again = crowds[0]["again"].as_str().unwrap();
    assert_eq!(again, format!("haulier-lab bench random --seed 1 --crowds-of {crowd}"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &[&str], words: &str| {
        let run = random(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--only", "cloud:1"], "cloud:1 is no cell: link:N or crowd:N");
    refused(&["--only", "link:1", "--cells", "2"], "cannot be used with");
    refused(&["--senders", "quic"], "nobody is called quic: there are token, ticket");
    refused(&["--sizes", "65M"], "from 1 to 64M bytes");
    refused(&["--crowds-of", "10:50"], "10:50 is no crowd");
    refused(&["--servers", "two"], "one, each");
}
