//! What a reassembler knows of one packet, and what moves it. A test prints the table into
//! `docs/STATES.md`.

/// What is known of a sequence of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// No fragment of it was heard.
    Unheard,
    /// Some fragments are here; the first of them has fixed the count.
    InProgress,
    /// The packet was whole and was handed over. Every further fragment is a duplicate.
    Delivered,
    /// Its fragments had to make room, or took too long. It will not be whole; the rest is not kept.
    Evicted,
}

/// What moves an [`EntryState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryNews {
    /// A fragment that is not the last one missing.
    Fragment,
    /// The last fragment that was missing.
    LastMissing,
    /// Its memory was given to others, or its time is over.
    GivenUp,
    /// The window has moved past it, the peer restarted, or nothing of it arrived since long after it was
    /// given up.
    Forgotten,
}

impl EntryState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unheard, Self::InProgress, Self::Delivered, Self::Evicted];

    /// The state after `news`; `None` where it changes nothing or cannot happen.
    #[must_use]
    pub const fn next(self, news: EntryNews) -> Option<Self> {
        use EntryNews as N;
        Some(match (self, news) {
            (Self::Unheard, N::Fragment) => Self::InProgress,
            // From unheard at once if the packet has only one fragment.
            (Self::Unheard | Self::InProgress, N::LastMissing) => Self::Delivered,
            // From unheard at once if its first fragment finds no room.
            (Self::Unheard | Self::InProgress, N::GivenUp) => Self::Evicted,
            (Self::InProgress | Self::Delivered | Self::Evicted, N::Forgotten) => Self::Unheard,
            _ => return None,
        })
    }
}

impl EntryNews {
    /// Every kind of news.
    pub const ALL: [Self; 4] = [Self::Fragment, Self::LastMissing, Self::GivenUp, Self::Forgotten];
}
