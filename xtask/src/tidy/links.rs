//! What Markdown points at: files that are there, headings that are there, and decisions that their index
//! knows. And the files that the map of the tree names in code: paths from the root, from `crates/`, or
//! from the sources of `proto`.
//!
//! Only links inside the tree are followed. Nothing here opens a connection. rustdoc checks the links of
//! the code's pages.

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{File, Finding, Tree};

/// Checks every link and the index of decisions.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = forgotten_decisions(tree);
    for file in tree.of_kind(&["md"]) {
        for (line, link) in links_of(file) {
            if let Err(what) = follow(tree, file, &link) {
                findings.push(Finding::new(&file.path, line, format!("link `{link}`: {what}")));
            }
        }
        for (line, path) in named_files(file) {
            if tree.file(&resolve(&file.path, &path)).is_none() && !tree.has_any(&path) {
                let what = format!("names `{path}`, which is not there: mend the path");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// Where the files are that a page names.
const BASES: [&str; 5] =
    ["", "crates/", "crates/proto/src/", "crates/proto/src/bulk/", "crates/control/src/"];

/// The source files and folders that a page names in code, with their lines.
fn named_files(file: &File) -> Vec<(usize, String)> {
    let text = file.text.as_deref().unwrap_or_default();
    // Files that past decisions and changes name may be gone.
    if file.path.starts_with("docs/decisions/") || file.path.starts_with("CHANGELOG") {
        return Vec::new();
    }
    let is_path = |code: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        let is_folder = code.ends_with('/') && code.contains("src/");
        code.contains('/') && (code.ends_with(".rs") || is_folder) && code.chars().all(is_plain)
    };
    let codes = Parser::new(text).into_offset_iter().filter_map(|(event, span)| match event {
        Event::Code(code) if is_path(&code) => {
            Some((1 + text[..span.start].matches('\n').count(), code.to_string()))
        }
        _ => None,
    });
    codes.collect()
}

impl Tree {
    /// Whether a file, or a folder with files, has this path from one of the [`BASES`].
    fn has_any(&self, path: &str) -> bool {
        BASES.iter().map(|base| format!("{base}{path}")).any(|path| match path.ends_with('/') {
            true => self.files.iter().any(|file| file.path.starts_with(&path)),
            false => self.file(&path).is_some(),
        })
    }
}

fn follow(tree: &Tree, from: &File, link: &str) -> Result<(), String> {
    if link.starts_with('[') {
        return Err(format!("no line defines it, such as {link}: path"));
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path) };
    let directory = format!("{target}/");
    let file = tree.file(&target);
    if file.is_none() && !tree.files.iter().any(|file| file.path.starts_with(&directory)) {
        return Err(format!("there is no {target}, mend the path"));
    }
    let Some(file) = file.filter(|file| !heading.is_empty() && file.is_kind(&["md"])) else {
        return Ok(());
    };
    if anchors_of(file).iter().any(|anchor| anchor == heading) {
        return Ok(());
    }
    Err(format!("{target} has no heading with this anchor"))
}

/// `path` as seen from the file `from`, from the root.
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
    parts.join("/")
}

/// What a page links to, with the lines of the links.
fn links_of(file: &File) -> Vec<(usize, String)> {
    let Some(text) = file.text.as_deref() else { return Vec::new() };
    // `[words][name]` without a line `[name]: path` is no link, and is read as text.
    let mut undefined = Vec::new();
    let mut note = |link: BrokenLink<'_>| {
        let is_full = matches!(link.link_type, LinkType::Reference | LinkType::ReferenceUnknown);
        undefined.extend(is_full.then(|| (link.span.start, format!("[{}]", link.reference))));
        None
    };
    let parser =
        Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(&mut note));
    let definitions = parser.reference_definitions().iter();
    let mut links: Vec<(usize, String)> = definitions
        .map(|(_, definition)| (definition.span.start, definition.dest.to_string()))
        .collect();
    for (event, span) in parser.into_offset_iter() {
        if let Event::Start(
            Tag::Link { link_type: LinkType::Inline, dest_url, .. } | Tag::Image { dest_url, .. },
        ) = event
        {
            links.push((span.start, dest_url.to_string()));
        }
    }
    links.append(&mut undefined);
    links.sort();
    let line_at = |at: usize| 1 + text[..at].matches('\n').count();
    links.into_iter().map(|(at, link)| (line_at(at), link)).collect()
}

/// The anchors that code hosts give to headings: lower case, spaces to hyphens, punctuation gone, and a
/// number for each that was there before.
fn anchors_of(file: &File) -> Vec<String> {
    let (mut anchors, mut heading) = (Vec::<String>::new(), None);
    for event in Parser::new(file.text.as_deref().unwrap_or_default()) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                anchors.push(anchor(text, &anchors));
                heading = None;
            }
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str, others: &[String]) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let plain: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    let mut numbered = plain.clone();
    for number in 1.. {
        if !others.contains(&numbered) {
            break;
        }
        numbered = format!("{plain}-{number}");
    }
    numbered
}

/// A decision that nothing lists is one that nobody finds.
fn forgotten_decisions(tree: &Tree) -> Vec<Finding> {
    const INDEX: &str = "docs/decisions/README.md";
    let index = tree.file(INDEX).map(links_of).unwrap_or_default();
    let decisions = tree.of_kind(&["md"]).filter_map(|file| {
        let name = file.path.strip_prefix("docs/decisions/")?;
        (name != "README.md" && !index.iter().any(|(_, link)| link == name)).then_some(file)
    });
    let what = format!("not listed, add a link to it in {INDEX}");
    decisions.map(|file| Finding::new(&file.path, 1, what.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere() {
        let readme = "[a](docs/A.md) and [b](docs/A.md#1-the-bits-crc32--padding) `[x](no.md)`\n\
                      [dir](docs/) [web](https://x.example/) [here](#top)\n# Top\n\n[ref]: ./docs/A.md\n\
                      ```\n[x](no.md)\n```\n[t](docs/A.md \"a title\") [r][ref] [2](#top-1)\n# Top\n";
        let page = "# Page\n## 1. The bits: `crc32` & padding\n[up](../README.md)";
        assert_eq!(findings(&[("README.md", readme), ("docs/A.md", page)]), [""; 0]);
    }

    #[test]
    fn links_that_do_not() {
        let page =
            "ok\n[a](B.md) [b](../C.md), [c](#none)\n[d](../README.md#gone) [w][x]\n\n[e]: F.md";
        let found = findings(&[("README.md", "# Top"), ("docs/A.md", page)]);
        let missing = |line, link, path| {
            format!("docs/A.md:{line}: link `{link}`: there is no {path}, mend the path")
        };
        assert_eq!(
            found,
            [
                missing(2, "B.md", "docs/B.md"),
                missing(2, "../C.md", "C.md"),
                "docs/A.md:2: link `#none`: docs/A.md has no heading with this anchor".to_owned(),
                "docs/A.md:3: link `../README.md#gone`: README.md has no heading with this anchor"
                    .to_owned(),
                "docs/A.md:3: link `[x]`: no line defines it, such as [x]: path".to_owned(),
                missing(5, "F.md", "docs/F.md"),
            ]
        );
    }

    #[test]
    fn a_fence_that_ends_lets_links_be_seen_again() {
        assert_eq!(findings(&[("A.md", "```sh\nx\n```\n[a](no.md)")]).len(), 1);
    }

    #[test]
    fn files_that_a_page_names() {
        let page = "`core/src/a.rs`, `core/src/`, `src/b.rs` and\n`core/src/no.rs`, `core/src/no/`; \
                    `no.rs` and `<x>/y.rs` are no paths";
        let files = [("A.md", page), ("crates/core/src/a.rs", ""), ("src/b.rs", "")];
        let expected = ["no.rs", "no/"].map(|path| {
            format!("A.md:2: names `core/src/{path}`, which is not there: mend the path")
        });
        assert_eq!(findings(&files), expected);
    }

    #[test]
    fn a_decision_out_of_the_index() {
        let decision = ("docs/decisions/0001-time.md", "# Time");
        let listed = ("docs/decisions/README.md", "* [Time](0001-time.md)");
        assert_eq!(findings(&[decision, listed]), [""; 0]);
        let what = "not listed, add a link to it in docs/decisions/README.md";
        let expected = [format!("docs/decisions/0001-time.md:1: {what}")];
        assert_eq!(findings(&[decision]), expected);
        assert_eq!(findings(&[decision, ("docs/decisions/README.md", "0001-time.md")]), expected);
    }
}
