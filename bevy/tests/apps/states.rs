//! A client passes through its states, each for a frame at least, and its progress is that of the join.

use bevy_app::{App, TaskPoolPlugin, Update};
use bevy_asset::AssetPlugin;
use bevy_ecs::prelude::*;
use bevy_haulier::haulier::{Client, Connect};
use bevy_haulier::prelude::*;
use bevy_state::app::StatesPlugin;
use bevy_state::prelude::*;

use crate::support::{Ends, Gifts, bytes, config, ends, entered, seen, server_app, state, ticket};
use crate::warnings::Warnings;

#[test]
fn a_join_passes_through_its_states_and_counts_its_bytes() {
    let gifts = vec![named_block("world", bytes(300_000)), named_block("mods", bytes(5_000))];
    let mut ends = ends(gifts, &["world", "mods"]);
    ends.frame();
    assert_eq!(state(&ends.client), HaulierState::Idle);
    let mut most = 0.0_f32;
    ends.join();
    ends.until("it plays", |ends| {
        let progress = ends.client.world().resource::<JoinProgress>();
        assert!(progress.received_bytes <= progress.length_bytes, "{progress:?}");
        most = most.max(progress.fraction());
        state(&ends.client) == HaulierState::Playing
    });
    use HaulierState::{Idle, Joining, Playing};
    assert_eq!(entered(&ends.client), [Idle, Joining, Playing]);
    let progress = ends.client.world().resource::<JoinProgress>();
    assert_eq!((progress.received_bytes, progress.length_bytes), (305_000, 305_000));
    assert_eq!((progress.fraction(), most), (1.0, 1.0));
}

/// What arrives in a frame is a message before the game's systems of that frame, and they see the state
/// that it leads to.
#[test]
fn the_systems_of_a_frame_see_what_has_arrived_and_the_state_of_it() {
    #[derive(Resource, Default)]
    struct Order(Vec<(bool, HaulierState)>);
    fn note(
        mut from: MessageReader<FromServer>,
        state: Res<State<HaulierState>>,
        mut order: ResMut<Order>,
    ) {
        let has_block =
            from.read().any(|FromServer(event)| matches!(event, HaulierEvent::Block { .. }));
        order.0.push((has_block, **state));
    }
    let mut ends = ends(vec![named_block("world", bytes(10_000))], &["world"]);
    ends.client.init_resource::<Order>().add_systems(Update, note);
    ends.join();
    ends.until_state(HaulierState::Playing);
    let order = &ends.client.world().resource::<Order>().0;
    let with_block = order.iter().position(|(has_block, _)| *has_block).unwrap();
    let playing = order.iter().position(|(_, state)| *state == HaulierState::Playing).unwrap();
    // In the same frame, except for a join that is over within its first frame.
    assert!(with_block == playing || with_block + 1 == playing, "{order:?}");
}

/// A name that the server does not send is reported, and after some quiet frames the log has a warning.
#[test]
fn a_block_that_the_server_does_not_know_is_missing_and_warned_of_once() {
    let warnings = Warnings::collected();
    let gifts = vec![named_block("world", bytes(20_000))];
    let mut ends = ends(gifts, &["world", "wrold"]);
    ends.join();
    let missing = |ends: &Ends| ends.client.world().resource::<JoinProgress>().missing.clone();
    ends.until("the world is announced", |ends| missing(ends) == ["wrold"]);
    ends.until("it is warned of", |_| warnings.mentioning("wrold") == 1);
    for _ in 0..200 {
        ends.frame();
    }
    assert_eq!(warnings.mentioning("wrold"), 1);
    assert_eq!(
        (state(&ends.client), missing(&ends)),
        (HaulierState::Joining, vec!["wrold".into()])
    );
}

#[test]
fn without_needs_it_plays_when_it_is_connected() {
    let mut ends = ends(Vec::new(), &[]);
    ends.join();
    ends.until_state(HaulierState::Playing);
    assert!(seen::<FromServer>(&ends.client).contains(&FromServer(HaulierEvent::Connected)));
}

/// A server with one seat: the second client waits in line, and learns its place.
#[test]
fn a_client_in_line_is_told_its_place_and_gets_the_seat() {
    let mut config = config();
    config.limits.connections = 1;
    let server = HaulierServer::bind("127.0.0.1:0", config).unwrap();
    let ticket = ticket(&server);
    let seated = Client::connect(ticket.as_str()).unwrap();
    let client = crate::support::client_app(&[]);
    let mut ends = Ends { server: server_app(server), client, ticket };
    ends.until("the first has the seat", |_| seated.state().is_some());
    ends.join();
    ends.until("its place is known", |ends| {
        ends.client.world().resource::<JoinProgress>().place == Some(1)
    });
    assert_eq!(state(&ends.client), HaulierState::Joining);
    seated.close(CloseCode::DONE, "");
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.client.world().resource::<JoinProgress>().place, None);
}

/// The resource is as good as the command: inserted it joins, removed it leaves.
#[test]
fn an_inserted_client_joins_and_a_removed_one_leaves() {
    let mut ends = ends(Vec::new(), &[]);
    let connect = Connect::try_from(ends.ticket.as_str()).unwrap();
    ends.client.insert_resource(HaulierClient::connect(connect).unwrap());
    ends.until_state(HaulierState::Playing);
    ends.client.world_mut().remove_resource::<HaulierClient>();
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().code(), Some(CloseCode::DONE));
    ends.until("the server hears it", |ends| ends.clients().is_empty());
}

/// A client that is replaced in mid-play: the new one joins, and nothing of the old one is taken for its.
#[test]
fn a_client_that_replaces_another_joins_anew() {
    let gifts = vec![named_block("world", bytes(50_000)), named_block("news", "old")];
    let mut ends = ends(gifts, &["world"]);
    ends.join();
    ends.until_state(HaulierState::Playing);
    ends.server.insert_resource(Gifts(vec![named_block("world", bytes(70_000))]));
    ends.join();
    ends.until("it joins anew", |ends| state(&ends.client) == HaulierState::Joining);
    let world = ends.load::<BlockBytes>("haulier://world");
    ends.until_state(HaulierState::Playing);
    assert_eq!(ends.asset(&world).map(|world| world.len()), Some(70_000));
    assert_eq!(ends.client.world().resource::<JoinProgress>().length_bytes, 70_000);
    ends.until("the old one is gone", |ends| ends.clients().len() == 1);
}

#[test]
#[should_panic(expected = "add HaulierClientPlugin after DefaultPlugins")]
fn a_client_before_the_states_says_what_to_do() {
    App::new().add_plugins((HaulierClientPlugin::default(), StatesPlugin));
}

#[test]
#[should_panic(expected = "add HaulierAssetPlugin before DefaultPlugins")]
fn a_source_after_the_assets_says_what_to_do() {
    let assets = (TaskPoolPlugin::default(), AssetPlugin::default());
    App::new().add_plugins((assets, HaulierAssetPlugin::default()));
}
