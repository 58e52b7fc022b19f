//! A set of channels: those that have something to send.

/// Channels, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelSet {
    words: [u64; 4],
}

impl ChannelSet {
    /// Adds this channel, or takes it out.
    pub(super) fn set(&mut self, channel: u8, is_in: bool) {
        let (word, bit) = (usize::from(channel / 64), 1 << (channel % 64));
        if is_in {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self.words, [0, 0, 0, 0])
    }

    /// The channels, in their order.
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=3_u8).zip(self.words).flat_map(|(at, mut word)| {
            core::iter::from_fn(move || {
                let bit = u8::try_from(word.trailing_zeros()).ok().filter(|&bit| bit < 64)?;
                word &= word - 1;
                Some(64 * at + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn channels_come_back_in_order() {
        let mut set = ChannelSet::default();
        assert!(set.is_empty());
        for channel in [255, 0, 64, 63, 7, 191] {
            set.set(channel, true);
        }
        set.set(7, false);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 191, 255]);
    }
}
