//! Datagrams that a system captured as one.
//!
//! A program hands the system many datagrams for the same peer at once. A capture on the loopback, or in
//! front of a network card that divides them, has them as one long UDP datagram. Nothing in it says where to
//! divide. But each datagram of a connection begins with the same kind and id.

use haulier_proto::internals::Kind;

/// Bytes with which each datagram of a train begins: kind and id, or version and half of an id.
const PREFIX_BYTES: usize = 9;

/// The datagrams in a payload: mostly one, which is the payload itself. All but the last have the same size.
pub fn train(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Of no bytes there would be no chunk, and no datagram.
    let size = divide(payload).unwrap_or(payload.len()).max(1);
    let whole = payload.is_empty().then_some(payload);
    whole.into_iter().chain(payload.chunks(size))
}

fn divide(payload: &[u8]) -> Option<usize> {
    Kind::of(payload).ok()?;
    let prefix: &[u8; PREFIX_BYTES] = payload.first_chunk()?;
    let size = (PREFIX_BYTES..payload.len()).find(|&at| is_same(prefix, payload.get(at..)))?;
    let mut others = payload.chunks(size);
    others.all(|datagram| is_same(prefix, Some(datagram))).then_some(size)
}

/// Whether a datagram begins as another does; the key phase may have changed.
fn is_same(prefix: &[u8; PREFIX_BYTES], datagram: Option<&[u8]>) -> bool {
    let Some(other) = datagram.and_then(<[u8]>::first_chunk::<PREFIX_BYTES>) else { return false };
    let is_data = prefix[0] >= 0x0c;
    let same_kind = if is_data { prefix[0] | 1 == other[0] | 1 } else { prefix[0] == other[0] };
    same_kind && prefix[1..] == other[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(kind: u8, number: u8, bytes: usize) -> Vec<u8> {
        let mut datagram = vec![kind, 9, 8, 7, 6, 5, 4, 3, 2, number, 0, 0, 0];
        datagram.resize(bytes, 0xaa ^ number);
        datagram
    }

    /// The last one is shorter, and a key update may fall among them.
    #[test]
    fn a_train_is_divided_where_its_datagrams_begin() {
        let parts = [datagram(0x0e, 1, 1200), datagram(0x0f, 2, 1200), datagram(0x0f, 3, 70)];
        let joined = parts.concat();
        assert!(train(&joined).eq(parts.iter().map(Vec::as_slice)));
    }

    #[test]
    fn what_is_one_datagram_stays_one() {
        for alone in [datagram(0x0e, 1, 1200), vec![], vec![4], vec![0x80; 3000]] {
            assert!(train(&alone).eq([alone.as_slice()]));
        }
        // Of another connection, or another way.
        let mut other = datagram(0x0e, 2, 1200);
        other[5] ^= 1;
        let joined = [datagram(0x0e, 1, 1200), other].concat();
        assert!(train(&joined).eq([joined.as_slice()]));
    }
}
