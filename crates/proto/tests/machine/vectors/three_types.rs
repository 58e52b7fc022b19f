//! The test protocols of the vectors: packets of types that the article only uses as examples. They ride
//! the same frame through the same trait, so the frame is tested with types and ranges of its own.

use haulier_proto::DropReason;
use haulier_proto::bits::Stream;
use haulier_proto::packet::{Packet, packet_type};

/// Layer `abc3`: three types in two bits, so that type 3 can be written and means nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Abc3 {
    A([i32; 3]),
    B([i32; 2]),
    C([i32; 16]),
}

fn ints<'a, S: Stream<'a>, const N: usize>(
    stream: &mut S,
    mut values: [i32; N],
    range: impl Fn(usize) -> (i32, i32),
) -> Result<[i32; N], DropReason> {
    for (i, value) in values.iter_mut().enumerate() {
        let (min, max) = range(i);
        *value = stream.int(*value, min, max)?;
    }
    Ok(values)
}

fn range_of_a(i: usize) -> (i32, i32) {
    [(-10, 10), (-20, 20), (-30, 30)][i]
}

impl<'a> Packet<'a> for Abc3 {
    const BLANK: Self = Self::A([0; 3]);

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, DropReason> {
        let (kind, a, b, c) = match self {
            Self::A(a) => (0, a, [0; 2], [0; 16]),
            Self::B(b) => (1, [0; 3], b, [0; 16]),
            Self::C(c) => (2, [0; 3], [0; 2], c),
        };
        match packet_type(stream, kind, 3)? {
            0 => ints(stream, a, range_of_a).map(Self::A),
            1 => ints(stream, b, |_| (-5, 5)).map(Self::B),
            _ => ints(stream, c, |_| (0, 255)).map(Self::C),
        }
    }
}

/// Layer `abc4`, type A: a sequence, then one of four types of which 0 is for fragments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Abc4A {
    pub sequence: u32,
    pub values: [i32; 3],
}

impl<'a> Packet<'a> for Abc4A {
    const BLANK: Self = Self { sequence: 0, values: [0; 3] };

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, DropReason> {
        let sequence = stream.bits(self.sequence, 16)?;
        match packet_type(stream, 1, 4)? {
            1 => Ok(Self { sequence, values: ints(stream, self.values, range_of_a)? }),
            _ => Err(DropReason::BadType),
        }
    }
}
