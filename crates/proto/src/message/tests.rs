//! Messages between a sender and a receiver, and what a peer can try on either.

use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;

use super::receiver::Arrival;
use super::*;

mod datagrams;

fn filled(sender: &mut MessageSender, count: usize) {
    for _ in 0..count {
        sender.send(Bytes::from_static(b"x")).unwrap();
    }
}

fn polled(sender: &mut MessageSender) -> Vec<u32> {
    core::iter::from_fn(|| sender.poll(1200)).map(|(number, _)| number).collect()
}

#[test]
fn sizes() {
    assert!(size_of::<MessageSender>() <= 72, "{}", size_of::<MessageSender>());
    assert!(size_of::<MessageReceiver>() <= 48, "{}", size_of::<MessageReceiver>());
}

#[test]
fn what_is_too_large_or_too_many_is_not_taken() {
    let mut sender = MessageSender::new(3, 2048);
    let large = Bytes::from(vec![0; 1025]);
    assert_eq!(sender.send(large.clone()), Err(SendMessageError::TooLarge));
    assert_eq!(sender.send(large.slice(1..)), Ok(0));
    assert_eq!(sender.send(large.slice(1..)), Ok(1));
    assert_eq!(sender.send(Bytes::from_static(b"x")), Err(SendMessageError::QueueFull), "bytes");
    assert_eq!(sender.send(Bytes::new()), Ok(2));
    assert_eq!(sender.send(Bytes::new()), Err(SendMessageError::QueueFull), "count");
    assert_eq!(polled(&mut sender), [0, 1, 2]);
    assert!(sender.on_acked(1), "bytes are free at once, places from the front");
    assert_eq!(sender.queued_bytes(), 1024);
    assert_eq!(sender.send(Bytes::new()), Err(SendMessageError::QueueFull));
    assert!(sender.on_acked(0) && !sender.on_acked(0));
    assert_eq!(sender.send(Bytes::new()), Ok(3));
    sender.check_invariants();
}

#[test]
fn lost_ones_go_first_and_nothing_goes_where_it_does_not_fit() {
    let mut sender = MessageSender::default();
    filled(&mut sender, 5);
    assert_eq!(sender.poll(7), None);
    assert_eq!(sender.poll(8).map(|(number, _)| number), Some(0));
    assert_eq!(sender.poll(8).map(|(number, _)| number), Some(1));
    sender.on_lost(1);
    sender.on_lost(0);
    sender.on_lost(0);
    sender.on_lost(4);
    sender.check_invariants();
    assert_eq!(polled(&mut sender), [0, 1, 2, 3, 4], "4 was not in flight, so it was not lost");
    assert!(!sender.has_due() && !sender.all_acked());
    assert!([3, 1, 0, 4, 2].into_iter().all(|number| sender.on_acked(number)));
    assert!(sender.all_acked() && sender.queued_bytes() == 0);
}

#[test]
fn the_limit_is_obeyed_and_only_rises() {
    let mut sender = MessageSender::default();
    filled(&mut sender, 400);
    assert_eq!(polled(&mut sender).len(), 256);
    assert_eq!(sender.on_limit(384), Ok(()));
    assert_eq!(sender.on_limit(300), Ok(()), "an old one");
    assert_eq!(polled(&mut sender).len(), 128);
    assert_eq!(sender.on_limit(384 + 257), Err(MessageViolation::BadLimit));
    assert!(!sender.has_due(), "a wrong limit changes nothing");
    assert_eq!(sender.on_limit(384 + 256), Ok(()));
    assert_eq!(polled(&mut sender).len(), 16);
    sender.check_invariants();
}

#[test]
fn a_message_beyond_the_limit_is_a_violation() {
    let mut receiver = MessageReceiver::new();
    assert_eq!(receiver.receive(256, b""), Err(MessageViolation::BeyondLimit));
    assert_eq!(receiver.receive(u32::MAX, b""), Err(MessageViolation::BeyondLimit));
    assert_eq!(receiver.receive(0, &[0; 1025]), Err(MessageViolation::TooLarge));
    assert_eq!(receiver.receive(255, &[0; 1024]), Ok(Arrival::New));
    assert_eq!(receiver.receive(255, b""), Ok(Arrival::Duplicate));
    assert_eq!(receiver.receive(0, b""), Ok(Arrival::New));
    assert!(receiver.pop().is_some());
    assert_eq!(receiver.receive(0, b""), Ok(Arrival::Duplicate), "read before");
    // What was read raises the limit once that was sent, not before.
    assert_eq!(receiver.receive(256, b""), Err(MessageViolation::BeyondLimit));
    receiver.check_invariants();
}

#[test]
fn the_limit_is_raised_after_half_a_window_and_again_if_lost() {
    let mut receiver = MessageReceiver::new();
    let read = |receiver: &mut MessageReceiver, numbers: core::ops::Range<u32>| {
        for number in numbers {
            assert_eq!(receiver.receive(number, b"x"), Ok(Arrival::New));
            assert!(receiver.pop().is_some());
        }
    };
    read(&mut receiver, 0..127);
    assert_eq!(receiver.limit_due(), None);
    read(&mut receiver, 127..128);
    assert_eq!(receiver.limit_due(), Some(384));
    receiver.on_limit_sent(384);
    assert_eq!(receiver.limit_due(), None);
    read(&mut receiver, 128..138);
    receiver.on_limit_lost(384);
    assert_eq!(receiver.limit_due(), Some(394), "as far as it goes by now");
    receiver.on_limit_sent(394);
    receiver.on_limit_lost(384);
    assert_eq!(receiver.limit_due(), None, "a later one is under way");
    receiver.check_invariants();
}

#[test]
fn the_last_number_is_refused_with_a_reason() {
    let mut sender = MessageSender::with_numbers_left(2);
    let mut receiver = MessageReceiver::starting_at(u32::MAX - 2);
    assert_eq!(sender.send(Bytes::new()), Ok(u32::MAX - 2));
    assert_eq!(sender.send(Bytes::new()), Ok(u32::MAX - 1));
    assert_eq!(sender.send(Bytes::new()), Err(SendMessageError::NumbersUsedUp));
    while let Some((number, data)) = sender.poll(1200) {
        assert_eq!(receiver.receive(number, &data), Ok(Arrival::New));
        assert!(receiver.pop().is_some() && sender.on_acked(number));
    }
    assert_eq!(sender.send(Bytes::new()), Err(SendMessageError::NumbersUsedUp));
    assert_eq!(receiver.limit_due(), None);
    sender.check_invariants();
    receiver.check_invariants();
}

/// Numbers near their end are not stuck below a limit that can no longer rise by half a window.
#[test]
fn the_last_limit_is_a_shorter_step() {
    let mut receiver = MessageReceiver::starting_at(u32::MAX - 256 - 10);
    for number in u32::MAX - 266..u32::MAX - 256 {
        assert_eq!(receiver.receive(number, b""), Ok(Arrival::New));
        assert!(receiver.pop().is_some());
    }
    assert_eq!(receiver.limit_due(), Some(u32::MAX));
    receiver.on_limit_sent(u32::MAX);
    assert_eq!(receiver.limit_due(), None);
}

/// What the link does with a datagram of one message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// It arrives, and again at the end of the round.
    Doubled,
    /// It arrives, and is called lost all the same.
    Misjudged,
}

fn fates() -> impl Strategy<Value = Vec<(Fate, u8)>> {
    let fate = prop_oneof![
        3 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Doubled),
        1 => Just(Fate::Misjudged),
    ];
    prop::collection::vec((fate, any::<u8>()), 1..100)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Each message once and in order, over a link that loses, doubles, reorders and lies.
    #[test]
    fn every_message_once_in_order(
        total in 1..900u32, fates in fates(), bursts in prop::collection::vec(1..40usize, 1..20),
        reads in prop::collection::vec(0..60usize, 1..20),
    ) {
        let (mut sender, mut receiver) = (MessageSender::new(100, 4000), MessageReceiver::new());
        let mut fates = fates.iter().copied().chain([(Fate::Arrives, 0)]).cycle();
        let (mut bursts, mut reads) = (bursts.iter().cycle(), reads.iter().chain([&1]).cycle());
        let (mut sent, mut read) = (0, 0);
        for round in 0.. {
            prop_assert!(round < 60_000, "no progress: {read} of {total}");
            while sent < total && sender.send(content(sent)).is_ok() {
                sent += 1;
            }
            let mut round = Vec::new();
            let burst = bursts.next().copied().unwrap_or(1);
            for (number, data) in core::iter::from_fn(|| sender.poll(1200)).take(burst) {
                let (fate, order) = fates.next().unwrap();
                round.push((order, number, data.clone(), fate));
                if let Fate::Doubled = fate {
                    round.push((order.wrapping_add(128), number, data, Fate::Arrives));
                }
            }
            round.sort_by_key(|&(order, ..)| order);
            for (_, number, data, fate) in round {
                if !matches!(fate, Fate::Lost) {
                    prop_assert!(receiver.receive(number, &data).is_ok());
                }
                match fate {
                    Fate::Arrives | Fate::Doubled => {
                        let _news = sender.on_acked(number);
                    }
                    Fate::Lost | Fate::Misjudged => sender.on_lost(number),
                }
                sender.check_invariants();
                receiver.check_invariants();
            }
            let count = reads.next().copied().unwrap_or(1);
            for data in core::iter::from_fn(|| receiver.pop()).take(count) {
                prop_assert_eq!(data, content(read));
                read += 1;
            }
            if let Some(limit) = receiver.limit_due() {
                receiver.on_limit_sent(limit);
                match fates.next() {
                    Some((Fate::Lost, _)) => receiver.on_limit_lost(limit),
                    _ => prop_assert!(sender.on_limit(limit).is_ok()),
                }
            }
            if read == total && sender.all_acked() {
                break;
            }
        }
        prop_assert_eq!((sender.queued_bytes(), receiver.pop()), (0, None));
        prop_assert!(receiver.next_number() == total);
    }

    /// A peer may send what it likes: it holds one window at most, and nothing once that is read.
    #[test]
    fn a_hostile_sender_holds_one_window(
        numbers in prop::collection::vec(prop_oneof![0..300u32, any::<u32>()], 1..600),
    ) {
        let mut receiver = MessageReceiver::new();
        let mut taken = 0;
        for number in numbers {
            if receiver.receive(number, &[0; 1024]) == Ok(Arrival::New) {
                taken += 1;
            }
            prop_assert!(taken <= 256);
            receiver.check_invariants();
        }
    }
}

fn content(number: u32) -> Bytes {
    let length = number as usize * 37 % 200;
    Bytes::from([&number.to_le_bytes()[..], &vec![7; length]].concat())
}
