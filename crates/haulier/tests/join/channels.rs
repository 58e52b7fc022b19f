//! What a game sends beside the simple calls: channels, lanes, and blocks that are chosen, cancelled,
//! declined, or not needed.

use haulier::{Block, BlockOptions, Event, Lane, Order, SendError, Source};

use crate::support::{Pair, bytes, with_secret};

#[test]
fn messages_keep_to_their_channel_and_are_acknowledged_by_number() {
    let mut pair = Pair::connected(with_secret());
    let id = pair.id();
    pair.client.set_lane(Source::Channel(3), Lane::new(200, 1).unwrap());
    pair.server.set_lane(id, Source::Blocks, Lane::new(128, 3).unwrap());
    for number in 0..20_u64 {
        let (up, down) = (vec![1; 5_000], vec![2; 60_000]);
        assert_eq!(pair.client.send_message_on(3, Order::Unordered, up), Ok(number));
        if number < 4 {
            assert_eq!(pair.server.send_message_on(id, 15, Order::Ordered, down), Ok(number));
        }
    }
    let acked = |channel, number| Event::MessageAcked { channel, number };
    let of = |event: &Event, on, bytes| match event {
        Event::Message { channel, data } => (*channel, data.len()) == (on, bytes),
        _ => false,
    };
    // What is acknowledged has arrived, and its program hears of it in its next turn.
    pair.until(|pair| {
        (0..20).all(|number| pair.client_count(|event| *event == acked(3, number)) == 1)
            && (0..4).all(|number| pair.server_count(|event| *event == acked(15, number)) == 1)
            && pair.server_count(|event| of(event, 3, 5_000)) == 20
            && pair.client_count(|event| of(event, 15, 60_000)) == 4
    });
    assert!(pair.client.all_acked());
    assert_eq!(
        pair.client.send_message_on(16, Order::Ordered, "beyond"),
        Err(SendError::NoSuchChannel { accepted: 16 })
    );
}

#[test]
fn a_channel_that_was_full_says_when_it_has_room() {
    let mut pair = Pair::connected(with_secret());
    let mut sent = 0;
    let refused = loop {
        match pair.client.send_message_on(1, Order::Ordered, vec![0; 65_536]) {
            Ok(_number) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, SendError::QueueFull { setting: "max_queued_message_bytes" });
    pair.until(|pair| {
        pair.client_count(|event| *event == Event::MessageWritable { channel: 1 }) == 1
            && pair.server_count(|event| matches!(event, Event::Message { .. })) == sent
    });
    assert!(pair.client.send_message_on(1, Order::Ordered, "again").is_ok());
}

/// What a player has on the disk is announced, and not sent.
#[test]
fn a_block_that_is_here_is_not_sent() {
    let mut pair = Pair::connected(with_secret());
    let id = pair.id();
    let (world, mods) = (Block::new(1, bytes(3_000_000)), Block::new(2, bytes(100_000)));
    assert!(pair.client.have_block(*world.digest()));
    // The digest is said to the server before the block is announced, or crosses it.
    pair.client.send_message("I have the world").unwrap();
    pair.until(|pair| pair.server_count(|event| matches!(event, Event::Message { .. })) == 1);
    let handle = pair.server.send_block(id, &world).unwrap();
    pair.server.send_block_with(id, &mods, BlockOptions::default().with_priority(9)).unwrap();
    pair.until(|pair| {
        pair.client_count(|event| *event == Event::BlockHere { tag: 1 }) == 1
            && pair.client_count(|event| matches!(event, Event::Block { tag: 2, .. })) == 1
            && pair.server_count(|event| *event == Event::BlockSent { handle }) == 1
    });
    assert_eq!(pair.client_count(|event| matches!(event, Event::Block { tag: 1, .. })), 0);
    let received = pair.client.wire_bytes().received;
    assert!(received < 1_000_000, "{received} bytes");
}

#[test]
fn a_block_is_given_up_by_either_end_and_the_connection_goes_on() {
    let mut config = with_secret();
    config.connection.max_rate_bps = 8_000_000;
    let mut pair = Pair::connected(config);
    let id = pair.id();
    let large = |tag| Block::new(tag, bytes(20_000_000));
    let cancelled = pair.server.send_block(id, &large(1)).unwrap();
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::BlockProgress { .. })) > 0);
    assert!(pair.server.cancel_block(id, cancelled, 300));
    assert!(!pair.server.cancel_block(id, cancelled, 300), "only once");
    pair.until(|pair| {
        let is_it =
            |event: &Event| matches!(event, Event::BlockCancelled { tag: 1, code: 300, .. });
        pair.client_count(is_it) == 1
    });
    let declined = pair.server.send_block(id, &large(2)).unwrap();
    let announced = |event: &Event| match event {
        Event::BlockAnnounced { block, tag: 2, .. } => Some(*block),
        _ => None,
    };
    pair.until(|pair| pair.at_client.iter().any(|event| announced(event).is_some()));
    let block = pair.at_client.iter().find_map(announced).unwrap();
    assert!(pair.client.decline_block(block, 301));
    let is_declined = Event::BlockDeclined { handle: declined, code: 301 };
    pair.until(|pair| pair.server_count(|event| *event == is_declined) == 1);
    assert!(pair.server.with_connection(id, |connection| connection.all_acked()).unwrap());
    pair.server.send_block(id, &Block::new(3, bytes(1_000))).unwrap();
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::Block { tag: 3, .. })) == 1);
    assert_eq!(pair.client_count(|event| matches!(event, Event::Block { .. })), 1);
}
