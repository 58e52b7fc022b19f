//! What `serve` and `fetch` have in common: the threads for the disk, waits, and codes in words. STANDARD-1,
//! section 8, is what they say to each other.

use std::thread::{self, Thread};
use std::time::Duration;

use haulier::CloseCode;
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, Wake};
use haulier_files::reason;

use crate::failure::Failure;

/// The longest name that can be asked for.
pub(crate) const MAX_NAME_BYTES: usize = haulier_files::messages::MAX_NAME_BYTES;

/// The longest wait for an event while nothing is to be done: how soon Ctrl-C is noticed.
const TURN: Duration = Duration::from_millis(20);

/// While the disk is at work: its answers are awaited by asking. 16 chunks in each are 33 Gbit/s.
const BUSY_TURN: Duration = Duration::from_millis(1);

/// How long to wait for an event.
pub(crate) const fn turn(is_busy: bool) -> Duration {
    if is_busy { BUSY_TURN } else { TURN }
}

/// The threads for the disk. They wake this one when it waits for them alone, in [`wait_for_disk`].
pub(crate) fn disk_pool() -> Result<DiskPool, Failure> {
    let caller: Thread = thread::current();
    let wake = Wake::new(move || caller.unpark());
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
