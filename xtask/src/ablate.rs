//! `cargo xtask ablate`: what each mechanism of the sender buys, and what each of its constants does when it
//! is halved and doubled.
//!
//! The product has no switches. A [copy of the tree](switched) has one for each mechanism of [`table`], and
//! its [`constants`] can be scaled; both are asked of the environment, so that one build serves all rows.
//! Each row is a run of `haulier-lab bench random` in virtual time, in the same [cells](battery) as the run
//! with everything on, and is [compared] with that cell by cell. Rows are kept, so that a campaign goes on
//! where it was stopped, and shown as tables ([`page`]). The invariant: with no switch set the copy does what
//! the tree does.

mod battery;
mod compared;
mod constants;
mod page;
mod paired;
mod switched;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::copy;
use crate::workspace::Workspace;
use battery::{Battery, Cells, Row};
use constants::Name;
use switched::{PREPARED, code_of};
use table::mechanisms;

/// Where the tables stand.
const PAGE: &str = "docs/ABLATION.md";

/// Rows that change next to nothing: what they show is the scatter of the battery.
const PLACEBOS: &[&str] = &["model::BACKLOG=1.01", "window::TARGET=1.01", "loss::PRIOR_LOSS=1.01"];

/// The arguments of `ablate`.
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
    /// Parses the words after `ablate`.
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

/// The faults of the table: the path and the fault of each.
pub(crate) fn drifted(read: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let of_table = mechanisms().flat_map(|it| it.edits.iter().map(|edit| (it.name, edit)));
    let prepared = PREPARED.iter().map(|edit| ("the copy", edit));
    copy::drifted("xtask/src/ablate", of_table.chain(prepared), read)
}

/// Builds the copy, runs the rows that are not kept, and shows all that were asked for.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<(), String> {
    let began = Instant::now();
    let (tree, names) = switched::tree(workspace)?;
    tree.write()?;
    let built = tree.cargo("build --release --locked -p haulier-lab-cli").status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!("the copy with switches does not build: {}", tree.root.display()));
    }
    let mut runs = battery::Runs::open(workspace, &tree, code_of(workspace)?, args.battery)?;
    let base = runs.row(&Row::base())?;
    if args.is_checked && runs.of_tree(&built_program(workspace)?)? != base {
        return Err("with no switch set the copy does not do what the tree does".to_owned());
    }
    let (rows, unused) = match args.is_constants {
        true => of_constants(&mut runs, &names)?,
        false => (of_mechanisms(), Vec::new()),
    };
    let is_wanted = |row: &Row| row.name.contains(&args.only) || row.is_placebo;
    let rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
    if !rows.iter().any(|row| row.name.contains(&args.only)) {
        return Err(format!("nothing is called `{}`; see: cargo xtask ablate --list", args.only));
    }
    let text = |shown: &[(Row, Cells)]| match args.is_constants {
        true => page::constants(&args.battery, &base, shown, &unused),
        false => page::tables(&args.battery, &base, shown),
    };
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
            std::fs::write(out, text(&shown))
                .map_err(|error| format!("{}: {error}", out.display()))?;
        }
    }
    let text = text(&shown);
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
    command.args("build --release --locked -p haulier-lab-cli".split_whitespace());
    let built = command.status().is_ok_and(|status| status.success());
    let program = workspace.target.join("release/haulier-lab");
    if built { Ok(program) } else { Err("the tree does not build".to_owned()) }
}

fn of_mechanisms() -> Vec<Row> {
    let placebos = PLACEBOS.iter().map(|scale| Row::placebo(scale));
    placebos.chain(mechanisms().map(Row::without)).collect()
}

/// Halved and doubled, of those that the battery uses; and the names of the others.
fn of_constants(
    runs: &mut battery::Runs<'_>,
    names: &[Name],
) -> Result<(Vec<Row>, Vec<String>), String> {
    let used = runs.used()?;
    let all = names.iter().filter(|it| it.module != "tests");
    let all = all.map(|Name { module, name }| format!("{module}::{name}"));
    let (mut scalars, mut unused) = (BTreeSet::new(), Vec::new());
    for name in all {
        let of_pair = format!("{name}.");
        let before = scalars.len();
        scalars.extend(used.iter().filter(|it| **it == name || it.starts_with(&of_pair)).cloned());
        if scalars.len() == before {
            unused.push(name);
        }
    }
    let rows = scalars.iter().flat_map(|name| ["0.5", "2"].map(|by| Row::scaled(name, by)));
    let placebos = PLACEBOS.iter().map(|scale| Row::placebo(scale));
    Ok((placebos.chain(rows).collect(), unused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_in_the_code_is_noticed() {
        let root = Workspace::here().root;
        assert_eq!(drifted(|path| std::fs::read_to_string(root.join(path)).ok()), []);
        let edits: usize = mechanisms().map(|it| it.edits.len()).sum();
        assert!(drifted(|_| Some(String::new())).len() > edits);
    }
}
