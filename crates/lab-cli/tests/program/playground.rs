//! `playground` without its page: scenes at the shell. The page itself is tried in a browser
//! (`crates/playground/page_test.py`).

use serde_json::Value;

use crate::support::{Dir, haulier as lab};

fn takes(scene: &str) -> Vec<Value> {
    let run = lab(&["--json", "playground", "--scene", scene]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    run.events().iter().filter(|event| event["event"] == "take").cloned().collect()
}

#[test]
fn a_scene_is_played_at_the_shell() {
    let scene = "senders=haulier,article,slow-start&seed=2";
    let played = takes(scene);
    assert_eq!(played, takes(scene), "a scene is one run");
    let ours = &played[0];
    assert_eq!(ours["sender"], "haulier");
    assert!(ours["over_ms"].as_f64() >= ours["whole_ms"].as_f64());
    assert!(ours["repair"].as_u64() > Some(0) && played[1]["sent_again"].as_u64() > Some(0));
    let text = lab(&["playground", "--scene", scene]);
    let hash = ours["hash"].as_str().unwrap();
    assert!(text.text().contains("the physical limit is 326 ms"), "{}", text.what);
    assert!(text.text().contains(hash), "{}", text.what);
}

#[test]
fn a_scene_is_drawn() {
    let dir = Dir::new();
    let svg = dir.path("scene.svg");
    let run = lab(&["--json", "playground", "--scene", "bytes=32k", "--svg", &svg]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let drawn = String::from_utf8(dir.read("scene.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("32 KiB over 10 Mbit/s"));
}

#[test]
fn a_scene_that_is_none_is_refused_with_what_it_should_be() {
    let message = lab(&["--json", "playground", "--scene", "rtt=long"]).error(2);
    assert!(message.contains("rtt") && message.contains("from 0 to 2000"), "{message}");
}

/// Programs without the page say how to get one with it.
#[test]
fn without_the_page_it_says_how_to_get_it() {
    if option_env!("HAULIER_PLAYGROUND").is_none() {
        let message = lab(&["--json", "playground", "--bind", "127.0.0.1:0"]).error(2);
        assert!(message.contains("cargo xtask playground"), "{message}");
    }
}
