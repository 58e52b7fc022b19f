//! Files over runs of chunks: every size arrives, nothing wrong is taken, nothing hostile panics.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::io;

use haulier::file::{FileError, Finished, Header, Incoming, Outgoing, Receipt, Sink, Status};
use haulier_article::chunk::MAX_CHUNK_BYTES;
use proptest::prelude::*;

#[derive(Default)]
struct Memory {
    header: Option<Header>,
    bytes: Vec<u8>,
    full_at: Option<usize>,
}

impl Sink for Memory {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        assert!(self.header.is_none(), "begun twice");
        self.header = Some(header.clone());
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.header.is_some(), "bytes before the header");
        self.bytes.extend_from_slice(bytes);
        match self.full_at {
            Some(full) if self.bytes.len() > full => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

fn chunks_of(file: &[u8], size: Option<u64>) -> Vec<Vec<u8>> {
    let header = Header { name: "world.bin".into(), size };
    let mut outgoing = Outgoing::new(&header, file);
    let chunks: Vec<Vec<u8>> =
        std::iter::from_fn(|| outgoing.next_chunk().unwrap().map(Vec::from)).collect();
    assert_eq!(outgoing.bytes(), file.len() as u64);
    assert_eq!(outgoing.digest(), Some(blake3::hash(file)));
    chunks
}

fn receive(chunks: &[Vec<u8>], sink: &mut Memory) -> Result<Option<Finished>, FileError> {
    let mut incoming = Incoming::new();
    let mut last = None;
    for chunk in chunks {
        assert!(last.is_none(), "finished before the last chunk");
        last = incoming.push(chunk, sink)?;
    }
    Ok(last)
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8)) as u8).collect()
}

#[test]
fn every_size_arrives() {
    // A chunk holds 24 bytes of header, 4 and 4 of segments and 72 of trailer beside the file.
    let edge = MAX_CHUNK_BYTES - 104;
    let sizes = [0, 1, 1023, 1024, 1025, edge - 80, edge - 1, edge, edge + 1, edge + 72, edge + 80]
        .into_iter()
        .chain([MAX_CHUNK_BYTES - 5, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 3_000_000]);
    for len in sizes {
        let file = data(len);
        for size in [Some(len as u64), None] {
            let chunks = chunks_of(&file, size);
            assert!(chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= MAX_CHUNK_BYTES));
            assert!(len > edge || chunks.len() == 1, "{len} bytes in {} chunks", chunks.len());
            let mut sink = Memory::default();
            let finished = receive(&chunks, &mut sink).unwrap().unwrap();
            assert_eq!(sink.bytes, file, "{len}");
            assert_eq!((finished.bytes, finished.digest), (len as u64, blake3::hash(&file)));
            assert_eq!(finished.header, Header { name: "world.bin".into(), size });
        }
    }
}

#[test]
fn a_changed_byte_anywhere_is_refused() {
    let chunks = chunks_of(&data(500), Some(500));
    for at in 0..chunks[0].len() {
        let mut changed = chunks.clone();
        changed[0][at] ^= 0x10;
        let outcome = receive(&changed, &mut Memory::default());
        assert!(!matches!(outcome, Ok(Some(_))), "byte {at} may be changed");
    }
}

#[test]
fn each_lie_has_its_own_error() {
    let error = |chunks: &[Vec<u8>]| receive(chunks, &mut Memory::default()).unwrap_err();
    assert!(matches!(error(&[b"GET / HTTP/1.1\r\n\r\n".to_vec()]), FileError::NotAFile));

    // The size in the header: more or less than comes.
    let said = |said| error(&chunks_of(&data(500), Some(said)));
    assert!(matches!(said(499), FileError::WrongSize { announced: 499, .. }));
    assert!(matches!(said(501), FileError::WrongSize { announced: 501, received: 500 }));

    let mut content = chunks_of(&data(500), Some(500));
    content[0][100] ^= 1;
    assert!(matches!(error(&content), FileError::WrongDigest));

    let mut name = chunks_of(&data(500), Some(500));
    name[0][15] ^= 1;
    assert!(matches!(error(&name), FileError::WrongSeal));

    let mut more = chunks_of(&data(500), Some(500));
    more.push(vec![0]);
    let mut incoming = Incoming::new();
    let mut sink = Memory::default();
    incoming.push(&more[0], &mut sink).unwrap().unwrap();
    assert!(matches!(incoming.push(&more[1], &mut sink), Err(FileError::Malformed(_))));
}

#[test]
fn a_full_disk_is_reported() {
    let mut sink = Memory { full_at: Some(300_000), ..Memory::default() };
    let error = receive(&chunks_of(&data(600_000), None), &mut sink).unwrap_err();
    assert!(matches!(error, FileError::Io(e) if e.kind() == io::ErrorKind::StorageFull));
}

#[test]
fn receipts_cross_the_wire_and_hide_nothing_from_a_terminal() {
    let digest = blake3::hash(b"x");
    for status in [Status::Stored, Status::VerificationFailed, Status::IoError, Status::Interrupted]
    {
        let receipt = Receipt { status, digest, message: "disk full".into() };
        assert_eq!(Receipt::from_bytes(&receipt.to_bytes()), Some(receipt));
    }
    let hostile = Receipt { status: Status::IoError, digest, message: "\u{1b}[2Jgone".into() };
    assert_eq!(Receipt::from_bytes(&hostile.to_bytes()).unwrap().message, " [2Jgone");
    let long = Receipt { status: Status::IoError, digest, message: "é".repeat(1_000) };
    assert_eq!(Receipt::from_bytes(&long.to_bytes()).unwrap().message.len(), 400);
    assert_eq!(Receipt::from_bytes(b"HRCP\x01"), None);
    assert_eq!(Receipt::from_bytes(&[0; 38]), None);
}

proptest! {
    /// However the bytes are cut into chunks, the file is the same.
    #[test]
    fn cuts_do_not_matter(len in 0usize..3_000, cuts in prop::collection::vec(1usize..200, 0..40)) {
        let file = data(len);
        let stream = chunks_of(&file, Some(len as u64)).concat();
        let mut rest = &stream[..];
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            if piece.is_empty() { break; }
            pieces.push(piece.to_vec());
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(rest.to_vec());
        }
        let mut sink = Memory::default();
        prop_assert!(receive(&pieces, &mut sink).unwrap().is_some());
        prop_assert_eq!(sink.bytes, file);
    }

    /// Any chunks at all: refused or unfinished, never a panic, never more written than came.
    #[test]
    fn hostile_chunks_are_refused(
        start in 0usize..=15,
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..5),
    ) {
        let prefix = &chunks_of(b"abc", None)[0][..start];
        let mut incoming = Incoming::new();
        let mut sink = Memory::default();
        let _ = incoming.push(prefix, &mut sink);
        for chunk in &chunks {
            if incoming.push(chunk, &mut sink).is_err() {
                break;
            }
        }
        prop_assert!(sink.bytes.len() <= chunks.iter().map(Vec::len).sum::<usize>() + start);
    }
}
