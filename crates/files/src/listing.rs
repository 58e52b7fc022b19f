//! An offer as a tree of directories, row by row: what `--list` shows.

use crate::offer::{Content, Offer};

/// A line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The number of directories it is in.
    pub depth: usize,
    /// Its last name.
    pub name: &'a str,
    /// Whether it is the last one in its directory.
    pub is_last: bool,
    /// Its index in the offer; `None` for a directory that has something in it.
    pub file: Option<u32>,
    /// Files in it, itself included.
    pub files: u32,
    /// The bytes of those whose size is known.
    pub bytes: u64,
}

/// A file with the parts of its path.
type Leaf<'a> = (Vec<&'a str>, u32, u64);

/// The rows, by name, each directory before what is in it.
#[must_use]
pub fn rows(offer: &Offer) -> Vec<Row<'_>> {
    let mut leaves: Vec<Leaf<'_>> = (0..)
        .zip(offer.entries())
        .map(|(index, entry)| (entry.path.parts().collect(), index, entry.size().unwrap_or(0)))
        .collect();
    leaves.sort();
    let mut rows = Vec::new();
    add_rows(offer, &leaves, 0, &mut rows);
    rows
}

/// Adds those that share their first `depth` parts. A path has at most 32, so it goes no deeper.
fn add_rows<'a>(offer: &'a Offer, leaves: &[Leaf<'a>], depth: usize, rows: &mut Vec<Row<'a>>) {
    let part = |leaf: &Leaf<'a>| leaf.0.get(depth).copied().unwrap_or_default();
    let mut groups = leaves.chunk_by(|a, b| part(a) == part(b)).peekable();
    while let Some(group) = groups.next() {
        let [first, ..] = group else { continue };
        let is_leaf = first.0.len() == depth + 1;
        let is_file = |leaf: &&Leaf<'_>| {
            offer.entry(leaf.1).is_some_and(|entry| entry.content != Content::Directory)
        };
        rows.push(Row {
            depth,
            name: part(first),
            is_last: groups.peek().is_none(),
            file: is_leaf.then_some(first.1),
            files: u32::try_from(group.iter().filter(is_file).count()).unwrap_or(u32::MAX),
            bytes: group.iter().fold(0, |sum, leaf| sum.saturating_add(leaf.2)),
        });
        if !is_leaf {
            add_rows(offer, group, depth + 1, rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SafePath;
    use crate::offer::Entry;

    #[test]
    fn a_tree_has_each_directory_once_with_its_sum() {
        let file =
            |path: &str, size| Entry::new(SafePath::new(path).unwrap(), Content::Sized(size));
        let mut entries = vec![
            file("maps/big/b", 5 << 20),
            file("readme", 1),
            file("maps/a", 2),
            file("maps-old", 4),
        ];
        entries.push(Entry::new(SafePath::new("void").unwrap(), Content::Directory));
        let offer = Offer::new(entries).unwrap();
        let shown: Vec<String> = rows(&offer)
            .iter()
            .map(|row| {
                let end = if row.is_last { "`" } else { "|" };
                format!("{}{end}{} {} {}", " ".repeat(row.depth), row.name, row.files, row.bytes)
            })
            .collect();
        let expected = [
            "|maps 2 5242882",
            " |a 1 2",
            " `big 1 5242880",
            "  `b 1 5242880",
            "|maps-old 1 4",
            "|readme 1 1",
            "`void 0 0",
        ];
        assert_eq!(shown, expected);
    }
}
