//! Hostile input that the machine must survive: the bodies of the fuzz targets, replayed over their corpus
//! by the tests.
//!
//! A fuzzer cannot guess a crc32, so these functions add a valid checksum to their input. Nothing in the
//! machine itself is disabled for fuzzing.

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

/// Passes arbitrary bytes to every parser, unchanged and with a valid checksum: no panic, and accepted
/// datagrams are canonical.
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

/// A reassembled packet is parsed by the same rules, except for its size.
fn parse_reassembled(bytes: &[u8]) {
    if let Ok(packet) = packet::read_reassembled::<NumberedPacket<'_>>(PROTOCOL, bytes) {
        let mut out = vec![0; MAX_FRAGMENTED_BYTES];
        let length = packet::write(packet, PROTOCOL, &mut out).expect("what was read is written");
        assert_eq!(&out[..length], bytes, "an accepted packet is not canonical");
    }
}
