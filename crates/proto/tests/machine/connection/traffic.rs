//! The traffic of a connection, and its order (STANDARD-1, 4).

use haulier_proto::connection::{Block, CloseCode, CloseReason, Event, SendError};
use haulier_proto::server::ServerEvent;

use super::{end_of, ends_at_server};
use crate::lan::{Lan, Way, address, client_config, server_config};

fn at_server(lan: &Lan) -> Vec<Event> {
    let events = lan.server_events.iter().filter_map(|(_, event)| match event {
        ServerEvent::Connection(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn blocks_go_both_ways_and_all_arrive() {
    let mut server = server_config();
    server.connection.max_rate_bps = 80_000_000;
    let mut client = client_config();
    client.connection.max_rate_bps = 80_000_000;
    let mut lan = Lan::joined(server, client);
    let sizes = [0usize, 1, 1024, 262_144, 262_145, 700_000, 0];
    for (tag, size) in (0..).zip(sizes) {
        let bytes: Vec<u8> = (0..size).map(|i| (i as u64 * 7 + tag) as u8).collect();
        lan.client(0).send_block(&Block::new(tag, bytes.clone())).unwrap();
        lan.peer().send_block(&Block::new(tag + 100, bytes)).unwrap();
    }
    lan.run(2_000);
    let blocks = |events: &[Event]| -> Vec<(u64, usize)> {
        let blocks = events.iter().filter_map(|event| match event {
            Event::Block { tag, data } => Some((*tag, data.len())),
            _ => None,
        });
        // They may finish in any order: an empty one is whole once it is announced.
        let mut blocks: Vec<_> = blocks.collect();
        blocks.sort_unstable();
        blocks
    };
    let expected: Vec<_> = (0..).zip(sizes).collect();
    assert_eq!(blocks(&at_server(&lan)), expected);
    let expected: Vec<_> = (100..).zip(sizes).collect();
    assert_eq!(blocks(&lan.client_events[0]), expected);
    let sent = |event: &&Event| matches!(event, Event::BlockSent { .. });
    assert_eq!(lan.client_events[0].iter().filter(sent).count(), sizes.len());
    assert!(lan.client(0).all_acked());
}

/// What a program without a runner needs to know when tables are worth their memory.
#[test]
fn a_datagram_is_missing_from_when_the_next_arrives() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(100);
    assert_eq!(lan.client(0).datagrams_missing(), 0);
    lan.peer().send_message(&b"lost"[..]).unwrap();
    lan.settle_with(|way, _| matches!(way, Way::Up(_)));
    assert_eq!(lan.client(0).datagrams_missing(), 0, "nobody can know");
    lan.peer().send_message(&b"next"[..]).unwrap();
    lan.settle();
    assert_eq!(lan.client(0).datagrams_missing(), 1);
}

/// [H-4.3]: packets are sent first, then messages, then slices.
#[test]
fn packets_and_messages_go_before_slices() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(100);
    lan.client(0).send_block(&Block::new(1, vec![1; 200_000])).unwrap();
    lan.client(0).send_message(&b"chat"[..]).unwrap();
    lan.client(0).send_packet(vec![9; 2_500]).unwrap();
    let mut sizes = Vec::new();
    lan.run_with(2_000, |way, datagram| {
        if matches!(way, Way::Up(_)) {
            sizes.push(datagram.len());
        }
        true
    });
    // The announcement with the first fragment, and the message where the second does not fit; then slices.
    let events = at_server(&lan);
    let first = events.iter().position(|event| matches!(event, Event::Packet { .. })).unwrap();
    let message = events.iter().position(|event| matches!(event, Event::Message { .. })).unwrap();
    assert!(sizes.len() > 170 && first <= 3 && message <= 3, "{first} {message}");
}

#[test]
fn a_packet_is_acked_or_lost_and_never_retransmitted() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(100);
    let (mut n, mut arrived) = (0, 0);
    for _ in 0..60 {
        lan.client(0).send_packet(&b"input"[..]).unwrap();
        lan.peer().send_packet(vec![4; 2_000]).unwrap();
        lan.run_with(16, |_, datagram| {
            n += usize::from(datagram.len() > 40);
            !n.is_multiple_of(10)
        });
    }
    lan.run(3_000);
    let count = |events: &[Event], what: fn(&Event) -> bool| {
        events.iter().filter(|event| what(event)).count()
    };
    let acked = |event: &Event| matches!(event, Event::PacketAcked { .. });
    let lost = |event: &Event| matches!(event, Event::PacketLost { .. });
    let here = |event: &Event| matches!(event, Event::Packet { .. });
    let (server, client) = (at_server(&lan), &lan.client_events[0]);
    for (sender, receiver) in [(&server, client), (client, &server)] {
        assert_eq!(count(sender, acked) + count(sender, lost), 60, "each has exactly one fate");
        assert!(count(sender, lost) > 0 && count(sender, acked) > 30);
        assert!(count(receiver, here) >= count(sender, acked), "an acked packet was delivered");
        arrived += count(receiver, here);
    }
    assert!(arrived < 120, "lost packets are not retransmitted");
}

#[test]
fn messages_arrive_once_and_in_order_under_loss() {
    let mut lan = Lan::joined(server_config(), client_config());
    let (mut n, mut sent) = (0u32, 0u32);
    for _ in 0..200 {
        while sent < 3_000 && lan.client(0).send_message(sent.to_le_bytes().to_vec()).is_ok() {
            sent += 1;
        }
        lan.run_with(20, |_, _| {
            n += 1;
            !n.is_multiple_of(4)
        });
    }
    lan.run(5_000);
    let messages = at_server(&lan).into_iter().filter_map(|event| match event {
        Event::Message { data, .. } => Some(u32::from_le_bytes(data[..].try_into().unwrap())),
        _ => None,
    });
    assert!(messages.eq(0..3_000));
    assert!(lan.client(0).all_acked());
}

/// Packets and fragments share one sequence space, which wraps. A fragmented packet is still new when half
/// the sequence space of small packets lies between it and the fragmented one before.
#[test]
fn a_large_packet_after_many_small_ones_arrives() {
    let mut lan = Lan::joined(server_config(), client_config());
    for large in 1..=3u8 {
        lan.client(0).send_packet(vec![large; 3_000]).unwrap();
        for _ in 0..1_000 {
            (0..40).for_each(|_| assert!(lan.client(0).send_packet(vec![0; 20]).is_ok()));
            lan.run(1);
        }
    }
    let large = at_server(&lan).into_iter().filter_map(|event| match event {
        Event::Packet { data, .. } if data.len() == 3_000 => Some(data[0]),
        _ => None,
    });
    assert!(large.eq(1..=3));
}

/// Clients are served in turns of 16 datagrams, which one system call sends; none gets more per turn.
/// These have addresses of their own.
#[test]
fn clients_are_served_in_turns() {
    let mut lan = Lan::new(server_config());
    for n in 0..3 {
        lan.add(client_config());
        lan.addresses[n] = address(1_000 * n);
    }
    lan.run(50);
    let now = lan.now;
    for id in lan.server.connections().collect::<Vec<_>>() {
        let connection = lan.server.connection_mut(id).unwrap();
        connection.send_block(now, &Block::new(1, vec![1; 262_144])).unwrap();
    }
    let (mut turns, mut sent): (Vec<(usize, usize)>, _) = (Vec::new(), [0; 3]);
    lan.run_with(1_000, |way, datagram| {
        if let Way::Down(n) = way
            && datagram.len() > 600
        {
            match turns.last_mut() {
                Some((last, run)) if *last == n => *run += 1,
                _ => turns.push((n, 1)),
            }
            sent[n] += 1;
            let min = sent.iter().min().unwrap();
            assert!(*min >= 240 || sent[n] - min <= 2 * 16 + 16, "{sent:?}");
        }
        true
    });
    // Announcements and acks count, and are too small to be seen here.
    assert!(turns[..3].iter().all(|&(_, run)| run >= 12), "{turns:?}");
    assert!(turns.iter().all(|&(_, run)| run <= 16), "{turns:?}");
    assert!(lan.client_events.iter().all(|events| events.iter().any(is_block)));
}

fn is_block(event: &Event) -> bool {
    matches!(event, Event::Block { .. })
}

/// A message does not wait for a block that fills the link for a minute.
#[test]
fn a_message_does_not_wait_for_a_large_block() {
    let mut server = server_config();
    server.connection.max_rate_bps = 250_000;
    let mut lan = Lan::joined(server, client_config());
    lan.peer().send_block(&Block::new(1, vec![1; 2_000_000])).unwrap();
    lan.run(1_000);
    lan.peer().send_message(&b"the gate is open"[..]).unwrap();
    lan.run(2);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Message { .. })));
    assert!(lan.client(0).receiving().unwrap().done < 300_000);
}

/// H-4.2b: the sender itself refuses a block that is too large for its receiver.
#[test]
fn a_block_above_the_limit_takes_no_memory() {
    let mut client = client_config();
    client.connection.max_block_bytes = 1_000_000;
    let mut lan = Lan::joined(server_config(), client);
    let world = Block::new(1, vec![1; 1_000_001]);
    let refused = lan.peer().send_block(&world);
    assert_eq!(refused, Err(SendError::BlockTooLarge { max: 1_000_000 }));
}

/// The world that players join is sent with the answer to a request, before any program knows of the client.
/// A client that accepts no blocks of its size gets the reason why it has none.
#[test]
fn the_first_block_of_a_server_goes_unasked_to_all_that_accept_it() {
    let world = Block::new(1, vec![1; 1_000_001]);
    let server = server_config().with_first_block(Some(world));
    for (max, has_it) in [(1_000_001, true), (1_000_000, false)] {
        let mut client = client_config();
        client.connection.max_block_bytes = max;
        let mut lan = Lan::new(server.clone());
        lan.add(client);
        lan.run(2_000);
        let is_world = |event: &Event| matches!(event, Event::Block { tag: 1, .. });
        assert_eq!(lan.client_events[0].iter().any(is_world), has_it);
        let not_accepted = matches!(
            end_of(&lan, 0),
            Some(CloseReason::There { code: CloseCode::NOT_ACCEPTED, .. })
        );
        assert_eq!(not_accepted, !has_it, "{:?}", end_of(&lan, 0));
    }
}

/// The wire has 62 bits for a tag: what does not fit is an error, and not another tag at the other end.
#[test]
fn a_tag_arrives_as_it_is_or_is_refused() {
    let largest = (1 << 62) - 1;
    let mut lan = Lan::joined(server_config(), client_config());
    let refused = lan.peer().send_block(&Block::new(largest + 1, vec![1; 10]));
    assert_eq!(refused, Err(SendError::TagTooLarge { tag: largest + 1 }));
    lan.peer().send_block(&Block::new(largest, vec![1; 10])).unwrap();
    lan.run(100);
    let has_come = |event: &Event| matches!(event, Event::Block { tag, .. } if *tag == largest);
    assert!(lan.client_events[0].iter().any(has_come));
}

/// H-4.1c: acks are at most a tenth of the data that they acknowledge.
#[test]
fn acks_are_at_most_a_tenth_of_the_data() {
    for rate_bps in [300_000, 1_000_000, 10_000_000, 100_000_000] {
        let mut server = server_config();
        server.connection.max_rate_bps = rate_bps;
        let mut lan = Lan::joined(server, client_config());
        lan.run(50);
        lan.peer().send_block(&Block::new(1, vec![5; 262_144])).unwrap();
        lan.run(9_000);
        assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
        let (acks, data) = (lan.client(0).stats().ack_bytes_sent, lan.peer().stats().bytes_sent);
        println!("{rate_bps} bit/s: {acks} bytes of acks for {data}");
        assert!(acks * 10 <= data, "{acks} bytes of acks for {data} at {rate_bps} bit/s");
    }
}

/// [H-4a]: only a peer with the keys can close the connection with a malformed frame. A damaged datagram is
/// dropped before its frames are read.
#[test]
fn damage_does_not_end_a_connection() {
    let mut lan = Lan::joined(server_config(), client_config());
    let mut n = 0u64;
    lan.peer().send_block(&Block::new(1, vec![5; 300_000])).unwrap();
    lan.run_with(8_000, |_, datagram| {
        n += 1;
        if n.is_multiple_of(7) {
            let at = (n as usize * 31) % datagram.len();
            datagram[at] ^= 1 << (n % 8);
        }
        true
    });
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
    assert_eq!((end_of(&lan, 0), ends_at_server(&lan)), (None, vec![]));
    assert!(lan.client(0).stats().datagrams_refused > 10);
}

/// H-5.1b: a stalled block ends the connection, and both ends report it.
#[test]
fn a_stalled_block_ends_the_connection() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(100);
    lan.peer().send_block(&Block::new(1, vec![5; 300_000])).unwrap();
    // Slices are lost, small datagrams arrive: the peer is alive.
    lan.run_with(16_000, |_, datagram| datagram.len() < 600);
    let CloseReason::There { code, .. } = end_of(&lan, 0).unwrap() else { panic!() };
    assert_eq!(code.0, 2);
    assert!(matches!(ends_at_server(&lan)[..], [CloseReason::Here(code)] if code.0 == 2));
}

/// H-5.1b: a peer that makes just enough progress to keep its slot is closed after a bounded time.
#[test]
fn a_block_that_crawls_ends_the_connection() {
    let mut server = server_config();
    server.connection.min_block_rate_bps = 100_000;
    let mut lan = Lan::joined(server, client_config());
    lan.run(100);
    lan.peer().send_block(&Block::new(1, vec![5; 1_000_000])).unwrap();
    let mut slices = 0u64;
    // One slice in 20 arrives: enough that there is always progress.
    let mut passes = |_, datagram: &mut Vec<u8>| {
        slices += u64::from(datagram.len() > 600);
        datagram.len() < 600 || slices.is_multiple_of(20)
    };
    // 60 s and 8 Mbit at 100 kbit/s: after 140 s.
    lan.run_with(135_000, &mut passes);
    assert_eq!(end_of(&lan, 0), None);
    lan.run_with(10_000, &mut passes);
    let CloseReason::There { code, .. } = end_of(&lan, 0).unwrap() else { panic!() };
    assert_eq!(code.0, 2);
}

/// H-5.1b: a block does not count as too slow while it is queued behind a long one.
#[test]
fn a_queued_block_has_its_own_time_limit() {
    let mut server = server_config();
    server.connection.max_rate_bps = 200_000;
    let mut lan = Lan::joined(server, client_config());
    lan.run(100);
    // The first takes 80 s, the second may take 70.
    for (tag, bytes) in [(1, 1_900_000), (2, 20_000), (3, 0)] {
        lan.peer().send_block(&Block::new(tag, vec![5; bytes])).unwrap();
    }
    lan.run(95_000);
    assert_eq!(ends_at_server(&lan), [] as [&CloseReason; 0]);
    let blocks = lan.client_events[0].iter().filter_map(|event| match event {
        Event::Block { tag, .. } => Some(*tag),
        _ => None,
    });
    assert!(blocks.eq([3, 1, 2]), "an empty one is whole once it is announced");
}

/// H-4.1c: when each slice is a block, half of them are answered with acks alone, and the others with news
/// that asks for an ack. No peer is answered with more than it sent.
#[test]
fn answers_to_small_blocks_are_no_more_than_what_they_answer() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(1_000);
    let (mut ups, mut downs) = (0u32, 0u32);
    for tag in 0..60 {
        lan.peer().send_block(&Block::new(tag, vec![1; 100])).unwrap();
        lan.run_with(100, |way, _| {
            match way {
                Way::Up(_) => ups += 1,
                Way::Down(_) => downs += 1,
            }
            true
        });
    }
    lan.run(3_000);
    let blocks = |event: &&Event| matches!(event, Event::Block { .. });
    assert_eq!(lan.client_events[0].iter().filter(blocks).count(), 60);
    assert!(ups <= 64, "one for each block, and not {ups} for {downs}");
}

/// News that asked for an ack and was lost comes with the next probe: no block waits for more.
#[test]
fn lost_news_of_small_blocks_comes_with_a_probe() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(1_000);
    let mut ups = 0u32;
    for tag in 0..60 {
        lan.peer().send_block(&Block::new(tag, vec![1; 100])).unwrap();
        lan.run_with(100, |way, _| {
            ups += u32::from(matches!(way, Way::Up(_)));
            !(matches!(way, Way::Up(_)) && ups.is_multiple_of(3))
        });
    }
    lan.run(1_000);
    let sent = at_server(&lan).iter().filter(|it| matches!(it, Event::BlockSent { .. })).count();
    assert_eq!(sent, 60, "{ups}");
}

/// H-4.2g: the completing ack is lost, and no further slice arrives that would repeat it.
#[test]
fn a_completing_ack_is_repeated() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    lan.peer().send_block(&Block::new(1, vec![1; 3_000])).unwrap();
    lan.run_with(1, |way, _| matches!(way, Way::Down(_)));
    assert!(lan.client_events[0].iter().any(is_block) && !lan.peer().all_acked());
    lan.run_with(60, |way, datagram| matches!(way, Way::Up(_)) || datagram.len() < 600);
    assert!(lan.peer().all_acked(), "the server received the ack");
    // The client sends nothing ack-eliciting, so nothing confirms the ack: it is repeated a few times.
    let mut ups = 0;
    lan.run_with(4_000, |way, _| {
        ups += u32::from(matches!(way, Way::Up(_)));
        true
    });
    assert!(ups <= 5, "{ups} datagrams of an idle client");
}

/// H-4.2g: a client that sends anyway learns from the server's acks that its completing ack arrived.
#[test]
fn a_confirmed_completing_ack_is_not_repeated() {
    let ups = |is_sending: bool| {
        let mut lan = Lan::joined(server_config(), client_config());
        lan.run(500);
        lan.peer().send_block(&Block::new(1, vec![1; 60_000])).unwrap();
        while !lan.client_events[0].iter().any(is_block) {
            lan.run(1);
        }
        lan.run(6);
        if is_sending {
            lan.client(0).send_message(&b"here"[..]).unwrap();
        }
        let mut ups = 0;
        lan.run_with(1_000, |way, _| {
            ups += u32::from(matches!(way, Way::Up(_)));
            true
        });
        ups
    };
    let (silent, talking) = (ups(false), ups(true));
    assert!(talking + 2 < silent, "{talking} datagrams, {silent} of an idle client");
}

/// H-4.5b: a client that falls silent, or whose address was forged, is sent a second of the rate and no
/// more. A client that answers again gets the rest.
#[test]
fn slices_stop_while_the_peer_is_silent() {
    let mut server = server_config();
    server.connection.max_rate_bps = 8_000_000;
    let mut lan = Lan::joined(server, client_config());
    lan.run(500);
    lan.peer().send_block(&Block::new(1, vec![5; 4_000_000])).unwrap();
    lan.run(500);
    let before = lan.peer().stats().bytes_sent;
    lan.run_with(9_000, |_, _| false);
    let silent = lan.peer().stats().bytes_sent - before;
    assert!(silent <= 1_200_000, "{silent} bytes into nine seconds of silence");
    lan.run(9_000);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
}
