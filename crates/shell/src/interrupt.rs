//! Ctrl-C and SIGTERM: a flag that every loop looks at, so that each can clean up after itself.
//!
//! The rule: signals within a second of the first are one signal. Wrappers send two at once, as GNU `timeout`
//! does to its child and then to its group. A later signal ends the program at once: it comes from a person,
//! because cleaning up takes too long.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// How long after the first signal another one is the same: a wrapper needs milliseconds for both, also on a
/// busy machine, and a person who waits for the end has waited longer.
const ONE_SIGNAL: Duration = Duration::from_secs(1);

/// When the user asked for the end.
static REQUESTED: Mutex<Option<Instant>> = Mutex::new(None);

/// Starts watching.
pub fn watch() {
    let watching = ctrlc::set_handler(|| {
        if is_impatient(*state().get_or_insert_with(Instant::now), Instant::now()) {
            std::process::exit(130);
        }
    });
    // Without a handler Ctrl-C ends the program as it ends any other, without cleaning up.
    drop(watching);
}

/// Whether a signal at `now` is a second one, if the first came at `first`.
fn is_impatient(first: Instant, now: Instant) -> bool {
    now.duration_since(first) > ONE_SIGNAL
}

/// Whether the user wants out.
pub fn requested() -> bool {
    state().is_some()
}

/// Fails if the user wants out.
pub fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The user wants out, by a key that is no signal.
pub fn request() {
    state().get_or_insert_with(Instant::now);
}

/// The user wanted out of a picture that was shown, and the command had ended before.
pub fn forget() {
    *state() = None;
}

fn state() -> MutexGuard<'static, Option<Instant>> {
    REQUESTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_a_second_are_one() {
        let (first, ms) = (Instant::now(), Duration::from_millis);
        assert!(!is_impatient(first, first));
        assert!(!is_impatient(first, first + ms(1_000)));
        assert!(is_impatient(first, first + ms(1_001)));
    }
}
