//! What connections cost in memory, counted by the allocator: so this is a program of its own, with one test
//! that prints what docs/PERFORMANCE.md quotes.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test program")]

mod lan;

use haulier_proto::connection::{Block, Event};
use haulier_proto::wire::request::REQUEST_BYTES;
use lan::{Lan, client_config, server_address, server_config};

/// Ten thousand players who stand still: the issue allows 4 KiB each, and 128 MiB in all.
#[test]
fn idle_connections_are_small() {
    let (few, many) = (idle(100), idle(1_100));
    let each = (many - few) / 1_000;
    println!("an idle connection: {each} bytes at the server");
    assert!(each <= 4096, "{each} bytes for an idle connection");
}

/// Bytes that a server holds for so many idle clients.
fn idle(clients: usize) -> i64 {
    let mut requests = Vec::new();
    let mut held = 0;
    let mut lan = Lan::new(server_config());
    for _ in 0..clients {
        let n = lan.add(client_config());
        // What the client takes is its own; only the server is measured.
        let mut datagram = Vec::with_capacity(REQUEST_BYTES);
        assert!(lan.clients[n].poll_transmit(lan.now, &mut datagram));
        requests.push(datagram);
    }
    let mut answers = Vec::with_capacity(4096);
    let mut buffer = Vec::with_capacity(1200);
    for (n, mut request) in requests.into_iter().enumerate() {
        let from = lan.addresses[n];
        let counted = allocation_counter::measure(|| {
            lan.server.handle_datagram(lan.now, from, &mut request).unwrap();
            while lan.server.poll_event().is_some() {}
        });
        held += counted.bytes_current;
        answers.clear();
        loop {
            let mut to = None;
            held += allocation_counter::measure(|| {
                to = lan.server.poll_transmit(lan.now, &mut buffer);
            })
            .bytes_current;
            if to.is_none() {
                break;
            }
            answers.push(buffer.clone());
        }
        for answer in &mut answers {
            let _refused = lan.clients[n].handle_datagram(lan.now, answer);
        }
        while lan.clients[n].poll_transmit(lan.now, &mut buffer) {
            held += allocation_counter::measure(|| {
                lan.server.handle_datagram(lan.now, from, &mut buffer).unwrap();
                while lan.server.poll_event().is_some() {}
            })
            .bytes_current;
        }
    }
    held += allocation_counter::measure(|| {
        while lan.server.poll_transmit(lan.now, &mut buffer).is_some() {}
        while lan.server.poll_event().is_some() {}
    })
    .bytes_current;
    assert_eq!(lan.server.stats().connections, clients);
    assert_eq!(lan.server.stats().handshakes, 0, "all have proven their address");
    held
}

/// A forged first message costs a counter: nothing is allocated, so nothing can stay.
#[test]
fn forged_requests_take_no_memory() {
    let mut lan = Lan::new(server_config());
    // The budget for refusals is used up first; they are answers, and have bytes.
    lan.server = {
        let mut config = server_config();
        config.limits.answers_per_second = 0;
        haulier_proto::server::Server::new(lan.now, lan::UNIX_TIME, config, [1; 32])
    };
    let n = lan.add(client_config());
    let mut request = Vec::new();
    assert!(lan.clients[n].poll_transmit(lan.now, &mut request));
    let mut forged = Vec::with_capacity(REQUEST_BYTES);
    let counted = allocation_counter::measure(|| {
        for at in 3..1_000 {
            forged.clear();
            forged.extend_from_slice(&request);
            forged[at] ^= 0x55;
            assert!(lan.server.handle_datagram(lan.now, server_address(), &mut forged).is_err());
        }
    });
    assert_eq!(counted.count_total, 0, "allocations for a thousand forged requests");
}

/// A block that is being sent is shared: a hundred clients of one world need a hundred windows, not a hundred
/// worlds.
#[test]
fn a_world_is_held_once() {
    let world = Block::new(1, vec![7; 256 << 10]);
    let mut lan = Lan::new(server_config());
    (0..8).for_each(|_| {
        lan.add(client_config());
    });
    lan.settle();
    let ids: Vec<_> = lan.server.connections().collect();
    let counted = allocation_counter::measure(|| {
        for &id in &ids {
            lan.server.connection_mut(id).unwrap().send_block(&world).unwrap();
        }
    });
    let each = counted.bytes_current / ids.len() as i64;
    println!("a block being sent: {each} bytes for each client");
    assert!(each < 16 << 10, "{each} bytes for each client of one world");
    lan.run(3_000);
    for events in &lan.client_events {
        assert!(events.iter().any(|event| matches!(event, Event::Block { .. })));
    }
}
