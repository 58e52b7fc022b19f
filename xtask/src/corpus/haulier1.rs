//! The seeds of the targets that read haulier/1, from its golden vectors.
//!
//! `wire` reads its input as one datagram or any part of one, so every piece of the vectors is a seed. For
//! `connection` a seed is a script: its role, and then plaintexts with a time step after each. The invariant:
//! every type of frame that the vectors have is among the seeds of both.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Seeds, bytes_of_hex, named, packets_of};

/// The lists of the vectors that `wire` reads, and one in how many of each is taken.
const PIECES: &[(&str, usize)] = &[
    ("frames", 1),
    ("broken_frames", 2),
    ("hellos", 1),
    ("welcomes", 1),
    ("broken_parameters", 2),
    ("requests", 1),
    ("responses", 3),
    ("data", 6),
    ("retries", 2),
    ("refusals", 6),
    ("in_lines", 2),
    ("version_answers", 1),
    ("resets", 2),
];

/// Frames that an end takes without closing the connection, in the order in which a script has them, so that
/// what comes behind them is reached.
const TAKEN: &[&str] = &[
    "padding: many",
    "ping",
    "progress: nothing announced",
    "arrivals: newest alone",
    "ack_frequency: least",
    "packet: small",
    "fragment: first of two",
    "fragment: last of 256",
    "message: ordered",
    "message: unordered",
    "message: first part",
    "channel_limit: first",
    "path_challenge",
    "path_response",
    "root_here",
    "unknown: ack-eliciting",
    "unknown: greasing",
    "ack_frequency: most",
    "close: the application's",
];

/// The longest plaintext of a script, in bytes: those of a datagram on any path.
const MAX_PLAINTEXT_BYTES: usize = 1170;

/// The operations of a script: a number N, before N times 6 bytes that are a plaintext, and a wait of 8 ms.
const PLAINTEXT_UNIT: usize = 6;
const WAIT: u8 = 209;

/// The seeds of both targets.
pub(super) fn seeds(vectors: &Value) -> Result<Seeds, String> {
    let mut seeds = Seeds::new();
    for &(list, one_in) in PIECES {
        let pieces = packets_of(of(vectors, list)?, one_in);
        if pieces.is_empty() {
            return Err(format!("vectors/haulier1.json: nothing found in {list}"));
        }
        seeds.extend(pieces.into_iter().map(|bytes| named("wire", bytes)));
    }
    for list in ["tokens", "tickets"] {
        let texts = of(vectors, list)?.as_array().into_iter().flatten();
        let texts = texts.filter_map(|piece| piece["text"].as_str());
        seeds.extend(texts.map(|text| named("wire", text.as_bytes().to_vec())));
    }
    seeds.extend(scripts(vectors)?.into_iter().map(|bytes| named("connection", bytes)));
    Ok(seeds)
}

fn of<'v>(vectors: &'v Value, list: &str) -> Result<&'v Value, String> {
    vectors.get(list).ok_or_else(|| format!("vectors/haulier1.json: it has no {list}"))
}

/// For a server and for a client: the frames of each type, in a script of their own, and those that are
/// taken, in one.
fn scripts(vectors: &Value) -> Result<Vec<Vec<u8>>, String> {
    let mut by_type = BTreeMap::<&str, Vec<Vec<u8>>>::new();
    let mut by_name = BTreeMap::<&str, Vec<u8>>::new();
    for vector in of(vectors, "frames")?.as_array().into_iter().flatten() {
        let kind = vector["frame"]["type"].as_str().ok_or("a frame has no type")?;
        let name = vector["name"].as_str().ok_or("a frame has no name")?;
        let frame = vector["hex"].as_str().and_then(bytes_of_hex).ok_or("a frame has no hex")?;
        if frame.len() <= MAX_PLAINTEXT_BYTES {
            by_type.entry(kind).or_default().push(frame.clone());
            by_name.insert(name, frame);
        }
    }
    let taken = TAKEN
        .iter()
        .map(|name| by_name.get(name).cloned().ok_or_else(|| format!("no frame is called {name}")));
    let taken = taken.collect::<Result<Vec<_>, _>>()?;
    let all = || by_type.values().chain([&taken]);
    Ok((0..=1).flat_map(|role| all().map(move |frames| script(role, frames))).collect())
}

fn script(role: u8, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut script = vec![role];
    for frame in frames {
        let units = frame.len().div_ceil(PLAINTEXT_UNIT);
        script.push(u8::try_from(units).expect("a plaintext of a datagram"));
        // Padding comes first: a slice goes to the end of its datagram.
        script.resize(script.len() + units * PLAINTEXT_UNIT - frame.len(), 0);
        script.extend_from_slice(frame);
        script.push(WAIT);
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn a_script_is_a_role_and_padded_plaintexts() {
        assert_eq!(
            script(1, &[vec![7; 5], vec![8; 6]]),
            [&[1, 1, 0, 7, 7, 7, 7, 7, WAIT][..], &[1, 8, 8, 8, 8, 8, 8, WAIT]].concat()
        );
    }

    /// A type of frame without a vector would be a type without a seed.
    #[test]
    fn each_type_of_frame_has_seeds() {
        let vectors = super::super::vectors(&Workspace::here(), "haulier1.json").unwrap();
        let frames = of(&vectors, "frames").unwrap().as_array().unwrap();
        for kind in 0..=24u8 {
            let has = |frame: &Value| {
                bytes_of_hex(frame["hex"].as_str().unwrap())
                    .is_some_and(|bytes| bytes.first() == Some(&kind))
            };
            assert!(frames.iter().any(has), "type {kind}");
        }
        let seeds = seeds(&vectors).unwrap();
        let of_target = |target| seeds.keys().filter(move |path| path.starts_with(target)).count();
        assert!(of_target("fuzz/corpus/connection") >= 50);
        assert!(of_target("fuzz/corpus/wire") >= 150);
    }
}
