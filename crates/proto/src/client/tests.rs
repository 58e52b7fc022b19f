//! What a handshake survives, datagram by datagram.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::{Client, ClientConfig, Credentials};
use crate::Instant;
use crate::connection::Event;
use crate::crypto::Secret;
use crate::server::{Server, ServerConfig, ServerCredentials};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn pair(open: bool) -> (Client, Server) {
    let secret = Secret::from_bytes([7; 32]);
    let credentials = match open {
        true => Credentials::Open,
        false => Credentials::Secret { secret: secret.clone(), identity: None },
    };
    let config = ClientConfig::new(at(1), 7, credentials);
    let client = Client::new(Instant::ZERO, config, [1; 32]).unwrap();
    let credentials =
        ServerCredentials { secret: Some(secret), open, ..ServerCredentials::default() };
    (client, Server::new(Instant::ZERO, 0, ServerConfig::new(7, credentials), [2; 32]))
}

/// Whoever sees the responses go by can send one on with the last byte changed, sooner than the right one:
/// the welcome verifies, and the frames do not. The client once was deaf for the right one afterwards.
#[test]
fn a_right_welcome_before_damaged_frames_does_not_end_the_handshake() {
    for open in [false, true] {
        let (mut client, mut server) = pair(open);
        let (mut now, mut datagram, mut damaged) = (Instant::ZERO, Vec::new(), 0);
        while client.connection().is_none() {
            assert!(now < Instant::from_millis(5_000), "deaf, open: {open}");
            now = now + Duration::from_millis(10);
            client.handle_timeout(now);
            while client.poll_transmit(now, &mut datagram) {
                let _counted = server.handle_datagram(now, at(2), &mut datagram);
            }
            server.handle_timeout(now);
            while server.poll_event().is_some() {}
            while server.poll_transmit(now, &mut datagram).is_some() {
                if let (0, Some(last)) = (damaged, datagram.last_mut()) {
                    *last ^= 1;
                    damaged += 1;
                }
                let _counted = client.handle_datagram(now, &mut datagram);
            }
        }
        assert_eq!((client.poll_event(), damaged), (Some(Event::Connected), 1));
    }
}
