//! The interface to what carries datagrams: a socket, or a substitute in a test.

use std::io;

use haulier_core::Run;

use crate::Inbox;

/// Carries datagrams, and never waits. It returns the system's errors; the [`Runner`](crate::Runner) judges
/// them.
pub trait Carrier {
    /// Fills `inbox` with the datagrams that have arrived, as far as they fit, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing; anything else the system says.
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<usize>;

    /// Sends all datagrams of a run, or none of them.
    ///
    /// # Errors
    /// As the system says.
    fn send(&mut self, run: &Run<'_>) -> io::Result<()>;

    /// Sends several datagrams, each a run of its own, that have one ECN field, one address of ours and one
    /// version of IP. Returns the number that were sent, from the first on; an error is that of the first.
    ///
    /// # Errors
    /// As the system says.
    fn send_several(&mut self, datagrams: &[Run<'_>]) -> io::Result<usize> {
        datagrams.first().map_or(Ok(0), |first| self.send(first).map(|()| 1))
    }

    /// The maximum number of datagrams of such a call: 1 if the system has no call for several.
    fn max_several(&self) -> usize {
        1
    }

    /// The maximum number of datagrams of a run: 1 if the system cannot split.
    fn max_segments(&self) -> usize;

    /// From now on a run has at most this many.
    fn limit_segments(&mut self, max_segments: usize);
}
