//! The chunk sender, point by point: budget, resend delay, cursor, burst, queue, cancel.

use std::time::Duration;

use haulier_article::chunk::{
    Cancelled, ChunkId, ChunkSender, ChunkSenderConfig, ChunkSenderEvent, INITIAL_RESEND_DELAY,
    MAX_CHUNK_BYTES, ResendDelay, SendChunkError, SendFailure, SenderState, SliceState,
};
use haulier_article::{Instant, PacketDropReason};

use crate::support::{NONE, ack, data, eager_sender, ms, poll_all, sent};

fn budgeted(rate_bps: u64) -> ChunkSender {
    ChunkSender::new(ChunkSenderConfig::default().with_rate_bps(rate_bps).with_burst(false))
}

/// In the 2016 original time 0 meant "never sent", so nothing went out in the first 100 ms.
#[test]
fn the_first_slice_goes_out_at_time_zero() {
    let mut sender = eager_sender();
    sender.send_chunk(data(0, 10)).unwrap();
    assert_eq!(sender.poll_timeout(), Some(Instant::ZERO));
    assert_eq!(poll_all(&mut sender, Instant::ZERO), [0]);
}

/// In the 2016 original the time of sending was never stored, and a slice went out on every tick.
#[test]
fn an_unacked_slice_is_not_sent_again_before_the_resend_delay() {
    let mut sender = sent(2);
    assert_eq!(sender.poll_timeout(), Some(Instant::ZERO + INITIAL_RESEND_DELAY));
    assert_eq!(poll_all(&mut sender, ms(99)), NONE);
    assert_eq!(poll_all(&mut sender, ms(100)), [0, 1]);
    assert_eq!(sender.stats().slices_resent, 2);
}

#[test]
fn the_resend_delay_follows_the_round_trip() {
    let mut sender = sent(3);
    sender.handle_ack(ms(200), &ack(0, 3, [0])).unwrap();
    assert_eq!(sender.rtt().smoothed_rtt(), Some(Duration::from_millis(200)));
    assert_eq!(poll_all(&mut sender, ms(249)), NONE);
    assert_eq!(poll_all(&mut sender, ms(250)), [1, 2], "1.25 x 200 ms after they were sent");
}

/// A tiny RTT is not a reason to repeat what the peer, with acks 50 ms apart, could not have acked yet.
#[test]
fn the_resend_delay_respects_the_peers_ack_interval() {
    let mut sender = sent(2);
    sender.handle_ack(ms(1), &ack(0, 2, [0])).unwrap();
    assert_eq!(poll_all(&mut sender, ms(62)), NONE);
    assert_eq!(poll_all(&mut sender, ms(63)), [1]);
}

/// An ack that an outage held up for 7 s must not keep the sender silent for 9.
#[test]
fn one_late_ack_does_not_silence_the_sender() {
    let mut sender = sent(2);
    sender.handle_ack(ms(7_000), &ack(0, 2, [0])).unwrap();
    assert_eq!(sender.rtt().smoothed_rtt(), Some(Duration::from_secs(7)));
    assert_eq!(poll_all(&mut sender, ms(7_000)), [1]);
    assert_eq!(poll_all(&mut sender, ms(8_249)), NONE);
    assert_eq!(poll_all(&mut sender, ms(8_250)), [1]);
}

#[test]
fn a_round_trip_is_never_measured_on_a_slice_sent_twice() {
    let mut sender = sent(2);
    assert_eq!(poll_all(&mut sender, ms(100)), [0, 1]);
    sender.handle_ack(ms(101), &ack(0, 2, [0])).unwrap();
    assert_eq!(sender.rtt().smoothed_rtt(), None);
}

/// In the 2016 original the cursor moved by one per tick whatever was sent, so that after a long acked run
/// the first unacked slice went out again and again.
#[test]
fn the_cursor_goes_on_after_the_slice_sent() {
    let mut sender = budgeted(8 * 1065 * 10); // ten slices a second
    sender.send_chunk(data(0, 8 * 1024)).unwrap();
    assert_eq!(poll_all(&mut sender, ms(100)), [0]);
    let mut sent = vec![0];
    for tick in 2..=16 {
        sent.extend(poll_all(&mut sender, ms(100 * tick)));
    }
    assert_eq!(sent, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7], "round and round");
    sender.handle_ack(ms(1_650), &ack(0, 8, [0, 1, 2, 3, 4, 5])).unwrap();
    let mut sent = Vec::new();
    for tick in 20..=23 {
        sent.extend(poll_all(&mut sender, ms(100 * tick)));
    }
    assert_eq!(sent, [6, 7, 6, 7], "over the acked run, then alternating");
}

#[test]
fn the_budget_is_bits_per_second_of_whole_packets() {
    for rate in [256_000, 512_000, 1_000_000] {
        let mut sender = budgeted(rate);
        sender.send_chunk(vec![1; MAX_CHUNK_BYTES]).unwrap();
        // What a new sender has gathered goes first: 100 ms' worth.
        let first = poll_all(&mut sender, Instant::ZERO).len() as u64;
        assert!(first.abs_diff(rate / 80 / 1065) <= 1, "{rate}: {first} slices at once");
        let mut slices = 0;
        // 60 frames of 16.667 ms: one second.
        for frame in 1..=60u64 {
            slices += poll_all(&mut sender, Instant::from_nanos(frame * 16_666_667)).len() as u64;
        }
        let expected = rate / 8 / 1065;
        assert!(slices.abs_diff(expected) <= 1, "{rate}: {slices} slices, not {expected}");
        assert_eq!(sender.stats().wire_bytes, (first + slices) * 1065);
    }
}

#[test]
fn what_an_idle_sender_gathers_is_capped() {
    let mut sender = budgeted(1_000_000);
    sender.send_chunk(data(0, 10)).unwrap();
    poll_all(&mut sender, ms(10));
    sender.handle_ack(ms(110), &ack(0, 1, [0])).unwrap();
    // An hour later: one RTT's worth (100 ms, 12,500 bytes), not an hour's.
    sender.send_chunk(vec![1; MAX_CHUNK_BYTES]).unwrap();
    assert_eq!(poll_all(&mut sender, ms(3_600_000)).len(), 11);
}

/// The deadline that `poll_timeout` names is the first moment at which there is something to send.
#[test]
fn the_deadline_is_when_there_is_something_to_send() {
    let mut sender = budgeted(300_000);
    sender.send_chunk(data(0, 5 * 1024 + 7)).unwrap();
    let mut now = Instant::ZERO;
    let mut sent = poll_all(&mut sender, now).len();
    for _ in 0..50 {
        let next = sender.poll_timeout().unwrap();
        assert!(next > now, "a deadline that was acted on must move");
        let just_before = Instant::from_nanos(next.as_nanos() - 1);
        assert_eq!(poll_all(&mut sender.clone(), just_before), NONE, "before {next:?}");
        let slices = poll_all(&mut sender, next);
        assert!(!slices.is_empty(), "nothing to send at {next:?}");
        sent += slices.len();
        now = next;
    }
    assert!(sent >= 50);
}

#[test]
fn the_burst_sends_everything_once_then_waits_then_obeys_the_budget() {
    let mut sender = ChunkSender::new(ChunkSenderConfig::default());
    sender.send_chunk(vec![1; MAX_CHUNK_BYTES]).unwrap();
    assert_eq!(poll_all(&mut sender, ms(5)), (0..256).collect::<Vec<_>>());
    assert_eq!(sender.state(), SenderState::Hold);
    assert_eq!(sender.poll_timeout(), Some(ms(105)));
    assert_eq!(poll_all(&mut sender, ms(104)), NONE);
    // What the budget gathered during the wait goes first, a tenth of a second's worth.
    let mut resent = poll_all(&mut sender, ms(105)).len();
    assert_eq!(resent, 100_000 / 8 / 1065);
    for millis in 106..=1_005 {
        resent += poll_all(&mut sender, ms(millis)).len();
    }
    assert_eq!(sender.state(), SenderState::Budgeted);
    assert_eq!(resent, 1_000_000 / 8 / 1065, "a megabit's worth in a second");
}

#[test]
fn the_burst_can_be_switched_off_for_later_chunks() {
    let mut sender = ChunkSender::new(ChunkSenderConfig::default());
    sender.set_burst(false);
    sender.send_chunk(vec![1; MAX_CHUNK_BYTES]).unwrap();
    assert!(poll_all(&mut sender, ms(50)).len() < 20);
    assert_eq!(sender.state(), SenderState::Budgeted);
}

#[test]
fn chunks_wait_their_turn_and_count_up() {
    let mut sender = ChunkSender::new(ChunkSenderConfig::default().with_max_queued(2));
    let first = sender.send_chunk(data(0, 10)).unwrap();
    let slice = sender.poll_slice(ms(0)).unwrap();
    assert_eq!(slice.chunk_id().get(), 0);
    let second = sender.send_chunk(data(1, 20)).unwrap();
    sender.send_chunk(data(2, 30)).unwrap();
    let Err(SendChunkError::QueueFull(back)) = sender.send_chunk(data(3, 40)) else {
        panic!("the queue holds two");
    };
    assert_eq!(back, data(3, 40), "the bytes come back");

    sender.handle_ack(ms(5), &ack(0, 1, [0])).unwrap();
    let elapsed = Duration::from_millis(5);
    assert_eq!(sender.poll_event(), Some(ChunkSenderEvent::Sent { handle: first, elapsed }));
    assert_eq!(sender.poll_slice(ms(5)).unwrap().chunk_id().get(), 1);
    assert_eq!(sender.progress().unwrap().handle, second);
}

#[test]
fn chunk_ids_wrap() {
    let mut sender =
        ChunkSender::new(ChunkSenderConfig::default().with_first_chunk_id(ChunkId::new(65_535)));
    sender.send_chunk(data(0, 10)).unwrap();
    sender.send_chunk(data(0, 10)).unwrap();
    assert_eq!(sender.poll_slice(ms(0)).unwrap().chunk_id().get(), 65_535);
    sender.handle_ack(ms(1), &ack(65_535, 1, [0])).unwrap();
    assert_eq!(sender.poll_slice(ms(1)).unwrap().chunk_id().get(), 0);
}

#[test]
fn sizes_that_are_no_chunk_are_refused() {
    let mut sender = eager_sender();
    assert_eq!(sender.send_chunk(Vec::new()), Err(SendChunkError::Empty));
    assert_eq!(
        sender.send_chunk(vec![0; MAX_CHUNK_BYTES + 1]),
        Err(SendChunkError::TooLarge { max: MAX_CHUNK_BYTES })
    );
    assert!(sender.send_chunk(vec![0; MAX_CHUNK_BYTES]).is_ok());
}

#[test]
fn a_queued_chunk_is_cancelled_without_a_trace_on_the_wire() {
    let mut sender = eager_sender();
    sender.send_chunk(data(0, 10)).unwrap();
    let cancelled = sender.send_chunk(data(1, 10)).unwrap();
    sender.send_chunk(data(2, 20)).unwrap();
    assert_eq!(sender.cancel(cancelled), Cancelled::Queued);
    assert_eq!(sender.cancel(cancelled), Cancelled::Unknown);
    poll_all(&mut sender, ms(0));
    sender.handle_ack(ms(1), &ack(0, 1, [0])).unwrap();
    let next = sender.poll_slice(ms(1)).unwrap();
    assert_eq!((next.chunk_id().get(), next.data()), (1, &data(2, 20)[..]), "no gap in the ids");
}

/// The wire has no word for "forget chunk n": after a cancel in flight neither end knows the other's n.
#[test]
fn a_cancel_in_flight_ends_the_run_until_a_reset() {
    let mut sender = eager_sender();
    let first = sender.send_chunk(data(0, 10)).unwrap();
    let second = sender.send_chunk(data(1, 10)).unwrap();
    poll_all(&mut sender, ms(0));
    assert_eq!(sender.cancel(first), Cancelled::InFlight);
    let failed = |handle, reason| Some(ChunkSenderEvent::Failed { handle, reason });
    assert_eq!(sender.poll_event(), failed(first, SendFailure::Cancelled));
    assert_eq!(sender.poll_event(), failed(second, SendFailure::RunEnded));
    assert!(matches!(sender.send_chunk(data(2, 10)), Err(SendChunkError::Stopped(_))));
    assert_eq!(sender.handle_ack(ms(1), &ack(0, 1, [0])), Err(PacketDropReason::NotSending));

    sender.reset(ChunkId::new(7));
    sender.send_chunk(data(2, 10)).unwrap();
    assert_eq!(sender.poll_slice(ms(2)).unwrap().chunk_id().get(), 7);
}

#[test]
fn the_map_of_slices_shows_each_state() {
    let mut sender = budgeted(8 * 1065 * 2);
    sender.send_chunk(data(0, 3 * 1024)).unwrap();
    assert_eq!(sender.slice_states().count(), 0, "nothing in flight yet");
    assert_eq!(poll_all(&mut sender, ms(500)), [0]);
    assert_eq!(poll_all(&mut sender, ms(1_000)), [1]);
    sender.handle_ack(ms(1_001), &ack(0, 3, [0])).unwrap();
    let states: Vec<_> = sender.slice_states().collect();
    assert_eq!(states, [SliceState::Acked, SliceState::InFlight { sends: 1 }, SliceState::Unsent]);
}

#[test]
fn a_fixed_resend_delay_ignores_the_round_trip() {
    let mut sender = ChunkSender::new(
        ChunkSenderConfig::default()
            .with_resend_delay(ResendDelay::Fixed(Duration::from_millis(100)))
            .with_rate_bps(1_000_000_000)
            .with_burst(false),
    );
    sender.send_chunk(data(0, 2 * 1024)).unwrap();
    poll_all(&mut sender, ms(0));
    sender.handle_ack(ms(90), &ack(0, 2, [0])).unwrap();
    assert_eq!(poll_all(&mut sender, ms(100)), [1]);
}

/// A clock that jumps, forwards or back, may cost time but never panics and never floods.
#[test]
fn clock_jumps_are_harmless() {
    let mut sender = budgeted(1_000_000);
    sender.send_chunk(vec![1; MAX_CHUNK_BYTES]).unwrap();
    for millis in [0, 1_000_000, 5, u64::MAX / 1_000_000, 0, 2_000_000] {
        let slices = poll_all(&mut sender, ms(millis)).len();
        assert!(slices <= 12, "{slices} slices after a jump to {millis} ms");
        let _ = sender.poll_timeout();
        sender.check_invariants();
    }
}
