//! A game to look at: a server sends snapshots, the client inputs, both as often as the packet layer
//! advises (60 Hz in good mode, 20 in bad), over a simulated link. At two seconds a player joins, and 256
//! KiB of world cross the same link as a chunk. Shown second by second, with and without the initial burst,
//! and what the chunk did to the snapshots.
//!
//!     cargo run --release --example game_loop
//!     cargo run --release --example game_loop -- --link wifi --seed 7
//!
//! The loop of one end is in `haulier_sim::hosts` (`GamePackets` in an `ArticleHost`): the game's packets go
//! first, then the chunk's slices.

use std::time::Duration;

use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::EndpointConfig;
use haulier_article::fragment::FragmentPoolConfig;
use haulier_article::{ArticleConfig, Instant};
use haulier_sim::hosts::ArticleHost;
use haulier_sim::hosts::game::{GamePackets, ReceivedRecord, Told, Traffic};
use haulier_sim::{HostId, Probability, Profile, World, address};

const SECOND: Duration = Duration::from_secs(1);
const SECONDS: u64 = 8;
const JOIN: Instant = Instant::from_millis(2_000);
const WORLD_BYTES: usize = 256 * 1024;

/// Runs that the last table is taken over: one alone says more about its losses than about the chunk.
const SEEDS: u64 = 20;

/// How the world is sent to the player who joins.
#[derive(Clone, Copy, PartialEq)]
enum Join {
    /// Not at all: what the snapshots are like without it.
    None,
    /// Within the budget of 1 Mbit/s.
    Budget,
    /// Every slice back to back, then within the budget.
    Burst,
}

impl Join {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "no chunk",
            Self::Budget => "no burst",
            Self::Burst => "burst",
        }
    }
}

/// One end: what it sends, and both layers.
fn end(
    remote: u32,
    bytes: (usize, usize),
    large_percent: u64,
    seed: u64,
    join: Join,
) -> ArticleHost {
    let traffic = Traffic {
        interval: None,
        starts: Instant::ZERO,
        ends: None,
        bytes,
        large: Probability::percent(large_percent),
        large_bytes: (1_300, 3_500),
        refuse: Probability::NEVER,
    };
    let modes =
        GoodBadConfig::default().with_good_packets_per_second(60).with_bad_packets_per_second(20);
    let (config, pool) = (EndpointConfig::default(), FragmentPoolConfig::default());
    let mut chunks = ArticleConfig::default();
    chunks.sender.burst = join == Join::Burst;
    let packets = GamePackets::new(config, modes, pool, traffic, seed);
    ArticleHost::new(chunks, address(remote), ()).with_packets(packets)
}

struct Played {
    world: World,
    server: HostId<ArticleHost>,
    client: HostId<ArticleHost>,
    /// How long the player waited for the world.
    joined: Option<Duration>,
}

fn play(join: Join, profile: &Profile, seed: u64, show: bool) -> Played {
    let mut world = World::new(seed);
    let server = end(2, (200, 900), 15, seed, join);
    let client = end(1, (30, 90), 0, seed + 1, Join::Budget);
    let (server, client) = world.pair(server, client, profile.link(), profile.link());
    if show {
        println!("\n{}:", join.name());
        println!(
            "  s   sent  in frags  arrived  acked  lost   RTT ms  jitter ms   loss  mode  chunk"
        );
    }
    let mut joined = None;
    for second in 0..SECONDS {
        let from = Instant::ZERO + SECOND * second as u32;
        if from == JOIN && join != Join::None {
            let chunk = vec![7; WORLD_BYTES];
            let chunk = world.act(server, |host, _| host.machine.peer.send_chunk(chunk));
            assert!(chunk.is_ok(), "an empty queue takes a chunk");
        }
        // In steps, to see when the player has the world.
        for tenth in 1..=1_000 {
            world.run_to(from + SECOND * tenth / 1_000);
            if world.act(client, |host, _| host.machine.peer.pop_chunk()).is_some() {
                joined = Some(world.now().since(JOIN));
            }
        }
        if show {
            print_second(world.host(server), world.host(client), second, joined);
        }
    }
    Played { world, server, client, joined }
}

fn print_second(server: &ArticleHost, client: &ArticleHost, second: u64, joined: Option<Duration>) {
    let (sent, received) = (&server.game().sent, &client.game().received);
    let within = |at: Instant| at.as_nanos() / 1_000_000_000 == second;
    let now: Vec<_> = sent.iter().filter(|packet| within(packet.at)).collect();
    let in_fragments = now.iter().filter(|packet| packet.bytes > 1_183).count();
    let arrived = received.iter().filter(|packet| within(packet.at)).count();
    // Of the packets sent a second ago all is known by now.
    let count = |fate| sent.iter().filter(|packet| packet.told == fate).count();
    let endpoint = &server.game().endpoint;
    let rtt = endpoint.article_rtt().unwrap_or_default().as_secs_f64() * 1e3;
    let jitter = endpoint.rtt_spread().jitter.as_secs_f64() * 1e3;
    let chunk = match (server.peer().sender().progress(), joined) {
        (Some(progress), _) => format!("{} of 256 slices acked", progress.acked),
        (None, Some(after)) => format!("there after {:.2} s", after.as_secs_f64()),
        (None, None) => "-".into(),
    };
    println!(
        "{:3}  {:5}  {in_fragments:8}  {arrived:7}  {:5}  {:4}  {rtt:7.1}  {jitter:9.1}  {:4.1} %  \
         {:4}  {chunk}",
        second + 1,
        now.len(),
        count(Told::Acked),
        count(Told::Lost),
        endpoint.stats().loss * 100.0,
        format!("{:?}", endpoint.controller().mode()).to_lowercase(),
    );
}

/// What became of the snapshots that were sent within some stretches of time.
#[derive(Default)]
struct Snapshots {
    sent: usize,
    /// How long those that arrived were under way.
    delays: Vec<Duration>,
}

impl Snapshots {
    fn add(&mut self, played: &Played, from: Instant, to: Instant) {
        let sent = &played.world.host(played.server).game().sent;
        let received = &played.world.host(played.client).game().received;
        let is_within = |at: Instant| (from..to).contains(&at);
        self.sent += sent.iter().filter(|packet| is_within(packet.at)).count();
        let of_those = |packet: &&ReceivedRecord| is_within(sent[packet.number as usize].at);
        self.delays.extend(received.iter().filter(of_those).map(|packet| packet.delay));
        self.delays.sort_unstable();
    }

    fn lost_percent(&self) -> f64 {
        100.0 - self.delays.len() as f64 * 100.0 / self.sent.max(1) as f64
    }

    /// The delay in ms that `percent` percent of them did not exceed.
    fn delay(&self, percent: usize) -> f64 {
        let at = self.delays.len() * percent / 100;
        self.delays.get(at).map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e3)
    }
}

/// The snapshots of the join, beside those of the same time in a run of the same seed without a chunk.
fn print_harm(profile: &Profile, seed: u64) {
    println!(
        "\nSnapshots sent while the chunk was under way, beside the same time without it, {SEEDS} seeds:"
    );
    println!("            join s   sent    lost   delay p50   p95 ms   added p95 ms     more loss");
    let without: Vec<Played> =
        (seed..seed + SEEDS).map(|seed| play(Join::None, profile, seed, false)).collect();
    for join in [Join::Budget, Join::Burst] {
        let (mut with, mut beside, mut joined) = <(Snapshots, Snapshots, Vec<Duration>)>::default();
        for (seed, without) in (seed..).zip(&without) {
            let run = play(join, profile, seed, false);
            let took = run.joined.unwrap_or(SECOND * SECONDS as u32);
            joined.push(took);
            with.add(&run, JOIN, JOIN + took);
            beside.add(without, JOIN, JOIN + took);
        }
        joined.sort_unstable();
        println!(
            "{:>10}  {:6.2}  {:5}  {:4.1} %  {:9.1}  {:7.1}  {:13.1}  {:+6.1} points",
            join.name(),
            joined[joined.len() / 2].as_secs_f64(),
            with.sent,
            with.lost_percent(),
            with.delay(50),
            with.delay(95),
            with.delay(95) - beside.delay(95),
            with.lost_percent() - beside.lost_percent(),
        );
    }
}

fn main() -> Result<(), String> {
    let (mut profile, mut seed) = (Profile::named("mobile").ok_or("no such link")?, 1);
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().ok_or(format!("{option} needs a value"))?;
        match option.as_str() {
            "--link" => {
                let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
                let unknown = || format!("no link {value}: it is one of {}", names.join(", "));
                profile = Profile::named(&value).ok_or_else(unknown)?;
            }
            "--seed" => seed = value.parse().map_err(|_| format!("{value} is no seed"))?,
            _ => return Err(format!("{option}: use --link NAME or --seed N")),
        }
    }
    println!(
        "A game over the link {}: {} Mbit/s, round trip {} ms, {} % loss, queue {} KiB; seed {seed}.\n\
         At 2 s a player joins: 256 KiB beside the snapshots. Acked and lost are counted from the\n\
         start; round trip, jitter, loss and mode are the server's.",
        profile.name,
        profile.rate_mbit,
        profile.rtt_ms,
        profile.loss_permille as f64 / 10.0,
        profile.queue_kib,
    );
    play(Join::Budget, profile, seed, true);
    play(Join::Burst, profile, seed, true);
    print_harm(profile, seed);
    Ok(())
}
