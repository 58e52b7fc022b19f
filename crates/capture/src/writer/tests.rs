//! What is written is read back, with right checksums.

use super::*;
use crate::{CaptureReader, layers};

fn datagram<'a>(from: &str, to: &str, payload: &'a [u8]) -> UdpDatagram<'a> {
    let (source, destination) = (from.parse().unwrap(), to.parse().unwrap());
    UdpDatagram { source, destination, traffic_class: 0b1001_0111, hops: 63, payload }
}

/// What is written is read back with all that it had, and its checksums are those of the RFCs.
#[test]
fn what_is_written_is_read_back() {
    let long = vec![7; 65_507];
    let datagrams = [
        (1_234_567_890_123_456_789, datagram("10.0.0.1:4000", "192.0.2.7:9", b"haulier")),
        (1_234_567_890_123_456_790, datagram("[2001:db8::1]:1", "[::1]:65535", b"")),
        (5, datagram("10.0.0.1:4000", "192.0.2.7:9", &long)),
    ];
    let mut file = Vec::new();
    let mut writer = CaptureWriter::new(&mut file).unwrap();
    for (at_ns, datagram) in &datagrams {
        writer.write(*at_ns, datagram).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = CaptureReader::new(file.as_slice()).unwrap();
    for (at_ns, datagram) in datagrams {
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.at_ns, packet.link), (at_ns, 101));
        assert_eq!(layers::udp(packet.link, packet.bytes), Ok(datagram));
        if packet.bytes[0] == 0x45 {
            assert_eq!(checksum(&[&packet.bytes[..20]]), 0, "of the header");
        }
    }
    assert!(reader.next_packet().unwrap().is_none());
}

/// RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 add up to ddf2.
#[test]
fn the_checksum_is_that_of_the_internet() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum(&[&bytes]), !0xddf2);
    assert_eq!(checksum(&[&bytes[..4], &bytes[4..]]), !0xddf2);
    assert_eq!(checksum(&[&[1]]), !0x0100);
}

#[test]
fn what_cannot_be_a_packet_is_refused() {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let mixed = datagram("10.0.0.1:4000", "[::1]:9", b"");
    assert_eq!(writer.write(0, &mixed).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let long = vec![0; 65_508];
    let long = datagram("10.0.0.1:4000", "10.0.0.2:9", &long);
    assert_eq!(writer.write(0, &long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
