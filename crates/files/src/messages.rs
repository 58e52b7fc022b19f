//! What giver and taker say to each other: the request, and messages on channel 0 (STANDARD-1, section 8).
//!
//! The invariant: reading any bytes gives a message whose numbers are in their ranges, or an error.
//! Whether it was its turn is for [`giver`](crate::giver) and [`taker`](crate::taker) to say.

use bytes::Bytes;

use crate::fields::{Fields, FormatError, beginning, put_text, put_varint};
use crate::offer::{MAX_FILES, Root};
use crate::ranges::Ranges;
use crate::reason::{Fault, MAX_TEXT_BYTES, Reason};
use crate::tag::{MAX_FILE_BYTES, PART_UNIT};

/// How every request begins: "haulier files", version 2. Version 1 had no directories and was never
/// released.
const MAGIC: [u8; 4] = *b"HLF2";

/// The longest request, in bytes: what the wire has room for.
const MAX_REQUEST_BYTES: usize = 400;

/// The longest name in a request, in bytes.
pub const MAX_NAME_BYTES: usize = MAX_REQUEST_BYTES - MAGIC.len() - 2;

/// The longest offer that is a message; a longer one is a block.
pub const MAX_OFFER_MESSAGE_BYTES: usize = 60_000;

/// Verbs of a request.
const GET: u8 = 1;
const OPEN: u8 = 2;
const PUT: u8 = 3;

/// The flag of a taker that can unpack.
const ACCEPTS_PACKED: u8 = 1;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The files at this path or below it, all of them and at once; everything for an empty one.
    Get {
        /// The path.
        name: String,
        /// Whether packed parts are accepted.
        accepts_packed: bool,
    },
    /// The offer of these; what of it is wanted comes later.
    Open {
        /// The path.
        name: String,
        /// Whether packed parts are accepted.
        accepts_packed: bool,
    },
    /// To give files to the server.
    Put,
}

impl Request {
    /// As the application's request of a connection. A name longer than [`MAX_NAME_BYTES`] is cut.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (verb, name, accepts_packed) = match self {
            Self::Get { name, accepts_packed } => (GET, name.as_str(), *accepts_packed),
            Self::Open { name, accepts_packed } => (OPEN, name.as_str(), *accepts_packed),
            Self::Put => (PUT, "", false),
        };
        let flags = if accepts_packed { ACCEPTS_PACKED } else { 0 };
        [&MAGIC[..], &[verb, flags], beginning(name, MAX_NAME_BYTES).as_bytes()].concat()
    }

    /// From the application's request of a connection.
    ///
    /// # Errors
    /// [`FormatError`] if it is not one of these.
    pub fn read(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(bytes);
        if fields.array()? != MAGIC {
            return Err(FormatError::Value("not a request for files"));
        }
        let (verb, flags) = (fields.u8()?, fields.u8()?);
        if flags > ACCEPTS_PACKED {
            return Err(FormatError::Value("unknown flags"));
        }
        let name = fields.rest();
        if name.len() > MAX_NAME_BYTES {
            return Err(FormatError::Value("a name that is too long"));
        }
        let name =
            std::str::from_utf8(name).map_err(|_| FormatError::Value("not UTF-8"))?.to_owned();
        let accepts_packed = flags == ACCEPTS_PACKED;
        match verb {
            GET => Ok(Self::Get { name, accepts_packed }),
            OPEN => Ok(Self::Open { name, accepts_packed }),
            PUT if name.is_empty() && !accepts_packed => Ok(Self::Put),
            _ => Err(FormatError::Value("an unknown verb")),
        }
    }
}

/// In which form a taker wants a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Whole, or in parts that begin at these multiples of [`PART_UNIT`]: the giver decides.
    Any(Ranges),
    /// Whole.
    Whole,
    /// Only its recipe.
    Recipe,
    /// These of its pieces, by their index in the recipe.
    Pieces(Ranges),
}

/// A file that a taker wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Counts the wants of a connection, from 1 on.
    pub number: u32,
    /// Its index in the offer.
    pub file: u32,
    /// How it is wanted.
    pub form: Form,
}

/// A message on channel 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// From the giver: the list, as [`Offer`](crate::offer::Offer) reads it.
    Offer(Bytes),
    /// From a server that takes: the offer may come.
    Go {
        /// Whether packed parts are accepted.
        accepts_packed: bool,
    },
    /// From the taker: a file, or a part of it.
    Want(Want),
    /// From the giver: all parts of a file have been sent, and this is what it is.
    End {
        /// Its index in the offer.
        file: u32,
        /// Its size in bytes.
        length: u64,
        /// Its BLAKE3.
        root: Root,
    },
    /// From the taker: a file has its name.
    Stored {
        /// Its index in the offer.
        file: u32,
    },
    /// From the taker: a file will not be wanted.
    Refused {
        /// Its index in the offer.
        file: u32,
        /// Why.
        fault: Fault,
    },
    /// From either: a file cannot go on.
    Failed {
        /// Its index in the offer.
        file: u32,
        /// Why.
        fault: Fault,
    },
    /// From the taker: it wants nothing more.
    Done,
}

/// The first byte of each.
const OFFER: u8 = 1;
const GO: u8 = 2;
const WANT: u8 = 3;
const END: u8 = 4;
const STORED: u8 = 5;
const REFUSED: u8 = 6;
const FAILED: u8 = 7;
const DONE: u8 = 8;

/// The forms of a want.
const ANY: u8 = 1;
const WHOLE: u8 = 2;
const RECIPE: u8 = 3;
const PIECES: u8 = 4;

impl Message {
    /// As the bytes of a message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Offer(list) => {
                out.push(OFFER);
                out.extend_from_slice(list);
            }
            Self::Go { accepts_packed } => {
                out.extend([GO, if *accepts_packed { ACCEPTS_PACKED } else { 0 }]);
            }
            Self::Want(want) => put_want(&mut out, want),
            Self::End { file, length, root } => {
                put_numbers(&mut out, END, &[u64::from(*file), *length]);
                out.extend_from_slice(root);
            }
            Self::Stored { file } => put_numbers(&mut out, STORED, &[u64::from(*file)]),
            Self::Refused { file, fault } => put_fault(&mut out, REFUSED, *file, fault),
            Self::Failed { file, fault } => put_fault(&mut out, FAILED, *file, fault),
            Self::Done => out.push(DONE),
        }
        out
    }

    /// From the bytes of a message.
    ///
    /// # Errors
    /// [`FormatError`] unless all of the bytes are one message.
    pub fn read(bytes: &Bytes) -> Result<Self, FormatError> {
        let mut fields = Fields::new(bytes);
        let message = match fields.u8()? {
            OFFER => return Ok(Self::Offer(bytes.slice(1..))),
            GO => match fields.u8()? {
                flags @ 0..=ACCEPTS_PACKED => Self::Go { accepts_packed: flags == ACCEPTS_PACKED },
                _ => return Err(FormatError::Value("unknown flags")),
            },
            WANT => Self::Want(read_want(&mut fields)?),
            END => Self::End {
                file: read_file(&mut fields)?,
                length: fields.at_most(MAX_FILE_BYTES, "a file that is too large")?,
                root: fields.array()?,
            },
            STORED => Self::Stored { file: read_file(&mut fields)? },
            REFUSED => {
                Self::Refused { file: read_file(&mut fields)?, fault: read_fault(&mut fields)? }
            }
            FAILED => {
                Self::Failed { file: read_file(&mut fields)?, fault: read_fault(&mut fields)? }
            }
            DONE => Self::Done,
            _ => return Err(FormatError::Value("an unknown kind of message")),
        };
        fields.end()?;
        Ok(message)
    }
}

fn put_numbers(out: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    out.push(kind);
    numbers.iter().for_each(|&number| put_varint(out, number));
}

fn put_want(out: &mut Vec<u8>, want: &Want) {
    put_numbers(out, WANT, &[u64::from(want.number), u64::from(want.file)]);
    match &want.form {
        Form::Any(units) => {
            out.push(ANY);
            units.put(out);
        }
        Form::Whole => out.push(WHOLE),
        Form::Recipe => out.push(RECIPE),
        Form::Pieces(pieces) => {
            out.push(PIECES);
            pieces.put(out);
        }
    }
}

fn put_fault(out: &mut Vec<u8>, kind: u8, file: u32, fault: &Fault) {
    put_numbers(out, kind, &[u64::from(file), fault.reason as u64]);
    put_text(out, beginning(&fault.text, MAX_TEXT_BYTES));
}

fn read_file(fields: &mut Fields<'_>) -> Result<u32, FormatError> {
    let file = fields.at_most(u64::from(MAX_FILES) - 1, "no such file")?;
    Ok(u32::try_from(file).unwrap_or(u32::MAX))
}

fn read_want(fields: &mut Fields<'_>) -> Result<Want, FormatError> {
    let number = fields.at_most(u64::from(u32::MAX), "a want that is out of range")?;
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let file = read_file(fields)?;
    let form = match fields.u8()? {
        ANY => Form::Any(Ranges::read(fields, MAX_FILE_BYTES / PART_UNIT)?),
        WHOLE => Form::Whole,
        RECIPE => Form::Recipe,
        PIECES => Form::Pieces(Ranges::read(fields, u64::from(u32::MAX))?),
        _ => return Err(FormatError::Value("an unknown form of a file")),
    };
    Ok(Want { number, file, form })
}

fn read_fault(fields: &mut Fields<'_>) -> Result<Fault, FormatError> {
    let reason = Reason::from_code(fields.varint()?);
    Ok(Fault::new(reason, fields.text(MAX_TEXT_BYTES as u64)?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_have_the_bytes_of_the_standard() {
        let get = Request::Get { name: "a.bin".into(), accepts_packed: false };
        assert_eq!(get.to_bytes(), b"HLF2\x01\x00a.bin");
        let open = Request::Open { name: String::new(), accepts_packed: true };
        assert_eq!(open.to_bytes(), b"HLF2\x02\x01");
        assert_eq!(Request::Put.to_bytes(), b"HLF2\x03\x00");
        for request in [get, open, Request::Put] {
            assert_eq!(Request::read(&request.to_bytes()), Ok(request));
        }
        let long = [b"HLF2\x01\x00", [b'x'; 395].as_slice()].concat();
        let wrong: [&[u8]; 9] = [
            b"",
            b"HLF2",
            b"HLF2\x01",
            b"HLF1\x01a",
            b"HLF2\x00\x00",
            b"HLF2\x04\x00",
            b"HLF2\x01\x02",
            b"HLF2\x03\x00x",
            &long,
        ];
        for bytes in wrong {
            assert!(Request::read(bytes).is_err(), "{bytes:?}");
        }
        assert!(Request::read(b"HLF2\x01\x00\xff").is_err(), "not UTF-8");
        let name = "\u{e9}".repeat(300);
        assert_eq!(Request::Get { name, accepts_packed: false }.to_bytes().len(), 400);
    }

    #[test]
    fn messages_have_the_bytes_of_the_standard() {
        let ranges = Ranges::from_iter([0..2, 5..70]);
        let want = |form| Message::Want(Want { number: 2, file: 300, form });
        let fault = Fault::new(Reason::NoRoom, "full");
        let golden: [(Message, &[u8]); 11] = [
            (Message::Offer(Bytes::from_static(&[0])), &[1, 0]),
            (Message::Go { accepts_packed: true }, &[2, 1]),
            (want(Form::Any(Ranges::new())), &[3, 2, 0x41, 0x2c, 1, 0]),
            (want(Form::Any(ranges.clone())), &[3, 2, 0x41, 0x2c, 1, 2, 0, 2, 3, 0x40, 65]),
            (want(Form::Whole), &[3, 2, 0x41, 0x2c, 2]),
            (want(Form::Recipe), &[3, 2, 0x41, 0x2c, 3]),
            (want(Form::Pieces(ranges)), &[3, 2, 0x41, 0x2c, 4, 2, 0, 2, 3, 0x40, 65]),
            (Message::Stored { file: 7 }, &[5, 7]),
            (Message::Refused { file: 7, fault: fault.clone() }, b"\x06\x07\x04\x04full"),
            (Message::Failed { file: 7, fault }, b"\x07\x07\x04\x04full"),
            (Message::Done, &[8]),
        ];
        for (message, bytes) in golden {
            assert_eq!(message.to_bytes(), bytes, "{message:?}");
            assert_eq!(Message::read(&Bytes::from_static(bytes)), Ok(message));
        }
        let end = Message::End { file: 1, length: 5, root: [3; 32] };
        assert_eq!(end.to_bytes(), [&[4, 1, 5][..], &[3; 32]].concat());
        assert_eq!(Message::read(&end.to_bytes().into()), Ok(end));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let wrong: [&'static [u8]; 10] = [
            &[],
            &[0],
            &[9],
            &[2, 2],
            &[8, 0],
            &[5],
            &[5, 0x80, 0x0f, 0x42, 0x40],
            &[3, 1, 0, 0],
            &[3, 1, 0, 1, 1, 0, 0],
            &[4, 0, 0],
        ];
        for bytes in wrong {
            assert!(Message::read(&Bytes::from_static(bytes)).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(kind in 0_u8..10, rest in vec(any::<u8>(), 0..80)) {
            let bytes = Bytes::from([&[kind][..], &rest].concat());
            if let Ok(message) = Message::read(&bytes) {
                prop_assert_eq!(Message::read(&message.to_bytes().into()), Ok(message));
            }
            let _ = Request::read(&[&MAGIC[..], &rest].concat());
        }
    }
}
