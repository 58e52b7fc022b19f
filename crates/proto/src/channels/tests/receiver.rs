//! The receiver: what is delivered when, what is a violation, and when limits are raised.

use alloc::vec;

use super::*;
use crate::transit::SentLimit;

fn receiver() -> MessageReceiver {
    MessageReceiver::new(4, WINDOW)
}

fn receive(
    receiver: &mut MessageReceiver,
    frame: &MessageFrame<'_>,
) -> Result<Arrival, MessageViolation> {
    let arrival = receiver.receive(frame);
    receiver.check_invariants();
    arrival
}

/// The first byte of each message that can be read.
fn delivered(receiver: &mut MessageReceiver) -> Vec<u8> {
    read(receiver).into_iter().map(|(_, data)| data[0]).collect()
}

/// The limit that is due, as the peer reads it.
fn polled_limit(receiver: &mut MessageReceiver) -> Option<(ChannelLimitFrame, SentLimit)> {
    let mut out = Vec::new();
    assert_eq!(receiver.poll_limit(17, &mut out), None);
    let sent = receiver.poll_limit(18, &mut out)?;
    receiver.check_invariants();
    match Frames::of(&out).next() {
        Some(Ok(Frame::ChannelLimit(frame))) => Some((frame, sent)),
        other => panic!("{other:?}"),
    }
}

/// `(number, is unordered, what can be read after it)`, one after the other.
#[test]
fn ordered_messages_wait_for_ordered_ones_alone() {
    let rows: [(u8, bool, &[u8]); 9] = [
        (2, false, &[]),     // 0 and 1 are missing, and may be ordered
        (1, true, &[1]),     // at once
        (0, false, &[0, 2]), // and what waited for it
        (5, true, &[5]),     // at once, although 3 and 4 are missing
        (6, false, &[]),     // waits for 3 and 4
        (3, false, &[3]),    // the next one
        (5, true, &[]),      // again
        (4, true, &[4, 6]),  // it was not to be waited for, but nobody knew
        (6, false, &[]),     // again
    ];
    let mut receiver = receiver();
    for (number, is_unordered, expected) in rows {
        let data = [number];
        let frame = MessageFrame { is_unordered, ..whole(0, number.into(), &data) };
        receive(&mut receiver, &frame).unwrap();
        assert_eq!(delivered(&mut receiver), expected, "after {number}");
    }
}

/// An ordered message does not wait for the rest of an unordered one.
#[test]
fn an_incomplete_unordered_message_holds_nothing_up() {
    let mut receiver = receiver();
    assert_eq!(receive(&mut receiver, &whole(0, 1, &[1])), Ok(Arrival::New));
    assert!(delivered(&mut receiver).is_empty());
    assert_eq!(receive(&mut receiver, &unordered(part(0, 2, 1, &[9]))), Ok(Arrival::New));
    assert_eq!(delivered(&mut receiver), [1]);
    assert_eq!(receive(&mut receiver, &unordered(part(0, 2, 0, &[0]))), Ok(Arrival::New));
    assert_eq!(delivered(&mut receiver), [0]);
    assert_eq!(receive(&mut receiver, &unordered(part(0, 2, 0, &[0]))), Ok(Arrival::Duplicate));
}

#[test]
fn a_message_is_delivered_once_from_any_parts() {
    let mut receiver = receiver();
    let bytes = message(3000);
    for (offset, end, is_new) in [
        (2000, 3000, true),
        (2500, 2600, false),
        (0, 1200, true),
        (1000, 2001, true),
        (0, 9, false),
    ] {
        let frame = part(0, 3000, offset as u32, &bytes[offset..end]);
        let expected = if is_new { Arrival::New } else { Arrival::Duplicate };
        assert_eq!(receive(&mut receiver, &frame), Ok(expected));
    }
    assert_eq!(read(&mut receiver), [(0, bytes.clone())]);
    assert_eq!(receive(&mut receiver, &whole(0, 0, &bytes)), Ok(Arrival::Duplicate));
    assert_eq!(receiver.pop(), None);
}

/// What is missing on one channel delays no other.
#[test]
fn channels_do_not_wait_for_each_other() {
    let mut receiver = receiver();
    for frame in [
        whole(0, 1, &[1]),
        part(0, 2, 0, &[0]),
        whole(3, 0, &[30]),
        whole(1, 1, &[11]),
        whole(3, 1, &[31]),
    ] {
        receive(&mut receiver, &frame).unwrap();
    }
    assert_eq!(delivered(&mut receiver), [30, 31]);
}

#[test]
fn violations() {
    let window = vec![0; 65_536];
    let full = || {
        let mut full = receiver();
        receive(&mut full, &whole(0, 9, &window)).unwrap();
        receive(&mut full, &part(10, 65_536, 7, &[7, 8, 9])).unwrap();
        receive(&mut full, &whole(0, 255, &[])).unwrap();
        full
    };
    let rows = [
        (whole(4, 0, &[]), MessageViolation::NoSuchChannel),
        (whole(0, 256, &[]), MessageViolation::BeyondLimit),
        (whole(0, u64::MAX, &[]), MessageViolation::BeyondLimit),
        (whole(0, 11, &[1]), MessageViolation::BeyondLimit),
        (part(11, 1, 0, &[1]), MessageViolation::BeyondLimit),
        (unordered(whole(0, 9, &window)), MessageViolation::Contradiction),
        (part(9, 65_535, 0, &[0]), MessageViolation::Contradiction),
        (part(9, 65_536, 65_535, &[1]), MessageViolation::Contradiction),
        (part(10, 65_535, 1, &[0]), MessageViolation::Contradiction),
        (part(10, 65_536, 8, &[7]), MessageViolation::Contradiction),
        (unordered(part(10, 65_536, 7, &[7])), MessageViolation::Contradiction),
    ];
    for (frame, violation) in rows {
        assert_eq!(receive(&mut full(), &frame), Err(violation), "{frame:?}");
    }
    let mut full = full();
    assert_eq!(receive(&mut full, &part(10, 65_536, 8, &[8])), Ok(Arrival::Duplicate));
    assert_eq!(
        receive(&mut full, &whole(1, 0, &window)),
        Ok(Arrival::New),
        "limits are a channel's"
    );
}

#[test]
fn the_limit_is_raised_after_half_a_window_and_again_if_lost() {
    let mut receiver = receiver();
    let mut number = 0;
    let mut take = |receiver: &mut MessageReceiver, count, bytes: usize| {
        for _ in 0..count {
            let data = message(bytes);
            assert_eq!(receive(receiver, &whole(2, number, &data)), Ok(Arrival::New));
            assert_eq!(receiver.pop(), Some((2, data)));
            receiver.check_invariants();
            number += 1;
        }
    };
    let limit = |messages, bytes| ChannelLimitFrame { channel: 2, messages, bytes };
    take(&mut receiver, 127, 1);
    assert_eq!(polled_limit(&mut receiver), None);
    take(&mut receiver, 1, 1);
    let (frame, first) = polled_limit(&mut receiver).unwrap();
    assert_eq!(frame, limit(128 + 256, 128 + WINDOW));
    assert_eq!(polled_limit(&mut receiver), None);
    take(&mut receiver, 10, 1);
    receiver.on_limit_lost(first);
    let (frame, second) = polled_limit(&mut receiver).unwrap();
    assert_eq!(frame, limit(138 + 256, 138 + WINDOW), "as far as it goes by now");
    receiver.on_limit_lost(first);
    assert_eq!(polled_limit(&mut receiver), None, "a later one is under way");
    take(&mut receiver, 1, 65_535);
    assert_eq!(polled_limit(&mut receiver), None, "one byte less than half");
    take(&mut receiver, 1, 1);
    let (frame, _) = polled_limit(&mut receiver).unwrap();
    assert_eq!(frame, limit(140 + 256, 138 + 65_536 + WINDOW));
    receiver.on_limit_lost(second);
    assert_eq!(polled_limit(&mut receiver), None);
}

/// The bytes of STANDARD-1, 4, written by hand: type 19, channel, messages, bytes.
#[test]
fn the_limit_frame_is_that_of_the_page() {
    let mut receiver = receiver();
    for number in 0..128 {
        receive(&mut receiver, &whole(2, number, &[1])).unwrap();
        assert!(receiver.pop().is_some());
    }
    let mut out = Vec::new();
    assert_eq!(receiver.poll_limit(18, &mut out), Some(SentLimit { channel: 2, serial: 1 }));
    assert_eq!(out, [19, 2, 0x41, 0x80, 0x80, 2, 0, 0x80], "384 messages, 131,200 bytes");
}

/// With a window of one largest message, half of it read would leave no room for the next one, and both
/// ends would wait for ever.
#[test]
fn the_smallest_window_carries_the_largest_message_after_any_other() {
    for channel_bytes in [65_536, 65_537, 100_000, 131_071, 131_072] {
        let mut sender = MessageSender::new(1, channel_bytes, 1 << 20);
        let mut receiver = MessageReceiver::new(1, channel_bytes);
        for bytes in [1, 65_536, 30_000, 65_536, 0, 65_536, 32_769, 65_536] {
            sender.send(0, Order::Ordered, message(bytes)).unwrap();
            loop {
                let mut out = Vec::new();
                let Some(part) = sender.poll(0, 1200, &mut out) else { break };
                let Some(Ok(Frame::Message(frame))) = Frames::of(&out).next() else { panic!() };
                receive(&mut receiver, &frame).unwrap();
                let _events = sender.on_acked(part).count();
                while receiver.pop().is_some() {}
                if let Some((limit, _)) = polled_limit(&mut receiver) {
                    sender.on_limit(limit).unwrap();
                }
            }
            assert!(sender.all_acked(), "{bytes} bytes wait for ever, window {channel_bytes}");
        }
    }
}
