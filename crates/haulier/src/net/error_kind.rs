//! The kind of each error of a handle, for programs that tell cases apart in one word, and for other
//! languages: docs/ENGINES.md.

use haulier_proto::connection::ErrorKind;

use super::error::{ConnectError, FinishError, IssueTokenError, ListenError, NetworkError};
use super::gateway::GatewayError;
use super::race::{Attempt, AttemptError};

impl NetworkError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Socket(_) | Self::Runtime => ErrorKind::Io,
            Self::Panicked => ErrorKind::Internal,
            Self::Inline => ErrorKind::Usage,
        }
    }
}

impl ConnectError {
    /// What sort of error it is. Of several addresses the result of the attempt that came furthest counts: a
    /// refusal before silence, silence before a closed port.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Ticket(_) | Self::Token(_) => ErrorKind::Credentials,
            Self::NoServer
            | Self::Unspecified(_)
            | Self::NoScope(_)
            | Self::Config(_)
            | Self::NoRuntime => ErrorKind::Usage,
            Self::Io(_) => ErrorKind::Io,
            Self::Failed(attempts) => of_attempts(attempts),
            Self::Network(error) => error.kind(),
        }
    }
}

impl AttemptError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NobodyListens | Self::NoRoute(_) => ErrorKind::Unreachable,
            Self::Closed(reason) => reason.kind(),
        }
    }
}

impl ListenError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Io(_) | Self::NoTimeOfDay => ErrorKind::Io,
            Self::Config(_)
            | Self::NobodyAccepted
            | Self::NoRuntime
            | Self::WorkersWithoutThreads => ErrorKind::Usage,
        }
    }
}

impl FinishError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TimedOut => ErrorKind::Timeout,
            Self::Network(error) => error.kind(),
        }
    }
}

impl GatewayError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Closed => ErrorKind::Closed,
            Self::TooSmall(_) => ErrorKind::Usage,
        }
    }
}

impl IssueTokenError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Claims(_) => ErrorKind::Usage,
            Self::Random(_) => ErrorKind::Io,
        }
    }
}

/// The kind of attempts that all failed; without attempts it is that no server answered.
fn of_attempts(attempts: &[Attempt]) -> ErrorKind {
    let kinds = attempts.iter().filter_map(|attempt| Some(attempt.error.as_ref()?.kind()));
    kinds.max_by_key(|kind| how_far(*kind)).unwrap_or(ErrorKind::NoAnswer)
}

/// How far the request came.
const fn how_far(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Unreachable => 0,
        ErrorKind::NoAnswer => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use haulier_proto::connection::{CloseReason, RefusalCode};

    use super::*;

    fn failed(errors: &[AttemptError]) -> ErrorKind {
        let attempts = errors.iter().enumerate().map(|(port, error)| Attempt {
            server: ([127, 0, 0, 1], u16::try_from(port).expect("few")).into(),
            error: Some(error.clone()),
        });
        ConnectError::Failed(attempts.collect()).kind()
    }

    /// A refusal is no time-out, although another address of the same server was silent.
    #[test]
    fn the_address_that_came_furthest_says_what_it_was() {
        let refused = AttemptError::Closed(CloseReason::Refused(RefusalCode::Key));
        let silent = AttemptError::Closed(CloseReason::NoAnswer);
        let dead = AttemptError::NobodyListens;
        assert_eq!(failed(&[silent.clone(), refused, dead.clone()]), ErrorKind::Refused);
        assert_eq!(failed(&[dead.clone(), silent]), ErrorKind::NoAnswer);
        assert_eq!(failed(&[dead]), ErrorKind::Unreachable);
        assert_eq!(failed(&[]), ErrorKind::NoAnswer);
    }
}
