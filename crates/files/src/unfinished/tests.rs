//! Unfinished files on disks that crash, lie, fail and are full: what is finished is right.

use std::sync::Arc;

use super::*;
use crate::model::{Faults, ModelDisk};

const LAST_BYTES: usize = 1000;

/// Chunks are large, so that files of few of them have to do: seeds make up for it.
const CHUNKS: usize = 6;

/// A draw: splitmix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) % below
    }
}

/// A file whose third chunk is zeros.
fn file_of(seed: u64) -> Vec<u8> {
    let length = (CHUNKS - 1) * CHUNK_BYTES + LAST_BYTES;
    let mut draws = Draws(seed);
    let mut file: Vec<u8> =
        (0..length / 8 + 1).flat_map(|_| draws.below(u64::MAX).to_le_bytes()).collect();
    file.truncate(length);
    file[2 * CHUNK_BYTES..3 * CHUNK_BYTES].fill(0);
    file
}

fn chunk(file: &[u8], index: u32) -> &[u8] {
    let range = chunk_range(file.len() as u64, index);
    &file[range.start as usize..range.end as usize]
}

fn identity_of(file: &[u8]) -> FileIdentity {
    FileIdentity::new("f").with_length(file.len() as u64).with_root(*blake3::hash(file).as_bytes())
}

fn resume(disk: &ModelDisk, file: &[u8]) -> io::Result<Unfinished<crate::model::ModelFile>> {
    Unfinished::resume(disk.file("data"), disk.file("journal"), &identity_of(file))
}

fn check_all<S: Storage>(unfinished: &Unfinished<S>) -> io::Result<usize> {
    let mut checked = 0;
    while let Some(index) = unfinished.next_to_check() {
        unfinished.check(index)?;
        checked += 1;
    }
    Ok(checked)
}

fn finish<S: Storage>(unfinished: &Unfinished<S>, file: &[u8]) -> Result<BlockTree, FinishError> {
    unfinished.finish(file.len() as u64, blake3::hash(file).as_bytes())
}

/// Writes and checks until something fails or a draw ends it; whether the file was finished.
fn run_until_it_ends(disk: &ModelDisk, file: &[u8], draws: &mut Draws) -> io::Result<bool> {
    let unfinished = resume(disk, file)?;
    loop {
        match draws.below(12) {
            0 => return Ok(false),
            1 | 2 => unfinished.checkpoint()?,
            3..=5 => {
                if let Some(index) = unfinished.next_to_check() {
                    unfinished.check(index)?;
                }
            }
            _ => {
                let missing: Vec<u32> = unfinished.missing().into_iter().flatten().collect();
                if missing.is_empty() {
                    check_all(&unfinished)?;
                    match finish(&unfinished, file) {
                        Ok(_) => return Ok(true),
                        Err(FinishError::Io(error)) => return Err(error),
                        Err(FinishError::WrongRoot) => panic!("the right chunks, and a wrong root"),
                        Err(FinishError::Missing) => continue,
                    }
                }
                let index = missing[draws.below(missing.len() as u64) as usize];
                unfinished.write(index, chunk(file, index))?;
            }
        }
    }
}

/// A transfer over a disk with these faults, with crashes and kills, until the file is finished.
fn survives(seed: u64, faults: Faults) {
    let file = file_of(seed);
    let disk = ModelDisk::new(seed, faults);
    let mut draws = Draws(seed ^ 0x5eed);
    let mut lives = 0;
    loop {
        lives += 1;
        assert!(lives < 400, "seed {seed}: it comes to no end");
        if matches!(run_until_it_ends(&disk, &file, &mut draws), Ok(true)) {
            assert_eq!(disk.bytes("data"), file, "seed {seed}, life {lives}");
            return;
        }
        match draws.below(4) {
            0 => disk.kill(),
            1 => {
                disk.flip_a_bit(if draws.below(2) == 0 { "data" } else { "journal" });
                disk.kill();
            }
            _ => disk.crash(),
        }
    }
}

#[test]
fn nothing_wrong_is_finished_after_crashes() {
    (0..60).for_each(|seed| survives(seed, Faults::default()));
}

#[test]
fn nothing_wrong_is_finished_on_a_disk_that_lies() {
    (100..160).for_each(|seed| survives(seed, Faults::default().with_lying(500)));
}

#[test]
fn nothing_wrong_is_finished_on_a_disk_that_fails() {
    (200..260).for_each(|seed| survives(seed, Faults::default().with_failing(60)));
}

/// On an honest disk what is finished is there after a loss of power.
#[test]
fn what_is_finished_survives_a_crash() {
    let file = file_of(1);
    for seed in 0..5 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..CHUNKS as u32).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        finish(&unfinished, &file).unwrap();
        disk.crash();
        assert_eq!(disk.bytes("data"), file);
    }
}

/// What a checkpoint covers is believed after a loss of power without a look, and it is right.
#[test]
fn a_checkpoint_loses_nothing() {
    let file = file_of(2);
    for seed in 0..20 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..3).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        unfinished.checkpoint().unwrap();
        (3..5).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        disk.crash();
        let again = resume(&disk, &file).unwrap();
        assert!((0..3).all(|index| again.is_here(index)));
        check_all(&again).unwrap();
        assert!((0..3).all(|index| again.is_here(index)), "seed {seed}");
    }
}

/// The power fails while another file is begun where this one was: no journal vouches for blank data.
#[test]
fn what_is_cleared_is_not_vouched_for_after_a_crash() {
    let file = file_of(2);
    for seed in 0..20 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..3).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        unfinished.checkpoint().unwrap();
        let (data, journal) = (disk.file("data"), disk.file("journal"));
        Unfinished::clear(&data, Some(&journal)).unwrap();
        data.set_length(file.len() as u64).unwrap();
        disk.crash();
        let again = resume(&disk, &file).unwrap();
        assert!((0..3).all(|index| !again.is_here(index)), "seed {seed}");
    }
}

/// A file is begun where another one was, after a failed sync in another process: the journal is empty in the
/// system's memory alone.
#[test]
fn what_was_cleared_in_vain_is_cleared_again() {
    let file = file_of(2);
    for seed in 0..20 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..3).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        unfinished.checkpoint().unwrap();
        let (data, journal) = (disk.file("data"), disk.file("journal"));
        journal.set_length(0).unwrap();
        disk.set_faults(Faults::default().with_failing(1_000));
        journal.sync().unwrap_err();
        disk.set_faults(Faults::default());
        disk.kill();
        let (data_again, journal_again) = (disk.file("data"), disk.file("journal"));
        drop((data, journal));
        Unfinished::clear(&data_again, Some(&journal_again)).unwrap();
        data_again.set_length(file.len() as u64).unwrap();
        disk.crash();
        let again = resume(&disk, &file).unwrap();
        assert!((0..3).all(|index| !again.is_here(index)), "seed {seed}");
    }
}

/// What was put together was wrong, and the power fails while it comes anew: the old journal does not vouch
/// for it.
#[test]
fn what_was_discarded_is_not_vouched_for_after_a_crash() {
    let file = file_of(2);
    for seed in 0..20 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..3).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        unfinished.checkpoint().unwrap();
        unfinished.discard().unwrap();
        disk.crash();
        let again = resume(&disk, &file).unwrap();
        assert!((0..3).all(|index| !again.is_here(index)), "seed {seed}");
    }
}

/// A killed process loses nothing at all; what no checkpoint covers is hashed at once.
#[test]
fn after_a_kill_the_uncovered_chunks_are_hashed_at_once() {
    let file = file_of(3);
    let disk = ModelDisk::new(3, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    let write = |index| unfinished.write(index, chunk(&file, index)).unwrap();
    [5, 1].into_iter().for_each(write);
    unfinished.checkpoint().unwrap();
    [4, 0].into_iter().for_each(write);
    disk.kill();
    let again = resume(&disk, &file).unwrap();
    assert_eq!((again.missing(), again.unchecked()), (vec![2..4], 2));
    let order: Vec<u32> = std::iter::from_fn(|| again.next_to_check()).collect();
    assert_eq!(order, [1, 5]);
    assert!(matches!(finish(&again, &file), Err(FinishError::Missing)));
    assert!(order.into_iter().all(|index| again.check(index).unwrap()));
    [2, 3].into_iter().for_each(|index| again.write(index, chunk(&file, index)).unwrap());
    finish(&again, &file).unwrap();
}

/// With a checkpoint each second, at most what was written in a second is uncovered, however fast that is.
#[test]
fn a_checkpoint_is_due_each_second() {
    let file = file_of(4);
    let disk = ModelDisk::new(4, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    let second = Duration::from_secs(1);
    let due_at = |ms| unfinished.checkpoint_if_due(Duration::from_millis(ms), second).unwrap();
    unfinished.write(0, chunk(&file, 0)).unwrap();
    let dues: Vec<bool> =
        [5000, 5900, 6000, 6001, 6999, 7100, 9000].into_iter().map(due_at).collect();
    assert_eq!(dues, [false, false, true, false, false, true, true]);
}

/// Linux reports a failed sync once and then forgets it. Whoever tries again believes what is not there.
#[test]
fn after_a_failed_sync_nothing_is_finished() {
    let file = file_of(5);
    let disk = ModelDisk::new(5, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    (0..CHUNKS as u32).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
    disk.set_faults(Faults::default().with_failing(1000));
    assert!(unfinished.checkpoint().is_err());
    disk.set_faults(Faults::default());
    assert!(unfinished.checkpoint().is_err());
    assert!(matches!(finish(&unfinished, &file), Err(FinishError::Io(_))));
}

#[test]
fn a_full_disk_is_an_error_and_what_is_here_stays() {
    let file = file_of(6);
    let disk = ModelDisk::new(6, Faults::default().with_full_at(3 * CHUNK_BYTES as u64 + 4096));
    let unfinished = resume(&disk, &file).unwrap();
    let write = |index| unfinished.write(index, chunk(&file, index));
    assert!((0..3).all(|index| write(index).is_ok()));
    assert_eq!(write(3).unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.kill();
    disk.set_faults(Faults::default());
    let again = resume(&disk, &file).unwrap();
    assert_eq!(again.missing(), [3..6]);
}

/// The right values of another file: everything is as noted, and still it does not get the name.
#[test]
fn another_file_is_found_by_its_root() {
    let (file, other) = (file_of(7), file_of(8));
    let disk = ModelDisk::new(7, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    (0..CHUNKS as u32).for_each(|index| unfinished.write(index, chunk(&other, index)).unwrap());
    assert!(matches!(finish(&unfinished, &file), Err(FinishError::WrongRoot)));
}

#[test]
fn chunks_of_wrong_lengths_are_refused() {
    let file = file_of(9);
    let disk = ModelDisk::new(9, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    assert!(unfinished.write(0, &file[..5]).is_err() && unfinished.write(0, &[]).is_err());
    assert!(unfinished.write(9, &file[..5]).is_err());
    let pipe = Unfinished::create(disk.file("pipe"), None, &FileIdentity::new("pipe")).unwrap();
    assert!(pipe.write(0, &[]).is_err() && pipe.write(0, &vec![1; CHUNK_BYTES + 1]).is_err());
}

/// Files of no known length: empty, one chunk, and more.
#[test]
fn a_pipe_gets_its_length_at_the_end() {
    for length in [0, 9, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let file = &file_of(10)[..length];
        let disk = ModelDisk::new(10, Faults::default());
        let pipe = Unfinished::create(disk.file("data"), None, &FileIdentity::new("pipe")).unwrap();
        for (index, bytes) in (0..).zip(file.chunks(CHUNK_BYTES)) {
            pipe.write(index, bytes).unwrap();
        }
        assert_eq!(finish(&pipe, file).unwrap(), BlockTree::of(file), "{length}");
        assert_eq!(disk.bytes("data"), file);
    }
}

/// An older version and the pieces that it lacks, in any order and of any length.
#[test]
fn a_file_is_put_together_from_pieces() {
    let file = file_of(11);
    let disk = ModelDisk::new(11, Faults::default());
    let mut draws = Draws(12);
    let mut cuts: Vec<usize> = (0..40).map(|_| draws.below(file.len() as u64) as usize).collect();
    cuts.extend([0, file.len()]);
    cuts.sort_unstable();
    let mut pieces: Vec<(usize, usize)> = cuts.windows(2).map(|it| (it[0], it[1])).collect();
    pieces.reverse();
    pieces.rotate_left(11);
    let pipe = Unfinished::create(disk.file("pipe"), None, &FileIdentity::new("pipe")).unwrap();
    let unfinished = resume(&disk, &file).unwrap();
    for (start, end) in pieces {
        assert!(matches!(finish(&unfinished, &file), Err(FinishError::Missing)) || start == end);
        unfinished.write_at(start as u64, &file[start..end]).unwrap();
        pipe.write_at(start as u64, &file[start..end]).unwrap();
    }
    assert_eq!(finish(&unfinished, &file).unwrap(), BlockTree::of(&file));
    assert_eq!(finish(&pipe, &file).unwrap(), BlockTree::of(&file));
    assert_eq!((disk.bytes("data"), disk.bytes("pipe")), (file.clone(), file.clone()));
    assert!(unfinished.write_at(file.len() as u64 - 1, b"xy").is_err());
    disk.kill();
    assert_eq!(resume(&disk, &file).unwrap().missing(), []);
}

/// A piece that is written over a chunk makes it another one.
#[test]
fn a_chunk_that_is_written_over_is_missing() {
    let file = file_of(13);
    let disk = ModelDisk::new(13, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    unfinished.write(0, chunk(&file, 0)).unwrap();
    unfinished.write_at(5, b"other").unwrap();
    assert!(!unfinished.is_here(0));
    unfinished.write(0, chunk(&file, 0)).unwrap();
    assert!(unfinished.is_here(0));
}

#[test]
fn what_was_discarded_is_not_in_the_journal() {
    let file = file_of(14);
    let disk = ModelDisk::new(14, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    (0..3).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
    unfinished.discard().unwrap();
    assert_eq!(unfinished.missing(), [0..CHUNKS as u32]);
    unfinished.write(4, chunk(&file, 4)).unwrap();
    disk.kill();
    let again = resume(&disk, &file).unwrap();
    assert_eq!((again.missing(), again.unchecked()), (vec![0..4, 5..6], 0));
}

/// A file during whose sync something happens, after what it was to sync.
struct Interrupted {
    file: crate::model::ModelFile,
    during_sync: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Storage for Arc<Interrupted> {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<bool> {
        self.file.punch_hole(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()?;
        let act = self.during_sync.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }
}

/// A thread writes and notes a chunk while another one syncs. The checkpoint stands behind that note, and
/// is not about it: the chunk may not be on the disk.
#[test]
fn a_checkpoint_does_not_cover_what_was_written_during_its_sync() {
    let file = file_of(15);
    let disk = ModelDisk::new(15, Faults::default());
    let storage =
        |name| Arc::new(Interrupted { file: disk.file(name), during_sync: Mutex::default() });
    let (data, journal) = (storage("data"), storage("journal"));
    let unfinished = Unfinished::create(data.clone(), Some(journal), &identity_of(&file)).unwrap();
    let unfinished = Arc::new(unfinished);
    unfinished.write(4, chunk(&file, 4)).unwrap();
    let (writer, bytes) = (Arc::clone(&unfinished), chunk(&file, 1).to_vec());
    *data.during_sync.lock().unwrap() = Some(Box::new(move || writer.write(1, &bytes).unwrap()));
    unfinished.checkpoint().unwrap();
    disk.kill();
    let (_, recovered) = Journal::open(disk.file("journal"), &identity_of(&file)).unwrap().unwrap();
    let beliefs: Vec<_> = recovered.chunks().map(|(index, _, belief)| (index, belief)).collect();
    assert_eq!(beliefs, [(1, Belief::Written), (4, Belief::Synced)]);
}

/// The time that a slow disk takes is counted, for drivers with a virtual clock.
#[test]
fn a_slow_disk_is_busy() {
    let file = file_of(16);
    let disk = ModelDisk::new(16, Faults::default().with_bytes_per_second(CHUNK_BYTES as u64));
    let unfinished = resume(&disk, &file).unwrap();
    let before = disk.busy();
    unfinished.write(0, chunk(&file, 0)).unwrap();
    let took = disk.busy() - before;
    assert!((1.0..1.01).contains(&took.as_secs_f64()), "{took:?}");
}

/// After a loss of power some of what no checkpoint covered is wrong. That is known before the rest is asked
/// for, else it would be found at the end, and the file fetched again whole; no checkpoint vouches for it.
#[test]
fn what_a_loss_of_power_took_is_missing_at_once_and_stays_so() {
    let file = file_of(17);
    let disk = ModelDisk::new(17, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    (0..2).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
    disk.kill();
    disk.file("data").write_at(b"lost", 9).unwrap();
    for _ in 0..2 {
        let unfinished = resume(&disk, &file).unwrap();
        assert_eq!([0, 1].map(|index| unfinished.is_here(index)), [false, true]);
        unfinished.checkpoint().unwrap();
        disk.kill();
    }
    assert_eq!(resume(&disk, &file).unwrap().unchecked(), 1);
}

/// What a failed sync did not write is in the system's memory still, as if it were on the disk, and no later
/// sync writes it: the process after that would give its name to a file that a loss of power takes.
#[test]
fn what_a_failed_sync_left_is_written_again_by_the_next_process() {
    let file = file_of(18);
    for seed in 0..20 {
        let disk = ModelDisk::new(seed, Faults::default());
        let unfinished = resume(&disk, &file).unwrap();
        (0..CHUNKS as u32).for_each(|index| unfinished.write(index, chunk(&file, index)).unwrap());
        disk.set_faults(Faults::default().with_failing(500));
        let _may_fail = if seed % 2 == 0 {
            unfinished.checkpoint().is_ok()
        } else {
            finish(&unfinished, &file).is_ok()
        };
        disk.set_faults(Faults::default());
        // As a program that leaves does: it must not cover what is not on the disk.
        let _may_refuse = unfinished.checkpoint();
        disk.kill();
        let unfinished = resume(&disk, &file).unwrap();
        check_all(&unfinished).unwrap();
        finish(&unfinished, &file).unwrap();
        disk.crash();
        assert!(disk.bytes("data") == file, "seed {seed}");
    }
}

/// What a failed sync left is not on the disk, be it a chunk, a note of one, or the length of the file. The
/// checkpoint of a later process vouches for all of them, so that they are there after a loss of power.
#[test]
fn a_checkpoint_after_failed_syncs_loses_nothing() {
    let file = file_of(21);
    for seed in 0..40 {
        let disk = ModelDisk::new(seed, Faults::default());
        // As the writer does: the file has its length before anything is written.
        disk.file("data").set_length(file.len() as u64).unwrap();
        for index in 0..3 {
            let unfinished = resume(&disk, &file).unwrap();
            unfinished.write(index, chunk(&file, index)).unwrap();
            disk.set_faults(Faults::default().with_failing(500));
            let _may_fail = unfinished.checkpoint();
            disk.set_faults(Faults::default());
            disk.kill();
        }
        let unfinished = resume(&disk, &file).unwrap();
        unfinished.write(3, chunk(&file, 3)).unwrap();
        unfinished.checkpoint().unwrap();
        disk.crash();
        assert_eq!(disk.bytes("data").len(), file.len(), "seed {seed}: the length is lost");
        let again = resume(&disk, &file).unwrap();
        check_all(&again).unwrap();
        assert_eq!(again.missing(), [4..6], "seed {seed}");
    }
}

/// A chunk of another version is written over the old one, and the disk fails half-way: it is neither one.
#[test]
fn a_chunk_that_was_half_written_over_is_missing() {
    let (file, other) = (file_of(19), file_of(20));
    let disk = ModelDisk::new(19, Faults::default());
    let unfinished = resume(&disk, &file).unwrap();
    for bytes in [chunk(&other, 0), &chunk(&other, 0)[..9000]] {
        unfinished.write(0, chunk(&file, 0)).unwrap();
        disk.set_faults(Faults::default().with_failing(1000));
        assert!(unfinished.write_at(0, bytes).is_err());
        disk.set_faults(Faults::default());
        assert!(!unfinished.is_here(0));
    }
}
