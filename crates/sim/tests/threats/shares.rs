//! T6: which connections are closed when clients together hold too much memory.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Machine as _;
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{Event, Urgency};
use haulier_proto::internals::Frame;
use haulier_proto::internals::frames::{BlockFrame, ChunkAt, SliceFrame, SliceKind};
use haulier_proto::server::ServerMachine;
use haulier_sim::address;
use haulier_sim::attack::raw::RawClient;

use crate::support::{Keyed, block, client_config, drain, drain_client, knock, ms, server_config};

const MIB: usize = 1 << 20;

/// A server of 64 MiB, and hoarders from these addresses that hold a MiB each.
fn besieged(addresses: impl Iterator<Item = SocketAddr>) -> ServerMachine {
    let mut config = server_config(Keyed::Open);
    config.limits.memory_bytes = 64 * MIB;
    let mut server = ServerMachine::new(ms(0), 0, config, [1; 32]).unwrap();
    for (n, from) in (1000..).zip(addresses) {
        let mut raw = RawClient::new(None, n);
        knock(&mut server, &mut raw, ms(0), from).0.unwrap();
        let link = raw.link.as_mut().unwrap();
        let announced = BlockFrame { number: 0, tag: 0, length: 2 << 20, root: [0; 32] };
        let mut datagram = link.frames(&[Frame::Block(announced)]);
        server.handle_datagram(ms(0), from, &mut datagram).unwrap();
        // All of each chunk but its last slice.
        for chunk in 0..4 {
            for index in 0..255 {
                let (at, kind) = (ChunkAt { block: 0, index: chunk }, SliceKind::Source);
                let slice = SliceFrame { at, kind, index, data: &[5; 1024] };
                let mut datagram = link.frames(&[Frame::Slice(slice)]);
                server.handle_datagram(ms(0), from, &mut datagram).unwrap();
            }
        }
        let _acks = drain(&mut server, ms(0));
    }
    server
}

/// The number of open connections. One that was closed still exists until its peer has received the close.
fn open(server: &ServerMachine) -> usize {
    let connections = server.connections().filter_map(|id| server.connection(id));
    connections.filter(|connection| connection.state().is_open()).count()
}

/// An honest client uploads 16 MiB, and the application reads nothing before it is whole. Returns how its
/// connection ended, if it did, and the connections left.
fn upload(server: &mut ServerMachine) -> (Option<Event>, usize) {
    let (mut now, from) = (ms(0), address(200));
    let mut config = client_config(Keyed::Open);
    config.connection =
        config.connection.with_urgency(Urgency::LoadScreen).with_max_rate_bps(u64::MAX);
    let mut client = ClientMachine::new(now, config, [2; 32]).unwrap();
    let mut ended = None;
    let mut is_sending = false;
    for _ in 0..2_500 {
        if let Some(connection) = client.connection_mut().filter(|_| !is_sending) {
            connection.send_block(now, &block(16 * MIB)).unwrap();
            is_sending = true;
        }
        for mut datagram in drain_client(&mut client, now) {
            let _counted = server.handle_datagram(now, from, &mut datagram);
        }
        now = now + Duration::from_millis(1);
        server.handle_timeout(now);
        while server.poll_event(now).is_some() {}
        for (to, mut datagram) in drain(server, now) {
            if to == from {
                let _counted = client.handle_datagram(now, address(1), &mut datagram);
            }
        }
        client.handle_timeout(now);
        let events = std::iter::from_fn(|| client.poll_event(now));
        ended = ended.or(events.filter(|event| !matches!(event, Event::Connected)).last());
    }
    (ended, open(server))
}

/// Sixty-two connections of one address that hold a MiB each are one source that holds 62 MiB. The server
/// once closed the largest connection of all, and that was the honest one.
#[test]
fn t6_hoarders_of_one_prefix_go_before_an_honest_upload() {
    let mut server = besieged((0..62).map(|n| SocketAddr::new(address(9).ip(), 1000 + n)));
    assert_eq!(open(&server), 62);
    assert!(server.stats().memory_bytes >= 62 * MIB);
    let (ended, left) = upload(&mut server);
    let is_sent = matches!(ended, Some(Event::BlockSent { .. }));
    println!("the upload: {ended:?}; {left} connections left");
    assert!(is_sent, "{ended:?}");
    assert!((40..63).contains(&left), "no more go than have to: {left}");
    assert!(server.stats().memory_bytes <= 64 * MIB);
}
