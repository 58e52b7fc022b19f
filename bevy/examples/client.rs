//! A client: it joins with the ticket that the server has printed, loads the world, and says hello.
//!
//!     cargo run --example client haulier1:...

use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_haulier::prelude::*;

#[derive(Resource)]
struct Level(Handle<BlockBytes>);

fn main() -> AppExit {
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0));
    App::new()
        .add_plugins(HaulierAssetPlugin::default()) // before the assets
        // In a game with a window: DefaultPlugins, in the place of these three.
        .add_plugins((MinimalPlugins.set(frames), AssetPlugin::default(), StatesPlugin))
        .add_plugins(HaulierClientPlugin::needs(["world"])) // after the states
        .add_systems(Startup, join)
        .add_systems(Update, show)
        .add_systems(OnEnter(HaulierState::Playing), play)
        .add_systems(Update, listen.run_if(in_state(HaulierState::Playing)))
        .add_systems(OnEnter(HaulierState::Left), left)
        .run()
}

fn join(mut commands: Commands, assets: Res<AssetServer>) {
    commands.join(std::env::args().nth(1).unwrap_or_default().as_str());
    commands.insert_resource(Level(assets.load("haulier://world")));
}

/// A line each time that another percent is here.
fn show(progress: Res<JoinProgress>, mut shown: Local<Option<u32>>) {
    let percent = (progress.fraction() * 100.0) as u32;
    if shown.replace(percent) != Some(percent) {
        println!("{percent:3} %");
    }
}

fn play(level: Res<Level>, blocks: Res<Assets<BlockBytes>>, mut to: MessageWriter<ToServer>) {
    println!("the world has {} bytes", blocks.get(&level.0).map_or(0, |block| block.len()));
    to.write(ToServer::message("hello"));
}

fn listen(mut from: MessageReader<FromServer>, mut commands: Commands) {
    for FromServer(event) in from.read() {
        if let HaulierEvent::Message { data, .. } = event {
            println!("the server says {}", String::from_utf8_lossy(data));
            commands.leave();
        }
    }
}

fn left(why: Res<LeaveReason>, mut exit: MessageWriter<AppExit>) {
    println!("{}", why.text);
    exit.write(if why.code() == Some(CloseCode::DONE) {
        AppExit::Success
    } else {
        AppExit::error()
    });
}
