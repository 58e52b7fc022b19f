//! How a command fails: a sentence for a person and a code for a script.

use std::io;
use std::path::Path;

use haulier::{ListenError, NetworkError};

/// Why a command did not do what it was asked for. Its text is one sentence that says what to do where
/// anything can be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It ran, and the answer is no: a soak that found something, a bench off its reference.
    #[error("{0}")]
    Negative(String),
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// No answer, or not in time.
    #[error("{0}")]
    TimeOut(String),
    /// The port is closed, which may change.
    #[error("{0}")]
    NobodyListens(String),
    /// What arrived is not what was sent.
    #[error("{0}")]
    Verification(String),
    /// A file, a disk or a socket.
    #[error("{0}")]
    Io(String),
    /// A file with a secret that other users can read.
    #[error("{0}")]
    Exposed(String),
    /// Connections that were measured ended before their run, or got nothing.
    #[error("{0}")]
    Ended(String),
    /// The time for a measurement was over before all was measured.
    #[error("{0}")]
    Incomplete(String),
    /// Ctrl-C.
    #[error("interrupted; nothing half-written was left behind")]
    Interrupted,
    /// Ctrl-C, where what has come is kept.
    #[error("interrupted; what has arrived is kept, and the same command goes on from there")]
    Paused,
}

impl Failure {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Negative(_) => 1,
            Self::Usage(_) => 2,
            Self::TimeOut(_) | Self::NobodyListens(_) => 3,
            Self::Verification(_) => 4,
            Self::Io(_) => 5,
            Self::Exposed(_) => 6,
            Self::Ended(_) => 7,
            Self::Incomplete(_) => 8,
            Self::Interrupted | Self::Paused => 130,
        }
    }

    /// The word for it in JSON.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Negative(_) => "negative",
            Self::Usage(_) => "usage",
            Self::TimeOut(_) | Self::NobodyListens(_) => "timeout",
            Self::Verification(_) => "verification",
            Self::Io(_) => "io",
            Self::Exposed(_) => "exposed",
            Self::Ended(_) => "ended",
            Self::Incomplete(_) => "incomplete",
            Self::Interrupted | Self::Paused => "interrupted",
        }
    }

    /// An error with a file.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::Io(format!("{}: {}", path.display(), plain(error)))
    }

    /// An error with a socket.
    pub(crate) fn socket(what: &str, error: &io::Error) -> Self {
        Self::Io(format!("{what}: {}", plain(error)))
    }
}

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        Self::Io(error.to_string())
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::Io(error.to_string())
    }
}

/// An I/O error in words, without the system's number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
