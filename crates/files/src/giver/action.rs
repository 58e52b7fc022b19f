//! What a giver asks of its program, and what it tells it.

use std::ops::Range;

use bytes::Bytes;
use haulier_proto::connection::CloseCode;

use crate::offer::Root;
use crate::packing::Packing;
use crate::pieces::Recipe;
use crate::reason::Fault;
use crate::tag::BlockTag;

/// Something for the program to do. Those that name a file go to the disk and have an answer.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GiverAction {
    /// Send this message on channel 0.
    SendMessage(Bytes),
    /// Read this part of a file, or less if it ends, and build its tree, which the program keeps under the
    /// tag; or pack it, if that is wanted and pays. Answer: [`Made::Part`] or another of its forms.
    MakePart {
        /// The block that it will be.
        tag: BlockTag,
        /// The file.
        file: u32,
        /// Where it begins, in bytes.
        offset: u64,
        /// Its length, unless the file is a pipe that ends.
        max_bytes: u64,
        /// Whether it is to be packed.
        packing: Packing,
    },
    /// Build the tree of these bytes of a file, one range after the other. Answer: [`Made::Pieces`].
    MakePieces {
        /// The block that it will be.
        tag: BlockTag,
        /// The file.
        file: u32,
        /// The ranges.
        spans: Vec<Range<u64>>,
    },
    /// Cut a file into its pieces, or know them from its cache. Answer: [`Made::Recipe`].
    MakeRecipe {
        /// The block that it will be.
        tag: BlockTag,
        /// The file.
        file: u32,
    },
    /// Hash a file. Answer: [`Made::Tree`].
    MakeTree {
        /// The block that it will be.
        tag: BlockTag,
        /// The file.
        file: u32,
    },
    /// All parts of a file are made: what its root is, with whatever of it was in no part. Answer:
    /// [`Giver::handle_root`](super::Giver::handle_root).
    FindRoot {
        /// The file.
        file: u32,
    },
    /// Send a block with this tag.
    SendBlock {
        /// Its tag.
        tag: BlockTag,
        /// Where its bytes are.
        source: BlockSource,
    },
    /// Read a chunk of a block, compare it with the tree, and answer with
    /// [`Giver::handle_read`](super::Giver::handle_read).
    Read {
        /// The block.
        tag: BlockTag,
        /// Where the chunk is in it.
        offset: u64,
        /// The file.
        file: u32,
        /// Where the bytes are in the file, one range after the other.
        spans: Vec<Range<u64>>,
    },
    /// Give the connection a chunk that it wanted.
    Provide {
        /// The block.
        tag: BlockTag,
        /// Where the chunk is in it.
        offset: u64,
        /// The chunk.
        bytes: Bytes,
    },
    /// Give a block up.
    CancelBlock {
        /// The block.
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
impl std::fmt::Debug for GiverAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SendMessage(bytes) => write!(f, "SendMessage({} bytes)", bytes.len()),
            Self::MakePart { tag, max_bytes, .. } => {
                write!(f, "MakePart({tag:?}, {max_bytes} bytes)")
            }
            Self::MakePieces { tag, spans, .. } => {
                write!(f, "MakePieces({tag:?}, {} ranges)", spans.len())
            }
            Self::MakeRecipe { tag, .. } => write!(f, "MakeRecipe({tag:?})"),
            Self::MakeTree { tag, .. } => write!(f, "MakeTree({tag:?})"),
            Self::FindRoot { file } => write!(f, "FindRoot({file})"),
            Self::SendBlock { tag, source } => write!(f, "SendBlock({tag:?}, {source:?})"),
            Self::Read { tag, offset, .. } => write!(f, "Read({tag:?}, {offset})"),
            Self::Provide { tag, offset, bytes } => {
                write!(f, "Provide({tag:?}, {offset}, {} bytes)", bytes.len())
            }
            Self::CancelBlock { tag, code } => write!(f, "CancelBlock({tag:?}, {code})"),
            Self::Close { code, reason } => write!(f, "Close({code}, {reason:?})"),
        }
    }
}

/// Where the bytes of a block are.
#[derive(Clone, PartialEq, Eq)]
pub enum BlockSource {
    /// On disk: the program has the tree under the tag (of [`BlockTag::Whole`]: that of the file), and
    /// asks for chunks as the connection wants them.
    Disk {
        /// In bytes.
        length: u64,
    },
    /// Here.
    Memory(Bytes),
}

impl std::fmt::Debug for BlockSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk { length } => write!(f, "disk, {length} bytes"),
            Self::Memory(bytes) => write!(f, "memory, {} bytes", bytes.len()),
        }
    }
}

/// What was made for a block.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Made {
    /// A part of a file, which is read again as it is sent.
    Part {
        /// In bytes.
        length: u64,
    },
    /// A part of a pipe, which cannot be read again. One shorter than it could be is the last.
    PipePart(Bytes),
    /// A part that is packed, and its length when it is unpacked.
    Packed {
        /// As it goes.
        bytes: Bytes,
        /// What it stands for, in bytes.
        length: u64,
    },
    /// Packing pays for no part of this file: the rest goes as if it could not be packed.
    Unpacked,
    /// The tree of some pieces.
    Pieces,
    /// A recipe.
    Recipe(Recipe),
    /// The tree of a file.
    Tree {
        /// In bytes.
        size: u64,
        /// Its BLAKE3.
        root: Root,
    },
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Part { length } => write!(f, "Part({length} bytes)"),
            Self::PipePart(bytes) => write!(f, "PipePart({} bytes)", bytes.len()),
            Self::Packed { bytes, length } => {
                write!(f, "Packed({length} as {} bytes)", bytes.len())
            }
            Self::Unpacked => f.write_str("Unpacked"),
            Self::Pieces => f.write_str("Pieces"),
            Self::Recipe(recipe) => write!(f, "Recipe({} pieces)", recipe.pieces().len()),
            Self::Tree { size, .. } => write!(f, "Tree({size} bytes)"),
        }
    }
}

/// What happened, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GiverEvent {
    /// The taker has this file under its name.
    Stored {
        /// The file.
        file: u32,
    },
    /// The taker does not want this file.
    Refused {
        /// The file.
        file: u32,
        /// Why.
        fault: Fault,
    },
    /// This file could not be read here or not be stored there.
    Failed {
        /// The file.
        file: u32,
        /// Why.
        fault: Fault,
    },
    /// The taker wants nothing more.
    Done,
    /// The other end broke the rules, and the connection is closed.
    Ended {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in words.
        reason: String,
    },
}
