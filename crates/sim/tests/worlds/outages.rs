//! A block over a link that goes away for a while, both ways or one way, and from a client whose address
//! changes: it goes on within 1.5 s, and nothing comes twice but what was in flight (docs/BLOCKS.md).

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{Block, ConnectionConfig, ConnectionStats, Delivery, Event};
use haulier_sim::hosts::stream::{Disk, SinkHost, SourceApp, block_of};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0a30;

const LENGTH: u64 = 10 << 20;

/// The bar of both, from the moment at which datagrams can pass again.
const MAX_GAP: Duration = Duration::from_millis(1_500);

/// How long the link is away.
const OUTAGE: Duration = Duration::from_secs(30);

/// A connection that outlives the outage.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A link of this rate in Mbit/s and this round trip in ms, whose queue holds 50 ms.
fn link(rate: u64, rtt: u64) -> LinkConfig {
    LinkConfig::new(rate * 1_000_000, Duration::from_micros(rtt * 500))
        .with_mtu(1500)
        .with_queue(rate * 1_000_000 / 8 / 20)
}

struct Line {
    world: World,
    server: HostId<ServerHost<SourceApp>>,
    client: HostId<SinkHost>,
}

impl Line {
    fn new(link: LinkConfig) -> Self {
        let connection = ConnectionConfig::default()
            .with_idle_timeout(IDLE_TIMEOUT)
            .with_max_block_bytes(1 << 40)
            .with_delivery(Delivery::Chunks);
        let (server, client) = configs(Keyed::Secret, connection);
        let mut world = World::new(SEED).for_measuring();
        let block = block_of(3, LENGTH);
        let app = move |_, _: &_| SourceApp::new(block.clone(), Disk::default());
        let server = world.add(ServerHost::new(app, server, SEED), address(1), &Access::default());
        let host = SinkHost::new(client, Disk::default(), SEED + 1);
        let client = world.add(host, address(2), &Access::from(link));
        Self { world, server, client }
    }

    fn finish(&mut self) {
        let client = self.client;
        let is_done = self.world.run_until(ms(200_000), |world| world.host(client).is_complete);
        let sink = self.world.host(client);
        assert!(is_done, "{} bytes, {:?}", sink.written, sink.end);
    }

    /// What the server and the client have counted.
    fn stats(&self) -> [ConnectionStats; 2] {
        let server = self.world.host(self.server).connection();
        let client = self.world.host(self.client).client.as_ref();
        let client = client.and_then(ClientMachine::connection);
        [server, client].map(|connection| connection.expect("a connection").stats())
    }

    /// From `at` until the next chunk was whole.
    fn gap_after(&self, at: Instant) -> Duration {
        let log = &self.world.host(self.client).log;
        let next = log.iter().map(|(at, _)| *at).find(|&it| it > at);
        next.expect("it went on").since(at)
    }
}

/// The cost of the same block on the same link without an outage: the bytes sent by the server, and those
/// received by the client.
fn undisturbed(rate: u64, rtt: u64) -> [u64; 2] {
    let mut line = Line::new(link(rate, rtt));
    line.finish();
    let [server, client] = line.stats();
    [server.bytes_sent, client.bytes_received]
}

/// The maximum number of bytes in flight: those of a round trip, and the queue.
const fn in_flight(rate: u64, rtt: u64) -> u64 {
    rate * 125 * (rtt + 50)
}

/// The bytes that a sender without answers sends into an outage: for a second at its rate (H-4.5b), then a
/// few slices every two seconds.
const fn into_nothing(rate: u64) -> u64 {
    rate * 125_000 * 11 / 10 + 200_000
}

#[test]
fn a_link_that_was_away_for_30_s_is_used_again_within_1_5_s() {
    for (rate, rtt) in [(20, 40), (100, 10), (100, 100), (50, 250)] {
        let [sent, received] = undisturbed(rate, rtt);
        let (mut worst, mut most_sent, mut most_received) = (Duration::ZERO, 0, 0);
        for phase in 0..4 {
            // Not only whole seconds: timers may run in step with those.
            let from = ms(250 + 2 * rtt + 37 * phase);
            let back = from + OUTAGE + Duration::from_millis(331 * phase);
            let away = LinkConfig { cut_outs: vec![from..back], ..link(rate, rtt) };
            let mut line = Line::new(away);
            line.finish();
            let [server, client] = line.stats();
            worst = worst.max(line.gap_after(back));
            most_sent = most_sent.max(server.bytes_sent.saturating_sub(sent));
            most_received = most_received.max(client.bytes_received.saturating_sub(received));
        }
        println!(
            "{rate} Mbit/s, {rtt} ms: {worst:?}; {most_sent} bytes more sent and {most_received} \
             more received, {} in flight",
            in_flight(rate, rtt)
        );
        assert!(worst <= MAX_GAP, "{worst:?}");
        assert!(most_sent <= in_flight(rate, rtt) + into_nothing(rate), "{most_sent}");
        assert!(most_received <= in_flight(rate, rtt), "{most_received}");
    }
}

/// How a client's address changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Its NAT mapping expired: neither end is notified.
    Unseen,
    /// It has another network, and announces that with a ping.
    Announced,
}

#[test]
fn a_client_that_moves_is_sent_the_rest_within_1_5_s() {
    for kind in [Move::Unseen, Move::Announced] {
        for (rate, rtt) in [(20, 40), (100, 10), (100, 100), (50, 250)] {
            let [sent, received] = undisturbed(rate, rtt);
            let (mut worst, mut most_sent, mut most_received) = (Duration::ZERO, 0, 0);
            for phase in 0..3 {
                let at = ms(250 + 2 * rtt + 37 * phase);
                let mut line = Line::new(link(rate, rtt));
                line.world.run_to(at);
                line.world.rebind(line.client, address(200));
                if kind == Move::Announced {
                    line.world.act(line.client, |host, _| {
                        let connection = host.client.as_mut().and_then(|it| it.connection_mut());
                        connection.expect("a connection").ping();
                    });
                }
                line.finish();
                let [server, client] = line.stats();
                worst = worst.max(line.gap_after(at));
                most_sent = most_sent.max(server.bytes_sent.saturating_sub(sent));
                most_received = most_received.max(client.bytes_received.saturating_sub(received));
            }
            println!(
                "{kind:?}, {rate} Mbit/s, {rtt} ms: {worst:?}; {most_sent} bytes more sent and \
                 {most_received} more received, {} in flight",
                in_flight(rate, rtt)
            );
            assert!(worst <= MAX_GAP, "{worst:?}");
            assert!(most_received <= in_flight(rate, rtt), "{most_received}");
        }
    }
}

/// An end of the connection, or the way from it to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Server,
    Client,
}

const ENDS: [End; 2] = [End::Server, End::Client];

/// A server as patient as `haulier serve`, and a client that waits for `timeout`. One of them sends a block,
/// and what one of them sends is lost for a while.
struct OneWay {
    sender: End,
    dark: End,
    timeout: Duration,
    down: Duration,
    seed: u64,
}

impl OneWay {
    /// How long after the return of the direction the block was complete, and how long after it became dark
    /// the first end closed.
    fn run(&self) -> (Option<Duration>, Option<Duration>) {
        let begins = ms(1_000 + self.seed % 7 * 111);
        let back = begins + self.down;
        let way = |is_dark: bool| LinkConfig {
            cut_outs: if is_dark { vec![begins..back] } else { Vec::new() },
            ..link(10, 40)
        };
        let access =
            Access { up: way(self.dark == End::Client), down: way(self.dark == End::Server) };
        let config = |seconds| ConnectionConfig::default().with_idle_timeout(seconds);
        let (server, _) = configs(Keyed::Secret, config(Duration::from_secs(120)));
        let (_, client) = configs(Keyed::Secret, config(self.timeout));
        let giving = Script::idle().sending(Block::new(1, Rng::new(self.seed).bytes(4_000_000)), 1);
        let [of_server, of_client] = match self.sender {
            End::Server => [giving, Script::idle()],
            End::Client => [Script::idle(), giving],
        };
        let mut world = World::new(self.seed);
        let host = ServerHost::new(move |_, _| of_server.clone(), server, self.seed);
        let server = world.add(host, address(1), &Access::default());
        let host = ClientHost::new(of_client, client, ms(0), self.seed + 1);
        let client = world.add(host, address(2), &access);
        let script = |world: &World, end| match end {
            End::Server => world.host(server).all_apps().next().cloned().unwrap_or_default(),
            End::Client => world.host(client).app.clone(),
        };
        let receiver = if self.sender == End::Server { End::Client } else { End::Server };
        world.run_until(back + Duration::from_secs(20), |world| {
            let is_closed = |(_, event): &(Instant, Event)| matches!(event, Event::Closed(_));
            !script(world, receiver).received.is_empty()
                || ENDS.iter().any(|&end| script(world, end).heard.iter().any(is_closed))
        });
        let closed = ENDS.iter().filter_map(|&end| {
            let heard = script(&world, end).heard;
            let end = heard.iter().find(|(_, event)| matches!(event, Event::Closed(_)));
            end.map(|(at, _)| at.since(begins))
        });
        (script(&world, receiver).received.first().map(|at| at.since(back)), closed.min())
    }
}

/// [H-5.1b] One direction that was dark for 16 s ended a transfer as soon as it was back, whatever idle
/// timeout the ends had agreed on: the sender received from its peer, and counted 15 s without progress.
#[test]
fn one_way_that_is_dark_for_less_than_the_idle_timeout_ends_nothing() {
    let seconds = Duration::from_secs;
    for (seed, (down, timeout)) in
        (SEED..).zip([(16, 60), (50, 60), (100, 120)].map(|(a, b)| (seconds(a), seconds(b))))
    {
        for (sender, dark) in ENDS.into_iter().flat_map(|it| ENDS.map(|dark| (it, dark))) {
            let (complete, closed) = OneWay { sender, dark, timeout, down, seed }.run();
            println!(
                "seed {seed:#x}, {sender:?} sends, from {dark:?} dark for {down:?} of {timeout:?}: \
                 complete {complete:?} later"
            );
            assert_eq!(closed, None, "{sender:?} sends, from {dark:?} dark for {down:?}");
            // 4 MB take 3.2 s.
            assert!(complete.is_some_and(|it| it <= MAX_GAP + seconds(4)), "{complete:?}");
        }
    }
}

/// A direction that stays dark ends the connection: not before the idle timeout, and not long after it.
#[test]
fn one_way_that_is_dark_for_longer_ends_it_at_the_idle_timeout() {
    let (timeout, down) = (Duration::from_secs(30), Duration::from_secs(200));
    for (sender, dark) in ENDS.into_iter().flat_map(|it| ENDS.map(|dark| (it, dark))) {
        let (_, closed) = OneWay { sender, dark, timeout, down, seed: SEED }.run();
        println!("{sender:?} sends, from {dark:?} dark: ended after {closed:?}");
        let bounds = timeout..timeout + Duration::from_secs(3);
        assert!(closed.is_some_and(|it| bounds.contains(&it)), "{closed:?}");
    }
}
