//! How a command fails: a sentence for a person and a code for a script.

use std::io;
use std::path::Path;

use haulier::{CloseCode, ErrorKind, ListenError, NetworkError, RefusalCode};

/// Why a command did not do what it was asked for. Its text is one sentence that says what to do where
/// anything can be done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It ran, and the answer is no: a soak that found something, a bench off its reference, no server on
    /// this network.
    #[error("{0}")]
    Negative(String),
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// The text is no ticket and no token.
    #[error("{0}")]
    Credentials(String),
    /// A host name without an address.
    #[error("{0}")]
    Name(String),
    /// There is no connection, or none any more.
    #[error("{text}")]
    Peer {
        /// What sort of end it was.
        kind: ErrorKind,
        /// What the other end said, as a number: of a close, or of a refusal.
        code: Option<u64>,
        /// What happened, in a sentence.
        text: String,
    },
    /// What arrived is not what was sent.
    #[error("{0}")]
    Verification(String),
    /// A file, a disk or a socket.
    #[error("{0}")]
    Io(String),
    /// A bug of haulier.
    #[error("{0}")]
    Internal(String),
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
    /// Ctrl-C of a server, while this number of clients were in the middle of a file.
    #[error(
        "interrupted, with clients in the middle of a file: {0}; what they have is kept there, and the \
             same fetch goes on from it"
    )]
    CutOff(u64),
    /// Ctrl-C, where what has come is kept.
    #[error("interrupted; what has arrived is kept, and the same command goes on from there")]
    Paused,
    /// Ctrl-C, while a stream was written.
    #[error("interrupted before all of it was written to {0}: fetch or receive it again")]
    Unread(String),
}

impl Failure {
    /// The code for a script; each is in `--help`.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Negative(_) => 1,
            Self::Usage(_) | Self::Credentials(_) => 2,
            Self::Peer { .. } | Self::Name(_) => 3,
            Self::Verification(_) => 4,
            Self::Io(_) | Self::Internal(_) => 5,
            Self::Exposed(_) => 6,
            Self::Ended(_) => 7,
            Self::Incomplete(_) => 8,
            Self::Interrupted | Self::CutOff(_) | Self::Paused | Self::Unread(_) => 130,
        }
    }

    /// The word for it in JSON: that of every language where it has one, or one of the program's own.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Negative(_) => "negative",
            Self::Usage(_) => ErrorKind::Usage.name(),
            Self::Credentials(_) => ErrorKind::Credentials.name(),
            Self::Name(_) => "name",
            Self::Peer { kind, .. } => kind.name(),
            Self::Verification(_) => "verification",
            Self::Io(_) => ErrorKind::Io.name(),
            Self::Internal(_) => ErrorKind::Internal.name(),
            Self::Exposed(_) => "exposed",
            Self::Ended(_) => "ended",
            Self::Incomplete(_) => "incomplete",
            Self::Interrupted | Self::CutOff(_) | Self::Paused | Self::Unread(_) => "interrupted",
        }
    }

    /// What the other end said, as a number.
    pub const fn code(&self) -> Option<u64> {
        match self {
            Self::Peer { code, .. } => *code,
            _ => None,
        }
    }

    /// There is no connection, or none any more.
    pub fn peer(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::Peer { kind, code: None, text: text.into() }
    }

    /// Something was not done in its time.
    pub fn late(text: impl Into<String>) -> Self {
        Self::peer(ErrorKind::Timeout, text)
    }

    /// The other end closed the connection.
    pub fn closed(code: CloseCode, text: impl Into<String>) -> Self {
        Self::Peer { kind: ErrorKind::Closed, code: Some(code.0.into()), text: text.into() }
    }

    /// The server refused the request.
    pub fn refused(code: RefusalCode, text: impl Into<String>) -> Self {
        Self::Peer { kind: ErrorKind::Refused, code: Some(code.byte().into()), text: text.into() }
    }

    /// Whether no program listens at the port. That may change.
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Peer { kind: ErrorKind::Unreachable, .. })
    }

    /// An error with a file.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::Io(format!("{}: {}", path.display(), plain(error)))
    }

    /// An error with a socket.
    pub fn socket(what: &str, error: &io::Error) -> Self {
        Self::Io(format!("{what}: {}", plain(error)))
    }
}

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        match error.kind() {
            ErrorKind::Internal => Self::Internal(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::Io(error.to_string())
    }
}

/// An I/O error in words, without the system's number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
