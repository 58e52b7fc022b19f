//! The sender: which messages it takes, how it cuts them, which parts it sends again.

use alloc::vec;

use proptest::prelude::*;

use super::*;

/// A sender to a peer of 4 channels.
fn sender(max_queued_bytes: usize) -> MessageSender {
    MessageSender::new(4, WINDOW, max_queued_bytes)
}

fn limit(channel: u8, messages: u64, bytes: u64) -> ChannelLimitFrame {
    ChannelLimitFrame { channel, messages, bytes }
}

/// Number, offset and length of each.
fn ranges(parts: &[SentPart]) -> Vec<(u32, u16, u16)> {
    parts.iter().map(|part| (part.number, part.offset, part.units)).collect()
}

fn acked(sender: &mut MessageSender, parts: &[SentPart]) -> Vec<MessageEvent> {
    let events = parts.iter().flat_map(|&part| sender.on_acked(part)).collect();
    sender.check_invariants();
    events
}

#[test]
fn sizes() {
    assert!(size_of::<MessageSender>() <= 88, "{}", size_of::<MessageSender>());
    assert!(size_of::<MessageReceiver>() <= 120, "{}", size_of::<MessageReceiver>());
    assert!(size_of::<Lanes>() <= 56, "{}", size_of::<Lanes>());
    assert!(size_of::<outbox::Outbox>() <= 144, "{}", size_of::<outbox::Outbox>());
    assert!(size_of::<inbox::Inbox>() <= 128, "{}", size_of::<inbox::Inbox>());
    assert!(size_of::<SentPart>() <= 12, "{}", size_of::<SentPart>());
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_reason() {
    let mut sender = sender(1000);
    let refused = |sender: &mut MessageSender, channel, bytes| {
        sender.send(channel, Order::Ordered, message(bytes)).unwrap_err()
    };
    let error = refused(&mut sender, 0, 65_537);
    assert_eq!(error, SendMessageError::TooLarge);
    assert!(alloc::format!("{error}").contains("send it as a block"));
    let error = refused(&mut sender, 4, 1);
    assert_eq!(error, SendMessageError::NoSuchChannel { accepted: 4 });
    assert!(alloc::format!("{error}").contains("`max_channels`"));
    assert!(sender.all_acked() && !sender.has_due(), "none was queued");
    assert_eq!(sender.send(3, Order::Ordered, message(65_536)), Ok(0), "an empty queue takes any");
    let error = refused(&mut sender, 3, 0);
    assert_eq!(error, SendMessageError::QueueFull);
    assert!(alloc::format!("{error}").contains("`max_queued_message_bytes`"));
    assert_eq!(
        sender.send(2, Order::Ordered, message(0)),
        Ok(0),
        "another channel has a queue of its own"
    );
    sender.check_invariants();
}

/// Empty messages are counted too.
#[test]
fn a_channel_that_was_refused_is_writable_once_there_is_room() {
    let mut sender = sender(640);
    for number in 0..10 {
        assert_eq!(sender.send(1, Order::Ordered, message(0)), Ok(number));
    }
    let parts = polled(&mut sender, 1, 1200);
    assert_eq!(parts.len(), 10);
    assert_eq!(sender.send(1, Order::Ordered, message(64)), Err(SendMessageError::QueueFull));
    let ack = |number| MessageEvent::Acked { channel: 1, number };
    assert_eq!(acked(&mut sender, &parts[1..2]), [ack(1)], "its place is not free yet");
    let writable = MessageEvent::Writable { channel: 1 };
    assert_eq!(acked(&mut sender, &parts[..1]), [ack(0), writable]);
    assert_eq!(acked(&mut sender, &parts[2..3]), [ack(2)], "once");
    assert_eq!(sender.send(1, Order::Ordered, message(64)), Ok(10));
    assert_eq!(acked(&mut sender, &parts[3..]).len(), 7);
    let last = polled(&mut sender, 1, 1200);
    assert!(!sender.all_acked());
    assert_eq!(acked(&mut sender, &last), [ack(10)]);
    assert!(sender.all_acked());
}

/// A game sends one message to thousands of players.
#[test]
fn a_message_is_not_copied_and_is_freed_with_its_ack() {
    let data = Bytes::from(vec![7; 9000]);
    let mut senders: Vec<_> = (0..100).map(|_| sender(1 << 20)).collect();
    for sender in &mut senders {
        sender.send(0, Order::Unordered, data.clone()).unwrap();
    }
    let used = allocation_counter::measure(|| {
        for sender in &mut senders {
            sender.send(0, Order::Unordered, data.clone()).unwrap();
        }
    });
    assert_eq!(used.bytes_total, 0);
    for sender in &mut senders {
        let parts = polled(sender, 0, 1200);
        acked(sender, &parts);
    }
    assert!(data.is_unique());
}

#[test]
fn a_message_fills_what_is_left_but_small_ones_are_not_cut() {
    let mut sender = sender(1 << 20);
    sender.send(0, Order::Ordered, message(512)).unwrap();
    sender.send(0, Order::Ordered, message(3000)).unwrap();
    assert_eq!(polled(&mut sender, 0, 517), [], "5 bytes of head, with a length of 2");
    let first = polled(&mut sender, 0, 518);
    assert_eq!(ranges(&first), [(0, 0, 512)]);
    // Of a part that is not the last: a head of 9 bytes and at least 512.
    assert_eq!(sender.due().collect::<Vec<_>>(), [(0, 521)]);
    let mut out = Vec::new();
    assert_eq!(sender.poll(0, 520, &mut out), None);
    let second = sender.poll(0, 521, &mut out).unwrap();
    assert_eq!((second.offset, second.units, out.len()), (0, 512, 521));
    let rest = polled(&mut sender, 0, 1200);
    assert_eq!(ranges(&rest), [(1, 512, 1190), (1, 1702, 1190), (1, 2892, 108)]);
    assert_eq!(acked(&mut sender, &rest), []);
    assert_eq!(acked(&mut sender, &[second]), [MessageEvent::Acked { channel: 0, number: 1 }]);
}

#[test]
fn exactly_what_was_lost_is_sent_again_first() {
    let mut sender = sender(1 << 20);
    sender.send(0, Order::Ordered, message(5000)).unwrap();
    let parts = polled(&mut sender, 0, 1200);
    assert_eq!(ranges(&parts).len(), 5);
    sender.send(0, Order::Ordered, message(0)).unwrap();
    for lost in [3, 1, 2] {
        sender.on_lost(parts[lost]);
        sender.check_invariants();
    }
    assert_eq!(acked(&mut sender, &[parts[0], parts[4]]), []);
    // The three are one range: a datagram with more room takes more of it.
    let again = polled(&mut sender, 0, 3000);
    let (from, to) = (parts[1].offset, parts[4].offset);
    assert_eq!((again[0].offset, again[0].units), (from, 2990));
    assert_eq!((again[1].offset + again[1].units, again[2].number), (to, 1));
    let all = |number| MessageEvent::Acked { channel: 0, number };
    assert_eq!(acked(&mut sender, &again), [all(0), all(1)]);
    assert!(sender.all_acked() && !sender.has_due());
    sender.on_lost(again[2]);
    sender.check_invariants();
    assert!(!sender.has_due(), "of a message that is gone");
    sender.send(0, Order::Ordered, message(9)).unwrap();
    assert_eq!(ranges(&polled(&mut sender, 0, 1200)), [(2, 0, 9)]);
}

/// The bytes of STANDARD-1, 4, written by hand: type 18, flags, channel, number, [whole, offset], length.
#[test]
fn the_frames_are_those_of_the_page() {
    let mut sender = MessageSender::new(256, WINDOW, 1 << 20);
    let polled = |sender: &mut MessageSender, channel, room| {
        let mut out = Vec::new();
        sender.poll(channel, room, &mut out).unwrap();
        out
    };
    sender.send(2, Order::Ordered, Bytes::from_static(b"hi")).unwrap();
    assert_eq!(polled(&mut sender, 2, 1200), [18, 0, 2, 0, 2, b'h', b'i']);
    sender.send(2, Order::Unordered, Bytes::new()).unwrap();
    assert_eq!(polled(&mut sender, 2, 5), [18, 1, 2, 1, 0]);
    sender.send(255, Order::Unordered, Bytes::from(vec![9; 3000])).unwrap();
    let first = polled(&mut sender, 255, 1009);
    assert_eq!(first[..9], [18, 3, 255, 0, 0x4b, 0xb8, 0, 0x43, 0xe8], "1000 of 3000, from 0");
    assert_eq!(first.len(), 1009);
    let second = polled(&mut sender, 255, 2010);
    assert_eq!(
        second[..10],
        [18, 3, 255, 0, 0x4b, 0xb8, 0x43, 0xe8, 0x47, 0xd0],
        "2000, from 1000"
    );
    assert_eq!(second.len(), 2010);
    sender.send(0, Order::Ordered, Bytes::from(vec![9; 65_536])).unwrap();
    let part = polled(&mut sender, 0, 523);
    assert_eq!(part[..11], [18, 2, 0, 0, 0x80, 1, 0, 0, 0, 0x42, 0]);
}

/// What docs/CHANNELS.md says: heads of 5 to 11 bytes, of parts 9 to 17, and the largest message in 57 parts.
#[test]
fn what_a_message_costs() {
    let numbers = [0, 64, 16_384];
    let of_whole =
        |bytes: usize| numbers.map(|number| MessageFrame::head_bytes(number, None, bytes));
    assert_eq!([of_whole(63), of_whole(64), of_whole(16_384)], [[5, 6, 8], [6, 7, 9], [8, 9, 11]]);
    let of_part = |whole, offset| {
        numbers.map(|number| {
            MessageFrame::head_bytes(number, Some(MessagePart { whole, offset }), 512)
        })
    };
    assert_eq!([of_part(513, 0), of_part(65_536, 65_024)], [[9, 10, 12], [14, 15, 17]]);
    let mut sender = sender(1 << 20);
    sender.send(0, Order::Ordered, message(65_536)).unwrap();
    let mut out = Vec::new();
    let parts = core::iter::from_fn(|| sender.poll(0, 1171, &mut out)).count();
    assert_eq!((parts, out.len() - 65_536), (57, 767), "1.2 %");
}

/// A message counts as a whole when it is begun, or parts of several could wait for each other for ever.
#[test]
fn limits_are_obeyed_and_only_rise() {
    let mut sender = sender(1 << 20);
    for bytes in [65_536, 65_000, 537, 0] {
        sender.send(0, Order::Unordered, message(bytes)).unwrap();
    }
    let parts = polled(&mut sender, 0, 1200);
    assert_eq!(parts.iter().map(|part| part.number).max(), Some(1), "131,073 bytes are too many");
    assert!(!sender.has_due());
    sender.on_lost(parts[7]);
    assert_eq!(polled(&mut sender, 0, 1200).len(), 1, "what is begun needs no new limit");
    let begun = 130_536;
    assert_eq!(sender.on_limit(limit(0, 256, begun + WINDOW + 1)), Err(MessageViolation::BadLimit));
    assert_eq!(sender.on_limit(limit(0, 259, begun)), Err(MessageViolation::BadLimit));
    assert!(!sender.has_due(), "a wrong limit changes nothing");
    assert_eq!(sender.on_limit(limit(0, 256, WINDOW + 1)), Ok(()));
    assert_eq!(sender.on_limit(limit(0, 255, WINDOW)), Ok(()), "an old one");
    assert_eq!(polled(&mut sender, 0, 1200).len(), 2, "537 bytes, and 0");
    for _ in 0..300 {
        sender.send(0, Order::Ordered, message(0)).unwrap();
    }
    assert_eq!(polled(&mut sender, 0, 1200).len(), 252);
    assert_eq!(sender.on_limit(limit(0, 512, WINDOW)), Ok(()));
    assert_eq!(polled(&mut sender, 0, 1200).len(), 48);
}

#[test]
fn limits_of_channels_that_were_not_used_are_no_more_than_the_initial_value() {
    let mut sender = sender(1 << 20);
    assert_eq!(sender.on_limit(limit(4, 1, 1)), Err(MessageViolation::NoSuchChannel));
    assert_eq!(sender.on_limit(limit(3, 257, 1)), Err(MessageViolation::BadLimit));
    let used = allocation_counter::measure(|| {
        assert_eq!(sender.on_limit(limit(3, 256, WINDOW)), Ok(()));
    });
    assert_eq!(used.bytes_total, 0, "a channel that was not used costs nothing");
}

/// Without credit, with a full queue, or with a lost part on one channel, the others go on.
#[test]
fn no_channel_delays_another() {
    let mut sender = sender(70_000);
    sender.send(0, Order::Ordered, message(65_536)).unwrap();
    let lost = polled(&mut sender, 0, 1200)[0];
    for number in 0..300 {
        sender.send(1, Order::Ordered, message(0)).unwrap();
        assert_eq!(polled(&mut sender, 1, 1200).len(), usize::from(number < 256));
    }
    sender.send(2, Order::Ordered, message(9)).unwrap();
    sender.on_lost(lost);
    let due: Vec<_> = sender.due().map(|(channel, _)| channel).collect();
    assert_eq!(
        due,
        [0, 2],
        "the lost part of one, the message of another, not the one without credit"
    );
    assert_eq!(ranges(&polled(&mut sender, 2, 20)), [(0, 0, 9)]);
}

/// The number of a part has 32 bits in a ledger, that of a message 62.
#[test]
fn numbers_go_beyond_32_bits() {
    let outbox = outbox::Outbox::starting_at(WINDOW, (1 << 32) - 2);
    let mut sender = MessageSender::with(3, outbox, WINDOW);
    for number in (1 << 32) - 2..(1 << 32) + 2 {
        assert_eq!(sender.send(3, Order::Ordered, message(5)), Ok(number));
    }
    let parts = polled(&mut sender, 3, 1200);
    assert_eq!(
        parts.iter().map(|part| part.number).collect::<Vec<_>>(),
        [u32::MAX - 1, u32::MAX, 0, 1]
    );
    sender.on_lost(parts[2]);
    assert_eq!(polled(&mut sender, 3, 1200), [parts[2]]);
    let events = acked(&mut sender, &parts);
    assert_eq!(events[3], MessageEvent::Acked { channel: 3, number: (1 << 32) + 1 });
    assert!(sender.all_acked());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Lanes ask for the room that the next frame takes, so it has to be exact.
    #[test]
    fn the_least_room_is_exact(
        sizes in prop::collection::vec(0..4000usize, 1..8),
        rooms in prop::collection::vec(1..1500usize, 1..80), losses in any::<u64>(),
    ) {
        let mut sender = sender(1 << 20);
        for bytes in sizes {
            sender.send(0, Order::Ordered, message(bytes)).unwrap();
        }
        for (n, room) in (0..64).cycle().zip(rooms) {
            let Some((0, least)) = sender.due().next() else { break };
            let mut out = Vec::new();
            prop_assert_eq!(sender.poll(0, least - 1, &mut out), None);
            prop_assert!(out.is_empty());
            let sent = sender.poll(0, room, &mut out);
            prop_assert_eq!(sent.is_some(), room >= least, "{} {}", room, least);
            prop_assert!(out.len() <= room);
            if let Some(part) = sent.filter(|_| losses >> n & 1 == 1) {
                sender.on_lost(part);
            }
            sender.check_invariants();
        }
    }
}
