//! What a shell and a package need of the program: `haulier completions` and `haulier man`. Both are made
//! from the definitions that `--help` is made from, so none of them knows an option that is not there.

mod man;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use haulier_shell::failure::{Failure, plain};
use haulier_shell::report::Report;
use serde_json::json;

use crate::args::{Args, CompletionsArgs, ManArgs};

/// The name that the program is installed under.
const NAME: &str = "haulier";

/// `haulier completions`: the script for a shell.
pub(crate) fn completions(args: &CompletionsArgs, report: &Report) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script);
    let fields = json!({ "ok": true, "shell": args.shell.to_string(), "script": script });
    hand_over(report, fields, &script)
}

/// `haulier man`: one page, or all of them into a directory.
pub(crate) fn man(args: &ManArgs, report: &Report) -> Result<(), Failure> {
    // Its page would say what `--help` says.
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    let Some(folder) = &args.out else {
        let page = man::page(&program, find(&program, &args.command)?);
        return hand_over(report, json!({ "ok": true, "page": page }), &page);
    };
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let mut files = Vec::new();
    write_all(&program, &program, folder, &mut files)?;
    let text = format!("{} pages in {}", files.len(), folder.display());
    let fields = json!({ "ok": true, "folder": folder.display().to_string(), "files": files });
    report.done(fields, &text);
    Ok(())
}

/// What is made to be read by another program goes to standard output as it is.
fn hand_over(report: &Report, fields: serde_json::Value, text: &str) -> Result<(), Failure> {
    if report.is_json() {
        report.done(fields, "");
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Io(format!("standard output: {}", plain(&error))))
}

/// The command of these words.
fn find<'a>(program: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    words.iter().try_fold(program, |command, word| {
        let found = command.find_subcommand(word).filter(|found| !found.is_hide_set());
        found.ok_or_else(|| {
            let names: Vec<&str> = shown(command).map(Command::get_name).collect();
            let name = command.get_bin_name().unwrap_or(NAME);
            Failure::Usage(match names[..] {
                [] => format!("there is no command `{name} {word}`: {name} has none below it"),
                _ => format!("there is no command `{name} {word}`: there are {}", names.join(", ")),
            })
        })
    })
}

/// The commands below one that have a page.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// The name of a command's page: `haulier-token-issue`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn write_all(
    program: &Command,
    command: &Command,
    folder: &Path,
    files: &mut Vec<String>,
) -> Result<(), Failure> {
    let file = format!("{}.1", page_name(command));
    let path = folder.join(&file);
    fs::write(&path, man::page(program, command)).map_err(|error| Failure::file(&path, &error))?;
    files.push(file);
    shown(command).try_for_each(|below| write_all(program, below, folder, files))
}
