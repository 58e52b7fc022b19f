//! The receive window: drops duplicates and old packets, and makes acks.

use core::time::Duration;

use haulier_core::RestartWatch;

use super::{AckBits, MEASURED_TIME, Measured, PACKET_WINDOW};
use crate::{Instant, PacketDropReason, Sequence, SequenceBuffer, SequenceNumber};

#[derive(Clone, Copy, Debug)]
struct ReceivedPacket {
    received_at: Instant,
    bytes: u32,
}

/// The newest 256 packets received.
///
/// Two steps, so that a packet which the application could not use is not acknowledged:
/// [`check`](Self::check) before anything is done with it, [`on_accepted`](Self::on_accepted) after.
#[derive(Clone, Debug)]
pub struct ReceivedPackets<S = Sequence> {
    window: SequenceBuffer<ReceivedPacket, { PACKET_WINDOW as usize }, S>,
    restart: RestartWatch<S>,
    restarts: u64,
    /// The packet that proved a restart, until one is accepted after it: strays from before the restart are
    /// far from it, and must not move the window back.
    restarted_at: Option<S>,
}

impl<S: SequenceNumber> ReceivedPackets<S> {
    /// Nothing received yet. The window is allocated here, and never again.
    #[must_use]
    pub fn new() -> Self {
        Self {
            window: SequenceBuffer::new(),
            restart: RestartWatch::default(),
            restarts: 0,
            restarted_at: None,
        }
    }

    /// Whether the packet with this sequence may be read.
    ///
    /// If it proves that the peer has restarted (STANDARD A-5.4h), everything from before the restart is
    /// forgotten.
    ///
    /// # Errors
    /// [`PacketDropReason::TooOld`], [`PacketDropReason::Duplicate`].
    pub fn check(&mut self, now: Instant, sequence: S) -> Result<(), PacketDropReason> {
        let is_too_old = self.is_too_old(sequence);
        if let Some(began_at) = self.restart.on_received(now, sequence, is_too_old) {
            // Packets accepted since the restart stay received, or copies of them would be delivered again.
            self.window.retain(|number, packet| {
                packet.received_at >= began_at && !number.is_newer_than(sequence)
            });
            self.restarts += 1;
            self.restarted_at = Some(sequence);
            return Ok(());
        }
        match self.window.get(sequence) {
            _ if is_too_old => Err(PacketDropReason::TooOld),
            Some(_) => Err(PacketDropReason::Duplicate),
            None => Ok(()),
        }
    }

    fn is_too_old(&self, sequence: S) -> bool {
        match self.restarted_at {
            Some(start) => sequence.distance_from(start).abs() > i64::from(PACKET_WINDOW),
            None => self.window.is_too_old(sequence),
        }
    }

    /// The application accepted the packet, of `bytes` bytes on the wire: it is acknowledged, and further
    /// copies are duplicates.
    pub fn on_accepted(&mut self, now: Instant, sequence: S, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.restart.on_used(sequence);
        self.restarted_at = None;
        let _ = self.window.insert(sequence, ReceivedPacket { received_at: now, bytes });
    }

    /// The number of detected restarts of the peer.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The newest sequence received.
    #[must_use]
    pub fn newest(&self) -> Option<S> {
        self.window.newest()
    }

    /// The acks to send; `None` until a packet was received.
    #[must_use]
    pub fn ack_bits(&self) -> Option<AckBits<S>> {
        self.ack_bits_of(|_| true)
    }

    /// The acks of packets received no longer than `age` ago. Older ones have no use: the sender has
    /// declared the packet lost. After a restart of the sender they could acknowledge the wrong packet.
    #[must_use]
    pub fn ack_bits_within(&self, now: Instant, age: Duration) -> Option<AckBits<S>> {
        self.ack_bits_of(|packet| now.since(packet.received_at) <= age)
    }

    fn ack_bits_of(&self, is_acked: impl Fn(&ReceivedPacket) -> bool) -> Option<AckBits<S>> {
        let acked = |sequence| self.window.get(sequence).is_some_and(&is_acked);
        let ack = self.window.newest().filter(|&newest| acked(newest))?;
        let received = |n: &u16| acked(ack.minus(*n));
        let bits = (1..=32).filter(received).fold(0, |bits, n| bits | 1 << (n - 1));
        Some(AckBits { ack, bits })
    }

    /// Bytes received in the older half of the window, and how long that took. The window is that of the
    /// last 256 packets or the last [`MEASURED_TIME`], whichever is shorter.
    #[must_use]
    pub fn measure(&self, now: Instant) -> Measured {
        let mut measured = Measured::default();
        let Some(newest) = self.window.newest() else { return measured };
        let at = |n: u16| self.window.get(newest.minus(n)).map(|packet| packet.received_at);
        let is_recent = |n: &u16| at(*n).is_some_and(|at| now.since(at) <= MEASURED_TIME);
        let depth = (0..PACKET_WINDOW).rev().find(is_recent).map_or(0, |oldest| oldest + 1);
        let half = depth / 2;
        let older = (half..depth).rev().filter_map(|n| self.window.get(newest.minus(n)));
        // Packets arrive out of order: the first and last by sequence need not be the first and last by
        // time.
        let (mut first, mut last) = (None, Instant::ZERO);
        for packet in older {
            measured.packets += 1;
            measured.bytes += u64::from(packet.bytes);
            first =
                Some(first.map_or(packet.received_at, |at: Instant| at.min(packet.received_at)));
            last = last.max(packet.received_at);
        }
        let behind = (0..half).rev().find_map(|n| self.window.get(newest.minus(n)));
        let end = behind.map_or(last, |packet| packet.received_at.max(last));
        measured.acked = measured.packets;
        measured.acked_bytes = measured.bytes;
        measured.span = first.map_or(Duration::ZERO, |first| end.since(first));
        measured
    }

    /// Panics if the window contradicts itself. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.window.check_invariants();
        if let (Some(newest), Some(acks)) = (self.newest(), self.ack_bits()) {
            assert!(acks.ack == newest && self.window.get(newest).is_some());
        }
    }
}

impl<S: SequenceNumber> Default for ReceivedPackets<S> {
    fn default() -> Self {
        Self::new()
    }
}
