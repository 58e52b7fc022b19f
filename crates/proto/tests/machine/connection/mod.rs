//! The connection of haulier/1, point by point of STANDARD-1, between a server and clients in one room.
//!
//! * `handshake`: sections 3 and 6, who is let in and who is refused;
//! * `traffic`: section 4, what is sent and in which order;
//! * `edges`: checks that nothing else would miss, one test each;
//! * `hostile`: a peer with the keys that breaks the rules of section 4;
//! * `life`: sections 2.3 and 5, keys, addresses, silence and the end.

mod edges;
mod handshake;
mod hostile;
mod life;
mod traffic;

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{CloseReason, Event};
use haulier_proto::server::ServerEvent;

use crate::lan::{Lan, PROTOCOL_ID, server_address};

/// How the connection of client `n` ended, in its own eyes.
fn end_of(lan: &Lan, n: usize) -> Option<&CloseReason> {
    lan.client_events[n].iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

/// How connections ended in the eyes of the server.
fn ends_at_server(lan: &Lan) -> Vec<&CloseReason> {
    let ends = lan.server_events.iter().filter_map(|(_, event)| match event {
        ServerEvent::Connection(Event::Closed(reason)) => Some(reason),
        _ => None,
    });
    ends.collect()
}

fn client_with(credentials: Credentials) -> ClientConfig {
    ClientConfig::new(server_address(), PROTOCOL_ID, credentials).with_copies(1)
}
