//! Puts the page of the playground into the program, if there is one: `HAULIER_PLAYGROUND` names the
//! directory in which `cargo xtask playground` has built it.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=HAULIER_PLAYGROUND");
    let mut files = String::new();
    if let Some(directory) = env::var_os("HAULIER_PLAYGROUND") {
        println!("cargo::rerun-if-changed={}", PathBuf::from(&directory).display());
        let entries = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).ok_or("a name in UTF-8")?;
            writeln!(files, "    ({name:?}, include_bytes!({path:?})),")?;
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR")?);
    let doc = "/// The files of the page, and what they are called; none if the program was built without.";
    let text = format!("{doc}\nconst FILES: &[(&str, &[u8])] = &[\n{files}];\n");
    fs::write(out.join("playground.rs"), text)?;
    Ok(())
}
