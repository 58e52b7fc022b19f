//! What a handshake survives, datagram by datagram.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use haulier_control::Rate;

use super::{ClientConfig, ClientMachine, Credentials};
use crate::connection::{Block, CloseCode, Event};
use crate::crypto::Secret;
use crate::server::{ServerConfig, ServerCredentials, ServerEvent, ServerMachine};
use crate::{Instant, Machine};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn pair(open: bool) -> (ClientMachine, ServerMachine) {
    let secret = Secret::from_bytes([7; 32]);
    let credentials = match open {
        true => Credentials::Open,
        false => Credentials::Secret { secret: secret.clone(), identity: None },
    };
    let config = ClientConfig::new(at(1), 7, credentials);
    let client = ClientMachine::new(Instant::ZERO, config, [1; 32]).unwrap();
    let credentials =
        ServerCredentials { secret: Some(secret), open, ..ServerCredentials::default() };
    (
        client,
        ServerMachine::new(Instant::ZERO, 0, ServerConfig::new(7, credentials), [2; 32]).unwrap(),
    )
}

/// An observer of the responses can forward one with the last byte changed, sooner than the right one:
/// the welcome verifies, and the frames do not. The client used to ignore the right one afterwards.
#[test]
fn a_right_welcome_before_damaged_frames_does_not_end_the_handshake() {
    for open in [false, true] {
        let (mut client, mut server) = pair(open);
        let (mut now, mut datagram, mut damaged) = (Instant::ZERO, Vec::new(), 0);
        while client.connection().is_none() {
            assert!(now < Instant::from_millis(5_000), "no connection, open: {open}");
            now = now + Duration::from_millis(10);
            client.handle_timeout(now);
            while client.poll_datagram(now, &mut datagram).is_some() {
                let _counted = server.handle_datagram(now, at(2), &mut datagram);
            }
            server.handle_timeout(now);
            while server.poll_event(now).is_some() {}
            while server.poll_datagram(now, &mut datagram).is_some() {
                if let (0, Some(last)) = (damaged, datagram.last_mut()) {
                    *last ^= 1;
                    damaged += 1;
                }
                let _counted = client.handle_datagram(now, at(1), &mut datagram);
            }
        }
        assert_eq!((client.poll_event(now), damaged), (Some(Event::Connected), 1));
    }
}

/// A client at `from` connects, receives a block of `bytes` bytes if any, and closes. Returns the rate that
/// the server remembered for its path, once its address was validated.
fn visit(
    server: &mut ServerMachine,
    now: &mut Instant,
    from: SocketAddr,
    bytes: usize,
) -> Option<Rate> {
    let config = ClientConfig::new(at(1), 7, Credentials::Open);
    let mut client = ClientMachine::new(*now, config, [from.port().to_le_bytes()[0]; 32]).unwrap();
    let block = Block::new(1, alloc::vec![5; bytes]);
    let (mut datagram, mut known, mut back) = (Vec::new(), None, Vec::<Vec<u8>>::new());
    for _ in 0..200 {
        // 2 ms each way.
        *now = *now + Duration::from_millis(2);
        client.handle_timeout(*now);
        server.handle_timeout(*now);
        for mut datagram in core::mem::take(&mut back) {
            let _counted = client.handle_datagram(*now, at(1), &mut datagram);
        }
        while client.poll_datagram(*now, &mut datagram).is_some() {
            let _counted = server.handle_datagram(*now, from, &mut datagram);
        }
        while let Some((id, event)) = server.poll_event(*now) {
            if event == ServerEvent::Connection(Event::Connected)
                && let Some(connection) = server.connection_mut(id)
            {
                known = connection.known_path().rate;
                if bytes > 0 {
                    connection.send_block(*now, &block).unwrap();
                }
            }
        }
        while server.poll_datagram(*now, &mut datagram).is_some() {
            back.push(datagram.clone());
        }
        while client.poll_event(*now).is_some() {}
    }
    if let Some(connection) = client.connection_mut() {
        connection.close(*now, CloseCode::DONE, "");
    }
    while client.poll_datagram(*now, &mut datagram).is_some() {
        let _counted = server.handle_datagram(*now, from, &mut datagram);
    }
    // It answers the close, and has then ended.
    while server.poll_datagram(*now, &mut datagram).is_some() {}
    while server.poll_event(*now).is_some() {}
    assert_eq!(server.stats().connections, 0, "it has left");
    known
}

/// What a block has shown of a path is known when its client comes back, from another port too; not of
/// others.
#[test]
fn a_server_knows_the_path_of_who_comes_back() {
    let (mut server, mut now) = (pair(true).1, Instant::ZERO);
    let elsewhere = SocketAddr::from(([10, 0, 0, 2], 4));
    assert_eq!(visit(&mut server, &mut now, at(2), 100_000), None);
    assert_eq!(visit(&mut server, &mut now, elsewhere, 0), None);
    let fresh = visit(&mut server, &mut now, at(3), 0).unwrap();
    now = now + Duration::from_secs(120);
    let old = visit(&mut server, &mut now, at(5), 0).unwrap();
    let half = old * 2.0 - fresh;
    assert!(half.0.abs() < 1e-9, "half of {fresh:?} is believed, not {old:?}");
    assert_eq!(
        visit(&mut server, &mut now, at(6), 0),
        Some(old),
        "it does not fade with each visit"
    );
}
