//! `haulier completions` and `haulier man`: what packages install. The scripts and pages of other shells and
//! tools are read by those in a step of CI.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::{Dir, haulier};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

/// What bash has in `COMPREPLY` after these words, the last of which is being typed.
#[cfg(unix)]
fn completed(dir: &Dir, words: &[&str]) -> BTreeSet<String> {
    let script = dir.file("haulier.bash", &haulier(&["completions", "bash"]).stdout);
    let (last, before) = (words.len() - 1, words[words.len() - 2]);
    let typed = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let run = format!(
        "source {script} && COMP_WORDS=({typed}) COMP_CWORD={last} && \
         _haulier haulier '{}' '{before}' && printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words[last]
    );
    let output = Command::new("bash").args(["--norc", "--noprofile", "-c", &run]).output().unwrap();
    assert!(output.status.success(), "{run}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[cfg(unix)]
fn bash_completes_commands_options_and_values() {
    let dir = Dir::new();
    let is = |words: &[&str], wanted: &[&str]| {
        let wanted: BTreeSet<String> = wanted.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(completed(&dir, words), wanted, "{words:?}");
    };
    is(&["haulier", "se"], &["serve", "send"]);
    is(&["haulier", "fetch", "--ticket-f"], &["--ticket-file"]);
    is(&["haulier", "serve", "--pack", ""], &["auto", "never", "always"]);
    is(&["haulier", "token", "i"], &["issue"]);
    is(&["haulier", "completions", "z"], &["zsh"]);
}

#[test]
#[cfg(unix)]
fn bash_knows_which_program_it_completes() {
    let dir = Dir::new();
    let script = dir.file("haulier.bash", &haulier(&["completions", "bash"]).stdout);
    let run = format!("source {script} && complete -p haulier");
    let output = Command::new("bash").args(["--norc", "--noprofile", "-c", &run]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("-F _haulier haulier"));
}

#[test]
fn every_shell_has_a_script_with_every_command() {
    for shell in SHELLS {
        let run = haulier(&["completions", shell]);
        assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{}", run.what);
        for word in ["serve", "fetch", "token", "issue", "ticket-file"] {
            assert!(run.text().contains(word), "no {word} for {shell}");
        }
        let done = haulier(&["completions", shell, "--json"]).done();
        assert_eq!(done["script"].as_str(), Some(run.text()));
    }
    let wrong = haulier(&["completions", "cmd"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("powershell"), "{}", wrong.what);
}

/// The sections of a page, in order.
fn sections(page: &str) -> Vec<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix(".SH "))
        .map(|it| it.trim_matches('"'))
        .collect()
}

#[test]
fn a_page_has_the_sections_that_pages_have() {
    let serve = haulier(&["man", "serve"]);
    assert_eq!((serve.code, &*serve.stderr), (Some(0), ""), "{}", serve.what);
    let wanted = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "INBOX",
        "WHERE IT WAITS, AND WHO IS LET IN",
        "WHAT CAN BE SEEN OF IT",
        "ALL COMMANDS",
        "NOTES",
        "EXAMPLES",
        "EXIT STATUS",
        "FILES",
        "SEE ALSO",
    ];
    assert_eq!(sections(serve.text()), wanted);
    let synopsis = "\n.SH SYNOPSIS\n\\fBhaulier serve\\fR [OPTIONS] [FILE|DIR]...\n";
    assert!(serve.text().contains(synopsis), "{}", serve.what);
    let fetch = haulier(&["man", "fetch"]);
    assert!(sections(fetch.text()).contains(&"ENVIRONMENT"));
    assert!(fetch.text().contains("HAULIER_TICKET"), "{}", fetch.what);
    assert!(fetch.text().contains("Whether the server may pack"), "a rare option: {}", fetch.what);
    let program = haulier(&["man"]);
    assert!(sections(program.text()).contains(&"SUBCOMMANDS"));
    // All codes of `--help`, on each page.
    let help = haulier(&["--help"]);
    let codes = help.text().split_once("Exit codes:\n").unwrap().1.split_once("\n\n").unwrap().0;
    for line in codes.lines() {
        let (code, what) = line.trim().split_once(' ').unwrap();
        let what = what.trim().replace('`', "\\(ga").replace('-', "\\-").replace('\'', "\\*(Aq");
        let entry = format!("\n\\fB{code}\\fR\n{what}\n");
        assert!(serve.text().contains(&entry), "{entry:?} is not in {}", serve.text());
    }
}

/// One line of roff is not another's: a line of text that begins like a command would be one.
fn assert_well_formed(page: &str) {
    let known = [
        ".TH ", ".SH ", ".TP", ".EX", ".EE", ".ie ", ".el ", ".br", ".sp", ".RS", ".RE", ".IP",
        ".PP",
    ];
    let mut depth = 0;
    for line in page.lines() {
        assert!(!line.starts_with('\''), "{line}");
        if line.starts_with('.') {
            assert!(known.iter().any(|it| line.starts_with(it)), "{line}");
        }
        depth += match line {
            ".EX" => 1,
            ".EE" => -1,
            _ => 0,
        };
        assert!((0..=1).contains(&depth), "{line}");
    }
    assert_eq!(depth, 0);
    assert!(page.starts_with(".TH \"haulier"), "{}", page.lines().next().unwrap());
}

#[test]
fn all_pages_are_written_where_they_should_be() {
    let dir = Dir::new();
    let folder = dir.path("share/man1");
    let done = haulier(&["man", "--out", &folder, "--json"]).done();
    let mut written: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    let mut said: Vec<&str> =
        done["files"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    said.sort_unstable();
    assert_eq!(written, said);
    for page in ["haulier.1", "haulier-serve.1", "haulier-token-issue.1", "haulier-inspect.1"] {
        assert!(written.iter().any(|it| it == page), "no {page} in {written:?}");
    }
    assert!(!written.iter().any(|it| it.contains("help")), "{written:?}");
    for page in &written {
        let text = fs::read_to_string(format!("{folder}/{page}")).unwrap();
        assert_well_formed(&text);
        let words: Vec<&str> = page.trim_end_matches(".1").split('-').skip(1).collect();
        assert_eq!(haulier(&[&["man"][..], &words].concat()).text(), text, "{page}");
    }
}

#[test]
fn a_page_that_is_not_there_is_said_to() {
    let run = haulier(&["man", "frob"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`haulier frob`: there are serve, fetch"), "{}", run.what);
    haulier(&["man", "serve", "x", "--json"]).error(2);
    let dir = Dir::new();
    let file = dir.file("file", b"");
    let run = haulier(&["man", "--out", &file]);
    assert_eq!(run.code, Some(5), "{}", run.what);
    assert!(run.stderr.contains(&file), "{}", run.what);
}
