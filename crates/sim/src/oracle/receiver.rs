//! A receiver of a block that goes on as if its link had not changed: the hostile host of
//! [`fed`](super::fed). Until its link changes it reports the truth, so that the server has a rate, and acks
//! of old numbers have an effect. The invariant: it counts as [`Heard`] exactly what came out of the link.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::internals::frames::{ProgressEntry, ProgressFrame, SliceFrame, SliceKind};
use haulier_proto::internals::{AckFrame, ArrivalsFrame, Frame, Frames};

use crate::attack::Mind;
use crate::attack::raw::{Link, RawClient};
use crate::hosts::secret;
use crate::{Rng, Shot, address};

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 256 << 10;

/// Slices of a chunk at least: the last slice of one is shorter than the others.
const SMALLEST_COUNT: usize = 100;

/// The last chunk of the block is never reported as whole: the block would be over.
const MAX_WHOLE: u32 = 190;

/// Datagrams sent for a slice that counts, as it claims: some are repair.
const SENT_FOR_ONE: f64 = 1.2;

/// The number of missing numbers in an ack from which on half of them are reported as arrived: where only one
/// is missing, that is the skipped one.
const MUCH: usize = 8;

/// The time from one of its datagrams to the next.
const EVERY: Duration = Duration::from_millis(4);

/// What a receiver says once its link is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// What arrived, and when.
    Truth,
    /// That all arrived except this many of the newest.
    AllButNewest(u64),
    /// That all arrived except one number in 256, in case that is the skipped one.
    AllButAGuess,
    /// That half of the missing numbers arrived, where many are missing.
    HalfOfTheRest,
    /// What arrived, as fast as it did before.
    Faster,
}

impl Says {
    /// Everything.
    pub const ALL: [Self; 7] = [
        Self::Truth,
        Self::AllButNewest(0),
        Self::AllButNewest(1_100),
        Self::AllButNewest(4_400),
        Self::AllButAGuess,
        Self::HalfOfTheRest,
        Self::Faster,
    ];

    /// Whether the server has to notice it: false acks can be noticed, unlike false times.
    #[must_use]
    pub const fn is_caught(self) -> bool {
        !matches!(self, Self::Truth | Self::Faster)
    }

    /// Whether it denies more than the server's window holds: it never gets to lie, and is sent no more.
    #[must_use]
    pub const fn finds_no_room(self) -> bool {
        matches!(self, Self::AllButNewest(4_400..))
    }
}

/// What reached a receiver.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) bytes: u64,
    pub(super) is_closed: bool,
    /// The count of numbers that it has acknowledged and that never arrived.
    pub(super) lies: u64,
}

/// When its link changes and when it leaves, and the rate until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) changes: Instant,
    pub(super) leaves: Instant,
    pub(super) before_bps: u64,
}

/// A hostile host of the world.
pub(super) struct Receiver {
    says: Says,
    turn: Turn,
    rng: Rng,
    heard: Rc<RefCell<Heard>>,
    raw: RawClient,
    wakes: Option<Instant>,
    /// The numbers that arrived, and when.
    arrived: VecDeque<(u64, Instant)>,
    /// Slices of the chunks that are not whole, and chunks that are or are said to be.
    slices: BTreeSet<(u32, u8, bool)>,
    whole: BTreeSet<u32>,
    said_whole: f64,
    slices_in_chunk: usize,
    /// Numbers up to here were named by a lie.
    named: u64,
}

impl Receiver {
    pub(super) fn new((says, turn): (Says, Turn), mut rng: Rng, heard: Rc<RefCell<Heard>>) -> Self {
        Self {
            says,
            turn,
            raw: RawClient::new(Some(&secret()), rng.next_u64()),
            rng,
            heard,
            wakes: Some(Instant::ZERO),
            arrived: VecDeque::new(),
            slices: BTreeSet::new(),
            whole: BTreeSet::new(),
            said_whole: 0.0,
            slices_in_chunk: 256,
            named: 0,
        }
    }

    fn take(&mut self, plaintext: &[u8]) {
        for frame in Frames::of(plaintext).flatten() {
            match frame {
                Frame::Close { .. } => self.heard.borrow_mut().is_closed = true,
                Frame::Slice(slice) => self.take_slice(&slice),
                _ => {}
            }
        }
    }

    /// A chunk is whole with as many slices as its bytes fill.
    fn take_slice(&mut self, slice: &SliceFrame<'_>) {
        let chunk = slice.at.index;
        let needed = CHUNK_BYTES.div_ceil(slice.data.len()).max(SMALLEST_COUNT);
        self.slices_in_chunk = self.slices_in_chunk.min(needed);
        self.slices.insert((chunk, slice.index, slice.kind == SliceKind::Repair));
        let of_chunk = (chunk, 0, false)..=(chunk, u8::MAX, true);
        if self.slices.range(of_chunk).count() >= self.slices_in_chunk {
            self.whole.insert(chunk);
            self.slices.retain(|&(at, ..)| at != chunk);
        }
    }

    /// What the receiver says at this moment of the numbers up to its largest.
    fn ack(&mut self, now: Instant) -> Option<AckFrame> {
        let link = self.raw.link.as_mut()?;
        let honest = link.received.ack_frame(now)?;
        link.received.on_ack_sent(now, true);
        let largest = link.received.largest()?;
        if now < self.turn.changes || !self.says.is_caught() {
            self.named = largest;
            return Some(honest);
        }
        let newest = if let Says::AllButNewest(count) = self.says { count } else { 0 };
        let (from, to) = (self.named + 1, largest.saturating_sub(newest));
        if to < from {
            return None;
        }
        self.named = to;
        let names = self.numbers(from, to);
        let is_here = |number| self.arrived.binary_search_by_key(number, |it| it.0).is_ok();
        let lies = names.iter().filter(|number| !is_here(number)).count() as u64;
        self.heard.borrow_mut().lies += lies;
        said(&names)
    }

    /// The numbers that it says have arrived: those that did, and others.
    fn numbers(&mut self, from: u64, to: u64) -> BTreeSet<u64> {
        let Self { says, arrived, rng, .. } = self;
        let is_here = |number: &u64| arrived.binary_search_by_key(number, |it| it.0).is_ok();
        let missing = (from..=to).filter(|number| !is_here(number)).count();
        let mut is_said = |number: &u64| match says {
            // Another place in each 256.
            Says::AllButAGuess => !(number + number / 256 * 89).is_multiple_of(256),
            Says::HalfOfTheRest => missing >= MUCH && rng.below(2) > 0,
            _ => true,
        };
        (from..=to).filter(|number| is_here(number) || is_said(number)).collect()
    }

    fn arrivals(&self, now: Instant) -> Option<ArrivalsFrame> {
        let is_lie = now >= self.turn.changes && self.says != Says::Truth;
        // A clock of its own, so that it is never before its start.
        let clock = |at: Instant| at + Duration::from_secs(1);
        let newest = self.arrived.iter().rev().filter(|&&(number, _)| number <= self.named);
        let mut newest = newest.take(31);
        let &(number, at) = newest.next()?;
        let (mut frame, mut last) = (ArrivalsFrame::new(number, clock(at)), number);
        for (n, &(number, before)) in (1..).zip(newest) {
            let apart = self.turn.before_bps as f64 / 8.0 / 1_200.0;
            let lie = Duration::from_secs_f64(f64::from(n) / apart);
            let since = if is_lie { lie } else { at.since(before) };
            if number >= last || !frame.push(last - number, since) {
                break;
            }
            last = number;
        }
        Some(frame)
    }

    fn speak(&mut self, now: Instant) -> Option<Vec<u8>> {
        let named = self.named;
        let ack = self.ack(now);
        let arrivals = self.arrivals(now);
        let is_lie = now >= self.turn.changes && self.says.is_caught();
        let is_whole = |first: &u32| self.whole.contains(first);
        let mut first = (0..).take_while(is_whole).count() as u32;
        if is_lie {
            self.said_whole += self.named.saturating_sub(named) as f64
                / (SENT_FOR_ONE * self.slices_in_chunk as f64);
            first = first.max(self.said_whole as u32);
        }
        self.said_whole = self.said_whole.max(f64::from(first));
        let first = first.min(MAX_WHOLE);
        let mut entries = Vec::new();
        ProgressEntry { block: 0, first, map: &[] }.write(&mut entries);
        let progress = ProgressFrame::new(1_000 + u64::from(first), 0, 0, 1, &entries);
        let link: &mut Link = self.raw.link.as_mut()?;
        let mut frames = vec![Frame::Ping];
        frames.extend(ack.map(Frame::Ack));
        frames.extend(arrivals.map(Frame::Arrivals));
        frames
            .extend(progress.filter(|_| first > 0 || !self.slices.is_empty()).map(Frame::Progress));
        Some(link.frames(&frames))
    }
}

/// The ack of these numbers, of the newest as far as its runs reach.
fn said(names: &BTreeSet<u64>) -> Option<AckFrame> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in names.iter().rev() {
        match runs.last_mut() {
            Some((first, _)) if *first == number + 1 => *first = number,
            _ => runs.push((number, number)),
        }
    }
    let &(first, largest) = runs.first()?;
    let mut frame = AckFrame::new(largest, Duration::ZERO, (largest - first) as u32);
    for pair in runs.windows(2) {
        let ((above, _), (first, last)) = (pair[0], pair[1]);
        if !frame.push_run((above - last - 1) as u32, (last - first + 1) as u32) {
            break;
        }
    }
    Some(frame)
}

impl Mind for Receiver {
    fn wakes_at(&self) -> Option<Instant> {
        self.wakes
    }

    fn wake(&mut self, now: Instant, out: &mut Vec<Shot>) {
        self.wakes = (now < self.turn.leaves).then(|| now + EVERY);
        if self.raw.link.is_none() {
            if now.since(Instant::ZERO).as_millis() % 500 < EVERY.as_millis() {
                out.extend((0..3).map(|_| Shot::own(address(1), self.raw.request())));
            }
            return;
        }
        if self.wakes.is_none() {
            let link = self.raw.link.as_mut();
            let close = Frame::Close { code: 0, reason: "" };
            out.extend(link.map(|link| Shot::own(address(1), link.frames(&[close]))));
            return;
        }
        out.extend(self.speak(now).map(|datagram| Shot::own(address(1), datagram)));
    }

    fn receive(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8], _out: &mut Vec<Shot>) {
        self.heard.borrow_mut().bytes += datagram.len() as u64;
        let largest = self.raw.link.as_ref().and_then(|link| link.received.largest());
        let Some(plaintext) = self.raw.handle(now, datagram) else { return };
        let newest = self.raw.link.as_ref().and_then(|link| link.received.largest());
        if newest > largest {
            self.arrived.extend(newest.map(|number| (number, now)));
            if self.arrived.len() > 20_000 {
                self.arrived.pop_front();
            }
        }
        self.take(&plaintext);
    }
}
