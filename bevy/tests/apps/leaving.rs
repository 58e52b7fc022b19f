//! How a client leaves, and the reason that it gets.

use bevy_ecs::prelude::*;
use bevy_haulier::haulier::{Client, CloseReason, Listen};
use bevy_haulier::prelude::*;

use crate::support::{Ends, client_app, config, ends, entered, seen, server_app, state, ticket};

/// A code of the game's.
const KICKED: CloseCode = CloseCode(300);

fn playing() -> Ends {
    let mut ends = ends(Vec::new(), &[]);
    ends.join();
    ends.until_state(HaulierState::Playing);
    ends.until("the server has it", |ends| !ends.clients().is_empty());
    ends
}

#[test]
fn a_client_that_is_refused_is_told_why() {
    fn refuse(server: Res<HaulierServer>, mut from: MessageReader<FromClient>) {
        for FromClient { id, event, .. } in from.read() {
            if let ServerEvent::Connecting { .. } = event {
                server.close(*id, CloseCode::NOT_ACCEPTED, "members only");
            }
        }
    }
    let mut ends = ends(Vec::new(), &["world"]);
    ends.server.add_systems(bevy_app::Update, refuse);
    ends.join();
    ends.until_state(HaulierState::Left);
    let reason = ends.reason();
    assert_eq!((reason.kind, reason.code()), (ErrorKind::Closed, Some(CloseCode::NOT_ACCEPTED)));
    assert!(reason.text.contains("members only"), "{}", reason.text);
    use HaulierState::{Idle, Joining, Left};
    assert_eq!(entered(&ends.client), [Idle, Joining, Left], "it never played");
}

#[test]
fn a_client_that_is_kicked_is_told_code_and_words() {
    let mut ends = playing();
    let id = ends.clients()[0].1.id();
    ends.server.world().resource::<HaulierServer>().close(id, KICKED, "no shouting");
    ends.until_state(HaulierState::Left);
    let close = CloseReason::There { code: KICKED, reason: "no shouting".to_owned() };
    assert_eq!(ends.reason().close, Some(close));
    assert!(!ends.client.world().contains_resource::<HaulierClient>());
    ends.until("its entity is gone", |ends| ends.clients().is_empty());
}

#[test]
fn an_entity_that_is_despawned_closes_its_connection() {
    let mut ends = playing();
    let client = ends.clients()[0].0;
    ends.server.world_mut().despawn(client);
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().code(), Some(CloseCode::DONE));
    ends.frame();
    assert_eq!(ends.clients(), [], "no other takes its place");
}

#[test]
fn a_server_that_is_removed_tells_its_clients() {
    let mut ends = playing();
    ends.server.world_mut().remove_resource::<HaulierServer>();
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().code(), Some(CloseCode::SHUTTING_DOWN));
    assert_eq!(ends.clients(), []);
}

/// A server whose process is stopped: it works only in its frames, and no frame runs any more.
#[test]
fn a_server_that_falls_silent_is_a_timeout() {
    let mut config = config();
    config.connection.idle_timeout = std::time::Duration::from_secs(1);
    let server = Listen::bind("127.0.0.1:0").unwrap().inline().start(config).unwrap();
    let server = HaulierServer::from(server);
    let ticket = ticket(&server);
    let mut ends = Ends { server: server_app(server), client: client_app(&[]), ticket };
    ends.join();
    ends.until_state(HaulierState::Playing);
    // A second of silence is a thousand frames or so of a client alone.
    let frames = (0..10_000).take_while(|_| {
        ends.client.update();
        state(&ends.client) == HaulierState::Playing
    });
    let frames = frames.count();
    assert_eq!(state(&ends.client), HaulierState::Left, "no timeout in {frames} frames");
    assert_eq!(ends.reason().kind, ErrorKind::Timeout);
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let mut ends = ends(Vec::new(), &[]);
    ends.server.world_mut().remove_resource::<HaulierServer>();
    ends.frame();
    ends.join();
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().kind, ErrorKind::Unreachable, "{}", ends.reason().text);
}

/// It has ended before its first frame, and the game removes it in the next: that is no other reason.
#[test]
fn the_first_reason_is_the_one_that_counts() {
    let mut ends = ends(Vec::new(), &[]);
    let client = Client::connect(ends.ticket.as_str()).unwrap();
    ends.until("the server has it", |ends| !ends.clients().is_empty());
    client.close(KICKED, "");
    ends.client.insert_resource(HaulierClient::from(client));
    ends.client.update();
    ends.client.world_mut().remove_resource::<HaulierClient>();
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().code(), Some(KICKED), "{}", ends.reason().text);
}

/// An error in the ticket's text is reported as all other reasons are.
#[test]
fn a_text_that_is_no_ticket_is_a_reason_to_leave() {
    let mut client = client_app(&[]);
    client.world_mut().commands().join("haulier1:nonsense");
    client.world_mut().flush();
    for _ in 0..3 {
        client.update();
    }
    assert_eq!(state(&client), HaulierState::Left);
    let reason = client.world().resource::<LeaveReason>();
    assert_eq!((reason.kind, reason.close.clone()), (ErrorKind::Credentials, None));
    use HaulierState::{Idle, Joining, Left};
    assert_eq!(entered(&client), [Idle, Joining, Left]);
}

/// A join that fails at once, in mid-play: it passes through its states nevertheless.
#[test]
fn a_bad_ticket_in_mid_play_ends_the_play_and_is_joined_with() {
    let mut ends = playing();
    ends.client.world_mut().commands().join("haulier1:nonsense");
    ends.client.world_mut().flush();
    ends.until_state(HaulierState::Left);
    assert_eq!(ends.reason().kind, ErrorKind::Credentials);
    use HaulierState::{Idle, Joining, Left, Playing};
    assert_eq!(entered(&ends.client), [Idle, Joining, Playing, Joining, Left]);
}

#[test]
fn leaving_is_heard_by_the_server_and_one_can_join_again() {
    let mut ends = playing();
    for _ in 0..2 {
        ends.client.world_mut().commands().leave();
        ends.client.world_mut().flush();
        ends.until_state(HaulierState::Left);
        assert_eq!(ends.reason().close, Some(CloseReason::Here(CloseCode::DONE)));
        ends.until("the server hears it", |ends| ends.clients().is_empty());
        ends.join();
        ends.until_state(HaulierState::Playing);
    }
    let closed =
        |from: &&FromClient| matches!(from.event, ServerEvent::Connection(HaulierEvent::Closed(_)));
    assert_eq!(seen::<FromClient>(&ends.server).iter().filter(closed).count(), 2);
}
