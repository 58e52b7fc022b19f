//! The test protocols of the vectors: packets of types that the article only uses as examples. They ride
//! the same frame through the same trait, so the frame is tested with types and ranges of its own.

use haulier_article::PacketDropReason;
use haulier_article::bits::Stream;
use haulier_article::packet::{Packet, packet_type};

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
) -> Result<[i32; N], PacketDropReason> {
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

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
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

/// Layer `abc4`: a sequence, then one of four types of which 0 is for fragments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Abc4 {
    pub sequence: u16,
    pub body: Abc4Body,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Abc4Body {
    A([i32; 3]),
    B(Vec<i32>),
    /// The last three are on the wire only if one of them is not zero.
    C([f32; 6]),
}

const MAX_ITEMS: i32 = 16_384;

impl<'a> Packet<'a> for Abc4 {
    const BLANK: Self = Self { sequence: 0, body: Abc4Body::A([0; 3]) };

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
        let (kind, a, b, c) = match self.body {
            Abc4Body::A(a) => (1, a, vec![], [0.0; 6]),
            Abc4Body::B(b) => (2, [0; 3], b, [0.0; 6]),
            Abc4Body::C(c) => (3, [0; 3], vec![], c),
        };
        let sequence = stream.bits(u32::from(self.sequence), 16)? as u16;
        let body = match packet_type(stream, kind, 4)? {
            1 => Abc4Body::A(ints(stream, a, range_of_a)?),
            2 => Abc4Body::B(items(stream, b)?),
            3 => Abc4Body::C(floats(stream, c)?),
            _ => return Err(PacketDropReason::BadType),
        };
        Ok(Self { sequence, body })
    }
}

fn items<'a, S: Stream<'a>>(
    stream: &mut S,
    mut items: Vec<i32>,
) -> Result<Vec<i32>, PacketDropReason> {
    let count = stream.int(items.len() as i32, 0, MAX_ITEMS)?;
    // Room for what comes, not for what is announced.
    for i in 0..usize::try_from(count).unwrap() {
        let item = stream.int(items.get(i).copied().unwrap_or(-100), -100, 100)?;
        match items.get_mut(i) {
            Some(place) => *place = item,
            None => items.push(item),
        }
    }
    Ok(items)
}

fn floats<'a, S: Stream<'a>>(
    stream: &mut S,
    mut c: [f32; 6],
) -> Result<[f32; 6], PacketDropReason> {
    let (position, velocity) = c.split_at_mut(3);
    for value in position {
        *value = stream.float(*value)?;
    }
    let at_rest = stream.bool(velocity.iter().all(|&v| v == 0.0))?;
    for value in velocity {
        *value = if at_rest { 0.0 } else { stream.float(*value)? };
    }
    Ok(c)
}
