//! Several blocks over a link that loses, repeats, delays and forges, from a seed: what is delivered is what
//! was sent, with bounded memory and work at each step.

use super::*;
use crate::wire::frames::{Frame, Frames};

/// A generator of numbers, from its seed alone.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A sender that sends again whatever is not done, in any order, within its credit.
struct Link {
    rng: Rng,
    blocks: Vec<Sent>,
    /// The slice size of each chunk, once it is open.
    sizes: Vec<Vec<Option<usize>>>,
    opened: u64,
    announced: usize,
    /// Datagrams on their way.
    queue: Vec<Vec<u8>>,
    forged: usize,
}

const SIZES: [usize; 4] = [1024, 1434, 2034, 8934];

impl Link {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let sizes = [0, 1, 999, 5000, CHUNK, CHUNK + 1, 3 * CHUNK - 5, 9 * CHUNK + 100];
        let count = 3 + rng.below(4);
        let blocks: Vec<_> = (0..count).map(|n| Sent::new(n as u32, rng.pick(&sizes))).collect();
        let sizes = blocks.iter().map(|it| alloc::vec![None; it.chunks() as usize]).collect();
        let (queue, forged) = (Vec::new(), rng.below(3));
        Self { rng, blocks, sizes, opened: 0, announced: 0, queue, forged }
    }

    fn send(&mut self, frame: &Frame<'_>) {
        if self.rng.percent(20) {
            return;
        }
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        if self.rng.percent(5) {
            self.queue.push(bytes.clone());
        }
        self.queue.push(bytes);
    }

    /// One flight: announcements, pages, and some slices of each chunk that is not done.
    fn flight(&mut self, progress: &Said) {
        let (credit, floor, entries) = progress;
        for n in 0..self.blocks.len() {
            let entry = entries.iter().find(|entry| entry.0 as usize == n);
            let blocks = core::mem::take(&mut self.blocks);
            if n == self.announced && self.opened < *credit {
                (self.announced, self.opened) = (n + 1, self.opened + 1);
            }
            if n < self.announced && n as u32 >= *floor {
                self.send_block(&blocks[n], entry, *credit);
            }
            self.blocks = blocks;
        }
        // Whatever was overtaken.
        for at in (1..self.queue.len()).rev() {
            let other = at - self.rng.below(40.min(at + 1));
            self.queue.swap(at, other);
        }
    }

    fn send_block(&mut self, block: &Sent, entry: Option<&Entry>, credit: u64) {
        let first = entry.map_or(0, |entry| entry.1);
        self.send(&Frame::Block(block.frame()));
        for index in first..block.chunks() {
            let map = entry.map_or(&[][..], |entry| &entry.2);
            let bit = (index as usize).wrapping_sub(first as usize + 1);
            if map.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 != 0) {
                continue;
            }
            let size = &mut self.sizes[block.number as usize][index as usize];
            match size {
                Some(size) if self.rng.percent(3) => *size = 1024,
                Some(_) => {}
                None if self.opened < credit => {
                    *size = Some(self.rng.pick(&SIZES));
                    self.opened += 1;
                }
                None => continue,
            }
            let size = size.unwrap();
            for (level, first) in block.tree.pages_of(index) {
                self.send(&Frame::Hashes(block.page(level, first)));
            }
            self.send_chunk(block, index, size);
        }
    }

    fn send_chunk(&mut self, block: &Sent, index: u32, size: usize) {
        let cut = block.cut(index, size);
        let repairs = crate::bulk::repair::repair_count(cut);
        for slice in 0..cut.count() {
            if repairs > 0 && self.rng.percent(10) {
                let repair = block.repair(index, size, self.rng.below(repairs));
                if self.forged > 0 && self.rng.percent(2) {
                    self.forged -= 1;
                    let data: Vec<u8> = repair.data.iter().map(|byte| byte ^ 0x55).collect();
                    self.send(&Frame::Slice(SliceFrame { data: &data, ..repair }));
                } else {
                    self.send(&Frame::Slice(repair));
                }
            } else if self.rng.percent(70) {
                self.send(&Frame::Slice(block.source(index, size, slice)));
            }
        }
    }
}

fn handle(to: &mut IncomingBlocks, now: Instant, datagram: &[u8]) {
    for frame in Frames::of(datagram) {
        let fate = match frame.unwrap() {
            Frame::Block(block) => to.on_block(now, &block).map(|()| Fate::New),
            Frame::Slice(slice) => to.on_slice(now, &slice),
            Frame::Hashes(hashes) => to.on_hashes(now, &hashes),
            _ => unreachable!("not sent"),
        };
        fate.unwrap();
    }
}

fn run(seed: u64) {
    let mut link = Link::new(seed);
    let mut to = receiver();
    let (mut now, mut delivered) = (NOW, 0);
    let budget = to.config.budget() as usize;
    let mut before = said(&to);
    for round in 0.. {
        assert!(round < 60, "no end");
        let (credit, floor, entries) = said(&to);
        assert!(credit >= before.0 && floor >= before.1, "seed {seed}: never lower");
        for (block, first, _) in &before.2 {
            let now = entries.iter().find(|entry| entry.0 == *block);
            assert!(now.is_none_or(|now| now.1 >= *first), "seed {seed}: done stays done");
        }
        before = (credit, floor, entries);
        link.flight(&before);
        for datagram in core::mem::take(&mut link.queue) {
            now = now + Duration::from_micros(100);
            let worked = to.work();
            handle(&mut to, now, &datagram);
            let work = to.work();
            // What was staged for an announcement is at most a chunk, too.
            let most = CHUNK as u64 + 9 * 32 * 32;
            assert!(work.hashed_bytes - worked.hashed_bytes <= most, "seed {seed}");
            assert!(work.decodes - worked.decodes <= 1, "seed {seed}");
            assert_eq!(to.failure(now), None, "seed {seed}");
        }
        to.check_invariants();
        assert!(to.memory_bytes() <= budget + (1 << 20), "seed {seed}");
        while let Some(event) = to.poll_event(now) {
            if let IncomingEvent::Block { block, data, .. } = event {
                assert!(data == link.blocks[block as usize].bytes, "seed {seed} block {block}");
                delivered += 1;
            }
        }
        if delivered == link.blocks.len() {
            break;
        }
    }
    let bytes: usize = link.blocks.iter().map(|block| block.bytes.len()).sum();
    let pages = to.work().hashed_bytes - to.work().hashed_bytes.min(3 * bytes as u64);
    assert!(pages <= 100 * 1024, "seed {seed}: a chunk is hashed three times at most");
    assert!(said(&to).2.is_empty() && said(&to).1 as usize == link.blocks.len());
    while to.poll_slices_here(now + Duration::from_secs(1)).is_some() {}
    assert!(to.memory_bytes() <= 2048, "seed {seed}: {}", to.memory_bytes());
}

#[test]
fn what_is_delivered_is_what_was_sent() {
    for seed in 0..40 {
        run(seed);
    }
}
