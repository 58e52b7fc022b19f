//! Every link and header, and what is no datagram.

use proptest::prelude::*;

use super::*;

/// An IPv4 packet with options of this many bytes.
fn v4(options: usize, payload: &[u8]) -> Vec<u8> {
    let whole = (20 + options + 8 + payload.len()) as u16;
    let [high, low] = whole.to_be_bytes();
    let header_words = 0x45 + (options / 4) as u8;
    let mut packet =
        vec![header_words, 3, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.resize(20 + options, 1);
    packet.extend(udp_part(payload));
    packet
}

fn udp_part(payload: &[u8]) -> Vec<u8> {
    let [high, low] = ((8 + payload.len()) as u16).to_be_bytes();
    [&[0x0f, 0xa0, 0, 9, high, low, 0, 0], payload].concat()
}

/// An IPv6 packet with these extension headers, the first of which has this number.
fn v6(first: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let [high, low] = ((extensions.len() + 8 + payload.len()) as u16).to_be_bytes();
    let mut packet = vec![0x60, 0x20, 0, 0, high, low, first, 60];
    packet.extend([0xfe; 16]);
    packet.extend([0xfd; 16]);
    packet.extend(extensions);
    packet.extend(udp_part(payload));
    packet
}

#[test]
fn each_link_has_the_same_datagram() {
    let ip = v4(0, b"datagram");
    let expected = udp(101, &ip).unwrap();
    assert_eq!(expected.payload, b"datagram");
    assert_eq!(expected.source, "10.0.0.1:4000".parse().unwrap());
    assert_eq!(expected.destination, "10.0.0.2:9".parse().unwrap());
    assert_eq!((expected.traffic_class, expected.hops), (3, 64));
    let ethernet = [&[0; 12][..], &[8, 0]].concat();
    let vlans = [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat();
    let sll = [&[0; 14][..], &[8, 0]].concat();
    let sll2 = [&[8, 0][..], &[0; 18]].concat();
    let links = [(1, ethernet), (1, vlans), (113, sll), (276, sll2), (0, vec![2, 0, 0, 0])];
    for (link, header) in
        links.into_iter().chain([(108, vec![0, 0, 0, 2]), (12, vec![]), (228, vec![])])
    {
        let packet = [header, ip.clone()].concat();
        assert_eq!(udp(link, &packet), Ok(expected), "link {link}");
    }
}

#[test]
fn options_and_extension_headers_are_skipped() {
    assert_eq!(udp(101, &v4(12, b"x")).unwrap().payload, b"x");
    let plain = v6(17, &[], b"y");
    let datagram = udp(101, &plain).unwrap();
    assert_eq!((datagram.payload, datagram.traffic_class, datagram.hops), (&b"y"[..], 2, 60));
    // Hop-by-hop of 8 bytes, then destination options of 16.
    let mut extensions = vec![60, 0, 1, 4, 0, 0, 0, 0];
    extensions.extend([17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(udp(101, &v6(0, &extensions, b"z")).unwrap().payload, b"z");
    // A fragment that is the whole packet.
    assert_eq!(udp(101, &v6(44, &[17, 0, 0, 0, 1, 2, 3, 4], b"a")).unwrap().payload, b"a");
}

#[test]
fn what_is_no_datagram_is_told() {
    let mut fragment = v4(0, b"first of two");
    fragment[6] = 0x20;
    assert_eq!(udp(101, &fragment), Err(Skipped::IpFragment));
    assert_eq!(udp(101, &v6(44, &[17, 0, 0, 8, 1, 2, 3, 4], b"")), Err(Skipped::IpFragment));
    let mut tcp = v4(0, b"");
    tcp[9] = 6;
    assert_eq!(udp(101, &tcp), Err(Skipped::NotUdp));
    assert_eq!(udp(1, &[0; 60]), Err(Skipped::NotUdp));
    let whole = v4(0, b"datagram");
    assert_eq!(udp(101, &whole[..whole.len() - 1]), Err(Skipped::Cut));
    assert_eq!(udp(195, &whole), Err(Skipped::UnknownLink));
    let mut short = v4(0, b"datagram");
    short[0] = 0x44;
    assert_eq!(udp(101, &short), Err(Skipped::Malformed));
}

/// A minimal frame of Ethernet is filled up; what is behind the IP packet is not of the datagram.
#[test]
fn padding_of_the_link_is_not_payload() {
    let mut packet = v4(0, b"x");
    packet.extend([0; 17]);
    assert_eq!(udp(101, &packet).unwrap().payload, b"x");
    // Also if the length in the header of UDP says so.
    packet[25] += 4;
    assert_eq!(udp(101, &packet), Err(Skipped::Cut));
}

proptest! {
    #[test]
    fn any_bytes(link in 0_i32..300, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = udp(link, &bytes);
    }

    #[test]
    fn any_damage(at: usize, to: u8, length: usize) {
        for whole in [v4(8, b"datagram"), v6(0, &[17, 0, 1, 4, 0, 0, 0, 0], b"datagram")] {
            let mut packet = whole.clone();
            let damaged = at % packet.len();
            packet[damaged] = to;
            packet.truncate(length % (whole.len() + 1));
            let _ = udp(101, &packet);
        }
    }
}
