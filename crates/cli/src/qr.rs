//! `--qr`: a ticket or a token as a QR code, drawn on standard error or written to a file.
//!
//! The line on standard output stays as it is. Two modules are one above the other in a character, and in a
//! terminal they are black on white whatever its colours are, because a scanner expects that.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use qrcode::{Color, EcLevel, QrCode};
use terminal_size::{Height, Width, terminal_size_of};

use crate::args::QrArgs;
use crate::keys;

/// Light modules around the code, without which it is not found.
const QUIET: usize = 4;

/// Black on white of the 216 colours that themes leave alone, and back.
const INK: &str = "\u{1b}[38;5;16;48;5;231m";
const RESET: &str = "\u{1b}[0m";

/// Checks whether the code can be shown at all, before the program waits for clients.
pub(crate) fn check(args: &QrArgs, report: &Report) -> Result<(), Failure> {
    match &args.qr {
        Some(None) if report.is_json() => {
            let what = "--qr draws for people, and --json prints for programs: leave one out, or write the \
                        code to a file with --qr=FILE.svg";
            Err(Failure::Usage(what.into()))
        }
        Some(Some(path)) if path.extension().is_none_or(|extension| extension != "svg") => {
            let what = format!("--qr={}: a QR code is written as FILE.svg", path.display());
            Err(Failure::Usage(what))
        }
        _ => Ok(()),
    }
}

/// Shows the code of a text as the arguments ask, if they do.
pub(crate) fn show(args: &QrArgs, text: &str, report: &Report) -> Result<(), Failure> {
    let Some(wanted) = &args.qr else { return Ok(()) };
    let modules = Modules::of(text)?;
    match wanted {
        Some(path) => write(&modules, path, report),
        None => {
            let is_terminal = io::stderr().is_terminal();
            let size = terminal_size_of(io::stderr());
            let size = size.map(|(Width(columns), Height(lines))| (columns, lines));
            match too_small(modules.size(), size) {
                Some(why) => report.warning(&why),
                None => report.picture(&modules.draw(is_terminal)),
            }
            Ok(())
        }
    }
}

/// The picture is as secret as what it says.
fn write(modules: &Modules, path: &Path, report: &Report) -> Result<(), Failure> {
    keys::write_private(Some(path), &modules.to_svg())?;
    report.detail(&format!("the QR code is in {}", path.display()));
    Ok(())
}

/// Why a terminal of this size cannot show a code of this many modules: a broken one cannot be read.
fn too_small(modules: usize, size: Option<(u16, u16)>) -> Option<String> {
    let (columns, lines) =
        size.map(|(columns, lines)| (usize::from(columns), usize::from(lines)))?;
    let needed = modules.div_ceil(2);
    (columns < modules || lines < needed).then(|| {
        format!(
            "the QR code needs {modules} columns and {needed} lines, and this terminal has {columns} and \
             {lines}: make it larger or its letters smaller, or write the code to a file with --qr=FILE.svg"
        )
    })
}

/// A code with its quiet zone.
struct Modules {
    code: QrCode,
}

impl Modules {
    /// With the least correction of errors: a screen has no stains, and fewer modules are larger ones.
    fn of(text: &str) -> Result<Self, Failure> {
        let code = QrCode::with_error_correction_level(text, EcLevel::L);
        let code = code.map_err(|error| {
            Failure::Usage(format!("{} bytes are no QR code: {error}", text.len()))
        })?;
        Ok(Self { code })
    }

    /// Modules on a side.
    fn size(&self) -> usize {
        self.code.width() + 2 * QUIET
    }

    fn is_dark(&self, x: usize, y: usize) -> bool {
        let inside = QUIET..QUIET + self.code.width();
        let is_inside = inside.contains(&x) && inside.contains(&y);
        is_inside && self.code[(x - QUIET, y - QUIET)] == Color::Dark
    }

    /// Two rows of modules in a line.
    fn draw(&self, in_colours: bool) -> String {
        let mut drawn = String::new();
        for y in (0..self.size()).step_by(2) {
            if y > 0 {
                drawn.push('\n');
            }
            drawn.push_str(if in_colours { INK } else { "" });
            drawn.extend((0..self.size()).map(|x| {
                match (self.is_dark(x, y), self.is_dark(x, y + 1)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                }
            }));
            drawn.push_str(if in_colours { RESET } else { "" });
        }
        drawn
    }

    /// A square of one by one for each dark module.
    fn to_svg(&self) -> String {
        let size = self.size();
        let mut path = String::new();
        for y in 0..size {
            for x in (0..size).filter(|&x| self.is_dark(x, y)) {
                // Nothing can go wrong with a string.
                let _written = write!(path, "M{x} {y}h1v1h-1z");
            }
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" \
             shape-rendering=\"crispEdges\"><rect width=\"{size}\" height=\"{size}\" fill=\"#fff\"/>\
             <path d=\"{path}\"/></svg>"
        )
    }
}

#[cfg(test)]
mod tests;
