//! Any number of random bytes from 32: for ids, padding, challenges and ephemeral keys.
//!
//! Each call replaces the key first (fast key erasure), so that its state reveals nothing about earlier
//! bytes. It has no `Clone`: two copies would give the same keys twice. A machine that is copied whole, by a
//! snapshot of its virtual machine, is helped by [`mix`](Entropy::mix) and [`hedged`](Entropy::hedged).

use zeroize::Zeroize;

use super::Secret;
use super::secret::keyed;

/// A deterministic generator: BLAKE3 keyed with the seed, as a stream.
///
/// It is only as good as its seed, which has to come from the operating system's generator wherever the bytes
/// protect anything. A fixed seed replays a test.
pub struct Entropy {
    key: Secret,
}

impl Entropy {
    /// The generator with this seed. It keeps no copy of it after the first call.
    #[must_use]
    pub const fn new(seed: [u8; 32]) -> Self {
        Self { key: Secret::from_bytes(seed) }
    }

    /// Fills `out`, of any length. Two calls for 8 bytes give other bytes than one for 16.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(self.key.as_bytes());
        hasher.update(b"haulier/1 2026 entropy");
        let mut stream = hasher.finalize_xof();
        let mut key = [0; 32];
        stream.fill(&mut key);
        stream.fill(out);
        self.key = Secret::from_bytes(key);
        key.zeroize();
        stream.zeroize();
        hasher.zeroize();
    }

    /// The next `N` bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// The next number, uniform over all 2^64.
    #[must_use]
    pub(crate) fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// The next secret.
    #[must_use]
    pub fn next_secret(&mut self) -> Secret {
        Secret::from_bytes(self.bytes())
    }

    /// Mixes fresh random bytes in. Whoever knows only the state before, or only these bytes, knows nothing
    /// of what comes after.
    pub fn mix(&mut self, fresh: &[u8; 32]) {
        let mut key = keyed(&self.key, &[b"haulier/1 2026 mix", fresh]);
        self.key = Secret::from_bytes(key);
        key.zeroize();
    }

    /// The next secret, which depends on `context` too: two copies of this state that meet different
    /// contexts give different secrets. Draws as much as [`next_secret`](Self::next_secret).
    #[must_use]
    pub(crate) fn hedged(&mut self, context: &[&[u8]]) -> Secret {
        let mut bytes = keyed(&self.next_secret(), context);
        let secret = Secret::from_bytes(bytes);
        bytes.zeroize();
        secret
    }
}

crate::debug_as! { Entropy: |_key| }

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::format;

    use super::*;

    #[test]
    fn a_seed_replays_and_another_does_not() {
        let (mut a, mut b) = (Entropy::new([1; 32]), Entropy::new([1; 32]));
        let mut long = [0; 1000];
        a.fill(&mut long);
        assert_eq!(long, b.bytes::<1000>());
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(a.next_u64(), Entropy::new([2; 32]).next_u64());
    }

    /// A copy of the state is worth nothing once fresh bytes were mixed in, and fresh bytes that are known
    /// are worth nothing without the state.
    #[test]
    fn mixed_bytes_and_contexts_part_two_copies() {
        let copies = || (Entropy::new([1; 32]), Entropy::new([1; 32]));
        let (mut a, mut b) = copies();
        a.mix(&[7; 32]);
        assert_ne!(a.next_u64(), b.next_u64());
        b = Entropy::new([2; 32]);
        b.mix(&[7; 32]);
        assert_ne!(a.next_u64(), b.next_u64());
        let (mut a, mut b) = copies();
        assert_ne!(a.hedged(&[b"one"]), b.hedged(&[b"two"]));
        assert_eq!(a.hedged(&[b"one"]), b.hedged(&[b"one"]));
        assert_eq!(a.next_u64(), b.next_u64(), "the context does not stay");
    }

    /// A generator whose key did not change would give the same ephemeral key twice.
    #[test]
    fn no_value_is_repeated() {
        let mut entropy = Entropy::new([0; 32]);
        let values: BTreeSet<u64> = (0..1000).map(|_| entropy.next_u64()).collect();
        assert_eq!(values.len(), 1000);
        let ones: u32 = values.iter().map(|value| value.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones} ones in 64,000 bits");
        assert_eq!(format!("{entropy:?}"), "Entropy { .. }");
    }
}
