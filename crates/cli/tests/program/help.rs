//! `--help` and `--version`: what a person reads first says what there is.

use crate::support::{assert_says, haulier};

#[test]
fn the_program() {
    let commands =
        ["serve", "fetch", "keygen", "token", "send", "recv", "inspect", "completions", "man"];
    assert_says(&["--help-all"], &commands);
    let first_steps = [
        "haulier serve world.bin",
        "haulier fetch TICKET",
        "haulier recv",
        "haulier send world.bin TICKET",
        "--json",
    ];
    assert_says(&["--help-all"], &first_steps);
    let codes = [
        "0 done",
        "1 `fetch --lan` found no server",
        "2 usage",
        "3 no peer, a peer that refuses",
        "4 verification failed",
    ];
    assert_says(&["--help-all"], &codes);
    let codes = ["5 I/O", "6 a file with a key", "130 interrupted"];
    assert_says(&["--help-all"], &codes);
    assert_says(&["--help-all"], &["encrypt, unless --open"]);
    assert_says(&["help"], &commands);
    assert_says(&["-h"], &commands);
}

/// A person who asks how to serve read 218 lines. Rare options are for those who look for them.
#[test]
fn help_is_a_screen_and_says_where_the_rest_is() {
    for command in ["serve", "fetch", "send", "recv"] {
        let help = haulier(&[command, "--help"]);
        let lines = help.text().lines().count();
        assert!(lines <= 54, "{lines} lines: {}", help.what);
        assert!(help.text().contains("--help-all") && help.text().contains("Examples:"));
        assert!(!help.text().contains("--protocol-id"), "{}", help.what);
        assert_says(&[command, "--help-all"], &["--protocol-id", "--keylog", "Examples:"]);
    }
}

#[test]
fn the_version() {
    let run = haulier(&["--version"]);
    assert_eq!(run.text(), format!("haulier {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run.code, Some(0));
}

#[test]
fn send_and_recv() {
    let words =
        ["<FILE|DIR... TICKET|ADDR>", "standard input", "HOST:PORT", "goes on where it was"];
    assert_says(&["send", "--help-all"], &words);
    let options = ["--rate", "--urgency", "--name", "--ticket-file", "--timeout", "Examples:"];
    assert_says(&["send", "--help-all"], &options);
    let words = ["--bind", "--output", "standard output", "--most", "--stay", "Examples:"];
    assert_says(&["recv", "--help-all"], &words);
    let options =
        ["--force", "Overwrite", "--timeout", "--token-key", "only when", "is waited for"];
    assert_says(&["recv", "--help-all"], &options);
    assert_says(&["serve", "--help-all"], &["--inbox", "--most", "--most-each", "2G", "--force"]);
}

#[test]
fn serve_and_fetch() {
    let options = ["--bind", "--open", "--secret-file", "--identity-file", "--token-key", "--once"];
    assert_says(&["serve", "--help-all"], &options);
    let more =
        ["--max-clients", "--rate", "--uplink", "found out", "--urgency", "[default: load-screen]"];
    assert_says(&["serve", "--help-all"], &more);
    assert_says(&["serve", "--help-all"], &["during-play", "--address", "Examples:"]);
    assert_says(&["serve", "--help-all"], &["--earlier-tokens", "--max-memory", "64 KiB"]);
    let options = ["TICKET|ADDR", "--list", "--force", "--timeout", "--copies", "HAULIER_TICKET"];
    assert_says(&["fetch", "--help-all"], &options);
    let more = ["--ticket-file", "--token-file", "standard input", "Examples:", "-o - | tar x"];
    assert_says(&["fetch", "--help-all"], &more);
}

#[test]
fn keygen_and_token() {
    assert_says(
        &["keygen", "--help-all"],
        &["--secret", "--token", "--identity", "only you may read"],
    );
    let options = ["--token-key", "--client-id", "--server", "--expires", "--client-address"];
    assert_says(&["token", "issue", "--help-all"], &options);
    assert_says(&["token", "issue", "--help-all"], &["--user-data", "--rate", "Example:"]);
    assert_says(&["token", "issue", "--help-all"], &["--once-at-each"]);
    assert_says(
        &["token", "show", "--help-all"],
        &["<TOKEN|FILE>", "--token-key", "standard input"],
    );
}

#[test]
fn completions_and_man() {
    assert_says(
        &["completions", "--help-all"],
        &["bash", "zsh", "fish", "elvish", "powershell", "source"],
    );
    assert_says(&["man", "--help-all"], &["--out", "haulier-serve", "man -l -", "Examples:"]);
}

#[test]
fn inspect() {
    let words = [
        "[HEX]",
        "hex digits",
        "--pcap",
        "--keylog",
        "--only",
        "--wire",
        "article",
        "--protocol-id",
        "0 bytes",
    ];
    assert_says(&["inspect", "--help-all"], &words);
    let layers =
        ["--layer", "Slices and acks of chunks", "packets under 0x55667788", "--raw-count"];
    assert_says(&["inspect", "--help-all"], &layers);
}

/// The examples print what is written beside them.
#[test]
fn the_examples_of_inspect_are_what_they_say() {
    let help = haulier(&["inspect", "--help-all"]);
    let examples = [("slice", "a slice"), ("payload", "a payload"), ("fragment", "a fragment")];
    for (packet, words) in examples {
        let line = help.text().lines().find(|line| line.contains(&format!("  {words}")));
        let (command, _) = line.expect(words).trim().split_once("  ").unwrap();
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        assert_eq!(haulier(&[&args[..], &["--json"]].concat()).events()[0]["packet"], packet);
    }
}

/// Every command that has a help text of its own.
fn all_commands() -> Vec<Vec<String>> {
    let done =
        haulier(&["man", "--out", crate::support::Dir::new().path("man").as_str(), "--json"]);
    let files = done.done()["files"].as_array().unwrap().clone();
    let words = |file: &serde_json::Value| {
        let name = file.as_str().unwrap().trim_end_matches(".1").to_owned();
        name.split('-').skip(1).map(str::to_owned).collect()
    };
    files.iter().map(words).collect()
}

/// Texts that were broken by hand were broken again by the width of the terminal: a word stood alone in every
/// second line.
#[test]
fn no_sentence_is_broken_twice() {
    const WIDTH: usize = 100;
    for command in all_commands() {
        let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help-all"]).collect();
        let help = haulier(&args);
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

#[test]
fn options_have_headings_and_those_of_all_commands_come_last() {
    let help = haulier(&["serve", "--help-all"]);
    let at = |words: &str| {
        help.text().find(words).unwrap_or_else(|| panic!("no {words:?}: {}", help.what))
    };
    let order = [
        "\nOptions:\n",
        "      --pack <WHEN>",
        "\nInbox:\n",
        "      --most-each <SIZE>",
        "\nWhere it waits, and who is let in:\n",
        "      --bind <ADDR>",
        "\nWhat can be seen of it:\n",
        "      --view <ADDR>",
        "\nAll commands:\n",
        "      --json",
        "\nExamples:\n",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{}", help.what);
}
