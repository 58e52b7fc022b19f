//! The ways in which a chunk transfer hung, or said it was done when it was not: one test each, with its
//! story. Every one of these fails when its fix is taken out.

use std::time::Duration;

use haulier_article::chunk::{
    ChunkReceiverEvent, ChunkSender, ChunkSenderConfig, ChunkSenderEvent, SendFailure, Slice,
    SliceArrival,
};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PacketDropReason};

use crate::support::{NONE, ack, data, eager_sender, framed, ms, poll_all, receiver, sent, slice};

/// **Hang 1** ("The first hang I usually encounter", in the article's section on soak tests): "oh, this
/// slice has already been received? discard the slice packet" - and forgetting the ack. The first ack for a
/// slice is lost; the sender sends the slice again; the receiver has it and says nothing. The sender
/// repeats that slice for as long as the chunk lasts.
#[test]
fn hang_1_a_duplicate_slice_is_acked_again() {
    let (mut sender, mut receiver) = (eager_sender(), receiver());
    sender.send_chunk(data(0, 2 * 1024)).unwrap();
    let mut times_slice_0_was_sent = 0;
    let mut acks = 0;
    for now in (0..5_000).map(ms) {
        while let Some(slice) = sender.poll_slice(now) {
            // Slice 1 never gets through, so the chunk stays half received.
            if slice.index().get() == 0 {
                times_slice_0_was_sent += 1;
                let _ = receiver.handle_slice(now, &slice);
            }
        }
        if let Some(ack) = receiver.poll_ack(now) {
            acks += 1;
            // The first ack is lost.
            if acks > 1 {
                sender.handle_ack(now, &ack).unwrap();
            }
        }
    }
    assert_eq!(times_slice_0_was_sent, 2, "once for the lost ack, and never after the second");
    assert_eq!(sender.progress().unwrap().acked, 1);
}

/// Sends a chunk of one slice and loses the ack that completes it.
fn lose_the_completing_ack(
    sender: &mut ChunkSender,
    receiver: &mut haulier_article::chunk::ChunkReceiver,
) -> Instant {
    sender.send_chunk(data(0, 100)).unwrap();
    let now = ms(0);
    let slice = sender.poll_slice(now).unwrap();
    assert_eq!(receiver.handle_slice(now, &slice), Ok(SliceArrival::Completed));
    assert!(receiver.poll_ack(now).is_some(), "the ack that is lost");
    now
}

/// Runs both ends over a perfect link until the sender is done; `None` if it never is.
fn finish(
    sender: &mut ChunkSender,
    receiver: &mut haulier_article::chunk::ChunkReceiver,
    from: Instant,
) -> Option<Instant> {
    for now in (0..5_000).map(|millis| from + Duration::from_millis(millis)) {
        while let Some(slice) = sender.poll_slice(now) {
            let _ = receiver.handle_slice(now, &slice);
        }
        if let Some(ack) = receiver.poll_ack(now) {
            let _ = sender.handle_ack(now, &ack);
        }
        if matches!(sender.poll_event(), Some(ChunkSenderEvent::Sent { .. })) {
            return Some(now);
        }
    }
    None
}

/// **Hang 2** ("The next hang", same place): the receiver has the chunk, is ready to be read, and drops
/// all slices in that state. The completing ack was lost, the application does not read, and the sender
/// never learns that it is done.
#[test]
fn hang_2_a_finished_chunk_that_waits_unread_is_acked_again() {
    let (mut sender, mut receiver) = (eager_sender(), receiver());
    let lost = lose_the_completing_ack(&mut sender, &mut receiver);
    assert!(finish(&mut sender, &mut receiver, lost).is_some(), "the sender hangs");
    assert_eq!(receiver.unread(), 1, "still not read");
}

/// **Hang 3** ("The final hang", same place): the chunk was read and the receiver expects the next one.
/// A slice of chunk n - 1 is old news to it, but the sender never saw an ack: it must get one for all of
/// chunk n - 1.
#[test]
fn hang_3_the_chunk_before_is_acked_again_after_it_was_read() {
    let (mut sender, mut receiver) = (eager_sender(), receiver());
    let lost = lose_the_completing_ack(&mut sender, &mut receiver);
    assert!(receiver.pop().is_some());
    assert!(finish(&mut sender, &mut receiver, lost).is_some(), "the sender hangs");
}

/// **The wrong slice count** (the 2016 original, found by running it): the first slice decides how many
/// slices the chunk has.
/// One forged or stale slice with another count, and every honest slice was ignored for ever. The crc
/// is no authentication. Now the half chunk is dropped after a time without a new slice, and the honest
/// sender, which never got an ack, still sends.
#[test]
fn a_forged_slice_count_holds_a_receiver_up_only_until_it_is_abandoned() {
    let mut receiver = receiver();
    let mut sender = ChunkSender::new(ChunkSenderConfig::default());
    let forged = data(9, 200 * 1024);
    receiver.handle_slice(ms(0), &slice(0, 150, &forged)).unwrap();

    let honest = data(0, 3_000);
    sender.send_chunk(honest.clone()).unwrap();
    let mut mismatches = 0;
    let mut abandoned = None;
    let mut now = ms(1);
    while receiver.unread() == 0 {
        assert!(now < ms(20_000), "the receiver hangs");
        receiver.handle_timeout(now);
        abandoned = abandoned.or(receiver.poll_event());
        while let Some(slice) = sender.poll_slice(now) {
            mismatches += u32::from(
                receiver.handle_slice(now, &slice) == Err(PacketDropReason::NumSlicesMismatch),
            );
        }
        if let Some(ack) = receiver.poll_ack(now) {
            // An ack for 200 slices means nothing to a sender of 3.
            let _ = sender.handle_ack(now, &ack);
        }
        now = now + Duration::from_millis(10);
    }
    assert!(matches!(abandoned, Some(ChunkReceiverEvent::Abandoned { received: 1, .. })));
    assert!(mismatches > 3, "the honest slices were refused, and counted");
    assert_eq!(receiver.pop().unwrap(), honest);
}

/// The owner need not wait for the timeout: mismatches are counted, and a reset forgets the forgery.
#[test]
fn a_reset_frees_a_receiver_from_a_forged_slice_count() {
    let mut receiver = receiver();
    let forged = data(9, 200 * 1024);
    receiver.handle_slice(ms(0), &slice(0, 150, &forged)).unwrap();
    let honest = data(0, 1024);
    assert_eq!(
        receiver.handle_slice(ms(1), &slice(0, 0, &honest)),
        Err(PacketDropReason::NumSlicesMismatch)
    );
    receiver.reset(haulier_article::chunk::ChunkId::new(0));
    assert_eq!(receiver.handle_slice(ms(2), &slice(0, 0, &honest)), Ok(SliceArrival::Completed));
}

/// **The hole in a chunk** (the 2016 original, found by running it): the parser let slice 2 "of 2" through
/// as a full slice and
/// the receiver counted it, so a chunk of two slices was complete with slice 0 missing. Here the index
/// does not survive parsing: there is no type that could hold it.
#[test]
fn a_slice_index_at_the_count_cannot_complete_a_chunk_with_a_hole() {
    let mut peer = ArticlePeer::new(ArticleConfig::default());
    let chunk = data(0, 2 * 1024);
    let last = framed(ArticlePacket::Slice(slice(0, 1, &chunk)), ProtocolId::ARTICLE);
    peer.handle_datagram(ms(0), &last).unwrap();

    // Slice 2 of 2, as the 2016 sender would never send it: the header is written by hand, since our own
    // types cannot say it.
    let mut bogus = vec![0u8; 4];
    let header: u64 = 2 << 17 | 1 << 25;
    bogus.extend_from_slice(&header.to_le_bytes()[..5]);
    bogus.extend_from_slice(&chunk[..1024]);
    bogus.extend_from_slice(&0x9908_ace2_u32.to_le_bytes());
    let crc = packet::checksum(ProtocolId::ARTICLE, &bogus[4..]);
    bogus[..4].copy_from_slice(&crc.to_le_bytes());

    assert_eq!(peer.handle_datagram(ms(1), &bogus), Err(PacketDropReason::SliceIdOutOfRange));
    assert_eq!(peer.pop_chunk(), None, "a chunk with a hole");
    assert_eq!(peer.receiver().progress().unwrap().received.len(), 1);
}

/// **Done, but not there**: a receiver drops a half chunk (a long outage) or restarts; the sender keeps the
/// flags it has, because acked never becomes unacked. It then sends only the missing slices, gets them acked,
/// and would report a chunk as delivered that the receiver does not have. An honest receiver never has fewer
/// slices than before, so the ack that brings the last slice names all slices; an ack that does not shows the
/// loss.
#[test]
fn a_receiver_that_forgot_the_chunk_is_not_taken_for_one_that_has_it() {
    let mut sender = sent(3);
    sender.handle_ack(ms(10), &ack(0, 3, [0, 1])).unwrap();
    // Now the receiver starts over: slice 2 is the first it sees.
    sender.handle_ack(ms(20), &ack(0, 3, [2])).unwrap();
    assert!(matches!(
        sender.poll_event(),
        Some(ChunkSenderEvent::Failed { reason: SendFailure::PeerForgot, .. })
    ));
}

/// Acks overtake each other all the time: an old one that brings nothing new is no sign of loss.
#[test]
fn an_ack_that_was_overtaken_does_not_fail_the_chunk() {
    let mut sender = sent(3);
    sender.handle_ack(ms(10), &ack(0, 3, [0, 1])).unwrap();
    sender.handle_ack(ms(20), &ack(0, 3, [1])).unwrap();
    sender.handle_ack(ms(30), &ack(0, 3, [0, 1, 2])).unwrap();
    assert!(matches!(sender.poll_event(), Some(ChunkSenderEvent::Sent { .. })));
}

/// And one that forgot, but has the whole chunk again by the time of the last ack, does have it.
#[test]
fn a_receiver_that_forgot_and_caught_up_has_the_chunk() {
    let mut sender = sent(3);
    sender.handle_ack(ms(10), &ack(0, 3, [0])).unwrap();
    sender.handle_ack(ms(20), &ack(0, 3, [1])).unwrap();
    sender.handle_ack(ms(30), &ack(0, 3, [0, 1, 2])).unwrap();
    assert!(matches!(sender.poll_event(), Some(ChunkSenderEvent::Sent { .. })));
}

/// **Sending for ever** (the 2016 original): the original never gave up on a receiver that was gone.
#[test]
fn a_vanished_receiver_is_given_up_on() {
    let mut sender = eager_sender();
    sender.send_chunk(data(0, 9 * 1024)).unwrap();
    sender.send_chunk(data(1, 10)).unwrap();
    poll_all(&mut sender, ms(0));
    sender.handle_ack(ms(1_000), &ack(0, 9, [3])).unwrap();
    sender.handle_timeout(ms(15_999));
    assert!(sender.state().is_sending(), "15 s count from the last progress");
    assert_eq!(sender.poll_event(), None);
    sender.handle_timeout(ms(16_000));
    let reasons: Vec<_> = std::iter::from_fn(|| sender.poll_event())
        .map(|event| match event {
            ChunkSenderEvent::Failed { reason, .. } => reason,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(reasons, [SendFailure::NoProgress, SendFailure::RunEnded]);
    assert_eq!(poll_all(&mut sender, ms(16_001)), NONE);
    assert_eq!(sender.poll_timeout(), None);
}

/// An ack for slices that were never sent cannot be honest; believing it would leave them unsent.
#[test]
fn an_ack_for_slices_never_sent_is_not_believed() {
    let mut sender =
        ChunkSender::new(ChunkSenderConfig::default().with_rate_bps(8 * 1065).with_burst(false));
    sender.send_chunk(data(0, 3 * 1024)).unwrap();
    assert_eq!(poll_all(&mut sender, ms(1_000)), [0]);
    sender.handle_ack(ms(1_001), &ack(0, 3, [0, 1, 2])).unwrap();
    assert_eq!(sender.progress().unwrap().acked, 1);
    let next: Option<Slice<'_>> = sender.poll_slice(ms(2_001));
    assert_eq!(next.unwrap().index().get(), 1);
}
