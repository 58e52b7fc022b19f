//! `--help` and `--version`: the texts that a person reads first name the commands and options.

use crate::support::{assert_says, haulier as lab};

#[test]
fn the_program() {
    let commands = ["demo", "soak", "bench", "playground", "haulier-lab demo", "--json"];
    for help in ["--help", "help", "-h"] {
        assert_says(&[help], &commands);
    }
    let codes =
        ["0 done", "1 a soak or a bench", "7 a bench's connections", "8 a bench's --budget"];
    assert_says(&["--help-all"], &codes);
    let run = lab(&["--version"]);
    assert_eq!(run.text(), format!("haulier-lab {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn demo() {
    let profiles = haulier_sim::Profile::ALL.map(|profile| profile.name);
    assert_says(&["demo", "--help-all"], &profiles);
    let options = ["--link", "[default: mobile]", "--rate", "--rtt", "--loss", "--queue"];
    assert_says(&["demo", "--help-all"], &options);
    assert_says(&["demo", "--help-all"], &["--wire", "haulier1", "article"]);
    assert_says(
        &["demo", "--help-all"],
        &["--budget", "--seed", "--timeout", "256 KiB", "--no-burst"],
    );
}

#[test]
fn playground() {
    assert_says(&["playground", "--help-all"], &["--bind", "--scene", "browser", "cargo xtask"]);
}

#[test]
fn soak_and_bench() {
    let options = ["--transfers", "--seconds", "--seed", "--scenario", "by default 1000"];
    assert_says(&["soak", "--help-all"], &options);
    assert_says(
        &["bench", "--help-all"],
        &["article", "grid", "join", "crowd", "random", "recorded", "links"],
    );
    let words = ["--sizes", "[default: 256k,16M]", "--svg", "roaming", "virtual time", "Examples:"];
    assert_says(&["bench", "links", "--help-all"], &words);
    let words = ["--seed", "--cells", "[default: one]", "crowd:7", "random_links.py", "Examples:"];
    assert_says(&["bench", "random", "--help-all"], &words);
    assert_says(
        &["bench", "--help-all"],
        &["haulier-lab bench peer serve", "for measurements", "--inline"],
    );
    let options = ["--bytes", "--seeds", "[default: 3]", "--profiles", "--only", "sent/N"];
    assert_says(&["bench", "join", "--help-all"], &options);
    let options =
        ["--quick", "--full", "--cells", "--only", "--tables", "--svg", "--out", "--cell"];
    assert_says(&["bench", "grid", "--help-all"], &options);
    let words = ["warm", "cold_ticket", "cold_token", "burst_resend", "slow_start", "Examples:"];
    assert_says(&["bench", "grid", "--help-all"], &words);
    let words =
        ["--quick", "--full", "--tables", "--out", "--cell", "turnover", "Jain", "Examples:"];
    assert_says(&["bench", "crowd", "--help-all"], &words);
    let words =
        ["--budget", "only_cubic", "upload", "codel", "Exit codes: 7", "10, are at the end"];
    assert_says(&["bench", "crowd", "--help-all"], &words);
    let words = ["lte-like", "1500 bytes", "Mahimahi", "--down", "--queue", "Examples:"];
    assert_says(&["bench", "recorded", "--help-all"], &words);
    assert_says(&["bench", "article", "--help-all"], &["--seeds", "[default: 200]", "median"]);
}

/// Every command that has a help text of its own.
fn all_commands() -> Vec<Vec<&'static str>> {
    let benches = "article crowd grid links random recorded join joiners fragments".split(' ');
    let benches = benches.map(|bench| vec!["bench", bench]);
    let own = ["demo", "soak", "bench", "playground"].map(|command| vec![command]);
    [vec![]].into_iter().chain(own).chain(benches).collect()
}

/// Texts that were broken by hand were broken again by the width of the terminal: a word stood alone in every
/// second line.
#[test]
fn no_sentence_is_broken_twice() {
    const WIDTH: usize = 100;
    for command in all_commands() {
        let args: Vec<&str> = command.into_iter().chain(["--help-all"]).collect();
        let help = lab(&args);
        let lines: Vec<&str> = help.text().lines().collect();
        for pair in lines.windows(2) {
            assert!(pair[0].len() <= WIDTH, "{}: {}", help.what, pair[0]);
            let is_sentence = |line: &str| line.starts_with(|c: char| !c.is_whitespace());
            if is_sentence(pair[0]) && is_sentence(pair[1]) {
                let word = pair[1].split(' ').next().unwrap_or_default();
                let has_room = pair[0].chars().count() + 1 + word.chars().count() <= WIDTH;
                assert!(!has_room, "{args:?}: {:?} and {:?}", pair[0], pair[1]);
            }
        }
    }
}
