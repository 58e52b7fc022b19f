//! Which files of an offer are wanted: the patterns of `--only`.
//!
//! A pattern is a path in which `?` is one character, `*` any of a name, `[abc]` one of some, and `**`, as
//! a whole part, any number of directories. No pattern is all files. They are the taker's own, and nothing
//! of them crosses the wire.

use glob::{MatchOptions, Pattern};

use crate::names::SafePath;

/// More patterns than a person types. What each costs is paid for every file of an offer.
const MAX_PATTERNS: usize = 64;

/// The longest pattern, in bytes: as long as a path.
const MAX_PATTERN_BYTES: usize = crate::names::MAX_PATH_BYTES;

/// What `*` does not match: a separator. A dot at the beginning is a character like any other.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern: {reason}")]
pub struct PatternError {
    /// The text.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// The files that a taker wants.
#[derive(Clone, Debug, Default)]
pub struct Only(Vec<Pattern>);

impl Only {
    /// All files.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The files that match at least one of these patterns; all files if no pattern is given.
    ///
    /// # Errors
    /// [`PatternError`] for the first that is no pattern.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, PatternError> {
        let mut only = Vec::new();
        for pattern in patterns {
            let error = |reason| PatternError { pattern: pattern.to_owned(), reason };
            if only.len() >= MAX_PATTERNS {
                return Err(error("there are too many of them"));
            }
            if pattern.len() > MAX_PATTERN_BYTES {
                return Err(error("it is too long"));
            }
            only.push(Pattern::new(pattern.trim_end_matches('/')).map_err(|it| error(it.msg))?);
        }
        Ok(Self(only))
    }

    /// Whether no pattern was given.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file is wanted: by its path, or because a directory that it is in was named.
    #[must_use]
    pub fn matches(&self, path: &SafePath) -> bool {
        let path = path.as_str();
        self.is_everything()
            || self.0.iter().any(|pattern| {
                let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
                ends.map(|end| &path[..end]).any(|path| pattern.matches_with(path, OPTIONS))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(pattern: &str) -> Vec<&'static str> {
        let only = Only::new([pattern]).unwrap();
        let paths =
            ["a.map", "maps/a.map", "maps/big/b.map", "maps/.keep", "mods/a/b/c.txt", "xmaps/a"];
        paths.into_iter().filter(|path| only.matches(&SafePath::new(path).unwrap())).collect()
    }

    #[test]
    fn stars_stop_at_separators_and_two_do_not() {
        assert_eq!(matching("*.map"), ["a.map"]);
        assert_eq!(matching("maps/*.map"), ["maps/a.map"]);
        assert_eq!(matching("maps/**"), ["maps/a.map", "maps/big/b.map", "maps/.keep"]);
        assert_eq!(matching("**/*.map"), ["a.map", "maps/a.map", "maps/big/b.map"]);
        assert_eq!(matching("mods/**/c.txt"), ["mods/a/b/c.txt"]);
        assert_eq!(matching("[ax].map"), ["a.map"]);
    }

    #[test]
    fn a_directory_is_all_that_is_in_it() {
        assert_eq!(matching("maps"), ["maps/a.map", "maps/big/b.map", "maps/.keep"]);
        assert_eq!(matching("maps/"), matching("maps"));
        assert_eq!(matching("m*s/big"), ["maps/big/b.map"]);
    }

    #[test]
    fn no_pattern_is_everything_and_a_wrong_one_is_named() {
        assert!(Only::new([]).unwrap().is_everything());
        assert_eq!(Only::new(["a**"]).unwrap_err().pattern, "a**");
        assert!(Only::new([&*"x".repeat(1025)]).is_err());
        assert!(Only::new(["a"; 65]).is_err());
    }

    /// The library goes back on failure: many stars against a path from the wire may not cost much.
    #[test]
    fn many_stars_are_no_attack() {
        let only = Only::new([&*("*a".repeat(200) + "c")]).unwrap();
        let path = SafePath::new(&"a".repeat(250)).unwrap();
        assert!(!only.matches(&path));
    }
}
