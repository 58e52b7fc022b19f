//! The results of calls: a number, and a sentence for a person, which is kept for each thread.
//!
//! The invariant: every function that can fail goes through `border`, so that none panics into C, and none
//! fails without a sentence.

use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use core::ffi::c_char;

use haulier::{
    ConnectError, ErrorKind, FinishError, IssueTokenError, LaneError, ListenError, NetworkError,
    SendError, TicketError,
};

/// The result of a call. 0 is success, 1 is no error either, and a number below 0 is an error:
/// haulier_last_error() has the sentence for it. Later versions may add errors at the end.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum haulier_result {
    /// It is done.
    HAULIER_OK = 0,
    /// There is nothing now: no event, no such block on its way, no connection yet. Not an error.
    HAULIER_NOTHING = 1,
    /// The program asked for something that makes no sense, such as a null pointer. Mend the program.
    HAULIER_ERROR_USAGE = -1,
    /// The text is no ticket and no connect token, or one that this version does not know. Copy all of it.
    HAULIER_ERROR_CREDENTIALS = -2,
    /// Nobody listens there, or there is no route. Start the server; look at the address.
    HAULIER_ERROR_UNREACHABLE = -3,
    /// No answer to the request, in the time for one: a firewall, or a wrong address.
    HAULIER_ERROR_NO_ANSWER = -4,
    /// The server refused the request; the code of the event says why (haulier_refusal).
    HAULIER_ERROR_REFUSED = -5,
    /// An open connection fell silent, or a call did not finish in its time. Try again.
    HAULIER_ERROR_TIMEOUT = -6,
    /// This end or the peer closed the connection; the code of the event says why (haulier_close_code). It is
    /// so also where nothing went wrong (HAULIER_CLOSE_DONE).
    HAULIER_ERROR_CLOSED = -7,
    /// The server does not know the connection any more: it was restarted. Join again.
    HAULIER_ERROR_LOST = -8,
    /// The connection is not open: not yet, or not any more. Wait for HAULIER_EVENT_CONNECTED, or join again.
    HAULIER_ERROR_NOT_OPEN = -9,
    /// Too much is waiting to be sent, and this was not taken: try again after an event, such as
    /// HAULIER_EVENT_MESSAGE_WRITABLE. haulier_last_error() names the limit.
    HAULIER_ERROR_FULL = -10,
    /// A socket, a name that does not resolve, memory, the system.
    HAULIER_ERROR_IO = -11,
    /// A bug of haulier. Report it, with what it has printed.
    HAULIER_ERROR_INTERNAL = -12,
}

use haulier_result::*;

impl From<ErrorKind> for haulier_result {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => HAULIER_ERROR_USAGE,
            ErrorKind::Credentials => HAULIER_ERROR_CREDENTIALS,
            ErrorKind::Unreachable => HAULIER_ERROR_UNREACHABLE,
            ErrorKind::NoAnswer => HAULIER_ERROR_NO_ANSWER,
            ErrorKind::Refused => HAULIER_ERROR_REFUSED,
            ErrorKind::Timeout => HAULIER_ERROR_TIMEOUT,
            ErrorKind::Closed => HAULIER_ERROR_CLOSED,
            ErrorKind::Lost => HAULIER_ERROR_LOST,
            ErrorKind::NotOpen => HAULIER_ERROR_NOT_OPEN,
            ErrorKind::Full => HAULIER_ERROR_FULL,
            ErrorKind::Io => HAULIER_ERROR_IO,
            // One that is newer than this list is a bug of this crate: its test finds it.
            _ => HAULIER_ERROR_INTERNAL,
        }
    }
}

/// A result that comes with a sentence.
///
/// Boxed, so that a call that succeeds returns two registers: with the sentence itself beside the result each
/// call across the border took some 20 ns, of the 2.5 microseconds that a message takes.
#[derive(Debug)]
pub(crate) struct Failure(Box<Told>);

#[derive(Debug)]
struct Told {
    result: haulier_result,
    sentence: String,
}

impl Failure {
    #[cold]
    pub(crate) fn new(result: haulier_result, sentence: impl ToString) -> Self {
        Self(Box::new(Told { result, sentence: sentence.to_string() }))
    }

    #[cold]
    pub(crate) fn usage(sentence: impl ToString) -> Self {
        Self::new(HAULIER_ERROR_USAGE, sentence)
    }

    /// Keeps the sentence for this thread.
    #[cold]
    fn keep(self) -> haulier_result {
        // C's text ends at the first 0, which a sentence with words of a peer may have.
        let sentence = self.0.sentence.replace('\0', " ");
        let sentence = CString::new(sentence).unwrap_or_default();
        // A thread that is ending has no place for it any more.
        let _kept = LAST_ERROR.try_with(|last| *last.borrow_mut() = sentence);
        self.0.result
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs the body of a function, and makes a number of its result, also of a panic.
#[inline]
pub(crate) fn border(run: impl FnOnce() -> Result<haulier_result, Failure>) -> haulier_result {
    // What was half changed when it panicked is behind locks, which know it; the next call says so again.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => result,
        Ok(Err(failure)) => failure.keep(),
        Err(_) => {
            Failure::new(HAULIER_ERROR_INTERNAL, "haulier panicked: a bug; see what it printed")
                .keep()
        }
    }
}

/// Runs the body of a function that only looks. Returns the given value when nothing can be seen.
pub(crate) fn looked<T>(otherwise: T, look: impl FnOnce() -> Result<T, Failure>) -> T {
    let mut seen = otherwise;
    border(|| {
        seen = look()?;
        Ok(HAULIER_OK)
    });
    seen
}

/// HAULIER_OK, or HAULIER_NOTHING if there was nothing to do.
pub(crate) fn done(is_done: bool) -> haulier_result {
    if is_done { HAULIER_OK } else { HAULIER_NOTHING }
}

/// Returns the sentence for the last call of this thread that did not return HAULIER_OK or HAULIER_NOTHING:
/// in English, for a log or a developer. Never null; empty if there was none. It is valid until the next
/// such call on the same thread, and is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn haulier_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the name of a result, such as "no-answer" for HAULIER_ERROR_NO_ANSWER: the words are the same in
/// every language that haulier is used from. It is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn haulier_result_name(result: i32) -> *const c_char {
    let name = match result {
        0 => c"ok",
        1 => c"nothing",
        -1 => c"usage",
        -2 => c"credentials",
        -3 => c"unreachable",
        -4 => c"no-answer",
        -5 => c"refused",
        -6 => c"timeout",
        -7 => c"closed",
        -8 => c"lost",
        -9 => c"not-open",
        -10 => c"full",
        -11 => c"io",
        -12 => c"internal",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// An error of haulier's that knows its kind.
macro_rules! failures {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error.kind().into(), error)
            }
        }
    )*};
}

failures!(ConnectError, FinishError, IssueTokenError, ListenError, NetworkError, SendError);

/// What the program gave for a ticket, and not the text of one.
impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Self {
        Self::usage(error)
    }
}

impl From<LaneError> for Failure {
    fn from(error: LaneError) -> Self {
        Self::usage(error)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_error() -> String {
        // SAFETY: it is text with a 0, and no call of this thread is between this and its copy.
        unsafe { CStr::from_ptr(haulier_last_error()) }.to_str().unwrap().to_owned()
    }

    /// A panic that went on into C would be undefined behaviour.
    #[test]
    fn a_panic_is_an_internal_error_with_a_sentence() {
        assert_eq!(border(|| panic!("on purpose")), HAULIER_ERROR_INTERNAL);
        assert!(last_error().contains("a bug"), "{}", last_error());
        assert_eq!(looked(7, || panic!("on purpose")), 7);
    }

    /// The numbers are part of the ABI: a kind's is its place in the list, from -1 down.
    #[test]
    fn every_kind_of_error_has_its_number_and_its_name() {
        for (kind, number) in ErrorKind::ALL.into_iter().zip(1..) {
            let result = haulier_result::from(kind);
            assert_eq!(result as i32, -number, "{kind}");
            // SAFETY: names are text with a 0 that is never freed.
            let name = unsafe { CStr::from_ptr(haulier_result_name(result as i32)) };
            assert_eq!(name.to_str(), Ok(kind.name()));
        }
    }

    #[test]
    fn each_thread_has_its_own_sentence_which_success_does_not_change() {
        border(|| Err(Failure::usage("mine\0, and more")));
        assert_eq!(border(|| Ok(HAULIER_OK)), HAULIER_OK);
        let others = std::thread::spawn(last_error).join().unwrap();
        assert_eq!((&*others, &*last_error()), ("", "mine , and more"));
    }
}
