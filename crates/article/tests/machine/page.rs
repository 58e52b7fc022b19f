//! The state tables of the code beside those of `docs/STATES.md`, for the tests of both wires.
//!
//! After a change of a table: `UPDATE_STATES=1 cargo test states` writes the page.

use std::fmt::Debug;

/// A transition table as the page has it.
pub fn table<S: Copy + Debug, N: Copy + Debug>(
    states: &[S],
    news: &[N],
    next: impl Fn(S, N) -> Option<S>,
) -> String {
    let mut table = String::from("| news |");
    states.iter().for_each(|state| table += &format!(" {state:?} |"));
    table += "\n|---|";
    states.iter().for_each(|_| table += "---|");
    for &news in news {
        table += &format!("\n| {news:?} |");
        for &state in states {
            let cell = next(state, news).map_or(String::from("–"), |next| format!("{next:?}"));
            table += &format!(" {cell} |");
        }
    }
    table
}

fn with_table(page: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name} -->\n"), "\n<!-- end -->");
    let (before, rest) = page.split_once(&start).expect("the page marks where the table goes");
    let (_, after) = rest.split_once(end).expect("the page marks where the table ends");
    format!("{before}{start}{table}{end}{after}")
}

/// Compares tables, each with the name that marks its place on the page.
pub fn assert_on_page(tables: &[(&str, String)]) {
    let path = format!("{}/../../docs/STATES.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap();
    let printed =
        tables.iter().fold(page.clone(), |page, (name, table)| with_table(&page, name, table));
    if std::env::var_os("UPDATE_STATES").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    assert!(
        page == printed,
        "docs/STATES.md is stale: UPDATE_STATES=1 cargo test states\n{printed}"
    );
}
