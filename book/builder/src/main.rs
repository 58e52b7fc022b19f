//! Builds the book at the path that it is given; `cargo xtask book` runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: book-builder FOLDER (with a book.toml); see `cargo xtask book`");
        return ExitCode::from(2);
    };
    let book = mdbook_driver::MDBook::load(std::path::PathBuf::from(path));
    match book.and_then(|book| book.build()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("book-builder: {error:?}");
            ExitCode::FAILURE
        }
    }
}
