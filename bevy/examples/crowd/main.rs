//! A game goes on while twenty players join it, each in a thread of this process, without a window.
//!
//!     cargo run --example crowd
//!     cargo run --example crowd -- --svg crowd.svg
//!
//! The server simulates, and sends a snapshot to everybody sixty times a second. The players come one after
//! the other; each loads the level, 256 KiB, from the wire as an asset, at no more than 3 Mbit/s, so that
//! several do at a time, and receives the snapshots meanwhile. It ends with a table of what they saw, and
//! fails if a level was wrong or the game stood still for anyone.

mod level;
mod picture;
mod player;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy_haulier::prelude::*;

use level::{Level, Snapshot};
use player::{Report, play};

const PLAYERS: usize = 20;

/// Frames from one player's coming to the next, and after the last has joined.
const BETWEEN: u32 = 9;
const AFTER: u32 = 120;

/// The level takes some 40 frames at this rate.
const RATE_BPS: u64 = 3_000_000;

/// Frames after which the game is over, even if a player has not joined: a minute.
const MOST_FRAMES: u32 = 3_600;

/// The most snapshots in a row that anyone may miss: a quarter of a second.
const MOST_MISSED: u32 = 15;

/// The game.
#[derive(Resource)]
struct Game {
    frame: u32,
    level: Block,
    ticket: String,
    players: [Times; PLAYERS],
    numbers: HashMap<Entity, usize>,
    reports: Sender<Report>,
    /// In which frame the last of them played.
    complete: Option<u32>,
}

/// The server's frames in which a player asked, and played.
#[derive(Clone, Copy, Default)]
struct Times {
    asked: u32,
    played: Option<u32>,
}

#[derive(Resource)]
struct Reports(Mutex<Receiver<Report>>);

/// What they have said, for after the game.
#[derive(Resource, Default)]
struct Said(Vec<Report>);

fn main() -> AppExit {
    let (to, reports) = channel();
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0));
    let (server, ticket) = listen().expect("a socket");
    let game = Game {
        frame: 0,
        level: named_block("level", Level::cave().to_bytes()),
        ticket,
        players: [Times::default(); PLAYERS],
        numbers: HashMap::new(),
        reports: to,
        complete: None,
    };
    App::new()
        .add_plugins((MinimalPlugins.set(frames), HaulierServerPlugin))
        .insert_resource(server)
        .insert_resource(game)
        .insert_resource(Reports(Mutex::new(reports)))
        .init_resource::<Said>()
        .add_systems(Update, (hear, invite, simulate, finish).chain())
        .run()
}

fn listen() -> Result<(HaulierServer, String)> {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let mut config = ServerConfig::new(1, credentials);
    config.connection.max_rate_bps = RATE_BPS;
    let server = HaulierServer::bind("127.0.0.1:0", config)?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    Ok((server, ticket.to_text()))
}

/// Gives the level to whoever asks, and hears who plays.
fn hear(server: Res<HaulierServer>, mut game: ResMut<Game>, mut from: MessageReader<FromClient>) {
    let frame = game.frame;
    for FromClient { client, id, event } in from.read() {
        match event {
            ServerEvent::Connecting { request, .. } => {
                let number = request.first().map_or(PLAYERS, |number| usize::from(*number));
                if number >= PLAYERS || server.send_block(*id, &game.level).is_err() {
                    server.close(*id, CloseCode::NOT_ACCEPTED, "not a player of this game");
                    continue;
                }
                game.numbers.insert(*client, number);
                game.players[number].asked = frame;
            }
            ServerEvent::Connection(HaulierEvent::Message { data, .. }) if data == "playing" => {
                let number = game.numbers[client];
                game.players[number].played = Some(frame);
                if game.players.iter().all(|player| player.played.is_some()) {
                    game.complete = Some(frame);
                }
            }
            _ => {}
        }
    }
}

/// The players come one after the other.
fn invite(game: Res<Game>) {
    let number = (game.frame / BETWEEN) as usize;
    if game.frame.is_multiple_of(BETWEEN) && number < PLAYERS {
        let (ticket, reports) = (game.ticket.clone(), game.reports.clone());
        std::thread::spawn(move || play(number, &ticket, reports));
    }
}

/// A frame of the game, sent to everyone who is there.
fn simulate(mut game: ResMut<Game>, mut to: MessageWriter<ToClients>) {
    game.frame += 1;
    to.write(ToClients::packet(Recipients::All, Snapshot::of(game.frame).to_bytes()));
}

/// Ends when everyone has played for a while, and has said what it saw.
fn finish(
    server: Res<HaulierServer>,
    game: Res<Game>,
    reports: Res<Reports>,
    mut said: ResMut<Said>,
    mut exit: MessageWriter<AppExit>,
) -> Result {
    if game.complete.is_some_and(|complete| game.frame == complete + AFTER) {
        server.shut_down();
    }
    said.0.extend(reports.0.lock().map_err(|_| "a player panicked")?.try_iter());
    if said.0.len() < PLAYERS && game.frame < MOST_FRAMES {
        return Ok(());
    }
    said.0.sort_by_key(|report| report.number);
    let faults = tell(&game, &said.0);
    if let [_, flag, file] = &std::env::args().collect::<Vec<_>>()[..]
        && flag == "--svg"
    {
        std::fs::write(file, picture::draw(&game.players, &said.0, game.frame))?;
    }
    faults.iter().for_each(|fault| eprintln!("crowd: {fault}"));
    exit.write(if faults.is_empty() { AppExit::Success } else { AppExit::error() });
    Ok(())
}

/// Prints the table, and returns what is wrong.
fn tell(game: &Game, reports: &[Report]) -> Vec<String> {
    let mut faults = Vec::new();
    if reports.len() < PLAYERS {
        faults.push(format!("{} of {PLAYERS} said what they saw", reports.len()));
    }
    println!("          asked in   joined after   snapshots:              most in");
    println!("player       frame   frames          while joining  playing  missed  a row");
    for report in reports {
        let times = game.players[report.number];
        let (missed, in_a_row) = report.missed();
        let playing = report.snapshots.iter().filter(|(_, part)| *part > 1.0).count();
        let joined = times.played.map(|played| played - times.asked);
        println!(
            "{:6}  {:10}   {:>12}  {:21}  {playing:7}  {missed:6}  {in_a_row:5}",
            report.number + 1,
            times.asked,
            joined.map_or("never".to_owned(), |joined| joined.to_string()),
            report.snapshots.len() - playing,
        );
        let mut check = |is_right: bool, fault: &str| {
            if !is_right {
                faults.push(format!("player {}: {fault} ({})", report.number + 1, report.why_left));
            }
        };
        check(joined.is_some() && report.joined_after.is_some(), "it has not joined");
        check(report.is_level_right, "the level is not the one that was sent");
        check(report.wrong_snapshots == 0, "a snapshot is not the one that was sent");
        check(playing as u32 >= AFTER / 2, "the game did not go on for it");
        check(in_a_row <= MOST_MISSED, "the game stood still for it");
    }
    println!(
        "{} of {PLAYERS} joined a game of {} frames, {} KiB each; a snapshot in every frame",
        reports.iter().filter(|report| report.is_level_right).count(),
        game.frame,
        game.level.data().len() / 1024,
    );
    faults
}
