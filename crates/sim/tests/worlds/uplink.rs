//! A server's one budget for its own uplink: what its clients get of it, and what a game's packets feel.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_sim::hosts::{ClientHost, Game, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0013;

const UPLINK_BPS: u64 = 8_000_000;

const FAST_UPLINK_BPS: u64 = 100_000_000;

/// A server with a limited uplink, behind a link that is faster, and clients whose links have these rates.
struct Town {
    world: World,
    server: HostId<ServerHost>,
    clients: Vec<HostId<ClientHost>>,
}

impl Town {
    fn new(uplink_bps: u64, clients_kbps: &[u64], script: &Script) -> Self {
        println!("seed {SEED:#x}");
        let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
        let server = server.with_max_uplink_bps(uplink_bps);
        let mut world = World::new(SEED);
        let script = script.clone();
        let host = ServerHost::new(move |_, _| script.clone(), server, SEED);
        let server = world.add(host, address(1), &Access::default());
        let mut clients = Vec::new();
        for (n, kbps) in (2..).zip(clients_kbps) {
            let starts = Instant::from_millis(10 * u64::from(n));
            let host = ClientHost::new(Script::idle(), client.clone(), starts, SEED + u64::from(n));
            let link =
                LinkConfig::new(kbps * 1_000, Duration::from_millis(15)).with_queue(128 << 10);
            clients.push(world.add(host, address(n), &Access::from(link)));
        }
        Self { world, server, clients }
    }

    /// Bytes of datagrams that each client has received, and that the server has sent, until this time.
    fn at(&mut self, millis: u64) -> (Vec<u64>, u64) {
        self.world.run_to(Instant::from_millis(millis));
        let bytes = |&id: &HostId<ClientHost>| {
            let client = self.world.host(id).client.as_ref();
            client.and_then(|client| client.connection()).map_or(0, |it| it.stats().bytes_received)
        };
        let received = self.clients.iter().map(bytes).collect();
        (received, self.world.host(self.server).server.stats().bytes_sent)
    }

    /// Mbit/s that each client received, and that the server sent to all, between these two times.
    fn mbit(&mut self, from_ms: u64, to_ms: u64) -> (Vec<f64>, f64) {
        let (before, sent_before) = self.at(from_ms);
        let (after, sent) = self.at(to_ms);
        let mbit = |bytes: u64| bytes as f64 * 8.0 / (to_ms - from_ms) as f64 / 1e3;
        let each = before.iter().zip(&after).map(|(before, after)| mbit(after - before)).collect();
        (each, mbit(sent - sent_before))
    }
}

fn block(bytes: usize) -> Script {
    Script::idle().sending(Block::new(1, Rng::stream(SEED, 1).bytes(bytes)), 1)
}

/// Each of four has a link that could take all of it.
#[test]
fn the_uplink_is_kept_and_one_that_waits_for_others_still_gets_a_part() {
    let mut town = Town::new(UPLINK_BPS, &[50_000; 4], &block(16 << 20));
    let (each, all) = town.mbit(1_000, 6_000);
    println!("{each:.2?}, {all:.2} in all");
    assert!((7.4..=8.0).contains(&all), "{all}");
    assert!(each[0] > 6.3, "seven of eight turns are for who has the least left: {each:?}");
    assert!(each.iter().all(|&mbit| mbit > 0.25), "and one is for all: {each:?}");
}

/// Twenty clients join at once on a fast uplink, of which each could take half: the mean of their times is
/// little more than half of what equal shares would give, where all finish at the end, and the end is not
/// later.
#[test]
fn the_mean_join_of_a_crowd_takes_half_and_the_last_no_longer() {
    const BYTES: usize = 1 << 20;
    let mut town = Town::new(FAST_UPLINK_BPS, &[50_000; 20], &block(BYTES));
    town.world.run_to(Instant::from_millis(4_000));
    let took = |(n, &client): (u64, &HostId<ClientHost>)| {
        let started = Instant::from_millis(10 * n);
        town.world.host(client).app.received.first().map(|at| at.since(started).as_millis())
    };
    let done: Option<Vec<u128>> = (2..).zip(&town.clients).map(took).collect();
    let done = done.expect("all have it");
    let at_once = 20.0 * BYTES as f64 * 8.0 / FAST_UPLINK_BPS as f64 * 1e3;
    let (mean, last) =
        (done.iter().sum::<u128>() as f64 / 20.0, *done.iter().max().unwrap() as f64);
    println!("{done:?}: mean {mean:.0}, last {last:.0} of {at_once:.0} ms");
    assert!(mean < 0.67 * at_once, "{mean}");
    assert!(last < 1.15 * at_once + 220.0, "{last}");
}

/// Two come last, with links that need a second for what the uplink sends to all others in less: they do not
/// wait until those are done.
#[test]
fn a_slow_link_is_not_kept_waiting_for_fast_ones() {
    const BYTES: usize = 256 << 10;
    let kbps = [[50_000; 60].as_slice(), &[2_000; 2]].concat();
    let mut town = Town::new(FAST_UPLINK_BPS, &kbps, &block(BYTES));
    town.world.run_to(Instant::from_millis(4_000));
    let took = |n: usize| {
        let started = Instant::from_millis(10 * (2 + n as u64));
        let received = &town.world.host(town.clients[n]).app.received;
        received.first().map(|at| at.since(started).as_millis()).expect("it has it")
    };
    let (fast, slow) = ((0..60).map(took).max().unwrap(), [took(60), took(61)]);
    println!("{slow:?} ms, the others {fast} at most");
    assert!(slow.iter().all(|&ms| ms < 1_700), "{slow:?} ms of 1,100");
}

/// Once the others have their blocks, a client that was held back until then finds out the rate of its own
/// link.
#[test]
fn the_last_one_gets_all_of_it() {
    let mut town = Town::new(UPLINK_BPS, &[50_000; 4], &block(2 << 20));
    let late = Instant::from_millis(8_500);
    let config = town.world.host(town.clients[0]).start.config.clone();
    let host = ClientHost::new(Script::idle(), config, late, SEED + 99);
    let link = LinkConfig::new(50_000_000, Duration::from_millis(15)).with_queue(128 << 10);
    town.clients.push(town.world.add(host, address(99), &Access::from(link)));
    let (each, all) = town.mbit(10_000, 10_800);
    println!("{each:.2?}, {all:.2} in all");
    assert!(each[4] > 7.0, "{each:?}");
}

/// One has a slow link: what it does not need goes to the others.
#[test]
fn what_a_slow_client_leaves_goes_to_the_others() {
    let mut town = Town::new(UPLINK_BPS, &[50_000, 1_000, 50_000], &block(16 << 20));
    let (each, all) = town.mbit(1_000, 6_000);
    println!("{each:.2?}, {all:.2} in all");
    assert!((7.4..=8.0).contains(&all), "{all}");
    assert!(each[1] > 0.3 && each[0] + each[2] > 6.2, "{each:?}");
}

/// A game on each connection: its packets do not wait for blocks of others.
#[test]
fn packets_of_a_game_go_first() {
    let game = Game {
        interval: Duration::from_millis(16),
        bytes: 100,
        blocks_from: Instant::from_millis(1_000),
    };
    let mut script = block(16 << 20);
    script.game = Some(game);
    let mut town = Town::new(UPLINK_BPS, &[50_000; 8], &script);
    let (each, all) = town.mbit(1_500, 6_000);
    println!("{each:.2?}, {all:.2} in all");
    assert!((7.4..=8.1).contains(&all), "{all}");
    for &client in &town.clients {
        let packets = &town.world.host(client).app.packets;
        let mut delays: Vec<Duration> = packets.iter().map(|&(_, delay)| delay).collect();
        delays.sort();
        let (p50, p95) = (delays[delays.len() / 2], delays[delays.len() * 95 / 100]);
        println!("{} packets, {p50:?} p50, {p95:?} p95", delays.len());
        assert!(delays.len() > 290 && p95 < Duration::from_millis(17), "{p95:?}");
    }
}
