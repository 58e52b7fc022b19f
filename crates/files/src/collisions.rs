//! Paths that are two on one system and one on another.
//!
//! Many file systems take `Map` and `map` for the same name, and some take two Unicode forms of it for the
//! same. When both are stored there, one of them is lost without an error. So no offer has both. Directories
//! count too: a directory that two paths share on some system has to be the same letter by letter in both.

use unicode_normalization::UnicodeNormalization as _;

use crate::names::SafePath;

/// Two paths of a set that are one on some system, or one of which is a directory of the other and a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{second}` are the same on some systems")]
pub struct Collision {
    /// One of them.
    pub first: SafePath,
    /// The other.
    pub second: SafePath,
}

/// Looks for paths that collide. The work is that of sorting them.
///
/// # Errors
/// The first [`Collision`] in the order of the names.
pub fn check_collisions<'a>(
    paths: impl IntoIterator<Item = &'a SafePath>,
) -> Result<(), Collision> {
    let mut keys: Vec<(String, &SafePath)> =
        paths.into_iter().map(|path| (folded(path.as_str()), path)).collect();
    keys.sort_unstable();
    // All paths that share their first parts stand side by side, so neighbours are enough.
    for pair in keys.windows(2) {
        if let [(first_key, first), (second_key, second)] = pair
            && collide((first_key, first), (second_key, second))
        {
            return Err(Collision { first: (*first).clone(), second: (*second).clone() });
        }
    }
    Ok(())
}

/// What file systems that ignore case compare. A directory sorts before what is in it, and its content
/// before any other name: the separator becomes the lowest character.
fn folded(path: &str) -> String {
    // First to lower case, because a capital sharp s is its own upper case.
    let upper = path.to_lowercase().to_uppercase();
    upper.to_lowercase().nfc().map(|c| if c == '/' { '\0' } else { c }).collect()
}

/// Whether of two neighbours some part is the same when folded, and another before; or one ends inside the
/// other.
fn collide(first: (&str, &SafePath), second: (&str, &SafePath)) -> bool {
    let mut keys = first.0.split('\0').zip(second.0.split('\0'));
    let mut parts = first.1.parts().zip(second.1.parts());
    loop {
        match (keys.next(), parts.next()) {
            (Some((a, b)), Some((x, y))) if a == b => {
                if x != y {
                    return true;
                }
            }
            (Some(_), _) => return false,
            (None, _) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: &[&str]) -> bool {
        let paths: Vec<SafePath> = paths.iter().map(|path| SafePath::new(path).unwrap()).collect();
        check_collisions(&paths).is_ok()
    }

    #[test]
    fn names_that_differ_in_case_collide_and_so_do_directories() {
        assert!(check(&["a", "b", "maps/a", "maps/b", "maps2/a", "maps-old/a"]));
        assert!(!check(&["map", "x", "Map"]));
        assert!(!check(&["maps/a", "Maps/b"]));
        assert!(!check(&["stra\u{df}e", "STRASSE"]));
        assert!(!check(&["\u{e9}", "x", "\u{c9}"]));
        assert!(!check(&["a", "a"]));
        assert!(!check(&["\u{3c3}", "\u{3c2}"]), "two forms of sigma");
    }

    #[test]
    fn a_file_is_no_directory() {
        assert!(!check(&["a", "a/b"]));
        assert!(!check(&["A", "a.b", "a/b"]));
        assert!(check(&["a.b", "a/b", "a-b", "a!"]));
    }

    /// Composed forms never reach this point (`NameError::Form`), but folding may make new ones.
    #[test]
    fn forms_are_compared_after_folding() {
        assert_eq!(folded("\u{1e9e}"), folded("ss"));
        assert_eq!(folded("\u{130}"), folded("i\u{307}"));
    }
}
