//! Numbers by a seed, of every size that a field can have.

pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A number of at most `bits` bits, each length equally likely; sometimes the largest.
    pub(crate) fn bits(&mut self, bits: u32) -> u64 {
        let largest = u64::MAX >> (64 - bits);
        if self.one_in(16) {
            return largest;
        }
        let size = self.below(u64::from(bits) + 1) as u32;
        if size == 0 { 0 } else { self.next() >> (64 - size) }
    }
}
