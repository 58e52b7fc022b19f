//! What a taker asks of its program, what the program answers, and the events that the taker reports.

use bytes::Bytes;
use haulier_proto::connection::{ChunkValue, CloseCode};

use crate::offer::Root;
use crate::pieces::Copied;
use crate::ranges::Ranges;
use crate::reason::Fault;
use crate::tag::BlockTag;

/// Something for the program to do. Those that name a file go to the disk and have an answer, unless it
/// says otherwise.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakerAction {
    /// Send this message on channel 0.
    SendMessage(Bytes),
    /// Say whether these files may come: whether the folder can be written, the disk has room, the quota
    /// allows it. Answer: [`Taker::handle_admission`](super::Taker::handle_admission).
    Admit {
        /// How many files are wanted.
        files: u32,
        /// Their size, as far as it is known.
        bytes: u64,
    },
    /// Read a long offer with [`Offer::read`](crate::offer::Offer::read): 200,000 files take a third of a
    /// second. Answer: [`Taker::handle_offer`](super::Taker::handle_offer).
    ReadOffer {
        /// The list.
        list: Bytes,
    },
    /// Find the parts of a file that are on the disk, and hash a file of its name and size if the root is
    /// known. This action comes twice for a file that was [`Unproven`](Local::Unproven). Answer:
    /// [`Taker::handle_inspected`](super::Taker::handle_inspected).
    Inspect {
        /// The file.
        file: u32,
    },
    /// Report to the connection which chunks of the block with this root are here; this replaces the previous
    /// report. No answer.
    HaveChunks {
        /// The root.
        root: Root,
        /// The chunks; none of them if this is empty.
        chunks: Ranges,
    },
    /// Write verified bytes. Answer: [`Taker::handle_written`](super::Taker::handle_written) with their
    /// range.
    Write {
        /// The file.
        file: u32,
        /// Where in the file, in bytes.
        offset: u64,
        /// The bytes.
        data: Bytes,
        /// If they are a chunk of the file: its value in the file's tree, which needs no hashing then.
        value: Option<ChunkValue>,
    },
    /// Unpack verified bytes and write what comes out. Answer: as of `Write`, with the range that it
    /// covers.
    WritePacked {
        /// The file.
        file: u32,
        /// Where in the file, in bytes.
        offset: u64,
        /// No more than this may come out, in bytes.
        max_bytes: u64,
        /// What is packed, in one run.
        packed: Vec<Bytes>,
    },
    /// Cut the older version of a file into its pieces. Answer:
    /// [`Taker::handle_older`](super::Taker::handle_older).
    CutOlder {
        /// The file.
        file: u32,
    },
    /// Copy from the older version. Answer: [`Taker::handle_copied`](super::Taker::handle_copied), once
    /// for all.
    CopyPieces {
        /// The file.
        file: u32,
        /// What to where.
        copies: Vec<Copied>,
    },
    /// All of a file is here: make it safe, compare its root, and give it its name. Answer:
    /// [`Taker::handle_finished`](super::Taker::handle_finished).
    Finish {
        /// The file.
        file: u32,
        /// Its size in bytes.
        size: u64,
        /// Its root.
        root: Root,
    },
    /// Make a file whose content is that of another one of this transfer, which has its name already.
    /// Answer: as of `Finish`.
    CopyFile {
        /// The file.
        file: u32,
        /// The one that has the content.
        from: u32,
    },
    /// Make an empty directory. Answer: as of `Finish`.
    MakeDirectory {
        /// Its index.
        file: u32,
    },
    /// The bytes of a file on the disk are wrong: begin it anew. No answer; later writes are kept.
    Discard {
        /// The file.
        file: u32,
    },
    /// A file does not go on: close it, and keep it with its journal. No answer.
    Abandon {
        /// The file.
        file: u32,
    },
    /// Decline a block.
    Decline {
        /// The block, as the connection names it.
        tag: BlockTag,
        /// The reason, as a number.
        code: u32,
    },
    /// Close the connection. This is the last action.
    Close {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in words.
        reason: String,
    },
}

/// Lengths in place of bytes.
impl std::fmt::Debug for TakerAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SendMessage(bytes) => write!(f, "SendMessage({} bytes)", bytes.len()),
            Self::Admit { files, bytes } => write!(f, "Admit({files} files, {bytes} bytes)"),
            Self::ReadOffer { list } => write!(f, "ReadOffer({} bytes)", list.len()),
            Self::Inspect { file } => write!(f, "Inspect({file})"),
            Self::HaveChunks { chunks, .. } => write!(f, "HaveChunks({} chunks)", chunks.count()),
            Self::Write { file, offset, data, .. } => {
                write!(f, "Write({file}, {offset}, {} bytes)", data.len())
            }
            Self::WritePacked { file, offset, .. } => write!(f, "WritePacked({file}, {offset})"),
            Self::CutOlder { file } => write!(f, "CutOlder({file})"),
            Self::CopyPieces { file, copies } => write!(f, "CopyPieces({file}, {})", copies.len()),
            Self::Finish { file, size, .. } => write!(f, "Finish({file}, {size} bytes)"),
            Self::CopyFile { file, from } => write!(f, "CopyFile({file}, from {from})"),
            Self::MakeDirectory { file } => write!(f, "MakeDirectory({file})"),
            Self::Discard { file } => write!(f, "Discard({file})"),
            Self::Abandon { file } => write!(f, "Abandon({file})"),
            Self::Decline { tag, code } => write!(f, "Decline({tag:?}, {code})"),
            Self::Close { code, reason } => write!(f, "Close({code}, {reason:?})"),
        }
    }
}

/// What of a file is here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Local {
    /// Nothing, and it can be written.
    Absent,
    /// All of it, under its name and with its root.
    Here,
    /// A file with its name, size and time, but no root is known yet: the giver is asked for it, and then
    /// the program looks once more.
    Unproven,
    /// Some of it, with a journal.
    Partial {
        /// The chunks of 256 KiB that are here, by index.
        chunks: Ranges,
    },
    /// An older version, under its name or another.
    Older,
    /// It cannot be stored here.
    Refused(Fault),
}

/// Why a file that was all here has no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// It has another BLAKE3.
    #[error("its BLAKE3 is wrong")]
    WrongRoot,
    /// Some chunks that a journal had are not here after all: the disk lost them.
    #[error("the disk has lost some of it")]
    Missing {
        /// The chunks of 256 KiB that are here, by index.
        chunks: Ranges,
    },
    /// The disk failed, or the name was taken meanwhile.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What happened, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakerEvent {
    /// The offer is here: [`Taker::offer`](super::Taker::offer).
    Offered,
    /// A file was here already.
    Here {
        /// The file.
        file: u32,
    },
    /// A file has its name.
    Stored {
        /// The file.
        file: u32,
    },
    /// What was put together of a file was wrong, and it is fetched whole.
    Again {
        /// The file.
        file: u32,
    },
    /// A file could not be had or stored.
    Failed {
        /// The file.
        file: u32,
        /// Why.
        fault: Fault,
    },
    /// Nothing more is wanted; the code says whether all is here.
    Done {
        /// How many files failed.
        failed: u32,
    },
    /// The transfer ended before it was done: the other end broke the rules, or the program did not admit
    /// it.
    Ended {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in words.
        reason: String,
    },
}
