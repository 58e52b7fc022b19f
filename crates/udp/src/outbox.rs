//! What is to be sent, collected so that one call sends many datagrams.
//!
//! The system splits one buffer into datagrams of equal size (generic segmentation offload, GSO), of which
//! the last may be shorter. So datagrams to one address are put end to end, until one is for somebody else,
//! or longer, or no more are allowed. A machine that was asked for a datagram has handed it out: whatever the
//! socket says, each is offered until it is taken or lost, in the order in which it was handed out.

use std::io;
use std::net::SocketAddr;

use crate::Sent;

/// Bytes that one batch holds at most: the longest IPv4 packet, without the headers of IPv6 and UDP. One of
/// IPv6 could be 40 bytes longer, which is no datagram more.
const MAX_BATCH_BYTES: usize = 65_535 - 40 - 8;

/// What sends, and has sorted its errors.
pub(crate) trait DatagramSender {
    /// How many datagrams one call sends; 1 if the system cannot split.
    fn max_segments(&self) -> usize;
    /// One datagram.
    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent>;
    /// Several, all of `segment` bytes but for the last.
    fn send_segments(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<BatchSent>;
    /// The system refuses batches, and takes the same datagrams one by one.
    fn stop_segments(&mut self);
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchSent {
    /// All is as for one datagram, and so for all of them.
    As(Sent),
    /// The system does not split, or not for this address. Nothing was sent.
    Refused,
}

/// How far [`Socket::transmit`](crate::Socket::transmit) came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitted {
    /// Nothing is left to send.
    All,
    /// The system has no room for more: go on when the socket is writable.
    Blocked,
    /// As many as it should, and there may be more.
    Most,
}

/// Datagrams on their way from a machine to a socket.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The batch: datagrams of `segment` bytes end to end, only the last may be shorter.
    bytes: Vec<u8>,
    segment: usize,
    /// How many they are.
    count: usize,
    /// Whom the batch is for; `None` if there is none.
    to: Option<SocketAddr>,
    /// Bytes of it that have left, one by one.
    gone: usize,
    state: State,
    /// The datagram that did not fit the batch, and begins the next.
    staged: Vec<u8>,
    staged_to: Option<SocketAddr>,
}

/// What the system said to the batch so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing, or "not now".
    #[default]
    Fresh,
    /// An error, which may have been an earlier datagram's: sockets report those with the next call.
    LostOnce,
    /// That it splits none. Whether a datagram of it was taken alone.
    Singly { is_any_taken: bool },
}

impl Outbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether something waits for the socket to be writable.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.to.is_some()
    }

    /// Drops what waits.
    pub fn clear(&mut self) {
        (self.to, self.staged_to) = (None, None);
    }

    /// Sends what waits, and then what `poll` hands out, up to `most` datagrams.
    pub(crate) fn transmit(
        &mut self,
        sender: &mut impl DatagramSender,
        most: usize,
        mut poll: impl FnMut(&mut Vec<u8>) -> Option<SocketAddr>,
    ) -> io::Result<Transmitted> {
        let mut left = most;
        loop {
            if self.to.is_none() {
                if left == 0 {
                    return Ok(Transmitted::Most);
                }
                self.fill(sender.max_segments().min(left), &mut poll);
                left -= self.count;
            }
            let Some(to) = self.to else { return Ok(Transmitted::All) };
            if self.send(sender, to)? == Sent::Blocked {
                return Ok(Transmitted::Blocked);
            }
            self.to = None;
        }
    }

    /// Collects the next batch; there is none now.
    fn fill(&mut self, segments: usize, poll: &mut impl FnMut(&mut Vec<u8>) -> Option<SocketAddr>) {
        self.bytes.clear();
        (self.segment, self.count, self.gone, self.state) = (0, 0, 0, State::Fresh);
        while self.takes_more(segments) {
            let Some(to) = self.staged_to.take().or_else(|| poll(&mut self.staged)) else { return };
            match self.to {
                None => (self.to, self.segment) = (Some(to), self.staged.len()),
                // An empty one would add nothing to the bytes, and so would not be there.
                Some(batch)
                    if batch != to
                        || self.staged.is_empty()
                        || self.staged.len() > self.segment =>
                {
                    self.staged_to = Some(to);
                    return;
                }
                Some(_) => {}
            }
            self.bytes.extend_from_slice(&self.staged);
            self.count += 1;
        }
    }

    fn takes_more(&self, segments: usize) -> bool {
        let Some(to) = self.to else { return true };
        self.count < segments
            && self.bytes.len() == self.segment * self.count
            && self.bytes.len() + self.segment <= MAX_BATCH_BYTES
            && self.segment > 0
            // Nothing can be sent there, and who made the address up would have each batch tried for nothing.
            && to.port() != 0
    }

    /// Offers the batch, whole or what is left of it. Returns `Blocked` if it must be offered again.
    fn send(&mut self, sender: &mut impl DatagramSender, to: SocketAddr) -> io::Result<Sent> {
        while self.count > 1
            && self.count <= sender.max_segments()
            && !matches!(self.state, State::Singly { .. })
        {
            match sender.send_segments(&self.bytes, self.segment, to)? {
                BatchSent::As(Sent::Lost) if self.state == State::Fresh => {
                    self.state = State::LostOnce;
                }
                BatchSent::As(sent) => return Ok(sent),
                BatchSent::Refused => self.state = State::Singly { is_any_taken: false },
            }
        }
        loop {
            let end = (self.gone + self.segment).min(self.bytes.len());
            match (sender.send(&self.bytes[self.gone..end], to)?, &mut self.state) {
                (Sent::Blocked, _) => return Ok(Sent::Blocked),
                (Sent::Taken, State::Singly { is_any_taken }) => *is_any_taken = true,
                _ => {}
            }
            self.gone = end;
            if end == self.bytes.len() {
                break;
            }
        }
        // If the address takes nothing at all, it was not the batch that was refused.
        if (self.state == State::Singly { is_any_taken: true }) {
            sender.stop_segments();
        }
        Ok(Sent::Taken)
    }
}

#[cfg(test)]
mod tests;
