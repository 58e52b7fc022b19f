//! Replays the fuzz corpus, so that what a fuzzer once found stays found.

use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "only {} files in the corpus of {target}", files.len());
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(file).unwrap());
    }
}

#[test]
fn parsers() {
    replay("parse", haulier_sim::hostile::parse);
}

#[test]
fn peers() {
    replay("peer", haulier_sim::hostile::peer);
}

#[test]
fn the_parsers_of_haulier_1() {
    replay("wire", haulier_sim::hostile::wire);
}

#[test]
fn connections_with_a_hostile_peer() {
    replay("connection", haulier_sim::hostile::connection);
}

#[test]
fn endpoints() {
    replay("endpoint", haulier_sim::hostile::endpoint);
}
