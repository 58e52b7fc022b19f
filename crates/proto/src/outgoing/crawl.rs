//! Whether a block is too slow: the first of the highest priority has to have a minimum rate [H-5.1b].
//!
//! The invariant: time in which it waits for credit, or for this end's program, does not count.

use core::time::Duration;

use super::blocks::OutgoingConfig;
use crate::Instant;
use crate::stall::max_block_time;

/// The time that the front, the first block of the highest priority, may take.
#[derive(Debug)]
pub(super) struct Crawl {
    /// 0: no minimum.
    min_rate_bps: u64,
    idle_timeout_ms: u32,
    front: Option<Front>,
    /// Since when the front is held back.
    held_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Front {
    number: u32,
    ends_at: Option<Instant>,
}

impl Crawl {
    pub(super) const fn new(config: &OutgoingConfig) -> Self {
        let OutgoingConfig { min_block_rate_bps, idle_timeout_ms, .. } = *config;
        Self { min_rate_bps: min_block_rate_bps, idle_timeout_ms, front: None, held_since: None }
    }

    /// The number of the front.
    pub(super) fn front(&self) -> Option<u32> {
        self.front.map(|front| front.number)
    }

    /// The front is this block, by number and length. Its time runs from when it is begun, while it is not
    /// held back.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        front: Option<(u32, u64)>,
        is_begun: bool,
        is_held: bool,
    ) {
        if self.front() != front.map(|(number, _)| number) || !is_begun {
            let ends_at = |length| {
                let rate = Some(self.min_rate_bps).filter(|&rate| rate > 0)?;
                let idle_timeout = Duration::from_millis(self.idle_timeout_ms.into());
                Some(now + max_block_time(length, rate, idle_timeout))
            };
            self.front = front.map(|(number, length)| Front { number, ends_at: ends_at(length) });
            self.held_since = None;
        }
        match (self.held_since, is_held) {
            (None, true) => self.held_since = Some(now),
            (Some(since), false) => {
                self.held_since = None;
                if let Some(Front { ends_at: Some(at), .. }) = &mut self.front {
                    *at = *at + now.since(since);
                }
            }
            _ => {}
        }
    }

    /// When the front has crawled for too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.front.filter(|_| self.held_since.is_none())?.ends_at
    }
}
