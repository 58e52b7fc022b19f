//! What a connection is doing, as a table: docs/STATES.md is printed from it.

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// A server's: it has answered, and waits for the first data that proves the client's address.
    Responding,
    /// A client's: it has verified a response, and repeats a ping until its own data is acknowledged.
    Confirming,
    /// Both ends have heard each other.
    Connected,
    /// This end has closed; its close is sent three times.
    Closing,
    /// It is over, and nothing is sent any more.
    Closed,
}

/// What moves a [`ConnectionState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionNews {
    /// Data of the client was verified, from the address it asked from.
    AddressProven,
    /// A datagram of ours was acknowledged.
    Confirmed,
    /// The application closes, or the peer broke a rule, or a block stood still.
    CloseHere,
    /// The peer closes.
    CloseThere,
    /// The last close was sent.
    CloseSent,
    /// Nothing was heard for the idle time-out, or for the handshake time-out.
    Silence,
    /// The peer does not know this connection any more.
    Reset,
}

impl ConnectionState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Responding, Self::Confirming, Self::Connected, Self::Closing, Self::Closed];

    /// The state after `news`; `None` where it changes nothing.
    #[must_use]
    pub const fn next(self, news: ConnectionNews) -> Option<Self> {
        use ConnectionNews as News;
        Some(match (self, news) {
            (Self::Responding, News::AddressProven) | (Self::Confirming, News::Confirmed) => {
                Self::Connected
            }
            (Self::Responding | Self::Confirming | Self::Connected, News::CloseHere) => {
                Self::Closing
            }
            (
                Self::Responding | Self::Confirming | Self::Connected | Self::Closing,
                News::CloseThere | News::Silence | News::Reset,
            )
            | (Self::Closing, News::CloseSent) => Self::Closed,
            _ => return None,
        })
    }

    /// Whether blocks, packets and messages may flow.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Responding | Self::Confirming | Self::Connected)
    }
}

impl ConnectionNews {
    /// Every kind of news.
    pub const ALL: [Self; 7] = [
        Self::AddressProven,
        Self::Confirmed,
        Self::CloseHere,
        Self::CloseThere,
        Self::CloseSent,
        Self::Silence,
        Self::Reset,
    ];
}
