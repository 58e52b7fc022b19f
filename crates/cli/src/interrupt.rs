//! Ctrl-C and SIGTERM: a flag that every loop looks at, so that each can clean up after itself.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Starts watching. A second signal ends the program at once, for when cleaning up takes too long.
pub(crate) fn watch() {
    let watching = ctrlc::set_handler(|| {
        if SIGNALS.fetch_add(1, Ordering::Relaxed) > 0 {
            std::process::exit(130);
        }
    });
    // Without a handler Ctrl-C ends the program as it ends any other; nothing is lost but tidiness.
    drop(watching);
}

/// Whether the user wants out.
pub(crate) fn requested() -> bool {
    SIGNALS.load(Ordering::Relaxed) > 0
}

/// Fails if the user wants out.
pub(crate) fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The user wants out, by a key that is no signal.
pub(crate) fn request() {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// The user wanted out of a picture that was shown, and the command had ended before.
pub(crate) fn forget() {
    SIGNALS.store(0, Ordering::Relaxed);
}
