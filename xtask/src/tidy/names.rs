//! Names in prose that stand for something in the tree: tests and functions in Markdown, and the tags of
//! requirements everywhere.
//!
//! A page that says "played by `t4_optimistic_acks_are_caught`" is believed, so the test must be there. A tag
//! such as `H-4.2c` must be stated in a standard, or the reader looks for a rule that does not exist. That it
//! is the right test or rule, a reader has to see.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Parser};

use super::requirements::{STANDARDS, is_tag, stated_tags};
use super::{File, Finding, Tree};

/// A name with at least this number of underscores is a sentence, and such a name is a function.
const UNDERSCORES: usize = 3;

/// Checks every page, and the tags in every source file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let idents: BTreeSet<&str> = tree
        .of_kind(&["rs", "py", "c", "h"])
        .filter_map(|file| file.text.as_deref())
        .flat_map(idents)
        .collect();
    let standards = STANDARDS.iter().filter_map(|page| tree.file(page));
    let tags: BTreeSet<&str> =
        standards.flat_map(|page| page.lines().flat_map(stated_tags)).map(|(_, tag)| tag).collect();

    let mut findings = Vec::new();
    for file in tree.of_kind(&["md", "rs"]).filter(|file| is_present(file)) {
        for (line, tag) in tags_of(file).filter(|(_, tag)| !tags.contains(tag)) {
            let what = format!("[{tag}] is stated in no standard: name the one that is meant");
            findings.push(Finding::new(&file.path, line, what));
        }
    }
    for file in tree.of_kind(&["md"]).filter(|file| is_present(file)) {
        for (line, name) in sentences(file).filter(|(_, name)| !idents.contains(name.as_str())) {
            let what = format!("names `{name}`, which is nowhere in the code: mend the name");
            findings.push(Finding::new(&file.path, line, what));
        }
    }
    findings
}

/// Past decisions and changes may name what is gone; here tags are made up.
fn is_present(file: &File) -> bool {
    !["docs/decisions/", "CHANGELOG", "xtask/"].iter().any(|start| file.path.starts_with(start))
}

fn idents(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| is_sentence(word))
}

fn is_sentence(word: &str) -> bool {
    let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.chars().all(is_lower) && word.trim_matches('_').matches('_').count() >= UNDERSCORES
}

/// The functions that a page names in code, with their lines.
fn sentences(file: &File) -> impl Iterator<Item = (usize, String)> {
    let text = file.text.as_deref().unwrap_or_default();
    let codes = Parser::new(text).into_offset_iter().filter_map(move |(event, span)| match event {
        Event::Code(code) => Some((1 + text[..span.start].matches('\n').count(), code.to_string())),
        _ => None,
    });
    codes.filter_map(|(line, code)| {
        let name = code.trim_end_matches("()").rsplit("::").next().unwrap_or_default();
        is_sentence(name).then(|| (line, name.to_owned()))
    })
}

/// The tags on each line: `H-4.2c`, with or without brackets.
fn tags_of(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    file.lines().flat_map(move |(line, text)| {
        let words = text.split(move |c: char| !is_part(c)).map(|word| word.trim_end_matches('.'));
        words.filter(|word| is_tag(word) && has_letter(word)).map(move |word| (line, word))
    })
}

/// Without one it may be anything, as in "X-1" and "S-2".
fn has_letter(tag: &str) -> bool {
    matches!(tag.chars().next(), Some('A' | 'H')) && tag.ends_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            size_bytes: text.len(),
            text: Some((*text).to_owned()),
        });
        check(&Tree { files: files.collect() }).iter().map(ToString::to_string).collect()
    }

    const STANDARD: (&str, &str) = ("docs/STANDARD-1.md", "**[H-4.2c]** A slice MUST fit.\n");

    #[test]
    fn what_is_there_may_be_named() {
        let page =
            "Played by `threats::t4_it_is_caught` [H-4.2c], see `one_word` and RFC 9000, A-1.\n";
        let code = "/// H-4.2c.\nfn t4_it_is_caught() {}\n";
        assert_eq!(findings(&[STANDARD, ("a.md", page), ("b.rs", code)]), [""; 0]);
    }

    #[test]
    fn what_is_gone_is_found() {
        let page = "\nPlayed by `t4_it_is_caught` (H-4.2d).\n";
        let found = findings(&[STANDARD, ("a.md", page), ("b.rs", "// As H-9a says.\n")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a.md:2: [H-4.2d]") && found[1].starts_with("b.rs:1: [H-9a]"));
        assert!(found[2].starts_with("a.md:2: names `t4_it_is_caught`"));
    }

    #[test]
    fn the_past_may_name_what_is_gone() {
        let past = [STANDARD, ("CHANGELOG.md", "`a_b_c_d`, H-9z"), ("docs/decisions/1.md", "H-9z")];
        assert_eq!(findings(&past), [""; 0]);
    }
}
