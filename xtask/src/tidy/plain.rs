//! Turns of phrase that a reader has to decode, in comments and pages. They are counted, so that their number
//! cannot grow again.
//!
//! A place that is found is one to read aloud, and no verdict: the tree may have [`MOST`] of them. A change
//! that brings the number down lowers the constant.

use super::{File, Finding, Tree};

/// The places that the tree may have.
const MOST: usize = 86;

/// Words side by side, each with what to write instead.
const PHRASES: [(&[&str], &str); 17] = [
    (&["so", "many"], NUMBER),
    (&["so", "much"], NUMBER),
    (&["so", "long"], NUMBER),
    (&["so", "far"], NUMBER),
    (&["the", "most", "that"], "the maximum"),
    (&["the", "least", "that"], "the minimum"),
    (&["is", "none"], "no X"),
    (&["are", "none"], "no X"),
    (&["what", "is", "there"], NAME),
    (&["what", "is", "left"], NAME),
    (&["what", "is", "sent"], NAME),
    (&["what", "is", "in", "flight"], NAME),
    (&["what", "is", "lost"], NAME),
    (&["brought", "along"], FIELD),
    (&["let", "go"], FIELD),
    (&["all", "the", "same"], FIELD),
    (&["but", "for"], "except for"),
];

const NUMBER: &str = "the number, or its name";
const NAME: &str = "the name of the thing";
const FIELD: &str = "the word of the field";

/// Before these words `who` is a noun.
const BEFORE_WHO: [&str; 10] = ["and", "but", "or", "of", "for", "to", "by", "from", "than", "as"];

/// Finds them all, and complains if there are more than may be.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let found = all(tree);
    if found.len() <= MOST {
        return Vec::new();
    }
    let what = format!(
        "{} places in comments and pages have to be read twice, and {MOST} at most may be there: \
         `cargo xtask plain` shows them",
        found.len()
    );
    vec![Finding::new("xtask/src/tidy/plain.rs", 1, what)]
}

/// Every place.
pub(super) fn all(tree: &Tree) -> Vec<Finding> {
    let files =
        tree.of_kind(&["md", "rs"]).filter(|file| !file.path.starts_with("xtask/src/tidy/"));
    files.flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let is_page = file.is_kind(&["md"]);
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        is_code ^= is_page && line.trim_start().starts_with("```");
        let prose = if is_page { Some(line).filter(|_| !is_code) } else { comment(line) };
        for instead in prose.into_iter().flat_map(of_line) {
            found.push(Finding::new(&file.path, number, format!("better: {instead}")));
        }
    }
    found
}

/// The comment of a line of Rust.
fn comment(line: &str) -> Option<&str> {
    let (before, comment) = line.split_once("//")?;
    let is_comment = before.trim().is_empty() || before.ends_with(' ');
    is_comment.then(|| comment.trim_start_matches(['/', '!']))
}

/// What to write instead of each place in a line.
fn of_line(line: &str) -> Vec<&'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let plain: Vec<String> = words.iter().map(|word| bare(word).to_lowercase()).collect();
    let is_at = |at: usize, phrase: &[&str]| {
        let end = at + phrase.len();
        plain.get(at..end).is_some_and(|here| here.iter().zip(phrase).all(|(a, b)| a == b))
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        let of_place = PHRASES.iter().filter(|(phrase, _)| is_at(at, phrase));
        let next = plain.get(at + 2).map_or("", String::as_str);
        let is_compared = plain[at] == "so" && ["as", "that"].contains(&next);
        found.extend(of_place.filter(|_| !is_compared).map(|(_, instead)| *instead));
        if plain[at] == "who" && at + 1 < words.len() && is_noun(&words, &plain, at) {
            found.push("a client that, a peer that");
        }
    }
    found
}

/// Whether `who` begins a sentence or a part of one, and refers to nothing before it.
fn is_noun(words: &[&str], plain: &[String], at: usize) -> bool {
    if words[at + 1..].iter().any(|word| word.ends_with('?')) {
        return false;
    }
    let Some(before) = at.checked_sub(1) else { return words[at].starts_with('W') };
    words[before].ends_with(['.', ';', ':', '(']) || BEFORE_WHO.contains(&plain[before].as_str())
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_read_twice_are_found() {
        for line in [
            "Who has not asked is dropped.",
            "the address of who sends it",
            "a queue of so many packets",
            "There are none.",
            "what is left of it",
            "the most that may be held",
        ] {
            assert_eq!(of_line(line).len(), 1, "{line}");
        }
    }

    #[test]
    fn plain_sentences_are_not() {
        for line in [
            "A client that has not asked is dropped.",
            "Players who join late wait.",
            "as many as so many that",
            "It is so long that nobody waits.",
            "Who is this for?",
        ] {
            assert!(of_line(line).is_empty(), "{line}: {:?}", of_line(line));
        }
    }

    #[test]
    fn only_comments_of_code_are_prose() {
        assert_eq!(comment("    /// So many."), Some(" So many."));
        assert_eq!(comment("let url = \"http://x\";"), None);
        assert_eq!(comment("let a = 1; // so many"), Some(" so many"));
    }
}
