//! The two machines with a connection and a disk: what a program needs to give or take files.
//!
//! ```text
//! events of the connection -> handle_event -+
//! the pool's wake ---------------------------+-> turn: jobs for the pool, calls of the Link
//! ```
//!
//! A [`Giving`] is one [`Giver`](crate::giver::Giver) with the files of a [`Library`]; a [`Taking`] is one
//! [`Taker`](crate::taker::Taker) with a place to store files. The connection is whatever is a [`Link`]. A
//! server that takes files has an [`Inbox`], and an [`Upload`] for each client that sends some.
//! With the feature `net` a `Fetch` or a `Put` is all of a transfer in one call, and a `Serving` all clients
//! of a server that has other things to do as well.
//!
//! The invariant: nothing here waits for the disk. What does is a job of the pool, whose answer is taken by
//! the next `turn`; [`Giving::is_busy`] and [`Taking::is_busy`] say whether one is due.

mod costs;
mod fetched;
#[cfg(feature = "net")]
mod fetching;
mod giving;
mod inbox;
mod inspect;
mod library;
#[cfg(feature = "net")]
mod net;
mod packs;
mod pipe;
#[cfg(feature = "net")]
mod putting;
#[cfg(feature = "net")]
mod serving;
mod shared;
mod taking;
mod upload;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as StdInstant;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, CloseCode, SendError, WantedChunk,
};

pub use fetched::was_fetched_into;
#[cfg(feature = "net")]
pub use fetching::{Fetch, FetchError};
pub use giving::Giving;
pub use inbox::Inbox;
pub use library::{Library, LibraryError};
#[cfg(feature = "net")]
pub use net::{ClientLink, ServerLink};
pub use packs::LinkSpeed;
#[cfg(feature = "net")]
pub use putting::Put;
#[cfg(feature = "net")]
pub use serving::{InboxEvent, Serving};
pub use taking::{Place, Taking};
pub use upload::Upload;

use crate::offer::Root;
use crate::pool::PoolHandle;
use crate::reason::{Fault, Reason};

/// The disk's answers are awaited by asking: 16 chunks in each turn are 33 Gbit/s.
#[cfg(feature = "net")]
const BUSY_TURN: std::time::Duration = std::time::Duration::from_millis(1);

/// The calls on a connection, of a client or of a server. With the feature `net`, `ClientLink` and
/// `ServerLink` implement them for the connections of `haulier`.
pub trait Link {
    /// Sends a message on channel 0.
    ///
    /// # Errors
    /// [`SendError`]; after `QueueFull` it is tried again.
    fn send_message(&self, message: Bytes) -> Result<(), SendError>;
    /// Sends a block.
    ///
    /// # Errors
    /// [`SendError`].
    fn send_block(&self, block: &Block) -> Result<BlockHandle, SendError>;
    /// Gives a block up.
    fn cancel_block(&self, handle: BlockHandle, code: u32);
    /// Does not want a block.
    fn decline_block(&self, block: BlockNumber, code: u32);
    /// Says which chunks of a block are here.
    fn have_chunks(&self, root: Root, map: Vec<u8>);
    /// The next chunk that is wanted.
    fn want_chunk(&self) -> Option<WantedChunk>;
    /// Provides a chunk. Of a block that is gone it is nothing.
    fn provide_chunk(&self, block: BlockHandle, index: u32, chunk: Bytes);
    /// The number of bytes of a block being sent that have arrived at the other end; 0 if the block is gone.
    fn arrived_bytes(&self, block: BlockHandle) -> u64;
    /// Bytes that are here of chunks that are not whole; 0 where that is not known.
    fn unfinished_bytes(&self) -> u64 {
        0
    }
    /// Whether all that was sent has arrived.
    fn all_acked(&self) -> bool;
    /// How fast it is, as far as that is known: for the choice whether to pack.
    fn speed(&self) -> LinkSpeed;
    /// The bytes that this end holds for the other one beside the connection: a server counts them to the
    /// memory of this client.
    fn hold_bytes(&self, bytes: usize) {
        let _ = bytes;
    }
    /// Closes the connection.
    fn close(&self, code: CloseCode, reason: &str);
}

/// The time, as the machines count it.
#[derive(Clone, Copy, Debug)]
struct Clock(StdInstant);

impl Clock {
    fn start() -> Self {
        Self(StdInstant::now())
    }

    fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Jobs on the pool, and their answers.
struct Jobs<A> {
    pool: PoolHandle,
    answers: Arc<Mutex<VecDeque<A>>>,
    open: usize,
}

impl<A: Send + 'static> Jobs<A> {
    fn new(pool: &PoolHandle) -> Self {
        Self { pool: pool.clone(), answers: Arc::default(), open: 0 }
    }

    /// Does this on the pool; `answer` makes of what came of it what [`Jobs::take`] returns.
    fn run<T: 'static>(
        &mut self,
        job: impl FnOnce() -> Result<T, Fault> + Send + 'static,
        answer: impl FnOnce(Result<T, Fault>) -> A + Send + 'static,
    ) {
        let ticket = self.ticket(answer);
        self.pool.run(move || {
            if ticket.is_wanted() {
                ticket.answer(job());
            }
        });
    }

    /// Runs a job when nothing is urgent, and on few threads: for jobs that take long or much memory.
    fn run_when_idle<T: 'static>(
        &mut self,
        job: impl FnOnce() -> Result<T, Fault> + Send + 'static,
        answer: impl FnOnce(Result<T, Fault>) -> A + Send + 'static,
    ) {
        let ticket = self.ticket(answer);
        self.pool.run_when_idle(move || {
            if ticket.is_wanted() {
                ticket.answer(job());
            }
        });
    }

    /// The right to one answer, for what is not a single job.
    fn ticket<T: 'static>(
        &mut self,
        answer: impl FnOnce(Result<T, Fault>) -> A + Send + 'static,
    ) -> Ticket<T> {
        self.open += 1;
        let (answers, pool) = (Arc::downgrade(&self.answers), self.pool.clone());
        let looked_at = answers.clone();
        Ticket {
            is_wanted: Box::new(move || looked_at.strong_count() > 0),
            answer: Some(Box::new(move |result| {
                let Some(answers) = answers.upgrade() else { return };
                let answer = answer(result);
                answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
                pool.wake();
            })),
        }
    }

    fn take(&mut self) -> Option<A> {
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        self.open -= 1;
        Some(answer)
    }
}

/// The duty to answer a session. It is answered once: a ticket that is dropped, because its job panicked or
/// was cancelled, answers with an error.
struct Ticket<T> {
    is_wanted: Box<dyn Fn() -> bool + Send>,
    answer: Option<AnswerWith<T>>,
}

type AnswerWith<T> = Box<dyn FnOnce(Result<T, Fault>) + Send>;

impl<T> Ticket<T> {
    /// Whether its session still exists.
    fn is_wanted(&self) -> bool {
        (self.is_wanted)()
    }

    fn answer(mut self, result: Result<T, Fault>) {
        if let Some(answer) = self.answer.take() {
            answer(result);
        }
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer(Err(Fault::new(Reason::Other, "a part of this program failed")));
        }
    }
}

/// Messages that wait for room in the connection's queue.
#[derive(Default)]
struct Outbox(VecDeque<Bytes>);

impl Outbox {
    fn send(&mut self, link: &impl Link) {
        while let Some(message) = self.0.pop_front() {
            if let Err(SendError::QueueFull { .. }) = link.send_message(message.clone()) {
                return self.0.push_front(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{DiskPool, Wake};

    /// A job that panics, or that is given to a pool that has ended, is answered with an error.
    #[test]
    fn every_job_has_an_answer() {
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let mut jobs = Jobs::new(pool.handle());
        jobs.run::<()>(|| panic!("a job of a test"), |result| result.is_ok());
        jobs.run(|| Ok(()), |result| result.is_ok());
        drop(pool);
        jobs.run(|| Ok(()), |result| result.is_ok());
        let answers: Vec<bool> = std::iter::from_fn(|| jobs.take()).collect();
        assert_eq!((answers, jobs.open), (vec![false, true, false], 0));
    }
}
