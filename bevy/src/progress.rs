//! The progress of a join, for the load screen.

use std::collections::HashMap;
use std::time::Duration;

use bevy_ecs::resource::Resource;
use haulier::Event;

/// The progress of a join, for a load screen. Set back at each join, and kept after it.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JoinProgress {
    /// The client's place in line while the server has no seat: 1 is the next. `None` if it is not in line,
    /// or if even the line is full.
    pub place: Option<u32>,
    /// The estimated wait in line, if the server can say.
    pub line_estimate: Option<Duration>,
    /// Bytes received of all blocks that were announced in this join.
    pub received_bytes: u64,
    /// The size of these blocks in bytes.
    pub length_bytes: u64,
    /// The rate of the block of which bytes arrived last, in bits per second. 0 before it is known.
    pub rate_bps: u64,
    /// The estimated time for the rest of that block. `None` before it is known, and when the block is here.
    pub estimate: Option<Duration>,
    /// The blocks, by name, that the game needs and that the server has not announced. If all the others are
    /// here and this stays, the server does not send them: a name is mistyped, here or at the server. A
    /// warning in the log says so, too.
    pub missing: Vec<String>,
    blocks: HashMap<u64, [u64; 2]>,
}

impl JoinProgress {
    /// The part of the bytes that is here, from 0 to 1: the length of a bar. 0 before a block was announced.
    #[must_use]
    pub fn fraction(&self) -> f32 {
        if self.length_bytes == 0 {
            return 0.0;
        }
        (self.received_bytes as f64 / self.length_bytes as f64) as f32
    }

    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Queued { place, estimate } => {
                (self.place, self.line_estimate) = (*place, *estimate);
            }
            Event::Connected => (self.place, self.line_estimate) = (None, None),
            Event::BlockAnnounced { tag, length, .. } => self.count(*tag, 0, *length),
            Event::BlockProgress { tag, received, length, rate_bps, estimate } => {
                (self.rate_bps, self.estimate) = (*rate_bps, *estimate);
                self.count(*tag, *received, *length);
            }
            Event::Block { tag, data } => {
                self.estimate = None;
                self.count(*tag, data.len() as u64, data.len() as u64);
            }
            Event::BlockHere { tag } | Event::BlockComplete { tag, .. } => {
                let length = self.blocks.get(tag).map_or(0, |[_, length]| *length);
                self.count(*tag, length, length);
            }
            Event::BlockCancelled { tag, .. } => self.count(*tag, 0, 0),
            _ => {}
        }
    }

    fn count(&mut self, tag: u64, received: u64, length: u64) {
        self.blocks.insert(tag, [received, length]);
        self.received_bytes = self.blocks.values().map(|[received, _]| received).sum();
        self.length_bytes = self.blocks.values().map(|[_, length]| length).sum();
    }
}

#[cfg(test)]
mod tests {
    use haulier::BlockNumber;

    use super::*;

    #[test]
    fn a_bar_has_what_was_announced_and_not_what_was_given_up() {
        let mut progress = JoinProgress::default();
        assert_eq!(progress.fraction().to_bits(), 0, "no block: an empty bar, and a number");
        let block = BlockNumber::from_bits(0);
        for (tag, length) in [(1, 100), (2, 300)] {
            progress.note(&Event::BlockAnnounced { block, tag, length, digest: [0; 32] });
        }
        assert_eq!((progress.received_bytes, progress.length_bytes), (0, 400));
        let estimate = Some(Duration::from_secs(2));
        let (tag, received, length) = (1, 50, 100);
        progress.note(&Event::BlockProgress { tag, received, length, rate_bps: 200, estimate });
        assert_eq!((progress.rate_bps, progress.estimate), (200, estimate));
        progress.note(&Event::Block { tag: 1, data: vec![0; 100].into() });
        assert_eq!((progress.received_bytes, progress.estimate), (100, None));
        progress.note(&Event::BlockCancelled { block, tag: 2, code: 0 });
        assert_eq!((progress.received_bytes, progress.length_bytes), (100, 100));
    }
}
