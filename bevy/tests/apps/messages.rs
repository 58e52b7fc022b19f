//! Packets and messages, both ways, and the entities of clients.

use bevy_ecs::prelude::*;
use bevy_haulier::haulier::Order;
use bevy_haulier::haulier::SendError;
use bevy_haulier::prelude::*;

use crate::support::{Ends, client_app, ends, seen, watch};

/// Plays, with one client.
fn playing() -> (Ends, Entity) {
    let mut ends = ends(Vec::new(), &[]);
    watch::<SendFailed>(&mut ends.client);
    watch::<SendFailed>(&mut ends.server);
    ends.join();
    ends.until_state(HaulierState::Playing);
    ends.until("the server knows it", |ends| {
        let world = ends.server.world_mut();
        world.query_filtered::<(), With<Connected>>().iter(world).count() == 1
    });
    let client = ends.clients()[0].0;
    (ends, client)
}

fn messages_of(ends: &Ends) -> Vec<(u8, Vec<u8>)> {
    let all = seen::<FromServer>(&ends.client).iter();
    all.filter_map(|FromServer(event)| match event {
        HaulierEvent::Message { channel, data } => Some((*channel, data.to_vec())),
        _ => None,
    })
    .collect()
}

#[test]
fn messages_arrive_in_order_and_on_their_channel() {
    let (mut ends, client) = playing();
    let world = ends.server.world_mut();
    for number in 0..20_u8 {
        world.write_message(ToClients::message(client, vec![number]));
    }
    world.write_message(ToClients::message_on(client, 3, Order::Unordered, "three"));
    ends.until("all are there", |ends| messages_of(ends).len() == 21);
    let ordered = messages_of(&ends).into_iter().filter(|(channel, _)| *channel == 0);
    let expected: Vec<_> = (0..20_u8).map(|number| (0, vec![number])).collect();
    assert_eq!(ordered.collect::<Vec<_>>(), expected);
    assert!(messages_of(&ends).contains(&(3, b"three".to_vec())));
}

#[test]
fn a_client_says_something_and_the_server_knows_which_one() {
    let (mut ends, client) = playing();
    ends.client.world_mut().write_message(ToServer::message("hello"));
    ends.client.world_mut().write_message(ToServer::packet("now"));
    let heard = |ends: &Ends, wanted: &dyn Fn(&HaulierEvent) -> bool| {
        let mut all = seen::<FromClient>(&ends.server).iter();
        all.any(|from| match &from.event {
            ServerEvent::Connection(event) => from.client == client && wanted(event),
            _ => false,
        })
    };
    ends.until("the message", |ends| {
        heard(ends, &|event| matches!(event, HaulierEvent::Message { data, .. } if data == "hello"))
    });
    ends.until("the packet", |ends| {
        heard(ends, &|event| matches!(event, HaulierEvent::Packet { data, .. } if data == "now"))
    });
}

#[test]
fn a_packet_of_the_server_arrives() {
    let (mut ends, client) = playing();
    ends.server.world_mut().write_message(ToClients::packet(client, "snapshot"));
    ends.until("the packet", |ends| {
        let mut all = seen::<FromServer>(&ends.client).iter();
        all.any(|FromServer(event)| {
            matches!(event, HaulierEvent::Packet { data, .. } if data == "snapshot")
        })
    });
}

#[test]
fn all_and_all_but_one_are_who_they_say() {
    let (mut ends, first) = playing();
    let (ticket, mut other) = (ends.ticket.clone(), client_app(&[]));
    other.world_mut().commands().join(ticket.as_str());
    other.world_mut().flush();
    ends.until("two play", |ends| {
        other.update();
        let world = ends.server.world_mut();
        world.query_filtered::<(), With<Connected>>().iter(world).count() == 2
    });
    let world = ends.server.world_mut();
    world.write_message(ToClients::message(Recipients::AllBut(first), "not you"));
    world.write_message(ToClients::message(Recipients::All, "everyone"));
    let texts = |app: &bevy_app::App| {
        let all = seen::<FromServer>(app).iter();
        all.filter_map(|FromServer(event)| match event {
            HaulierEvent::Message { data, .. } => Some(String::from_utf8_lossy(data).into_owned()),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    ends.until("both have heard", |ends| {
        other.update();
        texts(&ends.client).len() == 1 && texts(&other).len() == 2
    });
    assert_eq!(texts(&ends.client), ["everyone"]);
    assert_eq!(texts(&other), ["not you", "everyone"]);
}

#[test]
fn what_cannot_be_sent_is_reported() {
    let (mut ends, client) = playing();
    ends.client.world_mut().write_message(ToServer::packet(vec![0; 300_000]));
    ends.server.world_mut().write_message(ToClients::message(client, vec![0; 70_000]));
    ends.frame();
    ends.frame();
    let too_large = SendError::TooLarge { max: 65_536 };
    assert_eq!(
        seen::<SendFailed>(&ends.server),
        [SendFailed { to: Some(client), error: too_large }]
    );
    let failed = seen::<SendFailed>(&ends.client);
    assert!(matches!(failed, [SendFailed { to: None, error: SendError::TooLarge { .. } }]));

    ends.client.world_mut().remove_resource::<HaulierClient>();
    ends.client.world_mut().write_message(ToServer::message("anybody?"));
    ends.frame();
    ends.frame();
    let error = SendError::NotOpen;
    assert_eq!(seen::<SendFailed>(&ends.client).last(), Some(&SendFailed { to: None, error }));
}

/// What a game has put on a client's entity is there when its end is reported, and gone after that frame.
#[test]
fn the_entity_of_a_client_outlives_its_last_message_by_no_frame() {
    #[derive(Component)]
    struct Name(&'static str);
    #[derive(Resource, Default)]
    struct Farewells(Vec<&'static str>);
    fn farewell(
        mut from: MessageReader<FromClient>,
        names: Query<&Name, Without<Connected>>,
        mut farewells: ResMut<Farewells>,
    ) {
        for FromClient { client, event, .. } in from.read() {
            if let ServerEvent::Connection(HaulierEvent::Closed(_)) = event {
                farewells.0.push(names.get(*client).unwrap().0);
            }
        }
    }
    let (mut ends, client) = playing();
    ends.server.init_resource::<Farewells>().add_systems(bevy_app::Update, farewell);
    ends.server.world_mut().entity_mut(client).insert(Name("alice"));
    ends.client.world_mut().commands().leave();
    ends.client.world_mut().flush();
    ends.until("it is gone", |ends| ends.server.world().get_entity(client).is_err());
    assert_eq!(ends.server.world().resource::<Farewells>().0, ["alice"]);
}
