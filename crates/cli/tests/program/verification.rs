//! What was not sent is not stored, and what is not stored is not called sent, whatever the peer says.

use haulier::file::{Receipt, Status};

use crate::fake::{self, FakeReceiver};
use crate::support::{Dir, Finished, data, haulier, listen};

const NAME: &str = "world.bin";

/// A run of chunks that some sender sends, and what is said about it.
fn assert_refused(chunks: Vec<Vec<u8>>, because: &str) {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.path(NAME)]);
    let receipt = fake::send(&addr, chunks);
    let recv = recv.finish();
    let message = recv.error(4);
    assert!(message.contains(because), "{because}: {message}");
    assert_eq!((receipt.status, receipt.message), (Status::VerificationFailed, message));
    assert!(dir.names("").is_empty(), "{because}: {:?}", dir.names(""));
}

#[test]
fn a_wrong_digest_stores_nothing_and_is_reported_to_the_sender() {
    let mut chunks = fake::chunks(NAME, Some(5_000), &data(5_000));
    chunks[0][2_000] ^= 1;
    assert_refused(chunks, "does not have the BLAKE3 that was sent");
}

#[test]
fn a_wrong_digest_in_a_long_run_is_found_at_its_end() {
    let mut chunks = fake::chunks(NAME, None, &data(600_000));
    assert_eq!(chunks.len(), 3);
    chunks[1][77_777] ^= 0x80;
    assert_refused(chunks, "does not have the BLAKE3 that was sent");
}

#[test]
fn a_changed_name_is_found() {
    let mut chunks = fake::chunks(NAME, Some(5_000), &data(5_000));
    let at = chunks[0].windows(NAME.len()).position(|bytes| bytes == NAME.as_bytes()).unwrap();
    chunks[0][at] = b'W';
    assert_refused(chunks, "name or size are not those that were sent");
}

#[test]
fn another_size_than_announced_is_refused() {
    assert_refused(fake::chunks(NAME, Some(4_999), &data(5_000)), "instead of 4999");
    assert_refused(
        fake::chunks(NAME, Some(5_001), &data(5_000)),
        "5000 bytes came instead of 5001",
    );
}

#[test]
fn a_run_that_is_no_file_is_refused() {
    assert_refused(vec![data(100)], "not a file sent by haulier");
    assert_refused(vec![data(9_000)], "not a file sent by haulier");
}

/// Nothing goes down the pipe before the last byte was looked at.
#[test]
fn a_wrong_digest_writes_nothing_to_standard_output() {
    let (recv, addr) = listen(&["-o", "-"]);
    let mut chunks = fake::chunks(NAME, None, &data(5_000));
    chunks[0][2_000] ^= 1;
    assert_eq!(fake::send(&addr, chunks).status, Status::VerificationFailed);
    let recv = recv.finish();
    recv.error(4);
    assert!(recv.stdout.is_empty());
}

#[test]
fn a_wrong_digest_leaves_the_file_that_was_to_be_replaced() {
    let dir = Dir::new();
    let (recv, addr) = listen(&["-o", &dir.file(NAME, b"old"), "--force"]);
    let mut chunks = fake::chunks(NAME, None, &data(5_000));
    chunks[0][2_000] ^= 1;
    fake::send(&addr, chunks);
    recv.finish().error(4);
    assert_eq!((dir.names(""), dir.read(NAME)), (vec![NAME.into()], b"old".to_vec()));
}

/// Runs `send` against a receiver that answers so.
fn send_to_liar(bytes: usize, answer: Option<Vec<u8>>) -> Finished {
    let dir = Dir::new();
    let file = dir.file(NAME, &data(bytes));
    let liar = FakeReceiver::start(answer);
    let addr = liar.addr.to_string();
    let send = ["send", "--json", &file, &addr, "--rate", "400M", "--timeout", "2"];
    let finished = haulier(&send);
    drop(liar);
    finished
}

fn receipt(status: Status, content: &[u8], message: &str) -> Option<Vec<u8>> {
    let digest = blake3::hash(content);
    Some(Receipt { status, digest, message: message.into() }.to_bytes())
}

#[test]
fn a_sender_believes_a_receipt_only_with_the_right_digest() {
    send_to_liar(600_000, receipt(Status::Stored, &data(600_000), "")).done();
    let message = send_to_liar(5_000, receipt(Status::Stored, b"something else", "")).error(4);
    assert!(message.contains("BLAKE3 is not that of the file"), "{message}");
}

#[test]
fn a_sender_passes_on_what_the_receiver_says() {
    let refused = receipt(Status::VerificationFailed, b"", "that is not what you sent");
    assert_eq!(send_to_liar(5_000, refused).error(4), "that is not what you sent");
    let message = send_to_liar(5_000, receipt(Status::IoError, b"", "x: disk full")).error(5);
    assert_eq!(message, "the receiver could not store it: x: disk full");
    let message = send_to_liar(5_000, receipt(Status::Interrupted, b"", "stopped")).error(3);
    assert!(message.contains("interrupted"), "{message}");
}

#[test]
fn what_the_receiver_says_does_not_reach_the_terminal_as_commands() {
    let message = send_to_liar(9, receipt(Status::IoError, b"", "\u{1b}[2J\r\ngone\u{7}")).error(5);
    assert!(message.contains("gone") && !message.contains(char::is_control), "{message:?}");
}

/// Everything is acked; that does not mean that it is stored.
#[test]
fn without_a_receipt_nothing_counts_as_sent() {
    for answer in [None, Some(b"thanks".to_vec())] {
        let message = send_to_liar(5_000, answer).error(3);
        assert!(message.contains("did not say within 2 s that it is stored"), "{message}");
    }
}
