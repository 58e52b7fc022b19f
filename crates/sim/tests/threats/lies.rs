//! T4, T5, T6, T7: clients with the right keys that lie.

use std::time::Duration;

use haulier_core::chunk::{ChunkId, Slice, SliceCount};
use haulier_proto::connection::{CloseCode, CloseReason, Event};
use haulier_proto::internals::{AckFrame, BlockFrame, Frame};
use haulier_proto::server::{ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::{DropReason, Instant, Machine as _};
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

/// A client that acknowledges everything up to what it should have got by now, to be sent more: it meets a
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
            keep_busy(&mut con);
        }
        worst = worst.max(caught.unwrap_or(u64::MAX));
    }
    println!("the last was caught at number {worst}");
    assert!(worst <= 512, "caught at {worst}");
}

/// Slices go on only if chunks do: the liar acks those, too.
fn keep_busy(con: &mut Con) {
    let count = SliceCount::new(256).unwrap();
    let received = haulier_core::chunk::SliceSet::full(count);
    for id in 0..8 {
        let ack = haulier_core::chunk::Ack { chunk_id: ChunkId::new(id), received };
        con.say(&[Frame::ChunkAck(ack)]);
    }
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

/// A datagram full of acks with as many ranges as fit, again and again, each of which names a thousand
/// numbers: the server does its bounded work and answers with nothing.
#[test]
fn t5_a_flood_of_ack_ranges_costs_little_and_gets_nothing() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(100_000));
    for _ in 0..10 {
        con.wait(Duration::from_millis(20));
        con.take();
    }
    let largest = con.largest();
    let mut ack = AckFrame::new(largest, Duration::ZERO, 0);
    while ack.push_run(1, 1) {}
    let frames: Vec<_> = (0..8).map(|_| Frame::Ack(ack)).collect();
    let before = con.server.stats().datagrams_sent;
    let mut sent = 0;
    for _ in 0..10_000 {
        if con.closed.is_some() {
            break; // It named a skipped number.
        }
        con.say(&frames);
        sent += con.take();
    }
    assert!(sent <= 200, "{sent} datagrams, {before} before");
}

/// A block of more than the server takes closes the connection before a byte of memory is taken for it,
/// and so do more blocks than may be announced. A block within the limit takes memory as slices come.
#[test]
fn t6_an_announcement_takes_no_memory() {
    let frame = |number, length| BlockFrame { number, tag: 0, length, digest: [0; 32] };
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_block_bytes(1 << 20);
    let config = config.with_connection(connection);
    let mut con = Con::new(config.clone(), 1, None);
    con.say(&[Frame::Block(frame(0, (1 << 20) + 1))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::BLOCK_TOO_LARGE)));
    let mut con = Con::new(config.clone(), 2, None);
    (0..8).for_each(|number| con.say(&[Frame::Block(frame(number, 1 << 20))]));
    assert_eq!(con.closed, None);
    con.say(&[Frame::Block(frame(8, 1 << 20))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
    let mut con = Con::new(config, 3, None);
    con.say(&[Frame::Block(frame(u32::MAX, 1))]);
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::PROTOCOL)));
}

/// A hundred thousand empty blocks that are never read: what waits is bounded, and a sender that goes on is
/// closed with `resources`. Empty ones counted for nothing once.
#[test]
fn t6_unread_empty_blocks_do_not_pile_up() {
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_unread_block_bytes(10_000);
    let mut con = Con::new(config.with_connection(connection), 1, None);
    let digest = block(0).digest().to_owned();
    let mut taken = 0;
    let id = con.server.connections().next().unwrap();
    for number in 0..100_000 {
        let frame = BlockFrame { number, tag: 0, length: 0, digest };
        let mut datagram = con.raw.link.as_mut().unwrap().frames(&[Frame::Block(frame)]);
        // The application reads nothing.
        let _counted = con.server.handle_datagram(con.now, address(CLIENT), &mut datagram);
        if !con.server.connection(id).unwrap().state().is_open() {
            break;
        }
        taken = number;
    }
    con.poll_events();
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::RESOURCES)));
    assert!(taken < 1000, "{taken}");
}

/// Blocks that are not what was announced, while an earlier one waits for a reader: the connection closes
/// with `block damaged` once that has read. The violation was forgotten here, and all later blocks with it.
#[test]
fn t6_a_damaged_block_behind_an_unread_one_closes() {
    let config = server_config(Keyed::Secret);
    let connection = config.connection.with_max_unread_block_bytes(0);
    let mut con = Con::new(config.with_connection(connection), 1, None);
    let (right, wrong) = (block(0).digest().to_owned(), [1; 32]);
    for (number, digest) in [(0, right), (1, wrong)] {
        let frame = BlockFrame { number, tag: 0, length: 0, digest };
        let mut datagram = con.raw.link.as_mut().unwrap().frames(&[Frame::Block(frame)]);
        con.server.handle_datagram(con.now, address(CLIENT), &mut datagram).unwrap();
    }
    con.poll_events();
    let _sent = con.take();
    con.wait(Duration::from_millis(1));
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::BLOCK_DAMAGED)));
}

/// Slices with every count, index and length, of this chunk and others: none makes the server fail, answer
/// with more than an ack, or lose the block that it is sending.
#[test]
fn t7_slices_that_contradict_each_other_are_dropped() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, Some(50_000));
    let mut rng = Rng::new(1);
    let data = [3; 1024];
    let (mut said, mut sent) = (0, 0);
    for round in 0..20_000 {
        let count = SliceCount::new(rng.between(1, 256) as usize).unwrap();
        let index = count.index(rng.below(count.get() as u64) as usize).unwrap();
        let length = if index.is_last() { rng.between(1, 1024) as usize } else { 1024 };
        let id = ChunkId::new(rng.below(3) as u16);
        con.say(&[Frame::Slice(Slice::new(id, index, &data[..length]).unwrap())]);
        said += 1;
        if round % 10 == 0 {
            con.wait(Duration::from_millis(1));
        }
        sent += con.take();
    }
    println!("{said} slices, {sent} datagrams back");
    assert!(con.closed.is_none() || con.closed == Some(CloseReason::Here(CloseCode::PROTOCOL)));
    assert!(sent * 2 <= said + 400, "{sent} datagrams for {said}");
}

/// Sealed with the right key and no frames at all, a cut one, an unknown one: closed with `protocol`.
#[test]
fn t7_frames_that_are_none_close_with_protocol() {
    for plaintext in [&[][..], &[13], &[255], &[3, 0, 0], &[1, 2, 0], &[11, 0, 0, 1]] {
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

/// The other way round: a client announces a block and sends a slice of it now and then, or none. It holds a
/// place and what it sent; the server throws it out after twice the time its sender would wait.
#[test]
fn t12_a_client_whose_block_stands_still_is_thrown_out() {
    let mut con = Con::new(server_config(Keyed::Secret), 1, None);
    let frame = BlockFrame { number: 0, tag: 0, length: 1 << 20, digest: [0; 32] };
    con.say(&[Frame::Block(frame)]);
    while con.closed.is_none() && con.now < ms(120_000) {
        con.wait(Duration::from_millis(1000));
        con.take();
        con.say(&[Frame::Ping]);
    }
    assert_eq!(con.closed, Some(CloseReason::Here(CloseCode::NO_PROGRESS)));
    assert!(con.now <= ms(31_000), "{:?}", con.now);
}
