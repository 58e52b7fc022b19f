//! The live views of a server, tried as people use them: in a browser, in a terminal, by a monitor.

use std::fs;

use crate::ci::{Shell, Stop};

/// What the test needs of Debian.
const PACKAGES: &str = "chromium chromium-driver python3-selenium \
                        python3-prometheus-client python3-pyte";

/// Looks at a server with fifty clients. Pictures are left.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let program = shell.tested_program()?;
    let target = &shell.workspace.target;
    let pictures = target.join("view-pictures");
    fs::create_dir_all(&pictures).map_err(|error| format!("{}: {error}", pictures.display()))?;
    let script = "crates/view/page_test.py";
    shell.debian_python(PACKAGES, &format!("{script} {} {}", program.display(), pictures.display()))
}
