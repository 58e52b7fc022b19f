//! Names of files that another end chose: which of them may be stored unchanged, and how the others are
//! changed.
//!
//! The invariant: what [`plain_name`] returns is one component of a path on every system, and it returns
//! the same again when it is asked for that. All code that takes names from the wire asks here, so that no
//! two rules differ.

use alloc::borrow::Cow;
use alloc::string::String;

/// The longest name, in bytes: what file systems take.
pub const MAX_NAME_BYTES: usize = 255;

/// Characters that no name may have: those that separate directories or mean something else on some system.
const SEPARATORS: &str = "/\\:*?\"<>|";

/// Names of devices on Windows, with any digits and any extension.
const DEVICES: [&str; 8] = ["CON", "PRN", "AUX", "NUL", "COM", "LPT", "CONIN$", "CONOUT$"];

/// The name under which a file may be stored in a directory, if another end has named it: one component
/// that is no hidden file, no option of a command, no device, and that shows as what it is. Such a name is
/// returned unchanged; in any other name the offending characters become `_`. `None` if that would be
/// another name altogether: for a path, for control characters, for an empty name, and for a name of more
/// than 255 bytes.
///
/// ```
/// use haulier_core::names::plain_name;
///
/// assert_eq!(plain_name("world.bin").as_deref(), Some("world.bin"));
/// assert_eq!(plain_name(".bashrc").as_deref(), Some("_.bashrc"));
/// assert_eq!(plain_name("../etc/passwd"), None);
/// ```
#[must_use]
pub fn plain_name(name: &str) -> Option<Cow<'_, str>> {
    let is_path = name == "." || name == ".." || name.contains(|c| SEPARATORS.contains(c));
    if is_path || name.contains(char::is_control) || !(1..=MAX_NAME_BYTES).contains(&name.len()) {
        return None;
    }
    if is_safe(name) {
        return Some(Cow::Borrowed(name));
    }
    // Room for the prefix, and for no half character at the end.
    let mut shown: String = name.chars().map(|c| if is_invisible(c) { '_' } else { c }).collect();
    while shown.len() >= MAX_NAME_BYTES {
        shown.pop();
    }
    if shown.ends_with(['.', ' ']) {
        shown.pop();
        shown.push('_');
    }
    if !is_safe(&shown) {
        shown.insert(0, '_');
    }
    Some(Cow::Owned(shown))
}

/// Whether nothing takes a name without separators for more than a name.
fn is_safe(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let device =
        stem.trim_end_matches(|c: char| c.is_ascii_digit() || "\u{b9}\u{b2}\u{b3}".contains(c));
    !name.starts_with(['.', '-', ' '])
        && !name.ends_with(['.', ' '])
        && !name.contains(is_invisible)
        && !DEVICES.iter().any(|word| device.eq_ignore_ascii_case(word))
}

/// Whether a character changes how text is shown, and is not shown itself: zero width, the direction of
/// writing, the end of a line.
///
/// ```
/// use haulier_core::names::is_invisible;
///
/// assert!(is_invisible('\u{2066}') && is_invisible('\u{200b}'));
/// assert!(!is_invisible(' ') && !is_invisible('\u{e9}'));
/// ```
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_name_is_kept_as_it_is() {
        for name in
            ["world.bin", "save 3.dat", "\u{dc}n\u{ef}code.map", "a.b.c", "console.log", "a-b"]
        {
            assert!(
                matches!(plain_name(name), Some(Cow::Borrowed(same)) if same == name),
                "{name}"
            );
        }
    }

    #[test]
    fn names_that_leave_their_directory_are_not_plain() {
        let hostile = [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:x",
            "x\0y",
            "x\ny",
            "\u{1b}[2J",
            "what?",
        ];
        for name in hostile {
            assert_eq!(plain_name(name), None, "{name:?}");
        }
        assert_eq!(plain_name(&"x".repeat(256)), None);
    }

    /// Hidden files, options, devices, and what is shown otherwise than it is.
    #[test]
    fn names_that_are_more_than_names_get_a_safe_form() {
        let forms = [
            (".bash_profile", "_.bash_profile"),
            ("-rf", "_-rf"),
            (" leading", "_ leading"),
            ("trailing.", "trailing_"),
            ("trailing ", "trailing_"),
            ("nul", "_nul"),
            ("COM1.txt", "_COM1.txt"),
            ("COM\u{b9}", "_COM\u{b9}"),
            ("NUL .txt", "_NUL .txt"),
            ("CONIN$", "_CONIN$"),
            ("a\u{202e}txt.exe", "a_txt.exe"),
            ("a\u{2066}b\u{200f}c\u{200b}", "a_b_c_"),
            ("\u{200b}.profile", "_.profile"),
            ("\u{202e}-rf", "_-rf"),
        ];
        for (name, form) in forms {
            assert_eq!(plain_name(name).as_deref(), Some(form), "{name:?}");
        }
    }

    #[test]
    fn a_safe_form_is_safe() {
        let parts = [".", "-", " ", "nul", "COM1", "\u{202e}", "\u{feff}", "a", "\u{e9}", "_", "$"];
        let mut names: Vec<String> = parts.map(String::from).to_vec();
        for _ in 0..3 {
            let longer = names.iter().flat_map(|name| parts.map(|part| format!("{name}{part}")));
            names = longer.collect();
        }
        names.push(".".repeat(255));
        names.push("\u{e9}".repeat(127) + ".");
        for name in names {
            let form = plain_name(&name).expect("one component").into_owned();
            assert!(form.len() <= MAX_NAME_BYTES && is_safe(&form), "{name:?}: {form:?}");
            assert!(matches!(plain_name(&form), Some(Cow::Borrowed(_))), "{name:?}: {form:?}");
        }
    }
}
