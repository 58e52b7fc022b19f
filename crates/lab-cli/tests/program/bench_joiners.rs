//! `haulier-lab bench joiners`: counts and completeness; how long it takes is the machine's business.

use serde_json::Value;

use crate::support::{Dir, Program};

fn joiners(options: &[&str]) -> Value {
    let args = [&["bench", "joiners", "--json"], options].concat();
    let run = Program::start(&args).finish();
    let done = run.done();
    assert_eq!((run.code, &done["ok"]), (Some(0), &true.into()), "{}", run.what);
    done
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("no {name} in {of}"))
}

/// More than a round of the server takes in: each is asked for a cookie, and gets its block.
#[test]
fn a_crowd_joins_over_real_sockets() {
    let done = joiners(&["--clients", "400", "--bytes", "16k", "--workers", "2"]);
    assert_eq!((number(&done, "joined"), number(&done, "failed")), (400.0, 0.0), "{done}");
    assert!(number(&done, "p50_ms") <= number(&done, "max_ms"), "{done}");
    assert!(number(&done, "wire") > 1.0 && number(&done, "jain") <= 1.0, "{done}");
    if cfg!(target_os = "linux") {
        assert!(number(&done, "server_peak_bytes") > number(&done, "server_grown_bytes"), "{done}");
    }
}

#[test]
fn who_finds_no_seat_joins_from_the_line() {
    let done = joiners(&["--clients", "100", "--bytes", "4k", "--seats", "10"]);
    assert!(number(&done, "joined") == 100.0 && number(&done, "queued") > 0.0, "{done}");
}

#[test]
fn one_joins_after_the_other() {
    let done = joiners(&["--clients", "20", "--bytes", "4k", "--at-once", "1"]);
    assert_eq!((number(&done, "joined"), number(&done, "at_once")), (20.0, 1.0), "{done}");
}

/// In virtual time the same seed is the same run.
#[test]
fn a_simulated_crowd_joins_within_what_links_and_uplink_allow() {
    let options = ["--clients", "100", "--bytes", "64k", "--simulated", "--uplink", "100M"];
    let done = joiners(&options);
    assert_eq!((number(&done, "joined"), number(&done, "dropped_bytes")), (100.0, 0.0), "{done}");
    assert!(number(&done, "mean_over_equal") < 2.0, "{done}");
    let dir = Dir::new();
    let svg = dir.path("joiners.svg");
    assert_eq!(done, joiners(&[&options[..], &["--svg", &svg]].concat()));
    let svg = String::from_utf8(dir.read("joiners.svg")).unwrap();
    assert!(svg.contains(">100 players join at once, behind 0.1 Gbit/s<"), "{svg}");
    let links = done["links"].as_array().unwrap();
    let clients: f64 = links.iter().map(|link| number(link, "clients")).sum();
    assert_eq!((links.len(), clients), (10, 100.0), "{done}");
    let attacked = joiners(&[&options[..], &["--attack"]].concat());
    assert_eq!((number(&attacked, "joined"), number(&attacked, "hostile")), (100.0, 10.0));
}
