//! How fast the disk's side is here: hashing, writing with a journal, reading a journal of 100 GB, cutting,
//! packing.
//!
//! `cargo run --release -p haulier-files --example rates -- FOLDER [MIB]`. The folder gets a file of so
//! many MiB (512), twice, and nothing stays. What is read was just written: it comes out of the system's
//! memory, so these are the rates of the processor and of what the system copies; a disk can only be
//! slower.

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier_files::chunks::{CHUNK_BYTES, chunk_count};
use haulier_files::cut::{cut_file, older_pieces};
use haulier_files::journal::{FileIdentity, Journal};
use haulier_files::packing::{Packer, Unpacker};
use haulier_files::pieces::{Comparison, Recipe};
use haulier_files::pool::{DiskPool, Wake};
use haulier_files::reader::{HashProgress, SourceFile, hash_file};
use haulier_files::unfinished::Unfinished;
use haulier_files::writer::{FileWriter, Full, WriteSettings};
use haulier_proto::connection::ChunkValue;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("say in which folder")?);
    let chunks = args.next().map_or(Ok(512), |mib| mib.parse::<u32>())? * 4;
    let path = folder.join("haulier-rates");
    write(&path, chunks)?;
    let measured = read(&path).and_then(|()| journal(&folder.join("haulier-rates-journal")));
    std::fs::remove_file(&path)?;
    measured
}

/// A chunk that does not repeat, at a cost that does not count.
fn chunk(index: u32) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&index.to_le_bytes());
    let mut bytes = vec![0; CHUNK_BYTES];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

fn show(what: &str, bytes: u64, took: Duration) {
    println!(
        "{what:<44} {:>8.3} s {:>8.2} GB/s",
        took.as_secs_f64(),
        bytes as f64 / took.as_secs_f64() / 1e9
    );
}

fn write(path: &std::path::Path, chunks: u32) -> Result<(), Box<dyn Error>> {
    let length = u64::from(chunks) * CHUNK_BYTES as u64;
    let identity = FileIdentity::new("rates").with_length(length).with_root([0; 32]);
    let few: Vec<Bytes> = (0..64).map(|index| chunk(index).into()).collect();
    let mut root = blake3::Hasher::new();
    for index in 0..chunks {
        root.update(&few[index as usize % 64]);
    }
    let root = *root.finalize().as_bytes();
    for threads in [1, 4] {
        let pool = DiskPool::new(threads, Wake::default())?;
        let settings = WriteSettings::default().with_replace(haulier_files::writer::Replace::File);
        let start = Instant::now();
        let writer = FileWriter::open(pool.handle(), path, &identity, settings)?;
        for index in 0..chunks {
            let mut bytes = few[index as usize % 64].clone();
            while let Err(Full(back)) = writer.push(u64::from(index) * CHUNK_BYTES as u64, bytes) {
                bytes = back;
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        writer.settle()?;
        show(&format!("write, hash and note, {threads} threads"), length, start.elapsed());
        writer.finish(length, root);
        writer.settle()?;
        show("  and synced, under its name", length, start.elapsed());
    }
    Ok(())
}

fn read(path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let file = SourceFile::open(path)?;
    let length = file.version().bytes;
    for threads in [1, 2, 4] {
        let start = Instant::now();
        hash_file(&file, threads, &HashProgress::default())?;
        show(&format!("hash a file, {threads} threads"), length, start.elapsed());
    }
    let start = Instant::now();
    let pieces = cut_file(&file)?;
    show("cut a file and hash its pieces", length, start.elapsed());
    let start = Instant::now();
    let (recipe, older) = (Recipe::new(pieces.clone())?, older_pieces(pieces));
    let comparison = Comparison::new(&recipe, &older);
    show(&format!("compare {} pieces", older.len()), comparison.copied_bytes(), start.elapsed());
    let text: Vec<u8> =
        (0_u32..).flat_map(|i| format!("{i} {} ", i % 97).into_bytes()).take(CHUNK_BYTES).collect();
    for (what, bytes) in [("text", text), ("noise", chunk(0))] {
        let (mut packer, start) = (Packer::new()?, Instant::now());
        let packed: Vec<Bytes> = (0..200).map(|_| packer.pack(&bytes)).collect();
        let share = packed[0].len() * 100 / bytes.len();
        show(&format!("pack {what}, to {share} %"), 200 * CHUNK_BYTES as u64, start.elapsed());
        let (mut unpacker, start) = (Unpacker::new(200 * CHUNK_BYTES as u64)?, Instant::now());
        for packed in packed {
            unpacker.give(&packed);
            unpacker.next_chunk()?.ok_or("a chunk was given")?;
        }
        show(&format!("unpack {what}"), 200 * CHUNK_BYTES as u64, start.elapsed());
    }
    Ok(())
}

/// A journal of all but one chunk of 100 GB, read as a writer reads it; the data is a file of holes.
fn journal(path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let length = 100_000_000_000;
    let identity = FileIdentity::new("rates").with_length(length).with_root([7; 32]);
    let open = |ending: &str| {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.with_extension(ending))
    };
    let (data, storage) = (open("data")?, open("journal")?);
    data.set_len(length)?;
    let start = Instant::now();
    let journal = Journal::create(storage, &identity)?;
    for index in 1..chunk_count(length) {
        journal.note(index, ChunkValue::from_bytes([1; 32]))?;
        if index % 400 == 0 {
            journal.checkpoint(index - 10)?;
        }
    }
    // What no checkpoint covers is hashed when it is read, and the data is holes.
    journal.checkpoint(journal.notes())?;
    println!(
        "{} notes and {} checkpoints written in {:.2} s",
        journal.notes(),
        journal.notes() / 400,
        start.elapsed().as_secs_f64()
    );
    let storage = open("journal")?;
    let bytes = storage.metadata()?.len();
    let start = Instant::now();
    let file = Unfinished::resume(data, storage, &identity)?;
    let missing = file.missing();
    show(&format!("read a journal of {bytes} bytes"), bytes, start.elapsed());
    assert!(
        missing.into_iter().flatten().eq([0])
            && file.unchecked() == chunk_count(length) as usize - 1
    );
    std::fs::remove_file(path.with_extension("data"))?;
    Ok(std::fs::remove_file(path.with_extension("journal"))?)
}
