//! What a frame costs a transfer: a block from a server to a client that both look once a frame, against the
//! same two waiting for events.
//!
//! `cargo bench -p haulier --bench game_loop`. Over loopback, with the rate capped at 5 Mbit/s and
//! without a cap; the ratios are of medians of one run. Without a cap a block takes less than a frame,
//! and what is seen is how many frames it takes. The time is that from `send_block` until all of the
//! block is acknowledged, seen from outside: the frame in which the application notices it is not the
//! transfer's.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use haulier::{
    Block, Client, Connect, ConnectionId, Credentials, Listen, Server, ServerConfig,
    ServerCredentials, ServerEvent,
};

const CAP_BPS: u64 = 5_000_000;

/// Of each cell; the median counts.
const RUNS: usize = 3;

/// How a game looks for events.
#[derive(Clone, Copy)]
struct Game {
    name: &'static str,
    is_inline: bool,
    /// `None` waits.
    frame: Option<Duration>,
}

const fn game(name: &'static str, is_inline: bool, hz: u32) -> Game {
    let frame = if hz == 0 { None } else { Some(Duration::from_nanos(1_000_000_000 / hz as u64)) };
    Game { name, is_inline, frame }
}

const GAMES: [Game; 7] = [
    game("wait", false, 0),
    game("60 Hz", false, 60),
    game("30 Hz", false, 30),
    game("inline, wait", true, 0),
    game("inline, 60 Hz", true, 60),
    game("inline, 30 Hz", true, 30),
    game("wait, again", false, 0),
];

fn main() {
    let cells = [CAP_BPS, u64::MAX].map(|cap| [(256 * 1024, cap), (1024 * 1024, cap)]);
    for (bytes, cap) in cells.into_iter().flatten() {
        let limit = Duration::from_secs_f64(bytes as f64 * 8.0 / cap as f64);
        let name = if cap == CAP_BPS { "at 5 Mbit/s" } else { "without a cap" };
        println!("{} KiB {name}, at best {} ms:", bytes / 1024, limit.as_millis());
        let mut baseline = None;
        for game in GAMES {
            let mut times: Vec<_> = (0..RUNS).map(|_| run(game, bytes, cap)).collect();
            times.sort_unstable();
            let median = times[RUNS / 2];
            let baseline = *baseline.get_or_insert(median);
            let ratio = median.as_secs_f64() / baseline.as_secs_f64();
            println!("  {:<15} {:>6} ms  {ratio:.3} x", game.name, median.as_millis());
        }
    }
}

/// How long the block takes.
fn run(game: Game, bytes: usize, max_rate_bps: u64) -> Duration {
    let credentials = ServerCredentials::default().with_open_access();
    let mut config = ServerConfig::new(7, credentials);
    config.connection.max_rate_bps = max_rate_bps;
    let listen = Listen::bind("127.0.0.1:0").unwrap();
    let listen = if game.is_inline { listen.inline() } else { listen };
    let server = listen.start(config).unwrap();
    let connect = Connect::new(server.local_addr(), 7, Credentials::Open);
    let connect = if game.is_inline { connect.inline() } else { connect };
    let (block, is_over) = (Block::new(1, vec![7; bytes]), AtomicBool::new(false));
    let (begun, begins) = mpsc::channel::<(ConnectionId, Instant)>();
    thread::scope(|scope| {
        let observer = server.clone();
        scope.spawn(|| serve(server, game, &block, &begun, &is_over));
        scope.spawn(|| {
            let client = Client::connect(connect).unwrap();
            each_frame(game, &is_over, |max| while client.wait(max).unwrap().is_some() {});
        });
        let (id, began) = begins.recv().unwrap();
        while observer.sending(id).is_some() {
            thread::sleep(Duration::from_micros(200));
        }
        let took = began.elapsed();
        is_over.store(true, Relaxed);
        took
    })
}

fn serve(
    server: Server,
    game: Game,
    block: &Block,
    begun: &mpsc::Sender<(ConnectionId, Instant)>,
    is_over: &AtomicBool,
) {
    each_frame(game, is_over, |max| {
        while let Some((id, event)) = server.wait(max).unwrap() {
            if let ServerEvent::Connecting { .. } = event {
                server.send_block(id, block).unwrap();
                begun.send((id, Instant::now())).unwrap();
            }
        }
    });
}

/// Looks once a frame, or waits 5 ms at a time.
fn each_frame(game: Game, is_over: &AtomicBool, look: impl Fn(Duration)) {
    let mut next = Instant::now();
    while !is_over.load(Relaxed) {
        let Some(frame) = game.frame else {
            look(Duration::from_millis(5));
            continue;
        };
        look(Duration::ZERO);
        next += frame;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}
