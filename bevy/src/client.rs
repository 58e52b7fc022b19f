//! The client: its plugin, its resource, and what each frame makes of its events.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use bevy_app::{App, Plugin, PostUpdate, PreUpdate};
use bevy_asset::AssetServer;
use bevy_ecs::message::{Message, MessageWriter};
use bevy_ecs::resource::Resource;
use bevy_ecs::schedule::IntoScheduleConfigs as _;
use bevy_ecs::system::{Commands, Res, ResMut};
use bevy_ecs::world::World;
use bevy_state::app::AppExtStates as _;
use bevy_state::state::{NextState, State, StateTransition};
use haulier::{Client, CloseCode, CloseReason, Connect, ConnectError, Event};

use crate::assets::register_bytes;
use crate::outgoing::{SendFailed, ToServer, send_to_server};
use crate::{HaulierBlocks, HaulierState, HaulierSystems, JoinProgress, LeaveReason, block_tag};

/// A client: [`HaulierClient`], its states and messages.
///
/// **Add it after `DefaultPlugins`**: it needs Bevy's `StatesPlugin`. Its counterpart for assets,
/// [`HaulierAssetPlugin`](crate::HaulierAssetPlugin), goes before them.
#[derive(Clone, Debug, Default)]
pub struct HaulierClientPlugin {
    needs: Vec<String>,
}

impl HaulierClientPlugin {
    /// A client that plays as soon as it has these blocks, by name ([`block_tag`]), and no asset is still
    /// being loaded from them: a load that began while it was joining. `default()` needs none, and plays as
    /// soon as it is connected.
    pub fn needs<N: Into<String>>(blocks: impl IntoIterator<Item = N>) -> Self {
        Self { needs: blocks.into_iter().map(Into::into).collect() }
    }
}

impl Plugin for HaulierClientPlugin {
    fn build(&self, app: &mut App) {
        assert!(
            app.get_schedule(StateTransition).is_some(),
            "add HaulierClientPlugin after DefaultPlugins, or after StatesPlugin, which is not in \
             MinimalPlugins: it has states"
        );
        register_bytes(app);
        app.insert_resource(Session { needs: self.needs.clone(), ..Session::default() })
            .init_resource::<JoinProgress>()
            .add_message::<FromServer>()
            .add_message::<ToServer>()
            .add_message::<SendFailed>()
            .init_state::<HaulierState>()
            .add_systems(PreUpdate, receive.in_set(HaulierSystems::Receive))
            .add_systems(PostUpdate, send_to_server.in_set(HaulierSystems::Send));
    }
}

/// The connection to a server. Inserted, it joins; removed, it leaves. When the connection ends, the resource
/// is removed, until the next join.
///
/// It is a [`Client`] of haulier: blocks, statistics and settings are its methods, at any time of a frame.
#[derive(Resource, Clone, Debug)]
pub struct HaulierClient {
    client: Client,
    /// Distinguishes this connection from the one that it replaces.
    serial: u64,
}

impl HaulierClient {
    /// Starts to connect, and returns at once, as [`Client::connect`] does.
    ///
    /// # Errors
    /// [`ConnectError`]: for a text that is neither ticket nor token, no usable address, or no socket.
    pub fn connect(
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
    ) -> Result<Self, ConnectError> {
        Client::connect(to).map(Self::from)
    }
}

impl From<Client> for HaulierClient {
    fn from(client: Client) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Self { client, serial: SERIAL.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Deref for HaulierClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// An event of the connection to the server, as haulier reports it: packets, messages, blocks, what was
/// acknowledged. In the order in which they happened.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct FromServer(pub Event);

/// Frames in which nothing is on its way and a block that the game needs was not announced, before that is
/// worth a warning: a second or so. A server may send its blocks one after the other.
const QUIET_FRAMES: u32 = 60;

/// The state of a join from frame to frame.
#[derive(Resource, Default)]
pub(crate) struct Session {
    /// The names of the blocks that the game needs.
    needs: Vec<String>,
    /// The serial of the [`HaulierClient`] that the events come from.
    serial: Option<u64>,
    is_new: bool,
    is_connected: bool,
    announced: HashSet<u64>,
    arrived: HashSet<u64>,
    quiet_frames: u32,
    ended: Option<LeaveReason>,
}

impl Session {
    /// A join that failed before there was a client.
    pub(crate) fn fail(&mut self, error: &ConnectError) {
        self.begin(None);
        self.end(error.into());
    }

    fn begin(&mut self, serial: Option<u64>) {
        *self = Self {
            needs: std::mem::take(&mut self.needs),
            serial,
            is_new: true,
            ..Self::default()
        };
    }

    /// The first reason is the one.
    fn end(&mut self, reason: LeaveReason) {
        self.ended.get_or_insert(reason);
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::BlockAnnounced { tag, .. } => {
                self.announced.insert(*tag);
            }
            Event::BlockCancelled { tag, .. } => {
                self.announced.remove(tag);
            }
            Event::Block { tag, .. }
            | Event::BlockHere { tag }
            | Event::BlockComplete { tag, .. } => {
                self.arrived.insert(*tag);
            }
            Event::Closed(reason) => self.end(reason.clone().into()),
            _ => {}
        }
    }

    /// The names that the game needs, and under which nothing was announced or has arrived.
    fn missing(&self, blocks: Option<&HaulierBlocks>) -> Vec<String> {
        let is_known = |name: &&String| {
            let tag = tag(blocks, name);
            self.announced.contains(&tag) || self.arrived.contains(&tag)
        };
        self.needs.iter().filter(|name| !is_known(name)).cloned().collect()
    }

    /// Whether it is time to warn that something is missing: once, after some frames with nothing on its way.
    fn is_overdue(&mut self, missing: &[String]) -> bool {
        let is_quiet = self.is_connected && self.announced.is_subset(&self.arrived);
        let waits = is_quiet && !missing.is_empty();
        self.quiet_frames = if waits { self.quiet_frames.saturating_add(1) } else { 0 };
        self.quiet_frames == QUIET_FRAMES
    }

    /// Whether the game can play: what it needs is here, and no load of it is still going on.
    fn is_ready(&self, blocks: Option<&HaulierBlocks>, assets: Option<&AssetServer>) -> bool {
        let is_loading = |name: &String| {
            let ids =
                assets.map(|assets| (assets, assets.get_path_ids(format!("haulier://{name}"))));
            ids.is_some_and(|(assets, ids)| {
                ids.into_iter().any(|id| assets.load_state(id).is_loading())
            })
        };
        self.is_connected
            && self
                .needs
                .iter()
                .all(|name| self.arrived.contains(&tag(blocks, name)) && !is_loading(name))
    }
}

/// The tag of the block with this name.
fn tag(blocks: Option<&HaulierBlocks>, name: &str) -> u64 {
    blocks.map_or_else(|| block_tag(name), |blocks| blocks.tag(name))
}

/// Takes what has arrived since the last frame.
fn receive(
    client: Option<Res<HaulierClient>>,
    blocks: Option<Res<HaulierBlocks>>,
    assets: Option<Res<AssetServer>>,
    mut session: ResMut<Session>,
    mut progress: ResMut<JoinProgress>,
    mut messages: MessageWriter<FromServer>,
    state: Res<State<HaulierState>>,
    mut next: ResMut<NextState<HaulierState>>,
    mut commands: Commands,
) {
    let (client, blocks) = (client.as_deref(), blocks.as_deref());
    match client {
        Some(client) if session.serial != Some(client.serial) => session.begin(Some(client.serial)),
        None if session.serial.is_some() => session.end(CloseReason::Here(CloseCode::DONE).into()),
        _ => {}
    }
    if session.is_new {
        session.is_new = false;
        *progress = JoinProgress::default();
        if let Some(blocks) = blocks {
            blocks.begin();
        }
        next.set(HaulierState::Joining);
    } else if let (HaulierState::Left, Some(blocks)) = (state.get(), blocks) {
        blocks.age("there is no connection any more: join first");
    }
    loop {
        let event = match client.map(|client| client.poll()) {
            Some(Ok(Some(event))) => event,
            Some(Err(error)) => break session.end((&error).into()),
            _ => break,
        };
        session.note(&event);
        progress.note(&event);
        if let Some(blocks) = blocks {
            keep(blocks, assets.as_deref(), &event);
        }
        messages.write(FromServer(event));
    }
    if *state.get() == HaulierState::Joining {
        let missing = session.missing(blocks);
        if session.is_overdue(&missing) {
            tracing::warn!(
                "the game needs {missing:?}, and the server has announced nothing of this name: is it the \
                 name that the server gives to named_block()?"
            );
        }
        if progress.missing != missing {
            progress.missing = missing;
        }
    }
    // A state that was set in this frame is entered before the next one is.
    match (state.get(), matches!(*next, NextState::Unchanged)) {
        (HaulierState::Joining | HaulierState::Playing, true) => {}
        _ => return,
    }
    if let Some(reason) = session.ended.clone() {
        if let Some(blocks) = blocks {
            blocks.end(&reason.text);
        }
        let serial = session.serial.take();
        commands.insert_resource(reason);
        commands.queue(move |world: &mut World| drop_client(world, serial));
        next.set(HaulierState::Left);
    } else if *state.get() == HaulierState::Joining && session.is_ready(blocks, assets.as_deref()) {
        next.set(HaulierState::Playing);
    }
}

/// Hands a block to the loads that wait for it, or loads again what came from an earlier one.
fn keep(blocks: &HaulierBlocks, assets: Option<&AssetServer>, event: &Event) {
    match event {
        Event::Block { tag, data } => {
            let again = blocks.arrive(*tag, data.clone());
            if let Some(assets) = assets {
                again.iter().for_each(|name| assets.reload(format!("haulier://{name}")));
            }
        }
        Event::BlockCancelled { tag, code, .. } => blocks.give_up(*tag, *code),
        Event::Chunk { tag, .. } => blocks.is_in_chunks(*tag),
        _ => {}
    }
}

/// Removes a client that has ended, and not the one that has taken its place.
fn drop_client(world: &mut World, serial: Option<u64>) {
    let client = world.get_resource::<HaulierClient>();
    if client.is_some_and(|client| Some(client.serial) == serial) {
        world.remove_resource::<HaulierClient>();
    }
}
