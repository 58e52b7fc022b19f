//! Levels that load from the wire.

use bevy_asset::{AssetEvent, AssetLoadFailedEvent, LoadState};
use bevy_haulier::block_tag;
use bevy_haulier::haulier::{Block, Connect, Delivery};
use bevy_haulier::prelude::*;

use crate::support::{Level, bytes, config, ends, seen, state, ticket, watch};

#[test]
fn a_level_loads_from_the_wire_with_its_own_loader() {
    let mut ends = ends(vec![named_block("level/3", "door\nkey\n")], &["level/3"]);
    watch::<AssetEvent<Level>>(&mut ends.client);
    // Before the join, as a game's start-up does.
    let level = ends.load::<Level>("haulier://level/3");
    ends.frame();
    assert!(ends.load_state(&level).is_loading());
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.asset(&level), Some(&Level(vec!["door".to_owned(), "key".to_owned()])));
    // Once, by the load that waited: none waits any longer when the connection ends, and nothing is replaced.
    ends.client.world_mut().commands().leave();
    ends.client.world_mut().flush();
    ends.until_state(HaulierState::Left);
    for _ in 0..100 {
        ends.frame();
    }
    assert!(ends.load_state(&level).is_loaded());
    let modified = AssetEvent::Modified { id: level.id() };
    assert!(!seen::<AssetEvent<Level>>(&ends.client).contains(&modified));
    let blocks = ends.client.world().resource::<HaulierBlocks>();
    assert_eq!(blocks.get("level/3"), None, "its blocks went with the connection");
}

/// The world goes with the answer to a request: this server is in no app, and no program looks at it.
#[test]
fn the_first_block_of_a_server_loads_though_no_system_sends_it() {
    let config = config().with_first_block(Some(named_block("world", "door\nkey\n")));
    let server = HaulierServer::bind("127.0.0.1:0", config).unwrap();
    let mut ends = ends(Vec::new(), &["world"]);
    ends.ticket = ticket(&server);
    let level = ends.load::<Level>("haulier://world");
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.asset(&level), Some(&Level(vec!["door".to_owned(), "key".to_owned()])));
}

/// A frame or two lie between a load in a menu and the join that it is for.
#[test]
fn a_load_of_the_frame_before_the_join_waits_for_it() {
    let mut ends = ends(vec![named_block("world", "here")], &["world"]);
    ends.join();
    ends.until_state(HaulierState::Playing);
    ends.client.world_mut().commands().leave();
    ends.client.world_mut().flush();
    ends.until_state(HaulierState::Left);
    let level = ends.load::<Level>("haulier://world");
    let blocks = ends.client.world().resource::<HaulierBlocks>().clone();
    // It asks in a task, which takes no frame.
    let has_asked = (0..20_000).any(|_| {
        std::thread::yield_now();
        format!("{blocks:?}").contains("Waiting {")
    });
    assert!(has_asked, "the load has not asked for its block");
    watch::<AssetLoadFailedEvent<Level>>(&mut ends.client);
    ends.client.update();
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.asset(&level), Some(&Level(vec!["here".to_owned()])));
    assert_eq!(
        seen::<AssetLoadFailedEvent<Level>>(&ends.client).len(),
        0,
        "it did not fail before"
    );
}

/// A cache is filled when the server has said which block it is, not before.
#[test]
fn a_join_drops_what_was_there_before_it() {
    let mut ends = ends(Vec::new(), &[]);
    let blocks = ends.client.world().resource::<HaulierBlocks>().clone();
    blocks.insert("world", "of another server");
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert_eq!(blocks.get("world"), None);
}

/// A connection with [`Delivery::InOrder`]: the chunks are messages, the game plays when all are there, and a
/// load that waits fails with the reason.
#[test]
fn a_block_in_chunks_is_the_games_to_read_and_no_asset() {
    let mut ends = ends(vec![named_block("world", bytes(600_000))], &["world"]);
    let level = ends.load::<BlockBytes>("haulier://world");
    let mut connect = Connect::try_from(ends.ticket.as_str()).unwrap();
    connect.connection.delivery = Delivery::InOrder;
    connect.connection.max_unread_block_bytes = 8 << 20;
    ends.client.insert_resource(HaulierClient::connect(connect).unwrap());
    ends.until_state(HaulierState::Playing);
    let chunks =
        seen::<FromServer>(&ends.client).iter().filter_map(|FromServer(event)| match event {
            HaulierEvent::Chunk { data, .. } => Some(data),
            _ => None,
        });
    let world: Vec<u8> = chunks.flat_map(|chunk| chunk.iter().copied()).collect();
    assert!(world == bytes(600_000));
    ends.until("the load fails", |ends| ends.load_state(&level).is_failed());
    let LoadState::Failed(error) = ends.load_state(&level) else { unreachable!() };
    assert!(error.to_string().contains("chunk by chunk"), "{error}");
    let progress = ends.client.world().resource::<JoinProgress>();
    assert_eq!((progress.received_bytes, progress.length_bytes), (600_000, 600_000));
}

#[test]
fn the_bytes_of_a_block_are_an_asset_without_a_loader() {
    let mut ends = ends(vec![named_block("world", bytes(400_000))], &["world"]);
    ends.join();
    let world = ends.load::<BlockBytes>("haulier://world");
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.asset(&world).unwrap().0, bytes(400_000));
}

/// Two at a time, by a name, by a number, and by a name that only the client knows.
#[test]
fn several_blocks_are_told_apart_by_name_number_and_table() {
    let named = named_block("world", bytes(200_000));
    let (numbered, told) = (Block::new(5, bytes(3_000)), Block::new(77, bytes(7_000)));
    let mut ends = ends(vec![named, numbered, told], &["world", "5", "told"]);
    let handles = ["haulier://world", "haulier://5", "haulier://told"];
    let handles = handles.map(|path| ends.load::<BlockBytes>(path));
    ends.join();
    ends.until_state(HaulierState::Playing);
    let lengths = handles.each_ref().map(|handle| ends.asset(handle).map(|block| block.len()));
    assert_eq!(lengths, [Some(200_000), Some(3_000), Some(7_000)]);
}

/// It is known at once that it will not come, when the connection is left. Joined again, it loads.
#[test]
fn a_block_that_never_comes_fails_when_the_connection_is_left() {
    let mut ends = ends(Vec::new(), &[]);
    let level = ends.load::<Level>("haulier://never");
    ends.join();
    ends.until_state(HaulierState::Playing);
    for _ in 0..100 {
        ends.frame();
    }
    assert!(ends.load_state(&level).is_loading());
    ends.client.world_mut().commands().leave();
    ends.client.world_mut().flush();
    ends.until("the load fails", |ends| ends.load_state(&level).is_failed());
    let LoadState::Failed(error) = ends.load_state(&level) else { unreachable!() };
    assert!(error.to_string().contains("you have left"), "{error}");

    // Without a connection a load fails as well, and does not wait for a later join.
    let later = ends.load::<Level>("haulier://later");
    ends.until("the other fails", |ends| ends.load_state(&later).is_failed());
    assert_eq!(state(&ends.client), HaulierState::Left);
}

/// The load begins in the frame that joins again, before the join has.
#[test]
fn two_joins_in_a_row_load_two_worlds() {
    let mut ends = ends(vec![named_block("world", "first")], &["world"]);
    for wanted in ["first", "second"] {
        ends.server.insert_resource(crate::support::Gifts(vec![named_block("world", wanted)]));
        let level = ends.load::<Level>("haulier://world");
        ends.join();
        ends.until_state(HaulierState::Playing);
        assert_eq!(ends.asset(&level), Some(&Level(vec![wanted.to_owned()])));
        drop(level);
        ends.client.world_mut().commands().leave();
        ends.client.world_mut().flush();
        ends.until_state(HaulierState::Left);
        // The handle is dropped, and so is the asset.
        ends.frame();
    }
}

#[test]
fn a_block_that_comes_again_replaces_the_asset() {
    let mut ends = ends(vec![named_block("world", "morning")], &["world"]);
    watch::<AssetEvent<Level>>(&mut ends.client);
    let level = ends.load::<Level>("haulier://world");
    ends.join();
    ends.until_state(HaulierState::Playing);
    let id = ends.clients()[0].1.id();
    let evening = named_block("world", "evening");
    ends.server.world().resource::<HaulierServer>().send_block(id, &evening).unwrap();
    ends.until("the evening", |ends| {
        ends.asset(&level).is_some_and(|level| level.0 == ["evening"])
    });
    let modified = AssetEvent::Modified { id: level.id() };
    ends.until("it is told", |ends| seen::<AssetEvent<Level>>(&ends.client).contains(&modified));
}

#[test]
fn a_block_that_the_server_gives_up_fails() {
    let mut ends = ends(Vec::new(), &[]);
    let level = ends.load::<Level>("haulier://world");
    ends.join();
    ends.until("somebody is there", |ends| !ends.clients().is_empty());
    let id = ends.clients()[0].1.id();
    {
        let server = ends.server.world().resource::<HaulierServer>();
        let block = named_block("world", bytes(8_000_000));
        server.set_max_rate_bps(id, 1_000_000);
        let handle = server.send_block(id, &block).unwrap();
        ends.client.world_mut().flush();
        let server = ends.server.world().resource::<HaulierServer>().clone();
        ends.until("it is on its way", |ends| {
            ends.client.world().resource::<JoinProgress>().received_bytes > 0
        });
        assert!(server.cancel_block(id, handle, 9));
    }
    ends.until("the load fails", |ends| ends.load_state(&level).is_failed());
    let LoadState::Failed(error) = ends.load_state(&level) else { unreachable!() };
    assert!(error.to_string().contains("with code 9"), "{error}");
    assert_eq!(state(&ends.client), HaulierState::Playing);
}

/// A game that cannot read its world is to say so itself: it is not kept from playing.
#[test]
fn a_level_that_its_loader_refuses_fails_and_the_game_goes_on() {
    let mut ends = ends(vec![named_block("world", "damaged")], &["world"]);
    let level = ends.load::<Level>("haulier://world");
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert!(ends.load_state(&level).is_failed());
}

/// As files do, blocks stay: an asset that was dropped is loaded again. What is removed is not.
#[test]
fn a_block_stays_until_it_is_removed() {
    let mut ends = ends(vec![named_block("world", "here")], &["world"]);
    ends.join();
    ends.until_state(HaulierState::Playing);
    for _ in 0..2 {
        let level = ends.load::<Level>("haulier://world");
        ends.until("it loads", |ends| ends.asset(&level).is_some());
        drop(level);
        ends.frame();
    }
    let blocks = ends.client.world().resource::<HaulierBlocks>().clone();
    assert_eq!(blocks.get("world").as_deref(), Some(b"here".as_slice()));
    assert_eq!(blocks.remove("world").as_deref(), Some(b"here".as_slice()));
    assert_eq!(blocks.get("world"), None);
    // From a cache, in place of the wire.
    blocks.insert("world", "cached");
    let level = ends.load::<Level>("haulier://world");
    ends.until("it loads", |ends| ends.asset(&level).is_some());
    assert_eq!(ends.asset(&level), Some(&Level(vec!["cached".to_owned()])));
}

/// The vectors of a server in another language: these names have these tags.
#[test]
fn a_name_has_the_same_tag_everywhere() {
    assert_eq!(block_tag("0"), 0);
    assert_eq!(block_tag("4611686018427387903"), (1 << 62) - 1);
    assert_eq!(block_tag("world"), 1_312_919_627_391_207_895);
    let too_large = block_tag("4611686018427387904");
    assert_eq!(too_large, 139_392_408_618_783_367, "too large for a tag: a name");
}
