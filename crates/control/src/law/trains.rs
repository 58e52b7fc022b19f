//! Trains: slices sent back to back, whose arrival times give the rate of the bottleneck.

use crate::tuning::FULL_PACKET;
use crate::tuning::trains::{MAX_BYTES, MAX_TRAINS, MIN_PACKETS, PACKETS};
use crate::units::Bytes;

/// The slices left in the current train, and the number of trains begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trains {
    left: usize,
    begun: u8,
    /// Packets of a train, and bytes of each.
    packets: usize,
    packet: Bytes,
}

impl Trains {
    /// Starts the train that opens a transfer.
    pub(crate) const fn new() -> Self {
        Self { left: PACKETS, begun: 1, packets: PACKETS, packet: FULL_PACKET }
    }

    /// The size of a full datagram: of large ones a train has fewer.
    pub(crate) fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
        self.packets = MAX_BYTES.in_units_of(packet).clamp(MIN_PACKETS, PACKETS);
        self.left = self.left.min(self.packets);
    }

    /// Packets of a train.
    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    /// Bytes of a train.
    #[expect(clippy::cast_precision_loss, reason = "at most 20")]
    pub(crate) fn bytes(&self) -> Bytes {
        self.packets as f64 * self.packet
    }

    /// Whether slices are sent back to back.
    pub(crate) const fn is_running(&self) -> bool {
        self.left > 0
    }

    pub(crate) const fn on_slice_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Ends the current train: it has filled a queue.
    pub(crate) const fn stop(&mut self) {
        self.left = 0;
    }

    /// The round trip is short: a train that has not begun is as long as [`MAX_TRAINS`] together, because
    /// until the first of it is acknowledged there is nothing else to send.
    pub(crate) const fn lengthen(&mut self) {
        if self.begun == 1 && self.left == self.packets {
            self.left *= MAX_TRAINS as usize;
            self.begun = MAX_TRAINS;
        }
    }

    /// Starts another train because the last gave no rate, up to [`MAX_TRAINS`].
    pub(crate) const fn try_again(&mut self) {
        if self.begun < MAX_TRAINS {
            self.begun += 1;
            self.left = self.packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_has_two_trains() {
        let mut trains = Trains::new();
        let mut run = |begin: fn(&mut Trains)| {
            begin(&mut trains);
            let mut sent = 0;
            while trains.is_running() {
                trains.on_slice_sent();
                sent += 1;
            }
            sent
        };
        let counts = [run(|_| {}), run(Trains::try_again), run(Trains::try_again)];
        assert_eq!(counts, [PACKETS, PACKETS, 0]);
        assert_eq!(run(Trains::lengthen), 0, "it has begun");
        let mut large = Trains::new();
        large.set_packet(Bytes(9_000.0));
        assert_eq!(large.left, MIN_PACKETS);
    }

    #[test]
    fn on_a_near_path_two_trains_are_one() {
        let mut trains = Trains::new();
        trains.lengthen();
        (0..2 * PACKETS).for_each(|_| {
            assert!(trains.is_running());
            trains.on_slice_sent();
            trains.lengthen();
        });
        trains.try_again();
        assert!(!trains.is_running());
    }
}
