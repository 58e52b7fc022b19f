//! Blocks that are never whole in memory: the machine asks for their chunks, and hands them out one by one
//! (docs/BLOCKS.md).

use std::time::Duration;

use bytes::Bytes;
use haulier_proto::connection::{
    Block, BlockHandle, BlockOptions, BlockTree, ChunkValue, CloseCode, CloseReason, Delivery,
    Event, ProvideError, WantedChunk,
};
use haulier_proto::server::ServerEvent;

use super::{end_of, ends_at_server};
use crate::lan::{Lan, client_config, server_config};

const CHUNK: u64 = 262_144;

/// The bytes of a block from here on: no two chunks are alike.
fn bytes(offset: u64, length: usize) -> Vec<u8> {
    (offset..).take(length).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// A block of `length` bytes from a source; its values were computed from the last to the first.
fn source(tag: u64, length: u64) -> Block {
    let chunks = u32::try_from(length.div_ceil(CHUNK)).unwrap();
    let value = |index: u32| {
        let offset = u64::from(index) * CHUNK;
        let bytes = bytes(offset, CHUNK.min(length - offset) as usize);
        ChunkValue::of(length, index, &bytes)
    };
    let mut values: Vec<_> = (0..chunks).rev().map(value).collect();
    values.reverse();
    Block::from_source(tag, BlockTree::from_values(length, values).unwrap())
}

/// A server, and a client that gets blocks in this form.
fn room(delivery: Delivery) -> Lan {
    let mut client = client_config();
    client.connection = client.connection.with_delivery(delivery);
    let mut lan = Lan::joined(server_config(), client);
    lan.run(100);
    lan
}

fn wanted(lan: &mut Lan) -> Vec<WantedChunk> {
    let mut peer = lan.peer();
    std::iter::from_fn(|| peer.want_chunk()).collect()
}

fn give(lan: &mut Lan, wanted: &WantedChunk) -> Result<(), ProvideError> {
    let now = lan.now;
    let data = bytes(wanted.offset, wanted.length);
    lan.peer().provide_chunk(now, wanted.block, wanted.index, data)
}

/// Runs for `millis` milliseconds while the source answers the last question first.
fn run(lan: &mut Lan, millis: u64) {
    for _ in 0..millis {
        for wanted in wanted(lan).iter().rev() {
            give(lan, wanted).unwrap();
        }
        lan.run(1);
    }
}

/// Time passes in which both ends only answer datagrams.
fn pass(lan: &mut Lan, seconds: u64) {
    for _ in 0..seconds * 4 {
        lan.now = lan.now + Duration::from_millis(249);
        lan.run(1);
    }
}

/// The chunks that the client got, in the order in which it did.
fn chunks(lan: &Lan) -> Vec<(u64, Bytes)> {
    let chunk = |event: &Event| match event {
        Event::Chunk { offset, data, .. } => Some((*offset, data.clone())),
        _ => None,
    };
    lan.client_events[0].iter().filter_map(chunk).collect()
}

fn has(lan: &Lan, is_it: fn(&Event) -> bool) -> bool {
    lan.client_events[0].iter().any(is_it)
}

fn heard_of_wants(lan: &Lan) -> usize {
    let wants = |(_, event): &&(_, ServerEvent)| {
        matches!(event, ServerEvent::Connection(Event::ChunksWanted))
    };
    lan.server_events.iter().filter(wants).count()
}

#[test]
fn a_block_goes_from_a_source_to_a_sink() {
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 37 * CHUNK + 9] {
        for delivery in [Delivery::Chunks, Delivery::InOrder, Delivery::Blocks] {
            let mut lan = room(delivery);
            let block = source(7, length);
            assert_eq!((block.length(), block.data().len()), (length, 0));
            lan.peer().send_block(&block).unwrap();
            run(&mut lan, if length > 9 * CHUNK { 1_500 } else { 300 });
            let what = format!("{length} bytes, {delivery:?}");
            if delivery == Delivery::Blocks {
                let data = bytes(0, length as usize);
                let is_it =
                    |event: &Event| matches!(event, Event::Block { data: it, .. } if *it == data);
                assert!(lan.client_events[0].iter().any(is_it), "{what}");
            } else {
                let mut got = chunks(&lan);
                assert!(
                    delivery == Delivery::Chunks || got.is_sorted_by_key(|chunk| chunk.0),
                    "{what}"
                );
                got.sort_by_key(|chunk| chunk.0);
                let mut next = 0;
                for (offset, data) in got {
                    assert_eq!(
                        (offset, &data[..]),
                        (next, &bytes(offset, data.len())[..]),
                        "{what}"
                    );
                    next += data.len() as u64;
                }
                assert_eq!(next, length, "{what}");
                let last = lan.client_events[0].last();
                assert!(matches!(last, Some(Event::BlockComplete { tag: 7, .. })), "{what}");
            }
            assert!(lan.peer().all_acked(), "{what}");
        }
    }
}

/// One event for all that is wanted, and the next when the application has asked for all of it.
#[test]
fn an_application_is_told_once_that_chunks_are_wanted() {
    let mut lan = room(Delivery::Chunks);
    lan.peer().send_block(&source(7, 50 * CHUNK)).unwrap();
    pass(&mut lan, 5);
    assert_eq!(heard_of_wants(&lan), 1);
    let first = wanted(&mut lan);
    assert!(first.iter().map(|it| it.index).eq(0..16), "{first:?}");
    assert!(first.iter().all(|it| it.length == 262_144 && it.tag == 7));
    pass(&mut lan, 5);
    assert_eq!((heard_of_wants(&lan), wanted(&mut lan).len()), (1, 0));
    first[..4].iter().for_each(|wanted| give(&mut lan, wanted).unwrap());
    pass(&mut lan, 5);
    assert_eq!((heard_of_wants(&lan), wanted(&mut lan).len(), chunks(&lan).len()), (2, 4, 4));
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let mut lan = room(Delivery::Chunks);
    let now = lan.now;
    let handle = lan.peer().send_block(&source(7, 2 * CHUNK)).unwrap();
    let provide = |lan: &mut Lan, handle: BlockHandle, index, bytes: usize| {
        lan.peer().provide_chunk(now, handle, index, vec![7; bytes])
    };
    assert_eq!(
        provide(&mut lan, handle, 0, 9),
        Err(ProvideError::NotWanted { index: 0 }),
        "it waits"
    );
    lan.settle();
    assert_eq!(provide(&mut lan, handle, 0, 262_144), Err(ProvideError::NotWanted { index: 0 }));
    let wanted = wanted(&mut lan);
    let short = ProvideError::WrongLength { expected: 262_144, given: 9 };
    assert_eq!(provide(&mut lan, handle, 0, 9), Err(short));
    assert_eq!(provide(&mut lan, handle, 2, 9), Err(ProvideError::NotWanted { index: 2 }));
    assert_eq!(give(&mut lan, &wanted[0]), Ok(()));
    assert_eq!(give(&mut lan, &wanted[0]), Err(ProvideError::NotWanted { index: 0 }), "twice");
    assert!(lan.peer().cancel_block(now, handle, 9));
    assert_eq!(give(&mut lan, &wanted[1]), Err(ProvideError::UnknownBlock));
}

/// H-5.1b: neither end counts the time in which the source has nothing. It goes on as if nothing had been.
#[test]
fn a_source_that_stands_still_for_an_hour_is_no_timeout() {
    let mut lan = room(Delivery::Chunks);
    lan.peer().send_block(&source(7, 9 * CHUNK)).unwrap();
    lan.settle();
    let wanted = wanted(&mut lan);
    for part in wanted.chunks(3) {
        pass(&mut lan, 3_600);
        part.iter().for_each(|wanted| give(&mut lan, wanted).unwrap());
        lan.run(500);
    }
    assert_eq!(end_of(&lan, 0), None);
    assert_eq!(chunks(&lan).len(), 9);
    assert!(lan.peer().all_acked());
}

/// A pause is no time-out either, and open chunks are finished.
#[test]
fn a_paused_block_goes_on_when_it_is_resumed() {
    let mut lan = room(Delivery::InOrder);
    let world = Block::new(7, bytes(0, 20 << 20));
    lan.peer().set_max_rate_bps(400_000_000);
    let handle = lan.peer().send_block(&world).unwrap();
    lan.run(20);
    let now = lan.now;
    assert!(lan.peer().pause_block(now, handle));
    pass(&mut lan, 3_600);
    let before = chunks(&lan).len();
    assert!((1..79).contains(&before), "{before}");
    pass(&mut lan, 3_600);
    assert_eq!((chunks(&lan).len(), end_of(&lan, 0)), (before, None));
    let now = lan.now;
    assert!(lan.peer().resume_block(now, handle));
    lan.run(3_000);
    assert_eq!((chunks(&lan).len(), lan.peer().all_acked()), (80, true));
    let now = lan.now;
    assert!(!lan.peer().pause_block(now, handle), "it is not on its way any more");
}

/// A block that is more urgent than the one being sent goes first, whenever it becomes so.
#[test]
fn priorities_change_while_blocks_are_sent() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(100);
    lan.peer().set_max_rate_bps(40_000_000);
    let _first = lan.peer().send_block(&Block::new(1, bytes(0, 4 << 20))).unwrap();
    let second = lan.peer().send_block(&Block::new(2, bytes(9, 4 << 20))).unwrap();
    let now = lan.now;
    let options = BlockOptions::default();
    let third = lan.peer().send_block_with(now, &source(3, CHUNK), options).unwrap();
    lan.run(100);
    let now = lan.now;
    assert!(lan.peer().set_block_priority(now, second, 5));
    assert!(lan.peer().set_block_priority(now, third, 9));
    run(&mut lan, 4_000);
    let tags = lan.client_events[0].iter().filter_map(|event| match event {
        Event::Block { tag, .. } => Some(*tag),
        _ => None,
    });
    assert_eq!(tags.collect::<Vec<_>>(), [3, 2, 1]);
}

/// A part of a world goes first, and another one as soon as the player turns; a receiver that takes chunks
/// in order is not starved by it.
#[test]
fn what_is_preferred_of_a_block_goes_first() {
    let mut lan = room(Delivery::Chunks);
    lan.peer().set_max_rate_bps(80_000_000);
    let handle = lan.peer().send_block(&source(7, 200 * CHUNK)).unwrap();
    let now = lan.now;
    assert!(lan.peer().prefer_range(now, handle, 100 * CHUNK + 1..105 * CHUNK + 1));
    run(&mut lan, 500);
    let now = lan.now;
    assert!(lan.peer().prefer_range(now, handle, 150 * CHUNK..160 * CHUNK));
    run(&mut lan, 6_000);
    let order: Vec<_> = chunks(&lan).iter().map(|chunk| chunk.0 / CHUNK).collect();
    let place = |index: u64| order.iter().position(|&other| other == index).unwrap();
    assert_eq!(order.len(), 200);
    assert!((100..106).all(|index| place(index) < 16), "{order:?}");
    // Behind the chunks that were open, or read for the earlier order.
    assert!((150..160).all(|index| place(index) < 70), "{order:?}");
    assert!((60..100).chain(170..200).all(|index| place(index) > 50), "{order:?}");

    let mut client = client_config();
    client.connection = client.connection.with_delivery(Delivery::InOrder);
    client.connection.max_unread_block_bytes = 2 << 20;
    let mut lan = Lan::joined(server_config(), client);
    let handle = lan.peer().send_block(&source(7, 60 * CHUNK)).unwrap();
    let now = lan.now;
    assert!(lan.peer().prefer_range(now, handle, 30 * CHUNK..60 * CHUNK));
    run(&mut lan, 6_000);
    assert_eq!((chunks(&lan).len(), end_of(&lan, 0)), (60, None));
}

/// The program answers for what it provides: the receiver finds a wrong chunk, and says so.
#[test]
fn a_wrong_chunk_ends_the_connection_at_both_ends() {
    let mut lan = room(Delivery::Chunks);
    lan.peer().send_block(&source(7, 3 * CHUNK)).unwrap();
    lan.settle();
    let (wanted, now) = (wanted(&mut lan), lan.now);
    give(&mut lan, &wanted[0]).unwrap();
    lan.peer().provide_chunk(now, wanted[1].block, 1, vec![0; 262_144]).unwrap();
    lan.run(500);
    assert_eq!(end_of(&lan, 0), Some(&CloseReason::Here(CloseCode::BLOCK_DAMAGED)));
    let ends = ends_at_server(&lan);
    assert!(
        matches!(ends[..], [CloseReason::There { code: CloseCode::BLOCK_DAMAGED, .. }]),
        "{ends:?}"
    );
    assert!(chunks(&lan).iter().all(|(offset, _)| *offset != CHUNK), "it is not handed out");
}

/// The receiver does not want the rest, or the sender has none.
#[test]
fn a_block_may_end_in_the_middle() {
    for is_declined in [true, false] {
        let mut lan = room(Delivery::Chunks);
        let handle = lan.peer().send_block(&source(7, 40 * CHUNK)).unwrap();
        lan.settle();
        let mut asked = wanted(&mut lan);
        asked.drain(..5).for_each(|wanted| give(&mut lan, &wanted).unwrap());
        lan.run(200);
        let now = lan.now;
        if is_declined {
            let block = lan.client_events[0].iter().find_map(|event| match event {
                Event::BlockAnnounced { block, .. } => Some(*block),
                _ => None,
            });
            assert!(lan.clients[0].connection_mut().unwrap().decline_block(now, block.unwrap(), 9));
        } else {
            assert!(lan.peer().cancel_block(now, handle, 9));
        }
        lan.run(200);
        assert_eq!(give(&mut lan, &asked[0]), Err(ProvideError::UnknownBlock));
        assert_eq!((wanted(&mut lan).len(), chunks(&lan).len(), end_of(&lan, 0)), (0, 5, None));
        assert_eq!(has(&lan, |event| matches!(event, Event::BlockCancelled { .. })), !is_declined);
        // The next one goes through.
        lan.peer().send_block(&source(8, 2 * CHUNK)).unwrap();
        run(&mut lan, 300);
        assert_eq!(chunks(&lan).len(), 7);
    }
}

/// Chunks that are here come neither over the wire nor as events; all of them are the block.
#[test]
fn chunks_that_are_here_are_not_asked_for() {
    let mut lan = room(Delivery::InOrder);
    let (half, whole) = (source(7, 40 * CHUNK), source(8, 3 * CHUNK + 1));
    lan.client(0).have_chunks(*half.digest(), vec![0xff, 0x0f, 0xf0, 0xff, 0x3f]);
    lan.client(0).have_chunks(*whole.digest(), vec![0x0f]);
    lan.peer().send_block(&half).unwrap();
    lan.peer().send_block(&whole).unwrap();
    // The first chunks were asked for before the answer came.
    lan.run(100);
    let asked = wanted(&mut lan);
    assert!(asked.iter().all(|it| it.tag == 7 && (12..20).contains(&it.index) || it.index >= 38));
    asked.iter().for_each(|wanted| give(&mut lan, wanted).unwrap());
    run(&mut lan, 300);
    assert!(chunks(&lan).iter().map(|it| it.0 / CHUNK).eq((12..20).chain([38, 39])));
    assert!(has(&lan, |event| matches!(event, Event::BlockComplete { tag: 7, .. })));
    assert!(has(&lan, |event| matches!(event, Event::BlockHere { tag: 8 })));
    assert!(lan.peer().all_acked());
    let mut lan = room(Delivery::Blocks);
    assert!(!lan.client(0).have_chunks(*half.digest(), vec![1]), "nothing could be done with it");
}
