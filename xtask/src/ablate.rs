//! `cargo xtask ablate`: what each mechanism of the sender buys, and what each of its constants does when it
//! is halved and doubled.
//!
//! The product has no switches. A [copy of the tree](crate::copy) has one for each mechanism of [`table`],
//! and its [`constants`] can be scaled; both are asked of the environment, so that one build serves all rows.
//! Each row is a run of `haulier bench random` in virtual time, in the same [cells](battery) as the run with
//! everything on, and is [compared] with that cell by cell. Rows are kept, so that a campaign goes on where
//! it was stopped, and shown as tables ([`page`]). The invariant: with no switch set the copy does what the
//! tree does.

mod battery;
mod compared;
mod constants;
mod page;
mod paired;
mod table;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::copy::{self, Edit, Tree, edit};
use crate::workspace::Workspace;
use battery::{Battery, Cells, Row};
use constants::Name;
use table::mechanisms;

/// Where the tables stand.
const PAGE: &str = "docs/ABLATION.md";

/// What the copy has beside the switches: a module for them, for which the core has a standard library, and
/// no constants of types with constants in them.
const PREPARED: &[Edit] = &[
    edit(
        "crates/proto/src/lib.rs",
        "extern crate alloc;\n",
        "extern crate alloc;\nextern crate std;\n",
    ),
    edit("crates/proto/src/lib.rs", "#![no_std]\n", "#![no_std]\n#![allow(warnings)]\n"),
    edit("crates/proto/src/bulk/mod.rs", "mod block;\n", "pub(crate) mod ablation;\nmod block;\n"),
    edit(
        "crates/proto/src/bulk/known.rs",
        "    pub(crate) const NOTHING: Self = Self {",
        "    pub(crate) fn nothing() -> Self { Self {",
    ),
    edit(
        "crates/proto/src/bulk/known.rs",
        "        trust: Trust::Own,\n    };",
        "trust: Trust::Own } }",
    ),
];

/// Files of which constants are scaled: below the folder, and the other.
const SCALED: [&str; 2] = ["crates/proto/src/bulk/", "crates/proto/src/outgoing/ack_frequency.rs"];

/// Files whose constants are no tuning, and whose functions may be constants: of the wire, of memory, of
/// units.
const PLAIN: &[&str] = &[
    "block",
    "chunks",
    "classes",
    "credit",
    "cut",
    "erasures",
    "error_kind",
    "repair",
    "tree",
    "units",
    "wants",
];

/// Rows that change next to nothing: what they show is the scatter of the battery.
const PLACEBOS: &[&str] = &["model::BACKLOG=1.01", "window::TARGET=1.01", "loss::PRIOR_LOSS=1.01"];

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    only: String,
    budget: Duration,
    is_constants: bool,
    is_checked: bool,
    is_written: bool,
    out: Option<PathBuf>,
    battery: Battery,
}

impl Args {
    /// Of the words after `ablate`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut args = Self {
            only: String::new(),
            budget: Duration::from_secs(24 * 3_600),
            is_constants: false,
            is_checked: false,
            is_written: false,
            out: None,
            battery: Battery::default(),
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text}: no number"));
            match word {
                "--constants" => args.is_constants = true,
                "--check" => args.is_checked = true,
                "--write" => args.is_written = true,
                "--only" => args.only = value()?.to_owned(),
                "--out" => args.out = Some(value()?.into()),
                "--budget" => args.budget = Duration::from_secs(60 * number(value()?)?),
                "--seed" => args.battery.seed = number(value()?)?,
                "--links" => args.battery.links = number(value()?)?,
                "--crowds" => args.battery.crowds = number(value()?)?,
                other => {
                    return Err(format!("`{other}` is no flag of ablate; see: cargo xtask --help"));
                }
            }
        }
        Ok(args)
    }
}

/// Prints the mechanisms, and what the sender does without each.
pub(crate) fn list() {
    mechanisms().for_each(|it| println!("{:<16} {}", it.name, it.without));
}

/// What is wrong with the table: path, and what.
pub(crate) fn drifted(read: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let of_table = mechanisms().flat_map(|it| it.edits.iter().map(|edit| (it.name, edit)));
    let prepared = PREPARED.iter().map(|edit| ("the copy", edit));
    copy::drifted("xtask/src/ablate", of_table.chain(prepared), read)
}

/// Builds the copy, runs the rows that are not kept, and shows all that were asked for.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<(), String> {
    let began = Instant::now();
    let (tree, names) = changed(workspace)?;
    tree.write()?;
    let built = tree.cargo("build --release --locked -p haulier-cli").status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!("the copy with switches does not build: {}", tree.root.display()));
    }
    let mut runs = battery::Runs::open(workspace, &tree, code_of(workspace)?, args.battery)?;
    let base = runs.row(&Row::base())?;
    if args.is_checked && runs.of_tree(&built_program(workspace)?)? != base {
        return Err("with no switch set the copy does not do what the tree does".to_owned());
    }
    let rows = if args.is_constants { of_constants(&mut runs, &names)? } else { of_mechanisms() };
    let is_wanted = |row: &Row| row.name.contains(&args.only) || row.is_placebo;
    let rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
    if !rows.iter().any(|row| row.name.contains(&args.only)) {
        return Err(format!("nothing is called `{}`; see: cargo xtask ablate --list", args.only));
    }
    let tables = if args.is_constants { page::constants } else { page::tables };
    let mut shown: Vec<(Row, Cells)> = Vec::new();
    let mut left = 0;
    for row in rows {
        if began.elapsed() > args.budget && !runs.has(&row) {
            left += 1;
            continue;
        }
        let cells = runs.row(&row)?;
        println!("{}", page::line(&row, &base, &cells));
        shown.push((row, cells));
        if let Some(out) = &args.out {
            let text = tables(&args.battery, &base, &shown);
            std::fs::write(out, text).map_err(|error| format!("{}: {error}", out.display()))?;
        }
    }
    let text = tables(&args.battery, &base, &shown);
    println!("\n{text}");
    if args.is_written {
        let path = workspace.root.join(PAGE);
        let error = |error| format!("{}: {error}", path.display());
        let page = std::fs::read_to_string(&path).map_err(error)?;
        let part = if args.is_constants { "constants" } else { "mechanisms" };
        std::fs::write(&path, page::put(&page, part, &text)?).map_err(error)?;
    }
    if left > 0 {
        println!("{left} rows did not fit the budget: the same command goes on with them");
    }
    Ok(())
}

/// The program of the tree itself.
fn built_program(workspace: &Workspace) -> Result<PathBuf, String> {
    let mut command = workspace.command(crate::workspace::cargo());
    command.args("build --release --locked -p haulier-cli".split_whitespace());
    let built = command.status().is_ok_and(|status| status.success());
    let program = workspace.target.join("release/haulier");
    if built { Ok(program) } else { Err("the tree does not build".to_owned()) }
}

fn of_mechanisms() -> Vec<Row> {
    let placebos = PLACEBOS.iter().map(|scale| Row::placebo(scale));
    placebos.chain(mechanisms().map(Row::without)).collect()
}

/// Halved and doubled, of those that the battery uses.
fn of_constants(runs: &mut battery::Runs<'_>, names: &[Name]) -> Result<Vec<Row>, String> {
    let used = runs.used()?;
    let all = names.iter().map(|Name { module, name }| format!("{module}::{name}"));
    let (mut scalars, mut unused) = (BTreeSet::new(), Vec::new());
    for name in all {
        let of_pair = format!("{name}.");
        let before = scalars.len();
        scalars.extend(used.iter().filter(|it| **it == name || it.starts_with(&of_pair)).cloned());
        if scalars.len() == before {
            unused.push(name);
        }
    }
    println!("{} constants, and {} that this battery does not use:", scalars.len(), unused.len());
    println!("{}", unused.join(", "));
    let rows = scalars.iter().flat_map(|name| ["0.5", "2"].map(|by| Row::scaled(name, by)));
    let placebos = PLACEBOS.iter().map(|scale| Row::placebo(scale));
    Ok(placebos.chain(rows).collect())
}

/// The copy with all switches, and its constants.
fn changed(workspace: &Workspace) -> Result<(Tree, Vec<Name>), String> {
    let mut tree = Tree::read(workspace, "ablate")?;
    PREPARED.iter().try_for_each(|edit| tree.apply(edit))?;
    for mechanism in mechanisms() {
        let off = format!("crate::bulk::ablation::off(\"{}\")", mechanism.name);
        for Edit { path, there, instead } in mechanism.edits {
            let text = tree.text(path)?;
            if text.matches(there).count() != 1 {
                return Err(format!(
                    "{}: two edits change the same lines of {path}",
                    mechanism.name
                ));
            }
            let text = text.replacen(there, &instead.replace("$off", &off), 1);
            tree.set(path, text);
        }
    }
    tree.set("crates/proto/src/bulk/ablation.rs", include_str!("ablate/switches.rs").to_owned());
    let sources = tree.files().filter(|(path, _)| path.starts_with("crates/proto/src/"));
    let sources: Vec<String> = sources.map(|(path, _)| path.to_owned()).collect();
    let mut scaled = Vec::new();
    for path in sources {
        let text = tree.text(&path)?;
        if path.ends_with("/units.rs") || path.ends_with("/ablation.rs") {
            continue;
        }
        let text = without_tests(text).replace("Known::NOTHING", "Known::nothing()");
        let is_known = path.ends_with("/known.rs");
        let text = if is_known { text.replace("Self::NOTHING", "Self::nothing()") } else { text };
        // What asks for a switch or a scale is not known to the compiler.
        let text = if is_plain(&path) { text } else { text.replace("const fn ", "fn ") };
        if is_scaled(&path) {
            scaled.push((path, text));
        } else {
            tree.set(&path, text);
        }
    }
    let (scaled, names) = constants::as_functions(&scaled);
    scaled.into_iter().for_each(|(path, text)| tree.set(&path, text));
    Ok((tree, names))
}

fn is_scaled(path: &str) -> bool {
    SCALED.iter().any(|start| path.starts_with(start)) && !is_plain(path)
}

fn is_plain(path: &str) -> bool {
    let name = path.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
    let of = |part: &&str| path.starts_with(&format!("crates/proto/src/{part}/"));
    PLAIN.contains(&name)
        || !["bulk", "outgoing", "connection", "server", "transit"].iter().any(|it| of(&it))
}

/// A source without the tests at its end, which compare with constants.
fn without_tests(text: &str) -> String {
    let tests = text.find("\nmod tests {").and_then(|at| text[..at].rfind("\n#[cfg(test)]"));
    text[..tests.map_or(text.len(), |at| at + 1)].to_owned()
}

/// What stands for the code of which a row tells.
fn code_of(workspace: &Workspace) -> Result<u64, String> {
    let tree = Tree::read(workspace, "ablate")?;
    let parts =
        ["core", "proto", "sim", "lab", "haulier"].map(|part| format!("crates/{part}/src/"));
    let mut hasher = DefaultHasher::new();
    let sources = tree.files().filter(|(path, _)| parts.iter().any(|part| path.starts_with(part)));
    sources.for_each(|source| source.hash(&mut hasher));
    Ok(hasher.finish())
}

/// The same of the lines that switch a mechanism off.
fn code_of_edits(edits: &[Edit]) -> u64 {
    let mut hasher = DefaultHasher::new();
    edits.iter().for_each(|it| (it.path, it.there, it.instead).hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_in_the_code_is_noticed() {
        let root = Workspace::here().root;
        assert_eq!(drifted(|path| std::fs::read_to_string(root.join(path)).ok()), []);
    }

    /// An edit that another one has changed the lines of is found here, and not after a build.
    #[test]
    fn all_switches_are_in_one_copy() {
        let (tree, names) = changed(&Workspace::here()).unwrap();
        let sources: String =
            tree.files().map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect();
        for mechanism in mechanisms() {
            assert!(
                sources.contains(&format!("off(\"{}\")", mechanism.name)),
                "{}",
                mechanism.name
            );
        }
        let mut seen = HashMap::new();
        mechanisms().for_each(|it| *seen.entry(it.name).or_insert(0) += 1);
        assert!(seen.values().all(|&times| times == 1), "{seen:?}");
        assert!(names.len() > 100, "{}", names.len());
    }
}
