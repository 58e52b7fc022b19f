//! The pages of the book, filled in.
//!
//! What stands in two braces is replaced:
//!
//! | in a page | becomes |
//! |---|---|
//! | `{{number NAME}}` | the number of that name |
//! | `{{scene QUERY}}` | the playground at this scene, and a still picture for readers without scripts |
//! | `{{program PATH}}` | a program of the repository, without its first comment |
//!
//! `QUERY` may have `&lesson=NAME` in it, for the page. Links to a page of `docs` that is in the table of
//! contents lead to that page in the book; other links into the repository become plain text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};

use super::numbers::Numbers;

/// Where the chapters are, from the root of the repository.
const CHAPTERS: &str = "book/src/";

/// Where pages of the repository are in the book.
const REFERENCE: &str = "reference/";

/// A scene that some page shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scene {
    /// What the program plays: without the name of a lesson, which only the page knows.
    pub(super) query: String,
}

impl Scene {
    fn of(address: &str) -> Self {
        let fields = address.split('&').filter(|field| !field.starts_with("lesson="));
        Self { query: fields.collect::<Vec<_>>().join("&") }
    }

    /// Its picture, from the root of the book.
    pub(super) fn picture(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric();
        let name: String = self.query.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        format!("scenes/{name}.svg")
    }
}

/// Writes the pages, filled in, to `to`, with all that mdBook needs; returns the scenes that they show.
pub(super) fn fill(root: &Path, to: &Path, numbers: &Numbers) -> Result<BTreeSet<Scene>, String> {
    let book = Book::read(root)?;
    let mut scenes = BTreeSet::new();
    for (path, text) in &book.pages {
        let mut page = Page { book: &book, numbers, path, scenes: &mut scenes, root };
        let filled = page.filled(text).map_err(|what| format!("{path}: {what}"))?;
        let place = book.places.get(path).ok_or_else(|| format!("{path}: no place in the book"))?;
        write(&to.join("src").join(place), filled.as_bytes())?;
    }
    numbers.all_asked()?;
    for file in ["book.toml", "theme/scene.css", "theme/scene.js"] {
        let from = root.join("book").join(file);
        let bytes = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        write(&to.join(file), &bytes)?;
    }
    for image in files_of(&root.join("docs/lab"))?.into_iter().filter(|name| name.ends_with(".svg"))
    {
        let bytes =
            fs::read(root.join("docs/lab").join(&image)).map_err(|error| error.to_string())?;
        write(&to.join("src").join(REFERENCE).join("lab").join(&image), &bytes)?;
    }
    Ok(scenes)
}

/// The texts of the book by their paths in the repository, and where each is in the book.
struct Book {
    pages: BTreeMap<String, String>,
    places: BTreeMap<String, String>,
}

impl Book {
    fn read(root: &Path) -> Result<Self, String> {
        let mut book = Self { pages: BTreeMap::new(), places: BTreeMap::new() };
        for name in files_of(&root.join(CHAPTERS))?.into_iter().filter(|name| name.ends_with(".md"))
        {
            book.add(root, &format!("{CHAPTERS}{name}"), &name)?;
        }
        let contents = format!("{CHAPTERS}SUMMARY.md");
        let summary = book.pages.get(&contents).ok_or("no book/src/SUMMARY.md")?;
        let outside = links_of(summary).into_iter().map(|link| resolve(&contents, &link.to));
        for path in outside.filter(|path| !path.starts_with(CHAPTERS)).collect::<Vec<_>>() {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            book.add(root, &path, &format!("{REFERENCE}{name}"))?;
        }
        Ok(book)
    }

    fn add(&mut self, root: &Path, path: &str, place: &str) -> Result<(), String> {
        let text =
            fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        self.pages.insert(path.to_owned(), text);
        self.places.insert(path.to_owned(), place.to_owned());
        Ok(())
    }
}

/// A page that is being filled in.
struct Page<'a> {
    book: &'a Book,
    numbers: &'a Numbers,
    path: &'a str,
    scenes: &'a mut BTreeSet<Scene>,
    root: &'a Path,
}

impl Page<'_> {
    fn filled(&mut self, text: &str) -> Result<String, String> {
        let text = self.with_links(text);
        // The pages of docs may say what they like.
        if !self.path.starts_with(CHAPTERS) {
            return Ok(text);
        }
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once("{{") {
            let (asked, behind) =
                behind.split_once("}}").ok_or("two braces are opened and not closed")?;
            filled += before;
            filled += &self.instead(asked.trim())?;
            rest = behind;
        }
        Ok(filled + rest)
    }

    fn instead(&mut self, asked: &str) -> Result<String, String> {
        match asked.split_once(' ') {
            Some(("number", name)) => Ok(self.numbers.show(name)?.to_owned()),
            // One that is too long for a line goes on in the next.
            Some(("scene", address)) => {
                Ok(self.scene(&address.split_whitespace().collect::<String>()))
            }
            Some(("program", path)) => {
                let text = fs::read_to_string(self.root.join(path));
                let text = text.map_err(|error| format!("{path}: {error}"))?;
                let lines =
                    text.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
                Ok(format!("```rust\n{}\n```", lines.collect::<Vec<_>>().join("\n")))
            }
            _ => Err(format!("`{asked}`: only a number, a scene or a program can be filled in")),
        }
    }

    fn scene(&mut self, address: &str) -> String {
        let scene = Scene::of(address);
        let (picture, address) = (scene.picture(), address.replace('&', "&amp;"));
        self.scenes.insert(scene);
        format!(
            "<figure class=\"scene\" data-scene=\"playground/index.html?{address}\">\n\
             <a href=\"playground/index.html?{address}\"><img src=\"{picture}\" \
             alt=\"The scene as a moving picture\"></a>\n\
             <figcaption>The playground. <a href=\"playground/index.html?{address}\">In a page of its \
             own</a>.</figcaption>\n</figure>"
        )
    }

    /// The text with its links as they are in the book.
    fn with_links(&self, text: &str) -> String {
        let here = self.book.places.get(self.path).map_or("", String::as_str);
        let mut changed = text.to_owned();
        for link in links_of(text).into_iter().rev() {
            let (path, anchor) = match link.to.split_once('#') {
                Some((path, anchor)) => (path, format!("#{anchor}")),
                None => (link.to.as_str(), String::new()),
            };
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let target = resolve(self.path, path);
            let place = match self.book.places.get(&target) {
                Some(place) => Some(place.clone()),
                None => {
                    target.strip_prefix("docs/lab/").map(|name| format!("{REFERENCE}lab/{name}"))
                }
            };
            let is_there = |place: &String| place.ends_with(".md") || place.ends_with(".svg");
            let new = match place.filter(is_there) {
                Some(place) => {
                    let words = &text[link.start..link.words_end];
                    format!("{words}]({}{anchor})", from_here(here, &place))
                }
                None => text[link.words_start..link.words_end].to_owned(),
            };
            changed.replace_range(link.start..link.end, &new);
        }
        changed
    }
}

/// A link or an image that has its target with it: `[words](to)`.
struct Link {
    start: usize,
    words_start: usize,
    words_end: usize,
    end: usize,
    to: String,
}

/// The links of a page that are not inside of another, in their order.
fn links_of(text: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for (event, span) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let (to, head) = match event {
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) => (dest_url, 1),
            Event::Start(Tag::Image { link_type: LinkType::Inline, dest_url, .. }) => (dest_url, 2),
            _ => continue,
        };
        let words_end = text[span.clone()].rfind("](").map(|at| span.start + at);
        let is_inside = links.last().is_some_and(|last| span.start < last.end);
        let Some(words_end) = words_end.filter(|_| !is_inside) else { continue };
        links.push(Link {
            start: span.start,
            words_start: span.start + head,
            words_end,
            end: span.end,
            to: to.to_string(),
        });
    }
    links
}

/// `path` as seen from the page `from`, from the root of the repository.
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

/// A place of the book, as seen from another one.
fn from_here(here: &str, place: &str) -> String {
    match (here.starts_with(REFERENCE), place.strip_prefix(REFERENCE)) {
        (true, Some(name)) => name.to_owned(),
        (true, None) => format!("../{place}"),
        (false, _) => place.to_owned(),
    }
}

/// The files of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<String>, String> {
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> (Result<String, String>, BTreeSet<Scene>) {
        let numbers = Numbers::parse(
            r#"[{"name": "loss", "value": "92.4", "command": "bench", "within": 1, "line": {},
                 "path": "/a", "quick": false}]"#,
        );
        let places = [
            ("book/src/one.md", "one.md"),
            ("book/src/two.md", "two.md"),
            ("docs/SENDER.md", "reference/SENDER.md"),
        ];
        let book = Book {
            pages: BTreeMap::new(),
            places: places.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        };
        let mut scenes = BTreeSet::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let path = "book/src/one.md";
        let mut page =
            Page { book: &book, numbers: &numbers.unwrap(), path, scenes: &mut scenes, root };
        (page.filled(text), scenes)
    }

    #[test]
    fn numbers_come_by_name_and_unknown_names_are_errors() {
        assert_eq!(fill("{{number loss}} %").0, Ok("92.4 %".to_owned()));
        assert!(fill("{{number gain}} %").0.unwrap_err().contains("`gain`"));
        assert!(fill("{{nmber loss}}").0.unwrap_err().contains("nmber"));
        assert!(fill("{{number loss").0.is_err());
    }

    #[test]
    fn a_scene_has_a_picture_for_who_has_no_scripts() {
        let (page, scenes) = fill("{{scene rate=10M&seed=1&lesson=repair}}");
        let page = page.unwrap();
        let scene = scenes.first().unwrap();
        assert_eq!(scene.query, "rate=10M&seed=1");
        assert!(page.contains(&format!("src=\"{}\"", scene.picture())), "{page}");
        assert!(page.contains("?rate=10M&amp;seed=1&amp;lesson=repair\""), "{page}");
    }

    #[test]
    fn a_program_is_shown_as_it_is_in_the_repository() {
        let page = fill("{{program crates/haulier/examples/first_join_client.rs}}").0.unwrap();
        assert!(page.starts_with("```rust\nuse haulier::{Client, Event};"), "{page}");
        assert!(page.ends_with("}\n```"), "{page}");
    }

    #[test]
    fn links_lead_to_what_is_in_the_book_and_others_are_words() {
        let page =
            "a [b](two.md#x) [s](../../docs/SENDER.md#y) [c](../../crates/a.rs) [w](https://e.org)";
        let filled = fill(page).0.unwrap();
        assert_eq!(filled, "a [b](two.md#x) [s](reference/SENDER.md#y) c [w](https://e.org)");
    }
}
