//! Every frame is read as it was written, and bytes that are no frame are refused.

use alloc::vec;

use super::*;
use crate::bulk::cut::{ChunkAt, SliceSize};

const AT: ChunkAt = ChunkAt { block: 70, index: 70_000 };

fn round_trip(frame: Frame<'_>) {
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    assert_eq!(Frames::of(&bytes).collect::<Vec<_>>(), [Ok(frame)]);
    // The data of a slice ends with the datagram: a shorter one is another slice.
    let shortest = if matches!(frame, Frame::Slice(_)) { bytes.len() - 1 } else { 1 };
    for cut in (1..bytes.len()).filter(|&cut| shortest == 1 || cut < 9) {
        assert!(Frames::of(&bytes[..cut]).any(|frame| frame.is_err()), "cut at {cut}: {frame:?}");
    }
}

fn refused(bytes: &[u8]) -> Option<DropReason> {
    Frames::of(bytes).find_map(Result::err)
}

#[test]
fn frames_come_back_and_cut_ones_do_not() {
    let size = SliceSize::new(1434).unwrap();
    round_trip(Frame::Ping);
    for (kind, bytes) in
        [(SliceKind::Source, 1434), (SliceKind::Last(size), 9), (SliceKind::Repair, 2)]
    {
        round_trip(Frame::Slice(SliceFrame { at: AT, kind, index: 255, data: &vec![5; bytes] }));
    }
    round_trip(Frame::SlicesHere(SlicesHereFrame { at: AT, size, map: &[7; 23] }));
    round_trip(Frame::Block(BlockFrame { number: 3, tag: 9, length: 1 << 40, root: [7; 32] }));
    round_trip(Frame::Hashes(HashesFrame {
        block: 1,
        level: 6,
        first: 64,
        values: &[[1; 32]; 32],
    }));
    round_trip(Frame::ChunksHere(ChunksHereFrame { block: 1, first: 99, map: &[1; 1024] }));
    round_trip(Frame::Cancel { block: 5, code: 300, opened: 70 });
    round_trip(Frame::Decline { block: 5, code: 0 });
    round_trip(Frame::RootHere([3; 32]));
    let sequence = Sequence::new(7);
    round_trip(Frame::Packet { sequence, data: b"jump" });
    round_trip(Frame::Fragment(Fragment::new(sequence, 1, 2, b"rest").unwrap()));
    let part = Some(MessagePart { whole: 65_536, offset: 65_534 });
    for part in [None, part] {
        let data = b"hi";
        let message = MessageFrame { channel: 255, is_unordered: true, number: 70_000, part, data };
        round_trip(Frame::Message(message));
    }
    round_trip(Frame::ChannelLimit(ChannelLimitFrame {
        channel: 3,
        messages: 256,
        bytes: 1 << 20,
    }));
    round_trip(Frame::AckFrequency { datagrams: 64, delay: Duration::from_millis(10) });
    round_trip(Frame::PathChallenge([1; 8]));
    round_trip(Frame::PathResponse([2; 8]));
    round_trip(Frame::ResetToken(&[2; 16]));
    round_trip(Frame::Close { code: u32::MAX, reason: "gone" });
    round_trip(Frame::Ignored { kind: 96, body: b"grease" });
}

#[test]
fn a_progress_frame_has_an_entry_for_each_block() {
    let mut entries = Vec::new();
    let all = [(7, 1, &[1, 2][..]), (8, 1 << 20, &[]), (300, 0, &[255; MAX_PROGRESS_MAP_BYTES])];
    let all = all.map(|(block, first, map)| ProgressEntry { block, first, map });
    all.iter().for_each(|entry| entry.write(&mut entries));
    let frame = ProgressFrame::new(99, 16, 7, all.len(), &entries).unwrap();
    assert!(frame.entries().eq(all));
    round_trip(Frame::Progress(frame));
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    assert_eq!(bytes.len(), frame.encoded_len());
    assert!(ProgressFrame::new(99, 16, 7, 2, &entries).is_none(), "one too few");
    assert!(ProgressFrame::new(0, 0, 0, 33, &[]).is_none());
}

#[test]
fn what_is_out_of_range_is_refused() {
    let out_of_range = Some(DropReason::OutOfRange);
    assert_eq!(refused(&[6, 0, 0, 0]), Some(DropReason::Truncated), "without data");
    assert_eq!(refused(&[6, 0, 0, 0, 9, 9, 9]), out_of_range, "an odd size");
    assert_eq!(refused(&[7, 0, 0, 0, 2, 0, 9, 9, 9]), out_of_range, "longer than the others");
    assert_eq!(refused(&[7, 0, 0, 0, 0, 0, 9]), out_of_range, "size 0");
    assert_eq!(refused(&[9, 0, 0, 2, 0, 0]), out_of_range, "no map");
    assert_eq!(refused(&[9, 0, 0, 2, 0, 33]), out_of_range);
    assert_eq!(refused(&[11, 0, 0, 1, 1]), out_of_range, "not the start of a page");
    assert_eq!(refused(&[11, 0, 7, 0, 1]), out_of_range, "no such level");
    assert_eq!(refused(&[11, 0, 0, 0, 33]), out_of_range);
    assert_eq!(refused(&[18, 4, 0, 0, 0]), out_of_range, "an unknown flag");
    assert_eq!(refused(&[18, 2, 0, 0, 3, 2, 2, 9, 9]), out_of_range, "beyond the whole");
    assert_eq!(refused(&[18, 2, 0, 0, 3, 3, 0]), out_of_range, "an empty part");
    assert_eq!(refused(&[20, 0, 0x50, 0]), out_of_range);
    assert_eq!(refused(&[20, 1, 1]), out_of_range);
    let large_block = [&[13][..], &[0xc0, 0, 0, 1, 0, 0, 0, 0], &[0, 0]].concat();
    assert_eq!(refused(&large_block), out_of_range);
}

#[test]
fn unknown_frames_are_ignored_or_refused_by_their_range() {
    for kind in 0..=255 {
        let bytes = [kind, 2, 1, 1];
        let frames: Vec<_> = Frames::of(&bytes).collect();
        match kind {
            FIRST_IGNORABLE..=LAST_IGNORABLE => {
                assert_eq!(frames, [Ok(Frame::Ignored { kind, body: &[1, 1] })]);
                let is_ack_eliciting = kind % 2 == 1;
                assert_eq!(frames[0].unwrap().is_ack_eliciting(), is_ack_eliciting);
            }
            25.. => assert_eq!(frames, [Err(DropReason::BadType)]),
            _ => {}
        }
    }
    assert_eq!(refused(&[64, 3, 1, 1]), Some(DropReason::Truncated));
}

/// 44 acks in a datagram, each over everything in flight, took 120 us to handle.
#[test]
fn a_datagram_says_its_state_once() {
    let mut bytes = Vec::new();
    let progress = ProgressFrame::new(1, 0, 0, 0, &[]).unwrap();
    Frame::Progress(progress).write(&mut bytes);
    Frame::Ping.write(&mut bytes);
    assert_eq!(refused(&bytes), None);
    Frame::Progress(progress).write(&mut bytes);
    assert_eq!(refused(&bytes), Some(DropReason::RepeatedFrame));
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = "é".repeat(150);
    assert_eq!(truncate_reason(&reason).len(), 254);
    assert_eq!(truncate_reason(&"xé".repeat(100)).len(), 255);
}
