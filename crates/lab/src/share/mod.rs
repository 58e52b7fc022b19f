//! Transfers that share a bottleneck: with each other, with TCP, and with a game.
//!
//! Each flow has its own server, and all clients are in one home, whose downlink is the bottleneck. A
//! [`Share`] has the flows and their start times, its [`ShareReport`] what each delivered, the queue and its
//! drops. A haulier flow is real machines at both ends.

mod game;
mod throughput;

pub use game::{GameReport, GameStream};
pub use throughput::{Goodput, Throughput, WINDOW, jain, percentile};

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, CloseCode, ConnectionConfig, Urgency};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, EcnPath, HostId, Link, LinkConfig, Rng, SegmentId, World, address};

use crate::rivals::TcpReceiver;
use crate::rivals::bbr::BbrSender;
use crate::rivals::cubic::CubicSender;

/// The configuration of haulier in every test of fairness and of odd links.
pub fn config() -> ConnectionConfig {
    ConnectionConfig::default()
}

/// The configuration during play, where the block must not delay the game.
pub fn config_in_play() -> ConnectionConfig {
    config().with_urgency(Urgency::DuringPlay)
}

/// The configuration with this maximum rate, to test the harness itself.
pub fn config_at(rate_bps: u64) -> ConnectionConfig {
    ConnectionConfig::default().with_max_rate_bps(rate_bps)
}

/// What a flow is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// haulier/1, with this configuration at both ends.
    Haulier(ConnectionConfig),
    /// A TCP bulk transfer with CUBIC.
    Cubic,
    /// A TCP bulk transfer with BBR.
    Bbr,
}

/// Which end of a connection sends blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Server,
    Client,
}

/// One of the flows.
#[derive(Clone, Debug)]
pub struct Competitor {
    kind: Kind,
    /// Bytes of each block; 0 sends none.
    block_bytes: usize,
    /// Which end sends them.
    sender: Sender,
    /// A game beside the blocks, on the same connection.
    game: Option<GameStream>,
    starts: Instant,
    /// When the client closes its connection.
    leaves: Option<Instant>,
    /// Extra delay beyond the shared access: added to every round trip, half in each direction.
    extra_rtt: Duration,
}

impl Competitor {
    const fn of(kind: Kind) -> Self {
        let (starts, extra_rtt) = (Instant::ZERO, Duration::ZERO);
        let (sender, game, leaves) = (Sender::Server, None, None);
        Self { kind, block_bytes: 0, sender, game, starts, leaves, extra_rtt }
    }

    /// A TCP bulk transfer with CUBIC.
    pub const fn cubic() -> Self {
        Self::of(Kind::Cubic)
    }

    /// A TCP bulk transfer with BBR.
    pub const fn bbr() -> Self {
        Self::of(Kind::Bbr)
    }

    /// A transfer of blocks of 16 MiB without end.
    pub const fn haulier(config: ConnectionConfig) -> Self {
        Self { block_bytes: 16 << 20, ..Self::of(Kind::Haulier(config)) }
    }

    /// A game without blocks.
    pub const fn game(config: ConnectionConfig, stream: GameStream) -> Self {
        Self { game: Some(stream), ..Self::of(Kind::Haulier(config)) }
    }

    /// This flow with blocks of `bytes` bytes.
    pub const fn with_blocks_of(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// This flow with the client as the sender of the blocks. Only for haulier/1: TCP sends down.
    pub const fn uploading(mut self) -> Self {
        self.sender = Sender::Client;
        self
    }

    /// This flow with a game on the connection.
    pub const fn with_game(mut self, stream: GameStream) -> Self {
        self.game = Some(stream);
        self
    }

    /// This flow with its start at `starts`.
    pub const fn starting_at(mut self, starts: Instant) -> Self {
        self.starts = starts;
        self
    }

    /// This flow with a client that closes its connection at this time. A TCP flow has no end: it stays.
    pub const fn leaving_at(mut self, leaves: Instant) -> Self {
        self.leaves = Some(leaves);
        self
    }

    /// This flow over a path whose round trip is longer by `extra_rtt`.
    pub const fn with_extra_rtt(mut self, extra_rtt: Duration) -> Self {
        self.extra_rtt = extra_rtt;
        self
    }
}

/// Several flows over one access.
#[derive(Clone, Debug)]
pub struct Share {
    /// The shared access; its downlink is the bottleneck, or its uplink where a flow goes up.
    pub access: Access,
    /// The flows that share it.
    pub flows: Vec<Competitor>,
    /// The duration of the run.
    pub lasts: Duration,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct ShareReport {
    /// Bytes of blocks or of the stream that arrived for the first time, of each flow.
    pub flows: Vec<Throughput>,
    /// The results of the flows' games.
    pub games: Vec<Option<GameReport>>,
    /// The queueing delay at the bottleneck, sampled every 10 ms from the last start on: the median, and the
    /// 95th percentile.
    pub queue_p50: Duration,
    /// See `queue_p50`.
    pub queue_p95: Duration,
    /// Datagrams dropped at the bottleneck, by queue, manager and bucket.
    pub dropped: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Bytes that the bottleneck was offered, dropped ones included.
    pub offered_bytes: u64,
    /// Datagrams that it marked.
    pub marked: u64,
    /// Retransmission timeouts of the TCP flows.
    pub timeouts: u64,
    /// Connections that ended before the run did, and whose client did not leave.
    pub broken: usize,
}

/// The sampling interval of the queue.
const LOOK: Duration = Duration::from_millis(10);

/// The two hosts of a flow.
enum Flow {
    Haulier(HostId<ServerHost<Script<Goodput>>>, HostId<ClientHost<Script<Goodput>>>),
    Cubic(HostId<CubicSender>, HostId<TcpReceiver>),
    Bbr(HostId<BbrSender>, HostId<TcpReceiver>),
}

impl Share {
    /// Flows over a symmetric link.
    pub fn new(link: LinkConfig, flows: Vec<Competitor>, lasts: Duration) -> Self {
        Self { access: link.into(), flows, lasts }
    }

    /// Runs it. Equal seeds give equal runs.
    pub fn run(&self, seed: u64) -> ShareReport {
        let mut world = World::new(seed).for_measuring();
        let home = world.add_segment(&self.access);
        let flows: Vec<Flow> =
            (0..).zip(&self.flows).map(|(n, flow)| flow.add(&mut world, home, n, seed)).collect();
        let all_are_there = self.flows.iter().map(|flow| flow.starts).max().unwrap_or_default();
        let end = Instant::ZERO + self.lasts;
        let mut waits = Vec::new();
        while world.now() < end {
            world.run_to((world.now() + LOOK).min(end));
            self.leave(&mut world, &flows);
            if world.now() > all_are_there {
                waits.push(self.bottleneck(&world, home).queueing_delay(world.now()));
            }
        }
        let bottleneck = self.bottleneck(&world, home).stats();
        let mut report = ShareReport {
            queue_p50: percentile(&mut waits, 50),
            queue_p95: percentile(&mut waits, 95),
            dropped: bottleneck.queue_full + bottleneck.managed + bottleneck.policed,
            dropped_bytes: bottleneck.dropped_bytes,
            offered_bytes: bottleneck.offered_bytes,
            marked: bottleneck.marked,
            ..ShareReport::default()
        };
        for (flow, competitor) in flows.iter().zip(&self.flows) {
            report.add(&world, flow, competitor);
        }
        report
    }

    fn bottleneck<'w>(&self, world: &'w World, home: SegmentId) -> &'w Link {
        let (up, down) = world.links(home);
        let is_up = self.flows.iter().any(|flow| flow.sender == Sender::Client);
        if is_up { up } else { down }
    }

    /// Clients whose time has come close their connections. One that is closed is closed already.
    fn leave(&self, world: &mut World, flows: &[Flow]) {
        for (flow, competitor) in flows.iter().zip(&self.flows) {
            if let (Flow::Haulier(_, client), Some(leaves)) = (flow, competitor.leaves)
                && leaves <= world.now()
            {
                world.act(*client, |host, now| {
                    if let Some(client) = &mut host.client {
                        client.close(now, CloseCode::DONE, "");
                    }
                });
            }
        }
    }
}

impl ShareReport {
    fn add(&mut self, world: &World, flow: &Flow, competitor: &Competitor) {
        let (throughput, game) = match *flow {
            Flow::Haulier(server, client) => {
                let server = world.host(server).all_apps().next();
                let sent = server.map(|app| &app.packets_sent[..]);
                let client = &world.host(client).app;
                self.broken += usize::from(client.heard.is_over && competitor.leaves.is_none());
                let report =
                    |stream| GameReport::of(stream, sent.unwrap_or_default(), &client.packets);
                let got = match competitor.sender {
                    Sender::Server => client.heard.throughput.clone(),
                    Sender::Client => {
                        server.map(|app| app.heard.throughput.clone()).unwrap_or_default()
                    }
                };
                (got, competitor.game.as_ref().map(report))
            }
            Flow::Cubic(sender, receiver) => {
                self.timeouts += world.host(sender).timeouts;
                (world.host(receiver).throughput.clone(), None)
            }
            Flow::Bbr(sender, receiver) => {
                self.timeouts += world.host(sender).timeouts;
                (world.host(receiver).throughput.clone(), None)
            }
        };
        self.flows.push(throughput);
        self.games.push(game);
    }

    /// Jain's index of the flows' throughput in a span.
    pub fn jain(&self, from: Instant, to: Instant) -> f64 {
        let shares: Vec<f64> = self.flows.iter().map(|flow| flow.bps(from, to)).collect();
        jain(&shares)
    }

    /// The throughput of each flow in a span, in Mbit/s.
    pub fn mbit(&self, from: Instant, to: Instant) -> Vec<f64> {
        self.flows.iter().map(|flow| (flow.bps(from, to) / 1e4).round() / 100.0).collect()
    }
}

impl Competitor {
    /// A server somewhere, and a client at home.
    fn add(&self, world: &mut World, home: SegmentId, n: u32, seed: u64) -> Flow {
        let (at_server, at_client) = (address(1 + n), address(1_000 + n));
        // What becomes of the ECN field is the home's affair. The way cleared it before a bottleneck that
        // marks, which so marked nothing.
        let (delay, ecn) = (self.extra_rtt / 2, EcnPath::Carried);
        let way = Access::from(LinkConfig { delay, ecn, ..LinkConfig::default() });
        let receiver = TcpReceiver::new(at_server);
        let config = match self.kind {
            Kind::Haulier(config) => config,
            Kind::Cubic => {
                let sender = CubicSender::new(at_client, self.starts);
                let sender = world.add(sender, at_server, &way);
                return Flow::Cubic(sender, world.add_behind(receiver, at_client, home));
            }
            Kind::Bbr => {
                let seed = Rng::stream(seed, 50 + u64::from(n)).next_u64();
                let sender = BbrSender::new(at_client, self.starts, seed);
                let sender = world.add(sender, at_server, &way);
                return Flow::Bbr(sender, world.add_behind(receiver, at_client, home));
            }
        };
        let mut rng = Rng::stream(seed, 50 + u64::from(n));
        // Without encryption: time is virtual, and a minute at 100 Mbit/s should take less.
        let (server, mut client) = configs(Keyed::Open, config);
        client.server = at_server;
        let key = rng.key();
        let mut scripts = [Script::default(), Script::default()];
        scripts[0].game = self.game.map(|stream| stream.game);
        if self.block_bytes > 0 {
            let script = &mut scripts[usize::from(self.sender == Sender::Client)];
            script.blocks = Some((Block::new(1, rng.bytes(self.block_bytes)), usize::MAX));
        }
        let [script, at_home] = scripts;
        let server = ServerHost::with_seed(move |_, _| script.clone(), server, key);
        let server = world.add(server, at_server, &way);
        let mut client = ClientHost::new(at_home, client, self.starts, 0);
        client.start.seed = rng.key();
        Flow::Haulier(server, world.add_behind(client, at_client, home))
    }
}
