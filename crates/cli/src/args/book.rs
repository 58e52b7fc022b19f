//! The commands in the book and on the pages of the programs' packages, read as the program reads them that
//! is tested: a page that shows one which is not there, or with a flag that is not there, fails in a test of
//! `haulier-cli` or `haulier-lab-cli`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use haulier_shell::Program as _;

use super::Args;

/// What may stand in for a value that only the reader has.
const VALUES: [(&str, &str); 3] = [
    ("\"$TICKET\"", "haulier1:AWVsa"),
    ("\"$TOKEN\"", "haulier-token1:AWVsa"),
    ("\"$HEX\"", "0c01"),
];

/// Our programs.
const OURS: [&str; 2] = ["haulier", "haulier-lab"];

/// Programs of others that the book runs.
const OTHERS: [&str; 9] =
    ["curl", "mkdir", "ssh", "sudo", "sysctl", "tar", "tshark", "wireshark", "xdg-open"];

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the shell blocks of a page, with the numbers of their lines.
fn shell_lines(page: &str) -> Vec<(usize, String)> {
    let (mut lines, mut is_shell) = (Vec::<(usize, String)>::new(), false);
    for (number, line) in (1..).zip(page.lines()) {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            match lines.last_mut().filter(|(_, before)| before.ends_with('\\')) {
                Some((_, before)) => {
                    before.pop();
                    before.push_str(line.trim_start());
                }
                None => lines.push((number, line.to_owned())),
            }
        }
    }
    lines
}

/// The words of a line, without its comment; quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            ('#', None) if word.is_none() => break,
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Whether this line can be run as it is.
fn check(line: &str) -> Result<(), String> {
    let line = VALUES.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
    let words = words(&line);
    for command in words.split(|word| word == "|" || word == "&&" || word == "&") {
        let is_setting = |word: &&String| {
            word.split_once('=')
                .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        };
        let mut rest = command.iter().skip_while(is_setting).map(String::as_str);
        match rest.next() {
            None => {}
            Some(name) if name == Args::NAME => {
                let arguments = rest.take_while(|word| !word.starts_with(['<', '>']));
                let arguments = std::iter::once(name).chain(arguments);
                Args::try_parse_from(arguments).map_err(|error| error.to_string())?;
            }
            // Its own test reads what is said of it.
            Some(name) if OURS.contains(&name) => {}
            Some("cargo") => check_cargo(&rest.collect::<Vec<_>>())?,
            Some(other) if OTHERS.contains(&other) => {}
            Some(other) => return Err(format!("`{other}` is no program that the book may run")),
        }
    }
    Ok(())
}

/// Whether there is such a command of ours, or such an example.
fn check_cargo(words: &[&str]) -> Result<(), String> {
    if let Some(at) = words.iter().position(|word| *word == "--example") {
        let name = words.get(at + 1).ok_or("no name of an example")?;
        let folders = ["book", "crates/haulier", "crates/files", "crates/lab"];
        let mut paths = folders.iter().map(|folder| format!("{folder}/examples/{name}.rs"));
        return if paths.any(|path| root().join(path).exists()) {
            Ok(())
        } else {
            Err(format!("there is no example {name}"))
        };
    }
    match words {
        ["xtask", name, ..] => {
            let tool = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
            let is_there = tool.contains(&format!("[\"{name}\""));
            if is_there { Ok(()) } else { Err(format!("there is no cargo xtask {name}")) }
        }
        ["install", "--path", path, ..] if root().join(path).join("Cargo.toml").exists() => Ok(()),
        // From a package beside a clone.
        ["add", "haulier", "--path", path] => {
            let inside =
                path.strip_prefix("../haulier/").ok_or("no path into a clone beside it")?;
            let is_there = root().join(inside).join("Cargo.toml").exists();
            if is_there { Ok(()) } else { Err(format!("there is no package {inside}")) }
        }
        ["test" | "build" | "bench", ..] | ["install", "haulier-cli" | "haulier-lab-cli"] => Ok(()),
        _ => Err(format!("cargo {} is not known here", words.join(" "))),
    }
}

#[test]
fn every_command_of_the_book_is_one_that_there_is() {
    let mut count = 0;
    let mut wrong = Vec::new();
    let chapters = fs::read_dir(root().join("book/src")).unwrap().map(|file| file.unwrap().path());
    // And the pages of the packages on a registry.
    let pages = ["cli", "lab-cli"].map(|name| root().join(format!("crates/{name}/README.md")));
    for path in chapters.chain(pages) {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for (number, line) in shell_lines(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            if let Err(what) = check(&line) {
                wrong.push(format!("{name}:{number}: {line}\n{what}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 20, "only {count} commands were found: are the blocks still ```sh?");
}

#[test]
fn a_command_that_is_not_there_is_found() {
    for right in ["haulier serve world.bin --uplink 1G", "haulier-lab demo --rate 20M"] {
        assert!(check(right).is_ok(), "{right}");
    }
    let ours = [
        "haulier serve world.bin --upllink 1G",
        "haulier carry world.bin",
        "haulier-lab demo --rrate 20M",
        "haulier-lab playground --scene 'rate=fast'",
    ];
    let is_own = |line: &&str| line.split(' ').next() == Some(Args::NAME);
    let others = [
        "cargo xtask bok",
        "cargo run --example first_jion_server",
        "cargo add haulier --path ../haulier/crates/haul",
        "frobnicate",
        "HAULIER_TICKET=x haulier fetch | tee log",
    ];
    for wrong in ours.into_iter().filter(is_own).chain(others) {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
