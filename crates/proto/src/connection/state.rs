//! The states of a connection as a table: docs/STATES.md is printed from it.

/// The state of a connection.
///
/// # Examples
/// ```
/// use haulier_proto::connection::ConnectionState;
///
/// assert!(ConnectionState::Connected.is_open());
/// assert!(!ConnectionState::Closing.is_open()); // what is sent now is not taken
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectionState {
    /// At a server: it has answered, and the client's first data, which validates its address, is missing.
    Responding,
    /// At a client: it has verified a response, and repeats a ping until its own data is acknowledged.
    Confirming,
    /// Both ends have received data from each other.
    Connected,
    /// It has ended, and a close frame is being sent: until it is answered if this end has closed, once if
    /// the peer has.
    Closing,
    /// It has ended, and nothing is sent any more.
    Closed,
}

/// What changes a [`ConnectionState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionTrigger {
    /// The client's address was validated: by data from the address of its request, or by a path response.
    AddressValidated,
    /// A datagram of ours was acknowledged.
    Confirmed,
    /// This end closes: the application did, the peer violated a rule, or a block made no progress.
    CloseHere,
    /// The peer closes, or answers a close.
    CloseThere,
    /// The last close frame was sent.
    CloseSent,
    /// Nothing arrived for the idle timeout or the handshake timeout, or no key is left to send with.
    Silence,
    /// A reset: the server no longer knows this connection.
    Reset,
}

impl ConnectionState {
    /// Every state.
    #[doc(hidden)]
    pub const ALL: [Self; 5] =
        [Self::Responding, Self::Confirming, Self::Connected, Self::Closing, Self::Closed];

    /// The state after `trigger`; `None` if it changes nothing.
    #[doc(hidden)]
    #[must_use]
    pub const fn next(self, trigger: ConnectionTrigger) -> Option<Self> {
        use ConnectionTrigger as Trigger;
        Some(match (self, trigger) {
            (Self::Responding, Trigger::AddressValidated)
            | (Self::Confirming, Trigger::Confirmed) => Self::Connected,
            (
                Self::Responding | Self::Confirming | Self::Connected,
                Trigger::CloseHere | Trigger::CloseThere,
            ) => Self::Closing,
            (
                Self::Responding | Self::Confirming | Self::Connected | Self::Closing,
                Trigger::Silence | Trigger::Reset,
            )
            | (Self::Closing, Trigger::CloseThere | Trigger::CloseSent) => Self::Closed,
            _ => return None,
        })
    }

    /// Whether blocks, packets and messages can be sent and received.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Responding | Self::Confirming | Self::Connected)
    }
}

impl ConnectionTrigger {
    /// Every trigger.
    pub const ALL: [Self; 7] = [
        Self::AddressValidated,
        Self::Confirmed,
        Self::CloseHere,
        Self::CloseThere,
        Self::CloseSent,
        Self::Silence,
        Self::Reset,
    ];
}
