//! Processes that write a file and are killed, at any moment, again and again: what they leave is right,
//! and the next one goes on with it.
//!
//! A child pushes what is missing and reports each chunk that was written. It is killed after a number of
//! reports that is drawn, and a moment later that is drawn too. Then every chunk that was reported must be
//! in the journal, every chunk in the journal must be in the file, and the next child may want none of them
//! again.
//!
//! `HAULIER_KILLS=1000 HAULIER_SEED=7 cargo test -p haulier-files --test kill -- --nocapture` kills more
//! often than the ordinary run, and prints what it found: among it how long before its kill the oldest
//! chunk was written that no checkpoint covered. That is the time between checkpoints, what a sync takes,
//! and what a busy machine lets both processes wait, so no bound is asserted; that a checkpoint is due in
//! time is a test of the unfinished file's, with a clock that it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier_files::chunks::{CHUNK_BYTES, chunk_range};
use haulier_files::journal::{Belief, FileIdentity, Journal};
use haulier_files::model::{Faults, ModelDisk};
use haulier_files::pool::{DiskPool, Wake};
use haulier_files::storage::Storage;
use haulier_files::writer::{FileWriter, Full, WriteSettings, WriteState};
use haulier_proto::connection::ChunkValue;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Where a child writes; without it the test that is the child has nothing to do.
const FOLDER: &str = "HAULIER_KILL_FOLDER";

/// Which file it writes.
const FILE_SEED: &str = "HAULIER_KILL_FILE";

/// A file of 12 MiB and a bit: some lives long, if a life writes a tenth of it.
const CHUNKS: usize = 48;

/// Between checkpoints of a child: a hundredth of the usual time, for its life is as short.
const INTERVAL: Duration = Duration::from_millis(10);

/// Kills in an ordinary run: a few seconds.
const KILLS: u64 = 40;

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

fn file_of(seed: u64) -> Vec<u8> {
    let mut file = vec![0; CHUNKS * CHUNK_BYTES + 777];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut file);
    file[5 * CHUNK_BYTES..9 * CHUNK_BYTES].fill(0);
    file
}

fn identity_of(file: &[u8]) -> FileIdentity {
    FileIdentity::new("world")
        .with_length(file.len() as u64)
        .with_root(*blake3::hash(file).as_bytes())
}

fn chunk(file: &[u8], index: u32) -> &[u8] {
    let range = chunk_range(file.len() as u64, index);
    &file[range.start as usize..range.end as usize]
}

/// The child. It reports with lines: `pushed INDEX`, `here INDEX`, `finishing`, `stored`.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let seed = number(FILE_SEED, 0);
    let file = file_of(seed);
    let pool = DiskPool::new(2, Wake::default()).unwrap();
    let settings = WriteSettings::default().with_checkpoint_interval(INTERVAL);
    let path = folder.join("world");
    let writer = FileWriter::open(pool.handle(), &path, &identity_of(&file), settings).unwrap();
    loop {
        let mut pushed: Vec<u32> = Vec::new();
        let report = |pushed: &mut Vec<u32>| {
            pushed.retain(|&index| {
                let is_here = writer.is_here(index);
                if is_here {
                    println!("here {index}");
                }
                !is_here
            });
        };
        let mut missing: Vec<u32> = writer.missing().into_iter().flatten().collect();
        let turn = (seed as usize * 7) % missing.len().max(1);
        missing.rotate_left(turn);
        for index in missing {
            println!("pushed {index}");
            let mut bytes = Bytes::copy_from_slice(chunk(&file, index));
            while let Err(Full(back)) = writer.push(u64::from(index) * CHUNK_BYTES as u64, bytes) {
                writer.settle().unwrap();
                bytes = back;
            }
            pushed.push(index);
            report(&mut pushed);
        }
        writer.settle().unwrap();
        report(&mut pushed);
        println!("finishing");
        writer.finish(file.len() as u64, *blake3::hash(&file).as_bytes());
        if writer.settle().unwrap() == WriteState::Stored {
            println!("stored");
            return;
        }
    }
}

/// What the parent knows of a file.
#[derive(Default)]
struct Seen {
    /// The chunks that were reported as written, and when.
    reported: BTreeMap<u32, Instant>,
    killed: Option<Instant>,
    /// What the journal had after the last kill.
    recovered: BTreeSet<u32>,
    is_stored: bool,
}

/// What all kills showed.
#[derive(Debug, Default)]
struct Findings {
    kills: u64,
    kills_while_finishing: u64,
    files: u64,
    synced: usize,
    hashed_again: usize,
    most_hashed_again: usize,
    oldest_hashed_again: Duration,
    came_twice: usize,
}

fn start(folder: &Path, seed: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).stdout(Stdio::piped());
    command.env(FOLDER, folder).env(FILE_SEED, seed.to_string()).spawn().unwrap()
}

/// One run of a child; it is killed after a number of lines, or after it reports that it is finishing.
fn live(
    folder: &Path,
    seed: u64,
    draws: &mut Xoshiro256PlusPlus,
    seen: &mut Seen,
    findings: &mut Findings,
) {
    let kill_at_the_end = draws.next_u64().is_multiple_of(4);
    let lines = 1 + draws.next_u64() % 60;
    let moment = Duration::from_micros(draws.next_u64() % 3000);
    let mut child = start(folder, seed);
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    let mut is_finishing = false;
    for line in output.by_ref() {
        is_finishing |= seen.read(&line.unwrap(), findings);
        count += 1;
        if if kill_at_the_end { is_finishing } else { count >= lines } {
            break;
        }
    }
    std::thread::sleep(moment);
    let is_killed = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    seen.killed = Some(Instant::now());
    for line in output.map_while(Result::ok) {
        is_finishing |= seen.read(&line, findings);
    }
    let status = child.wait().unwrap();
    assert!(is_killed || status.success(), "file {seed}: the child failed");
    findings.kills += u64::from(is_killed);
    findings.kills_while_finishing += u64::from(is_killed && is_finishing);
}

impl Seen {
    /// Takes a report; whether it says that the child is finishing.
    fn read(&mut self, line: &str, findings: &mut Findings) -> bool {
        match line.split_once(' ') {
            Some(("here", index)) => {
                self.reported.entry(index.parse().unwrap()).or_insert_with(Instant::now);
            }
            Some(("pushed", index)) => {
                let index: u32 = index.parse().unwrap();
                assert!(!self.recovered.contains(&index), "chunk {index} was here, and came again");
                findings.came_twice += usize::from(self.reported.contains_key(&index));
            }
            None if line == "stored" => self.is_stored = true,
            None if line == "finishing" => return true,
            _ => {}
        }
        false
    }

    /// How long before the kill a chunk was written.
    fn age_of(&self, index: u32) -> Duration {
        let age = self.killed.zip(self.reported.get(&index));
        age.map_or(Duration::ZERO, |(killed, written)| killed.saturating_duration_since(*written))
    }

    /// After a kill: what the journal has is in the file, and what was reported is in the journal.
    fn check(&mut self, folder: &Path, file: &[u8], findings: &mut Findings) {
        let data = std::fs::read(folder.join("world.haulier-part")).unwrap_or_default();
        let journal = std::fs::read(folder.join("world.haulier-journal")).unwrap_or_default();
        // A copy: opening a journal cuts off what is damaged.
        let copy = ModelDisk::new(0, Faults::default()).file("journal");
        copy.write_at(&journal, 0).unwrap();
        let mut hashed_again = 0;
        self.recovered.clear();
        if let Ok((_, recovered)) = Journal::open(copy, &identity_of(file)).unwrap() {
            for (index, value, belief) in recovered.chunks() {
                assert_eq!(
                    value,
                    ChunkValue::of(file.len() as u64, index, chunk(&data, index)),
                    "chunk {index}"
                );
                assert_eq!(chunk(&data, index), chunk(file, index), "chunk {index}");
                if belief == Belief::Written {
                    hashed_again += 1;
                    findings.oldest_hashed_again =
                        findings.oldest_hashed_again.max(self.age_of(index));
                }
                self.recovered.insert(index);
            }
        }
        let is_lost = |index| !self.recovered.contains(index);
        assert!(!self.reported.keys().any(is_lost), "what was written was lost");
        findings.synced += self.recovered.len() - hashed_again;
        findings.hashed_again += hashed_again;
        findings.most_hashed_again = findings.most_hashed_again.max(hashed_again);
    }
}

#[test]
fn a_process_that_is_killed_leaves_what_the_next_goes_on_with() {
    let kills = number("HAULIER_KILLS", KILLS);
    let seed = number("HAULIER_SEED", 1);
    println!("HAULIER_KILLS={kills} HAULIER_SEED={seed}");
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut findings = Findings::default();
    while findings.kills < kills {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world");
        let (file_seed, mut seen) = (findings.files, Seen::default());
        let file = file_of(file_seed);
        while !path.exists() {
            live(folder.path(), file_seed, &mut draws, &mut seen, &mut findings);
            assert!(path.exists() || !seen.is_stored, "it was reported, and is not there");
            if !path.exists() {
                seen.check(folder.path(), &file, &mut findings);
            }
        }
        assert!(std::fs::read(&path).unwrap() == file, "file {file_seed} of seed {seed} is wrong");
        assert!(!folder.path().join("world.haulier-part").exists());
        haulier_files::writer::remove_leftover(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        findings.files += 1;
    }
    println!("{findings:?}");
    assert_eq!(findings.came_twice, 0);
    // Of forty kills none may be long enough after a checkpoint; of a thousand some are.
    assert!(kills < 1_000 || findings.synced > 0, "checkpoints are made");
}
