//! `bench crowd`: virtual time, so that the same arguments give the same numbers to the last digit.
//!
//! What each mix makes of the quick sample is in `tests/snapshots/bench_crowd.json`. A change is one of the
//! sender, or of the links and TCP, and is to be looked at: `UPDATE_BENCH_CROWD=1 cargo test -p haulier-cli
//! bench_crowd` writes the file.

use serde_json::{Map, Value};

use crate::support::{Dir, Finished, haulier as lab};

/// The scalars and mixes of the last line but the error that says that connections ended, if they did: what
/// senders do is in the snapshot, and not here.
fn summary(run: &Finished) -> Value {
    let events = run.events();
    let last = events.last().unwrap();
    if last["event"] == "done" {
        assert_eq!(run.code, Some(0), "{}", run.what);
        return last.clone();
    }
    let summary = events[events.len() - 2].clone();
    assert!(
        summary["broken"].as_u64() > Some(0) || summary["stalled"].as_u64() > Some(0),
        "{last}"
    );
    assert!(run.error(7).contains("connections ended before their run"), "{}", run.what);
    summary
}

fn crowd(options: &[&str]) -> Finished {
    lab(&[&["bench", "crowd"], options].concat())
}

#[test]
fn the_quick_crowd_is_the_reviewed_one() {
    let done = summary(&crowd(&["--quick", "--json"]));
    assert_eq!((&done["scope"], &done["cells"]), (&"quick".into(), &93.into()), "{done}");
    let mixes: Map<String, Value> = done
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| value.is_object())
        .map(|(name, mix)| (name.clone(), mix.clone()))
        .collect();
    assert_eq!(mixes.len(), 12, "{done}");
    let printed = format!("{:#}\n", Value::Object(mixes));

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/bench_crowd.json");
    if std::env::var_os("UPDATE_BENCH_CROWD").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    // As values: a checkout with other line ends has the same numbers.
    let reviewed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let new: Value = serde_json::from_str(&printed).unwrap();
    assert!(reviewed == new, "not the reviewed numbers:\n{printed}");
}

#[test]
fn as_text_it_is_a_table_with_the_worst_cells() {
    let run = crowd(&["--only", "slow_up", "--tables"]);
    assert!(matches!(run.code, Some(0 | 7)), "{}", run.what);
    let text = run.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {}", run.what));
    assert!(at("\nslow_up  ") < at("slow_up, by flows"), "{}", run.what);
    assert!(at("slow_up, by BDP") < at("most unfair"), "{}", run.what);
    assert!(at("most unfair") < at("(again: --cell 1"), "{}", run.what);
    assert!(!text.contains("starved beside TCP"), "there is none: {}", run.what);
    assert!(text.contains("; seed 1\n"), "{}", run.what);
}

/// Two beside each other, one of them TCP, the same every time.
#[test]
fn a_cell_can_be_replayed() {
    let replay = |seed: &str| crowd(&["--cell", "462", "--seed", seed, "--json"]);
    let run = replay("3");
    let done = summary(&run);
    assert_eq!((&done["cell"], &done["seed"]), (&462.into(), &3.into()), "{done}");
    assert_eq!((&done["mix"], &done["flows"]), (&"cubic".into(), &2.into()), "{done}");
    let flows: Vec<Value> =
        run.events().into_iter().filter(|event| event["event"] == "flow").collect();
    let roles: Vec<&Value> = flows.iter().map(|flow| &flow["role"]).collect();
    assert_eq!(roles, ["stays", "cubic"]);
    assert_eq!(flows[0]["share"], done["beside_tcp"]);
    assert_eq!(summary(&replay("3")), done);
    assert_ne!(summary(&replay("4"))["queue_ms_p50"], done["queue_ms_p50"]);
}

#[test]
fn it_stores_every_cell() {
    let dir = Dir::new();
    let out = dir.path("out.json");
    let run = crowd(&["--only", "cubic", "--out", &out]);
    assert!(matches!(run.code, Some(0 | 7)), "{}", run.what);
    let out: Value = serde_json::from_slice(&dir.read("out.json")).unwrap();
    let cells = out["cells"].as_array().unwrap();
    assert_eq!(out["summaries"]["cubic"]["cells"], cells.len());
    assert!(cells.iter().all(|cell| cell["mix"] == "cubic" && cell["beside_tcp"].is_f64()));
}

/// A cell takes longer than the budget: those that have begun are finished, and the rest is said to be
/// missing. They are not the first ones.
#[test]
fn a_budget_ends_it_early_and_says_so() {
    let run = crowd(&["--full", "--only", "only_cubic", "--budget", "0.05", "--json"]);
    let message = run.error(8);
    let events = run.events();
    let summary = &events[events.len() - 2];
    let cells = summary["cells"].as_u64().unwrap();
    assert_eq!(message, format!("the budget was over after {cells} of 450 cells"));
    assert!((1..450).contains(&cells) && summary["asked_cells"] == 450, "{summary}");
    assert_eq!(summary["only_cubic"]["cells"], cells, "{summary}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &[&str], words: &str| {
        let run = crowd(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--cell", "5565"], "5565 is not in 0..5565");
    refused(&["--only", "ours,reno"], "there is no mix called reno");
    refused(&["--quick", "--full"], "cannot be used with");
    refused(&["--cell", "1", "--budget", "5"], "cannot be used with");
    refused(&["--cell", "1", "--full"], "cannot be used with");
    refused(&["--seed", "x"], "is no seed");
}
