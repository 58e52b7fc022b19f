//! The table of the crate's front page: every file that it names is there, and every test.

use std::path::Path;

#[test]
fn the_front_page_names_files_and_tests_that_exist() {
    let page = include_str!("../../README.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut shown = 0;
    for row in rows {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [_section, files, command] = columns[..] else { panic!("not three columns: {row}") };
        for file in files.split('`').skip(1).step_by(2) {
            let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
            assert!(crates.join(file).is_file(), "there is no crates/{file}: {row}");
        }
        if let Some(filter) = command.strip_prefix("`test ") {
            let test = filter.trim_end_matches([' ', '|', '`']);
            assert!(exists(test), "no test is named {test}: {row}");
        }
        shown += 1;
    }
    assert_eq!(shown, 22, "rows of the three tables");
}

/// Whether these words are a module of this program, or a module and how a function of it begins.
fn exists(test: &str) -> bool {
    let text_of = |module: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine");
        let path = path.join(module.replace("::", "/"));
        let files = [path.with_extension("rs"), path.join("mod.rs")];
        files.iter().find_map(|file| std::fs::read_to_string(file).ok())
    };
    let test = test.trim_end_matches("::");
    let is_function = |(module, name)| {
        text_of(module).is_some_and(|text| text.contains(&format!("#[test]\nfn {name}")))
    };
    text_of(test).is_some() || test.rsplit_once("::").is_some_and(is_function)
}
