//! Bytes as a capture, and the packets in it with a key log: each is read or refused, in bounded memory.
#![no_main]

use haulier_capture::{CaptureReader, KeyLog, Opener, layers, train};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The first half may be a key log, as far as it is text.
    let log = KeyLog::read(&data[..data.len() / 2]).unwrap_or_default();
    let mut opener = Opener::new(log, 7);
    for datagram in train(data) {
        let _ = opener.open(datagram);
    }
    let Ok(mut capture) = CaptureReader::new(data) else { return };
    while let Ok(Some(packet)) = capture.next_packet() {
        assert!(packet.bytes.len() <= data.len());
        if let Ok(datagram) = layers::udp(packet.link, packet.bytes) {
            train(datagram.payload).for_each(|one| drop(opener.open(one)));
        }
    }
});
