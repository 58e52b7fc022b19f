//! Transfers that share a bottleneck: with each other, with TCP, and with a game.
//!
//! Each flow has a server of its own somewhere, and all their clients are in one home: its downlink is the
//! bottleneck. A [`Share`] says who begins when, and its [`ShareReport`] what each got, how long the queue
//! was and what it dropped. A haulier flow is real machines at both ends.

mod game;
mod hosts;
mod throughput;

pub use game::{GameReport, GameStream};
pub use hosts::{Sink, Source};
pub use throughput::{Throughput, WINDOW, jain, percentile};

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{ConnectionConfig, Urgency};

use crate::join::address;
use crate::rivals::cubic::{CubicReceiver, CubicSender};
use crate::{Access, Host, HostId, Internet, LinkConfig, Rng};

/// How haulier sends in every test of fairness and of odd links: the one place to change.
#[must_use]
pub fn config() -> ConnectionConfig {
    ConnectionConfig::default()
}

/// The same while a game is played, which must not feel the block.
#[must_use]
pub fn config_in_play() -> ConnectionConfig {
    ConnectionConfig { urgency: Urgency::DuringPlay, ..config() }
}

/// At this rate at most: what the harness itself is tested with.
#[must_use]
pub fn config_at(rate_bps: u64) -> ConnectionConfig {
    ConnectionConfig { rate_bps, ..ConnectionConfig::default() }
}

/// What a flow is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Blocks of haulier/1, one after the other.
    Haulier {
        /// How server and client behave.
        config: Box<ConnectionConfig>,
        /// Bytes of each block; 0 sends none.
        block_bytes: usize,
        /// A game beside the blocks, on the same connection.
        game: Option<GameStream>,
    },
    /// A TCP bulk transfer.
    Cubic,
}

/// One of those who share.
#[derive(Clone, Debug)]
pub struct Competitor {
    /// What it is.
    pub kind: Kind,
    /// When it begins.
    pub starts: Instant,
    /// Its own way beyond the shared access: added to every round trip, half each way.
    pub extra_rtt: Duration,
}

impl Competitor {
    /// A transfer of blocks of 16 MiB without end.
    #[must_use]
    pub fn haulier(config: ConnectionConfig) -> Self {
        let kind = Kind::Haulier { config: Box::new(config), block_bytes: 16 << 20, game: None };
        Self { kind, starts: Instant::ZERO, extra_rtt: Duration::ZERO }
    }

    /// A TCP bulk transfer.
    #[must_use]
    pub const fn cubic() -> Self {
        Self { kind: Kind::Cubic, starts: Instant::ZERO, extra_rtt: Duration::ZERO }
    }

    /// A game without blocks.
    #[must_use]
    pub fn game(config: ConnectionConfig, stream: GameStream) -> Self {
        let config = Box::new(config);
        let kind = Kind::Haulier { config, block_bytes: 0, game: Some(stream) };
        Self { kind, starts: Instant::ZERO, extra_rtt: Duration::ZERO }
    }

    /// The same with a game on the connection; nothing if it is TCP.
    #[must_use]
    pub fn with_game(mut self, stream: GameStream) -> Self {
        if let Kind::Haulier { game, .. } = &mut self.kind {
            *game = Some(stream);
        }
        self
    }

    /// The same, later.
    #[must_use]
    pub const fn starting_at(mut self, starts: Instant) -> Self {
        self.starts = starts;
        self
    }

    /// The same over a longer way.
    #[must_use]
    pub const fn with_extra_rtt(mut self, extra_rtt: Duration) -> Self {
        self.extra_rtt = extra_rtt;
        self
    }
}

/// Several flows over one access.
#[derive(Clone, Debug)]
pub struct Share {
    /// The shared access; its downlink is the bottleneck.
    pub access: Access,
    /// Who shares it.
    pub flows: Vec<Competitor>,
    /// How long.
    pub lasts: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct ShareReport {
    /// Bytes of blocks or of the stream that arrived for the first time, of each flow.
    pub flows: Vec<Throughput>,
    /// What the games of the flows felt.
    pub games: Vec<Option<GameReport>>,
    /// How long a datagram would have waited at the bottleneck, looked at every 10 ms from the last start
    /// on: the median, and the value that 95 % of the looks are below.
    pub queue_p50: Duration,
    /// See `queue_p50`.
    pub queue_p95: Duration,
    /// Datagrams dropped at the bottleneck, by queue and bucket.
    pub dropped: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Bytes that the bottleneck was offered, dropped ones included.
    pub offered_bytes: u64,
    /// Times that a TCP flow heard nothing for too long.
    pub timeouts: u64,
    /// Connections that were over before the time was.
    pub broken: usize,
}

/// From one look at the queue to the next.
const LOOK: Duration = Duration::from_millis(10);

/// A host of such a world.
enum ShareHost {
    Source(Box<Source>),
    Sink(Box<Sink>),
    Sender(Box<CubicSender>),
    Receiver(Box<CubicReceiver>),
}

impl Share {
    /// Flows over a link that is the same both ways.
    #[must_use]
    pub fn new(link: LinkConfig, flows: Vec<Competitor>, lasts: Duration) -> Self {
        Self { access: Access { up: link.clone(), down: link }, flows, lasts }
    }

    /// Runs it. The same seed is the same run.
    #[must_use]
    pub fn run(&self, seed: u64) -> ShareReport {
        let mut internet = Internet::new(seed);
        let home = internet.add_segment(&self.access);
        let sinks: Vec<(HostId, HostId)> = self
            .flows
            .iter()
            .enumerate()
            .map(|(n, flow)| {
                let (server, client) = (address(1 + n as u32), address(1_000 + n as u32));
                let (source, sink) = flow.hosts(server, client, Rng::stream(seed, 50 + n as u64));
                let way = LinkConfig { delay: flow.extra_rtt / 2, ..LinkConfig::default() };
                let access = Access { up: way.clone(), down: way };
                let source = internet.add(source, server, &access);
                (source, internet.add_behind(sink, client, home))
            })
            .collect();
        let all_are_there = self.flows.iter().map(|flow| flow.starts).max().unwrap_or_default();
        let end = Instant::ZERO + self.lasts;
        let mut waits = Vec::new();
        while internet.now() < end {
            internet.run_to((internet.now() + LOOK).min(end));
            if internet.now() > all_are_there {
                waits.push(internet.segment_links(home).1.queueing_delay(internet.now()));
            }
        }
        let (_, down) = internet.segment_links(home);
        let hosts =
            || sinks.iter().map(|&(source, sink)| (internet.host(source), internet.host(sink)));
        ShareReport {
            flows: hosts().map(|(_, sink)| sink.throughput().clone()).collect(),
            games: hosts()
                .map(|(source, sink)| GameReport::of(source.source()?, sink.sink()?))
                .collect(),
            queue_p50: percentile(&mut waits, 50),
            queue_p95: percentile(&mut waits, 95),
            dropped: down.stats().queue_full + down.stats().policed,
            dropped_bytes: down.stats().dropped_bytes,
            offered_bytes: down.stats().offered_bytes,
            timeouts: hosts().filter_map(|(source, _)| source.timeouts()).sum(),
            broken: hosts().filter(|(_, sink)| sink.sink().is_some_and(Sink::is_over)).count(),
        }
    }
}

impl ShareReport {
    /// Jain's index of what the flows got in a span.
    #[must_use]
    pub fn jain(&self, from: Instant, to: Instant) -> f64 {
        let shares: Vec<f64> = self.flows.iter().map(|flow| flow.bps(from, to)).collect();
        jain(&shares)
    }

    /// What each got in a span, in Mbit/s.
    #[must_use]
    pub fn mbit(&self, from: Instant, to: Instant) -> Vec<f64> {
        self.flows.iter().map(|flow| (flow.bps(from, to) / 1e4).round() / 100.0).collect()
    }
}

impl Competitor {
    fn hosts(
        &self,
        server: SocketAddr,
        client: SocketAddr,
        mut rng: Rng,
    ) -> (ShareHost, ShareHost) {
        match &self.kind {
            Kind::Cubic => (
                ShareHost::Sender(Box::new(CubicSender::new(client, self.starts))),
                ShareHost::Receiver(Box::new(CubicReceiver::new(server))),
            ),
            Kind::Haulier { config, block_bytes, game } => (
                ShareHost::Source(Box::new(Source::new(**config, *block_bytes, *game, &mut rng))),
                ShareHost::Sink(Box::new(Sink::new(**config, server, self.starts, &mut rng))),
            ),
        }
    }
}

impl ShareHost {
    fn throughput(&self) -> &Throughput {
        match self {
            Self::Sink(sink) => &sink.throughput,
            Self::Receiver(receiver) => &receiver.throughput,
            Self::Source(_) | Self::Sender(_) => unreachable!("these take nothing in"),
        }
    }

    fn source(&self) -> Option<&Source> {
        if let Self::Source(source) = self { Some(source) } else { None }
    }

    fn timeouts(&self) -> Option<u64> {
        if let Self::Sender(sender) = self { Some(sender.timeouts) } else { None }
    }

    fn sink(&self) -> Option<&Sink> {
        if let Self::Sink(sink) = self { Some(sink) } else { None }
    }

    fn inner(&self) -> &dyn Host {
        match self {
            Self::Source(host) => &**host,
            Self::Sink(host) => &**host,
            Self::Sender(host) => &**host,
            Self::Receiver(host) => &**host,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Source(host) => &mut **host,
            Self::Sink(host) => &mut **host,
            Self::Sender(host) => &mut **host,
            Self::Receiver(host) => &mut **host,
        }
    }
}

impl Host for ShareHost {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.inner_mut().handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.inner_mut().poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner().poll_timeout()
    }

    fn check_invariants(&self) {
        self.inner().check_invariants();
    }
}
