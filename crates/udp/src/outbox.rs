//! The datagrams that a machine has handed out, on their way to the carrier.
//!
//! The system splits one buffer into datagrams of equal size (generic segmentation offload, GSO), so a batch
//! goes run by run ([`Batch::run`]), from the buffer in which it was composed. Where the system does not
//! split, or each datagram goes to another peer, one call still offers several. A datagram that the machine
//! has handed out is gone from it: whatever the system says, each is offered until taken or lost, in order.

use std::io;
use std::ops::Range;

use haulier_core::{Batch, Run};

use crate::errors::{Meaning, is_refused, is_split_refused, is_too_long, sort};
use crate::{Carrier, RunnerStats};

/// Datagrams of a batch: as many of 1200 bytes as one call sends.
const BATCH_DATAGRAMS: usize = 54;

/// Bytes that one call sends at most: the longest IPv4 packet, without the headers of IPv6 and UDP. One of
/// IPv6 could be 40 bytes longer, which is no datagram more.
const MAX_RUN_BYTES: usize = 65_535 - 40 - 8;

/// A batch, and which of its datagrams have gone.
#[derive(Debug)]
pub(crate) struct Outbox {
    batch: Batch,
    /// The first datagram that has not gone.
    next: usize,
    state: State,
    blocked: Option<Blocked>,
}

/// The answer of the system to earlier offers of the run at `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing, or "not now".
    Fresh,
    /// An error, which may have been an earlier datagram's: sockets report those with the next call.
    LostOnce,
    /// That it splits none, or that one of them is too long. Its datagrams go alone, up to here; whether one
    /// of them was taken.
    Singly { end: usize, is_any_taken: bool, is_too_long: bool },
}

/// Why nothing more can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The socket's buffer is full. The system says when there is room.
    BySocket,
    /// A queue behind it is full (`ENOBUFS`). The system does not say when there is room.
    ByInterface,
}

/// What became of a run.
enum Sent {
    /// The system took this number of datagrams.
    Taken(usize),
    Blocked(Blocked),
    Lost,
    /// The system does not split, or not for this address. Nothing was sent.
    SplitRefused,
    /// One of several is longer than the interface takes. Nothing was sent.
    TooLong,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self { batch: Batch::new(BATCH_DATAGRAMS), next: 0, state: State::Fresh, blocked: None }
    }

    /// Whether, and why, something waits for room.
    pub(crate) const fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    /// Lets `compose` fill the batch, which is empty before. Returns the number of its datagrams.
    pub(crate) fn fill(&mut self, compose: impl FnOnce(&mut Batch)) -> usize {
        debug_assert!(self.next == self.batch.len(), "the last batch was sent");
        self.batch.clear();
        self.next = 0;
        compose(&mut self.batch);
        self.batch.len()
    }

    /// Whether the batch came back without room: there may be more.
    pub(crate) const fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// Sends the rest of the batch. Returns whether each datagram was taken or lost.
    pub(crate) fn send(
        &mut self,
        carrier: &mut impl Carrier,
        stats: &mut RunnerStats,
    ) -> io::Result<bool> {
        self.blocked = None;
        loop {
            let (max_datagrams, end) = match self.state {
                State::Singly { end, .. } => (1, end),
                State::Fresh | State::LostOnce => (carrier.max_segments(), self.batch.len()),
            };
            let Some(run) = next_run(&self.batch, self.next, max_datagrams) else {
                return Ok(true);
            };
            let is_several = run.datagrams > 1;
            let behind = self.next + 1..end.min(self.next + carrier.max_several());
            let others = others(&self.batch, &run, behind, max_datagrams);
            let mut gone = run.datagrams;
            match (offer(carrier, run, others, stats)?, &mut self.state) {
                (Sent::Blocked(why), _) => {
                    self.blocked = Some(why);
                    return Ok(false);
                }
                (sent @ (Sent::SplitRefused | Sent::TooLong), state) => {
                    let (end, is_too_long) =
                        (self.next + run.datagrams, matches!(sent, Sent::TooLong));
                    *state = State::Singly { end, is_any_taken: false, is_too_long };
                    continue;
                }
                (Sent::Lost, state @ State::Fresh) if is_several => {
                    *state = State::LostOnce;
                    continue;
                }
                (Sent::Taken(datagrams), state) => {
                    gone = datagrams;
                    if let State::Singly { is_any_taken, .. } = state {
                        *is_any_taken = true;
                    }
                }
                (Sent::Lost, _) => {}
            }
            self.next += gone;
            match self.state {
                State::Singly { end, .. } if self.next < end => continue,
                // If the address takes nothing at all, it was not the run that was refused.
                State::Singly { is_any_taken: true, is_too_long: false, .. } => {
                    carrier.limit_segments(1);
                }
                _ => {}
            }
            self.state = State::Fresh;
        }
    }
}

/// The run at `next`. Nothing can be sent to port 0, and a forged address with it would make each run fail:
/// those are sent alone.
fn next_run(batch: &Batch, next: usize, max_datagrams: usize) -> Option<Run<'_>> {
    let run = batch.run(next, max_datagrams, MAX_RUN_BYTES)?;
    if run.datagrams > 1 && run.path.remote.port() == 0 {
        return batch.run(next, 1, MAX_RUN_BYTES);
    }
    Some(run)
}

/// The datagrams at these places that may be offered together with the one in front of them, up to the first
/// that may not. Where the system splits, a run of several ends this list.
fn others<'a>(
    batch: &'a Batch,
    first: &Run<'_>,
    places: Range<usize>,
    max_datagrams: usize,
) -> Vec<Run<'a>> {
    let is_v4 = |run: &Run<'_>| run.path.remote.ip().to_canonical().is_ipv4();
    let goes_alike = |run: &Run<'_>| {
        run.datagrams == 1
            && run.path.remote.port() != 0
            && (run.ecn, run.path.local, is_v4(run)) == (first.ecn, first.path.local, is_v4(first))
    };
    if places.is_empty() || !goes_alike(first) {
        return Vec::new();
    }
    let runs = places.map_while(|place| next_run(batch, place, max_datagrams));
    runs.take_while(goes_alike).collect()
}

/// Offers a run to the system, with the others if there are some, and judges and counts what it says.
fn offer<'a>(
    carrier: &mut impl Carrier,
    run: Run<'a>,
    mut others: Vec<Run<'a>>,
    stats: &mut RunnerStats,
) -> io::Result<Sent> {
    let sent = if others.is_empty() {
        carrier.send(&run).map(|()| run.datagrams)
    } else {
        others.insert(0, run);
        let sent = carrier.send_several(&others);
        sent.inspect(|&sent| {
            let behind = others.get(1..sent).unwrap_or_default();
            stats.sent_bytes += behind.iter().map(|it| it.bytes.len() as u64).sum::<u64>();
        })
    };
    let error = match sent {
        Ok(datagrams) => {
            stats.sent += datagrams as u64;
            stats.sent_bytes += run.bytes.len() as u64;
            stats.batches += u64::from(datagrams > 1);
            stats.send_calls += 1;
            return Ok(Sent::Taken(datagrams));
        }
        Err(error) => error,
    };
    if run.datagrams > 1 && is_too_long(&error) {
        return Ok(Sent::TooLong);
    }
    if run.datagrams > 1 && is_split_refused(&error) {
        return Ok(Sent::SplitRefused);
    }
    match sort(&error) {
        Meaning::NotNow => {
            stats.blocked += 1;
            let is_own = error.kind() == io::ErrorKind::WouldBlock;
            Ok(Sent::Blocked(if is_own { Blocked::BySocket } else { Blocked::ByInterface }))
        }
        Meaning::PassesOver => {
            stats.passed_over += 1;
            stats.refused += u64::from(is_refused(&error));
            Ok(Sent::Lost)
        }
        Meaning::Fatal => Err(error),
    }
}

#[cfg(test)]
mod tests;
