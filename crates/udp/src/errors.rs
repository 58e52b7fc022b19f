//! What an error of a socket means: the one place where errors are sorted.
//!
//! Fatal is only "this is no socket". One peer's ICMP error, one odd packet or one address without a route
//! must not end a socket that others use.

use std::io::{self, ErrorKind};

/// Errors that say "not now" without being `WouldBlock`: the interface's queue is full. `ENOBUFS` on
/// Linux, and on macOS and the BSDs.
const NO_BUFFER_SPACE: [i32; 2] = [105, 55];

/// `EBADF` and `ENOTSOCK`, on Linux, macOS and Windows: the descriptor is no socket (any more).
const NO_SOCKET: [i32; 5] = [9, 88, 38, 10_009, 10_038];

/// What an error means for the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Try again later.
    NotNow,
    /// About one packet, past or present; the socket is fine.
    PassesOver,
    /// About the socket or the program.
    Fatal,
}

/// Sorts an error of a receive or a send.
pub(crate) fn sort(error: &io::Error) -> Meaning {
    let is_any_of = |codes: &[i32]| error.raw_os_error().is_some_and(|code| codes.contains(&code));
    match error.kind() {
        ErrorKind::WouldBlock => Meaning::NotNow,
        _ if is_any_of(&NO_BUFFER_SPACE) => Meaning::NotNow,
        _ if is_any_of(&NO_SOCKET) => Meaning::Fatal,
        _ => Meaning::PassesOver,
    }
}

/// Whether the other end's host reports a closed port: ICMP "port unreachable", which Windows calls a reset.
pub(crate) fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Whether a datagram was longer than the interface takes without splitting it: `EMSGSIZE`, on Linux, macOS
/// and Windows.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [90, 40, 10_040].contains(&code))
}

/// Whether an error of a send of several datagrams may mean that the system does not split: `EIO` where a
/// driver of the interface cannot, `EINVAL` where the kernel does not know how.
pub(crate) fn is_split_refused(error: &io::Error) -> bool {
    /// Its number on Linux and Android, where it matters.
    const EIO: i32 = 5;
    error.kind() == ErrorKind::InvalidInput || error.raw_os_error() == Some(EIO)
}

/// Whether an error of a call for several datagrams may mean that the system does not have the call, or does
/// not take an ECN field with it: `ENOSYS`, `EPERM` where a filter of calls does not know it, `EINVAL`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_call_refused(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [38, 1, 22].contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_of_a_single_packet_is_fatal() {
        let meaning = |code| sort(&io::Error::from_raw_os_error(code));
        // Linux: EPERM, EINTR, ENOMEM, EINVAL, EMSGSIZE, ENETDOWN, ENETUNREACH, ECONNRESET, ECONNREFUSED,
        // EHOSTDOWN, EHOSTUNREACH.
        for code in [1, 4, 12, 22, 90, 100, 101, 104, 111, 112, 113] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(meaning(code), Meaning::PassesOver, "{error}");
        }
        // EAGAIN, ENOBUFS.
        assert_eq!([11, 105].map(meaning), [Meaning::NotNow; 2]);
        // EBADF, ENOTSOCK.
        assert_eq!([9, 88].map(meaning), [Meaning::Fatal; 2]);
    }
}
