//! Packet numbers: 64 bits long, 32 of them on the wire.

/// Numbers that 32 bits distinguish.
const TURN: u64 = 1 << 32;

/// The number with the low 32 bits `truncated` that is nearest to `expected`; of two equally near, the
/// larger one. Exact at both ends of `u64`, where there are numbers on one side only.
///
/// ```
/// use haulier_proto::internals::expand_number;
///
/// assert_eq!(expand_number(5, 0x1_0000_0000), 0x1_0000_0005);
/// assert_eq!(expand_number(0xffff_fff0, 0x1_0000_0000), 0xffff_fff0);
/// ```
#[must_use]
pub const fn expand_number(truncated: u32, expected: u64) -> u64 {
    let candidate = expected / TURN * TURN + truncated as u64;
    // The candidate has the high half of `expected`, so it is less than a turn away.
    if candidate <= expected {
        match candidate.checked_add(TURN) {
            Some(above) if above - expected <= expected - candidate => above,
            _ => candidate,
        }
    } else {
        match candidate.checked_sub(TURN) {
            Some(below) if expected - below < candidate - expected => below,
            _ => candidate,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_ends_of_u64() {
        assert_eq!(expand_number(0xffff_ffff, 0), 0xffff_ffff);
        assert_eq!(expand_number(0, u64::MAX), u64::MAX - 0xffff_ffff);
        assert_eq!(expand_number(0xffff_ffff, u64::MAX), u64::MAX);
        assert_eq!(expand_number(3, u64::MAX - 9), u64::MAX - 0xffff_fffc);
    }

    #[test]
    fn of_two_equally_near_the_larger() {
        let half = TURN / 2;
        assert_eq!(expand_number(0, half), TURN);
        assert_eq!(expand_number(0, TURN + half - 1), TURN);
        assert_eq!(expand_number(1 << 31, TURN), TURN + half);
    }

    proptest! {
        #[test]
        fn a_number_within_half_a_turn_is_found(expected: u64, distance in 0..=TURN / 2 - 1) {
            for number in [expected.checked_add(distance), expected.checked_sub(distance)] {
                let Some(number) = number else { continue };
                #[expect(clippy::cast_possible_truncation, reason = "as on the wire")]
                let truncated = number as u32;
                prop_assert_eq!(expand_number(truncated, expected), number);
            }
        }
    }
}
