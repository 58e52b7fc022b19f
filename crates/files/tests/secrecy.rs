//! What a giver hears of a folder: the same, whatever is in it that no fetch has stored. A giver chooses
//! which names, sizes and BLAKE3s it offers, and learned from the answers which of them were there.
//!
//! Two folders are drawn for an offer, and all that a taker says about each is recorded. A failure prints its
//! seed.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use haulier_files::messages::Message;
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer, Root};
use haulier_files::pool::{DiskPool, Wake};
use haulier_files::session::{Link, LinkSpeed, Place, Taking, was_fetched_into};
use haulier_files::taker::{Ask, TakerConfig};
use haulier_files::writer::Replace;
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, CloseCode, Event, SendError, WantedChunk,
};

const SEEDS: u64 = 150;

/// Names that an offer may have, and what else may lie there: so they meet.
const NAMES: [&str; 8] = [
    "secrets.txt",
    "key",
    "maps/a.map",
    "maps/deep/b.map",
    "maps/deep",
    "fetched/c",
    "home/.ssh/id",
    "home/notes",
];

/// Of one chunk, and of a file that would be compared piece by piece.
const SIZES: [usize; 4] = [0, 5, 300_000, 1_200_000];

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }

    fn size(&mut self) -> usize {
        SIZES[self.below(SIZES.len() as u64) as usize]
    }
}

/// A connection that keeps what is said.
#[derive(Default)]
struct Recorder(RefCell<Vec<String>>);

impl Recorder {
    fn note(&self, what: String) {
        self.0.borrow_mut().push(what);
    }
}

impl Link for Recorder {
    fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.note(format!("message {message:?}"));
        Ok(())
    }

    fn send_block(&self, _: &Block) -> Result<BlockHandle, SendError> {
        Err(SendError::NotOpen)
    }

    fn cancel_block(&self, _: BlockHandle, _: u32) {}

    fn decline_block(&self, block: BlockNumber, code: u32) {
        self.note(format!("decline {block:?} {code}"));
    }

    fn have_chunks(&self, root: Root, map: Vec<u8>) {
        self.note(format!("have {root:?} {map:?}"));
    }

    fn want_chunk(&self) -> Option<WantedChunk> {
        None
    }

    fn provide_chunk(&self, _: BlockHandle, _: u32, _: Bytes) {}

    fn arrived_bytes(&self, _: BlockHandle) -> u64 {
        0
    }

    fn all_acked(&self) -> bool {
        true
    }

    fn speed(&self) -> LinkSpeed {
        LinkSpeed::default()
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.note(format!("close {code:?} {reason}"));
    }
}

/// The bytes of an offered file.
fn content(n: usize, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Some of the names, no directory and what is in it among them, with their bytes.
fn draw_offer(draw: &mut Draw, files: usize) -> (Offer, Vec<(&'static str, Vec<u8>)>) {
    let mut drawn: Vec<(&str, Vec<u8>)> = Vec::new();
    while drawn.len() < files {
        let n = draw.below(NAMES.len() as u64) as usize;
        let is_within = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
        if drawn.iter().all(|(name, _)| !is_within(name, NAMES[n]) && !is_within(NAMES[n], name)) {
            let size = draw.size();
            drawn.push((NAMES[n], content(n, size)));
        }
    }
    let entries = drawn.iter().map(|(name, bytes)| {
        let (size, root) = (bytes.len() as u64, *blake3::hash(bytes).as_bytes());
        let is_hashed = draw.below(3) > 0;
        let content = if is_hashed { Content::Known { size, root } } else { Content::Sized(size) };
        Entry::new(SafePath::new(name).unwrap(), content)
    });
    (Offer::new(entries.collect()).unwrap(), drawn)
}

/// What has the name of an offered file: what is offered, something else, or, unless all of them have to be
/// there, nothing.
fn fill(draw: &mut Draw, folder: &Path, offered: &[(&str, Vec<u8>)], are_all_there: bool) {
    let others = ["own", "maps/own", "maps (2)/own", "fetched/own", "home/own"];
    for other in others.into_iter().filter(|_| draw.below(2) == 0) {
        put(&folder.join(other), b"mine");
    }
    for (name, bytes) in offered {
        let path = folder.join(name);
        match draw.below(if are_all_there { 5 } else { 8 }) {
            0 | 1 => put(&path, bytes),
            2 => put(&path, &bytes.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>()),
            3 => put(&path, &vec![7; draw.size()]),
            4 => drop(fs::create_dir_all(&path)),
            5 => put(path.parent().unwrap(), b"no directory"),
            _ => {}
        }
    }
}

/// Where something is in the way, that is it.
fn put(path: &Path, bytes: &[u8]) {
    drop(fs::create_dir_all(path.parent().unwrap()));
    if !path.exists() && fs::write(path, bytes).is_ok() {
        // As an offer has it.
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
}

/// What a taker says of this offer: whether it asks for all at once, and then all it sends.
fn transcript(folder: &Path, offer: &Offer, replace: Replace) -> Vec<String> {
    // One thread, so that files are looked at in the same order.
    let pool = DiskPool::new(1, Wake::new(|| {})).unwrap();
    let place = Place::Folder(folder.to_owned());
    let mut taking = Taking::new(pool.handle(), TakerConfig::new(Ask::Open), place, replace);
    let link = Recorder::default();
    link.note(format!("begun before: {}", was_fetched_into(folder)));
    let data = Message::Offer(offer.to_bytes().into()).to_bytes().into();
    taking.handle_event(&link, Event::Message { channel: 0, data });
    while taking.wants_admission() || taking.is_busy() {
        if taking.wants_admission() {
            let place = taking.make_place().unwrap();
            taking.admit(&link, Some(place), u64::MAX);
        }
        taking.turn(&link);
        thread::yield_now();
    }
    let mut said = link.0.into_inner();
    // Which of two files has its name first is the disk's matter.
    said[1..].sort();
    said
}

/// The transcripts of two drawn folders.
fn two(seed: u64, files: usize, replace: Replace) -> [Vec<String>; 2] {
    let mut draw = Draw(seed);
    let (offer, offered) = draw_offer(&mut draw, files);
    [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        fill(&mut draw, folder.path(), &offered, files == 1);
        transcript(folder.path(), &offer, replace)
    })
}

/// Files of several names: nothing that is there makes a difference, not even that it is there.
#[test]
fn a_giver_of_several_files_hears_the_same_of_any_two_folders() {
    for seed in 0..SEEDS {
        let [one, other] = two(seed, 2 + seed as usize % 3, Replace::Never);
        assert!(one.len() > 2, "seed {seed}: {one:?}");
        assert_eq!(one, other, "seed {seed}");
    }
}

/// One file: a name that is taken is taken, whatever has it.
#[test]
fn a_giver_of_one_file_does_not_hear_what_has_its_name() {
    for seed in 0..SEEDS {
        let [one, other] = two(seed, 1, Replace::Never);
        assert_eq!(one, other, "seed {seed}");
    }
}

/// The oracle sees what it looks for: with leave to replace files they are compared.
#[test]
fn with_leave_to_replace_them_files_are_compared() {
    let differ = |files| {
        (0..SEEDS).filter(move |&seed| {
            let [one, other] = two(seed, files, Replace::File);
            one != other
        })
    };
    assert!(differ(1).count() > 10 && differ(3).count() > 10);
}

/// What a fetch has stored is known again in the same place, and what was put there by others is not.
#[test]
fn a_second_fetch_knows_what_the_first_has_stored() {
    let mut draw = Draw(7);
    let names = ["maps/a.map", "maps/deep/b.map"];
    let entries = names.map(|name| {
        let content = Content::Known { size: 0, root: *blake3::hash(b"").as_bytes() };
        Entry::new(SafePath::new(name).unwrap(), content)
    });
    let offer = Offer::new(entries.into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(&mut draw, folder.path(), &[], false);
    let first = transcript(folder.path(), &offer, Replace::Never);
    let second = transcript(folder.path(), &offer, Replace::Never);
    assert_eq!(first[1..], second[1..], "stored, and here");
    assert_eq!([&*first[0], &*second[0]], ["begun before: false", "begun before: true"]);
    let listed = fs::read_dir(folder.path()).unwrap().flatten();
    let listed = listed.filter(|it| it.path().join(".fetched.haulier-journal").exists());
    assert_eq!(listed.count(), 1, "both in one place");
}
