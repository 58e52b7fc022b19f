//! The state machine of one packet in reassembly. A test prints its table into `docs/STATES.md`.

/// The state of a sequence in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// No fragment of it was received.
    Unheard,
    /// Some fragments were received; the first of them has set the count.
    InProgress,
    /// The packet is complete and was delivered. Every further fragment is a duplicate.
    Delivered,
    /// Its fragments were dropped to make room, or because they took too long. Further ones are not kept.
    Evicted,
}

/// What changes an [`EntryState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryTrigger {
    /// A fragment that is not the last one missing.
    Fragment,
    /// The last fragment that was missing.
    LastMissing,
    /// Its memory was given to another packet, or its time is over.
    GivenUp,
    /// The window has moved past it, the peer restarted, or no fragment arrived for long after it was given
    /// up.
    Forgotten,
}

impl EntryState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unheard, Self::InProgress, Self::Delivered, Self::Evicted];

    /// The state after `news`; `None` where it changes nothing or cannot happen.
    #[must_use]
    pub const fn next(self, news: EntryTrigger) -> Option<Self> {
        use EntryTrigger as N;
        Some(match (self, news) {
            (Self::Unheard, N::Fragment) => Self::InProgress,
            // Directly from unheard if the packet has only one fragment.
            (Self::Unheard | Self::InProgress, N::LastMissing) => Self::Delivered,
            // Directly from unheard if there is no room for its first fragment.
            (Self::Unheard | Self::InProgress, N::GivenUp) => Self::Evicted,
            (Self::InProgress | Self::Delivered | Self::Evicted, N::Forgotten) => Self::Unheard,
            _ => return None,
        })
    }
}

impl EntryTrigger {
    /// Every trigger.
    pub const ALL: [Self; 4] = [Self::Fragment, Self::LastMissing, Self::GivenUp, Self::Forgotten];
}
