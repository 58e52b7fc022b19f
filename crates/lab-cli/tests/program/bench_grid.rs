//! `bench grid`: virtual time, so that the same arguments give the same numbers to the last digit.
//!
//! What every strategy makes of the quick samples, of the tuned links and of the odd ones, is in
//! `tests/snapshots/bench_grid.json`. A change of ours is a change of the sender, one of another is of the
//! links, the models or the article's machine, and both are to be looked at: `UPDATE_BENCH_GRID=1 cargo test
//! -p haulier-cli bench_grid` writes the file.

use serde_json::{Map, Value};

use crate::support::{Dir, Finished, haulier as lab};

const STRATEGIES: [&str; 6] =
    ["warm", "cold_ticket", "cold_token", "article", "slow_start", "burst_resend"];
const KEYS: [&str; 5] = ["p50", "p95", "p99", "waste", "dropped_kib"];

fn grid(options: &[&str]) -> Finished {
    lab(&[&["bench", "grid"], options].concat())
}

#[test]
fn the_quick_sample_is_the_reviewed_one() {
    let done = grid(&["--quick", "--json"]).done();
    assert_eq!((&done["scope"], &done["links"]), (&"quick".into(), &"tuned".into()));
    let measured = (&done["cells"], &done["seeds"], &done["runs"]);
    assert_eq!(measured, (&155.into(), &2.into(), &1860.into()), "{done}");
    let odd = grid(&["--quick", "--cells", "odd", "--json"]).done();
    assert_eq!((&odd["links"], &odd["cells"]), (&"odd".into(), &43.into()), "{odd}");
    let of = |done: &Value| -> Map<String, Value> {
        STRATEGIES.into_iter().map(|name| (name.to_owned(), done[name].clone())).collect()
    };
    let mut strategies = of(&done);
    strategies.insert("odd".into(), of(&odd).into());
    let printed = format!("{:#}\n", Value::Object(strategies));

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/bench_grid.json");
    if std::env::var_os("UPDATE_BENCH_GRID").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    // As values: a checkout with other line ends has the same numbers.
    let reviewed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let new: Value = serde_json::from_str(&printed).unwrap();
    assert!(reviewed == new, "not the reviewed numbers:\n{printed}");
}

/// What scripts build on: an object for each strategy in the last line.
#[test]
fn the_last_line_has_every_strategy() {
    let run = grid(&["--seeds", "1", "--json"]);
    let done = run.done();
    for name in STRATEGIES {
        for key in KEYS {
            assert!(done[name][key].is_f64(), "{name}.{key} of {done}");
        }
        assert_eq!((&done[name]["runs"], &done[name]["cells"]), (&155.into(), &155.into()));
    }
    let strategies = run.events().iter().filter(|event| event["event"] == "strategy").count();
    assert_eq!(strategies, 6);
}

#[test]
fn as_text_it_is_a_table() {
    let run = grid(&["--only", "slow_start,article", "--seeds", "1", "--tables"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let text = run.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {}", run.what));
    assert!(at("ratio to the limit") < at("\narticle  "), "{}", run.what);
    assert!(at("\narticle  ") < at("\nslow_start  "), "in the order of the library: {}", run.what);
    assert!(at("article, p50/p95") < at("article, by loss"), "{}", run.what);
    assert!(text.ends_with("310 runs: 1 seeds in each of 155 cells\n"), "{}", run.what);
}

#[test]
fn odd_links_have_a_table_of_their_own() {
    let run = grid(&["--only", "article", "--cells", "odd", "--seeds", "1", "--tables"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    for words in
        ["article, by oddity", "\nreordering of 40 ms  ", "\nbunches of 4 ms  ", "\nnone  "]
    {
        assert!(run.text().contains(words), "{words}: {}", run.what);
    }
}

/// A model of TCP is slow at 30 % loss: that is counted and named, and fails nothing.
#[test]
fn a_run_can_be_replayed() {
    let run = grid(&["--cell", "168", "--seed", "0", "--only", "slow_start,warm", "--json"]);
    let done = run.done();
    assert_eq!((&done["cell"], &done["seed"]), (&168.into(), &0.into()));
    assert_eq!(done["slow_start"]["hang"], "no block within 60 s");
    assert!(done["warm"]["hang"].is_null() && done["warm"]["ratio"].as_f64() > Some(0.8), "{done}");
    let moments = run.events().iter().filter(|event| event["event"] == "moment").count();
    assert!(moments > 10, "{}", run.what);

    let run = grid(&["--cell", "168", "--only", "slow_start"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    for words in ["cell 168: 2 Mbit/s, 300 ms, loss 30 %, queue 32 KiB, seed 0", "hangs: no block"]
    {
        assert!(run.text().contains(words), "{words}: {}", run.what);
    }
}

#[test]
fn it_draws_and_stores_the_same_every_time() {
    let dir = Dir::new();
    let files = |name: &str| {
        let (svg, out) = (dir.path(&format!("{name}.svg")), dir.path(&format!("{name}.json")));
        let only = ["--only", "burst_resend", "--cells", "others", "--seeds", "1"];
        let run = grid(&[&only[..], &["--svg", &svg, "--out", &out]].concat());
        assert_eq!(run.code, Some(0), "{}", run.what);
        (dir.read(&format!("{name}.svg")), dir.read(&format!("{name}.json")))
    };
    let (svg, out) = files("a");
    assert!((svg.clone(), out.clone()) == files("b"), "other bytes the second time");
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("burst, exact resends") && !svg.contains("href"), "{svg}");
    let out: Value = serde_json::from_slice(&out).unwrap();
    let rows = out["cells"]["burst_resend"].as_array().unwrap();
    assert_eq!(rows.len(), 109);
    // The first multiple of seven among the others.
    assert_eq!((&rows[0]["cell"], &rows[0]["rate_mbit"]), (&1085.into(), &3.into()));
    assert_eq!(out["summaries"]["burst_resend"]["cells"], 109);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &[&str], words: &str| {
        let run = grid(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--cell", "2144"], "2144 is not in 0..2144");
    refused(&["--only", "warm,cubic"], "there is no strategy called cubic");
    refused(&["--quick", "--full"], "cannot be used with");
    refused(&["--cell", "1", "--full"], "cannot be used with");
    refused(&["--seeds", "0"], "0 is not in 1..");
    refused(&["--seed", "3"], "--cell");
    refused(&["--cells", "some"], "tuned, others, odd, all");
    let run =
        grid(&["--only", "slow_start", "--seeds", "1", "--svg", "/no/such/place.svg", "--json"]);
    assert!(run.error(5).contains("place.svg"), "{}", run.what);
}
