//! The receiving end of every model: it stores what arrives and acks by its policy.

use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};

use crate::ends::addresses;
use crate::grid::SLICES;
use haulier_sim::Host;

/// When acks are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckPolicy {
    /// At most this long after the first packet that was not acked yet.
    pub(super) period: Duration,
    /// Or after this many packets.
    pub(super) every: usize,
    /// Also at the 4th, 8th and 16th packet, when one is missing, and repeatedly in silence.
    pub(super) is_eager: bool,
}

/// The minimum interval of acks for missing packets, and of those after the end.
const APART: Duration = Duration::from_millis(5);

/// How often the completing ack is repeated, and at which interval.
const LAST_REPEATS: u32 = 6;
const REPEAT_AFTER: Duration = Duration::from_millis(10);

/// Silence after which an eager receiver acks again; it doubles from the first to the last.
const FIRST_SILENCE: Duration = Duration::from_millis(10);
const LAST_SILENCE: Duration = Duration::from_millis(160);

/// An ack on the wire: the largest number (4 bytes), whether the block is complete (1), a bit for each
/// number.
pub(super) struct Ack<'a> {
    pub(super) largest: usize,
    pub(super) is_whole: bool,
    bits: &'a [u8],
}

impl<'a> Ack<'a> {
    pub(super) fn read(datagram: &'a [u8]) -> Option<Self> {
        let (largest, rest) = datagram.split_first_chunk()?;
        let (&is_whole, bits) = rest.split_first()?;
        let largest = u32::from_le_bytes(*largest) as usize;
        Some(Self { largest, is_whole: is_whole != 0, bits })
    }

    /// Whether the packet of this number arrived, which is not above the largest.
    pub(super) const fn has(&self, number: usize) -> bool {
        self.bits[number / 8] >> (number % 8) & 1 != 0
    }
}

/// The packets that arrived.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    policy: AckPolicy,
    /// A bit for each packet number.
    bits: Vec<u8>,
    largest: Option<usize>,
    packets: usize,
    has: Vec<bool>,
    missing: u64,
    whole: Option<Instant>,
    unacked: usize,
    acked: Instant,
    timer: Option<Instant>,
    silence: Duration,
    repeats: u32,
    is_ack_due: bool,
}

impl Receiver {
    pub(super) fn new(policy: AckPolicy) -> Self {
        let has = vec![false; SLICES as usize];
        Self { policy, has, missing: SLICES, silence: FIRST_SILENCE, ..Self::default() }
    }

    /// When it had the whole block, if it has.
    pub(super) const fn whole(&self) -> Option<Instant> {
        self.whole
    }

    fn on_packet(&mut self, now: Instant, number: usize, slice: usize) {
        let is_gap = number > self.largest.map_or(0, |largest| largest + 1);
        if self.bits.len() <= number / 8 {
            self.bits.resize(number / 8 + 1, 0);
        }
        self.bits[number / 8] |= 1 << (number % 8);
        // The link keeps the order.
        self.largest = Some(number);
        self.packets += 1;
        self.unacked += 1;
        self.missing -= u64::from(!std::mem::replace(&mut self.has[slice], true));
        self.silence = FIRST_SILENCE;
        let is_apart = now.since(self.acked) > APART;
        let is_due = if self.whole.is_some() {
            is_apart
        } else if self.missing == 0 {
            self.whole = Some(now);
            true
        } else {
            let is_early = matches!(self.packets, 4 | 8 | 16) || (is_gap && is_apart);
            self.unacked >= self.policy.every || (self.policy.is_eager && is_early)
        };
        if is_due {
            self.ack(now);
        } else if self.timer.is_none() {
            self.timer = Some(now + self.policy.period);
        }
    }

    fn ack(&mut self, now: Instant) {
        (self.unacked, self.acked, self.is_ack_due) = (0, now, true);
        self.timer = if self.whole.is_some() {
            self.repeats += 1;
            (self.repeats <= LAST_REPEATS).then(|| now + REPEAT_AFTER)
        } else if self.policy.is_eager {
            let silence = self.policy.period.max(self.silence);
            self.silence = (self.silence * 2).min(LAST_SILENCE);
            Some(now + silence)
        } else {
            Some(now + self.policy.period)
        };
    }
}

impl Host for Receiver {}

impl Machine for Receiver {
    fn handle_datagram(&mut self, now: Instant, _path: FourTuple, datagram: &mut [u8]) {
        let Some((number, rest)) = datagram.split_first_chunk() else { return };
        let Some(slice) = rest.first_chunk() else { return };
        let number = u32::from_le_bytes(*number) as usize;
        self.on_packet(now, number, u16::from_le_bytes(*slice).into());
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            if self.unacked > 0 || self.policy.is_eager || self.whole.is_some() {
                self.ack(now);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, batch: &mut Batch) {
        let is_due = !batch.is_full() && std::mem::take(&mut self.is_ack_due);
        if let Some(largest) = self.largest.filter(|_| is_due) {
            let largest = u32::try_from(largest).unwrap_or(u32::MAX).to_le_bytes();
            let is_whole = [u8::from(self.whole.is_some())];
            let ack = [&largest[..], &is_whole, &self.bits].concat();
            batch.push(addresses().0.into(), &ack);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }
}
