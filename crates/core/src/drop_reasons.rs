//! The reasons why a wire drops a packet: a name for each, and a counter for each name.
//!
//! Bytes from outside become a type without illegal values or one of these, nothing in between. There are
//! two kinds: *hostile* reasons, which no honest peer of the same protocol causes (a corrupted datagram
//! does), and *honest* ones, which loss, duplication and reordering cause every day.

/// Defines the reasons of one wire, each with its name and kind, and their counters. The two types are named
/// first, because each wire has names of its own for them.
#[doc(hidden)]
#[macro_export]
macro_rules! drop_reasons {
    (
        $reason:ident, $counts:ident;
        $($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:ident;)+
    ) => {
        /// Why a datagram, or the packet in it, was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        #[derive(PartialEq, Eq)]
        enum Kind {
            Hostile,
            Honest,
        }

        impl $reason {
            /// Every reason, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in logs, JSON and the golden vectors.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)+ }
            }

            /// Whether no honest peer sends such a packet. A corrupted datagram looks the same.
            #[must_use]
            pub const fn is_hostile(self) -> bool {
                matches!(self.kind(), Kind::Hostile)
            }
        }

        impl core::fmt::Display for $reason {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl core::error::Error for $reason {}

        #[doc = concat!("How often each [`", stringify!($reason), "`] occurred.")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $counts([u64; $reason::ALL.len()]);

        impl $counts {
            /// All zero.
            #[must_use]
            pub(crate) const fn new() -> Self {
                Self([0; $reason::ALL.len()])
            }

            /// Counts one.
            #[doc(hidden)]
            pub const fn count(&mut self, reason: $reason) {
                self.0[reason as usize] += 1;
            }

            /// How often this reason occurred.
            #[must_use]
            pub const fn get(&self, reason: $reason) -> u64 {
                self.0[reason as usize]
            }

            /// The reasons that occurred, with their counts.
            pub fn iter(&self) -> impl Iterator<Item = ($reason, u64)> + '_ {
                $reason::ALL.iter().map(|&r| (r, self.get(r))).filter(|&(_, count)| count > 0)
            }

            /// Packets dropped for hostile reasons.
            #[must_use]
            pub fn hostile(&self) -> u64 {
                self.iter().filter(|(r, _)| r.is_hostile()).map(|(_, count)| count).sum()
            }
        }

        impl core::ops::AddAssign for $counts {
            fn add_assign(&mut self, more: Self) {
                self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
            }
        }

        /// By name, without those that are zero: this ends up in the log of a game.
        impl core::fmt::Debug for $counts {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }

        impl Default for $counts {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #![allow(unreachable_pub, reason = "what the macro makes is public where it is used")]

    drop_reasons! {
        DropReason, DropCounts;
        /// Noise.
        Noise = "noise", Hostile;
        /// Late.
        Late = "late", Honest;
        /// Early.
        Early = "early", Honest;
    }

    #[test]
    fn counters_are_apart() {
        let mut counts = DropCounts::new();
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            (0..=i).for_each(|_| counts.count(reason));
        }
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(counts.get(reason), i as u64 + 1);
        }
        assert_eq!(counts.iter().count(), DropReason::ALL.len());
        assert_eq!(counts.hostile(), 1);
    }
}
