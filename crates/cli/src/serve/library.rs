//! The files that are served: read once, held in memory, each a block that all clients share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use haulier::Block;

use crate::failure::Failure;
use crate::files::{self, Entry, FILE_TAG, LIST_TAG, MAX_NAME_BYTES};
use crate::units::show_bytes;

/// What all files together may take: they are in memory, and so is each at its client.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// The files by name, and the list of them.
#[derive(Debug)]
pub(super) struct Library {
    files: BTreeMap<String, Block>,
    list: Block,
}

impl Library {
    pub(super) fn load(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        let mut left = MAX_BYTES;
        for path in paths {
            let name = name_of(path)?;
            let data = load(path, left)?;
            left -= data.len() as u64;
            if files.insert(name.clone(), Block::new(FILE_TAG, data)).is_some() {
                return Err(Failure::Usage(format!(
                    "two of the files are called {name}: a client could only ask for one of them"
                )));
            }
        }
        let entry = |(name, block): (&String, &Block)| Entry {
            name: name.clone(),
            bytes: block.data().len() as u64,
            digest: *block.digest(),
        };
        let entries: Vec<Entry> = files.iter().map(entry).collect();
        Ok(Self { list: Block::new(LIST_TAG, files::list(&entries)), files })
    }

    /// The file of this name.
    pub(super) fn file(&self, name: &str) -> Option<(&str, &Block)> {
        self.files.get_key_value(name).map(|(name, block)| (&**name, block))
    }

    /// The file, if there is but one.
    pub(super) fn only(&self) -> Option<(&str, &Block)> {
        let only = self.files.first_key_value().filter(|_| self.files.len() == 1);
        only.map(|(name, block)| (&**name, block))
    }

    pub(super) const fn list(&self) -> &Block {
        &self.list
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|block| block.data().len() as u64).sum()
    }
}

fn name_of(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| name.len() <= MAX_NAME_BYTES);
    name.map(str::to_owned).ok_or_else(|| {
        let what = "has no name that a client could ask for: UTF-8, up to 255 bytes";
        Failure::Usage(format!("{} {what}", path.display()))
    })
}

fn load(path: &Path, left: u64) -> Result<Vec<u8>, Failure> {
    let about = fs::metadata(path).map_err(|error| Failure::file(path, &error))?;
    if about.is_dir() {
        let hint = "is a directory: serve its files, as in `haulier serve DIR/*`, or pack it first";
        return Err(Failure::Usage(format!("{} {hint}", path.display())));
    }
    let too_large = |bytes: u64| {
        Failure::Usage(format!(
            "{} has {}, and serve holds at most {} in memory: use `haulier send` for it",
            path.display(),
            show_bytes(bytes),
            show_bytes(MAX_BYTES),
        ))
    };
    // Before anything is read: a disk image must not be in memory to be refused.
    if about.len() > left {
        return Err(too_large(about.len()));
    }
    let data = fs::read(path).map_err(|error| Failure::file(path, &error))?;
    if data.len() as u64 > left {
        return Err(too_large(data.len() as u64));
    }
    Ok(data)
}
