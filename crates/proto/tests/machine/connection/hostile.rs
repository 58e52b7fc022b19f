//! A hostile peer that has the keys. The tests use mode `open`, where anybody can make its datagrams; the
//! checks after decryption are the same in all modes.

use haulier_proto::client::Credentials;
use haulier_proto::connection::{Block, CloseCode, CloseReason, ConnectionState};
use haulier_proto::internals::frames::{
    BlockFrame, ChannelLimitFrame, ChunkAt, Frame, Frames, MessageFrame, SliceFrame, SliceKind,
    SliceSize, SlicesHereFrame,
};
use haulier_proto::internals::{AckFrame, DataHeader, Role, WireId, open_tag};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_proto::{DropReason, Sequence};
use std::time::Duration;

use super::{client_with, end_of, ends_at_server};
use crate::lan::{Lan, PROTOCOL_ID, Way, server_config};

/// A server in mode `open`, and what a hostile client needs to know.
struct Room {
    lan: Lan,
    client: WireId,
    server: WireId,
    /// The number of its next datagram, far ahead of those of the honest client.
    next: u32,
    /// Numbers that the server has used.
    seen: Vec<u32>,
}

impl Room {
    fn new() -> Self {
        Self::with(server_config())
    }

    fn with(mut config: ServerConfig) -> Self {
        config.credentials = ServerCredentials::default().with_open_access();
        let mut lan = Lan::new(config);
        lan.add(client_with(Credentials::Open));
        let (mut client, mut server) = (WireId::default(), WireId::default());
        let mut seen = Vec::new();
        let mut watch = |way, datagram: &mut Vec<u8>| {
            match (way, datagram[0]) {
                (Way::Up(_), 0x0c) => server = DataHeader::read(datagram).unwrap().to,
                (Way::Down(_), 0x0e) => {
                    let header = DataHeader::read(datagram).unwrap();
                    client = header.to;
                    seen.push(header.number);
                }
                (Way::Down(_), 0x07) => {
                    let welcome = usize::from(u16::from_le_bytes([datagram[9], datagram[10]]));
                    let number = datagram[11 + welcome..][..4].try_into().unwrap();
                    seen.push(u32::from_le_bytes(number));
                }
                _ => {}
            }
            true
        };
        lan.settle_with(&mut watch);
        lan.run_with(7_000, &mut watch);
        assert_eq!(lan.client(0).state(), ConnectionState::Connected);
        Self { lan, client, server, next: 1_000, seen }
    }

    /// Sends these bytes as frames, with the client's keys. Returns the server's result.
    fn send(&mut self, frames: &[u8]) -> Result<(), DropReason> {
        let mut datagram = Vec::new();
        let header =
            DataHeader { from: Role::Client, phase: false, to: self.server, number: self.next };
        header.write(&mut datagram);
        datagram.extend_from_slice(frames);
        let tag = open_tag(PROTOCOL_ID, self.client.0, &datagram);
        datagram.extend_from_slice(&tag);
        self.next += 1;
        let (now, from) = (self.lan.now, self.lan.addresses[0]);
        let outcome = self.lan.server.handle_datagram(now, from, &mut datagram);
        // The honest client does not receive the answers: acks of these numbers would look like an attack.
        self.lan.settle_with(|_, _| false);
        outcome
    }

    fn send_frame(&mut self, frame: &Frame<'_>) -> Result<(), DropReason> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        self.send(&bytes)
    }

    /// Asserts that the server closed with this code, and that the client received it.
    #[track_caller]
    fn assert_closed(&mut self, code: CloseCode) {
        self.lan.run(1_100);
        assert_eq!(ends_at_server(&self.lan), [&CloseReason::Here(code)]);
        let end = end_of(&self.lan, 0);
        assert!(matches!(end, Some(CloseReason::There { code: c, .. }) if *c == code), "{end:?}");
    }
}

/// [H-4a].
#[test]
fn a_malformed_frame_closes_the_connection_without_effect() {
    for frames in [&[][..], &[15], &[1, 1, 63], &[1, 16, 0, 0], &[9, 0, 0, 2, 0, 0], &[24, 0, 1]] {
        let mut room = Room::new();
        assert!(room.send(frames).is_err(), "{frames:?}");
        room.assert_closed(CloseCode::PROTOCOL);
    }
    // A valid frame before the malformed one has no effect either.
    let mut room = Room::new();
    let mut frames = Vec::new();
    Frame::Message(message(0, b"before")).write(&mut frames);
    frames.push(50);
    assert_eq!(room.send(&frames), Err(DropReason::BadType));
    let is_message =
        |event: &haulier_proto::server::ServerEvent| format!("{event:?}").contains("Message");
    assert!(!room.lan.server_events.iter().any(|(_, event)| is_message(event)));
}

/// [H-2.2c]: acknowledging a number that was never sent closes the connection at once.
#[test]
fn an_ack_of_a_number_never_sent_closes() {
    let mut room = Room::new();
    let ack = AckFrame::new(5_000, Duration::ZERO, 3);
    room.send_frame(&Frame::Ack(ack)).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
}

/// [H-2.2c]: one of the first 256 numbers is skipped. An honest peer never acknowledges it, a guess does.
#[test]
fn an_ack_of_a_number_that_was_skipped_closes() {
    let mut room = Room::new();
    let mut seen = std::mem::take(&mut room.seen);
    let mut watch = |way, datagram: &mut Vec<u8>| {
        if way == Way::Down(0) && datagram[0] == 0x0e {
            seen.push(DataHeader::read(datagram).unwrap().number);
        }
        true
    };
    room.lan.peer().send_block(&Block::new(1, vec![0; 262_144])).unwrap();
    room.lan.run_with(1_000, &mut watch);
    seen.sort_unstable();
    let skipped: Vec<u32> = (0..*seen.last().unwrap()).filter(|n| !seen.contains(n)).collect();
    assert!(!skipped.is_empty() && skipped[0] < 256, "{skipped:?}");
    assert!(room.lan.client(0).state().is_open(), "the honest acks were fine");
    let ack = AckFrame::new(u64::from(*seen.last().unwrap()), Duration::ZERO, 256);
    room.send_frame(&Frame::Ack(ack)).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
}

/// An ordered message on channel 0.
fn message(number: u64, data: &[u8]) -> MessageFrame<'_> {
    MessageFrame { channel: 0, is_unordered: false, number, part: None, data }
}

/// [H-4.4a].
#[test]
fn messages_beyond_the_limit_close() {
    let mut room = Room::new();
    let last = message(255, b"the last one within the limit");
    room.send_frame(&Frame::Message(last)).unwrap();
    assert!(ends_at_server(&room.lan).is_empty());
    room.send_frame(&Frame::Message(message(256, b"one more"))).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
    let mut room = Room::new();
    let limit = ChannelLimitFrame { channel: 0, messages: 9_000, bytes: 131_072 };
    room.send_frame(&Frame::ChannelLimit(limit)).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
    let mut room = Room::new();
    let elsewhere = MessageFrame { channel: 16, ..message(0, b"a channel too many") };
    room.send_frame(&Frame::Message(elsewhere)).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
}

/// H-4.2a, b: an announcement allocates nothing; too large or too many ones close the connection.
#[test]
fn announcements_beyond_the_limits_close() {
    let block = |number, length| Frame::Block(BlockFrame { number, tag: 0, length, root: [0; 32] });
    let mut room = Room::new();
    for number in 0..64 {
        room.send_frame(&block(number, 64 << 20)).unwrap();
    }
    assert!(ends_at_server(&room.lan).is_empty());
    room.send_frame(&block(64, 1)).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
    let mut room = Room::new();
    room.send_frame(&block(0, (64 << 20) + 1)).unwrap();
    room.assert_closed(CloseCode::BLOCK_TOO_LARGE);
}

/// The first chunk of the first block, in slices of this size.
fn slice(kind: SliceKind, index: u8, data: &[u8]) -> Frame<'_> {
    let at = ChunkAt { block: 0, index: 0 };
    Frame::Slice(SliceFrame { at, kind, index, data })
}

fn only_slice(data: &[u8]) -> Frame<'_> {
    slice(SliceKind::Last(SliceSize::new(1024).unwrap()), 0, data)
}

/// H-4.2j: a block whose bytes are not those announced is detected before it is delivered.
#[test]
fn a_block_with_a_wrong_digest_is_not_delivered() {
    let mut room = Room::new();
    let root = *Block::new(0, &b"what was announced"[..]).digest();
    let frame = BlockFrame { number: 0, tag: 0, length: 18, root };
    room.send_frame(&Frame::Block(frame)).unwrap();
    room.send_frame(&only_slice(b"what was delivered")).unwrap();
    room.assert_closed(CloseCode::BLOCK_DAMAGED);
}

/// A chunk whose size does not fit its block closes the connection.
#[test]
fn a_chunk_that_does_not_fit_its_block_closes() {
    let mut room = Room::new();
    let frame = BlockFrame { number: 0, tag: 0, length: 5, root: [0; 32] };
    room.send_frame(&Frame::Block(frame)).unwrap();
    room.send_frame(&only_slice(b"longer than five")).unwrap();
    room.assert_closed(CloseCode::PROTOCOL);
}

/// A response to a challenge that was never sent has no effect, and a challenge is answered once.
#[test]
fn forged_path_frames_have_no_effect() {
    let mut room = Room::new();
    room.send_frame(&Frame::PathResponse([7; 8])).unwrap();
    for i in 0..100 {
        room.send_frame(&Frame::PathChallenge([i; 8])).unwrap();
    }
    assert!(ends_at_server(&room.lan).is_empty());
    assert_eq!(room.lan.peer().address(), room.lan.addresses[0]);
}

/// Unread packets are dropped for newer ones; memory stays within its limit.
#[test]
fn unread_packets_are_dropped_oldest_first() {
    let mut room = Room::new();
    let (now, from) = (room.lan.now, room.lan.addresses[0]);
    for n in 0..4_000u16 {
        let mut datagram = Vec::new();
        let number = room.next + u32::from(n);
        DataHeader { from: Role::Client, phase: false, to: room.server, number }
            .write(&mut datagram);
        Frame::Packet { sequence: Sequence::new(n), data: &[1; 1000] }.write(&mut datagram);
        let tag = open_tag(PROTOCOL_ID, room.client.0, &datagram);
        datagram.extend_from_slice(&tag);
        room.lan.server.handle_datagram(now, from, &mut datagram).unwrap();
    }
    let dropped = room.lan.peer().stats().packets_dropped;
    assert!((2_900..3_100).contains(&dropped), "{dropped} of 4,000 dropped at 1 MiB");
}

/// Empty blocks cost their sender nothing but an announcement. Each counts against the credit, and unread
/// ones give none back: they cannot fill memory.
#[test]
fn unread_empty_blocks_hold_the_sender_back() {
    let mut config = server_config();
    (config.connection.max_block_bytes, config.connection.max_unread_block_bytes) =
        (1 << 20, 1 << 20);
    let mut room = Room::with(config);
    let (now, from) = (room.lan.now, room.lan.addresses[0]);
    let mut memory = 0;
    for number in 0..400_000 {
        let mut datagram = Vec::new();
        let packet = room.next + number;
        DataHeader { from: Role::Client, phase: false, to: room.server, number: packet }
            .write(&mut datagram);
        let root = *blake3::hash(b"").as_bytes();
        Frame::Block(BlockFrame { number, tag: 0, length: 0, root }).write(&mut datagram);
        let tag = open_tag(PROTOCOL_ID, room.client.0, &datagram);
        datagram.extend_from_slice(&tag);
        let _refused = room.lan.server.handle_datagram(now, from, &mut datagram);
        if !room.lan.peer().state().is_open() {
            break;
        }
        memory = memory.max(room.lan.server.stats().memory_bytes);
    }
    assert!(!room.lan.peer().state().is_open() && memory < 4 << 20, "{memory} bytes");
    room.assert_closed(CloseCode::CREDIT);
}

/// A receiver that acknowledges every slice, but never the chunk, is probed at intervals, and disconnected
/// after a time without progress.
#[test]
fn a_peer_that_never_completes_a_chunk_is_disconnected() {
    let mut room = Room::new();
    room.send_frame(&Frame::Ping).unwrap();
    room.lan.peer().send_block(&Block::new(1, vec![1; 2_000])).unwrap();
    room.lan.run_with(30, |_, _| false);
    // That it has both slices, and never that it has the chunk.
    let size = SliceSize::new(1162).unwrap();
    let at = ChunkAt { block: 0, index: 0 };
    for map in [&[0b01][..], &[0b11]] {
        room.send_frame(&Frame::SlicesHere(SlicesHereFrame { at, size, map })).unwrap();
    }
    let before = room.lan.peer().stats().slices_sent;
    for second in 0..14 {
        room.lan.run_with(1_000, |_, _| false);
        assert!(room.send_frame(&Frame::Ping).is_ok(), "still open after {second} s");
    }
    let asked = room.lan.peer().stats().slices_sent - before;
    assert!((1..=64).contains(&asked), "{asked} slices to a peer that has all of them");
    room.lan.run_with(2_000, |_, _| false);
    assert_eq!(ends_at_server(&room.lan), [&CloseReason::Here(CloseCode::NO_PROGRESS)]);
}

/// H-4.1b: an ack without room beside a slice is sent before it, in a datagram of its own.
#[test]
fn an_ack_without_room_beside_a_slice_goes_alone() {
    let mut room = Room::new();
    let root = [1; 32];
    let frame = BlockFrame { number: 0, tag: 0, length: 262_144, root };
    room.send_frame(&Frame::Block(frame)).unwrap();
    let data = [7; 1024];
    let send = |room: &mut Room, index: u8| {
        let mut datagram = Vec::new();
        let number = room.next;
        DataHeader { from: Role::Client, phase: false, to: room.server, number }
            .write(&mut datagram);
        slice(SliceKind::Source, index, &data).write(&mut datagram);
        let tag = open_tag(PROTOCOL_ID, room.client.0, &datagram);
        datagram.extend_from_slice(&tag);
        // Every other number is missing, so that acks are long.
        room.next += 2;
        let (now, from) = (room.lan.now, room.lan.addresses[0]);
        room.lan.server.handle_datagram(now, from, &mut datagram).unwrap();
        number
    };
    (0..40).for_each(|index| {
        send(&mut room, index);
    });
    room.lan.run_with(50, |_, _| false);
    room.lan.peer().send_block(&Block::new(1, vec![1; 20_000])).unwrap();
    let newest = send(&mut room, 40);
    let (mut is_acked, mut slices) = (false, 0);
    room.lan.run_with(50, |way, datagram| {
        if matches!(way, Way::Down(_)) && datagram[0] == 0x0e {
            let plaintext = &datagram[13..datagram.len() - 12];
            for frame in Frames::of(plaintext).flatten() {
                match frame {
                    Frame::Ack(ack) => is_acked |= ack.largest(5_000) == u64::from(newest),
                    Frame::Slice(_) => slices += 1,
                    _ => {}
                }
            }
        }
        false
    });
    assert!(is_acked && slices > 0, "{slices} slices");
}
