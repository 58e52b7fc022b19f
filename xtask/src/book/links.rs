//! Links of built pages: that the file is there, and the anchor in it.
//!
//! Only what is inside of the book is followed; nothing here opens a connection. mdBook writes attributes in
//! double quotes, and so do the pages of the playground, so a search for these is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Follows each link of each page below this folder, and says how many there were.
pub(super) fn check(book: &Path) -> Result<usize, String> {
    let mut files = BTreeMap::new();
    read_all(book, book, &mut files).map_err(|error| format!("{}: {error}", book.display()))?;
    let (count, wrong) = follow_all(&files);
    if wrong.is_empty() { Ok(count) } else { Err(wrong.join("\n  ")) }
}

/// The files by their paths from the root of the book; of those that are no pages, nothing but that they are
/// there.
type Files = BTreeMap<String, Option<String>>;

fn read_all(root: &Path, folder: &Path, files: &mut Files) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            read_all(root, &path, files)?;
            continue;
        }
        let name =
            path.strip_prefix(root).unwrap_or(&path).display().to_string().replace('\\', "/");
        let is_page = name.ends_with(".html");
        let text = if is_page { Some(fs::read_to_string(&path)?) } else { None };
        files.insert(name, text);
    }
    Ok(())
}

fn follow_all(files: &Files) -> (usize, Vec<String>) {
    let pages = || files.iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
    let anchors: BTreeMap<&String, BTreeSet<&str>> =
        pages().map(|(name, text)| (name, values(text, "id").collect())).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, text) in pages() {
        let links = ["href", "src", "data-scene"].into_iter().flat_map(|kind| values(text, kind));
        for link in links.filter(|link| !leads_out(link)) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = path.split('?').next().unwrap_or_default();
            let target = if path.is_empty() { name.clone() } else { resolve(name, path) };
            if !files.contains_key(&target) {
                wrong.push(format!("{name}: `{link}`: there is no {target}"));
            } else if !anchor.is_empty()
                && anchors.get(&target).is_some_and(|there| !there.contains(anchor))
            {
                wrong.push(format!("{name}: `{link}`: {target} has no such anchor"));
            }
        }
    }
    (count, wrong)
}

fn leads_out(link: &str) -> bool {
    let kinds = ["http://", "https://", "mailto:", "data:", "javascript:"];
    link.is_empty() || kinds.iter().any(|kind| link.starts_with(kind))
}

/// The values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let mut rest = page;
    std::iter::from_fn(move || {
        let at = rest.find(&start)? + start.len();
        let (value, behind) = rest[at..].split_once('"')?;
        rest = behind;
        Some(value)
    })
}

/// `path` as seen from the page `from`, from the root of the book.
fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if path.ends_with('/') {
        parts.push("index.html");
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(pages: &[(&str, &str)]) -> Vec<String> {
        let files = pages.iter().map(|(name, text)| ((*name).to_owned(), Some((*text).to_owned())));
        follow_all(&files.collect()).1
    }

    #[test]
    fn files_and_anchors_have_to_be_there() {
        let page = r##"<h2 id="here">.</h2><a href="#here">.</a><a href="b/two.html#there">.</a>"##;
        let good = [("one.html", page), ("b/two.html", r#"<p id="there"><a href="../one.html">"#)];
        assert_eq!(follow(&good), [] as [&str; 0]);
        let no_anchor = [("one.html", page), ("b/two.html", "")];
        assert!(follow(&no_anchor)[0].contains("no such anchor"));
        assert!(follow(&[("one.html", page)])[0].contains("there is no b/two.html"));
    }

    #[test]
    fn queries_and_other_hosts_are_not_followed() {
        let page =
            r#"<iframe src="play/index.html?rate=1"></iframe><a href="https://example.org/">"#;
        assert_eq!(follow(&[("a.html", page), ("play/index.html", "")]), [] as [&str; 0]);
        assert_eq!(follow(&[("a.html", page)]).len(), 1);
    }
}
