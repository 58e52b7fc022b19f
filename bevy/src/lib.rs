//! haulier for [Bevy](https://bevy.org): a player joins in one round trip, and the world that the server
//! sends is an asset.
//!
//! | what | is |
//! |---|---|
//! | a connection to a server | [`HaulierClient`], a resource; to join and leave, [`JoinCommands`] |
//! | its state | [`HaulierState`]; [`JoinProgress`] for the load screen, [`LeaveReason`] after it |
//! | a block of the server | an asset: `asset_server.load("haulier://world")`, by [`HaulierAssetPlugin`] |
//! | a server | [`HaulierServer`], a resource; each client of it is an entity with a [`RemoteClient`] |
//! | what arrives | [`FromServer`] and [`FromClient`], Bevy's messages, with haulier's events in them |
//! | to send | [`ToServer`] and [`ToClients`], Bevy's messages; or the methods of the two resources |
//!
//! Events that have arrived are there before the systems of the frame, from [`HaulierSystems::Receive`] of
//! `PreUpdate`; messages that the systems write are sent after them, in [`HaulierSystems::Send`] of
//! `PostUpdate`. haulier's own thread receives and sends in between, so a frame that takes long delays no
//! other player.
//!
//! A client, whole:
//!
//! ```no_run
//! use bevy_app::prelude::*;
//! use bevy_asset::prelude::*;
//! use bevy_ecs::prelude::*;
//! use bevy_haulier::prelude::*;
//! use bevy_state::prelude::*;
//!
//! fn main() {
//!     App::new()
//!         // With `bevy`, `DefaultPlugins` is in the place of these two.
//!         .add_plugins((HaulierAssetPlugin::default(), TaskPoolPlugin::default()))
//!         .add_plugins((AssetPlugin::default(), bevy_state::app::StatesPlugin))
//!         .add_plugins(HaulierClientPlugin::needs(["world"]))
//!         .add_systems(Startup, |mut commands: Commands| commands.join("haulier1:..."))
//!         .add_systems(OnEnter(HaulierState::Joining), load)
//!         .add_systems(OnEnter(HaulierState::Playing), play)
//!         .add_systems(OnEnter(HaulierState::Left), |why: Res<LeaveReason>| println!("{}", why.text))
//!         .run();
//! }
//!
//! #[derive(Resource)]
//! struct World(Handle<BlockBytes>);
//!
//! fn load(mut commands: Commands, assets: Res<AssetServer>) {
//!     commands.insert_resource(World(assets.load("haulier://world")));
//! }
//!
//! fn play(world: Res<World>, blocks: Res<Assets<BlockBytes>>, mut to: MessageWriter<ToServer>) {
//!     println!("{} bytes", blocks.get(&world.0).map_or(0, |block| block.len()));
//!     to.write(ToServer::message("hello"));
//! }
//! ```

mod assets;
mod blocks;
mod client;
mod join;
mod outgoing;
mod progress;
mod server;

/// The crate that this one is a face of: tickets, settings, events.
pub use haulier;

pub use assets::{BlockBytes, BlockBytesLoader, HaulierAssetPlugin};
pub use blocks::{HaulierBlocks, block_tag, named_block};
pub use client::{FromServer, HaulierClient, HaulierClientPlugin};
pub use join::{HaulierState, JoinCommands, LeaveReason};
pub use outgoing::{Recipients, SendFailed, ToClients, ToServer};
pub use progress::JoinProgress;
pub use server::{
    Connected, FromClient, HaulierServer, HaulierServerPlugin, RemoteClient, ServerStopped,
};

use bevy_ecs::schedule::SystemSet;

/// What most games name: `use bevy_haulier::prelude::*`.
pub mod prelude {
    pub use crate::{
        BlockBytes, Connected, FromClient, FromServer, HaulierAssetPlugin, HaulierBlocks,
        HaulierClient, HaulierClientPlugin, HaulierServer, HaulierServerPlugin, HaulierState,
        HaulierSystems, JoinCommands, JoinProgress, LeaveReason, Recipients, RemoteClient,
        SendFailed, ToClients, ToServer, named_block,
    };
    // Bevy's prelude has an `Event` of its own.
    pub use haulier::Event as HaulierEvent;
    pub use haulier::{
        self, Block, CloseCode, ErrorKind, ServerConfig, ServerCredentials, ServerEvent,
    };
}

/// When a frame receives and sends: what to order a system against that runs in the same schedule.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HaulierSystems {
    /// In `PreUpdate`: the events that have arrived become messages, entities, progress and states. The
    /// states change after it, before `Update`.
    Receive,
    /// In `PostUpdate`: what the systems of this frame wrote goes to haulier.
    Send,
}
