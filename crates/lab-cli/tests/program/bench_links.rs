//! `bench links`: virtual time, so that the same arguments give the same numbers and the same figure.

use serde_json::Value;

use crate::support::{Dir, Finished, haulier as lab};

fn links(options: &[&str]) -> Finished {
    lab(&[&["bench", "links"], options].concat())
}

#[test]
fn it_draws_and_stores_the_same_every_time() {
    let dir = Dir::new();
    let files = |name: &str| {
        let (svg, out) = (dir.path(&format!("{name}.svg")), dir.path(&format!("{name}.json")));
        let few = ["--seeds", "2", "--sizes", "64k,300k", "--svg", &svg, "--out", &out, "--json"];
        let done = links(&few).done();
        (done, dir.read(&format!("{name}.svg")), dir.read(&format!("{name}.json")))
    };
    let (done, svg, out) = files("a");
    assert!((done.clone(), svg.clone(), out.clone()) == files("b"), "other bytes the second time");
    assert_eq!(done["links"].as_array().unwrap().len(), 17);
    // The article's sender has one chunk at most.
    let cells = done["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 17 * 5 + 17 * 4);
    assert!(cells.iter().all(|cell| cell["joiner"] != "token" || cell["p50"].is_f64()), "{done}");
    let svg = String::from_utf8(svg).unwrap();
    for words in
        [">haulier, ticket<", ">64.0 KiB<", ">300.0 KiB<", ">policer<", "haulier, token 1."]
    {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(out["joins"].as_array().unwrap().len(), 2 * cells.len());
}

#[test]
fn as_text_it_is_markdown() {
    let run = links(&[
        "--seeds",
        "1",
        "--sizes",
        "16k",
        "--only",
        "ticket,tcp_bbr",
        "--links",
        "fiber,lte",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let rows: Vec<&str> = run.text().lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows[0], "| median / p95, in L | mean | wire | fiber | lte |", "{}", run.what);
    assert!(rows[2].starts_with("| ticket | ") && rows[3].starts_with("| tcp_bbr | "), "{rows:?}");
    assert_eq!(rows.len(), 4, "{rows:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &[&str], words: &str| {
        let run = links(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--links", "moon"], "there is no link called moon: there are fiber");
    refused(&["--only", "quic"], "nobody is called quic: there are token, ticket");
    refused(&["--sizes", "65M"], "from 1 to 64M bytes");
    refused(&["--sizes", "0"], "0");
}
