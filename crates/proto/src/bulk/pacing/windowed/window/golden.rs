//! The window does what the model of it does, of which `proofs/window/README.md` says what is proven: the
//! rounds of `proofs/window/trace.json`, which the model wrote.

use alloc::vec::Vec;

use serde_json::Value;

use super::*;

const TRACE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proofs/window/trace.json"));

/// The same but for the last digits: the roots of the two libraries may differ in them.
const ROUNDING: f64 = 1e-9;

fn number(of: &Value, name: &str) -> f64 {
    // What is infinite has no number in JSON.
    of[name].as_f64().unwrap_or(f64::INFINITY)
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().expect("a number of datagrams")
}

/// Plays a round. Returns the part of what passes that is left.
fn play(window: &mut Window, round: &Value) -> f64 {
    (0..count(round, "spurious")).for_each(|_| _ = window.on_spurious());
    if let Some(mark) = round["mark"].as_object() {
        let mark = Value::Object(mark.clone());
        window.on_mark(number(&mark, "part"), number(&mark, "queue"));
    }
    let seen = Seen {
        acked: count(round, "acked"),
        lost: count(round, "lost"),
        runs: count(round, "runs"),
        queue: number(round, "queue"),
        spread: number(round, "spread"),
    };
    let [trip, passes, last] = ["trip", "passes", "last"].map(|it| number(round, it));
    let route = Route { trip, passes, last };
    window.judge(&seen, route, count(round, "in_flight"))
}

/// The first thing in which the window differs from the model's.
fn difference(window: &Window, left: f64, model: &Value) -> Option<&'static str> {
    let numbers = [
        ("size", window.size),
        ("growth", window.growth),
        ("full", window.full),
        ("own", window.losses.own()),
        ("gain", window.gain()),
        ("left", left),
    ];
    let is_other = |ours: f64, theirs: f64| {
        ours != theirs && (ours - theirs).abs() > ROUNDING * ours.abs().max(theirs.abs())
    };
    let modes = [("is_stale", window.is_stale), ("is_low", window.low[0])];
    let number = numbers.iter().find(|(name, ours)| is_other(*ours, number(model, name)));
    let mode = modes.iter().find(|(name, ours)| model[name] != *ours);
    number.map(|it| it.0).or(mode.map(|it| it.0))
}

#[test]
fn the_window_does_what_its_model_does() {
    let trace: Vec<Value> = serde_json::from_str(TRACE).expect("JSON");
    let mut rounds = 0;
    for scenario in &trace {
        let begin = &scenario["begin"];
        let mut window = Window::new(number(begin, "size"), count(begin, "in_flight"));
        for (n, round) in scenario["rounds"].as_array().expect("rounds").iter().enumerate() {
            let left = play(&mut window, round);
            let differs = difference(&window, left, &round["then"]);
            assert_eq!(differs, None, "{}, round {n}: {round}: {window:?}", scenario["name"]);
            rounds += 1;
        }
    }
    assert!(trace.len() >= 16 && rounds >= 800, "{rounds} rounds of {} scenarios", trace.len());
}
