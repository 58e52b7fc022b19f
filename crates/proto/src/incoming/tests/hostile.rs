//! Any frames in any order, from a seed: no panic, bounded memory, bounded work, and no invariant broken.

use super::random::Rng;
use super::*;
use crate::transit::ProgressMark;
use crate::wire::frames::Frame;

/// The maximum number of hashed bytes that one frame may cost: a chunk, and nine pages.
const MAX_HASHED_BYTES: u64 = CHUNK as u64 + 9 * 1024;

struct Attacker {
    rng: Rng,
    now: Instant,
    /// How many of 100 frames a well-behaved sender would not send.
    rude: usize,
    /// One honest block among what is made up, so that something is ever whole.
    sent: Sent,
    controls: Vec<Control>,
    marks: Vec<ProgressMark>,
}

impl Attacker {
    fn number(&mut self) -> u32 {
        match self.rng.percent(self.rude) {
            true => self.rng.pick(&[31, 40, u32::MAX]),
            false => self.rng.below(8) as u32,
        }
    }

    fn slice(&mut self, to: &mut IncomingBlocks) -> Result<(), Fault> {
        let data = [self.rng.below(2) as u8; 9000];
        let (index, size) = (self.rng.below(4) as u32, self.rng.pick(&[8934, 8934, 8000]));
        let index = index.min(if self.rng.percent(self.rude) { 4 } else { self.sent.chunks() - 1 });
        let honest = if index < self.sent.chunks() && !self.rng.percent(self.rude) {
            let count = self.sent.cut(index, size).count();
            let slice = self.rng.below(count);
            if count > 1 && self.rng.percent(20) {
                self.sent.repair(index, size, slice)
            } else {
                self.sent.source(index, size, slice)
            }
        } else {
            let size = SliceSize::new(size).unwrap();
            let kinds = [SliceKind::Source, SliceKind::Last(size), SliceKind::Repair];
            let (kind, bytes) = (self.rng.pick(&kinds), self.rng.pick(&[1, 2, 1024, 8934]));
            let at = ChunkAt { block: self.number(), index };
            let slice =
                SliceFrame { at, kind, index: self.rng.below(256) as u8, data: &data[..bytes] };
            if slice.size().is_none_or(|size| bytes > size.bytes()) {
                return Ok(());
            }
            return to.on_slice(self.now, &slice).map(drop);
        };
        let is_forged = self.rng.percent(3);
        let slice = match honest.kind {
            SliceKind::Repair if is_forged && honest.data.len() <= 9000 => {
                SliceFrame { data: &data[..honest.data.len()], ..honest }
            }
            _ => honest,
        };
        to.on_slice(self.now, &slice).map(drop)
    }

    fn frame(&mut self, to: &mut IncomingBlocks) -> Result<(), Fault> {
        let now = self.now;
        match self.rng.below(30) {
            0 => to.on_block(now, &self.sent.frame())?,
            1 => {
                let number = self.number();
                if number == self.sent.number && !self.rng.percent(self.rude) {
                    return Ok(());
                }
                let lengths = [0, 1, 300_000, 8 << 20];
                let length = match self.rng.percent(self.rude) {
                    true => self.rng.pick(&lengths),
                    false => lengths[number as usize % 4],
                };
                // That of an empty block, one that the application has, or any.
                let root = match number % 4 {
                    0 => *blake3::hash(&[]).as_bytes(),
                    1 => [1; 32],
                    _ => [number as u8; 32],
                };
                to.on_block(now, &BlockFrame { number, tag: 7, length, root })?;
            }
            2 => drop(to.on_hashes(now, &self.sent.page(0, 0))?),
            3 if self.rng.percent(self.rude) => {
                let values = [[3; 32]; 32];
                let count = 1 + self.rng.below(32);
                let (block, level) = (self.number(), self.rng.below(3) as u8);
                let first = 32 * self.rng.below(2) as u32;
                let frame = HashesFrame { block, level, first, values: &values[..count] };
                to.on_hashes(now, &frame).map(drop)?;
            }
            4 if self.rng.percent(5) => {
                let opened = if self.rng.percent(self.rude) { 1 } else { 4 };
                let number = self.number();
                to.on_cancel(now, number, 1, opened)?;
            }
            5 if self.rng.percent(3) => drop(to.decline(now, self.rng.below(4) as u32, 2)),
            6 if self.rng.percent(5) => drop(to.have([1; 32], Here::Whole, false)),
            7 => drop(to.poll_event(now)),
            8 => self.controls.extend(to.poll_control()),
            9 => {
                if let Some(control) = self.controls.pop() {
                    let _ = to
                        .control_frame(control)
                        .map(|frame: Frame<'_>| frame.write(&mut Vec::new()));
                    match self.rng.below(2) {
                        0 => to.on_control_lost(control),
                        _ => to.on_control_acked(now, control),
                    }
                }
            }
            10 => self.marks.push(to.on_progress_sent()),
            11 => {
                if let Some(mark) = self.marks.pop() {
                    match self.rng.below(2) {
                        0 => to.on_progress_lost(mark),
                        _ => to.on_progress_heard(mark),
                    }
                }
            }
            12 => drop(to.poll_slices_here(now)),
            13 => to.handle_timeout(now),
            _ => self.slice(to)?,
        }
        Ok(())
    }
}

fn run(seed: u64) -> (bool, u64) {
    let mut rng = Rng(seed);
    let delivery = rng.pick(&[Delivery::Blocks, Delivery::Chunks, Delivery::InOrder]);
    let mut to = IncomingBlocks::new(NOW, IncomingConfig { delivery, ..config() });
    let sent = Sent::new(rng.below(3) as u32, rng.pick(&[5000, CHUNK, 2 * CHUNK + 700]));
    let (controls, marks) = (Vec::new(), Vec::new());
    let rude = rng.pick(&[0, 0, 1, 20]);
    let mut attacker = Attacker { rng, now: NOW, rude, sent, controls, marks };
    for _ in 0..3000 {
        attacker.now = attacker.now + Duration::from_millis(attacker.rng.below(20) as u64);
        let before = to.work();
        let fault = attacker.frame(&mut to).is_err();
        let work = to.work();
        assert!(work.hashed_bytes - before.hashed_bytes <= MAX_HASHED_BYTES, "seed {seed}");
        assert!(work.decodes - before.decodes <= 2, "seed {seed}");
        if fault || to.failure(attacker.now).is_some() {
            return (true, work.decodes);
        }
        to.check_invariants();
        let budget = to.config.budget() as usize;
        assert!(to.memory_bytes() <= budget + (256 << 10), "seed {seed}");
        assert!(to.memory_bytes() <= 12 << 20, "seed {seed}");
        said(&to);
    }
    (false, to.work().decodes)
}

#[test]
fn no_frames_break_an_invariant() {
    let ends: Vec<_> = (0..300).map(run).collect();
    let closed = ends.iter().filter(|(closed, _)| *closed).count();
    let decoded = ends.iter().filter(|(_, decodes)| *decodes > 0).count();
    // The generator makes both: what closes at once, and what goes on for long.
    assert!((20..299).contains(&closed) && decoded > 20, "{closed} {decoded}");
}
