//! Why a file was not given or not stored, and why a connection ends: numbers on the wire, sentences for
//! people.

use std::borrow::Cow;

use haulier_proto::connection::CloseCode;

use crate::fields::beginning;

/// The longest explanation beside a reason, in bytes: a line on a screen.
pub const MAX_TEXT_BYTES: usize = 200;

/// The code of an end at which everything was stored.
pub const DONE: CloseCode = CloseCode(0);

/// There is nothing of this name.
pub const NO_SUCH_FILE: CloseCode = CloseCode(256);

/// The server takes no files.
pub const NOT_ADMITTED: CloseCode = CloseCode(257);

/// A message, a block or the request was not expected.
pub const NOT_UNDERSTOOD: CloseCode = CloseCode(258);

/// The taker could not store the files.
pub const NOT_STORED: CloseCode = CloseCode(259);

/// A file is not the one that the ticket names.
pub const ANOTHER_FILE: CloseCode = CloseCode(260);

/// The files are more than the taker takes.
pub const OVER_QUOTA: CloseCode = CloseCode(261);

/// The offer has paths that are not safe or that collide.
pub const BAD_OFFER: CloseCode = CloseCode(262);

/// Everything was done, but some files failed.
pub const INCOMPLETE: CloseCode = CloseCode(263);

/// A user stopped the program.
pub const INTERRUPTED: CloseCode = CloseCode(264);

/// What a code of section 8 means, for people.
#[must_use]
pub const fn meaning(code: CloseCode) -> Option<&'static str> {
    Some(match code {
        NO_SUCH_FILE => "nothing of this name is there",
        NOT_ADMITTED => "it takes no files",
        NOT_UNDERSTOOD => "not understood",
        NOT_STORED => "the files could not be stored there",
        ANOTHER_FILE => "not the file of the ticket",
        OVER_QUOTA => "more than it takes",
        BAD_OFFER => "the names of the files are not safe, or two are the same on some systems",
        INCOMPLETE => "some files failed",
        INTERRUPTED => "it was stopped",
        _ => return None,
    })
}

/// Why a file was not given, not wanted, or not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// It changed while it was read.
    Changed = 1,
    /// It could not be read.
    Unreadable = 2,
    /// It could not be written.
    NotStored = 3,
    /// The disk has no room for it.
    NoRoom = 4,
    /// The name is taken.
    Taken = 5,
    /// It is more than the taker takes.
    Quota = 6,
    /// What was put together has another BLAKE3, twice.
    WrongRoot = 7,
    /// The system of the taker has no such name.
    BadName = 8,
    /// A user stopped the program.
    Interrupted = 9,
    /// The file was not asked for.
    NotWanted = 10,
    /// None of these.
    Other = 0,
}

impl Reason {
    const ALL: [Self; 10] = [
        Self::Changed,
        Self::Unreadable,
        Self::NotStored,
        Self::NoRoom,
        Self::Taken,
        Self::Quota,
        Self::WrongRoot,
        Self::BadName,
        Self::Interrupted,
        Self::NotWanted,
    ];

    /// From the wire. One that is not known is another one.
    #[must_use]
    pub fn from_code(code: u64) -> Self {
        Self::ALL.into_iter().find(|it| *it as u64 == code).unwrap_or(Self::Other)
    }

    /// As a sentence.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Changed => "the file changed while it was read",
            Self::Unreadable => "the file could not be read",
            Self::NotStored => "the file could not be written",
            Self::NoRoom => "the disk is full",
            Self::Taken => "the name is taken",
            Self::Quota => "it is more than is taken there",
            Self::WrongRoot => "its BLAKE3 is wrong",
            Self::BadName => "the name cannot be used there",
            Self::Interrupted => "it was stopped",
            Self::NotWanted => "it is not wanted",
            Self::Other => "the other end gave it up",
        }
    }
}

/// What went wrong with a file, and in which words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", .reason.text(), in_parentheses(.text))]
pub struct Fault {
    /// What kind of fault it is.
    pub reason: Reason,
    /// More about it: of the system, or in the words of the other end. May be empty.
    pub text: String,
}

impl Fault {
    /// A fault with an explanation, of which the first 200 bytes count.
    #[must_use]
    pub fn new(reason: Reason, text: &str) -> Self {
        let text = beginning(text, MAX_TEXT_BYTES);
        Self { reason, text: text.replace(char::is_control, " ") }
    }
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        Self::new(reason, "")
    }
}

fn in_parentheses(text: &str) -> Cow<'_, str> {
    if text.is_empty() { Cow::Borrowed("") } else { format!(" ({text})").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_keep_their_numbers_and_texts_are_safe_to_show() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason as u64), reason);
        }
        assert_eq!((Reason::from_code(0), Reason::from_code(999)), (Reason::Other, Reason::Other));
        let fault = Fault::new(Reason::Changed, "\u{1b}[2J");
        assert_eq!(fault.to_string(), "the file changed while it was read ( [2J)");
        assert_eq!(Fault::new(Reason::Other, &"\u{e9}".repeat(200)).text.len(), 200);
        assert_eq!(Fault::from(Reason::NoRoom).to_string(), "the disk is full");
    }

    #[test]
    fn every_code_of_ours_has_a_meaning() {
        assert!((256..=264).all(|code| meaning(CloseCode(code)).is_some()));
        assert_eq!(meaning(CloseCode(265)), None);
    }
}
