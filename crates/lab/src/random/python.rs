//! Python's `random.Random`, as far as the lab's scripts use it: a seed draws the same cells here and there,
//! so that what was seen in virtual time can be looked at over real sockets.
//!
//! The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), and how CPython 3.11 seeds it and draws.

const WORDS: usize = 624;
const SHIFT: usize = 397;

/// The generator.
#[derive(Clone, Debug)]
pub(super) struct Random {
    words: [u32; WORDS],
    next: usize,
}

impl Random {
    /// `random.Random(seed)`.
    pub(super) fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let key = if high == 0 { vec![low] } else { vec![low, high] };
        let mut words = seeded(19_650_218);
        let (mut i, mut j) = (1, 0);
        let step = |words: &mut [u32; WORDS], mix: u32, add: &dyn Fn(usize) -> u32, i: usize| {
            let before = words[i - 1] ^ (words[i - 1] >> 30);
            words[i] = (words[i] ^ before.wrapping_mul(mix)).wrapping_add(add(i));
            if i + 1 == WORDS {
                words[0] = words[WORDS - 1];
                1
            } else {
                i + 1
            }
        };
        for _ in 0..WORDS {
            i = step(&mut words, 1_664_525, &|_| key[j].wrapping_add(j as u32), i);
            j = (j + 1) % key.len();
        }
        for _ in 1..WORDS {
            i = step(&mut words, 1_566_083_941, &|i| (i as u32).wrapping_neg(), i);
        }
        words[0] = 1 << 31;
        Self { words, next: WORDS }
    }

    /// `random()`: from 0 up to 1, with 53 bits.
    pub(super) fn random(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `math.exp(uniform(math.log(min), math.log(max)))`.
    pub(super) fn log(&mut self, min: f64, max: f64) -> f64 {
        let (from, to) = (libm::log(min), libm::log(max));
        libm::exp(from + (to - from) * self.random())
    }

    /// `choice(choices)`.
    pub(super) fn choice<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `sample(choices, count)`, of at most 21 choices.
    pub(super) fn sample<T: Copy>(&mut self, choices: &[T], count: usize) -> Vec<T> {
        let mut pool = choices.to_vec();
        let mut draw = |left| {
            let at = self.below(left);
            let drawn = pool[at];
            pool[at] = pool[left - 1];
            drawn
        };
        (0..count).map(|drawn| draw(choices.len() - drawn)).collect()
    }

    fn below(&mut self, bound: usize) -> usize {
        let bits = usize::BITS - bound.leading_zeros();
        loop {
            let drawn = (self.word() >> (32 - bits)) as usize;
            if drawn < bound {
                return drawn;
            }
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for at in 0..WORDS {
            let both =
                (self.words[at] & 1 << 31) | (self.words[(at + 1) % WORDS] & (u32::MAX >> 1));
            let odd = if both & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[at] = self.words[(at + SHIFT) % WORDS] ^ (both >> 1) ^ odd;
        }
        self.next = 0;
    }
}

fn seeded(seed: u32) -> [u32; WORDS] {
    let mut words = [seed; WORDS];
    for at in 1..WORDS {
        let before = words[at - 1] ^ (words[at - 1] >> 30);
        words[at] = before.wrapping_mul(1_812_433_253).wrapping_add(at as u32);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by CPython 3.11.
    #[test]
    fn it_draws_what_python_draws() {
        let mut random = Random::new(7);
        assert_eq!([0; 3].map(|_| random.word()), [1_390_851_128, 4_071_050_724, 647_892_279]);
        assert_eq!(random.random().to_bits(), 0.394_823_496_423_173_5_f64.to_bits());
        assert_eq!(random.random().to_bits(), 0.048_286_423_626_812_35_f64.to_bits());
        let choices: Vec<usize> = (0..12).collect();
        assert_eq!(random.sample(&choices, 3), [8, 1, 5]);
        assert_eq!(random.choice(&[1, 1, 2, 3]), 1);
        assert_eq!(Random::new(20_261_125).word(), 3_627_487_583);
        assert_eq!(Random::new((1 << 40) + 5).word(), 2_166_296_868, "two words of a seed");
    }
}
