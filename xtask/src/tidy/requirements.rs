//! Every requirement of `docs/STANDARD.md` and `docs/STANDARD-1.md` has a test, by name.
//!
//! A requirement carries a bold tag where it is stated: `**[A-4.1c]** A slice index at the count ...`. The
//! appendix is a table with a tag and a test in each row; a tag with two tests has two rows:
//!
//! ```text
//! | A-4.1c | chunk::layout::tests::an_index_is_below_its_count |
//! ```
//!
//! What is checked is that the test exists, in a file that fits the path, not that it tests the right
//! thing; a reader does that, and now knows where to look.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding, Tree};

/// One page for each wire.
pub(super) const STANDARDS: [&str; 2] = ["docs/STANDARD.md", "docs/STANDARD-1.md"];

/// Compares tags, table and tests of every wire.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    STANDARDS.iter().flat_map(|page| check_page(tree, page)).collect()
}

fn check_page(tree: &Tree, page: &str) -> Vec<Finding> {
    let Some(standard) = tree.file(page) else {
        return vec![Finding::new(page, 1, "missing: the protocol's requirements belong there")];
    };
    let rust = tree.of_kind(&["rs"]).filter(|file| file.path.starts_with("crates/"));
    let tests: BTreeSet<(String, &str)> = rust.flat_map(tests_of).collect();
    let mut findings = Vec::new();
    let mut found = |line, what: String| findings.push(Finding::new(page, line, what));

    let mut stated = BTreeMap::new();
    for (line, tag) in standard.lines().flat_map(stated_tags) {
        if let Some(first) = stated.insert(tag, line) {
            found(
                line,
                format!("[{tag}] again, it is already on line {first}: give it its own number"),
            );
        }
    }
    let mut listed = BTreeMap::new();
    for (line, tag, test) in standard.lines().filter_map(table_row) {
        if !stated.contains_key(tag) {
            found(line, format!("[{tag}] is nowhere stated, remove it or state it in bold"));
        }
        if let Some(first) = listed.insert((tag, test), line) {
            found(line, format!("the same row as line {first}, remove one"));
        }
        if let Err(what) = look_up(test, &tests) {
            found(line, format!("[{tag}] {what}"));
        }
    }
    for (tag, &line) in &stated {
        if !listed.keys().any(|(listed, _)| listed == tag) {
            found(line, format!("[{tag}] is not in the appendix table, add it with its test"));
        }
    }
    if stated.is_empty() {
        found(1, "no requirement like **[A-1.1]** in it".to_owned());
    }
    findings
}

/// The tags stated on a line outside tables.
pub(super) fn stated_tags((line, text): (usize, &str)) -> Vec<(usize, &str)> {
    if text.trim_start().starts_with('|') {
        return Vec::new();
    }
    let candidates = text.split("**[").skip(1).filter_map(|rest| rest.split_once("]**"));
    candidates.filter(|(tag, _)| is_tag(tag)).map(|(tag, _)| (line, tag)).collect()
}

/// The tag and the test of a row.
fn table_row((line, text): (usize, &str)) -> Option<(usize, &str, &str)> {
    let (tag, rest) = text.trim().strip_prefix('|')?.split_once('|')?;
    let tag = tag.trim_matches([' ', '[', ']', '*', '`']);
    let test = rest.trim_matches([' ', '|', '`']);
    is_tag(tag).then_some((line, tag, test))
}

/// A letter for the wire, then section and number: `A-4.1c`.
pub(super) fn is_tag(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|wire| wire.is_ascii_uppercase())
        && chars.next() == Some('-')
        && chars.next().is_some_and(|section| section.is_ascii_digit())
        && chars.all(|c| c.is_ascii_digit() || c.is_ascii_lowercase() || c == '.')
}

/// Finds `module::tests::name` among the tests.
fn look_up(test: &str, tests: &BTreeSet<(String, &str)>) -> Result<(), String> {
    if test.is_empty() || test == "-" {
        return Err("has no test, write one and name it here".to_owned());
    }
    let (module, name) = test.rsplit_once("::").unwrap_or(("", test));
    // `mod tests` lies in the file of its code, or in a file of its own beside it.
    let beside = module.strip_suffix("tests").unwrap_or(module).trim_end_matches("::");
    let is_in = |file: &String, module: &str| {
        let path = format!("/{}", module.replace("::", "/"));
        path == "/" || file.ends_with(&path)
    };
    let is_it = |(file, test): &(String, &str)| {
        *test == name && (is_in(file, beside) || is_in(file, module))
    };
    if tests.iter().any(is_it) {
        return Ok(());
    }
    Err(format!("no #[test] is called `{test}` under crates/: mend the name or write it"))
}

/// The functions of a file that `cargo test` runs, those in `proptest!` included, each with the path of
/// its file as modules see it.
fn tests_of(file: &File) -> Vec<(String, &str)> {
    let module = file.path.trim_end_matches(".rs");
    let module = module.trim_end_matches("/mod").trim_end_matches("/main");
    let mut tests = Vec::new();
    let mut is_test = false;
    for (_, text) in file.lines() {
        let text = text.trim_start();
        is_test |= text.starts_with("#[test]");
        if let Some(rest) = text.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            tests.extend(is_test.then(|| (module.to_owned(), name)));
            is_test = false;
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIOS: (&str, &str) = (
        "crates/proto/tests/machine/main.rs",
        "//! T.\n#[test]\n/// Why.\nfn good() {}\nfn helper() {}\nproptest! {\n    #[test]\n    \
         fn random(x in 0..1u8) {}\n}\n",
    );
    const UNIT: (&str, &str) =
        ("crates/proto/src/chunk/layout.rs", "mod tests {\n    #[test]\n    fn unit() {}\n}\n");

    fn findings(standard: &str) -> Vec<String> {
        let tree = Tree::of(&[SCENARIOS, UNIT, (STANDARDS[0], standard)]);
        check_page(&tree, STANDARDS[0])
            .into_iter()
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn a_standard_whose_tests_exist() {
        let standard = "**[A-1.1]** Be good. **[A-1.2b]** Be random.\n**[A-2.1]** Both.\n\
                        | tag | test |\n|---|---|\n| A-1.1 | machine::good |\n\
                        | [A-1.2b] | `machine::random` |\n| A-2.1 | chunk::layout::tests::unit |\n\
                        | A-2.1 | random |\n";
        assert_eq!(findings(standard), [""; 0]);
    }

    #[test]
    fn a_requirement_without_a_test() {
        assert_eq!(
            findings("| A-1.1 | good |\n**[A-1.1]** x\n**[A-1.2]** y"),
            ["3: [A-1.2] is not in the appendix table, add it with its test"]
        );
        let none = "2: [A-1.1] has no test, write one and name it here";
        assert_eq!(findings("**[A-1.1]** x\n| A-1.1 | - |"), [none]);
        assert_eq!(findings("**[A-1.1]** x\n| A-1.1 | |"), [none]);
        for wrong in
            ["machine::helper", "machine::goo", "machine::hangs::good", "layout::good", "by hand"]
        {
            let what = format!("2: [A-1.1] no #[test] is called `{wrong}` under crates/: ");
            let found = findings(&format!("**[A-1.1]** x\n| A-1.1 | {wrong} |"));
            assert_eq!(found, [what + "mend the name or write it"]);
        }
    }

    #[test]
    fn tags_said_twice_or_never() {
        let row = "| A-1.1 | good |\n";
        let again = "2: [A-1.1] again, it is already on line 1: give it its own number";
        assert_eq!(findings(&format!("**[A-1.1]** x\n**[A-1.1]** y\n{row}")), [again]);
        let same = "3: the same row as line 2, remove one";
        assert_eq!(findings(&format!("**[A-1.1]** x\n{row}{row}")), [same]);
        let nowhere = "2: [A-9.9] is nowhere stated, remove it or state it in bold";
        assert_eq!(findings(&format!("**[A-1.1]** x\n| A-9.9 | good |\n{row}")), [nowhere]);
    }

    #[test]
    fn nothing_at_all_is_not_enough() {
        assert_eq!(findings("# Words"), ["1: no requirement like **[A-1.1]** in it"]);
        assert_eq!(check(&Tree::of(&[SCENARIOS])).len(), STANDARDS.len());
    }
}
