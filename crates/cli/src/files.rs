//! What `serve` and `fetch` say to each other: STANDARD-1, section 8.
//!
//! The request goes with the first datagram and is harmless if repeated: it asks for bytes, and changes
//! nothing. The answer is a block; a file's name goes before it as a message, so that the block's BLAKE3 is
//! that of the file alone.

use haulier::CloseCode;

/// How every request begins: "haulier files", version 1.
const MAGIC: [u8; 4] = *b"HLF1";
const GET: u8 = 1;
const LIST: u8 = 2;

/// The kind of the message before a file.
const NAME: u8 = 1;

/// The longest name of a file.
pub(crate) const MAX_NAME_BYTES: usize = haulier::file::MAX_NAME_BYTES;

/// The tag of a block that is a file.
pub(crate) const FILE_TAG: u64 = 1;

/// The tag of a block that is a list of files.
pub(crate) const LIST_TAG: u64 = 2;

/// There is no file of this name.
pub(crate) const NO_SUCH_FILE: CloseCode = CloseCode(256);

/// There are several, and the request names none.
pub(crate) const NAME_ONE: CloseCode = CloseCode(257);

/// The request is none of these.
pub(crate) const NOT_UNDERSTOOD: CloseCode = CloseCode(258);

/// The client could not store the file.
pub(crate) const NOT_STORED: CloseCode = CloseCode(259);

/// The client was given another file than its ticket names.
pub(crate) const ANOTHER_FILE: CloseCode = CloseCode(260);

/// What a code of these two means.
pub(crate) const fn meaning(code: CloseCode) -> Option<&'static str> {
    Some(match code {
        NO_SUCH_FILE => "no such file",
        NAME_ONE => "several files, and none was named",
        NOT_UNDERSTOOD => "not understood",
        NOT_STORED => "the file could not be stored there",
        ANOTHER_FILE => "not the file of the ticket",
        _ => return None,
    })
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The file of this name, or the only one.
    Get(Option<String>),
    /// Which files there are.
    List,
}

impl Request {
    /// The application's request, at most 260 bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        match self {
            Self::Get(name) => {
                bytes.push(GET);
                bytes.extend(name.iter().flat_map(|name| name.bytes()));
            }
            Self::List => bytes.push(LIST),
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&verb, name) = bytes.strip_prefix(&MAGIC)?.split_first()?;
        match verb {
            GET if name.is_empty() => Some(Self::Get(None)),
            GET => read_name(name).map(|name| Self::Get(Some(name))),
            LIST if name.is_empty() => Some(Self::List),
            _ => None,
        }
    }
}

/// The message before a file.
pub(crate) fn name_message(name: &str) -> Vec<u8> {
    let mut bytes = vec![NAME];
    bytes.extend(name.bytes());
    bytes
}

/// The name in the message before a file.
pub(crate) fn read_name_message(bytes: &[u8]) -> Option<String> {
    match bytes.split_first()? {
        (&NAME, name) => read_name(name),
        _ => None,
    }
}

fn read_name(bytes: &[u8]) -> Option<String> {
    let is_sized = (1..=MAX_NAME_BYTES).contains(&bytes.len());
    let name = std::str::from_utf8(bytes).ok().filter(|_| is_sized)?;
    Some(name.to_owned())
}

/// A file in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) digest: [u8; 32],
}

/// A list, as the bytes of a block.
pub(crate) fn list<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend(entry.bytes.to_le_bytes());
        bytes.extend(entry.digest);
        bytes.push(u8::try_from(entry.name.len()).unwrap_or(u8::MAX));
        bytes.extend(entry.name.bytes().take(MAX_NAME_BYTES));
    }
    bytes
}

/// Reads a list; `None` if it is none, to the last byte.
pub(crate) fn read_list(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (size, rest) = bytes.split_first_chunk()?;
        let (&digest, rest) = rest.split_first_chunk()?;
        let (&length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        entries.push(Entry { name: read_name(name)?, bytes: u64::from_le_bytes(*size), digest });
        bytes = rest;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_bytes_of_the_standard() {
        let get = Request::Get(Some("a.bin".into()));
        assert_eq!(get.to_bytes(), b"HLF1\x01a.bin");
        assert_eq!(Request::Get(None).to_bytes(), b"HLF1\x01");
        assert_eq!(Request::List.to_bytes(), b"HLF1\x02");
        for request in [get, Request::Get(None), Request::List] {
            assert_eq!(Request::read(&request.to_bytes()), Some(request));
        }
    }

    #[test]
    fn what_is_no_request_is_none() {
        let long = [b"HLF1\x01", [b'x'; 256].as_slice()].concat();
        for bytes in [b"".as_slice(), b"HLF1", b"HLF2\x01", b"HLF1\x03", b"HLF1\x02x", &long] {
            assert_eq!(Request::read(bytes), None, "{bytes:?}");
        }
        assert_eq!(Request::read(b"HLF1\x01\xff"), None, "not UTF-8");
    }

    #[test]
    fn a_list_comes_back_and_a_cut_one_does_not() {
        let entry = |name: &str| Entry { name: name.into(), bytes: 7, digest: [3; 32] };
        let entries = vec![entry("a"), entry("Wörld")];
        let bytes = list(&entries);
        assert_eq!(bytes.len(), 2 * 41 + 1 + 6);
        assert_eq!(read_list(&bytes), Some(entries));
        assert_eq!(read_list(b""), Some(Vec::new()));
        for length in (1..bytes.len()).filter(|&length| length != 42) {
            assert_eq!(read_list(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn the_name_before_a_file() {
        assert_eq!(read_name_message(&name_message("a")), Some("a".into()));
        for bytes in [b"".as_slice(), b"\x01", b"\x02a", b"\x01\xff"] {
            assert_eq!(read_name_message(bytes), None);
        }
    }
}
