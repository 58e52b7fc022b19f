//! How far a giver is: what of the blocks on their way is known to have arrived.
//!
//! The invariant: no more counts as arrived than was given to the connection, and of a block that is gone
//! nothing is wanted that did not arrive; so at the end all that is wanted has arrived.

use haulier_core::Instant;

use super::{Fate, Giver, Outgoing};
use crate::progress::Progress;
use crate::tag::BlockTag;

impl Outgoing {
    /// What was given to the connection. What the taker had already is neither read nor sent.
    fn given_bytes(&self) -> u64 {
        if self.spans.is_empty() { self.length } else { self.read_bytes.min(self.length) }
    }
}

impl Giver {
    /// The progress. `verified_bytes` and `wire_bytes` count only bytes that are known to have arrived: a
    /// connection accepts more bytes than it has sent yet.
    pub fn progress(&mut self, now: Instant) -> Progress {
        let fates = self.offer.entries().iter().zip(&self.fates);
        let done = fates.filter(|(it, fate)| !it.is_directory() && **fate != Fate::Open).count();
        let left = self.wanted_bytes.saturating_sub(self.arrived_bytes);
        Progress {
            files_done: u32::try_from(done).unwrap_or(u32::MAX),
            files: self.offer.files(),
            wanted_bytes: self.wanted_bytes,
            verified_bytes: self.arrived_bytes,
            wire_bytes: self.arrived_bytes,
            bytes_per_second: self.meter.rate(now) as u64,
            remaining: self.meter.remaining(now, left),
            ..Progress::default()
        }
    }

    /// Sets the progress of a block: `bytes` of it have arrived in all. A number that is not higher than the
    /// last one changes nothing.
    pub fn handle_arrived(&mut self, now: Instant, tag: BlockTag, bytes: u64) {
        let Some(block) = self.blocks.get_mut(&tag).filter(|it| it.file.is_some()) else { return };
        let arrived = bytes.min(block.given_bytes());
        let more = arrived.saturating_sub(block.arrived_bytes);
        if more > 0 {
            block.arrived_bytes = arrived;
            self.arrived_bytes += more;
            self.meter.add(now, more);
        }
    }

    /// Of a block that is not on its way any more nothing else will arrive.
    pub(super) fn forget(&mut self, block: &Outgoing) {
        if block.file.is_some() {
            let left = block.length.saturating_sub(block.arrived_bytes);
            self.wanted_bytes = self.wanted_bytes.saturating_sub(left);
        }
    }

    /// A file is stored there before the connection has said that its last blocks have arrived.
    pub(super) fn count_as_arrived(&mut self, file: u32) {
        for block in self.blocks.values_mut().filter(|block| block.file == Some(file)) {
            let given = block.given_bytes();
            self.arrived_bytes += given.saturating_sub(block.arrived_bytes);
            block.arrived_bytes = given;
        }
    }
}
