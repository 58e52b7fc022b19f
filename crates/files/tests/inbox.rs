//! An inbox and a giver that is written by hand: names, quotas, lists and blocks that no program of ours
//! sends, and connections that end in the middle.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cell::RefCell;
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
use haulier_files::taker::{Ask, Taker, TakerAction, TakerConfig};
use haulier_files::writer::{FileWriter, Replace, WriteSettings};
use haulier_files::{BlockTag, InboxQuota};
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, CloseCode, CloseReason, Event, SendError, WantedChunk,
};

const MIB: u64 = 1 << 20;

/// What the inbox says.
#[derive(Default)]
struct Wire {
    messages: RefCell<Vec<Message>>,
    closed: RefCell<Option<(CloseCode, String)>>,
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
    assert!(words.contains("5.0 MiB, and 4.0 are left of 4.0 MiB for each client"), "{words}");
    assert!(wire.wants() == 0 && is_empty(bench.dir.path()));
    bench.vanish(upload, &wire);
    // Three clients may send as much as each may, as far as all together may.
    let _first = bench.offer(1, list(&[("a", 4 * MIB)]));
    let _second = bench.offer(2, list(&[("b", 4 * MIB)]));
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
        assert_eq!((wire.wants(), bench.left(client)), (1, 2 * MIB));
        bench.vanish(upload, &wire);
        assert_eq!(bench.left(client), 5 * MIB);
    }
    assert!(is_empty(bench.dir.path()));
}

/// What is left on the disk is charged for, and not once more when its client comes back.
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
        assert_eq!(wire.wants(), 1);
        // Of the journal a block or two.
        let left = bench.left(1);
        assert!((2 * MIB - 8192..2 * MIB).contains(&left), "{left}");
        bench.vanish(upload, &wire);
        assert_eq!(bench.left(1), left);
    }
}

/// Pipes get of what is left, and give back what they did not need.
#[test]
fn a_pipe_reserves_what_is_left_and_gives_it_back() {
    let mut bench = Bench::new(5 * MIB, 5 * MIB);
    let entry = Entry::new(SafePath::new("pipe").unwrap(), Content::Stream);
    let (upload, wire) = bench.offer(1, Offer::new(vec![entry]).unwrap().to_bytes());
    assert_eq!((upload.taking().spare_bytes(), bench.left(2)), (5 * MIB, 0));
    bench.vanish(upload, &wire);
    // The empty unfinished file.
    assert!(bench.left(2) >= 5 * MIB - 4096, "{}", bench.left(2));
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
