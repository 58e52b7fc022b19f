//! `--json`: every line is an object with an "event", and the last is "done" or "error".

use serde_json::Value;

use crate::support::{Finished, haulier as lab};

/// The names of all events, each line being one.
fn names(run: &Finished) -> Vec<String> {
    let name = |event: &Value| event["event"].as_str().expect("a line without event").to_owned();
    run.events().iter().map(name).collect()
}

#[test]
fn every_line_of_the_other_commands_is_an_event() {
    let runs = [
        lab(&["demo", "--json", "--link", "fiber"]),
        lab(&["soak", "--json", "--transfers", "20"]),
        lab(&["soak", "--json", "--scenario", "9"]),
        lab(&["bench", "article", "--json", "--seeds", "1"]),
    ];
    for run in runs {
        run.done();
        assert!(names(&run).len() >= 2, "{}", run.what);
        assert!(run.stderr.is_empty(), "{}", run.what);
    }
}

/// Without the switch nothing looks like JSON.
#[test]
fn without_the_switch_there_is_none() {
    let run = lab(&["soak", "--transfers", "20"]);
    assert!(!run.text().contains('{'), "{}", run.what);
}
