//! One file at a time: how long its lines are, how it begins, and words that must not stay.

use super::{File, Finding};

/// Two windows side by side on a laptop. rustfmt keeps code below 100; comments and prose may have a
/// little more.
const LINE_CHARS_MAX: usize = 110;

/// Past this a file usually holds a second idea, which wants a file of its own.
const RUST_LINES_MAX: usize = 600;

/// A clone carries every version of a large file for ever.
const FILE_BYTES_MAX: usize = 512 * 1024;

/// Written in two halves, so that this file is not its own first finding.
const WORDS: &[(&str, &str)] = &[
    (concat!("to", "do!("), "unfinished code, finish it"),
    (concat!("unimple", "mented!("), "unfinished code, finish it"),
    (concat!("db", "g!("), "a debug print, remove it"),
    (concat!("FIX", "ME"), "a note to self, do it or write an issue"),
    (concat!("/wo", "rk/"), "a path of one machine, make it relative"),
    (concat!("/ro", "ot/"), "a path of one machine, make it relative"),
    (concat!("/ho", "me/"), "a path of one machine, make it relative"),
    (concat!("/Us", "ers/"), "a path of one machine, make it relative"),
    (concat!("index.crates", ".io"), "a registry's host, name the package instead"),
    (concat!("static.crates", ".io"), "a registry's host, name the package instead"),
    (concat!("crates.io", "/api"), "a registry's host, name the package instead"),
    (concat!("py", "pi.org"), "a registry's host, name the package instead"),
    (concat!("registry.npm", "js"), "a registry's host, name the package instead"),
];

/// Checks one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, what: String| findings.push(Finding::new(&file.path, line, what));
    if file.size_bytes > FILE_BYTES_MAX {
        let (size, max) = (file.size_bytes / 1024, FILE_BYTES_MAX / 1024);
        found(1, format!("{size} KiB, of {max} at most: leave it out, or make it when needed"));
    }
    for (line, text) in file.lines() {
        for (word, what) in WORDS.iter().filter(|(word, _)| text.contains(word)) {
            found(line, format!("`{word}`: {what}"));
        }
    }
    if !is_prose_or_code(file) {
        return findings;
    }
    for (line, text) in file.lines().filter(|(_, text)| is_copied(file, text)) {
        if ends_a_server(text) {
            found(line, "a `?` ends the server for all: close this one client".to_owned());
        }
    }
    for (line, text) in file.lines() {
        if text.contains('\t') {
            found(line, "a tab, use spaces".to_owned());
        }
        if text.ends_with([' ', '\r']) {
            found(line, "a space or carriage return at the end, remove it".to_owned());
        }
        let chars = text.chars().count();
        if chars > LINE_CHARS_MAX && !may_be_long(file, text) {
            found(line, format!("{chars} characters, break it before {LINE_CHARS_MAX}"));
        }
    }
    if file.is_kind(&["rs"]) {
        check_rust(file, &mut found);
    }
    findings
}

/// What people copy into a program of theirs: examples, pages, and the comments of the interface.
fn is_copied(file: &File, text: &str) -> bool {
    let text = text.trim_start();
    let is_doc = text.starts_with("///") || text.starts_with("//!");
    file.is_kind(&["md"]) || file.is_kind(&["rs"]) && (is_doc || file.path.contains("/examples/"))
}

/// Whether an error that concerns one client is handed out of the loop for all of them: one with a tiny
/// limit for blocks, or one that has just left, would end the game of the others.
fn ends_a_server(text: &str) -> bool {
    ["block", "message", "packet"].iter().any(|what| {
        let sent = text.split_once(&format!("server.send_{what}"));
        sent.is_some_and(|(_, rest)| rest.contains(")?"))
    })
}

fn check_rust(file: &File, found: &mut impl FnMut(usize, String)) {
    let count = file.text.as_deref().map_or(0, |text| text.lines().count());
    if count > RUST_LINES_MAX {
        found(
            count,
            format!("{count} lines, of {RUST_LINES_MAX} at most: look for the second idea"),
        );
    }
    let is_build_script = file.path.rsplit('/').next() == Some("build.rs");
    // Attributes of the crate may stand above its documentation.
    let mut heads = file.lines().map(|(_, text)| text.trim_start());
    let head = heads.find(|text| !text.is_empty() && !text.starts_with("#!["));
    if !is_build_script && !head.is_some_and(|head| head.starts_with("//!")) {
        found(1, "no //! at the top: say what this file is for".to_owned());
    }
}

fn is_prose_or_code(file: &File) -> bool {
    let is_script = file.text.as_deref().is_some_and(|text| text.starts_with("#!/"));
    is_script || file.is_kind(&["rs", "md", "toml", "sh", "yml", "yaml"])
}

/// A table's row and a link cannot be broken; the vectors are kept as they came.
fn may_be_long(file: &File, text: &str) -> bool {
    let is_table = file.is_kind(&["md"]) && text.trim_start().starts_with('|');
    is_table || text.contains("://") || file.path.starts_with("vectors/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let size_bytes = text.len();
        let file = File { path: path.to_owned(), size_bytes, text: Some(text.to_owned()) };
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clean_files_are_clean() {
        assert_eq!(findings("a.rs", "#![no_main]\n\n//! Why.\nfn f() {}\n"), [""; 0]);
        assert_eq!(findings("build.rs", "fn main() {}\n"), [""; 0]);
        assert_eq!(findings("data.json", "\t{ } \n"), [""; 0]);
    }

    #[test]
    fn what_people_copy_ends_no_server_for_one_client() {
        let (ends, goes_on) = ("server.send_block(id, &world)?;", "server.send_block(id, &world);");
        let what = "a `?` ends the server for all: close this one client";
        assert_eq!(findings("a.md", ends), [format!("a.md:1: {what}")]);
        assert_eq!(findings("a.rs", &format!("//! {ends}\n")), [format!("a.rs:1: {what}")]);
        let example = format!("//! Why.\nlet sent = {ends}\n");
        assert_eq!(findings("b/examples/a.rs", &example), [format!("b/examples/a.rs:2: {what}")]);
        assert_eq!(findings("a.rs", &example), [""; 0]);
        assert_eq!(findings("a.md", goes_on), [""; 0]);
    }

    #[test]
    fn long_lines() {
        let (fits, long) = ("ä".repeat(LINE_CHARS_MAX), "x".repeat(LINE_CHARS_MAX + 1));
        assert_eq!(findings("a.md", &fits), [""; 0]);
        let what = "111 characters, break it before 110";
        assert_eq!(findings("a.md", &format!("ok\n{long}\n")), [format!("a.md:2: {what}")]);
        assert_eq!(findings("a.toml", &long), [format!("a.toml:1: {what}")]);
        assert_eq!(findings(".ci/run", &format!("#!/bin/sh\n{long}")).len(), 1);
        assert_eq!(findings("a.md", &format!("| {long} |")), [""; 0]);
        assert_eq!(findings("a.md", &format!("https://{long}")), [""; 0]);
        assert_eq!(findings("vectors/README.md", &long), [""; 0]);
        assert_eq!(findings("a.rs", &format!("//! | {long}")).len(), 1);
    }

    #[test]
    fn invisible_characters() {
        assert_eq!(findings("a.md", "a\tb"), ["a.md:1: a tab, use spaces"]);
        let end = "a space or carriage return at the end, remove it";
        assert_eq!(findings("a.md", "ok\nbreak  \nok"), [format!("a.md:2: {end}")]);
        assert_eq!(findings("a.md", "windows\r\n"), [format!("a.md:1: {end}")]);
    }

    #[test]
    fn every_banned_word_is_found_in_every_text() {
        for (word, _) in WORDS {
            for path in ["a.rs", "a.json", "a.md", "Makefile"] {
                let found = findings(path, &format!("//! Why.\nx {word}y)\n"));
                assert_eq!(found.len(), 1, "{path} {word}");
                assert!(found[0].starts_with(&format!("{path}:2: `{word}`")), "{found:?}");
            }
        }
    }

    #[test]
    fn a_rust_file_without_a_story_or_with_two() {
        assert!(findings("a.rs", "// Why.\n")[0].contains("no //! at the top"));
        assert!(findings("a.rs", "")[0].contains("no //! at the top"));
        let long = "//! Why.\n".repeat(RUST_LINES_MAX + 1);
        assert_eq!(findings("a.rs", &long).len(), 1);
        assert_eq!(findings("a.rs", &long[9..]), [""; 0]);
    }

    #[test]
    fn a_blob() {
        let file = File { path: "a.bin".to_owned(), size_bytes: FILE_BYTES_MAX + 1, text: None };
        assert!(check(&file)[0].what.starts_with("512 KiB"));
        assert_eq!(check(&File { size_bytes: FILE_BYTES_MAX, ..file }), []);
    }
}
