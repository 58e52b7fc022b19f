//! The window does what the model of it does, of which `proofs/window/README.md` says what is proven: the
//! rounds of `proofs/window/trace.json`, which the model wrote.

use alloc::vec::Vec;

use serde_json::Value;

use super::*;

const TRACE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proofs/window/trace.json"));

/// The relative difference that is allowed: the roots of the two libraries may differ in the last digits.
const ROUNDING: f64 = 1e-9;

fn number(of: &Value, name: &str) -> f64 {
    // What is infinite has no number in JSON.
    of[name].as_f64().unwrap_or(f64::INFINITY)
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().expect("a number of datagrams")
}

/// The begin of a scenario.
fn begin(of: &Value) -> Window {
    let losses = Losses::new(number(of, "lost"), number(of, "total"));
    Window::new(number(of, "size"), count(of, "in_flight"), losses)
}

/// Plays a round.
fn play(window: &mut Window, round: &Value) {
    (0..count(round, "spurious")).for_each(|_| window.on_spurious());
    if let Some(mark) = round["mark"].as_object() {
        let mark = Value::Object(mark.clone());
        window.on_mark(number(&mark, "part"), number(&mark, "queue"));
    }
    let in_flight = count(round, "in_flight");
    window.on_sent(in_flight, round["is_short"] == true);
    let seen = Seen {
        acked: count(round, "acked"),
        lost: count(round, "lost"),
        runs: count(round, "runs"),
        queue: number(round, "queue"),
        standing: number(round, "standing"),
        spread: number(round, "spread"),
        mean: number(round, "mean"),
        is_bunched: round["is_bunched"] == true,
        is_shared: false,
        peak: number(round, "peak"),
    };
    window.judge(&seen, number(round, "trip"), in_flight);
}

/// The first thing in which the window differs from the model's.
fn difference(window: &Window, model: &Value) -> Option<&'static str> {
    let numbers = [
        ("size", window.size),
        ("growth", window.growth),
        ("full", window.full),
        ("max_queue", window.max_queue),
        ("usual", window.losses.usual()),
    ];
    let is_other = |ours: f64, theirs: f64| {
        ours != theirs && (ours - theirs).abs() > ROUNDING * ours.abs().max(theirs.abs())
    };
    let modes = [
        ("has_met_queue", window.has_met_queue),
        ("is_stale", window.is_stale),
        ("is_tried", window.is_tried()),
    ];
    let number = numbers.iter().find(|(name, ours)| is_other(*ours, number(model, name)));
    let mode = modes.iter().find(|(name, ours)| model[name] != *ours);
    number.map(|it| it.0).or(mode.map(|it| it.0))
}

#[test]
fn the_window_does_what_its_model_does() {
    let trace: Vec<Value> = serde_json::from_str(TRACE).expect("JSON");
    let mut rounds = 0;
    for scenario in &trace {
        let mut window = begin(&scenario["begin"]);
        for (n, round) in scenario["rounds"].as_array().expect("rounds").iter().enumerate() {
            play(&mut window, round);
            let differs = difference(&window, &round["then"]);
            assert_eq!(differs, None, "{}, round {n}: {round}: {window:?}", scenario["name"]);
            rounds += 1;
        }
    }
    assert!(trace.len() >= 16 && rounds >= 800, "{rounds} rounds of {} scenarios", trace.len());
}
