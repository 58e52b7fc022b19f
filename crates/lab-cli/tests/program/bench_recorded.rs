//! `bench recorded`: virtual time, so that the same arguments give the same numbers.

use crate::support::{Dir, Finished, haulier as lab};

fn recorded(options: &[&str]) -> Finished {
    lab(&[&["bench", "recorded"], options].concat())
}

#[test]
fn it_says_what_each_sender_uses_of_each_link() {
    let run = recorded(&["--seeds", "1", "--seconds", "12", "--json"]);
    let done = run.done();
    let rows = done["rows"].as_array().unwrap();
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["link"].as_str().unwrap(), row["sender"].as_str().unwrap()))
        .collect();
    let (lte, evdo) = ("lte-like", "evdo-like");
    let expected = [lte, evdo].map(|link| ["ours", "cubic", "bbr"].map(|sender| (link, sender)));
    assert_eq!(names, expected.concat());
    assert!(rows.iter().all(|row| row["used"].as_f64() < Some(1.0)), "{done}");
    assert_eq!(recorded(&["--seeds", "1", "--seconds", "12", "--json"]).done(), done);
}

/// A record of one's own: 12 Mbit/s, all the time. TCP fills it.
#[test]
fn a_record_of_ones_own_is_read() {
    let dir = Dir::new();
    let text: String = (1..=1_000).map(|ms| format!("{ms}\n")).collect();
    let path = dir.path("steady.down");
    std::fs::write(&path, text).unwrap();
    let options = ["--down", &path, "--rtt", "40", "--queue", "100k", "--only", "cubic"];
    let run = recorded(&[&options[..], &["--seconds", "10", "--seeds", "1"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    let row = run.text().lines().find(|line| line.starts_with("steady")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[4]), ("steady", "cubic", "12.00"), "{}", run.what);
    assert!(words[2].parse::<f64>().unwrap() > 90.0, "{}", run.what);
}

#[test]
fn what_is_no_record_is_refused_with_its_line() {
    let dir = Dir::new();
    let path = dir.path("bad.down");
    for (text, words) in [
        ("1\n2\nx\n", "line 3 is no whole number of milliseconds"),
        ("5\n4\n", "line 2 is earlier than the line above"),
        ("", "a record without a line"),
    ] {
        std::fs::write(&path, text).unwrap();
        let message = recorded(&["--down", &path, "--json"]).error(2);
        assert!(message.contains("bad.down") && message.contains(words), "{message}");
    }
    assert!(recorded(&["--down", &dir.path("none"), "--json"]).error(5).contains("none"));
    let refused = |options: &[&str], words: &str| {
        let run = recorded(&[options, &["--json"]].concat());
        assert!(run.error(2).contains(words), "{words}: {}", run.what);
    };
    refused(&["--links", "lte"], "there is no record called lte: there are lte-like, evdo-like");
    refused(&["--only", "reno"], "there is no sender called reno");
    refused(&["--seconds", "5"], "too short");
    refused(&["--up", &path], "--down");
}
