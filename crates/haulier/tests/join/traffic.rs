//! Blocks, packets and messages beside each other, both ways, over real sockets.

use std::net::UdpSocket;

use haulier::{Block, Client, Event, SendError};

use crate::support::{Pair, bytes, config_at, with_secret};

const FIVE_MB: usize = 5_000_000;

fn fast() -> Pair {
    let mut config = with_secret();
    config.connection.max_rate_bps = 200_000_000;
    Pair::connected(config)
}

#[test]
fn five_megabytes_both_ways_at_once() {
    let mut pair = fast();
    let id = pair.id();
    let (down, up) = (Block::new(1, bytes(FIVE_MB)), Block::new(2, bytes(FIVE_MB - 1)));
    let sent_down = pair.server.send_block(id, &down).unwrap();
    let sent_up = pair.client.send_block(&up).unwrap();
    let whole = |block: &Block| Event::Block { tag: block.tag(), data: block.data().clone() };
    let (whole_down, whole_up) = (whole(&down), whole(&up));
    pair.until(|pair| {
        let sent_up = pair.client_count(|event| *event == Event::BlockSent { handle: sent_up });
        let sent_down = pair.server_count(|event| *event == Event::BlockSent { handle: sent_down });
        let came_down = pair.client_count(|event| *event == whole_down);
        let came_up = pair.server_count(|event| *event == whole_up);
        [sent_up, sent_down, came_down, came_up] == [1; 4]
    });
    assert!(pair.client.all_acked());
}

#[test]
fn packets_and_messages_beside_a_block() {
    let mut pair = fast();
    let id = pair.id();
    let world = Block::new(1, bytes(3_000_000));
    pair.server.send_block(id, &world).unwrap();
    let (mut sent, mut said) = (0, 0);
    pair.until(|pair| {
        if said < 500 {
            // Small ones, and some in fragments.
            let size = if sent % 10 == 0 { 5_000 } else { 200 };
            pair.server.send_packet(id, vec![sent as u8; size]).unwrap();
            pair.client.send_packet(vec![sent as u8; size]).unwrap();
            sent += 1;
            pair.server.send_message(id, format!("{said}")).unwrap();
            pair.client.send_message(format!("{said}")).unwrap();
            said += 1;
        }
        let has_fate =
            |event: &Event| matches!(event, Event::PacketAcked { .. } | Event::PacketLost { .. });
        let is_message = |event: &Event| matches!(event, Event::Message { .. });
        said == 500
            && pair.client_count(has_fate) == sent
            && pair.server_count(has_fate) == sent
            && pair.client_count(is_message) == said
            && pair.server_count(is_message) == said
            && pair.client_count(|event| matches!(event, Event::Block { .. })) == 1
    });
    let messages: Vec<_> = pair
        .at_client
        .iter()
        .filter_map(|event| match event {
            Event::Message { data, .. } => Some(String::from_utf8(data.to_vec()).unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(messages, (0..500).map(|number| number.to_string()).collect::<Vec<_>>());
    let acked = pair.client_count(|event| matches!(event, Event::PacketAcked { .. }));
    let arrived = pair.server_count(|event| matches!(event, Event::Packet { .. }));
    assert!(acked > 0 && arrived >= acked, "{arrived} arrived, {acked} acked");
    assert_eq!(pair.client_end(), None);
}

#[test]
fn what_is_too_large_is_refused_before_it_is_sent() {
    let mut config = with_secret();
    config.connection.max_block_bytes = 1000;
    let pair = Pair::connected(config);
    let large = Block::new(1, vec![0; 1001]);
    assert_eq!(pair.client.send_block(&large), Err(SendError::BlockTooLarge { max: 1000 }));
    assert_eq!(pair.client.send_message(vec![0; 65_537]), Err(SendError::TooLarge { max: 65_536 }));
    let max = 256 * 1024;
    assert_eq!(
        pair.client.send_packet(vec![0; max + 1]),
        Err(SendError::TooLarge { max: max as u64 })
    );
}

#[test]
fn nothing_is_sent_before_it_is_connected() {
    // A server might answer before the message is sent.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = Client::connect(config_at(silent.local_addr().unwrap())).unwrap();
    assert_eq!(client.send_message("too early"), Err(SendError::NotOpen));
    assert!(client.all_acked());
}

/// Loopback carries 65,536 bytes, and a system that forbids fragmentation finds out what of it is probed.
#[test]
fn datagrams_grow_to_what_loopback_carries() {
    let expected = if haulier::udp::max_datagram_bytes() == 9000 { 8972 } else { 1200 };
    let mut pair = Pair::connected(with_secret());
    let id = pair.id();
    pair.until(|pair| {
        let ends = [pair.client.stats(), pair.server.connection_stats(id)];
        ends.iter().flatten().all(|stats| stats.max_datagram_bytes == expected)
    });
    pair.server.send_packet(id, vec![7; 200_000]).unwrap();
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::Packet { .. })) == 1);
    println!("{:?}", pair.server.connection_stats(id));
    let mut config = with_secret();
    config.connection.max_datagram_bytes = 1201;
    let mut pair = Pair::connected(config);
    let id = pair.id();
    pair.client.send_message("a round trip").unwrap();
    pair.until(|pair| pair.server_count(|event| matches!(event, Event::Message { .. })) == 1);
    assert_eq!(pair.server.connection_stats(id).map(|stats| stats.max_datagram_bytes), Some(1200));
}
