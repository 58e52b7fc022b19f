//! Arbitrary bytes for every parser of haulier/1.

use haulier_proto::client::ClientMachine;
use haulier_proto::connection::ConnectionConfig;
use haulier_proto::credentials::{ConnectToken, Secret, Ticket, TokenKey};
use haulier_proto::internals::{
    DataHeader, Frames, Hello, InLine, Kind, Refusal, RequestParts, ResponseHeader, Retry, Welcome,
    read_reset,
};
use haulier_proto::server::ServerMachine;
use haulier_proto::{Instant, Machine};

use crate::address;
use crate::hosts::{Keyed, PROTOCOL_ID, configs};
use crate::oracle::Meter;
use crate::oracle::bounds::cost_nanos;

/// What a stranger's datagram may make an end hold, in bytes: an answer of at most 59 bytes, in a queue with
/// room for four answers, the smallest room that a queue begins with.
const MAX_STRANGER_BYTES: i64 = 1 << 10;

/// What it may cost, in nanoseconds: the check of a request, and a tag.
const MAX_STRANGER_NANOS: u64 = 4_000;

/// Passes arbitrary bytes to every parser, and as a datagram to a server and a client: none panics, nothing
/// is accepted that was not made with a key, accepted frames are read again as the same, and a stranger's
/// datagram costs no more than a check and holds no more than an answer.
///
/// # Panics
/// If that does not hold.
pub fn wire(bytes: &[u8]) {
    let _kind = Kind::of(bytes);
    let _request = RequestParts::read(bytes);
    let _header = DataHeader::read(bytes);
    let _response = ResponseHeader::read(bytes);
    let (_retry, _refusal, _reset) = (Retry::read(bytes), Refusal::read(bytes), read_reset(bytes));
    if let Ok((line, checked, _)) = InLine::read(bytes) {
        let mut out = Vec::new();
        line.write(&mut out);
        assert_eq!(out, checked, "a place in line that is written otherwise");
    }
    if let Ok(hello) = Hello::read(bytes) {
        let mut out = Vec::new();
        hello.write(&mut out);
        // Unknown suites and parameters are ignored.
        assert_eq!(Hello::read(&out), Ok(hello), "a hello that is read differently again");
    }
    if let Ok(welcome) = Welcome::read(bytes) {
        let mut out = Vec::new();
        welcome.write(&mut out);
        assert_eq!(Welcome::read(&out), Ok(welcome), "a welcome that is read differently again");
    }
    frames(bytes);
    let key = TokenKey { id: 0, key: Secret::from_bytes([1; 32]) };
    assert!(key.open(PROTOCOL_ID, bytes, 0).is_err(), "a forged token");
    let _token = ConnectToken::from_bytes(bytes);
    if let Ok(text) = core::str::from_utf8(bytes) {
        let (_token, _ticket) = (ConnectToken::parse(text), Ticket::parse(text));
    }
    ends(bytes);
}

/// A number may have more bytes than it needs, so what is written is not always what was read, but it is read
/// as the same frames.
fn frames(bytes: &[u8]) {
    let mut meter = Meter::default();
    let count = meter.around(|| Frames::of(bytes).count());
    assert_eq!(meter.allocations, 0, "{count} frames are read without memory");
    let Ok(read) = Frames::of(bytes).collect::<Result<Vec<_>, _>>() else { return };
    let mut out = Vec::new();
    read.iter().for_each(|frame| frame.write(&mut out));
    assert!(out.len() <= bytes.len(), "frames that are longer than they were");
    let again: Result<Vec<_>, _> = Frames::of(&out).collect();
    assert_eq!(again.as_ref(), Ok(&read), "frames that are read differently again");
}

fn ends(bytes: &[u8]) {
    let now = Instant::from_millis(1);
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let mut server = ServerMachine::new(now, 0, server, [1; 32]).expect("a configuration");
    let (mut meter, mut datagram) = (Meter::default(), bytes.to_vec());
    let taken = meter.around(|| server.handle_datagram(now, address(2), &mut datagram));
    assert!(taken.is_err(), "a server took {taken:?}");
    assert_eq!(server.stats().connections, 0);
    let work = server.work();
    assert!(work.requests <= 1 && work.agreements == 0, "a stranger costs a check: {work:?}");
    assert!(cost_nanos(&work) <= MAX_STRANGER_NANOS, "a stranger costs a check: {work:?}");
    assert!(meter.held_bytes <= MAX_STRANGER_BYTES, "{} bytes of a stranger", meter.held_bytes);
    let mut out = Vec::new();
    while server.poll_datagram(now, &mut out).is_some() {
        // A request of a later version may be longer.
        assert!(bytes.len() >= 1200 && out.len() <= 34, "an answer to {} bytes", bytes.len());
    }
    let mut client = ClientMachine::new(now, client, [1; 32]).expect("a configuration that works");
    let (mut meter, mut datagram, from) = (Meter::default(), bytes.to_vec(), client.server());
    let taken = meter.around(|| client.handle_datagram(now, from, &mut datagram));
    assert!(meter.held_bytes <= MAX_STRANGER_BYTES, "{} bytes of a stranger", meter.held_bytes);
    assert!(taken.is_err() || taken == Ok(()) && matches!(bytes.first(), Some(0x05 | 0x06)));
}
