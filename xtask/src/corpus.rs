//! `cargo xtask corpus`: the seeds of the fuzz targets, made from the golden vectors: here those of the
//! article wire, in [`haulier1`] the others.
//!
//! A fuzzer that starts from well-formed and nearly well-formed packets is past the front door at once.
//! The seeds are committed, few and small, because the ordinary tests replay them all. Their names are
//! hashes of their bytes, so the same vectors give the same files; a file with any other name was put
//! there by a person, usually after a crash, and is left alone.

mod haulier1;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::Workspace;

/// The vectors that hold packets, and N for each, where one packet in N is taken. The acks are much alike.
const SOURCES: &[(&str, usize)] = &[
    ("malformed.json", 1),
    ("slices.json", 1),
    ("acks.json", 3),
    ("fragments.json", 1),
    ("packets.json", 2),
];

/// Above this a packet is mostly data, in which there is nothing to parse.
const PACKET_BYTES_MAX: usize = 200;

/// The number of longer packets that are taken from each source, for the lengths near the limit.
const LONG_PACKETS: usize = 2;

/// Files by their path from the root.
type Seeds = BTreeMap<PathBuf, Vec<u8>>;

/// Writes the seeds, and removes those that an earlier version made and this one does not.
pub(crate) fn write(workspace: &Workspace) -> Result<(), String> {
    let seeds = seeds(workspace)?;
    for path in stale(workspace, &seeds)? {
        std::fs::remove_file(&path).map_err(|error| at(&path, error))?;
    }
    for (path, bytes) in &seeds {
        let path = workspace.root.join(path);
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(|error| at(directory, error))?;
        std::fs::write(&path, bytes).map_err(|error| at(&path, error))?;
    }
    println!("corpus: {}", size(&seeds));
    Ok(())
}

/// Fails if what is on disk is not what [`write()`] would write.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let seeds = seeds(workspace)?;
    let is_other = |(path, bytes): &(&PathBuf, &Vec<u8>)| {
        std::fs::read(workspace.root.join(path)).ok().as_ref() != Some(bytes)
    };
    let others = seeds.iter().filter(is_other).count();
    let stale = stale(workspace, &seeds)?.len();
    if others + stale > 0 {
        let what = "in fuzz/corpus are not what the vectors make: run `cargo xtask corpus`";
        return Err(format!("{others} missing or changed and {stale} stale seeds {what}"));
    }
    println!("corpus: {}, as committed", size(&seeds));
    Ok(())
}

fn size(seeds: &Seeds) -> String {
    let bytes: usize = seeds.values().map(Vec::len).sum();
    format!("{} seeds, {} KiB", seeds.len(), bytes.div_ceil(1024))
}

fn at(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn seeds(workspace: &Workspace) -> Result<Seeds, String> {
    let mut seeds = Seeds::new();
    for (source, one_in) in SOURCES {
        let packets = packets_of(&vectors(workspace, source)?, *one_in);
        // Otherwise a change in how the vectors are written would leave an empty corpus that passes.
        if packets.is_empty() {
            return Err(format!("vectors/{source}: no packets found in it"));
        }
        seeds.extend(packets.into_iter().map(|bytes| named("parse", bytes)));
    }
    for target in ["peer", "endpoint"] {
        seeds.extend(scripts().into_iter().map(|bytes| named(target, bytes)));
    }
    seeds.extend(haulier1::seeds(&vectors(workspace, "haulier1.json")?)?);
    Ok(seeds)
}

fn vectors(workspace: &Workspace, source: &str) -> Result<Value, String> {
    let path = workspace.root.join("vectors").join(source);
    let text = std::fs::read_to_string(&path).map_err(|error| at(&path, error))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn named(target: &str, bytes: Vec<u8>) -> (PathBuf, Vec<u8>) {
    let path = format!("fuzz/corpus/{target}/{:016x}.bin", fnv1a(&bytes));
    (PathBuf::from(path), bytes)
}

/// FNV-1a: short, and the same on every machine for ever, which is all a file name needs.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The packets in a file of vectors: every text that is called `hex`.
fn packets_of(vectors: &Value, one_in: usize) -> Vec<Vec<u8>> {
    let mut hex = Vec::new();
    collect_hex(vectors, &mut hex);
    let packets = hex.into_iter().step_by(one_in).filter_map(bytes_of_hex);
    let (short, long): (Vec<_>, Vec<_>) = packets.partition(|p| p.len() <= PACKET_BYTES_MAX);
    short.into_iter().chain(long.into_iter().take(LONG_PACKETS)).collect()
}

fn collect_hex<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_hex(value, found)),
        Value::Object(fields) => {
            found.extend(fields.get("hex").and_then(Value::as_str));
            fields.values().for_each(|value| collect_hex(value, found));
        }
        _ => {}
    }
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Scripts for the targets that read every byte as something to do, so that any bytes are a script. Long
/// runs of one deed, all deeds in turn, and noise of many lengths.
fn scripts() -> Vec<Vec<u8>> {
    let mut scripts = vec![Vec::new(), vec![0; 64], vec![0xff; 64], (0..=255).collect()];
    let mut state = 1;
    scripts.extend((0..32).map(|index| noise(&mut state, 16 + index * 584 / 31)));
    scripts
}

/// Knuth's MMIX generator. Its low bits are poor, so the top byte is taken.
fn noise(state: &mut u64, length: usize) -> Vec<u8> {
    let next = |_| {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 56) as u8
    };
    (0..length).map(next).collect()
}

/// Files with a name of ours that are not among the seeds.
fn stale(workspace: &Workspace, seeds: &Seeds) -> Result<Vec<PathBuf>, String> {
    let mut stale = Vec::new();
    for target in ["parse", "peer", "endpoint", "wire", "connection"] {
        let directory = Path::new("fuzz/corpus").join(target);
        // Not there yet: its seeds will be reported as missing, or made.
        let Ok(entries) = std::fs::read_dir(workspace.root.join(&directory)) else { continue };
        for entry in entries {
            let entry = entry.map_err(|error| at(&directory, error))?;
            let name = entry.file_name();
            if is_ours(&name.to_string_lossy()) && !seeds.contains_key(&directory.join(&name)) {
                stale.push(entry.path());
            }
        }
    }
    Ok(stale)
}

fn is_ours(name: &str) -> bool {
    let hash = name.strip_suffix(".bin");
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packets_come_out_of_the_text() {
        let vectors = json!({"cases": [
            {"name": "a", "hex": "00ff"}, {"body_hex": "11", "hex": ""}, {"in": {"hex": "7f"}},
        ]});
        assert_eq!(packets_of(&vectors, 1), [vec![0, 255], vec![], vec![127]]);
        assert_eq!(packets_of(&vectors, 2), [vec![0, 255], vec![127]]);
        assert_eq!(bytes_of_hex("0g"), None);
    }

    #[test]
    fn of_long_packets_only_a_few_are_taken() {
        let nine = |bytes| Value::from(vec![json!({ "hex": "ab".repeat(bytes) }); 9]);
        assert_eq!(packets_of(&nine(PACKET_BYTES_MAX + 1), 1).len(), LONG_PACKETS);
        assert_eq!(packets_of(&nine(PACKET_BYTES_MAX), 1).len(), 9);
    }

    #[test]
    fn names_are_stable_and_known_again() {
        let (path, _) = named("parse", b"a".to_vec());
        // The published FNV-1a of "a".
        assert_eq!(path, Path::new("fuzz/corpus/parse/af63dc4c8601ec8c.bin"));
        assert!(is_ours("af63dc4c8601ec8c.bin"));
        assert!(!is_ours("crash-in-reset.bin") && !is_ours("af63dc4c8601ec8c"));
    }

    #[test]
    fn the_corpus_stays_small() {
        let seeds = seeds(&Workspace::here()).unwrap();
        assert!(seeds.len() <= 700, "{}", seeds.len());
        assert!(seeds.values().map(Vec::len).sum::<usize>() <= 400 * 1024);
        let longest = seeds.iter().filter(|(path, _)| path.starts_with("fuzz/corpus/peer"));
        assert_eq!(longest.map(|(_, bytes)| bytes.len()).max(), Some(600));
    }
}
