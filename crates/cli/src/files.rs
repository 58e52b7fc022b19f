//! What `serve`, `fetch`, `send` and `recv` have in common: the threads for the disk, waits, joining, and
//! codes in words. STANDARD-1, section 8, is what they say to each other.

use std::path::Path;
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Duration;

use haulier::CloseCode;
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, Wake};
use haulier_files::reason::{self, Fault, Reason};
use haulier_files::session::Taking;
use haulier_shell::failure::Failure;
use haulier_shell::units::show_words;

/// The longest name that can be asked for.
pub(crate) const MAX_NAME_BYTES: usize = haulier_files::messages::MAX_NAME_BYTES;

/// The largest block taken: what there can be.
pub(crate) const MAX_BLOCK_BYTES: u64 = (1 << 50) - (256 << 10);

/// After this time without an event, the program checks whether this machine has another address now.
pub(crate) const LOOK_FOR_NETWORK: Duration = Duration::from_millis(500);

/// The longest wait for an event: how soon Ctrl-C is noticed.
pub(crate) const TURN: Duration = Duration::from_millis(20);

/// The threads for the disk. They end this network loop's wait when they have answered something, and wake
/// this thread when it waits for them alone, in [`wait_for_disk`].
pub(crate) fn disk_pool(network: Waker) -> Result<DiskPool, Failure> {
    let caller: Thread = thread::current();
    let wake = Wake::new(move || {
        caller.unpark();
        network.wake_by_ref();
    });
    DiskPool::new(DEFAULT_THREADS, wake).map_err(|error| Failure::Io(error.to_string()))
}

/// Waits until the disk has answered something.
pub(crate) fn wait_for_disk() {
    thread::park_timeout(TURN);
}

/// What a code means.
pub(crate) fn meaning(code: CloseCode) -> Option<&'static str> {
    reason::meaning(code)
}

/// Some files could not be had: why the first of them.
pub(crate) fn not_here(taking: &Taking, failed: u32, file: u32, fault: &Fault) -> Failure {
    let path = taking.path_of(file).unwrap_or_default();
    let words = match (taking.words_of(file), fault.reason) {
        (Some(_), Reason::Taken) if path.is_file() => exists(&path).to_string(),
        (Some(words), _) => words.to_owned(),
        (None, _) => format!("{}: {}", path.display(), show_words(&fault.to_string())),
    };
    let text = match taking.wanted().count() {
        0 | 1 => words,
        files => format!("{failed} of {files} files are not here: {words}"),
    };
    match fault.reason {
        Reason::WrongRoot => Failure::Verification(text),
        _ => Failure::Io(text),
    }
}

/// A file that is not to be overwritten.
pub(crate) fn exists(path: &Path) -> Failure {
    Failure::Io(format!(
        "{} exists; use --force to compare it, and overwrite it if it differs",
        path.display()
    ))
}
