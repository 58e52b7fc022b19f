//! What Markdown points at: files that are there, headings that are there, and decisions that their
//! index knows.
//!
//! Only links inside the tree are followed. Nothing here opens a connection.

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
    }
    findings
}

fn follow(tree: &Tree, from: &File, link: &str) -> Result<(), String> {
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
    if anchors_of(file).any(|anchor| anchor == heading) {
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

/// The lines outside fenced code, which shows links but makes none.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    file.lines().filter(move |(_, text)| {
        let is_fence = text.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn links_of(file: &File) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, text) in prose(file) {
        // Code is what stands between an odd backtick and the next.
        let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        // A title may follow the path: [words](path "title").
        let paths = inline.filter_map(|(link, _)| link.split(' ').next());
        links.extend(paths.map(|path| (line, path.to_owned())));
        if let Some((_, path)) = text.split_once("]: ").filter(|(name, _)| name.starts_with('[')) {
            links.push((line, path.trim().to_owned()));
        }
    }
    links
}

/// The anchors that code hosts give to headings: lower case, spaces to hyphens, punctuation gone.
fn anchors_of(file: &File) -> impl Iterator<Item = String> {
    prose(file).filter(|(_, text)| text.starts_with('#')).map(|(_, text)| {
        let heading = text.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
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
                      ```\n[x](no.md)\n```\n[t](docs/A.md \"a title\")\n";
        let page = "# Page\n## 1. The bits: `crc32` & padding\n[up](../README.md)";
        assert_eq!(findings(&[("README.md", readme), ("docs/A.md", page)]), [""; 0]);
    }

    #[test]
    fn links_that_do_not() {
        let page = "ok\n[a](B.md) [b](../C.md), [c](#none)\n[d](../README.md#gone)\n[e]: F.md";
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
                missing(4, "F.md", "docs/F.md"),
            ]
        );
    }

    #[test]
    fn a_fence_that_ends_lets_links_be_seen_again() {
        assert_eq!(findings(&[("A.md", "```sh\nx\n```\n[a](no.md)")]).len(), 1);
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
