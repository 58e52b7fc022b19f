//! A pipe: bytes in order, of unknown length, from a writer that may be slow.
//!
//! A thread of its own waits for it, in short waits, so that the thread ends soon when the reader is dropped.
//! A named pipe without a writer is not at its end: the thread waits for the first writer.
//!
//! The invariant: every chunk but the last is of 256 KiB, and no more than [`MAX_AHEAD`] of them are read
//! and not taken.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::OFlags;

use crate::chunks::CHUNK_BYTES;
use crate::errors::ReadError;
use crate::pool::Wake;
use crate::system;

/// Chunks that are read and not taken: 1 MiB. Whoever fills a pipe is rarely ahead of the network.
const MAX_AHEAD: usize = 4;

/// How long the thread may live on when nobody wants its bytes: little to a person, many wake-ups apart.
const PATIENCE: Duration = Duration::from_millis(200);

/// What came out of a pipe.
#[derive(Clone)]
#[non_exhaustive]
pub enum PipeRead {
    /// The next chunk.
    Chunk(Bytes),
    /// Nothing now. The wake says when there is more.
    Nothing,
    /// The end.
    End,
}

impl std::fmt::Debug for PipeRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chunk(bytes) => write!(f, "Chunk({} bytes)", bytes.len()),
            Self::Nothing => f.write_str("Nothing"),
            Self::End => f.write_str("End"),
        }
    }
}

/// A pipe that is read.
#[derive(Debug)]
pub struct PipeReader {
    chunks: Receiver<Result<Bytes, ReadError>>,
    is_wanted: Arc<AtomicBool>,
}

impl PipeReader {
    /// Reads a named pipe.
    pub fn open(path: &Path, wake: Wake) -> Result<Self, ReadError> {
        // Opening it would wait for a writer, where no signal ends it; so does reading, which is waited for
        // instead.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(path);
        let file = file.map_err(|error| ReadError::io(path, error))?;
        Self::start(file, path, wake)
    }

    /// Reads the standard input, whatever it is.
    pub fn stdin(wake: Wake) -> Result<Self, ReadError> {
        let path = Path::new("standard input");
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|error| ReadError::io(path, error))?;
        Self::start(File::from(stdin), path, wake)
    }

    fn start(file: File, path: &Path, wake: Wake) -> Result<Self, ReadError> {
        let (sender, chunks) = sync_channel(MAX_AHEAD);
        let is_wanted = Arc::new(AtomicBool::new(true));
        let pipe = Pipe { file, path: path.to_owned(), wake, is_wanted: Arc::clone(&is_wanted) };
        let thread = std::thread::Builder::new().name("haulier-pipe".to_owned());
        let started = thread.spawn(move || pipe.run(sender));
        started.map_err(|error| ReadError::io(path, error))?;
        Ok(Self { chunks, is_wanted })
    }

    /// The next chunk, if it is there.
    pub fn take(&mut self) -> Result<PipeRead, ReadError> {
        match self.chunks.try_recv() {
            Ok(chunk) => chunk.map(PipeRead::Chunk),
            Err(TryRecvError::Empty) => Ok(PipeRead::Nothing),
            Err(TryRecvError::Disconnected) => Ok(PipeRead::End),
        }
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}

/// The thread's side.
struct Pipe {
    file: File,
    path: PathBuf,
    wake: Wake,
    is_wanted: Arc<AtomicBool>,
}

impl Pipe {
    fn run(mut self, sender: SyncSender<Result<Bytes, ReadError>>) {
        loop {
            let read = self.read_chunk();
            let is_last = !matches!(&read, Ok(chunk) if chunk.len() == CHUNK_BYTES);
            let is_nothing = matches!(&read, Ok(chunk) if chunk.is_empty());
            let read = read.map(Bytes::from).map_err(|error| ReadError::io(&self.path, error));
            let is_taken = is_nothing || sender.send(read).is_ok();
            if is_last || !is_taken {
                break;
            }
            self.wake.wake();
        }
        // The end is there to be taken before it is said.
        drop(sender);
        self.wake.wake();
    }

    /// A whole chunk, or the shorter rest at the end of the pipe.
    fn read_chunk(&mut self) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut filled = 0;
        while filled < CHUNK_BYTES && self.is_wanted.load(Ordering::Relaxed) {
            if !system::is_readable(&self.file, PATIENCE)? {
                continue;
            }
            match self.file.read(&mut chunk[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error),
            }
        }
        chunk.truncate(filled);
        Ok(chunk)
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
