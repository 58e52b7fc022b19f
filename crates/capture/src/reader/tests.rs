//! Both formats, in both orders of bytes, damaged and slow.

use proptest::prelude::*;

use super::*;

/// A pcap header in either order of bytes, and a packet of 3 bytes.
fn pcap(magic: u32, is_big: bool) -> Vec<u8> {
    let word = |word: u32| if is_big { word.to_be_bytes() } else { word.to_le_bytes() };
    let half = |half: u16| if is_big { half.to_be_bytes() } else { half.to_le_bytes() };
    let mut file = Vec::new();
    file.extend(word(magic));
    file.extend([half(2), half(4)].as_flattened());
    file.extend(
        [word(0), word(0), word(65_535), word(101), word(7), word(9), word(3), word(60)]
            .as_flattened(),
    );
    file.extend([1, 2, 3]);
    file
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len()) as u32;
    [&kind.to_le_bytes(), &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
}

/// A section with an interface whose times are in this resolution, and a packet of 4 bytes at time 3 << 32.
fn pcapng(resolution: u8) -> Vec<u8> {
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let section: Vec<u8> = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &section[4..]].concat();
    let interface = [1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0];
    let packet =
        [[0, 0, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0], [4, 0, 0, 0], [60, 0, 0, 0], [5, 6, 7, 8]];
    [block(0x0a0d_0d0a, &section), block(1, &interface), block(6, packet.as_flattened())].concat()
}

fn all(file: &[u8]) -> Result<Vec<(u64, i32, Vec<u8>)>, CaptureError> {
    let (mut reader, mut all) = (CaptureReader::new(file)?, Vec::new());
    while let Some(packet) = reader.next_packet()? {
        all.push((packet.at_ns, packet.link, packet.bytes.to_vec()));
    }
    Ok(all)
}

#[test]
fn both_orders_and_both_units_of_pcap() {
    for is_big in [false, true] {
        let micros = all(&pcap(0xa1b2_c3d4, is_big)).unwrap();
        assert_eq!(micros, [(7_000_009_000, 101, vec![1, 2, 3])]);
        let nanos = all(&pcap(0xa1b2_3c4d, is_big)).unwrap();
        assert_eq!(nanos, [(7_000_000_009, 101, vec![1, 2, 3])]);
    }
}

#[test]
fn times_of_pcapng_are_in_the_units_of_their_interface() {
    let at = |resolution| all(&pcapng(resolution)).unwrap()[0].0;
    let time = 3_u64 << 32;
    assert_eq!(at(9), time);
    assert_eq!(at(6), time * 1000);
    assert_eq!(at(0x80 | 32), 3_000_000_000);
    assert_eq!(at(127), time * 1000, "no clock has that");
    assert_eq!(all(&pcapng(9)).unwrap()[0].1, 1);
    assert_eq!(all(&pcapng(9)).unwrap()[0].2, [5, 6, 7, 8]);
}

/// A pipe gives a byte at a time.
#[test]
fn a_slow_pipe_gives_the_same() {
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let one = to.len().min(1);
            self.0.read(&mut to[..one])
        }
    }
    for file in [pcap(0xa1b2_c3d4, false), pcapng(9)] {
        let mut reader = CaptureReader::new(Slow(&file)).unwrap();
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!(packet.bytes, all(&file).unwrap()[0].2);
        assert!(reader.next_packet().unwrap().is_none());
    }
}

#[test]
fn what_is_no_capture_is_told() {
    for no in [
        &b""[..],
        b"PK\x03\x04 and more than a header has",
        &[0x0a, 0x0d, 0x0d, 0x0a, 9, 9, 9, 9, 1, 2, 3, 4],
    ] {
        assert!(matches!(CaptureReader::new(no), Err(CaptureError::NoCapture)));
    }
    let cut = pcap(0xa1b2_c3d4, false);
    let mut reader = CaptureReader::new(&cut[..cut.len() - 1]).unwrap();
    assert!(matches!(reader.next_packet(), Err(CaptureError::Truncated)));
    let mut huge = pcap(0xa1b2_c3d4, false);
    huge[32..36].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    let mut reader = CaptureReader::new(huge.as_slice()).unwrap();
    assert!(matches!(reader.next_packet(), Err(CaptureError::TooLong | CaptureError::Truncated)));
}

proptest! {
    /// Any bytes, and any damage to a capture, give packets or an error, never a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = all(&bytes);
        for file in [pcap(0xa1b2_c3d4, false), pcapng(9)] {
            let _ = all(&[&file, bytes.as_slice()].concat());
        }
    }

    #[test]
    fn any_damage(at in 0_usize..200, to: u8, is_new: bool, length in 0_usize..200) {
        let mut file = if is_new { pcapng(6) } else { pcap(0xa1b2_c3d4, true) };
        let damaged = at % file.len();
        file[damaged] = to;
        file.truncate(length.max(12));
        for (_, link, bytes) in all(&file).unwrap_or_default() {
            let _ = crate::layers::udp(link, &bytes);
        }
    }
}
