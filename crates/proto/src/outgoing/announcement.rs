//! The announcement of a block, which is repeated until it is acknowledged.

/// Copies of an announcement that are sent before one is acknowledged or lost. Without it the receiver can
/// do nothing with a chunk, and 50 bytes cost less than a round trip.
const MAX_COPIES: u8 = 4;

/// Slices between the first two copies, halved: they follow after 8, 16 and 32 more.
const SLICES_BETWEEN: u64 = 4;

/// What became of the announcement of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    Due,
    InFlight {
        copies: u8,
        /// Slices that had been sent before the last copy.
        slices: u64,
    },
    Acked,
}

impl Announcement {
    /// Whether it belongs into the next datagram, after `slices` were sent.
    pub(super) const fn is_due(self, slices: u64) -> bool {
        match self {
            Self::Due => true,
            Self::InFlight { copies, slices: last } => {
                copies < MAX_COPIES && slices >= last + (SLICES_BETWEEN << copies)
            }
            Self::Acked => false,
        }
    }

    /// A copy is sent, after `slices` slices were.
    pub(super) const fn on_sent(&mut self, slices: u64) {
        let copies = match self {
            Self::InFlight { copies, .. } => *copies + 1,
            Self::Due | Self::Acked => 1,
        };
        *self = Self::InFlight { copies, slices };
    }

    /// A copy was acknowledged, or is lost.
    pub(super) fn on_fate(&mut self, is_acked: bool) {
        if is_acked {
            *self = Self::Acked;
        } else if *self != Self::Acked {
            *self = Self::Due;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_announcement_is_repeated_after_8_16_and_32_slices() {
        let mut announcement = Announcement::Due;
        let due: Vec<_> = (0..1000)
            .filter(|&slices| {
                let is_due = announcement.is_due(slices);
                if is_due {
                    announcement.on_sent(slices);
                }
                is_due
            })
            .collect();
        assert_eq!(due, [0, 8, 24, 56]);
        announcement.on_fate(false);
        assert!(announcement.is_due(1000));
        announcement.on_fate(true);
        announcement.on_fate(false);
        assert!(!announcement.is_due(1000), "one copy has arrived");
    }
}
