//! An end with one of its mechanisms taken out, so that one can see what it is for.
//!
//! Each of the article's three hangs is an ack that is not sent again, because a slice was dropped before it
//! could make one due. So such a fault is a [`Filter`] in front of the receiver of the product, which stays
//! as it is. haulier/1 sends no repair slices to a client that says it knows no repair code; so [`Mute`]
//! takes that word out of the client's request on its way. The invariant: without the fault the same run
//! ends.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use haulier_article::packet::article::ArticlePacket;
use haulier_article::{ProtocolId, packet};
use haulier_core::{Batch, FourTuple, Machine};
use haulier_proto::Instant;
use haulier_proto::internals::{Hello, Kind, RequestParts, open_check};
use haulier_sim::Host;
use haulier_sim::hosts::PROTOCOL_ID;

/// What an end has forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Hang 1: a slice that it has is dropped, and not acknowledged again.
    Duplicates,
    /// Hang 2: while the finished chunk waits to be read, every slice is dropped.
    Unread,
    /// Hang 3: after the chunk was read, slices of it are dropped.
    Previous,
    /// haulier/1 without repair slices.
    Repair,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Duplicates, Self::Unread, Self::Previous, Self::Repair];

    /// Its name in the text of a scene.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicates => "duplicates",
            Self::Unread => "unread",
            Self::Previous => "previous",
            Self::Repair => "repair",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// Drops what a receiver with the fault would.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    fault: Option<Fault>,
    /// For each chunk, the slices that came through, and the number of its slices.
    came: BTreeMap<u16, (BTreeSet<usize>, usize)>,
}

impl Filter {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self { fault, came: BTreeMap::new() }
    }

    /// Whether this datagram does not reach the receiver.
    pub(super) fn drops(&mut self, datagram: &[u8]) -> bool {
        let Some(fault) = self.fault else { return false };
        let Ok(ArticlePacket::Slice(slice)) = packet::read(ProtocolId::ARTICLE, datagram) else {
            return false;
        };
        let count = slice.index().count().get();
        let (came, _) =
            self.came.entry(slice.chunk_id().get()).or_insert_with(|| (BTreeSet::new(), count));
        let is_whole = came.len() == count;
        let is_new = came.insert(slice.index().get());
        match fault {
            Fault::Duplicates => !is_new,
            Fault::Unread | Fault::Previous => is_whole,
            Fault::Repair => false,
        }
    }
}

/// Takes the repair codes out of the requests that pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mute;

impl Mute {
    /// The request of a client in mode `open` that is the same in all else.
    fn mute(datagram: &[u8]) -> Option<Vec<u8>> {
        if Kind::of(datagram) != Ok(Kind::Request) {
            return None;
        }
        let parts = RequestParts::read(datagram).ok()?;
        let mut hello = Hello::read(parts.hello_message).ok()?;
        hello.end.repair_codes = 0;
        let (mut message, mut muted) = (Vec::new(), Vec::new());
        hello.write(&mut message);
        let parts = RequestParts { hello_message: &message, ..parts };
        let fits = parts.write(&mut muted, |padding| padding.fill(0));
        let check = open_check(PROTOCOL_ID, &muted);
        muted.extend(check);
        fits.then_some(muted)
    }
}

impl Machine for Mute {
    fn handle_datagram(&mut self, _now: Instant, _path: FourTuple, _datagram: &mut [u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, _batch: &mut Batch) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Host for Mute {
    fn meddle(
        &mut self,
        _now: Instant,
        _from: SocketAddr,
        _to: SocketAddr,
        datagram: &mut Vec<u8>,
    ) {
        if let Some(muted) = Self::mute(datagram) {
            *datagram = muted;
        }
    }
}
