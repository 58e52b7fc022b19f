//! The cells in which a row is measured, the runs, and what is kept of them.
//!
//! The invariant: a row that is kept tells of this code, these switches and these cells.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::switched::code_of_edits;
use super::table::Mechanism;
use crate::copy::Tree;
use crate::workspace::Workspace;

/// The patience of the battery, in seconds: a transfer that takes longer counts as done at this time.
const LINK_PATIENCE: f64 = 60.0;
const CROWD_PATIENCE: f64 = 90.0;

/// A run hangs that takes this many times as long as the one with everything on.
const HANGS: u32 = 20;

/// Random links and crowds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Battery {
    pub(super) seed: u64,
    pub(super) links: u64,
    pub(super) crowds: u64,
}

impl Default for Battery {
    fn default() -> Self {
        Self { seed: 20_261_201, links: 40, crowds: 8 }
    }
}

/// A mechanism that is switched off, or a constant that is scaled.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// What the sender does then.
    pub(super) what: String,
    pub(super) is_placebo: bool,
    off: String,
    scale: String,
    edits: u64,
}

impl Row {
    pub(super) fn base() -> Self {
        Self {
            name: "everything".to_owned(),
            what: String::new(),
            is_placebo: false,
            off: String::new(),
            scale: String::new(),
            edits: 0,
        }
    }

    pub(super) fn without(mechanism: &Mechanism) -> Self {
        Self {
            name: mechanism.name.to_owned(),
            what: mechanism.without.to_owned(),
            off: mechanism.name.to_owned(),
            edits: code_of_edits(mechanism.edits),
            ..Self::base()
        }
    }

    pub(super) fn scaled(name: &str, by: &str) -> Self {
        let scale = format!("{name}={by}");
        Self { name: format!("{name} x {by}"), scale, ..Self::base() }
    }

    pub(super) fn placebo(scale: &str) -> Self {
        Self {
            name: format!("({scale})"),
            scale: scale.to_owned(),
            what: "a hundredth more".to_owned(),
            is_placebo: true,
            ..Self::base()
        }
    }
}

/// What was measured in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// When the last was done, and the mean, in seconds.
    pub(super) last: f64,
    pub(super) mean: f64,
    /// The last over the physical limit; of links only.
    pub(super) limits: f64,
    pub(super) jain: f64,
    /// The part of the packets that the bottleneck dropped, and the bytes that it was offered.
    pub(super) dropped: f64,
    pub(super) offered: f64,
    pub(super) failures: f64,
}

/// The cells of a row: of links by the size of the block, and crowds with a server each and with one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cells {
    pub(super) of: BTreeMap<String, Vec<Cell>>,
    /// It did not run to its end: why.
    pub(super) broken: Option<String>,
}

/// The kinds of cells, and the arguments that run them.
const RUNS: [(&str, &[&str]); 2] =
    [("one", &["--servers", "one"]), ("each", &["--servers", "each", "--links", "0"])];

/// The runs of a campaign.
pub(super) struct Runs<'a> {
    tree: &'a Tree,
    battery: Battery,
    code: u64,
    path: PathBuf,
    kept: BTreeMap<String, Cells>,
    slowest: Duration,
}

impl<'a> Runs<'a> {
    pub(super) fn open(
        workspace: &Workspace,
        tree: &'a Tree,
        code: u64,
        battery: Battery,
    ) -> Result<Self, String> {
        let path = workspace.target.join("ablate/rows.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let kept = lines
            .filter_map(|line| Some((line["key"].as_str()?.to_owned(), Cells::of_json(&line)?)));
        let kept = kept.collect();
        Ok(Self { tree, battery, code, path, kept, slowest: Duration::ZERO })
    }

    fn key(&self, row: &Row) -> String {
        let Battery { seed, links, crowds } = self.battery;
        let Row { off, scale, edits, .. } = row;
        format!("{:x}:{edits:x}:{seed}:{links}:{crowds}:{off}:{scale}", self.code)
    }

    pub(super) fn has(&self, row: &Row) -> bool {
        self.kept.contains_key(&self.key(row))
    }

    /// The cells of a row, from before or measured now.
    pub(super) fn row(&mut self, row: &Row) -> Result<Cells, String> {
        let key = self.key(row);
        if let Some(cells) = self.kept.get(&key) {
            return Ok(cells.clone());
        }
        let cells = self.measure(row, None)?;
        let mut line = cells.to_json();
        line["key"] = key.as_str().into();
        let error = |error| format!("{}: {error}", self.path.display());
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.path);
        writeln!(file.map_err(error)?, "{line}").map_err(error)?;
        self.kept.insert(key, cells.clone());
        Ok(cells)
    }

    /// The constants that are used in these cells.
    pub(super) fn used(&mut self) -> Result<BTreeSet<String>, String> {
        let path = self.path.with_file_name("used.txt");
        _ = std::fs::remove_file(&path);
        self.measure(&Row::base(), Some(&path))?;
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// What the tree itself does in these cells, by this program.
    pub(super) fn of_tree(&mut self, program: &Path) -> Result<Cells, String> {
        self.measure_by(program, &Row::base(), None)
    }

    fn measure(&mut self, row: &Row, used: Option<&Path>) -> Result<Cells, String> {
        self.measure_by(&self.tree.program("haulier-lab"), row, used)
    }

    fn measure_by(
        &mut self,
        program: &Path,
        row: &Row,
        used: Option<&Path>,
    ) -> Result<Cells, String> {
        let mut cells = Cells::default();
        for (servers, arguments) in RUNS {
            let out = self.path.with_file_name("run.json");
            _ = std::fs::remove_file(&out);
            let mut command = Command::new(program);
            let Battery { seed, links, crowds } = self.battery;
            command.args(["bench", "random", "--json", "--senders", "token", "--out"]).arg(&out);
            command.args(["--seed", &seed.to_string(), "--crowds", &crowds.to_string()]);
            if servers == "one" {
                command.args(["--links", &links.to_string()]);
            }
            command.args(arguments);
            command.env("HAULIER_OFF", &row.off).env("HAULIER_SCALE", &row.scale);
            if let Some(used) = used {
                command.env("HAULIER_USED", used);
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Some(why) = self.wait(command, row)? {
                cells.broken = Some(why);
                return Ok(cells);
            }
            let Some(json) =
                std::fs::read(&out).ok().and_then(|it| serde_json::from_slice(&it).ok())
            else {
                cells.broken = Some("it panics".to_owned());
                return Ok(cells);
            };
            cells.add(servers, &json);
        }
        Ok(cells)
    }

    /// Waits for a run. Returns why it is given up, if it is.
    fn wait(&mut self, mut command: Command, row: &Row) -> Result<Option<String>, String> {
        let began = Instant::now();
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let is_base = row.off.is_empty() && row.scale.is_empty();
        let patience = (HANGS * self.slowest).max(Duration::from_secs(300));
        loop {
            if child.try_wait().map_err(|error| format!("{command:?}: {error}"))?.is_some() {
                self.slowest = self.slowest.max(began.elapsed());
                return Ok(None);
            }
            if !is_base && began.elapsed() > patience {
                _ = child.kill();
                _ = child.wait();
                return Ok(Some("it hangs".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Cells {
    /// Adds what `haulier-lab bench random` has stored.
    fn add(&mut self, servers: &str, json: &Value) {
        for cell in json["cells"].as_array().into_iter().flatten() {
            let run = &cell["senders"]["token"];
            let is_link = cell["cell"].as_str().is_some_and(|cell| cell.starts_with("link"));
            let patience = if is_link { LINK_PATIENCE } else { CROWD_PATIENCE };
            let seconds = |name: &str| run[name].as_f64().map_or(patience, |ms| ms / 1e3);
            let last = seconds("last_ms");
            let number = |name: &str| run[name].as_f64().unwrap_or(0.0);
            let kind = if is_link { format!("link {}", cell["bytes"]) } else { servers.to_owned() };
            self.of.entry(kind).or_default().push(Cell {
                last,
                mean: seconds("mean_ms"),
                limits: cell["limit_ms"].as_f64().map_or(0.0, |limit| last * 1e3 / limit),
                jain: number("jain"),
                dropped: number("dropped"),
                offered: number("offered_bytes"),
                failures: number("failures"),
            });
        }
    }

    fn to_json(&self) -> Value {
        let cell = |cell: &Cell| {
            let Cell { last, mean, limits, jain, dropped, offered, failures } = *cell;
            json!([last, mean, limits, jain, dropped, offered, failures])
        };
        let of = self
            .of
            .iter()
            .map(|(kind, cells)| (kind.clone(), cells.iter().map(cell).collect::<Value>()));
        json!({ "cells": of.collect::<serde_json::Map<_, _>>(), "broken": self.broken })
    }

    fn of_json(json: &Value) -> Option<Self> {
        let cell = |cell: &Value| {
            let number = |at: usize| cell[at].as_f64();
            Some(Cell {
                last: number(0)?,
                mean: number(1)?,
                limits: number(2)?,
                jain: number(3)?,
                dropped: number(4)?,
                offered: number(5)?,
                failures: number(6)?,
            })
        };
        let of = json["cells"].as_object()?.iter().map(|(kind, cells)| {
            let cells: Option<Vec<Cell>> = cells.as_array()?.iter().map(cell).collect();
            Some((kind.clone(), cells?))
        });
        let broken = json["broken"].as_str().map(str::to_owned);
        Some(Self { of: of.collect::<Option<_>>()?, broken })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let run = json!({ "cells": [
            { "cell": "link:0", "bytes": 262_144, "limit_ms": 100.0, "senders": { "token": {
                "last_ms": 250.0, "mean_ms": 250.0, "jain": 1.0, "dropped": 0.125,
                "offered_bytes": 300_000, "failures": 0 } } },
            { "cell": "crowd:0", "bytes": 262_144, "senders": { "token": {
                "last_ms": null, "mean_ms": null, "jain": 0.5, "dropped": 0.25,
                "offered_bytes": 9, "failures": 1 } } },
        ] });
        let mut cells = Cells::default();
        cells.add("each", &run);
        assert_eq!(cells.of["link 262144"][0].limits, 2.5);
        let crowd = cells.of["each"][0];
        assert_eq!((crowd.last, crowd.failures), (CROWD_PATIENCE, 1.0));
        assert_eq!(Cells::of_json(&cells.to_json()), Some(cells));
    }
}
