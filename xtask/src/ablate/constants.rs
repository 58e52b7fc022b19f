//! Numeric constants as functions, so that each can be scaled when the program runs.
//!
//! `const GAIN: f64 = 0.5;` becomes `fn GAIN() -> f64`, which asks for its scale once, and what uses it calls
//! it. The code is read as tokens, without types: a name is resolved by the module it is defined in or
//! imported from. The invariant: what must be known to the compiler (the length of an array, the constant of
//! a type, and what these are computed from) stays a constant, and so does what other crates use.

mod tokens;

use std::collections::BTreeSet;
use std::ops::Range;

use tokens::{Token, tokens};

/// Types of which there are multiples.
const TYPES: &[&str] =
    &["f64", "u8", "u16", "u32", "u64", "usize", "Span", "Bytes", "Rate", "Duration"];

/// A constant: the module that defines it, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) module: String,
    pub(super) name: String,
}

/// A definition in a file.
struct Definition {
    name: Name,
    /// It belongs to a module, and not to a type or a function.
    is_item: bool,
    /// Other crates use it.
    is_public: bool,
    /// Tokens of the type and of the value.
    of_type: Range<usize>,
    of_value: Range<usize>,
    /// Bytes from `const` to the semicolon.
    bytes: Range<usize>,
}

/// A file that is read.
struct Source<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// Of each token the innermost module.
    modules: Vec<String>,
    definitions: Vec<Definition>,
    /// Names that are imported, each into a module, and from where.
    imports: Vec<(String, Name)>,
}

/// The files, by their paths, with constants as functions; and the constants.
pub(super) fn as_functions(files: &[(String, String)]) -> (Vec<(String, String)>, Vec<Name>) {
    let sources: Vec<Source<'_>> =
        files.iter().map(|(path, text)| Source::read(path, text)).collect();
    let converted = convertible(&sources);
    let rewritten = sources.iter().zip(files);
    let rewritten =
        rewritten.map(|(source, (path, _))| (path.clone(), source.rewritten(&converted)));
    (rewritten.collect(), converted.into_iter().collect())
}

/// Constants of numeric types, but those that the compiler must know.
fn convertible(sources: &[Source<'_>]) -> BTreeSet<Name> {
    let definitions =
        || sources.iter().flat_map(|source| source.definitions.iter().map(move |it| (source, it)));
    let mut left: BTreeSet<Name> = sources.iter().flat_map(Source::lengths).collect();
    let is_left = |s: &Source<'_>, it: &Definition| it.is_public || !s.is_numeric(it);
    left.extend(definitions().filter(|(s, it)| is_left(s, it)).map(|(_, it)| it.name.clone()));
    loop {
        let used = definitions().filter(|(_, it)| left.contains(&it.name));
        let used = used.flat_map(|(source, it)| source.used_in(it.of_value.clone()));
        let more: BTreeSet<Name> = used.filter(|name| !left.contains(name)).collect();
        if more.is_empty() {
            break;
        }
        left.extend(more);
    }
    definitions().map(|(_, it)| it.name.clone()).filter(|name| !left.contains(name)).collect()
}

impl<'a> Source<'a> {
    fn read(path: &str, text: &'a str) -> Self {
        let tokens = tokens(text);
        let outer = module_of(path);
        let mut source = Self {
            text,
            modules: Vec::with_capacity(tokens.len()),
            definitions: Vec::new(),
            imports: Vec::new(),
            tokens,
        };
        // Braces that are open: the module that each begins, if it is one.
        let mut open: Vec<Option<String>> = Vec::new();
        for at in 0..source.tokens.len() {
            let inner = open.iter().rev().find_map(Clone::clone);
            let is_item = open.iter().all(Option::is_some);
            let module = inner.clone().unwrap_or_else(|| outer.clone());
            source.modules.push(module.clone());
            match source.tokens[at].text {
                "{" => {
                    let is_module = at >= 2 && source.tokens[at - 2].text == "mod";
                    open.push(is_module.then(|| source.tokens[at - 1].text.to_owned()));
                }
                "}" => _ = open.pop(),
                "const" => source.read_definition(at, module, is_item),
                "use" if is_item => {
                    let parent = if inner.is_some() { outer.clone() } else { parent_of(path) };
                    source.read_import(at + 1, &module, &parent);
                }
                _ => {}
            }
        }
        source
    }

    /// A constant that begins at this token, if it is one.
    fn read_definition(&mut self, at: usize, module: String, is_item: bool) {
        let Some([name, colon]) = self.tokens.get(at + 1..at + 3) else { return };
        if colon.text != ":" {
            return;
        }
        let rest = self.tokens[at..].iter();
        let Some(end) = rest.clone().position(|token| token.text == ";") else { return };
        let Some(equals) = rest.clone().position(|token| token.text == "=") else { return };
        if equals > end {
            return;
        }
        self.definitions.push(Definition {
            name: Name { module, name: name.text.to_owned() },
            is_item,
            is_public: at > 0 && self.tokens[at - 1].text == "pub",
            of_type: at + 3..at + equals,
            of_value: at + equals + 1..at + end,
            bytes: self.tokens[at].at..self.tokens[at + end].at + 1,
        });
    }

    /// What an import that begins at this token brings into `module`.
    fn read_import(&mut self, at: usize, module: &str, parent: &str) {
        let end = self.tokens[at..].iter().position(|token| token.text == ";");
        let tokens = &self.tokens[at..at + end.unwrap_or(0)];
        // Before each brace the last module of the path up to it.
        let (mut path, mut before) = (String::new(), Vec::new());
        let mut imported = Vec::new();
        for token in tokens {
            match token.text {
                "{" => before.push(path.clone()),
                "}" => _ = before.pop(),
                "," => path = before.last().cloned().unwrap_or_default(),
                ":" => {}
                name if is_constant(name) => {
                    let from = if path == "super" { parent.to_owned() } else { path.clone() };
                    let name = Name { module: from, name: name.to_owned() };
                    imported.push((module.to_owned(), name));
                }
                name => path = name.to_owned(),
            }
        }
        self.imports.extend(imported);
    }

    /// What the name at a token stands for, if it may be a constant.
    fn resolve(&self, at: usize) -> Option<Name> {
        let name = self.tokens[at].text;
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.tokens[at].text);
        let is_field = before(1) == "." && before(2) != ".";
        if !is_constant(name) || is_field {
            return None;
        }
        if before(1) == ":" && before(2) == ":" {
            let is_module = before(3).starts_with(|first: char| first.is_ascii_lowercase());
            let module = before(3).to_owned();
            return is_module.then(|| Name { module, name: name.to_owned() });
        }
        let module = &self.modules[at];
        let defined = self.definitions.iter().map(|it| &it.name);
        let mut defined = defined.filter(|it| it.name == name && it.module == *module);
        let imported = || self.imports.iter().find(|(to, it)| it.name == name && to == module);
        defined.next().or_else(|| Some(&imported()?.1)).cloned()
    }

    fn used_in(&self, tokens: Range<usize>) -> impl Iterator<Item = Name> {
        tokens.filter_map(|at| self.resolve(at))
    }

    /// The constants that are lengths of arrays.
    fn lengths(&self) -> Vec<Name> {
        let is_length = |at: usize| {
            let mut rest = self.tokens[at..].iter().map(|token| token.text);
            rest.next() == Some(";")
                && rest.find(|it| [";", "=", "[", "]", "{", "}"].contains(it)) == Some("]")
        };
        let lengths = (0..self.tokens.len()).filter(|&at| is_length(at));
        let until = |at: usize| {
            let end = self.tokens[at..].iter().position(|token| token.text == "]").unwrap_or(0);
            at..at + end
        };
        lengths.flat_map(|at| self.used_in(until(at))).collect()
    }

    /// Whether there are multiples of the value, of a module's constant: it is a number, or some.
    fn is_numeric(&self, definition: &Definition) -> bool {
        let of_type = &self.tokens[definition.of_type.clone()];
        let marks = ["(", ")", ",", ":", "core", "time"];
        definition.is_item
            && of_type
                .iter()
                .all(|token| TYPES.contains(&token.text) || marks.contains(&token.text))
    }

    /// The text with constants as functions.
    fn rewritten(&self, converted: &BTreeSet<Name>) -> String {
        let defined = self.definitions.iter().filter(|it| converted.contains(&it.name));
        let defined: Vec<&Definition> = defined.collect();
        let uses = self.uses(converted);
        let mut text = String::new();
        let mut at = 0;
        for definition in defined {
            let Range { start, end } = definition.bytes;
            text += &self.called(at..start, &uses);
            text += &self.function(definition, &uses);
            at = end;
        }
        text + &self.called(at..self.text.len(), &uses)
    }

    /// The tokens at which a converted constant is used.
    fn uses(&self, converted: &BTreeSet<Name>) -> Vec<usize> {
        let mut is_import = false;
        let mut uses = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            match token.text {
                "use" => is_import = true,
                ";" => is_import = false,
                _ if is_import => {}
                _ if self.resolve(at).is_some_and(|name| converted.contains(&name)) => {
                    uses.push(at);
                }
                _ => {}
            }
        }
        uses
    }

    /// A stretch of the text, in which each use is a call.
    fn called(&self, stretch: Range<usize>, uses: &[usize]) -> String {
        let mut text = String::new();
        let mut from = stretch.start;
        for token in uses.iter().map(|&at| &self.tokens[at]) {
            let end = token.at + token.text.len();
            if stretch.contains(&token.at) {
                text += &self.text[from..end];
                text += "()";
                from = end;
            }
        }
        text + &self.text[from..stretch.end]
    }

    fn function(&self, definition: &Definition, uses: &[usize]) -> String {
        let bytes = |tokens: &Range<usize>| {
            let after = tokens.end.min(self.tokens.len() - 1);
            self.tokens[tokens.start].at..self.tokens[after].at
        };
        let of_type = self.text[bytes(&definition.of_type)].trim();
        let value = self.called(bytes(&definition.of_value), uses);
        let Name { module, name } = &definition.name;
        format!(
            "fn {name}() -> {of_type} {{ static SCALED: std::sync::OnceLock<{of_type}> = \
             std::sync::OnceLock::new(); *SCALED.get_or_init(|| \
             crate::ablation::scaled(\"{module}::{name}\", {value})) }}"
        )
    }
}

/// The module that a file is.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The module that a file is in.
fn parent_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    module_of(path.rsplit_once('/').map_or("", |(parent, _)| parent))
}

/// Whether a name is written as constants are.
fn is_constant(name: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(is_upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let files: Vec<_> =
            files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        let (files, names) = as_functions(&files);
        let names = names.iter().map(|Name { module, name }| format!("{module}::{name}"));
        (files.into_iter().map(|(_, text)| text).collect(), names.collect())
    }

    #[test]
    fn a_constant_becomes_a_function_wherever_it_is_used() {
        let tuning = "mod law {\n pub(crate) const GAIN: f64 = 0.5; // GAIN\n}\n";
        let law = "use super::tuning::law::{GAIN, other};\n\
                   fn f() -> f64 { GAIN * x.GAIN * Own::GAIN + 0..GAIN }";
        let (files, names) = converted(&[("bulk/tuning.rs", tuning), ("bulk/a.rs", law)]);
        assert_eq!(names, ["law::GAIN"]);
        assert!(
            files[0].contains("pub(crate) fn GAIN() -> f64 {")
                && files[0].ends_with("// GAIN\n}\n")
        );
        assert!(files[0].contains("scaled(\"law::GAIN\", 0.5)"), "{}", files[0]);
        let expected = "use super::tuning::law::{GAIN, other};\n\
                        fn f() -> f64 { GAIN() * x.GAIN * Own::GAIN + 0..GAIN() }";
        assert_eq!(files[1], expected);
    }

    /// Two parts have constants of the same name: each uses its own.
    #[test]
    fn a_name_is_that_of_its_module() {
        let a = "const ROUNDS: usize = 8;\nstruct A { of: [f64; ROUNDS] }\nfn f() { g(ROUNDS) }";
        let b = "const ROUNDS: usize = 2;\nfn f() { g(ROUNDS) }";
        let (files, names) = converted(&[("bulk/a.rs", a), ("bulk/b.rs", b)]);
        assert_eq!(names, ["b::ROUNDS"]);
        assert_eq!(files[0], a, "the compiler must know the length of an array");
        assert!(files[1].ends_with("g(ROUNDS()) }"), "{}", files[1]);
    }

    #[test]
    fn what_a_length_is_computed_from_stays() {
        let text = "const MORE: usize = 2;\nconst ALL: usize = 4 + MORE;\nfn f(a: [u8; ALL]) {}\n\
                    impl A { const ONE: f64 = 1.0; }\nconst B: bool = true;";
        let (files, names) = converted(&[("a.rs", text)]);
        assert_eq!((&*files[0], names.len()), (text, 0));
    }
}
