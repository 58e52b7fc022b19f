//! The chunk receiver, point by point: when it acks, what it holds, what it drops.

use std::time::Duration;

use haulier_article::PacketDropReason;
use haulier_article::chunk::{
    ChunkId, ChunkReceiver, ChunkReceiverConfig, MAX_CHUNK_BYTES, ReceiverState, SliceArrival,
    SliceSet,
};

use crate::support::{data, ms, receiver, slice};

#[test]
fn no_slice_no_ack() {
    let mut receiver = receiver();
    assert_eq!(receiver.poll_ack(ms(0)), None);
    let chunk = data(0, 3_000);
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    assert_eq!(receiver.poll_ack(ms(0)).unwrap().received.len(), 1);
    // The 2016 original sent 858 acks in 100 s of silence.
    for millis in 1..9_000 {
        assert_eq!(receiver.poll_ack(ms(millis)), None);
    }
}

/// "If somebody sends you 1000 slice packets [...] sent one ack packet instead": at most one per
/// interval, whatever comes in.
#[test]
fn a_flood_of_slices_gets_an_ack_per_interval() {
    let mut receiver = receiver();
    let chunk = vec![3; MAX_CHUNK_BYTES];
    let mut acks = 0;
    for millis in 0..1_000 {
        for _ in 0..100 {
            let _ = receiver.handle_slice(ms(millis), &slice(0, 17, &chunk));
        }
        while receiver.poll_ack(ms(millis)).is_some() {
            acks += 1;
        }
    }
    assert_eq!(acks, 20, "one every 50 ms");
}

#[test]
fn the_completing_ack_goes_at_once_and_once() {
    let mut receiver = receiver();
    let chunk = data(0, 2_000);
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    assert!(receiver.poll_ack(ms(0)).is_some());
    assert_eq!(receiver.handle_slice(ms(1), &slice(0, 1, &chunk)), Ok(SliceArrival::Completed));
    let ack = receiver.poll_ack(ms(1)).expect("not after 50 ms: now");
    assert!(ack.received.is_full());
    assert_eq!(receiver.poll_ack(ms(1)), None);

    // Repeats are rate limited again.
    let _ = receiver.handle_slice(ms(2), &slice(0, 1, &chunk));
    assert_eq!(receiver.poll_ack(ms(50)), None);
    assert_eq!(receiver.poll_timeout(), Some(ms(51)));
    assert!(receiver.poll_ack(ms(51)).is_some());
}

/// When an ack is due for the chunk in progress and for the one before it, they take turns: neither late
/// slices of the old chunk nor a steady stream of new ones can keep the other sender waiting for good.
#[test]
fn the_chunk_in_progress_and_the_one_before_take_turns() {
    let mut receiver = receiver();
    let (old, new) = (data(0, 10), data(1, 5_000));
    receiver.handle_slice(ms(0), &slice(0, 0, &old)).unwrap();
    let _ = receiver.poll_ack(ms(0));
    receiver.pop().unwrap();
    receiver.handle_slice(ms(1), &slice(1, 0, &new)).unwrap();
    assert_eq!(receiver.handle_slice(ms(2), &slice(0, 0, &old)), Err(PacketDropReason::OldChunk));
    assert_eq!(receiver.poll_ack(ms(50)).unwrap().chunk_id, ChunkId::new(1));
    assert_eq!(receiver.poll_ack(ms(100)).unwrap().chunk_id, ChunkId::new(0), "then its turn");
    assert_eq!(receiver.poll_ack(ms(150)), None);

    for turn in 0..10 {
        let now = ms(200 + turn * 50);
        let _ = receiver.handle_slice(now, &slice(1, 0, &new));
        let _ = receiver.handle_slice(now, &slice(0, 0, &old));
        let chunk_id = receiver.poll_ack(now).unwrap().chunk_id;
        assert_eq!(u64::from(chunk_id.get()), 1 - turn % 2, "turn {turn}");
    }
}

/// STANDARD §4.2: every ack says the whole state, so that a lost one costs nothing.
#[test]
fn an_ack_carries_everything_received_so_far() {
    let mut receiver = receiver();
    let chunk = data(0, 5_000);
    for (turn, index) in [3, 0, 4].into_iter().enumerate() {
        let now = ms(turn as u64 * 50);
        receiver.handle_slice(now, &slice(0, index, &chunk)).unwrap();
        let ack = receiver.poll_ack(now).unwrap();
        assert_eq!(ack.received.len(), turn + 1);
        assert!(ack.received.contains(slice(0, index, &chunk).index()));
    }
}

#[test]
fn a_slice_with_another_count_is_no_reason_to_ack() {
    let mut receiver = receiver();
    let (chunk, other) = (data(0, 5_000), data(0, 3_000));
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    assert!(receiver.poll_ack(ms(0)).is_some());
    assert_eq!(
        receiver.handle_slice(ms(60), &slice(0, 0, &other)),
        Err(PacketDropReason::NumSlicesMismatch)
    );
    assert_eq!(receiver.poll_ack(ms(120)), None);
}

#[test]
fn of_two_copies_that_differ_the_first_wins() {
    let mut receiver = receiver();
    let (chunk, forged) = (data(0, 2_000), data(9, 2_000));
    receiver.handle_slice(ms(0), &slice(0, 1, &chunk)).unwrap();
    assert_eq!(
        receiver.handle_slice(ms(0), &slice(0, 1, &forged)),
        Err(PacketDropReason::Duplicate)
    );
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    assert_eq!(receiver.pop().unwrap(), chunk);
}

#[test]
fn the_size_of_a_chunk_is_unknown_before_its_last_slice() {
    let mut receiver = receiver();
    let chunk = data(0, 2_500);
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    assert_eq!(receiver.progress().unwrap().bytes, None);
    receiver.handle_slice(ms(0), &slice(0, 2, &chunk)).unwrap();
    assert_eq!(receiver.progress().unwrap().bytes, Some(2_500));
}

#[test]
fn a_longer_receive_queue_takes_the_next_chunk_while_one_waits() {
    let config = ChunkReceiverConfig::default().with_max_unread(2);
    let mut receiver = ChunkReceiver::new(config);
    for id in 0..2u16 {
        let chunk = data(id.into(), 100);
        assert_eq!(
            receiver.handle_slice(ms(0), &slice(id, 0, &chunk)),
            Ok(SliceArrival::Completed)
        );
        assert_eq!(receiver.poll_ack(ms(0)).unwrap().chunk_id.get(), id);
    }
    assert_eq!(receiver.state(), ReceiverState::Full);
    let third = data(2, 100);
    assert_eq!(
        receiver.handle_slice(ms(0), &slice(2, 0, &third)),
        Err(PacketDropReason::NotReadYet)
    );
    assert_eq!(receiver.ack_due(), None, "what is refused is not acked");
    assert_eq!(receiver.pop().unwrap(), data(0, 100));
    assert_eq!(receiver.handle_slice(ms(0), &slice(2, 0, &third)), Ok(SliceArrival::Completed));
    assert_eq!(receiver.pop().unwrap(), data(1, 100));
    assert_eq!(receiver.pop().unwrap(), third);
    assert_eq!(receiver.pop(), None);
}

/// The article's attack on memory: one small packet that names the largest chunk.
#[test]
fn memory_follows_what_arrived_not_what_was_announced() {
    let mut receiver = receiver();
    let chunk = vec![9; 255 * 1024 + 1];
    assert_eq!(receiver.memory_bytes(), 0);
    receiver.handle_slice(ms(0), &slice(0, 255, &chunk)).unwrap();
    assert!(receiver.memory_bytes() <= 9 * 1024, "{} for one byte", receiver.memory_bytes());
    for (arrived, index) in (0..255).rev().enumerate().take(200) {
        receiver.handle_slice(ms(0), &slice(0, index, &chunk)).unwrap();
        let most = 2 * (arrived + 2).max(8) * 1025;
        assert!(receiver.memory_bytes() <= most, "{} for {arrived}", receiver.memory_bytes());
    }
}

#[test]
fn an_abandoned_chunk_can_be_received_again_from_the_start() {
    let config = ChunkReceiverConfig::default().with_abandon_after(Some(Duration::from_secs(3)));
    let mut receiver = ChunkReceiver::new(config);
    let chunk = data(0, 5_000);
    receiver.handle_slice(ms(0), &slice(0, 1, &chunk)).unwrap();
    let _ = receiver.poll_ack(ms(0));
    receiver.handle_slice(ms(1_000), &slice(0, 2, &chunk)).unwrap();
    let _ = receiver.poll_ack(ms(1_000));
    // A duplicate is not progress.
    let _ = receiver.handle_slice(ms(2_000), &slice(0, 2, &chunk));
    let _ = receiver.poll_ack(ms(2_000));
    assert_eq!(receiver.poll_timeout(), Some(ms(4_000)));
    receiver.handle_timeout(ms(3_999));
    assert!(receiver.progress().is_some());
    receiver.handle_timeout(ms(4_000));
    assert_eq!(receiver.progress(), None);
    assert_eq!((receiver.memory_bytes(), receiver.poll_timeout()), (0, None));
    for index in 0..5 {
        receiver.handle_slice(ms(5_000), &slice(0, index, &chunk)).unwrap();
    }
    assert_eq!(receiver.pop().unwrap(), chunk);
}

#[test]
fn chunk_ids_wrap() {
    let config = ChunkReceiverConfig::default().with_first_chunk_id(ChunkId::new(65_535));
    let mut receiver = ChunkReceiver::new(config);
    for id in [65_535, 0, 1] {
        let chunk = data(usize::from(id), 64);
        assert_eq!(
            receiver.handle_slice(ms(0), &slice(id, 0, &chunk)),
            Ok(SliceArrival::Completed)
        );
        let ack = receiver.poll_ack(ms(0)).unwrap();
        assert_eq!((ack.chunk_id.get(), ack.received), (id, SliceSet::full(ack.received.count())));
        assert_eq!(receiver.pop().unwrap(), chunk);
    }
}

#[test]
fn a_reset_forgets_the_chunk_before() {
    let mut receiver = receiver();
    let chunk = data(0, 10);
    receiver.handle_slice(ms(0), &slice(0, 0, &chunk)).unwrap();
    receiver.reset(ChunkId::new(1));
    assert_eq!((receiver.unread(), receiver.ack_due()), (0, None));
    assert_eq!(receiver.handle_slice(ms(0), &slice(0, 0, &chunk)), Err(PacketDropReason::OldChunk));
    assert_eq!(receiver.ack_due(), None);
    receiver.check_invariants();
}
