//! Whole transfers between a giver and a taker, over a connection and disks in memory, in orders that a
//! seed draws.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "sets of chunks are lists of ranges, often of one"
)]

mod disks;
mod world;

use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry};
use haulier_files::reason::{ANOTHER_FILE, DONE, Fault, INCOMPLETE, OVER_QUOTA, Reason};
use haulier_files::taker::{Ask, TakerConfig, TakerEvent};
use haulier_files::{BlockTag, Only, Ranges};
use haulier_proto::Instant;

use crate::disks::Before;
use crate::world::World;

const MIB: usize = 1 << 20;
const CHUNK: usize = 1 << 18;

/// Bytes that do not repeat.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut out);
    out
}

fn path(path: &str) -> SafePath {
    SafePath::new(path).unwrap()
}

fn known(name: &str, bytes: Vec<u8>) -> (Entry, Vec<u8>) {
    let root = *blake3::hash(&bytes).as_bytes();
    (Entry::new(path(name), Content::Known { size: bytes.len() as u64, root }), bytes)
}

fn sized(name: &str, bytes: Vec<u8>) -> (Entry, Vec<u8>) {
    (Entry::new(path(name), Content::Sized(bytes.len() as u64)), bytes)
}

fn pipe(name: &str, bytes: Vec<u8>) -> (Entry, Vec<u8>) {
    (Entry::new(path(name), Content::Stream), bytes)
}

const ASKS: [Ask; 3] = [Ask::Get, Ask::Open, Ask::Inbox];

/// All files arrive, whoever asks, and no more bytes than they have.
fn transfer(files: &[(Entry, Vec<u8>)]) {
    for (ask, seed) in ASKS.into_iter().flat_map(|ask| [1, 2, 3].map(|seed| (ask, seed))) {
        let mut world = World::new(seed, TakerConfig::new(ask), files.to_vec());
        assert_eq!(world.run(), DONE, "{ask:?} {seed}");
        world.assert_all_stored();
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!(world.wire_bytes, bytes, "{ask:?} {seed}");
        let progress = world.taker.progress(Instant::from_millis(1_000_000));
        // Empty directories are no files.
        let count = files.iter().filter(|(entry, _)| !entry.is_directory()).count() as u32;
        assert_eq!((progress.files_done, progress.files), (count, count));
        assert_eq!(
            (progress.verified_bytes, progress.wire_bytes, progress.wanted_bytes),
            (bytes, bytes, bytes)
        );
    }
}

#[test]
fn one_file_of_any_size() {
    for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 20 * CHUNK + 7] {
        transfer(&[known("world.bin", noise(size as u64, size))]);
    }
}

/// Parts of 1, 4 and 16 MiB, and at the end the BLAKE3 hash that was not known before.
#[test]
fn a_file_that_nobody_has_hashed_goes_in_parts() {
    for size in [0, 1, CHUNK, MIB, MIB + 1, 6 * MIB + 5] {
        transfer(&[sized("world.bin", noise(size as u64, size))]);
    }
    let mut world =
        World::new(1, TakerConfig::new(Ask::Get), vec![sized("a", noise(1, 22 * MIB + 5))]);
    world.run();
    assert_eq!(world.sent.len(), 4, "{:?}", world.sent);
}

#[test]
fn a_pipe_ends_where_it_ends() {
    for size in [0, 1, MIB - 1, MIB, 6 * MIB + 77] {
        transfer(&[pipe("log", noise(size as u64, size))]);
    }
}

#[test]
fn a_directory_of_a_hundred_files() {
    let mut files: Vec<_> = (0..97)
        .map(|at| known(&format!("maps/{at}/a.map"), noise(at, at as usize * 999)))
        .collect();
    files.push(sized("mods/big.pak", noise(500, 2 * MIB)));
    files.push(pipe("mods/log", noise(501, MIB / 2)));
    files.push((Entry::new(path("void"), Content::Directory), Vec::new()));
    transfer(&files);
}

/// Its offer has more than 60,000 bytes, so it is a block.
#[test]
fn an_offer_that_is_too_long_for_a_message() {
    let files: Vec<_> =
        (0..1000).map(|at| known(&format!("maps/some/where/{at}"), noise(at, 10))).collect();
    for ask in ASKS {
        let mut world = World::new(5, TakerConfig::new(ask), files.clone());
        assert_eq!(world.run(), DONE);
        assert!(world.sent.contains(&BlockTag::Offer));
        world.assert_all_stored();
    }
}

#[test]
fn what_is_here_already_is_not_sent() {
    let bytes = noise(1, 3 * MIB);
    for seed in 1..6 {
        let mut world = World::new(
            seed,
            TakerConfig::new(Ask::Open),
            vec![known("a", bytes.clone()), known("b", Vec::new())],
        );
        world.taker_disk.stored.insert(1, bytes.clone());
        assert_eq!(world.run(), DONE);
        assert_eq!(world.wire_bytes, 0);
        assert!(world.taker_events.contains(&TakerEvent::Here { file: 1 }));
        assert_eq!(world.taker.progress(Instant::from_millis(9)).here_bytes, 3 * MIB as u64);
    }
}

/// The file is not hashed yet, and one of its size and time is here: its root is asked for, and none of its
/// bytes come. If it is another one, size and time say nothing.
#[test]
fn size_and_time_do_not_make_a_file_the_same() {
    let (new, old) = (noise(1, 2 * MIB), noise(2, 2 * MIB));
    for (ask, seed) in ASKS.into_iter().flat_map(|ask| (1..5).map(move |seed| (ask, seed))) {
        for here in [&new, &old] {
            let files = vec![sized("a", new.clone()), known("b", noise(3, 300))];
            let mut world = World::new(seed, TakerConfig::new(ask), files);
            let file = world.giver.offer().entries().iter().position(|it| it.root().is_none());
            let file = file.unwrap() as u32;
            world.taker_disk.stored.insert(file, here.clone());
            world.taker_disk.dated.insert(file);
            world.taker_disk.before.insert(file, Before::Old(old.clone()));
            assert_eq!(world.run(), DONE, "{ask:?} {seed}");
            world.assert_all_stored();
            let is_here = world.taker_events.contains(&TakerEvent::Here { file });
            assert_eq!(is_here, here == &new, "{ask:?} {seed}");
            if is_here && ask != Ask::Get {
                assert_eq!(world.wire_bytes, 300, "{ask:?} {seed}");
            }
        }
    }
}

/// Asked for everything at once, and one of the files is here: what is on its way of it is declined.
#[test]
fn what_comes_unasked_and_is_here_is_declined() {
    let here = noise(1, 8 * MIB);
    for seed in 1..20 {
        let files = vec![
            known("a", here.clone()),
            sized("b", noise(2, 3 * MIB)),
            known("c", noise(3, 2 * MIB)),
        ];
        let mut world = World::new(seed, TakerConfig::new(Ask::Get), files);
        world.taker_disk.stored.insert(0, here.clone());
        let half = Ranges::up_to(4);
        world
            .taker_disk
            .before
            .insert(1, Before::Part(half.clone(), noise(2, 3 * MIB)[..MIB].to_vec()));
        world.taker_disk.before.insert(2, Before::Part(half, noise(3, 2 * MIB)[..MIB].to_vec()));
        assert_eq!(world.run(), DONE, "seed {seed}");
        world.assert_all_stored();
    }
}

#[test]
fn an_interrupted_file_goes_on() {
    let bytes = noise(7, 10 * MIB + 3);
    let chunks = Ranges::from_iter([0..9, 11..12, 30..41]);
    let on_disk: Vec<u8> =
        bytes
            .iter()
            .enumerate()
            .map(|(at, &byte)| {
                if chunks.touches(&((at / CHUNK) as u64..(at / CHUNK) as u64 + 1)) {
                    byte
                } else {
                    0
                }
            })
            .collect();
    for (content, ask) in [
        (true, Ask::Open),
        (false, Ask::Open),
        (true, Ask::Inbox),
        (false, Ask::Inbox),
        (true, Ask::Get),
    ] {
        let file = if content { known("a", bytes.clone()) } else { sized("a", bytes.clone()) };
        let mut world = World::new(3, TakerConfig::new(ask), vec![file]);
        world.taker_disk.before.insert(0, Before::Part(chunks.clone(), on_disk.clone()));
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        let progress = world.taker.progress(Instant::from_millis(9));
        assert_eq!(progress.verified_bytes, bytes.len() as u64);
        assert_eq!(progress.resumed_bytes, 20 * CHUNK as u64 + 3);
        // Whole, by the chunk; in parts, by the MiB.
        let exact = 20 * CHUNK as u64;
        if content && ask != Ask::Get {
            assert_eq!(world.wire_bytes, exact, "{ask:?}");
        }
        assert!(world.wire_bytes <= 29 * CHUNK as u64, "{} {ask:?}", world.wire_bytes);
        assert!(world.taker_disk.discarded.is_empty());
    }
}

/// The disk has lost one chunk of those that the journal had: it comes once more, and not all of the file.
#[test]
fn a_chunk_that_the_disk_lost_comes_alone() {
    let bytes = noise(7, 5 * MIB + 9);
    for (is_known, most) in [(true, CHUNK as u64), (false, MIB as u64)] {
        for seed in 0..4 {
            let file = if is_known { known("a", bytes.clone()) } else { sized("a", bytes.clone()) };
            let mut world = World::new(seed, TakerConfig::new(Ask::Open), vec![file]);
            let here = Before::Part(Ranges::up_to(12), bytes[..3 * MIB].to_vec());
            world.taker_disk.before.insert(0, here);
            world.taker_disk.lost.insert(0, 5);
            assert_eq!(world.run(), DONE, "{is_known} {seed}");
            world.assert_all_stored();
            assert!(world.taker_disk.discarded.is_empty());
            let came = world.wire_bytes - (2 * MIB as u64 + 9);
            assert!(came <= most, "{is_known} {seed}: {came}");
            let progress = world.taker.progress(Instant::from_millis(9));
            assert_eq!(progress.verified_bytes, bytes.len() as u64);
        }
    }
}

/// Every chunk is here, and the giver has never hashed the file.
#[test]
fn a_journal_that_is_whole_needs_one_answer() {
    let bytes = noise(7, 3 * MIB);
    let mut world = World::new(3, TakerConfig::new(Ask::Open), vec![sized("a", bytes.clone())]);
    world.taker_disk.before.insert(0, Before::Part(Ranges::up_to(12), bytes));
    assert_eq!(world.run(), DONE);
    world.assert_all_stored();
    assert_eq!(world.wire_bytes, 0);
}

/// A disk that lied, or a journal that is not this file's: found at the end, and fetched once more, whole.
#[test]
fn a_journal_that_lies_costs_time_and_never_a_wrong_file() {
    let bytes = noise(7, 5 * MIB);
    for is_known in [true, false] {
        for seed in 0..4 {
            let file = if is_known { known("a", bytes.clone()) } else { sized("a", bytes.clone()) };
            let mut world = World::new(seed, TakerConfig::new(Ask::Open), vec![file]);
            world.taker_disk.before.insert(0, Before::Part(Ranges::up_to(8), noise(99, 2 * MIB)));
            assert_eq!(world.run(), DONE);
            world.assert_all_stored();
            assert_eq!(world.taker_disk.discarded, [0]);
            assert!(world.taker_events.contains(&TakerEvent::Again { file: 0 }));
            let progress = world.taker.progress(Instant::from_millis(9));
            assert_eq!((progress.resumed_bytes, progress.verified_bytes), (0, 5 * MIB as u64));
        }
    }
}

/// 1 % changed, and 40 bytes inserted at the front: 2 % come.
#[test]
fn of_an_older_version_only_the_difference_comes() {
    let old = noise(3, 24 * MIB);
    let mut new = [&noise(4, 40)[..], &old].concat();
    new[12 * MIB..12 * MIB + 200_000].copy_from_slice(&noise(5, 200_000));
    for seed in 0..3 {
        let mut world =
            World::new(seed, TakerConfig::new(Ask::Open), vec![known("a", new.clone())]);
        world.taker_disk.before.insert(0, Before::Old(old.clone()));
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        assert!(world.wire_bytes < new.len() as u64 / 25, "{}", world.wire_bytes);
        let progress = world.taker.progress(Instant::from_millis(9));
        assert_eq!(progress.verified_bytes, new.len() as u64);
        assert!(progress.copied_bytes > new.len() as u64 * 24 / 25);
        // The recipe, one want for pieces, and "stored".
        assert!(world.messages_to_giver <= 3, "{}", world.messages_to_giver);
    }
}

#[test]
fn an_older_version_with_nothing_in_common_is_fetched_whole() {
    let new = noise(8, 3 * MIB);
    for ask in [Ask::Open, Ask::Get] {
        let mut world = World::new(1, TakerConfig::new(ask), vec![known("a", new.clone())]);
        world.taker_disk.before.insert(0, Before::Old(noise(9, 3 * MIB)));
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        assert_eq!(world.taker.progress(Instant::from_millis(9)).copied_bytes, 0);
    }
}

#[test]
fn an_older_version_that_goes_away_is_done_without() {
    let old = noise(9, 3 * MIB);
    let new = [&noise(4, 40)[..], &old].concat();
    for seed in 0..5 {
        let files = vec![known("a", new.clone())];
        let mut world = World::new(seed, TakerConfig::new(Ask::Open), files);
        world.taker_disk.before.insert(0, Before::Old(old.clone()));
        world.taker_disk.older_is_gone = true;
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        assert_eq!(world.taker.progress(Instant::from_millis(9)).copied_bytes, 0);
    }
}

#[test]
fn ten_older_versions_are_compared_a_few_at_a_time() {
    let files: Vec<_> = (0..10)
        .map(|at| known(&format!("{at}"), [noise(at, 2 * MIB), noise(at + 50, 100)].concat()))
        .collect();
    let mut world = World::new(1, TakerConfig::new(Ask::Open), files);
    for at in 0..10 {
        world.taker_disk.before.insert(at, Before::Old(noise(u64::from(at), 2 * MIB)));
    }
    assert_eq!(world.run(), DONE);
    world.assert_all_stored();
    assert!(world.wire_bytes < 5 * MIB as u64, "{}", world.wire_bytes);
}

/// The same content under five names comes once.
#[test]
fn copies_of_a_file_come_once() {
    let bytes = noise(1, MIB);
    for ask in ASKS {
        for seed in 0..5 {
            let files: Vec<_> = (0..5).map(|at| known(&format!("{at}"), bytes.clone())).collect();
            let mut world = World::new(seed, TakerConfig::new(ask), files);
            assert_eq!(world.run(), DONE, "{ask:?} {seed}");
            world.assert_all_stored();
            if ask != Ask::Get {
                assert_eq!(world.wire_bytes, MIB as u64);
                let progress = world.taker.progress(Instant::from_millis(9));
                assert_eq!(progress.copied_bytes, 4 * MIB as u64);
            }
        }
    }
}

/// The one that is fetched changes while it is read: another one is fetched in its place.
#[test]
fn copies_of_a_file_that_fails_come_for_themselves() {
    let mut failed = 0;
    for seed in 0..12 {
        let files: Vec<_> = (0..4).map(|at| known(&format!("{at}"), noise(1, MIB))).collect();
        let mut world = World::new(seed, TakerConfig::new(ASKS[seed as usize % 3]), files);
        world.giver_disk.changes = Some((0, 1));
        // Whichever is looked at first is fetched, and if it is not the first one nothing fails.
        let code = world.run();
        failed += u32::from(code == INCOMPLETE);
        assert!((1..4).all(|file| world.taker_disk.stored.contains_key(&file)), "seed {seed}");
        assert_eq!(code == DONE, world.taker_disk.stored.contains_key(&0));
    }
    assert!(failed > 0);
}

#[test]
fn only_what_matches_comes() {
    let files = ["a", "maps/x", "maps/big/y", "mods/z"]
        .map(|name| known(name, noise(name.len() as u64, 500_000)));
    for ask in ASKS {
        let only = Only::new(["maps/**"]).unwrap();
        let mut world = World::new(1, TakerConfig::new(ask).with_only(only), files.to_vec());
        assert_eq!(world.run(), DONE);
        assert_eq!(world.taker_disk.stored.len(), 2);
        if ask == Ask::Open {
            assert_eq!(world.wire_bytes, 1_000_000);
        }
    }
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_others_come() {
    for ask in ASKS {
        for seed in 0..6 {
            let files = vec![
                known("a", noise(1, 2 * MIB)),
                known("b", noise(2, 300)),
                sized("c", noise(3, 3 * MIB)),
            ];
            let mut world = World::new(seed, TakerConfig::new(ask), files);
            world.taker_disk.before.insert(1, Before::Taken);
            assert_eq!(world.run(), INCOMPLETE);
            assert_eq!(world.taker_disk.stored.keys().copied().collect::<Vec<_>>(), [0, 2]);
            let fault = Fault::from(Reason::Taken);
            assert!(world.taker_events.contains(&TakerEvent::Failed { file: 1, fault }));
        }
    }
}

/// A file that changes during its transfer fails, and the bytes that came stay for the next time.
#[test]
fn a_file_that_changes_midway_fails_in_words() {
    for ask in ASKS {
        for is_known in [true, false] {
            let big = noise(1, 10 * MIB);
            let big = if is_known { known("a", big) } else { sized("a", big) };
            let mut world =
                World::new(2, TakerConfig::new(ask), vec![big, known("b", noise(2, 100))]);
            world.giver_disk.changes = Some((1, 12));
            assert_eq!(world.run(), INCOMPLETE);
            assert_eq!(world.taker_disk.stored.keys().copied().collect::<Vec<_>>(), [0]);
            assert_eq!(
                (&world.taker_disk.abandoned[..], &world.taker_disk.discarded[..]),
                (&[1][..], &[][..])
            );
            let why = |event: &TakerEvent| match event {
                TakerEvent::Failed { file: 1, fault } => fault.reason == Reason::Changed,
                _ => false,
            };
            assert_eq!(world.taker_events.iter().filter(|it| why(it)).count(), 1);
        }
    }
}

#[test]
fn a_full_disk_fails_the_file_and_says_so() {
    let mut world =
        World::new(2, TakerConfig::new(Ask::Inbox), vec![known("a", noise(1, 10 * MIB))]);
    world.taker_disk.room = 3 * MIB as u64;
    assert_eq!(world.run(), INCOMPLETE);
    let fault = Fault::from(Reason::NoRoom);
    assert_eq!(world.giver_events[0], haulier_files::giver::GiverEvent::Failed { file: 0, fault });
    assert!(world.taker_disk.stored.is_empty());
}

#[test]
fn what_is_over_the_quota_is_refused_before_a_byte() {
    let mut world = World::new(2, TakerConfig::new(Ask::Inbox), vec![known("a", noise(1, MIB))]);
    world.admission = Err(Fault::new(Reason::Quota, "1 GiB in all"));
    assert_eq!((world.run(), world.wire_bytes), (OVER_QUOTA, 0));
}

#[test]
fn a_pipe_is_stopped_at_the_quota() {
    let mut world = World::new(2, TakerConfig::new(Ask::Inbox), vec![pipe("a", noise(1, 9 * MIB))]);
    world.admission = Ok(2 * MIB as u64);
    assert_eq!(world.run(), INCOMPLETE);
    let fault = Fault::from(Reason::Quota);
    assert!(world.taker_events.contains(&TakerEvent::Failed { file: 0, fault }));
    assert!(world.taker_disk.parts[&0].len() <= 4 * MIB);
}

#[test]
fn a_ticket_names_one_file() {
    let bytes = noise(1, MIB);
    let root = *blake3::hash(&bytes).as_bytes();
    for (file, code) in [
        (known("a", bytes.clone()), DONE),
        (sized("a", bytes), DONE),
        (known("a", noise(2, MIB)), ANOTHER_FILE),
        (sized("a", noise(2, MIB)), INCOMPLETE),
    ] {
        let mut world =
            World::new(1, TakerConfig::new(Ask::Get).with_expected_root(root), vec![file]);
        assert_eq!(world.run(), code);
        assert_eq!(world.taker_disk.stored.is_empty(), code != DONE);
    }
    let two = vec![known("a", noise(1, MIB)), known("b", noise(2, MIB))];
    let mut world = World::new(1, TakerConfig::new(Ask::Get).with_expected_root(root), two);
    assert_eq!(world.run(), ANOTHER_FILE);
}

#[test]
fn what_shrinks_is_packed_and_what_does_not_is_not() {
    for ask in ASKS {
        let zeros = vec![0; 9 * MIB + 5];
        let files = vec![
            known("zeros", zeros),
            known("noise", noise(1, 5 * MIB)),
            pipe("log", vec![0; MIB]),
        ];
        let mut world = World::new(4, TakerConfig::new(ask).with_packed(), files);
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        assert!(world.wire_bytes < 6 * MIB as u64 + 1000, "{}", world.wire_bytes);
        let progress = world.taker.progress(Instant::from_millis(9));
        assert_eq!(progress.verified_bytes, 15 * MIB as u64 + 5);
        // Five bytes of zeros do not shrink.
        assert_eq!(progress.packed_bytes, 9 * MIB as u64);
        assert_eq!(progress.verified_bytes - progress.saved_bytes, progress.wire_bytes);
    }
}

/// Chunks that went packed are not sent again when the rest of their file goes whole, except those that were
/// written too late to be reported before.
#[test]
fn a_file_for_which_packing_ceases_to_pay_goes_on_as_one_block() {
    for (ask, seed) in ASKS.into_iter().flat_map(|ask| [1, 2, 3, 4, 5].map(|seed| (ask, seed))) {
        let bytes = [vec![0; 6 * MIB], noise(1, 3 * MIB + 5)].concat();
        let files = vec![known("a", bytes.clone()), sized("b", bytes), known("c", noise(2, MIB))];
        let mut world = World::new(seed, TakerConfig::new(ask).with_packed(), files);
        world.giver_disk.unpacked_from = Some(5 << 20);
        assert_eq!(world.run(), DONE);
        world.assert_all_stored();
        let is_whole = |tag: &&BlockTag| matches!(tag, BlockTag::Whole { .. });
        assert_eq!(world.sent.iter().filter(is_whole).count(), 1, "{:?}", world.sent);
        let is_packed = |tag: &&BlockTag| matches!(tag, BlockTag::Packed { .. });
        assert_eq!(world.sent.iter().filter(is_packed).count(), 6, "{:?}", world.sent);
        // Of a: 4 MiB, of b as much, and 1 of c, with what comes twice: no more than 5 MiB.
        assert!(world.wire_bytes < 15 * MIB as u64, "{}", world.wire_bytes);
        let progress = world.taker.progress(Instant::from_millis(9));
        assert_eq!(progress.verified_bytes, 19 * MIB as u64 + 10);
    }
}

/// Many orders of everything at once.
#[test]
fn any_order_of_events_ends_with_all_files() {
    let old = noise(3, 3 * MIB);
    let new = [&noise(4, 40)[..], &old].concat();
    for seed in 0..30 {
        let ask = ASKS[seed as usize % 3];
        let files = vec![
            known("a/new", new.clone()),
            known("a/copy", new.clone()),
            sized("b", noise(5, 6 * MIB + 1)),
            known("c", noise(6, 2 * MIB)),
            known("d", Vec::new()),
            pipe("e", noise(7, 2 * MIB + 1)),
            known("f", noise(8, 70_000)),
        ];
        let mut world = World::new(1000 + seed, TakerConfig::new(ask), files);
        let index = |name: &str| {
            world.giver.offer().entries().iter().position(|it| it.path.as_str() == name).unwrap()
                as u32
        };
        let (a, c, f) = (index("a/new"), index("c"), index("f"));
        world.taker_disk.before.insert(a, Before::Old(old.clone()));
        world.taker_disk.before.insert(
            c,
            Before::Part(Ranges::from_iter([1..2, 4..7]), noise(6, 2 * MIB)[..7 * CHUNK].to_vec()),
        );
        world.taker_disk.stored.insert(f, noise(8, 70_000));
        assert_eq!(world.run(), DONE, "seed {seed}");
        world.assert_all_stored();
        assert!(world.taker_disk.discarded.is_empty(), "seed {seed}");
    }
}
