//! The connection of haulier/1, point by point of STANDARD-1, between a server and clients on one link.
//!
//! * `handshake`: sections 3 and 6, which clients are accepted and which refused;
//! * `traffic`: section 4, the contents of datagrams, and their order;
//! * `edges`: checks that no other test covers, one test each;
//! * `hostile`: a peer with the keys that breaks the rules of section 4;
//! * `keys`: what two servers, or two copies of one, must not share; forgeries; a clock without a time;
//! * `sources`: blocks from sources to sinks, chunk by chunk;
//! * `line`: section 3.6, clients that wait for a seat;
//! * `maps`: what people see of a block on its way;
//! * `life`: sections 2.3 and 5, keys, addresses, timeouts and closing;
//! * `trace`: the events that a connection records;
//! * `workers`: a server of several workers, call by call.

mod admission;
mod edges;
mod ends;
mod handshake;
mod hostile;
mod keys;
mod life;
mod line;
mod maps;
mod sources;
mod trace;
mod traffic;
mod workers;

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{CloseReason, Event};
use haulier_proto::server::ServerEvent;

use crate::lan::{Lan, PROTOCOL_ID, server_address};

/// How the connection of client `n` ended, as the client reports it.
fn end_of(lan: &Lan, n: usize) -> Option<&CloseReason> {
    lan.client_events[n].iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

/// How connections ended, as the server reports it.
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
