//! A `Put` and a `Serving` with an inbox, over loopback sockets: what programs use.

#![cfg(all(unix, feature = "net"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use haulier::{Connect, Server, ServerConfig, ServerCredentials, ServerEvent};
use haulier_files::InboxQuota;
use haulier_files::reason::{NO_SUCH_FILE, OVER_QUOTA, Reason};
use haulier_files::session::{Fetch, FetchError, Inbox, InboxEvent, Library, Place, Put, Serving};
use haulier_files::tree_cache::TreeCache;
use haulier_files::writer::Replace;

/// Larger than any file here.
const MAX_BLOCK_BYTES: u64 = 1 << 40;

fn server() -> Server {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret().unwrap());
    let mut config = ServerConfig::new(1, credentials);
    config.connection.max_block_bytes = MAX_BLOCK_BYTES;
    config.connection.delivery = haulier::Delivery::Chunks;
    Server::bind("127.0.0.1:0", config).unwrap()
}

/// Serves until the server is shut down; what came.
fn serve(server: &Server, mut serving: Serving) -> Vec<InboxEvent> {
    let mut events = Vec::new();
    while !server.is_shut_down() {
        if serving.is_full() {
            thread::yield_now();
        } else if let Some((id, event)) = server.wait(serving.max_wait()).unwrap() {
            let is_request = matches!(event, ServerEvent::Connecting { .. });
            assert!(serving.handle_event(server, id, &event) || !is_request, "it is for files");
        }
        serving.turn(server);
        events.extend(std::iter::from_fn(|| serving.poll_event()));
        if matches!(events.last(), Some(InboxEvent::Done { .. })) {
            server.shut_down();
        }
    }
    events
}

/// One client puts what is in `from` into the inbox: what it heard, and what the server did.
fn put(from: &Path, into: &Path, max_bytes: u64) -> (Result<u64, FetchError>, Vec<InboxEvent>) {
    put_or(Replace::Never, from, into, max_bytes)
}

fn put_or(
    replace: Replace,
    from: &Path,
    into: &Path,
    max_bytes: u64,
) -> (Result<u64, FetchError>, Vec<InboxEvent>) {
    let server = server();
    let ticket = server.ticket(&[server.local_addr()]).unwrap().unwrap();
    let library = Library::load(&[("maps".into(), from.to_owned())], TreeCache::beside()).unwrap();
    let quota = InboxQuota::new(max_bytes, max_bytes);
    let inbox = Inbox::new(Place::Folder(into.to_owned()), replace, quota);
    thread::scope(|scope| {
        let serving = Serving::taking(inbox).unwrap();
        let events = scope.spawn(|| serve(&server, serving));
        let sent = Put::new(Arc::new(library)).run(&ticket, |_| ());
        if sent.is_err() {
            server.shut_down();
        }
        let sent = sent.map(|progress| progress.verified_bytes);
        (sent, events.join().unwrap())
    })
}

/// All of it comes; then one file is there as another one, which is kept, and both ends say so.
#[test]
fn what_is_put_is_there_and_what_is_not_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    fs::create_dir_all(from.join("a")).unwrap();
    fs::create_dir_all(into.join("maps")).unwrap();
    fs::write(from.join("one"), vec![1; 700_000]).unwrap();
    fs::write(from.join("a/two"), b"two").unwrap();
    let (sent, events) = put(&from, &into, u64::MAX);
    assert_eq!(sent.unwrap(), 700_003);
    let [first, second, InboxEvent::Done { failed: 0, progress, .. }] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!((progress.files_done, progress.wire_bytes), (2, 700_003));
    for event in [first, second] {
        let InboxEvent::Stored { name, path, bytes, root, was_here: false, .. } = event else {
            panic!("{event:?}");
        };
        let data = fs::read(path).unwrap();
        assert_eq!(data, fs::read(from.join(name.strip_prefix("maps/").unwrap())).unwrap());
        assert_eq!((data.len() as u64, blake3::hash(&data).as_bytes()), (*bytes, root));
    }
    // Now one of them is another file, and the other the same.
    fs::write(into.join("maps/one"), b"mine").unwrap();
    let (sent, events) = put(&from, &into, u64::MAX);
    let Err(FetchError::File { path, fault }) = sent else { panic!("{sent:?}") };
    assert_eq!((path.to_str(), fault.reason), (Some("maps/one"), Reason::Taken));
    assert!(matches!(events.last(), Some(InboxEvent::Done { failed: 1, .. })), "{events:?}");
    assert!(events.iter().any(|it| matches!(it, InboxEvent::Stored { was_here: true, .. })));
    assert!(events.iter().any(|it| matches!(it, InboxEvent::Failed { .. })));
    assert_eq!(fs::read(into.join("maps/one")).unwrap(), b"mine");
}

/// A file of more than 64 MiB is not hashed when it is offered. One byte of the old one differs, and its
/// size and time do not: it was said to be stored there.
#[test]
fn a_file_with_the_same_size_and_time_is_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    for (folder, byte) in [(&from, b"N"), (&into.join("maps"), b"O")] {
        fs::create_dir_all(folder).unwrap();
        let file = fs::File::create(folder.join("big")).unwrap();
        file.set_len((64 << 20) + 9).unwrap();
        file.write_all_at(byte, 40 << 20).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    }
    let byte = || {
        let mut byte = [0];
        let file = fs::File::open(into.join("maps/big")).unwrap();
        file.read_exact_at(&mut byte, 40 << 20).unwrap();
        byte
    };
    let (sent, _) = put(&from, &into, u64::MAX);
    let Err(FetchError::File { fault, .. }) = sent else { panic!("{sent:?}") };
    assert_eq!((fault.reason, byte()), (Reason::Taken, *b"O"));
    for was_here_now in [false, true] {
        // No tree that was kept says what it is.
        drop(fs::remove_file(from.join(".big.haulier-tree")));
        let (sent, events) = put_or(Replace::File, &from, &into, u64::MAX);
        sent.unwrap();
        let Some(InboxEvent::Stored { was_here, .. }) = events.first() else {
            panic!("{events:?}");
        };
        assert_eq!((*was_here, byte()), (was_here_now, *b"N"));
    }
}

/// A connection takes all of a small file at once, and sends it as fast as it may. The progress was that of
/// the reading.
#[test]
fn progress_is_what_has_arrived() {
    const BYTES: u64 = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    fs::create_dir_all(&into).unwrap();
    fs::write(&from, vec![1; BYTES as usize]).unwrap();
    let server = server();
    let ticket = server.ticket(&[server.local_addr()]).unwrap().unwrap();
    let library = Library::load(&[("file".into(), from)], TreeCache::beside()).unwrap();
    let quota = InboxQuota::new(u64::MAX, u64::MAX);
    let inbox = Inbox::new(Place::Folder(into), Replace::Never, quota);
    let mut to = Connect::from(&ticket);
    to.connection.max_rate_bps = 4_000_000;
    thread::scope(|scope| {
        let serving = Serving::taking(inbox).unwrap();
        scope.spawn(|| serve(&server, serving));
        let mut seen = Vec::new();
        let done = Put::new(Arc::new(library)).run(to, |it| seen.push(it.verified_bytes));
        server.shut_down();
        assert_eq!(done.unwrap().verified_bytes, BYTES);
        assert!(seen.is_sorted(), "{seen:?}");
        assert!(seen.iter().any(|it| (1..BYTES).contains(it)), "{seen:?}");
    });
}

#[test]
fn a_quota_is_kept_and_its_excess_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    fs::create_dir_all(&from).unwrap();
    fs::create_dir_all(&into).unwrap();
    fs::write(from.join("one"), vec![1; 700_000]).unwrap();
    let (sent, events) = put(&from, &into, 300_000);
    let code = match sent {
        Err(FetchError::Closed(haulier::CloseReason::There { code, .. })) => code,
        other => panic!("{other:?}"),
    };
    assert_eq!((code, events), (OVER_QUOTA, vec![]));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
}

/// A server that only takes has nothing to give.
#[test]
fn who_only_takes_gives_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = server();
    let ticket = server.ticket(&[server.local_addr()]).unwrap().unwrap();
    let place = || Place::Folder(dir.path().to_owned());
    let inbox = Inbox::new(place(), Replace::Never, InboxQuota::new(1, 1));
    thread::scope(|scope| {
        let (serving, server) = (Serving::taking(inbox).unwrap(), &server);
        scope.spawn(move || serve(server, serving));
        let fetched = Fetch::new("", place()).run(&ticket, |_| ());
        server.shut_down();
        let Err(FetchError::Closed(haulier::CloseReason::There { code, .. })) = fetched else {
            panic!("{fetched:?}");
        };
        assert_eq!(code, NO_SUCH_FILE);
    });
}
