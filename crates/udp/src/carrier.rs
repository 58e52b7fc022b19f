//! What carries datagrams: a socket, or something like it in a test.

use std::io;

use haulier_core::Run;

use crate::Inbox;

/// Carries datagrams, and never waits. It says what the system says; the [`Runner`](crate::Runner) judges it.
pub trait Carrier {
    /// Fills `inbox` with what has arrived, as far as it holds it, and returns how many datagrams that are.
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
    /// version of IP. Returns how many have gone, from the first on; an error is the first one's.
    ///
    /// # Errors
    /// As the system says.
    fn send_several(&mut self, datagrams: &[Run<'_>]) -> io::Result<usize> {
        datagrams.first().map_or(Ok(0), |first| self.send(first).map(|()| 1))
    }

    /// How many datagrams that may have: 1 if the system has no call for several.
    fn max_several(&self) -> usize {
        1
    }

    /// How many datagrams a run may have: 1 if the system cannot split.
    fn max_segments(&self) -> usize;

    /// From now on a run has at most this many.
    fn limit_segments(&mut self, max_segments: usize);
}
