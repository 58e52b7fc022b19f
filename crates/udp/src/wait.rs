//! Waiting for sockets, precisely, until something happens or another thread says so.
//!
//! Pacing has deadlines a millisecond apart, so a wait that is rounded up to whole milliseconds, as those of
//! `epoll_wait` and `kqueue` libraries are, would miss each of them by half a millisecond. `ppoll` takes
//! nanoseconds; what remains on Linux is the slack of the thread's timers, 50 µs by default. On systems
//! without it (Windows, macOS) the wait is rounded up.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::{Socket, WakeUp};

/// Longer waits end early, because `poll` of some systems cannot wait for more than 24 days.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// What a runner waits for: [`Runner::interest`](crate::Runner::interest).
#[derive(Clone, Copy, Debug)]
pub struct Interest<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) is_readable: bool,
    /// A socket is writable nearly always: asking for it without need would end every sleep at once.
    pub(crate) is_writable: bool,
}

/// Sleeps until one of the sockets has what its runner waits for, or `wake_up` is used, but no longer than
/// `max`. It may return for nothing.
///
/// # Errors
/// As the system says.
pub fn wait(interests: &[Interest<'_>], wake_up: Option<&WakeUp>, max: Duration) -> io::Result<()> {
    if max.is_zero() {
        return Ok(());
    }
    let mut watched: Vec<_> = interests.iter().filter_map(watch).collect();
    watched.extend(wake_up.map(|wake_up| PollFd::new(wake_up, PollFlags::IN)));
    let max = Timespec::try_from(max.min(MAX_WAIT)).ok();
    match poll(&mut watched, max.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let was_used = watched.last().is_some_and(|last| !last.revents().is_empty());
    match wake_up {
        Some(wake_up) if was_used => wake_up.clear(),
        _ => {}
    }
    Ok(())
}

/// A socket of no interest is left out: the system reports its errors even if nothing is asked.
fn watch<'a>(interest: &Interest<'a>) -> Option<PollFd<'a>> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.is_readable);
    flags.set(PollFlags::OUT, interest.is_writable);
    (!flags.is_empty()).then(|| PollFd::new(interest.socket, flags))
}
