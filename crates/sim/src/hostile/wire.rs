//! Arbitrary bytes for every parser of haulier/1.

use haulier_proto::client::ClientMachine;
use haulier_proto::connection::ConnectionConfig;
use haulier_proto::credentials::{ConnectToken, Secret, Ticket, TokenKey};
use haulier_proto::internals::{
    DataHeader, Frames, Hello, Kind, Refusal, RequestParts, ResponseHeader, Retry, Welcome,
    read_reset,
};
use haulier_proto::server::ServerMachine;
use haulier_proto::{Instant, Machine};

use crate::address;
use crate::hosts::{Keyed, PROTOCOL_ID, configs};

/// Passes arbitrary bytes to every parser, and as a datagram to a server and a client: none panics, nothing
/// is accepted that was not made with a key, and accepted frames are read again as the same.
///
/// # Panics
/// If that does not hold.
pub fn wire(bytes: &[u8]) {
    let _kind = Kind::of(bytes);
    let _request = RequestParts::read(bytes);
    let _header = DataHeader::read(bytes);
    let _response = ResponseHeader::read(bytes);
    let (_retry, _refusal, _reset) = (Retry::read(bytes), Refusal::read(bytes), read_reset(bytes));
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
    let taken = server.handle_datagram(now, address(2), &mut bytes.to_vec());
    assert!(taken.is_err(), "a server took {taken:?}");
    assert_eq!(server.stats().connections, 0);
    let mut out = Vec::new();
    while server.poll_datagram(now, &mut out).is_some() {
        assert!(bytes.len() == 1200 && out.len() <= 34, "an answer to {} bytes", bytes.len());
    }
    let mut client = ClientMachine::new(now, client, [1; 32]).expect("a configuration that works");
    let taken = client.handle_datagram(now, client.server(), &mut bytes.to_vec());
    assert!(taken.is_err() || taken == Ok(()) && matches!(bytes.first(), Some(0x05 | 0x06)));
}
