//! Paths in an offer: relative, with `/`, and safe on every system, whoever chose them.
//!
//! The invariant: a [`SafePath`] exists only if each of its parts is a name that [`plain_name`] keeps as
//! it is, so what is built from it never leaves its directory. Parts after the first may begin with a dot:
//! a directory that was fetched may have hidden files in it, and nothing hidden appears beside it.

use std::borrow::Cow;
use std::fmt;

use haulier_core::names::plain_name;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// The longest path, in bytes: what the oldest systems of today can open below a directory of some length.
pub const MAX_PATH_BYTES: usize = 1024;

/// Parts of a path: deeper than any directory that a person made.
pub const MAX_PATH_PARTS: usize = 32;

/// How the names of our own files beside a file end. Nobody may offer one of these.
const OWN_ENDINGS: [&str; 3] = [".haulier-part", ".haulier-journal", ".haulier-tree"];

/// Why a path is in no offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It has none or too many bytes or parts.
    #[error("the path is empty, longer than 1024 bytes or deeper than 32 directories")]
    Size,
    /// A part of it is no plain name on every system.
    #[error("a part of the path is not a plain name on every system")]
    Part,
    /// The first part is hidden: it begins with a dot.
    #[error("the first part of the path is hidden")]
    Hidden,
    /// It is not in the form NFC.
    #[error("the path is not in Unicode form NFC")]
    Form,
    /// It ends like a file that haulier keeps beside an unfinished one.
    #[error("the name is one of haulier's own files")]
    Own,
}

/// A relative path whose parts are plain names, in form NFC, separated by `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SafePath(Box<str>);

impl SafePath {
    /// From the wire: it has to be safe as it is.
    ///
    /// # Errors
    /// [`NameError`] if it is not.
    pub fn new(path: &str) -> Result<Self, NameError> {
        if path.is_empty() || path.len() > MAX_PATH_BYTES {
            return Err(NameError::Size);
        }
        for (index, part) in path.split('/').enumerate() {
            check_part(part, index)?;
        }
        if !is_nfc(path) {
            return Err(NameError::Form);
        }
        Ok(Self(path.into()))
    }

    /// From a disk, whose file system may use another Unicode form: the path in an offer that stands for
    /// it.
    ///
    /// # Errors
    /// [`NameError`] if a file of this path cannot be offered.
    pub fn from_disk(path: &str) -> Result<Self, NameError> {
        if path.len() > 4 * MAX_PATH_BYTES {
            return Err(NameError::Size);
        }
        let composed = if is_nfc(path) { Cow::Borrowed(path) } else { path.nfc().collect() };
        Self::new(&composed)
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names, from the outermost directory to the file.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last part.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Whether this is `path` or is below it.
    #[must_use]
    pub fn is_within(&self, path: &str) -> bool {
        let rest = self.0.strip_prefix(path);
        path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Control characters cannot be in it, so it may be shown.
impl fmt::Display for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn check_part(part: &str, index: usize) -> Result<(), NameError> {
    if index >= MAX_PATH_PARTS {
        return Err(NameError::Size);
    }
    let is_own = OWN_ENDINGS.iter().any(|ending| {
        let start = part.len().checked_sub(ending.len());
        start.and_then(|at| part.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    });
    if is_own {
        return Err(NameError::Own);
    }
    match part.strip_prefix('.').filter(|rest| is_plain(rest)) {
        Some(_) if index == 0 => Err(NameError::Hidden),
        Some(_) => Ok(()),
        None if is_plain(part) => Ok(()),
        None => Err(NameError::Part),
    }
}

fn is_plain(part: &str) -> bool {
    matches!(plain_name(part), Some(Cow::Borrowed(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_stay_as_they_are() {
        for path in ["world.bin", "maps/a b/c.map", "mods/.keep", "\u{dc}ber/x", "a/b/c/d/e"] {
            assert_eq!(SafePath::new(path).as_ref().map(SafePath::as_str), Ok(path));
        }
    }

    /// Whatever leaves its directory on some system, or is not shown as it is.
    #[test]
    fn a_path_never_leaves_its_directory() {
        let hostile = [
            "..",
            "../x",
            "a/../b",
            "a/..",
            "/etc/passwd",
            "a//b",
            "a/",
            "/",
            "C:/x",
            "C:x",
            "a\\b",
            "a/nul",
            "a/COM1.txt",
            "a/b.",
            "a/b ",
            "a/-rf",
            "x\0",
            "a/\u{1b}[2J",
            "a\u{202e}b",
            "\\\\host\\share",
            "a/...",
            "a/..b",
            "a/. b",
        ];
        for path in hostile {
            assert_eq!(SafePath::new(path), Err(NameError::Part), "{path:?}");
        }
        assert_eq!(SafePath::new(".bashrc"), Err(NameError::Hidden));
        assert_eq!(SafePath::new(".ssh/authorized_keys"), Err(NameError::Hidden));
        for own in
            ["x.haulier-part", "a/X.Haulier-Journal", "a/.x.haulier-tree", "x.haulier-part/y"]
        {
            assert_eq!(SafePath::new(own), Err(NameError::Own), "{own}");
        }
    }

    #[test]
    fn paths_are_bounded() {
        assert_eq!(SafePath::new(""), Err(NameError::Size));
        assert!(SafePath::new(&vec!["a"; 32].join("/")).is_ok());
        assert_eq!(SafePath::new(&vec!["a"; 33].join("/")), Err(NameError::Size));
        assert_eq!(SafePath::new(&vec!["a".repeat(200); 6].join("/")), Err(NameError::Size));
        assert_eq!(SafePath::new(&"a".repeat(256)), Err(NameError::Part));
    }

    #[test]
    fn another_unicode_form_is_refused_from_the_wire_and_composed_from_a_disk() {
        assert_eq!(SafePath::new("u\u{308}"), Err(NameError::Form));
        assert_eq!(SafePath::from_disk("u\u{308}").unwrap().as_str(), "\u{fc}");
        assert_eq!(SafePath::from_disk("../u\u{308}"), Err(NameError::Part));
    }

    #[test]
    fn within_is_by_parts() {
        let path = SafePath::new("maps/big/a").unwrap();
        for above in ["", "maps", "maps/big", "maps/big/a"] {
            assert!(path.is_within(above), "{above}");
        }
        for other in ["map", "maps/bi", "maps/big/a/b", "x"] {
            assert!(!path.is_within(other), "{other}");
        }
        assert_eq!((path.name(), path.parts().count()), ("a", 3));
    }
}
