//! A stage: two ends, the link between them, and the timing of a run.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Link, LinkStats, World};

use super::outcome::HUNG;
use super::{Cell, Moment, Outcome};
use crate::ends::{Ends, Homes};

/// The cell and the seed of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) cell: &'a Cell,
    pub(super) seed: u64,
    pub(super) limit: Duration,
}

/// The counters at the start of the timing.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    at: Instant,
    slices: u64,
    blocks: usize,
    link: LinkStats,
}

/// Two ends, the link, and the timing.
pub(super) struct Stage<'a> {
    place: Place<'a>,
    world: World,
    homes: Homes,
    ends: Box<dyn Ends>,
    start: Start,
}

impl<'a> Stage<'a> {
    /// Both ends at time zero, with the timing started.
    pub(super) fn new(
        place: &Place<'a>,
        ends: impl FnOnce(&mut World, Homes) -> Box<dyn Ends>,
    ) -> Self {
        let mut world = World::new(place.seed).for_measuring();
        let homes =
            Homes::new(&mut world, &place.cell.server_access(), &place.cell.client_access());
        let ends = ends(&mut world, homes);
        Self { place: *place, world, homes, ends, start: Start::default() }
    }

    /// Runs for some time.
    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.world.now() + time;
        self.world.run_to(end);
    }

    /// Restarts the timing, and sends another block.
    pub(super) fn restart(&mut self, block: &Block) {
        self.world.links_mut(self.homes.client).into_iter().for_each(Link::forget_peak);
        self.start = Start {
            at: self.world.now(),
            slices: self.ends.slices_sent(&self.world),
            blocks: self.ends.received(&self.world).0,
            link: *self.link(),
        };
        self.ends.send(&mut self.world, block);
    }

    /// Runs until the client has the block and the sender knows, or until it hangs. Snapshots, if requested,
    /// are close together around the limit, and further apart later.
    pub(super) fn run(&mut self, mut moments: Option<&mut Vec<Moment>>) -> Outcome {
        let end = self.start.at + HUNG;
        let (ends, blocks) = (&self.ends, self.start.blocks);
        let is_over = |world: &World| match ends.received(world).0 > blocks {
            true => ends.is_done(world) || ends.failure(world).is_some(),
            false => ends.failure(world).is_some(),
        };
        let mut quarters: u32 = 1;
        loop {
            let stop = match &moments {
                Some(_) => end.min(self.start.at + self.place.limit * quarters / 4),
                None => end,
            };
            let is_over = self.world.run_until(stop, is_over);
            if let Some(moments) = &mut moments {
                moments.push(self.moment());
            }
            if is_over || stop == end {
                return self.outcome();
            }
            quarters += (quarters / 4).max(1);
        }
    }

    /// The bottleneck.
    fn link(&self) -> &LinkStats {
        self.world.links(self.homes.client).1.stats()
    }

    /// Slices sent since the timing started.
    fn slices_sent(&self) -> u64 {
        self.ends.slices_sent(&self.world).saturating_sub(self.start.slices)
    }

    fn moment(&self) -> Moment {
        let (link, before) = (self.link(), &self.start.link);
        Moment {
            after: self.world.now().since(self.start.at),
            slices_sent: self.slices_sent(),
            dropped: link.queue_full - before.queue_full,
            lost: link.lost - before.lost,
            arrived: link.delivered - before.delivered,
            is_whole: self.ends.received(&self.world).0 > self.start.blocks,
        }
    }

    fn outcome(&self) -> Outcome {
        let (blocks, at) = self.ends.received(&self.world);
        let is_whole = blocks > self.start.blocks;
        let (link, before) = (self.link(), &self.start.link);
        let queued = |stats: &LinkStats| stats.offered - stats.queue_full;
        let packets = u32::try_from(queued(link) - queued(before)).unwrap_or(u32::MAX);
        let why = || {
            let failure = self.ends.failure(&self.world);
            failure.unwrap_or_else(|| format!("no block within {} s", HUNG.as_secs()))
        };
        Outcome {
            took: if is_whole { at.since(self.start.at) } else { HUNG },
            limit: self.place.limit,
            known_after: (is_whole && self.ends.is_done(&self.world))
                .then(|| self.world.now().since(self.start.at)),
            slices: super::SLICES,
            slices_sent: self.slices_sent(),
            dropped_bytes: link.queue_full_bytes - before.queue_full_bytes,
            peak_queue_bytes: link.queue_bytes_max,
            mean_wait: (link.waited - before.waited) / packets.max(1),
            hang: (!is_whole).then(why),
        }
    }
}
