//! `crc.json`: the checksum over the protocol id, and the hash of a serialize check.

use haulier_article::bits::{Stream, Writer, check_hash};
use haulier_article::packet::{ProtocolId, checksum};

use crate::support::data;

use super::{hex, hex_number, int, load, rows, size, text, unhex};

#[test]
fn checksums() {
    for case in rows(&load("crc.json"), "cases", 70) {
        let name = text(&case["name"]);
        let body = match case["body_rule"].as_str() {
            None => unhex(text(&case["body_hex"])),
            Some("bytes 0,1,2..255") => (0..=255).collect(),
            Some("formula, id 9, offsets 0..1032") => data(9, size(&case["body_len"])),
            Some(other) => panic!("{name}: unknown rule {other}"),
        };
        assert_eq!(body.len(), size(&case["body_len"]), "{name}");
        let protocol = ProtocolId(u32::try_from(int(&case["protocol_id"])).unwrap());
        let crc = checksum(protocol, &body);
        assert_eq!(u64::from(crc), hex_number(&case["crc"]), "{name}");
        assert_eq!(hex(&crc.to_le_bytes()), text(&case["crc_bytes_on_wire"]), "{name}");
        assert_eq!(u64::from(checksum(protocol, &[])), hex_number(&case["crc_after_4_zero_bytes"]));
    }
}

#[test]
fn check_hashes() {
    for case in rows(&load("crc.json"), "check_hashes", 13) {
        let string = text(&case["string"]);
        assert_eq!(u64::from(check_hash(string)), hex_number(&case["hash"]), "{string}");
        let mut buffer = [0; 4];
        Writer::new(&mut buffer).check(string).unwrap();
        assert_eq!(hex(&buffer), text(&case["bytes_on_wire"]), "{string}");
    }
}
