//! The server: its plugin, its resource, and an entity for each client.
//!
//! A client is an entity because that is where a game of Bevy's keeps what belongs to a player: the
//! components and children of the entity come and go with the connection, and systems ask for them by
//! queries. haulier's `ConnectionId` is in its component, for the calls that take one.

use std::collections::HashMap;
use std::net::ToSocketAddrs;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use bevy_app::{App, Plugin, PostUpdate, PreUpdate};
use bevy_ecs::component::Component;
use bevy_ecs::entity::Entity;
use bevy_ecs::lifecycle::Remove;
use bevy_ecs::message::{Message, MessageWriter};
use bevy_ecs::observer::On;
use bevy_ecs::resource::Resource;
use bevy_ecs::schedule::IntoScheduleConfigs as _;
use bevy_ecs::system::{Commands, Query, Res, ResMut};
use haulier::{
    CloseCode, ConnectionId, Event, ListenError, NetworkError, Server, ServerConfig, ServerEvent,
};

use crate::HaulierSystems;
use crate::outgoing::{SendFailed, ToClients, send_to_clients};

/// A server: [`HaulierServer`], its clients as entities, and messages. It needs no other plugin, and a client
/// may be in the same app.
#[derive(Clone, Copy, Debug, Default)]
pub struct HaulierServerPlugin;

impl Plugin for HaulierServerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Clients>()
            .add_message::<FromClient>()
            .add_message::<ServerStopped>()
            .add_message::<ToClients>()
            .add_message::<SendFailed>()
            .add_observer(close_removed)
            .add_systems(PreUpdate, receive.in_set(HaulierSystems::Receive))
            .add_systems(
                PostUpdate,
                (send_to_clients, despawn_closed).chain().in_set(HaulierSystems::Send),
            );
    }
}

/// A server that listens. Inserted, its clients become entities; removed, it closes their connections as a
/// server that shuts down.
///
/// It is a [`Server`] of haulier: blocks, closing, statistics and settings are its methods, at any time of a
/// frame.
#[derive(Resource, Clone, Debug)]
pub struct HaulierServer {
    server: Server,
    /// Distinguishes this server from the one that it replaces.
    serial: u64,
}

impl HaulierServer {
    /// Binds the first of `local` that is available, and starts, as [`Server::bind`] does; with port 0 the
    /// system chooses one.
    ///
    /// # Errors
    /// [`ListenError`], for example when the address is in use.
    pub fn bind(local: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, ListenError> {
        Server::bind(local, config).map(Self::from)
    }
}

impl From<Server> for HaulierServer {
    fn from(server: Server) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Self { server, serial: SERIAL.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Deref for HaulierServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// A client of the server. Spawned when it asks to join
/// ([`ServerEvent::Connecting`]), which is when to send it its world or to refuse it, and despawned after the
/// frame in which its end was reported.
///
/// **Despawn it, and its connection is closed** with [`CloseCode::DONE`]; for a code and words of the game's,
/// [`close`](Server::close) it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteClient {
    id: ConnectionId,
}

impl RemoteClient {
    /// Its name in the methods of [`Server`].
    #[must_use]
    pub const fn id(self) -> ConnectionId {
        self.id
    }
}

/// On a [`RemoteClient`] whose address is validated: it receives packets and messages.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected;

/// An event of a client's connection, as haulier reports it. In the order in which they happened.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct FromClient {
    /// Its entity, with a [`RemoteClient`]. There until the frame is over in which its end is reported.
    pub client: Entity,
    /// Its connection.
    pub id: ConnectionId,
    /// What has happened.
    pub event: ServerEvent,
}

/// The server cannot go on: its socket failed, or there is a bug. The resource is removed.
#[derive(Message, Clone, Debug)]
pub struct ServerStopped(pub NetworkError);

/// The entities of the connections.
#[derive(Resource, Default)]
struct Clients {
    serial: Option<u64>,
    entities: HashMap<ConnectionId, Entity>,
    /// Whose end was reported in this frame.
    closed: Vec<Entity>,
}

/// Takes what has arrived since the last frame.
fn receive(
    server: Option<Res<HaulierServer>>,
    mut clients: ResMut<Clients>,
    mut messages: MessageWriter<FromClient>,
    mut stopped: MessageWriter<ServerStopped>,
    mut commands: Commands,
) {
    let serial = server.as_ref().map(|server| server.serial);
    if clients.serial != serial {
        // The clients of a server that is gone are gone.
        let gone: Vec<Entity> = clients.entities.drain().map(|(_, entity)| entity).collect();
        gone.into_iter().for_each(|client| commands.entity(client).try_despawn());
        clients.serial = serial;
    }
    let Some(server) = server else { return };
    loop {
        let (id, event) = match server.poll() {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(error) => {
                // Said once, for without the resource there is nothing to ask again.
                commands.remove_resource::<HaulierServer>();
                stopped.write(ServerStopped(error));
                return;
            }
        };
        let client =
            *clients.entities.entry(id).or_insert_with(|| commands.spawn(RemoteClient { id }).id());
        match &event {
            ServerEvent::Connection(Event::Connected) => {
                commands.entity(client).try_insert(Connected);
            }
            ServerEvent::Connection(Event::Closed(_)) => {
                commands.entity(client).try_remove::<Connected>();
                clients.entities.remove(&id);
                clients.closed.push(client);
            }
            _ => {}
        }
        messages.write(FromClient { client, id, event });
    }
}

fn despawn_closed(mut clients: ResMut<Clients>, mut commands: Commands) {
    clients.closed.drain(..).for_each(|client| commands.entity(client).try_despawn());
}

/// A client that the game has despawned. No effect on one that is closed.
fn close_removed(
    removed: On<Remove<RemoteClient>>,
    clients: Query<&RemoteClient>,
    server: Option<Res<HaulierServer>>,
) {
    if let (Some(server), Ok(client)) = (server, clients.get(removed.entity)) {
        server.close(client.id, CloseCode::DONE, "");
    }
}
