//! The states of a chunk sender and a chunk receiver, and the transitions between them.
//!
//! The tables are data: the machines move only through [`SenderState::next`] and
//! [`ReceiverState::next`], and a test prints both into `docs/STATES.md`.

/// The state of a [`ChunkSender`](super::ChunkSender).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderState {
    /// No chunk in flight; the next in the queue may start.
    Idle,
    /// Sending every slice once, back to back.
    Burst,
    /// After a burst: nothing is sent while the network drains and the first acks arrive.
    Hold,
    /// Sending unacked slices within the budget.
    Budgeted,
    /// A chunk failed in flight. The two ends may disagree about its number, so nothing is sent until
    /// both are reset (docs/decisions/0004-a-failed-chunk-ends-the-run.md).
    Stopped,
}

/// What moves a [`SenderState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderTrigger {
    /// A chunk leaves the queue, with the initial burst switched on.
    StartWithBurst,
    /// A chunk leaves the queue, with the burst switched off.
    StartWithBudget,
    /// The last slice of the burst was sent.
    BurstSent,
    /// The wait after the burst is over.
    HoldOver,
    /// Every slice is acked.
    AllAcked,
    /// The chunk was cancelled or given up, or the receiver lost what it had.
    Failed,
    /// The application starts over.
    Reset,
}

impl SenderState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Burst, Self::Hold, Self::Budgeted, Self::Stopped];

    /// The state after `news`; `None` where it cannot happen.
    #[must_use]
    pub const fn next(self, news: SenderTrigger) -> Option<Self> {
        use SenderTrigger as N;
        Some(match (self, news) {
            (Self::Idle, N::StartWithBurst) => Self::Burst,
            (Self::Idle, N::StartWithBudget) => Self::Budgeted,
            (Self::Burst, N::BurstSent) => Self::Hold,
            (Self::Hold, N::HoldOver) => Self::Budgeted,
            // Not from a burst: its last slice is unsent, and acks of unsent slices are ignored.
            (Self::Hold | Self::Budgeted, N::AllAcked) => Self::Idle,
            (Self::Burst | Self::Hold | Self::Budgeted, N::Failed) => Self::Stopped,
            (_, N::Reset) => Self::Idle,
            _ => return None,
        })
    }

    /// Whether a chunk is in flight.
    #[must_use]
    pub const fn is_sending(self) -> bool {
        matches!(self, Self::Burst | Self::Hold | Self::Budgeted)
    }
}

impl SenderTrigger {
    /// Every kind of news.
    pub const ALL: [Self; 7] = [
        Self::StartWithBurst,
        Self::StartWithBudget,
        Self::BurstSent,
        Self::HoldOver,
        Self::AllAcked,
        Self::Failed,
        Self::Reset,
    ];
}

/// The state of a [`ChunkReceiver`](super::ChunkReceiver).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverState {
    /// No slice of the next chunk has arrived.
    Waiting,
    /// Some slices of a chunk have arrived.
    Receiving,
    /// The receive queue is full of complete chunks; slices of the next are refused until one is read.
    Full,
}

/// What moves a [`ReceiverState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverTrigger {
    /// The first slice of a chunk arrived.
    FirstSlice,
    /// The last missing slice arrived, and the queue has room for another chunk.
    Completed,
    /// The last missing slice arrived, and with it the queue is full.
    CompletedAndFull,
    /// The application read a chunk from a full queue.
    Read,
    /// No new slice for too long: the incomplete chunk is dropped.
    Abandoned,
    /// The application starts over.
    Reset,
}

impl ReceiverState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Receiving, Self::Full];

    /// The state after `news`; `None` where it cannot happen.
    #[must_use]
    pub const fn next(self, news: ReceiverTrigger) -> Option<Self> {
        use ReceiverTrigger as N;
        Some(match (self, news) {
            (Self::Waiting, N::FirstSlice) => Self::Receiving,
            (Self::Receiving, N::Completed | N::Abandoned) => Self::Waiting,
            (Self::Receiving, N::CompletedAndFull) => Self::Full,
            (Self::Full, N::Read) => Self::Waiting,
            (_, N::Reset) => Self::Waiting,
            _ => return None,
        })
    }
}

impl ReceiverTrigger {
    /// Every kind of news.
    pub const ALL: [Self; 6] = [
        Self::FirstSlice,
        Self::Completed,
        Self::CompletedAndFull,
        Self::Read,
        Self::Abandoned,
        Self::Reset,
    ];
}
