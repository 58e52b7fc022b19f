//! What the machine must survive: the bodies of the fuzz targets, replayed over their corpus by the tests.
//!
//! A fuzzer that guesses a crc32 gets nowhere, so these functions put a valid checksum on whatever they
//! are given. Nothing in the machine itself is switched off for fuzzing.

mod connection;
mod endpoint;
mod peer;
mod wire;

pub use connection::connection;
pub use endpoint::endpoint;
pub use peer::peer;
pub use wire::wire;

use haulier_article::MAX_PACKET_BYTES;
use haulier_article::fragment::MAX_FRAGMENTED_BYTES;
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::fragment::{FragmentPacket, RawFragmentPacket};
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, Packet, ProtocolId};

const PROTOCOL: ProtocolId = ProtocolId::ARTICLE;

/// Any bytes as a datagram, as they are and with a valid checksum, at every parser: no panic, and what is
/// accepted is canonical.
///
/// # Panics
/// If that does not hold.
pub fn parse(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    if let Some((crc, body)) = sealed.split_first_chunk_mut::<4>() {
        *crc = packet::checksum(PROTOCOL, body).to_le_bytes();
    }
    for datagram in [bytes, &sealed] {
        parse_one::<ArticlePacket<'_>>(datagram);
        parse_one::<FragmentPacket<'_>>(datagram);
        parse_one::<RawFragmentPacket<'_>>(datagram);
        parse_one::<NumberedPacket<'_>>(datagram);
        parse_reassembled(datagram);
    }
}

fn parse_one<'a, P: Packet<'a>>(datagram: &'a [u8]) {
    match packet::read::<P>(PROTOCOL, datagram) {
        Ok(packet) => {
            let mut out = [0; MAX_PACKET_BYTES];
            let length =
                packet::write(packet, PROTOCOL, &mut out).expect("what was read is written");
            assert_eq!(&out[..length], datagram, "an accepted datagram is not canonical");
        }
        Err(reason) => assert!(reason.is_hostile(), "{reason} from a parser"),
    }
}

/// What came out of fragments is parsed by the same rules, but for its size.
fn parse_reassembled(bytes: &[u8]) {
    if let Ok(packet) = packet::read_reassembled::<NumberedPacket<'_>>(PROTOCOL, bytes) {
        let mut out = vec![0; MAX_FRAGMENTED_BYTES];
        let length = packet::write(packet, PROTOCOL, &mut out).expect("what was read is written");
        assert_eq!(&out[..length], bytes, "an accepted packet is not canonical");
    }
}
