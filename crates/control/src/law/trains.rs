//! Trains: slices sent back to back, whose arrival times give the rate of the bottleneck.

use crate::tuning::FULL_PACKET;
use crate::tuning::trains::{MAX_BYTES, MIN_PACKETS, PACKETS};
use crate::units::Bytes;

/// The slices left in the current train, and whether a second one has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trains {
    left: usize,
    is_second: bool,
    /// Packets of a train, and bytes of each.
    packets: usize,
    packet: Bytes,
}

impl Trains {
    /// Starts the train that opens a transfer.
    pub(crate) const fn new() -> Self {
        let (left, packets, packet) = (PACKETS, PACKETS, FULL_PACKET);
        Self { left, is_second: false, packets, packet }
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

    /// A slice was sent.
    pub(crate) const fn on_slice_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Ends the current train: it has filled a queue.
    pub(crate) const fn stop(&mut self) {
        self.left = 0;
    }

    /// The round trip is short: a train that has not begun is as long as two, because until the first of it
    /// is acknowledged there is nothing else to send.
    pub(crate) const fn lengthen(&mut self) {
        if self.left == self.packets && !self.is_second {
            (self.is_second, self.left) = (true, 2 * self.packets);
        }
    }

    /// Starts a second train, once, because the first gave no rate: the amplification limit of an address
    /// that is not validated may have cut it short.
    pub(crate) const fn try_again(&mut self) {
        if !self.is_second {
            (self.is_second, self.left) = (true, self.packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends the rest of a train, and returns its slices.
    fn run(trains: &mut Trains) -> usize {
        let mut slices = 0;
        while trains.is_running() {
            trains.on_slice_sent();
            slices += 1;
        }
        slices
    }

    #[test]
    fn a_transfer_has_two_trains_at_most() {
        let mut trains = Trains::new();
        let counts = [0; 3].map(|_| {
            let sent = run(&mut trains);
            trains.try_again();
            sent
        });
        assert_eq!(counts, [PACKETS, PACKETS, 0]);
        let mut large = Trains::new();
        large.set_packet(Bytes(9_000.0));
        assert_eq!(large.left, MIN_PACKETS);
    }

    #[test]
    fn on_a_near_path_two_trains_are_one() {
        let mut trains = Trains::new();
        trains.lengthen();
        assert_eq!(run(&mut trains), 2 * PACKETS);
        trains.lengthen();
        trains.try_again();
        assert!(!trains.is_running());
    }
}
