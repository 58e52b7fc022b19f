//! An inbox and a giver that is written by hand: names, quotas, lists and blocks that no program of ours
//! sends, and connections that end in the middle.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::thread;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_files::journal::FileIdentity;
use haulier_files::messages::Message;
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer, Root};
use haulier_files::pool::{DiskPool, Wake};
use haulier_files::reason::{BAD_OFFER, NOT_UNDERSTOOD, OVER_QUOTA};
use haulier_files::session::{Inbox, Link, LinkSpeed, Place, Upload};
use haulier_files::taker::{Ask, Local, Taker, TakerAction, TakerConfig};
use haulier_files::writer::{FileWriter, Replace, WriteSettings};
use haulier_files::{BlockTag, InboxQuota};
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, ChunkValue, CloseCode, CloseReason, Event, SendError,
    WantedChunk,
};

const MIB: u64 = 1 << 20;

/// What the journal of a file of 3 MiB costs; that of 4 MiB twice as much.
const JOURNAL: u64 = 4096;

/// What the inbox says.
#[derive(Default)]
struct Wire {
    messages: RefCell<Vec<Message>>,
    closed: RefCell<Option<(CloseCode, String)>>,
    held_bytes: Cell<usize>,
}

impl Link for Wire {
    fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.messages.borrow_mut().push(Message::read(&message).unwrap());
        Ok(())
    }
    fn send_block(&self, _: &Block) -> Result<BlockHandle, SendError> {
        Err(SendError::NotOpen)
    }
    fn cancel_block(&self, _: BlockHandle, _: u32) {}
    fn decline_block(&self, _: BlockNumber, _: u32) {}
    fn have_chunks(&self, _: Root, _: Vec<u8>) {}
    fn want_chunk(&self) -> Option<WantedChunk> {
        None
    }
    fn provide_chunk(&self, _: BlockHandle, _: u32, _: Bytes) {}
    fn arrived_bytes(&self, _: BlockHandle) -> u64 {
        0
    }
    fn speed(&self) -> LinkSpeed {
        LinkSpeed::default()
    }

    fn all_acked(&self) -> bool {
        true
    }
    fn hold_bytes(&self, bytes: usize) {
        self.held_bytes.set(bytes);
    }
    fn close(&self, code: CloseCode, reason: &str) {
        *self.closed.borrow_mut() = Some((code, reason.to_owned()));
    }
}

impl Wire {
    fn wants(&self) -> usize {
        self.messages.borrow().iter().filter(|it| matches!(it, Message::Want(_))).count()
    }
}

struct Bench {
    pool: DiskPool,
    dir: tempfile::TempDir,
    inbox: Inbox<u8>,
}

impl Bench {
    fn new(most: u64, each: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::Folder(dir.path().to_owned());
        let inbox = Inbox::new(place, Replace::Never, InboxQuota::new(most, each));
        Self { pool: DiskPool::new(2, Wake::new(|| ())).unwrap(), dir, inbox }
    }

    /// A client that offers this, until it is answered.
    fn offer(&mut self, client: u8, list: Vec<u8>) -> (Upload<u8>, Wire) {
        let (mut upload, wire) =
            (Upload::new(&self.inbox, self.pool.handle(), client), Wire::default());
        let data = Message::Offer(list.into()).to_bytes().into();
        upload.handle_event(&mut self.inbox, &wire, Event::Message { channel: 0, data });
        upload.admit(&self.inbox);
        self.until(&mut upload, &wire, |_, wire| {
            wire.wants() > 0 || wire.closed.borrow().is_some()
        });
        (upload, wire)
    }

    fn until(
        &mut self,
        upload: &mut Upload<u8>,
        wire: &Wire,
        is_so: impl Fn(&Upload<u8>, &Wire) -> bool,
    ) {
        for _ in 0..10_000_000 {
            upload.turn(&mut self.inbox, wire);
            if is_so(upload, wire) {
                return;
            }
            thread::yield_now();
        }
        panic!("it hangs: {upload:?}");
    }

    fn vanish(&mut self, mut upload: Upload<u8>, wire: &Wire) {
        upload.handle_event(&mut self.inbox, wire, Event::Closed(CloseReason::ConnectionUnknown));
        self.until(&mut upload, wire, |upload, _| upload.is_over());
    }

    fn left(&self, client: u8) -> u64 {
        self.inbox.quota().left_bytes(&client)
    }
}

fn list(files: &[(&str, u64)]) -> Vec<u8> {
    let entry = |(path, bytes): &(&str, u64)| {
        Entry::new(SafePath::new(path).unwrap(), Content::Sized(*bytes))
    };
    Offer::new(files.iter().map(entry).collect()).unwrap().to_bytes()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn names_that_are_not_safe_end_it_before_anything_is_made() {
    for name in ["../x", "/etc", "a//b", "a/..", "C:xx", "a\\bc", "x\u{1b}yz", ".abc", "conn"] {
        let mut bench = Bench::new(u64::MAX, u64::MAX);
        let mut bytes = list(&[("abcd", 5)]);
        let at = bytes.windows(4).position(|it| it == b"abcd").unwrap();
        bytes[at..at + 4].copy_from_slice(name.as_bytes());
        let (_upload, wire) = bench.offer(1, bytes);
        let closed = wire.closed.borrow().clone();
        // The last one is safe, so that it is seen that the others end it by their names.
        match name {
            "conn" => assert_eq!((closed, wire.wants()), (None, 1)),
            _ => assert_eq!(closed.map(|(code, _)| code), Some(BAD_OFFER), "{name}"),
        }
        assert_eq!(is_empty(bench.dir.path()), name != "conn", "{name}");
    }
}

#[test]
fn what_is_over_the_quota_is_refused_before_a_byte() {
    let mut bench = Bench::new(10 * MIB, 4 * MIB);
    let (upload, wire) = bench.offer(1, list(&[("a", 3 * MIB), ("b", 2 * MIB)]));
    let (code, words) = wire.closed.borrow().clone().unwrap();
    assert_eq!(code, OVER_QUOTA);
    // With their journals.
    assert!(words.contains("5.1 MiB, and 4.0 are left of 4.0 MiB for each client"), "{words}");
    assert!(wire.wants() == 0 && is_empty(bench.dir.path()));
    bench.vanish(upload, &wire);
    // Three clients may send as much as each may, as far as all together may.
    let _first = bench.offer(1, list(&[("a", 4 * MIB - 2 * JOURNAL)]));
    let _second = bench.offer(2, list(&[("b", 4 * MIB - 2 * JOURNAL)]));
    let (_third, wire) = bench.offer(3, list(&[("c", 4 * MIB)]));
    let (_, words) = wire.closed.borrow().clone().unwrap();
    assert!(words.contains("2.0 are left of 10.0 MiB for all clients together"), "{words}");
}

/// Many small files are as many blocks of a disk.
#[test]
fn files_without_bytes_count_too() {
    let names: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    let files: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 0)).collect();
    let (_upload, wire) = Bench::new(MIB, MIB).offer(1, list(&files));
    assert_eq!(wire.closed.borrow().clone().map(|(code, _)| code), Some(OVER_QUOTA));
}

/// Nothing of it came, so nothing is left, and it is charged for nothing.
#[test]
fn a_client_that_vanishes_at_once_leaves_nothing() {
    let mut bench = Bench::new(5 * MIB, 5 * MIB);
    for client in [1, 1, 2] {
        let (upload, wire) = bench.offer(client, list(&[("world", 3 * MIB)]));
        assert_eq!((wire.wants(), bench.left(client)), (1, 2 * MIB - JOURNAL));
        bench.vanish(upload, &wire);
        assert_eq!(bench.left(client), 5 * MIB);
    }
    assert!(is_empty(bench.dir.path()));
}

/// Bytes that an upload leaves on the disk are charged for, and not once more when its client comes back.
#[test]
fn a_client_that_comes_back_is_not_charged_again() {
    let mut bench = Bench::new(5 * MIB, 5 * MIB);
    let identity = FileIdentity::new("world").with_modified_ns(0).with_length(3 * MIB);
    let path = bench.dir.path().join("world");
    let writer =
        FileWriter::open(bench.pool.handle(), &path, &identity, WriteSettings::default()).unwrap();
    writer.push(0, vec![7; 1 << 18].into()).unwrap();
    writer.settle().unwrap();
    drop(writer);
    for _ in 0..3 {
        let (upload, wire) = bench.offer(1, list(&[("world", 3 * MIB)]));
        // Of its journal there is a block, and it may get another.
        assert_eq!((wire.wants(), bench.left(1)), (1, 2 * MIB - 2 * JOURNAL));
        bench.vanish(upload, &wire);
        assert_eq!(bench.left(1), 2 * MIB - JOURNAL);
    }
}

/// Pipes reserve some of the remaining quota, and return the bytes that they did not need.
#[test]
fn a_pipe_reserves_what_is_left_and_gives_it_back() {
    let mut bench = Bench::new(5 * MIB, 5 * MIB);
    let entry = Entry::new(SafePath::new("pipe").unwrap(), Content::Stream);
    let (upload, wire) = bench.offer(1, Offer::new(vec![entry]).unwrap().to_bytes());
    // Of the quota it has its name already.
    assert_eq!((upload.taking().spare_bytes(), bench.left(2)), (5 * MIB - 4096, 0));
    bench.vanish(upload, &wire);
    assert!(bench.left(2) >= 5 * MIB - 4096, "{}", bench.left(2));
}

fn pipes(count: u32) -> Vec<u8> {
    let entry = |n| Entry::new(SafePath::new(&format!("p{n}")).unwrap(), Content::Stream);
    Offer::new((0..count).map(entry).collect()).unwrap().to_bytes()
}

/// Each has a name and an inode: 6,000 were made where 256 fit.
#[test]
fn pipes_without_bytes_count_too() {
    for (count, is_over) in [(256, false), (257, true)] {
        let (_upload, wire) = Bench::new(MIB, MIB).offer(1, pipes(count));
        let code = wire.closed.borrow().as_ref().map(|(code, _)| *code);
        assert_eq!(code, is_over.then_some(OVER_QUOTA), "{count}");
    }
}

#[test]
fn files_are_counted_beside_their_bytes() {
    let mut bench = Bench::new(u64::MAX, u64::MAX);
    bench.inbox = Inbox::new(
        Place::Folder(bench.dir.path().to_owned()),
        Replace::Never,
        InboxQuota::new(u64::MAX, u64::MAX).with_max_files(5),
    );
    let (upload, wire) = bench.offer(1, pipes(5));
    assert_eq!((wire.wants() > 0, bench.inbox.quota().left_files()), (true, 0));
    let (_over, refused) = bench.offer(2, list(&[("other", 0)]));
    assert_eq!(refused.closed.borrow().as_ref().map(|(code, _)| *code), Some(OVER_QUOTA));
    bench.vanish(upload, &wire);
    assert_eq!(bench.inbox.quota().left_files(), 5);
}

fn inbox_taker(max_offer_bytes: u64) -> Taker {
    let config = TakerConfig::new(Ask::Inbox).with_max_offer_bytes(max_offer_bytes);
    Taker::new(Instant::from_millis(0), config)
}

fn closed(taker: &mut Taker) -> Option<CloseCode> {
    std::iter::from_fn(|| taker.poll_action()).find_map(|action| match action {
        TakerAction::Close { code, .. } => Some(code),
        _ => None,
    })
}

#[test]
fn a_list_that_is_too_long_is_not_even_held() {
    let now = Instant::from_millis(0);
    for (length, expected) in [(70_000, None), (70_001, Some(OVER_QUOTA))] {
        let mut taker = inbox_taker(70_000);
        taker.handle_announced(now, BlockTag::Offer.to_u64(), length, [0; 32]);
        assert_eq!(closed(&mut taker), expected, "{length}");
    }
}

/// Held for a file that is looked at, they would fill the memory of a server.
#[test]
fn an_inbox_holds_nothing_that_it_has_not_asked_for() {
    let now = Instant::from_millis(0);
    let tag = BlockTag::Whole { file: 0, want: 0 }.to_u64();
    for is_admitted in [false, true] {
        let mut taker = inbox_taker(MIB);
        let offer = Message::Offer(list(&[("world", MIB)]).into());
        taker.handle_message(now, &offer.to_bytes().into());
        if is_admitted {
            taker.handle_admission(now, Ok(0));
        }
        taker.handle_announced(now, tag, MIB, [0; 32]);
        assert_eq!(closed(&mut taker), Some(NOT_UNDERSTOOD), "{is_admitted}");
    }
}

/// A list as a block: it is counted before it is read, and read by the program, not in its turn.
#[test]
fn a_long_list_is_counted_charged_and_read_by_the_program() {
    let now = Instant::from_millis(0);
    let tag = BlockTag::Offer.to_u64();
    let list: Bytes = pipes(9_000).into();
    for (max_files, is_over) in [(9_000, false), (8_999, true)] {
        let config = TakerConfig::new(Ask::Inbox).with_max_offer_files(max_files);
        let mut taker = Taker::new(now, config);
        taker.handle_announced(now, tag, list.len() as u64, [0; 32]);
        taker.handle_chunk(now, tag, 0, list.clone(), ChunkValue::from_bytes([0; 32]));
        assert_eq!(taker.memory_bytes(), list.len());
        taker.handle_complete(now, tag);
        let actions: Vec<TakerAction> = std::iter::from_fn(|| taker.poll_action()).collect();
        let is_read = actions.iter().any(|it| matches!(it, TakerAction::ReadOffer { .. }));
        assert_eq!((is_read, taker.is_over(), taker.offer().len()), (!is_over, is_over, 0));
        if is_over {
            continue;
        }
        assert!(taker.memory_bytes() > list.len() + 9_000 * 64, "{}", taker.memory_bytes());
        taker.handle_offer(Offer::read(&list));
        assert_eq!(taker.offer().len(), 9_000);
        assert!(taker.memory_bytes() > 9_000 * 64);
    }
}

/// The connection gets the number, so the server's limit of memory includes it.
#[test]
fn what_a_list_takes_counts_as_its_clients() {
    let mut bench = Bench::new(u64::MAX, u64::MAX);
    let (upload, wire) = bench.offer(1, pipes(3_000));
    let held_bytes = wire.held_bytes.get();
    assert!((3_000 * 64..3_000 * 400).contains(&held_bytes), "{held_bytes}");
    bench.vanish(upload, &wire);
}

/// One byte at 2^50 took 141 GB of the receiver. A byte that may come ahead is paid for with its hole.
#[test]
fn a_part_far_ahead_of_a_pipe_is_refused() {
    let now = Instant::from_millis(0);
    let reach = 9 * (64 << 20);
    for (offset, spare, expected) in [
        ((1 << 50) - MIB, u64::MAX, Some(NOT_UNDERSTOOD)),
        (reach, u64::MAX, Some(NOT_UNDERSTOOD)),
        (reach - MIB, u64::MAX, None),
        (reach - MIB, reach - MIB, None),
    ] {
        let mut taker = inbox_taker(MIB);
        taker.handle_message(now, &Message::Offer(pipes(1).into()).to_bytes().into());
        taker.handle_admission(now, Ok(spare));
        taker.handle_inspected(now, 0, Local::Absent);
        let tag = BlockTag::Part { file: 0, want: 1, offset }.to_u64();
        taker.handle_announced(now, tag, 1, [0; 32]);
        taker.handle_chunk(now, tag, 0, Bytes::from_static(&[7]), ChunkValue::from_bytes([0; 32]));
        let actions: Vec<TakerAction> = std::iter::from_fn(|| taker.poll_action()).collect();
        let code = actions.iter().find_map(|action| match action {
            TakerAction::Close { code, .. } => Some(*code),
            _ => None,
        });
        let is_written = actions.iter().any(|it| matches!(it, TakerAction::Write { .. }));
        assert_eq!((code, is_written), (expected, expected.is_none() && spare == u64::MAX));
    }
}

/// Some bytes may come twice, and not more often: each time they are written and noted.
#[test]
fn a_file_does_not_come_three_times() {
    let now = Instant::from_millis(0);
    let mut taker = inbox_taker(MIB);
    taker.handle_message(now, &Message::Offer(list(&[("f", 8 * MIB)]).into()).to_bytes().into());
    taker.handle_admission(now, Ok(0));
    taker.handle_inspected(now, 0, Local::Absent);
    let tag = BlockTag::Part { file: 0, want: 1, offset: 0 }.to_u64();
    let mut rounds = 0;
    while closed(&mut taker).is_none() {
        taker.handle_announced(now, tag, 7 * MIB, [0; 32]);
        taker.handle_complete(now, tag);
        rounds += 1;
        assert!(rounds < 9);
    }
    assert_eq!(rounds, 3);
}
