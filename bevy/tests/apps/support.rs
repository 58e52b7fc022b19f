//! A server's app and clients' apps, and frames of both until something has happened.

use bevy::MinimalPlugins;
use bevy_app::{App, Update};
use bevy_asset::{Asset, Handle, LoadState, io::Reader};
use bevy_asset::{AssetApp as _, AssetLoader, AssetPlugin, AssetServer, Assets, LoadContext};
use bevy_ecs::prelude::*;
use bevy_haulier::haulier::{Secret, ServerConfig, ServerCredentials, random_secret};
use bevy_haulier::prelude::*;
use bevy_reflect::TypePath;
use bevy_state::app::StatesPlugin;
use bevy_state::prelude::*;

/// Frames in a row in which no end hears anything, after which it is not waited for any longer: a second, and
/// six on a machine that is busy, for frames are then as slow as all else.
const QUIET_FRAMES: usize = 3_000;

/// Frames after which a test has failed in which something is heard again and again.
const MAX_FRAMES: usize = 60_000;

/// An asset that reads its bytes with a loader of its own: lines of text, none of which is `damaged`.
#[derive(Asset, TypePath, Clone, Debug, PartialEq)]
pub(crate) struct Level(pub(crate) Vec<String>);

#[derive(TypePath)]
struct LevelLoader;

impl AssetLoader for LevelLoader {
    type Asset = Level;
    type Settings = ();
    type Error = std::io::Error;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        _: &(),
        _: &mut LoadContext<'_>,
    ) -> Result<Level, std::io::Error> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await?;
        let text = String::from_utf8(bytes).map_err(std::io::Error::other)?;
        if text.contains("damaged") {
            return Err(std::io::Error::other("this level is damaged"));
        }
        Ok(Level(text.lines().map(str::to_owned).collect()))
    }
}

/// What the server gives to each client that asks.
#[derive(Resource, Default)]
pub(crate) struct Gifts(pub(crate) Vec<Block>);

/// What one app has received, in the order in which its systems saw it.
#[derive(Resource, Default)]
pub(crate) struct Seen<M>(pub(crate) Vec<M>);

fn see<M: Message + Clone>(mut messages: MessageReader<M>, mut seen: ResMut<Seen<M>>) {
    seen.0.extend(messages.read().cloned());
}

/// Collects the messages of a type, as a game's system in `Update` sees them.
pub(crate) fn watch<M: Message + Clone>(app: &mut App) {
    app.insert_resource(Seen::<M>(Vec::new())).add_systems(Update, see::<M>);
}

pub(crate) fn seen<M: Message + Clone>(app: &App) -> &[M] {
    &app.world().resource::<Seen<M>>().0
}

pub(crate) struct Ends {
    pub(crate) server: App,
    pub(crate) client: App,
    pub(crate) ticket: String,
}

pub(crate) fn config() -> ServerConfig {
    config_with(random_secret().unwrap())
}

pub(crate) fn config_with(secret: Secret) -> ServerConfig {
    ServerConfig::new(7, ServerCredentials::default().with_secret(secret))
}

/// An app with this server in it, which gives its gifts.
pub(crate) fn server_app(server: HaulierServer) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, HaulierServerPlugin))
        .insert_resource(server)
        .init_resource::<Gifts>()
        .add_systems(Update, give.run_if(resource_exists::<HaulierServer>));
    watch::<FromClient>(&mut app);
    app
}

fn give(server: Res<HaulierServer>, gifts: Res<Gifts>, mut from: MessageReader<FromClient>) {
    for FromClient { id, event, .. } in from.read() {
        if let ServerEvent::Connecting { .. } = event {
            for block in &gifts.0 {
                server.send_block(*id, block).unwrap();
            }
        }
    }
}

/// An app of a client with assets, which plays once it has these blocks.
pub(crate) fn client_app(needs: &[&str]) -> App {
    let mut app = App::new();
    app.add_plugins((HaulierAssetPlugin::default().with_name("told", 77), MinimalPlugins))
        .add_plugins((AssetPlugin::default(), StatesPlugin))
        .add_plugins(HaulierClientPlugin::needs(needs.iter().copied()))
        .init_asset::<Level>()
        .register_asset_loader(LevelLoader);
    watch::<FromServer>(&mut app);
    watch::<StateTransitionEvent<HaulierState>>(&mut app);
    app
}

/// A server with these gifts, and a client that has not joined yet.
pub(crate) fn ends(gifts: Vec<Block>, needs: &[&str]) -> Ends {
    let server = HaulierServer::bind("127.0.0.1:0", config()).unwrap();
    let ticket = ticket(&server);
    let mut server = server_app(server);
    server.insert_resource(Gifts(gifts));
    Ends { server, client: client_app(needs), ticket }
}

pub(crate) fn ticket(server: &HaulierServer) -> String {
    server.ticket(&[server.local_addr()]).unwrap().unwrap().to_text()
}

impl Ends {
    /// The client joins in its next frame.
    pub(crate) fn join(&mut self) {
        let ticket = self.ticket.clone();
        self.client.world_mut().commands().join(ticket.as_str());
        self.client.world_mut().flush();
    }

    pub(crate) fn frame(&mut self) {
        self.server.update();
        self.client.update();
        std::thread::yield_now();
    }

    /// Frames of both until this is so, or until nothing more can be expected.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let (mut heard, mut quiet) = (self.heard(), 0);
        for _ in 0..MAX_FRAMES {
            if is_so(self) {
                return;
            }
            self.frame();
            let now = self.heard();
            quiet = if now == heard { quiet + 1 } else { 0 };
            heard = now;
            if quiet == QUIET_FRAMES {
                break;
            }
        }
        panic!(
            "never: {what}; the client is {:?}, and both have heard nothing for {quiet} frames. The \
             client's events end with {}, the server's with {}",
            state(&self.client),
            beginning(seen::<FromServer>(&self.client).last()),
            beginning(seen::<FromClient>(&self.server).last()),
        );
    }

    /// The number of events at the client and at the server, and of states that the client has entered.
    fn heard(&self) -> (usize, usize, usize) {
        let entered = seen::<StateTransitionEvent<HaulierState>>(&self.client).len();
        let events =
            (seen::<FromServer>(&self.client).len(), seen::<FromClient>(&self.server).len());
        (events.0, events.1, entered)
    }

    /// Frames until the client is in this state.
    #[track_caller]
    pub(crate) fn until_state(&mut self, wanted: HaulierState) {
        self.until(&format!("{wanted:?}"), |ends| state(&ends.client) == wanted);
    }

    pub(crate) fn reason(&self) -> &LeaveReason {
        self.client.world().resource::<LeaveReason>()
    }

    /// The entities of the server's clients.
    pub(crate) fn clients(&mut self) -> Vec<(Entity, RemoteClient)> {
        let world = self.server.world_mut();
        let mut clients = world.query::<(Entity, &RemoteClient)>();
        clients.iter(world).map(|(entity, client)| (entity, *client)).collect()
    }

    pub(crate) fn load<A: Asset>(&self, path: &'static str) -> Handle<A> {
        self.client.world().resource::<AssetServer>().load(path)
    }

    pub(crate) fn load_state<A: Asset>(&self, handle: &Handle<A>) -> LoadState {
        self.client.world().resource::<AssetServer>().load_state(handle)
    }

    pub(crate) fn asset<A: Asset>(&self, handle: &Handle<A>) -> Option<&A> {
        self.client.world().resource::<Assets<A>>().get(handle)
    }
}

/// What an event is, without all bytes of its block.
fn beginning(event: Option<&impl std::fmt::Debug>) -> String {
    format!("{event:?}").chars().take(100).collect()
}

pub(crate) fn state(app: &App) -> HaulierState {
    **app.world().resource::<State<HaulierState>>()
}

/// The states that were entered, in order.
pub(crate) fn entered(app: &App) -> Vec<HaulierState> {
    seen::<StateTransitionEvent<HaulierState>>(app)
        .iter()
        .filter_map(|moved| moved.entered)
        .collect()
}

/// Bytes that are not all alike, the same each time.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}
