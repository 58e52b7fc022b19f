//! The arguments of what a shell and a package need: `completions` and `man`.

use std::path::PathBuf;

use clap_complete::Shell;

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads it.
    pub(crate) shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
The script goes to standard output. A package that installs haulier brings it along.

Examples:
  source <(haulier completions bash)                 for this shell alone
  haulier completions bash > ~/.local/share/bash-completion/completions/haulier
  haulier completions zsh > ~/.zfunc/_haulier        if `fpath` has ~/.zfunc, before `compinit`
  haulier completions fish > ~/.config/fish/completions/haulier.fish
  haulier completions elvish >> ~/.config/elvish/rc.elv
  haulier completions powershell >> $PROFILE";

#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManArgs {
    /// The command that the page is about, as `serve` or `token issue`. Left out: the program.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,

    /// Write the pages of all commands into this directory, which is made if it is not there.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

const MAN_HELP: &str = "\
A page is in the form that `man` reads, and goes to standard output.

Examples:
  haulier man serve | man -l -                       read one
  haulier man --out ~/.local/share/man/man1          for `man haulier`, `man haulier-serve`";
