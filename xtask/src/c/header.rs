//! The header: made of the sources by cbindgen, and committed.
//!
//! cbindgen takes half a minute to build, and most changes do not touch the header. So its last line has
//! a sum of all that it was made of and of itself, and `cargo xtask tidy` compares that: after any change of
//! the one or the other, even in a comment, it has to be made anew.

use std::fs;
use std::path::{Path, PathBuf};

use super::{broken, read};
use crate::ci::{Shell, Stop};

/// Before the sums, in the last line.
const MADE_OF: &str = "/* Made of sources with the sum ";

/// Makes the header anew.
pub(crate) fn write(shell: &Shell<'_>) -> Result<(), Stop> {
    let source = shell.workspace.root.join("crates/ffi");
    let header = source.join("include/haulier.h");
    let tool = "run --locked --quiet --manifest-path crates/ffi/header/Cargo.toml";
    shell.cargo(&format!("{tool} -- crates/ffi {}", header.display()))?;
    let body = read(&header)?;
    let text = format!("{body}\n{}", last_line(sum_of_sources(&source)?, &body));
    Ok(fs::write(&header, text).map_err(|error| broken(&header, &error))?)
}

/// The header, and whether it is the one that the sources make.
pub(crate) fn is_made_of_sources(root: &Path) -> Result<(&'static str, bool), String> {
    let source = root.join("crates/ffi");
    let text = read(&source.join("include/haulier.h"))?;
    let place = text.rfind(MADE_OF).unwrap_or(text.len());
    let body = text[..place].strip_suffix('\n').unwrap_or_default();
    let is_made = text[place..] == last_line(sum_of_sources(&source)?, body);
    Ok(("crates/ffi/include/haulier.h", is_made))
}

fn last_line(sources: u64, body: &str) -> String {
    format!("{MADE_OF}{sources:016x}; the lines above have {:016x}. */\n", sum(0, body.as_bytes()))
}

/// Of every file that has a part in the header: the crate, and the program that makes it.
fn sum_of_sources(source: &Path) -> Result<u64, String> {
    let mut files = vec![source.join("header/head.h"), source.join("header/Cargo.lock")];
    for directory in ["src", "src/client", "src/server", "header/src"] {
        let directory = source.join(directory);
        let entries = fs::read_dir(&directory).map_err(|error| broken(&directory, &error))?;
        files.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    files.sort();
    let mut all = 0;
    for file in &files {
        all = sum(all, name(file, source).as_bytes());
        all = sum(all, read(file)?.as_bytes());
    }
    Ok(all)
}

/// From the crate, with `/` on every system.
fn name(file: &Path, source: &Path) -> String {
    let name: PathBuf = file.strip_prefix(source).unwrap_or(file).to_path_buf();
    name.display().to_string().replace('\\', "/")
}

/// FNV-1a, of the length and the bytes: it finds a forgotten update, not an attack.
fn sum(before: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ before ^ bytes.len() as u64;
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(start, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let all = [sum(0, b""), sum(0, b"a"), sum(0, b"b"), sum(0, b"ba"), sum(1, b"ba")];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_ne!(last_line(1, "one\n"), last_line(1, "two\n"));
    }
}
