//! What `serve` and `fetch` have in common: the threads for the disk, waits, and codes in words. STANDARD-1,
//! section 8, is what they say to each other.

use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Duration;

use haulier::CloseCode;
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, Wake};
use haulier_files::reason;

use crate::failure::Failure;

/// The longest name that can be asked for.
pub(crate) const MAX_NAME_BYTES: usize = haulier_files::messages::MAX_NAME_BYTES;

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
