//! A player: an app without a window, which joins, loads the level, plays until the server closes, and says
//! what it saw.

use std::sync::mpsc::Sender;
use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_haulier::haulier::Connect;
use bevy_haulier::prelude::*;

use crate::level::{Level, LevelLoader, Snapshot};

/// What a player saw.
#[derive(Resource, Clone, Default)]
pub(crate) struct Report {
    pub(crate) number: usize,
    /// Its frames from the request until it played.
    pub(crate) joined_after: Option<u32>,
    pub(crate) is_level_right: bool,
    /// Snapshots that were received, in the order of the server's frames, each with the part of the level
    /// that was here then. 2 when it played.
    pub(crate) snapshots: Vec<(u32, f32)>,
    pub(crate) wrong_snapshots: u32,
    pub(crate) why_left: String,
}

impl Report {
    /// Snapshots that it missed from the first to the last that it had, and the most in a row.
    pub(crate) fn missed(&self) -> (u32, u32) {
        let gaps = self.snapshots.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1);
        (gaps.clone().sum(), gaps.max().unwrap_or(0))
    }
}

#[derive(Resource)]
struct TheLevel(Handle<Level>);

#[derive(Resource)]
struct To(Sender<Report>);

/// Joins and plays, in this thread, until the connection is over.
pub(crate) fn play(number: usize, ticket: &str, reports: Sender<Report>) {
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0));
    // The server knows by the request who asks.
    let connect = Connect::try_from(ticket).expect("a ticket").with_request([number as u8]);
    App::new()
        .add_plugins(HaulierAssetPlugin::default())
        .add_plugins((MinimalPlugins.set(frames), AssetPlugin::default(), StatesPlugin))
        .add_plugins(HaulierClientPlugin::needs(["level"]))
        .init_asset::<Level>()
        .register_asset_loader(LevelLoader)
        .insert_resource(Report { number, ..Report::default() })
        .insert_resource(To(reports))
        .insert_resource(HaulierClient::connect(connect).expect("a socket"))
        .add_systems(OnEnter(HaulierState::Joining), load)
        .add_systems(OnEnter(HaulierState::Playing), begin)
        .add_systems(OnEnter(HaulierState::Left), leave)
        .add_systems(Update, (count.run_if(in_state(HaulierState::Joining)), watch))
        .run();
}

fn load(mut commands: Commands, assets: Res<AssetServer>) {
    commands.insert_resource(TheLevel(assets.load("haulier://level")));
}

fn count(mut report: ResMut<Report>) {
    *report.joined_after.get_or_insert(0) += 1;
}

/// The snapshots go on while the level loads.
fn watch(
    mut from: MessageReader<FromServer>,
    state: Res<State<HaulierState>>,
    progress: Res<JoinProgress>,
    mut report: ResMut<Report>,
) {
    for FromServer(event) in from.read() {
        let HaulierEvent::Packet { data, .. } = event else { continue };
        match Snapshot::from_bytes(data) {
            Some(seen) if seen == Snapshot::of(seen.frame) => {
                let is_playing = **state == HaulierState::Playing;
                let part = if is_playing { 2.0 } else { progress.fraction() };
                // A packet may overtake another.
                let at = report.snapshots.partition_point(|(frame, _)| *frame < seen.frame);
                report.snapshots.insert(at, (seen.frame, part));
            }
            _ => report.wrong_snapshots += 1,
        }
    }
}

fn begin(
    level: Res<TheLevel>,
    levels: Res<Assets<Level>>,
    mut report: ResMut<Report>,
    mut to: MessageWriter<ToServer>,
) {
    report.is_level_right = levels.get(&level.0).is_some_and(|level| level == Level::cave());
    to.write(ToServer::message("playing"));
}

fn leave(
    why: Res<LeaveReason>,
    to: Res<To>,
    mut report: ResMut<Report>,
    mut exit: MessageWriter<AppExit>,
) {
    report.why_left.clone_from(&why.text);
    // The receiver is gone if the example has failed.
    let _sent = to.0.send(report.clone());
    exit.write(AppExit::Success);
}
