//! No end waits long for a datagram that is lost while nothing else is sent, or after a link was down for a
//! while (STANDARD-1, 4.1 and 5.1).

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Loss, Probability, Rng, World, address};

const SEED: u64 = 0x5eed_0513;

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A server and a client of scripts, over this link.
struct Line {
    world: World,
    server: HostId<ServerHost>,
    client: HostId<ClientHost>,
}

impl Line {
    fn new(link: LinkConfig, config: ConnectionConfig, seed: u64, scripts: [Script; 2]) -> Self {
        let (server, client) = configs(Keyed::Secret, config);
        let [of_server, of_client] = scripts;
        let mut world = World::new(seed);
        let host = ServerHost::new(move |_, _| of_server.clone(), server, seed);
        let server = world.add(host, address(1), &Access::from(LinkConfig::default()));
        let host = ClientHost::new(of_client, client, ms(0), seed + 1);
        let client = world.add(host, address(2), &Access::from(link));
        Self { world, server, client }
    }
}

/// When the first message after `from` was received.
fn first_message(line: &Line, from: Instant) -> Option<Duration> {
    let heard = &line.world.host(line.client).app.heard;
    let mut messages = heard.iter().filter(|(_, event)| matches!(event, Event::Message { .. }));
    messages.find(|(at, _)| *at >= from).map(|(at, _)| at.since(from))
}

/// Sixty messages, one every ten seconds, each on a connection where nothing else happens.
#[test]
fn a_message_on_a_quiet_connection_is_not_late_by_seconds() {
    for seed in SEED..SEED + 5 {
        let mut worst = Duration::ZERO;
        let mut all = Vec::new();
        let loss = Loss::Independent(Probability::ratio(10, 100));
        let link = LinkConfig { loss, ..LinkConfig::new(20_000_000, Duration::from_millis(30)) };
        let mut line =
            Line::new(link, ConnectionConfig::default(), seed, [Script::idle(), Script::idle()]);
        line.world.run_to(ms(5_000));
        for n in 1..=60 {
            let at = ms(n * 10_000);
            line.world.run_to(at);
            line.world.act(line.server, |host, _| {
                let connection = host.connection_mut().expect("a connection");
                connection.send_message(vec![7; 100]).expect("room");
            });
            line.world.run_to(at + Duration::from_secs(9));
            let late = first_message(&line, at).expect("a message");
            worst = worst.max(late);
            all.push(late.as_millis());
        }
        all.sort_unstable();
        println!("seed {seed:#x}: slowest {worst:?}, {:?}", &all[45..]);
        assert!(worst <= Duration::from_millis(500), "{worst:?}");
    }
}

/// Which end sends the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Server,
    Client,
}

/// A link is down for the time `down` in the middle of a block. Returns how long after the link was back the
/// block went on, or how the connection ended.
fn outage(
    down: Duration,
    (from, rtt): (From, Duration),
    config: ConnectionConfig,
    seed: u64,
) -> Result<Duration, String> {
    let begins = ms(3_000 + seed % 7 * 111);
    let ends = begins + down;
    let link = LinkConfig { cut_outs: vec![begins..ends], ..LinkConfig::new(10_000_000, rtt / 2) };
    let giving = Script::idle().sending(Block::new(1, Rng::new(seed).bytes(8_000_000)), 1);
    let scripts = match from {
        From::Server => [giving, Script::idle()],
        From::Client => [Script::idle(), giving],
    };
    let mut line = Line::new(link, config, seed, scripts);
    line.world.run_to(ends);
    let segment = line.world.segment_of(line.client);
    let arrived = |world: &World| {
        let (up, down) = world.links(segment);
        if from == From::Server { down.stats().delivered } else { up.stats().delivered }
    };
    let before = arrived(&line.world);
    line.world.run_until(ends + Duration::from_secs(10), |world| arrived(world) >= before + 50);
    let went_on = line.world.now().since(ends);
    let (server, client) = (line.server, line.client);
    let received = |world: &World| {
        let of_server = world.host(server).all_apps().next().map_or(0, |app| app.received.len());
        of_server + world.host(client).app.received.len()
    };
    match line.world.run_until(ends + Duration::from_secs(40), |world| received(world) == 1) {
        true => Ok(went_on),
        false => Err(format!("{:?}", line.world.host(client).app.heard)),
    }
}

/// [H-5.1b] With other time-outs the same holds for the idle timeout.
#[test]
fn every_outage_shorter_than_the_timeouts_is_survived() {
    let impatient = ConnectionConfig::default().with_no_progress_timeout(Duration::from_secs(4));
    let mut worst = Duration::ZERO;
    for (seed, config) in
        (SEED..).zip([ConnectionConfig::default(), ConnectionConfig::default(), impatient])
    {
        for down in [500, 3_000, 6_000, 10_000, 14_000].map(Duration::from_millis) {
            for path in
                [(From::Server, 40), (From::Client, 40), (From::Server, 200), (From::Client, 300)]
            {
                let path = (path.0, Duration::from_millis(path.1));
                let went_on = outage(down, path, config, seed);
                println!("seed {seed:#x}, {down:?}, {path:?}: {went_on:?}");
                worst = worst.max(went_on.expect("a block"));
            }
        }
    }
    println!("slowest: {worst:?}");
    assert!(worst <= Duration::from_millis(1_500), "{worst:?}");
}
