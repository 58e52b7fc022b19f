//! `soak`, `bench article`, `bench fragments`: virtual time, so that the same seed gives the same answer
//! to the bit.

use serde_json::Value;

use crate::support::{haulier as lab, keys};

fn soak(options: &[&str]) -> Value {
    lab(&[&["soak", "--json"], options].concat()).done()
}

#[test]
fn a_soak_finds_nothing_and_says_what_it_did() {
    let done = soak(&["--transfers", "60", "--seed", "3"]);
    let expected = "event hangs layers mismatches ok packets restarts scenarios seed trace transfers \
        virtual_seconds";
    assert_eq!(keys(&done), expected);
    // Scenarios are not cut short, so there may be a few more.
    assert!(done["transfers"].as_u64() >= Some(60), "{done}");
    assert_eq!((done["hangs"].as_u64(), done["mismatches"].as_u64()), (Some(0), Some(0)));
    assert_eq!(done["seed"], 3);
    assert!(done["virtual_seconds"].as_f64() > Some(1.0), "{done}");
}

#[test]
fn a_seed_is_a_soak() {
    let run = |seed| soak(&["--transfers", "30", "--seed", seed]);
    let three = run("3");
    assert_eq!(three, run("3"));
    assert_eq!(three, run("0x3"));
    assert_ne!(three["trace"], run("4")["trace"]);
}

#[test]
fn a_soak_can_be_measured_in_seconds() {
    let done = soak(&["--seconds", "0.2"]);
    assert!(done["scenarios"].as_u64() >= Some(1), "{done}");
}

#[test]
fn a_scenario_runs_alone() {
    let seed = haulier_sim::soak::scenario_seed(3, 0);
    let run = |seed: &str| lab(&["soak", "--json", "--scenario", seed]);
    let first = run(&format!("{seed:#018x}"));
    assert_eq!(
        first.events()[0],
        serde_json::json!({ "event": "scenario", "layers": "both", "seed": seed })
    );
    let done = first.done();
    let expected = "event hangs layers mismatches ok packets restarts seed trace transfers \
        virtual_seconds";
    assert_eq!(keys(&done), expected);
    assert_eq!((&done["seed"], done["hangs"].as_u64()), (&seed.into(), Some(0)));
    // The same again, and the same as the first of the soak that it is from.
    assert_eq!(run(&seed.to_string()).done(), done);
    let soak = soak(&["--transfers", "1", "--seed", "3"]);
    assert_eq!((&soak["trace"], &soak["transfers"]), (&done["trace"], &done["transfers"]));
}

#[test]
fn as_text_a_soak_says_the_seed_and_a_scenario_what_it_is() {
    let run = lab(&["soak", "--transfers", "20", "--seed", "5"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    for words in
        [" s of virtual time (seed 5): 0 hangs, 0 mismatches", " transfers and ", " packets in "]
    {
        assert!(run.text().contains(words), "{words}: {}", run.what);
    }
    let run = lab(&["soak", "--scenario", "5"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    for words in ["Scenario", "finished: ", " transfers"] {
        assert!(run.text().contains(words), "{words}: {}", run.what);
    }
}

#[test]
fn a_soak_is_of_the_layers_asked_for() {
    let done = |layers: &str, transfers: &str| {
        let done = soak(&["--layers", layers, "--transfers", transfers, "--seed", "2"]);
        assert_eq!(done["layers"], layers);
        (done["transfers"].as_u64().unwrap(), done["packets"].as_u64().unwrap())
    };
    let (transfers, packets) = done("chunks", "20");
    assert!(transfers >= 20 && packets == 0, "{transfers} {packets}");
    let (transfers, packets) = done("packets", "5000");
    assert!(transfers == 0 && packets >= 5_000, "{transfers} {packets}");
    let (transfers, packets) = done("both", "20");
    assert!(transfers >= 20 && packets > 1_000, "{transfers} {packets}");
    let (transfers, packets) = done("files", "10");
    assert!(transfers >= 10 && packets == 0, "{transfers} {packets}");
    let run = lab(&["soak", "--layers", "slices"]);
    assert_eq!(run.code, Some(2), "{}", run.what);
    assert!(run.what.contains("chunks, packets, both, connection or files"), "{}", run.what);
}

/// The whole bench takes half a minute; with fewer packets it scatters, and is no failure.
#[test]
fn the_fragment_bench_has_the_rows_of_the_article() {
    let run = lab(&["bench", "fragments", "--packets", "400", "--json"]);
    assert_eq!(run.done()["rows"], 5);
    let events = run.events();
    let rows: Vec<&Value> = events.iter().filter(|event| event["event"] == "row").collect();
    let fragments: Vec<u64> = rows.iter().map(|row| row["fragments"].as_u64().unwrap()).collect();
    assert_eq!(fragments, [1, 2, 10, 100, 256]);
    for row in rows {
        assert_eq!(keys(row), "event expected fragments loss lost packets");
        assert_eq!((&row["loss"], &row["packets"]), (&0.01.into(), &400.into()));
        let (lost, expected) = (row["lost"].as_f64().unwrap(), row["expected"].as_f64().unwrap());
        // Four standard deviations.
        let scatter = (expected * (1.0 - expected) / 400.0).sqrt();
        assert!((lost - expected).abs() < 4.0 * scatter, "{row}");
    }
    let text = lab(&["bench", "fragments", "--packets", "32"]);
    assert!(text.text().contains("datagrams lost"), "{}", text.what);
}

#[test]
fn the_article_bench_has_120_rows() {
    let run = lab(&["bench", "article", "--seeds", "1", "--json"]);
    let done = run.done();
    assert_eq!((done["rows"].as_u64(), done["seeds"].as_u64()), (Some(120), Some(1)));
    let events = run.events();
    let rows: Vec<&Value> = events.iter().filter(|event| event["event"] == "row").collect();
    assert_eq!(rows.len(), 120);
    let expected = "budget_kbit burst event loss median_s queue_kib rate_mbit reference_s rtt_ms";
    for (row, (link, reference)) in rows.iter().zip(haulier_lab::article_bench::rows()) {
        assert_eq!(keys(row), expected);
        assert_eq!(row["rate_mbit"], link.rate_mbit);
        assert_eq!(row["budget_kbit"], link.budget_kbit);
        assert_eq!(row["rtt_ms"], link.rtt_ms);
        assert_eq!(row["loss"], link.loss_percent as f64 / 100.0);
        assert_eq!(row["queue_kib"], link.queue_kib.map_or(Value::Null, Value::from));
        assert_eq!(row["burst"], link.burst);
        assert_eq!(row["reference_s"], reference);
        // Half the round trip, and 256 KiB at the rate of the link: nothing is faster.
        let limit = link.rtt_ms as f64 / 2e3 + 262_144.0 * 8.0 / (link.rate_mbit as f64 * 1e6);
        assert!(row["median_s"].as_f64() > Some(limit), "{row}");
    }
}

#[test]
fn a_bench_is_the_same_every_time() {
    let rows = || {
        let events = lab(&["bench", "article", "--seeds", "2", "--json"]).events();
        events.into_iter().filter(|event| event["event"] == "row").collect::<Vec<_>>()
    };
    assert_eq!(rows(), rows());
}

#[test]
fn as_text_the_bench_is_a_table() {
    let run = lab(&["bench", "article", "--seeds", "1"]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let lines: Vec<&str> =
        run.text().lines().skip_while(|line| !line.starts_with("link Mbit/s")).collect();
    assert_eq!(lines.len(), 122, "{}", run.what);
    assert!(
        lines[121].starts_with("120 rows, medians of 1 runs (so few runs scatter): "),
        "{}",
        lines[121]
    );
}
