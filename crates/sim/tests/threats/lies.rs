//! T4, T5, T6, T7: clients with the right keys that lie.

use std::time::Duration;

use haulier_proto::connection::{CloseCode, CloseReason, Event};
use haulier_proto::internals::frames::{
    BlockFrame, ChunkAt, Cut, SliceFrame, SliceKind, SliceSize, chunk_bytes,
};
use haulier_proto::internals::{AckFrame, Frame};
use haulier_proto::server::{ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::{DropReason, Instant, Machine as _, Sequence};
use haulier_sim::attack::raw::RawClient;
use haulier_sim::{Rng, address};

use crate::support::{CLIENT, Keyed, block, drain, ms, secret, server_config};

/// A server with a liar that has the key and is connected.
struct Con {
    server: ServerMachine,
    raw: RawClient,
    now: Instant,
    closed: Option<CloseReason>,
}

impl Con {
    fn new(config: ServerConfig, seed: u64, bytes: Option<usize>) -> Self {
        let mut entropy = [1; 32];
        entropy[..8].copy_from_slice(&seed.to_le_bytes());
        let server = ServerMachine::new(ms(0), 0, config, entropy).unwrap();
        let raw = RawClient::new(Some(&secret()), seed);
        let mut con = Self { server, raw, now: ms(0), closed: None };
        for _ in 0..3 {
            let request = con.raw.request();
            con.give(request);
        }
        let ids: Vec<_> = con.server.connections().collect();
        if let Some(bytes) = bytes {
            con.server.connection_mut(ids[0]).unwrap().send_block(con.now, &block(bytes)).unwrap();
        }
        con.take();
        let ping = con.raw.link.as_mut().unwrap().frames(&[Frame::Ping]);
        con.give(ping);
        assert_eq!(con.server.stats().accepted, 1);
        con
    }

    fn give(&mut self, mut datagram: Vec<u8>) {
        let _counted = self.server.handle_datagram(self.now, address(CLIENT), &mut datagram);
        self.poll_events();
    }

    fn say(&mut self, frames: &[Frame<'_>]) {
        let datagram = self.raw.link.as_mut().unwrap().frames(frames);
        self.give(datagram);
    }

    fn poll_events(&mut self) {
        while let Some((_, event)) = self.server.poll_event(self.now) {
            if let ServerEvent::Connection(Event::Closed(reason)) = event {
                self.closed = Some(reason);
            }
        }
    }

    /// What the server sends arrives; returns how many datagrams.
    fn take(&mut self) -> usize {
        let sent = drain(&mut self.server, self.now);
        for (_, datagram) in &sent {
            let _plaintext = self.raw.handle(self.now, datagram);
        }
        sent.len()
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
        self.poll_events();
    }

    fn largest(&self) -> u64 {
        self.raw.link.as_ref().unwrap().received.largest().unwrap_or(0)
    }
}

/// A client that acknowledges everything that it should have received by now, to be sent more: it names a
/// number that was skipped, within two windows of 256, or one that was not sent, at once. A thousand seeds.
#[test]
fn t4_optimistic_acks_are_caught_within_two_windows() {
    let mut worst = 0;
    for seed in 0..1000 {
        let config = server_config(Keyed::Secret);
        let connection = config.connection.with_max_rate_bps(100_000_000);
        let mut con = Con::new(config.with_connection(connection), seed, Some(2_000_000));
        let mut caught = None;
        while con.largest() < 2000 && caught.is_none() {
            con.wait(Duration::from_millis(5));
            con.take();
            // All numbers, those that never came among them: it cannot know which were skipped, and the
            // server sends the more the sooner it is acked.
            let largest = con.largest();
            let ack = AckFrame::new(largest, Duration::ZERO, largest.min(1023) as u32);
            con.say(&[Frame::Ack(ack)]);
            if let Some(reason) = &con.closed {
                assert_eq!(*reason, CloseReason::Here(CloseCode::PROTOCOL));
                caught = Some(largest);
            }
        }
        worst = worst.max(caught.unwrap_or(u64::MAX));
    }
    println!("the last was caught at number {worst}");
    assert!(worst <= 512, "caught at {worst}");
}

/// An ack of one number above the newest, at any time: the connection is closed on the spot.
#[test]
fn t4_an_ack_of_what_was_not_sent_closes_at_once() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(100_000));
    con.wait(Duration::from_millis(20));
    con.take();
    let ack = AckFrame::new(con.largest() + 100, Duration::ZERO, 0);
    con.say(&[Frame::Ack(ack)]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
}

/// A datagram with as many ranges as fit into an ack, again and again: the server does its bounded work and
/// answers with nothing.
#[test]
fn t5_a_flood_of_ack_ranges_costs_little_and_gets_nothing() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(100_000));
    for _ in 0..10 {
        con.wait(Duration::from_millis(20));
        con.take();
    }
    let received = &con.raw.link.as_ref().unwrap().received;
    let honest = received.ack_frame(con.now).unwrap();
    let largest = con.largest();
    let mut ranges = AckFrame::new(largest, Duration::ZERO, 0);
    while ranges.push_run(1, 1) {}
    // The frame, and for each range a look for it and a run of records that are known.
    for (ack, is_true, max_steps) in [(honest, true, 1 + 4), (ranges, false, 1 + 2 * 32)] {
        let before = con.server.work().steps;
        let mut sent = 0;
        for _ in 0..10_000 {
            if con.closed.is_some() {
                assert!(!is_true, "an honest ack");
                break; // It named a skipped number.
            }
            con.say(&[Frame::Ack(ack)]);
            sent += con.take();
        }
        let steps = con.server.work().steps - before;
        println!("{sent} datagrams, {steps} steps");
        assert!(sent <= 200, "{sent} datagrams");
        assert!(steps <= 10_000 * max_steps + 1_000, "{steps} steps");
    }
}

/// More than one ack in a datagram, of whichever type, closes the connection before any of them is looked
/// at. Dozens of acks of everything in each datagram cost as many walks over it once.
#[test]
fn t5_a_datagram_has_one_ack() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(100_000));
    con.wait(Duration::from_millis(20));
    con.take();
    let ack = con.raw.link.as_ref().unwrap().received.ack_frame(con.now).unwrap();
    con.say(&[Frame::Ack(ack)]);
    assert_eq!(con.closed, None);
    let before = con.server.work().steps;
    con.say(&[Frame::Ack(ack), Frame::Ping, Frame::Ack(ack)]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
    assert_eq!(con.server.work().steps, before);
}

/// A block of more than the server takes closes the connection before a byte of memory is taken for it,
/// and so do more blocks than may be announced. A block within the limit takes memory as slices come.
#[test]
fn t6_an_announcement_takes_no_memory() {
    let frame = |number, length| BlockFrame { number, tag: 0, length, root: [0; 32] };
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_block_bytes(1 << 20);
    let config = config.with_connection(connection);
    let mut con = Con::new(config.clone(), 1, None);
    con.say(&[Frame::Block(frame(0, (1 << 20) + 1))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::BLOCK_TOO_LARGE)));
    let mut con = Con::new(config.clone(), 2, None);
    (0..64).for_each(|number| con.say(&[Frame::Block(frame(number, 1 << 20))]));
    assert_eq!(con.closed, None);
    con.say(&[Frame::Block(frame(64, 1 << 20))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
    let mut con = Con::new(config, 3, None);
    con.say(&[Frame::Block(frame(u32::MAX, 1))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
}

/// A hundred thousand empty blocks that are never read: what waits is bounded by the credit, and a sender
/// that goes on is closed with `credit`. Empty ones counted for nothing once.
#[test]
fn t6_unread_empty_blocks_do_not_pile_up() {
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_unread_block_bytes(10_000);
    let config = config.with_connection(connection.with_max_block_bytes(1 << 20));
    let mut con = Con::new(config, 1, None);
    let root = block(0).digest().to_owned();
    let mut taken = 0;
    let id = con.server.connections().next().unwrap();
    for number in 0..100_000 {
        let frame = BlockFrame { number, tag: 0, length: 0, root };
        let mut datagram = con.raw.link.as_mut().unwrap().frames(&[Frame::Block(frame)]);
        // The application reads nothing.
        let _counted = con.server.handle_datagram(con.now, address(CLIENT), &mut datagram);
        if !con.server.connection(id).unwrap().state().is_open() {
            break;
        }
        taken = number;
    }
    let held = con.server.connection(id).unwrap().memory_bytes();
    con.poll_events();
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::CREDIT)));
    println!("{taken} blocks, {held} bytes");
    assert!(taken < 20_000 && held < 3 << 20, "{taken}, {held}");
}

/// A block that differs from its announcement, while an earlier one waits for a reader: the connection closes
/// with `block damaged` at once. The server once forgot the violation here, and all later blocks with it.
#[test]
fn t6_a_damaged_block_behind_an_unread_one_closes() {
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_unread_block_bytes(0);
    let mut con = Con::new(config.with_connection(connection), 1, None);
    let id = con.server.connections().next().unwrap();
    let (right, wrong) = (block(1).digest().to_owned(), [1; 32]);
    for (number, root, is_open) in [(0, right, true), (1, wrong, false)] {
        let frame = BlockFrame { number, tag: 0, length: 1, root };
        let (at, size) = (ChunkAt { block: number, index: 0 }, SliceSize::new(2).unwrap());
        let data = block(1).data().to_vec();
        let slice = SliceFrame { at, kind: SliceKind::Last(size), index: 0, data: &data };
        let frames = [Frame::Block(frame), Frame::Slice(slice)];
        let mut datagram = con.raw.link.as_mut().unwrap().frames(&frames);
        con.server.handle_datagram(con.now, address(CLIENT), &mut datagram).unwrap();
        assert_eq!(con.server.connection(id).unwrap().state().is_open(), is_open);
    }
    con.poll_events();
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::BLOCK_DAMAGED)));
}

/// What there is no room for is not acknowledged, and its number not in the window: the newest 64 such
/// numbers are refused. 64 are enough, for what else was in an older datagram has its effect once: played
/// again by an attacker on the path, its packet is not delivered a second time.
#[test]
fn t9_a_datagram_that_was_not_kept_delivers_its_packet_once() {
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_block_bytes(0);
    let mut con = Con::new(config.with_connection(connection), 1, None);
    let id = con.server.connections().next().unwrap();
    let at = ChunkAt { block: 0, index: 0 };
    let slice =
        Frame::Slice(SliceFrame { at, kind: SliceKind::Source, index: 0, data: &[3; 1024] });
    let recorded: Vec<_> = (0..200_u16)
        .map(|n| {
            let packet = Frame::Packet { sequence: Sequence::new(n), data: &[] };
            con.raw.link.as_mut().unwrap().frames(&[packet, slice])
        })
        .collect();
    let (mut refused, mut packets) = (0, 0);
    for round in 0..3 {
        for datagram in &recorded {
            let from = address(if round > 0 { 90 } else { CLIENT });
            let taken = con.server.handle_datagram(con.now, from, &mut datagram.clone());
            assert!(matches!(taken, Err(DropReason::NotKept | DropReason::Duplicate)), "{taken:?}");
            refused += u32::from(taken == Err(DropReason::Duplicate));
            while let Some((_, event)) = con.server.poll_event(con.now) {
                let is_packet = matches!(event, ServerEvent::Connection(Event::Packet { .. }));
                packets += u32::from(is_packet);
            }
        }
    }
    assert!(refused < 400, "some are older than the 64 that are remembered");
    assert_eq!(packets, 200, "each once");
    assert!(con.server.connection(id).unwrap().state().is_open());
}

/// Slices with every index, size and length, of announced chunks and others: one that contradicts its block
/// closes the connection with `protocol`, and none of the others makes the server answer with more than an
/// ack, or decode.
#[test]
fn t7_slices_that_contradict_their_block_close() {
    let length = 300_000;
    let frame = BlockFrame { number: 0, tag: 0, length, root: [0; 32] };
    let (mut rng, data) = (Rng::new(1), [3; 1024]);
    let (mut said, mut sent, mut closed) = (0, 0, 0);
    for seed in 0..200 {
        let mut con = Con::new(server_config(Keyed::Secret), seed, Some(50_000));
        con.say(&[Frame::Block(frame)]);
        for round in 0..100 {
            let at = ChunkAt { block: rng.below(3) as u32, index: rng.below(3) as u32 };
            let size = SliceSize::new(2 * rng.between(500, 512) as usize).unwrap();
            let index = rng.below(256) as u8;
            let kind = match rng.below(3) {
                0 => SliceKind::Source,
                1 => SliceKind::Last(size),
                _ => SliceKind::Repair,
            };
            let bytes = match kind {
                SliceKind::Last(_) => rng.between(1, size.bytes() as u64) as usize,
                _ => size.bytes(),
            };
            con.say(&[Frame::Slice(SliceFrame { at, kind, index, data: &data[..bytes] })]);
            said += 1;
            if round % 10 == 0 {
                con.wait(Duration::from_millis(1));
            }
            sent += con.take();
            if at.block == 0 && !agrees(length, at.index, kind, size, index, bytes) {
                assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
                closed += 1;
                break;
            }
            assert_eq!(con.closed, None, "{at:?} {kind:?} {size:?} {index} {bytes}");
        }
        assert_eq!(con.server.work().decodes, 0);
    }
    println!("{said} slices, {closed} closed, {sent} datagrams back");
    assert!(closed > 150 && sent <= said + 200 * 60, "{closed} closed, {sent} for {said}");
}

/// Whether a block of this length has such a slice.
fn agrees(
    length: u64,
    chunk: u32,
    kind: SliceKind,
    size: SliceSize,
    index: u8,
    bytes: usize,
) -> bool {
    let Some(cut) = chunk_bytes(length, chunk).and_then(|bytes| Cut::new(bytes, size)) else {
        return false;
    };
    let is_there = cut.range(index).is_some_and(|range| range.len() == bytes);
    match kind {
        SliceKind::Source => is_there && !cut.is_last(index),
        SliceKind::Last(_) => is_there && cut.is_last(index),
        SliceKind::Repair => usize::from(index) < cut.count().next_power_of_two(),
    }
}

/// Sealed with the right key and no frames at all, a cut one, an unknown one: closed with `protocol`.
#[test]
fn t7_frames_that_are_none_close_with_protocol() {
    for plaintext in [&[][..], &[13], &[255], &[3, 0, 0], &[1, 2, 0], &[11, 0, 0, 1], &[32], &[64]]
    {
        let mut con = Con::new(server_config(Keyed::Secret), 1, None);
        let mut datagram = con.raw.link.as_mut().unwrap().seal(plaintext);
        let taken = con.server.handle_datagram(con.now, address(CLIENT), &mut datagram);
        assert!(taken.is_err() && taken != Err(DropReason::BadTag), "{plaintext:?} {taken:?}");
        con.poll_events();
        assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)), "{plaintext:?}");
    }
}

/// A client that acks every datagram and never says that it has the chunk: what the server sends it is
/// bounded, and after the time for progress it is gone. Each ack of a repair slice too many was progress
/// once.
#[test]
fn t12_a_client_that_never_acks_slices_is_gone_after_its_time() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(200_000));
    let mut sent = 0;
    while con.closed.is_none() && con.now < ms(60_000) {
        con.wait(Duration::from_millis(10));
        sent += con.take();
        let link = con.raw.link.as_mut().unwrap();
        if let Some(ack) = link.received.ack_frame(con.now) {
            link.received.on_ack_sent(con.now, true);
            con.say(&[Frame::Ping, Frame::Ack(ack)]);
        }
    }
    println!("gone after {:?}, {sent} datagrams", con.now);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::NO_PROGRESS)));
    assert!(con.now < ms(20_000));
}

/// In the other direction: a client announces a block, sends a slice of it, and no more. The server holds
/// what the client sent, and closes the connection after twice the time that a sender would wait. Before the
/// slice it holds nothing.
#[test]
fn t12_a_client_whose_block_stands_still_is_thrown_out() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, None);
    let frame = BlockFrame { number: 0, tag: 0, length: 1 << 20, root: [0; 32] };
    let at = ChunkAt { block: 0, index: 0 };
    let slice = SliceFrame { at, kind: SliceKind::Source, index: 0, data: &[7; 1024] };
    con.say(&[Frame::Block(frame)]);
    con.say(&[Frame::Slice(slice)]);
    while con.closed.is_none() && con.now < ms(120_000) {
        con.wait(Duration::from_millis(1000));
        con.take();
        con.say(&[Frame::Ping]);
    }
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::NO_PROGRESS)));
    assert!(con.now <= ms(31_000), "{:?}", con.now);
}
