//! Arrows between the modules of a crate: they point down only.
//!
//! Each crate below declares its order once, in the documentation of its `lib.rs`: the paragraph that holds
//! the words "uses only those after it" names every module, the highest first. Test code may use anything.

use super::{File, Finding, Tree};

/// The crates whose modules are layers. The others sit on top of these and have few modules.
const CRATES: &[&str] = &["core", "control", "article", "proto"];

const DECLARATION: &str = "uses only those after it";

/// Checks each module of each crate.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    CRATES.iter().flat_map(|name| check_crate(tree, &format!("crates/{name}/src/"))).collect()
}

fn check_crate(tree: &Tree, folder: &str) -> Vec<Finding> {
    let lib = format!("{folder}lib.rs");
    let Some(text) = tree.file(&lib).and_then(|file| file.text.as_deref()) else {
        return vec![Finding::new(&lib, 1, "not there, so no order of its modules can be checked")];
    };
    let layers = Layers { order: declared_order(text), exports: exports_of(text) };
    let mut findings: Vec<Finding> = Vec::new();
    for module in modules_of(text).filter(|module| layers.place(module).is_none()) {
        let what = format!("`{module}` is missing from the paragraph \"{DECLARATION}\", add it");
        findings.push(Finding::new(&lib, 1, what));
    }
    for file in tree.files.iter().filter(|file| file.is_kind(&["rs"]) && file.path != lib) {
        if let Some(path) = file.path.strip_prefix(folder).filter(|path| !is_test(path)) {
            findings.extend(layers.check_file(file, path));
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// What `lib.rs` says.
struct Layers<'t> {
    /// The modules, from the highest to the lowest.
    order: Vec<&'t str>,
    /// Names that other files find at the root of the crate, each with the module or crate it comes from.
    exports: Vec<(&'t str, &'t str)>,
}

impl Layers<'_> {
    fn place(&self, module: &str) -> Option<usize> {
        self.order.iter().position(|listed| *listed == module)
    }

    fn check_file(&self, file: &File, path: &str) -> Vec<Finding> {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let depth = parts.iter().filter(|part| **part != "mod").count();
        let module = parts[0];
        let text = without_tests(file.text.as_deref().unwrap_or_default());
        let mut findings = Vec::new();
        for (line, name) in names_from_the_root(&text, depth) {
            if let Err(what) = self.judge(module, &name) {
                findings.push(Finding::new(&file.path, line, what));
            }
        }
        findings
    }

    /// Whether `module` may use this name of the root.
    fn judge(&self, module: &str, name: &str) -> Result<(), String> {
        let exported = self.exports.iter().find(|(exported, _)| *exported == name);
        let used = exported.map_or(name, |(_, from)| *from);
        let (Some(from), Some(to)) = (self.place(module), self.place(used)) else {
            let is_foreign = exported.is_some() && self.place(module).is_some();
            let what = || format!("`{name}`: no module in the order of lib.rs has it");
            return if is_foreign { Ok(()) } else { Err(what()) };
        };
        if to < from {
            let what = format!("an arrow up, `{module}` uses `{used}`: move what both need down");
            return Err(what);
        }
        Ok(())
    }
}

/// The modules in the paragraph of the declaration: what stands in backticks after its words.
fn declared_order(lib: &str) -> Vec<&str> {
    let Some((_, after)) = lib.split_once(DECLARATION) else { return Vec::new() };
    let paragraph = after.split("\n//!\n").next().unwrap_or_default();
    let paragraph = paragraph.split("\n\n").next().unwrap_or_default();
    paragraph.split('`').skip(1).step_by(2).collect()
}

fn modules_of(lib: &str) -> impl Iterator<Item = &str> {
    let declared = lib.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
    declared.filter(|(before, _)| before.is_empty() || before.starts_with("pub")).map(|(_, m)| m)
}

/// The names that `lib.rs` re-exports, each with the first part of its path.
fn exports_of(lib: &str) -> Vec<(&str, &str)> {
    let public = lib.split("\npub").skip(1).filter_map(|rest| rest.split(';').next());
    let uses = public.filter_map(|statement| statement.split_once("use "));
    let uses = uses.filter(|(scope, _)| matches!(*scope, " " | "(crate) "));
    let paths = uses.filter_map(|(_, path)| path.split_once("::"));
    paths.flat_map(|(from, names)| idents(names).map(move |name| (name, from))).collect()
}

fn idents(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c)).filter(|ident| !ident.is_empty())
}

/// The code in front of the tests of a file, which stand last, without its comments.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The names behind each path that begins at the root of the crate, with their lines. A file `depth` modules
/// deep also gets there by as many `super::`.
fn names_from_the_root(code: &str, depth: usize) -> Vec<(usize, String)> {
    let supers = "super::".repeat(depth);
    let mut names = Vec::new();
    for root in ["crate::", supers.as_str()] {
        for (at, _) in code.match_indices(root) {
            let (before, after) = (&code[..at], &code[at + root.len()..]);
            let is_path = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if !is_path || before.ends_with('$') {
                continue;
            }
            let line = before.lines().count().max(1);
            match after.strip_prefix('{') {
                Some(group) => names.extend(firsts(group).map(|name| (line, name))),
                None => names.extend(idents(after).take(1).map(|name| (line, name.to_owned()))),
            }
        }
    }
    names
}

/// The first part of each path in a group of imports, up to its closing brace.
fn firsts(group: &str) -> impl Iterator<Item = String> {
    let mut depth = 0;
    let mut top = String::new();
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ if depth == 0 => top.push(c),
            _ => {}
        }
    }
    let paths: Vec<String> = top.split(',').map(str::to_owned).collect();
    paths.into_iter().filter_map(|path| idents(&path).next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! A crate.\n//!\n//! Each module uses only those after it: `high`,\n\
                       //! `middle`, `low`.\n//!\n//! Not `this`.\n\nmod high;\npub mod low;\nmod middle;\n\n\
                       pub use haulier_core::{Instant, time};\npub use high::{High, Higher};\n\
                       pub use low::Low;\n";

    fn findings(path: &str, text: &str) -> Vec<String> {
        let path = format!("crates/x/src/{path}");
        let tree = Tree::of(&[("crates/x/src/lib.rs", LIB), (&path, text)]);
        check_crate(&tree, "crates/x/src/").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_down_are_right() {
        let text = "use crate::low::{A, B};\nuse crate::{Instant, Low, low::{self, C}, time};\n\
                    fn f() -> crate::Low {}\nuse super::low;\n// crate::high\n\
                    #[cfg(test)]\nmod tests {\n    use crate::high::High;\n}\n";
        assert_eq!(findings("middle.rs", text), [""; 0]);
        assert_eq!(findings("low/part.rs", "use super::A;\nuse crate::low::B;"), [""; 0]);
        assert_eq!(findings("low/tests/part.rs", "use crate::high::High;"), [""; 0]);
    }

    #[test]
    fn an_arrow_up_is_found_however_it_is_written() {
        let up = "an arrow up, `middle` uses `high`: move what both need down";
        for (path, text) in [
            ("middle.rs", "\nuse crate::high::High;"),
            ("middle/mod.rs", "use crate::low;\nuse crate::{low::{High, A}, high::B};"),
            ("middle/part.rs", "\nfn f(_: crate::Higher) {}"),
            ("middle/part.rs", "\nuse super::super::high::High;"),
            ("middle.rs", "\nuse super::high;"),
        ] {
            assert_eq!(findings(path, text), [format!("crates/x/src/{path}:2: {up}")], "{text}");
        }
    }

    #[test]
    fn what_the_order_does_not_name_is_found() {
        let unknown = "crates/x/src/low.rs:1: `New`: no module in the order of lib.rs has it";
        assert_eq!(findings("low.rs", "use crate::New;"), [unknown]);
        let lib = format!("{LIB}mod new;\n");
        let tree = Tree::of(&[("crates/x/src/lib.rs", &lib)]);
        let missing = "`new` is missing from the paragraph \"uses only those after it\", add it";
        let found = check_crate(&tree, "crates/x/src/");
        assert_eq!(found, [Finding::new("crates/x/src/lib.rs", 1, missing)]);
        assert_eq!(check(&Tree::of(&[])).len(), CRATES.len(), "a crate that is gone is no success");
    }
}
