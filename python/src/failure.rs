//! Errors on their way to Python: a kind, a sentence, and the code if a peer gave one.

use std::fmt::Display;

use haulier::{
    Attempt, AttemptError, CloseReason, ConnectError, ErrorKind, FinishError, IssueTokenError,
    ListenError, NetworkError, SendError,
};
use haulier_files::session::FetchError;
use pyo3::prelude::*;

use crate::classes;

/// What becomes a `haulier.HaulierError` of its kind. It is made without the interpreter's lock.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    text: String,
    /// What a peer said, or the server that refused.
    end: Option<CloseReason>,
}

/// What a call gives that does not touch Python.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: ErrorKind, text: impl Display) -> Self {
        Self { kind, text: text.to_string(), end: None }
    }

    pub(crate) fn usage(text: impl Display) -> Self {
        Self::new(ErrorKind::Usage, text)
    }

    pub(crate) fn credentials(text: impl Display) -> Self {
        Self::new(ErrorKind::Credentials, text)
    }

    pub(crate) fn io(text: impl Display) -> Self {
        Self::new(ErrorKind::Io, text)
    }

    pub(crate) fn timeout(text: impl Display) -> Self {
        Self::new(ErrorKind::Timeout, text)
    }

    /// This failure with another text, which says more to the caller.
    pub(crate) fn with_text(mut self, text: String) -> Self {
        self.text = text;
        self
    }

    fn with_end(mut self, end: Option<CloseReason>) -> Self {
        self.end = end;
        self
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let end = match &error {
            ConnectError::Failed(attempts) => refusal(attempts),
            _ => None,
        };
        Self::new(error.kind(), error).with_end(end)
    }
}

/// The refusal or close of the first server that answered with one, of those that were tried.
fn refusal(attempts: &[Attempt]) -> Option<CloseReason> {
    attempts.iter().find_map(|attempt| match &attempt.error {
        Some(AttemptError::Closed(reason @ CloseReason::Refused(_))) => Some(reason.clone()),
        Some(AttemptError::Closed(reason @ CloseReason::There { .. })) => Some(reason.clone()),
        _ => None,
    })
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let end = match &error {
            FetchError::Closed(reason) => Some(reason.clone()),
            FetchError::Ended { code, reason } => {
                Some(CloseReason::There { code: *code, reason: reason.clone() })
            }
            _ => None,
        };
        Self::new(error.kind(), error).with_end(end)
    }
}

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<FinishError> for Failure {
    fn from(error: FinishError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<IssueTokenError> for Failure {
    fn from(error: IssueTokenError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::io(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            let Failure { kind, text, end } = failure;
            let end = end.as_ref().map_or((None, None, ""), classes::parts_of);
            let made = classes::error(py).and_then(|make| make.call1((kind.name(), text, end)));
            made.map_or_else(|error| error, Self::from_value)
        })
    }
}
