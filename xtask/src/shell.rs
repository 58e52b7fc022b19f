//! What the program prints for shells and for `man`, and what moves on a terminal, tried with those.

use crate::ci::{Shell, Stop};

/// What the test needs of Debian.
const PACKAGES: &str = "elvish fish mandoc python3-pyte zsh";

/// Completions, manual pages, the bar, the demos.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let program = shell.tested_program()?;
    let lab = shell.tested_lab()?;
    let test = format!("crates/cli/shell_test.py {} {}", program.display(), lab.display());
    shell.debian_python(PACKAGES, &test)
}
