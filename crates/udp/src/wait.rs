//! Waiting for sockets, precisely.
//!
//! Pacing has deadlines a millisecond apart, so a wait that is rounded up to whole milliseconds, as those of
//! `epoll_wait` and `kqueue` libraries are, would miss each of them by half a millisecond. `ppoll` takes
//! nanoseconds; what remains on Linux is the slack of the thread's timers, 50 µs by default. On systems
//! without it (Windows, macOS) the wait is rounded up.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::Socket;

/// Longer waits end early, for `poll` of some systems knows no longer ones than 24 days.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Sleeps until one of `sockets` has received something, or is writable again after it was not, but no
/// longer than `most`. It may wake for nothing.
///
/// # Errors
/// As the system says.
pub fn wait(sockets: &[&Socket], most: Duration) -> io::Result<()> {
    let mut watched: Vec<_> = sockets.iter().map(|socket| watch(socket)).collect();
    wait_for(&mut watched, most)
}

/// The same for one.
pub(crate) fn wait_one(socket: &Socket, most: Duration) -> io::Result<()> {
    wait_for(&mut [watch(socket)], most)
}

fn watch(socket: &Socket) -> PollFd<'_> {
    // A socket is writable nearly always; asked without need, it would never let us sleep.
    let room = if socket.awaits_room() { PollFlags::OUT } else { PollFlags::empty() };
    PollFd::new(socket, PollFlags::IN | room)
}

fn wait_for(watched: &mut [PollFd<'_>], most: Duration) -> io::Result<()> {
    if most.is_zero() {
        return Ok(());
    }
    let most = Timespec::try_from(most.min(LONGEST)).ok();
    match poll(watched, most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
