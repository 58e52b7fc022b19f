//! Key logs: each kind of line, wrong ones, copies.

use super::*;

const ID: &str = "0102030405060708";

fn read(text: &str) -> Result<KeyLog, KeyLogError> {
    KeyLog::read(text.as_bytes())
}

#[test]
fn each_kind_of_line_is_found_by_the_id_on_the_wire() {
    let (secret, server) = ("ab".repeat(32), "1112131415161718");
    let text = format!(
        "# of a test\n\nHELLO {ID} {secret} 00ff\nWELCOME {ID} {secret} 01\nCLIENT {ID} {server} 0 {secret}\n\
         SERVER {ID} {server} 1 {secret}"
    );
    let log = read(&text).unwrap();
    let id = |hex| super::id(hex).unwrap();
    assert_eq!(log.hellos[&id(ID)][0].associated, [0, 0xff]);
    assert_eq!(log.welcomes[&id(ID)][0].key, Secret::from_bytes([0xab; 32]));
    assert_eq!(log.to_server[&id(server)][0].client, id(ID));
    assert_eq!(log.to_client[&id(ID)][0].suite, Suite::Aes256Gcm);
    assert!(!log.is_empty());
}

/// The error for a wrong line has its number and says what is wrong; no wrong line is read as another one.
#[test]
fn each_wrong_line_is_told() {
    let secret = "00".repeat(32);
    let wrong = [
        (format!("HELLO {ID} {secret}"), "has too few or too many fields"),
        (format!("HELLO {ID} {secret} 0"), "has half a byte in hex"),
        (format!("HELLO {ID} {secret} 0g"), "has bytes that are not in hex"),
        (format!("HELLO 01 {secret} 00"), "has an id that is not 8 bytes in hex"),
        (format!("HELLO {ID} 00 00"), "has a secret that is not 32 bytes in hex"),
        (format!("CLIENT {ID} {ID} 2 {secret}"), "has an unknown cipher suite: there are 0 and 1"),
        ("CLIENT_RANDOM 00 00".into(), "begins with none of HELLO, WELCOME, CLIENT, SERVER and #"),
        ("x".repeat(2000), "is longer than 1024 bytes"),
    ];
    for (line, told) in wrong {
        match read(&format!("# first\n{line}\n")) {
            Err(KeyLogError::Line { line: 2, what }) => assert_eq!(what, told),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert!(matches!(KeyLog::read(&[0xff, b'\n'][..]), Err(KeyLogError::Line { line: 1, .. })));
}

/// A client and its server may write the same secrets to one file. Of too many secrets for one id only
/// [`MAX_KEYS`] are kept.
#[test]
fn copies_are_one_key_and_an_id_has_few() {
    let line = |byte: u8| format!("CLIENT {ID} {ID} 0 {}\n", format!("{byte:02x}").repeat(32));
    let log = read(&(line(1) + &line(1))).unwrap();
    assert_eq!(log.to_server.values().next().unwrap().len(), 1);
    let many: String = (0..100).map(line).collect();
    assert_eq!(read(&many).unwrap().to_server.values().next().unwrap().len(), MAX_KEYS);
}
