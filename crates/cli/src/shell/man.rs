//! A manual page: what `--help` says, in the sections that `man` has.
//!
//! What stands behind the options in `--help` is text in blocks. A block below a line such as `Examples:` is
//! a section of its own, and keeps its lines; others are notes.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{page_name, shown};

/// What the environment says, and to which commands.
const ENVIRONMENT: [(&str, &[&str], &str); 1] = [(
    "HAULIER_TICKET",
    &["haulier", "haulier-fetch", "haulier-send"],
    "The ticket, a connect token, or HOST:PORT, where no argument and no --ticket-file says one. Unlike an \
     argument it is not shown to other users.",
)];

/// Files of ours, and whose they are.
const FILES: [(&str, &[&str], &str); 3] = [
    (
        "NAME.haulier-part",
        &["haulier", "haulier-fetch", "haulier-recv", "haulier-serve"],
        "What has come of NAME so far, beside where NAME is to be. The same command goes on from it.",
    ),
    (
        "NAME.haulier-journal",
        &["haulier", "haulier-fetch", "haulier-recv", "haulier-serve"],
        "Which parts of that file are verified.",
    ),
    (
        ".NAME.haulier-tree",
        &["haulier", "haulier-serve", "haulier-send"],
        "The BLAKE3 tree of a large NAME that is served or sent, so that it is not hashed again. It may be \
         deleted.",
    ),
];

/// The page of a command of the program, as roff.
pub(super) fn page(program: &Command, command: &Command) -> String {
    // A page has all there is: of options that the short help leaves out it would have the name alone.
    let man = Man::new(command.clone().mut_args(|arg| arg.hide_short_help(false)));
    // Without a date: the same program makes the same pages.
    let title = format!(
        ".TH \"{}\" 1 \"\" \"haulier {}\" \"haulier\"\n",
        page_name(command),
        env!("CARGO_PKG_VERSION")
    );
    let mut out = title.into_bytes();
    // A vector takes all that is written.
    let _all = man
        .render_name_section(&mut out)
        .and_then(|()| synopsis(command).to_writer(&mut out))
        .and_then(|()| man.render_description_section(&mut out))
        .and_then(|()| man.render_options_section(&mut out));
    if shown(command).next().is_some() {
        let _all = man.render_subcommands_section(&mut out);
    }
    let mut rest = Roff::default();
    let blocks = blocks(command);
    for block in blocks.iter().filter(|block| block.title.is_none()) {
        put_block(&mut rest, "NOTES", block);
    }
    for block in &blocks {
        match block.title.as_deref() {
            None | Some("Exit codes") => {}
            Some("Start here" | "Example" | "Examples") => put_block(&mut rest, "EXAMPLES", block),
            Some(title) => put_block(&mut rest, &title.to_uppercase(), block),
        }
    }
    put_exit_status(&mut rest, program);
    put_list(&mut rest, "ENVIRONMENT", page_name(command), &ENVIRONMENT);
    put_list(&mut rest, "FILES", page_name(command), &FILES);
    put_see_also(&mut rest, program, command);
    let _all = rest.to_writer(&mut out);
    // Left alone, these become quotation marks; and two breaks with nothing between them are a space.
    String::from_utf8_lossy(&out).replace('`', "\\(ga").replace("\n.br\n\n.br\n", "\n.sp\n")
}

/// How it is called, as `--help` says it: the options are below, with what they take.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut roff = Roff::default();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(name), roman(usage.strip_prefix(name).unwrap_or(usage))]);
    roff
}

/// Lines of a help text between two empty ones.
struct Block {
    /// What is in the first line, if that is a title.
    title: Option<String>,
    lines: Vec<String>,
}

/// What stands behind the options.
fn blocks(command: &Command) -> Vec<Block> {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let block = |text: &str| {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let title = first.strip_suffix(':').filter(|_| rest.starts_with(' '));
        let title = title.filter(|title| title.split(' ').count() <= 2).map(str::to_owned);
        let lines = if title.is_some() { rest } else { text };
        Block { title, lines: lines.lines().map(str::to_owned).collect() }
    };
    text.split("\n\n").filter(|text| !text.trim().is_empty()).map(block).collect()
}

/// Sentences are filled; what is indented stays as it is.
fn put_block(roff: &mut Roff, section: &str, block: &Block) {
    roff.control("SH", [section]);
    let mut is_literal = false;
    for line in &block.lines {
        if line.starts_with(' ') != is_literal {
            is_literal = !is_literal;
            roff.control(if is_literal { "EX" } else { "EE" }, []);
        }
        let line = if is_literal { line.strip_prefix("  ").unwrap_or(line) } else { line };
        roff.text([roman(line)]);
    }
    if is_literal {
        roff.control("EE", []);
    }
}

/// The codes are the program's, and on each page.
fn put_exit_status(roff: &mut Roff, program: &Command) {
    let all = blocks(program);
    let Some(codes) = all.iter().find(|block| block.title.as_deref() == Some("Exit codes")) else {
        return;
    };
    roff.control("SH", ["EXIT STATUS"]);
    for line in &codes.lines {
        let (code, what) = line.trim().split_once(' ').unwrap_or((line, ""));
        roff.control("TP", []);
        roff.text([bold(code)]);
        roff.text([roman(what.trim())]);
    }
}

fn put_list(roff: &mut Roff, section: &str, page: &str, rows: &[(&str, &[&str], &str)]) {
    let rows = rows.iter().filter(|(_, pages, _)| pages.contains(&page));
    for (index, (name, _, what)) in rows.enumerate() {
        if index == 0 {
            roff.control("SH", [section]);
        }
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*what)]);
    }
}

/// The pages beside it.
fn put_see_also(roff: &mut Roff, program: &Command, command: &Command) {
    let mut names = vec![page_name(program)];
    names.extend(shown(program).map(page_name));
    names.retain(|name| *name != page_name(command));
    roff.control("SH", ["SEE ALSO"]);
    let last = names.len().saturating_sub(1);
    for (index, name) in names.into_iter().enumerate() {
        roff.text([bold(name), roman(if index == last { "(1)" } else { "(1)," })]);
    }
}
