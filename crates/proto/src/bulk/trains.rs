//! Trains: slices sent back to back, whose arrivals tell the rate of the bottleneck.

use super::tuning::trains::{MAX_TRAINS, PACKETS};

/// What is left of the running one, and how many there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trains {
    left: usize,
    begun: u8,
}

impl Trains {
    /// The one that opens a transfer.
    pub(super) const fn new() -> Self {
        Self { left: PACKETS, begun: 1 }
    }

    /// Whether slices go back to back.
    pub(super) const fn is_running(&self) -> bool {
        self.left > 0
    }

    pub(super) const fn on_slice_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The one before has told nothing: another one, unless there were enough.
    pub(super) const fn try_again(&mut self) {
        if self.begun < MAX_TRAINS {
            self.begun += 1;
            self.left = PACKETS;
        }
    }

    /// Another one in any case: the rate is still unknown, and slices get through.
    pub(super) const fn look_again(&mut self) {
        self.left = PACKETS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_has_two_and_more_only_if_asked() {
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
        assert_eq!(run(Trains::look_again), PACKETS);
    }
}
