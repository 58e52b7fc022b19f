//! What sort of thing went wrong, in one word: the same list for every language and for the command line.
//!
//! A sentence is for a person and may be reworded; a program tells cases apart by the kind. It is coarser
//! than the error types of Rust, and finer than an exit code. docs/ENGINES.md says what helps in each case.

use super::{CloseReason, SendError};

/// What sort of thing went wrong, for programs: in every language the same words.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{CloseReason, ErrorKind};
///
/// let kind = CloseReason::ConnectionUnknown.kind();
/// assert_eq!(kind, ErrorKind::Lost);
/// assert_eq!(kind.name(), "lost"); // as in C, Python, a page, and the JSON of the command line
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program asked for something that makes no sense: mend the program.
    Usage,
    /// The text is no ticket and no connect token, or one that this version does not know.
    Credentials,
    /// Nobody listens there, or there is no route.
    Unreachable,
    /// No answer to the request, in the time for one.
    NoAnswer,
    /// The server refused the request; its code says why.
    Refused,
    /// An open connection fell silent, or something was not done in its time.
    Timeout,
    /// This end or the peer closed the connection; its code says why.
    Closed,
    /// The server does not know the connection any more: it was restarted.
    Lost,
    /// The connection is not open: not yet, or not any more.
    NotOpen,
    /// Too much is waiting to be sent: later there is room again.
    Full,
    /// A socket, a file, a disk, the system.
    Io,
    /// A bug of haulier.
    Internal,
}

impl ErrorKind {
    /// Every kind. New ones are added at the end: the place in this list is the number in C.
    pub const ALL: [Self; 12] = [
        Self::Usage,
        Self::Credentials,
        Self::Unreachable,
        Self::NoAnswer,
        Self::Refused,
        Self::Timeout,
        Self::Closed,
        Self::Lost,
        Self::NotOpen,
        Self::Full,
        Self::Io,
        Self::Internal,
    ];

    /// Its name: small letters and hyphens, the same in every language, and never changed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::NoAnswer => "no-answer",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Lost => "lost",
            Self::NotOpen => "not-open",
            Self::Full => "full",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }
}

impl core::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl CloseReason {
    /// What sort of end it is. A close is [`ErrorKind::Closed`] also where nothing went wrong
    /// ([`CloseCode::DONE`](super::CloseCode::DONE)): whether it is an error is the application's to say.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Here(_) | Self::There { .. } | Self::KeyUsedUp => ErrorKind::Closed,
            Self::TimedOut => ErrorKind::Timeout,
            Self::NoAnswer => ErrorKind::NoAnswer,
            Self::Unreachable => ErrorKind::Unreachable,
            Self::Refused(_) => ErrorKind::Refused,
            Self::ConnectionUnknown => ErrorKind::Lost,
        }
    }
}

impl SendError {
    /// What sort of error it is: [`NotOpen`](ErrorKind::NotOpen), [`Full`](ErrorKind::Full), or else
    /// [`Usage`](ErrorKind::Usage).
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOpen | Self::NumbersUsedUp => ErrorKind::NotOpen,
            Self::QueueFull { .. } => ErrorKind::Full,
            Self::BlockTooLarge { .. }
            | Self::TagTooLarge { .. }
            | Self::TooLarge { .. }
            | Self::NoSuchChannel { .. } => ErrorKind::Usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C has the place in the list as its number, so each kind has one place, and its own.
    #[test]
    fn names_and_places_are_distinct() {
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind}");
            assert!(ErrorKind::ALL[..place].iter().all(|other| other.name() != kind.name()));
        }
    }
}
