//! `cargo xtask mends`: takes out the mend of a fault, one at a time, and demands that an oracle finds it.
//!
//! A bound that no fault breaks proves nothing. So [`table`] has, for each fault that was mended, the lines
//! that mend it and what was there before; a copy of the tree is changed back, and the drills of `crates/sim`
//! run on it. The invariant: the lines are in the code, each once, which `cargo xtask tidy` checks; whoever
//! changes them changes the table too.

mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{Workspace, cargo};
use table::{Edit, MENDS, Mend};

/// The mends, and what finds each.
pub(crate) fn list() {
    for mend in MENDS {
        println!("{:<16} fault {:>2}: {} ({})", mend.name, mend.fault, mend.what, mend.finder);
    }
}

/// What is wrong with the table: path, and what.
pub(crate) fn drifted(read: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let edits = MENDS.iter().flat_map(|mend| mend.edits.iter().map(move |edit| (mend, edit)));
    edits
        .filter_map(|(mend, edit)| {
            let times = read(edit.path).map_or(0, |text| text.matches(edit.mended).count());
            (times != 1).then(|| {
                let what = format!(
                    "the mend `{}` of xtask/src/mends/table.rs is here {times} times, not once",
                    mend.name
                );
                (edit.path, what)
            })
        })
        .collect()
}

/// Takes out those whose name contains `name`, one after the other, and runs what finds each.
pub(crate) fn run(workspace: &Workspace, name: &str) -> Result<(), String> {
    let chosen: Vec<_> = MENDS.iter().filter(|mend| mend.name.contains(name)).collect();
    if chosen.is_empty() {
        return Err(format!("no mend is called `{name}`; see: cargo xtask mends --list"));
    }
    let mut missed = Vec::new();
    for mend in chosen {
        copy_tree(workspace)?;
        for edit in mend.edits {
            take_out(&tree(workspace), edit)?;
        }
        match found(workspace, mend)? {
            Some(how) => println!("{}: found by {}: {how}", mend.name, mend.finder),
            None => {
                println!("{}: NOT FOUND by {}", mend.name, mend.finder);
                missed.push(mend.name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn tree(workspace: &Workspace) -> PathBuf {
    workspace.target.join("mends/tree")
}

/// Copies what is committed or would be. A file that is the same is not written, so that cargo builds only
/// what has changed.
fn copy_tree(workspace: &Workspace) -> Result<(), String> {
    for path in crate::tidy::listed_by_git(&workspace.root)? {
        let from = workspace.root.join(&path);
        let Ok(bytes) = std::fs::read(&from) else { continue };
        let to = tree(workspace).join(&path);
        if std::fs::read(&to).ok().as_ref() != Some(&bytes) {
            write(&to, &bytes)?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let error = |error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(error)?;
    std::fs::write(path, bytes).map_err(error)
}

fn take_out(tree: &Path, edit: &Edit) -> Result<(), String> {
    let path = tree.join(edit.path);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    write(&path, text.replacen(edit.mended, edit.before, 1).as_bytes())
}

/// Runs the finder on the copy: what it said, if it failed.
fn found(workspace: &Workspace, mend: &Mend) -> Result<Option<String>, String> {
    let target = workspace.target.join("mends/target");
    let cargo = |arguments: &str| {
        let mut command = Command::new(cargo());
        command.args(arguments.split_whitespace()).current_dir(tree(workspace));
        command.env("CARGO_TARGET_DIR", &target).env_remove("CARGO").stdin(Stdio::null());
        command.output().map_err(|error| format!("cargo {arguments}: {error}"))
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
