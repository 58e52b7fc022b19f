//! `cargo xtask mends`: takes out the mend of a fault, one at a time, and demands that an oracle finds it.
//!
//! A bound that no fault breaks proves nothing. So [`table`] has, for each fault that was mended, the lines
//! that mend it and what was there before; a [copy of the tree](crate::copy) is changed back, and the drills
//! of `crates/sim` run on it.

mod table;

use crate::copy::{self, Tree};
use crate::workspace::Workspace;
use table::{MENDS, Mend};

/// The mends, and what finds each.
pub(crate) fn list() {
    for mend in MENDS {
        println!("{:<16} fault {:>2}: {} ({})", mend.name, mend.fault, mend.what, mend.finder);
    }
}

/// The faults of the table: the path and the fault of each.
pub(crate) fn drifted(read: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let edits = MENDS.iter().flat_map(|mend| mend.edits.iter().map(|edit| (mend.name, edit)));
    copy::drifted("xtask/src/mends/table.rs", edits, read)
}

/// Takes out those whose name contains `name`, one after the other, and runs what finds each.
pub(crate) fn run(workspace: &Workspace, name: &str) -> Result<(), String> {
    let chosen: Vec<_> = MENDS.iter().filter(|mend| mend.name.contains(name)).collect();
    if chosen.is_empty() {
        return Err(format!("no mend is called `{name}`; see: cargo xtask mends --list"));
    }
    let mut missed = Vec::new();
    for mend in chosen {
        let mut tree = Tree::read(workspace, "mends")?;
        mend.edits.iter().try_for_each(|edit| tree.apply(edit))?;
        tree.write()?;
        match found(&tree, mend)? {
            Some(how) => println!("{}: found by {}: {how}", mend.name, mend.finder),
            None => {
                println!("{}: NOT FOUND by {}", mend.name, mend.finder);
                missed.push(mend.name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

/// Runs the finder on the copy: what it said, if it failed.
fn found(tree: &Tree, mend: &Mend) -> Result<Option<String>, String> {
    let cargo = |arguments: &str| {
        tree.cargo(arguments).output().map_err(|error| format!("cargo {arguments}: {error}"))
    };
    let (file, test) =
        mend.finder.split_once("::").ok_or("a finder is FILE::TEST, or lib::TEST of the core")?;
    let tests = match file {
        "lib" => "-p haulier-proto --lib".to_owned(),
        file => format!("-p haulier-sim --test {file}"),
    };
    let built = cargo(&format!("test --locked --no-run {tests}"))?;
    if !built.status.success() {
        let text = String::from_utf8_lossy(&built.stderr);
        return Err(format!("{}: without the mend it does not compile:\n{text}", mend.name));
    }
    let ran = cargo(&format!("test --locked {tests} {test}"))?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    if !text.contains("running 1 test") {
        return Err(format!("{}: there is no test {}", mend.name, mend.finder));
    }
    Ok((!ran.status.success()).then(|| said(&text)))
}

/// The line after the first panic.
fn said(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at"));
    lines.nth(1).unwrap_or("it failed").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_in_the_code_is_noticed() {
        let root = Workspace::here().root;
        assert_eq!(drifted(|path| std::fs::read_to_string(root.join(path)).ok()), []);
        let edits: usize = MENDS.iter().map(|mend| mend.edits.len()).sum();
        assert_eq!(drifted(|_| Some(String::new())).len(), edits);
    }

    #[test]
    fn what_a_test_said_is_the_line_after_its_panic() {
        assert_eq!(said("x\nthread 'a' panicked at b.rs:1:\nUncounted: 9\nnote"), "Uncounted: 9");
    }
}
