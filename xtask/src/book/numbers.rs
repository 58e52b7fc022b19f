//! The numbers of the book: what each is, and which command says so.
//!
//! `book/numbers.json` is a list of objects:
//!
//! | field | meaning |
//! |---|---|
//! | `name` | how a page asks for it: `{{number NAME}}` |
//! | `value` | what the page shows, a decimal number |
//! | `command` | the arguments of `haulier`, which is run with `--json` |
//! | `line` | fields that tell the line of its output: the first that has all of them |
//! | `path` | where the number is in that line: a JSON pointer |
//! | `times` | a factor from what is printed to what is shown, 1 if it is left out |
//! | `within` | how far the two may be apart |
//! | `quick` | whether the command takes a second or two: only such are run by `cargo xtask book --check` |
//!
//! The invariant: each number that a page shows is in the list, and each in the list is shown.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::ci::Stop;

/// Where the numbers are.
const FILE: &str = "book/numbers.json";

/// One number.
struct Number {
    value: String,
    command: Vec<String>,
    line: Value,
    path: String,
    times: f64,
    within: f64,
    is_quick: bool,
}

/// All numbers, and which of them were asked for.
pub(super) struct Numbers {
    by_name: BTreeMap<String, Number>,
    asked: RefCell<BTreeSet<String>>,
}

impl Numbers {
    /// Reads the list of a repository.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text).map_err(|what| format!("{FILE}: {what}"))
    }

    /// Reads a list.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut by_name = BTreeMap::new();
        for entry in list.as_array().ok_or("it is no list")? {
            let name = entry["name"].as_str().ok_or_else(|| format!("no name: {entry}"))?;
            let number = number(entry).map_err(|what| format!("`{name}`: {what}"))?;
            if by_name.insert(name.to_owned(), number).is_some() {
                return Err(format!("`{name}` is there twice"));
            }
        }
        Ok(Self { by_name, asked: RefCell::default() })
    }

    /// What a page shows for this name.
    pub(super) fn show(&self, name: &str) -> Result<&str, String> {
        let number =
            self.by_name.get(name).ok_or_else(|| format!("no number `{name}` in {FILE}"))?;
        self.asked.borrow_mut().insert(name.to_owned());
        Ok(&number.value)
    }

    /// Whether every number was asked for.
    pub(super) fn all_asked(&self) -> Result<(), String> {
        let asked = self.asked.borrow();
        let unused: Vec<&str> =
            self.by_name.keys().filter(|name| !asked.contains(*name)).map(String::as_str).collect();
        if unused.is_empty() {
            return Ok(());
        }
        Err(format!("{FILE}: no page shows {}: show it, or take it out", unused.join(", ")))
    }

    /// Runs the quick commands, each once, and compares what they say.
    pub(super) fn check(
        &self,
        mut run: impl FnMut(&[&str]) -> Result<String, Stop>,
    ) -> Result<(), Stop> {
        let mut outputs = BTreeMap::new();
        let (mut wrong, mut right) = (Vec::new(), 0);
        for (name, number) in self.by_name.iter().filter(|(_, number)| number.is_quick) {
            if !outputs.contains_key(&number.command) {
                let mut arguments: Vec<&str> = number.command.iter().map(String::as_str).collect();
                arguments.push("--json");
                outputs.insert(number.command.clone(), run(&arguments)?);
            }
            match number.compare(&outputs[&number.command]) {
                Ok(()) => right += 1,
                Err(what) => wrong.push(format!("`{name}`: {what}")),
            }
        }
        if wrong.is_empty() {
            println!("book: {right} numbers are what {} commands say", outputs.len());
            return Ok(());
        }
        Err(format!("{FILE}: {}", wrong.join("\n  ")).into())
    }
}

fn number(entry: &Value) -> Result<Number, String> {
    let text = |field: &str| {
        let value = entry[field].as_str();
        value.map(str::to_owned).ok_or_else(|| format!("no `{field}`"))
    };
    let value = text("value")?;
    if plain(&value).is_none() {
        return Err(format!("`{value}` is no number"));
    }
    Ok(Number {
        value,
        command: words(&text("command")?),
        line: entry["line"].clone(),
        path: text("path")?,
        times: entry["times"].as_f64().unwrap_or(1.0),
        within: entry["within"].as_f64().ok_or("no `within`")?,
        is_quick: entry["quick"].as_bool().ok_or("no `quick`")?,
    })
}

/// A number as people write it: `4,416`, `92.4`.
fn plain(shown: &str) -> Option<f64> {
    shown.replace(',', "").parse().ok()
}

/// Words apart by spaces; one with spaces or with `&` in it is in single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

impl Number {
    fn compare(&self, output: &str) -> Result<(), String> {
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let has_all = |line: &Value| {
            let fields = self.line.as_object();
            fields.is_some_and(|fields| fields.iter().all(|(name, value)| line[name] == *value))
        };
        let line = lines.into_iter().find(has_all);
        let line = line.ok_or_else(|| format!("no line with {}", self.line))?;
        let said = line.pointer(&self.path).and_then(Value::as_f64);
        let said =
            said.ok_or_else(|| format!("no number at {} of {line}", self.path))? * self.times;
        let shown = plain(&self.value).unwrap_or(f64::NAN);
        if (said - shown).abs() <= self.within {
            return Ok(());
        }
        let command = self.command.join(" ");
        Err(format!("the book says {shown}, and `haulier-lab {command} --json` {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"[{"name": "loss", "value": "92.4", "command": "bench fragments", "within": 0.5,
        "line": {"event": "row", "fragments": 256}, "path": "/lost", "times": 100, "quick": true}]"#;

    fn run(numbers: &Numbers, said: &str) -> Result<(), String> {
        let checked = numbers.check(|arguments| {
            assert_eq!(arguments, ["bench", "fragments", "--json"]);
            Ok(said.to_owned())
        });
        checked.map_err(|stop| match stop {
            Stop::Failed { what, .. } | Stop::Skipped(what) => what,
        })
    }

    #[test]
    fn a_number_is_compared_with_the_line_that_says_it() {
        let numbers = Numbers::parse(ONE).unwrap();
        let line = |lost: f64| {
            format!(
                "{{\"event\":\"row\",\"fragments\":1,\"lost\":0.01}}\n\
                 {{\"event\":\"row\",\"fragments\":256,\"lost\":{lost}}}\n"
            )
        };
        assert_eq!(run(&numbers, &line(0.9238)), Ok(()));
        let wrong = run(&numbers, &line(0.90)).unwrap_err();
        assert!(wrong.contains("`loss`") && wrong.contains("92.4"), "{wrong}");
        assert!(run(&numbers, "{}").unwrap_err().contains("no line"));
    }

    #[test]
    fn an_unknown_or_unused_number_is_an_error() {
        let numbers = Numbers::parse(ONE).unwrap();
        assert!(numbers.show("lost").unwrap_err().contains("`lost`"));
        assert!(numbers.all_asked().unwrap_err().contains("loss"));
        assert_eq!(numbers.show("loss"), Ok("92.4"));
        assert_eq!(numbers.all_asked(), Ok(()));
    }

    #[test]
    fn a_scene_is_one_word_of_a_command() {
        let words = words("playground --scene 'rate=10M&rtt=100' --svg x");
        assert_eq!(words, ["playground", "--scene", "rate=10M&rtt=100", "--svg", "x"]);
    }
}
