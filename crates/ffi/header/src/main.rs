//! Makes the C header of haulier-ffi: `haulier-header CRATE FILE`, or prints it without FILE.
//!
//! Its head, which says what holds for every function, is `head.h` beside this program's manifest.

use std::path::Path;
use std::process::ExitCode;

use cbindgen::{Builder, Config, DocumentationStyle, EnumConfig, ExportConfig, Language};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (source, target) = match &*arguments {
        [source] => (source, None),
        [source, target] => (source, Some(target)),
        _ => {
            eprintln!(
                "haulier-header: give me the directory of haulier-ffi, and the file to write"
            );
            return ExitCode::FAILURE;
        }
    };
    match write(Path::new(source), target.map(Path::new)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("haulier-header: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(source: &Path, target: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
    let head = std::fs::read_to_string(source.join("header/head.h"))?;
    let config = Config {
        language: Language::C,
        header: Some(head.trim_end().to_owned()),
        include_guard: Some("HAULIER_H".to_owned()),
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        enumeration: EnumConfig { prefix_with_name: false, ..EnumConfig::default() },
        line_length: 100,
        export: ExportConfig {
            include: NUMBERS.map(str::to_owned).to_vec(),
            ..ExportConfig::default()
        },
        ..Config::default()
    };
    // The sources alone: what other crates have is of no use in C.
    let mut builder = Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(source.join("src").join(name));
    }
    let mut text = Vec::new();
    builder.generate()?.write(&mut text);
    // A comment of Rust that is empty leaves a space behind.
    let text: String =
        String::from_utf8(text)?.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    match target {
        Some(target) => std::fs::write(target, text)?,
        None => print!("{text}"),
    }
    Ok(())
}

/// What no function takes or returns under its name: whatever C passes is a plain number, and is checked.
const NUMBERS: [&str; 7] = [
    "haulier_close_code",
    "haulier_delivery",
    "haulier_drive",
    "haulier_order",
    "haulier_refusal",
    "haulier_source",
    "haulier_urgency",
];

/// The files of the crate whose names C has, in the order of the header. Their modules are followed: one that
/// was named here too would be in the header twice.
const SOURCES: [&str; 10] = [
    "version.rs",
    "result.rs",
    "secret.rs",
    "settings.rs",
    "event.rs",
    "block.rs",
    "source.rs",
    "stats.rs",
    "client/mod.rs",
    "server/mod.rs",
];
