//! Finite joins on one bottleneck: each gets a block and leaves, at once or begun within some time.
//!
//! [`share`](crate::share) has transfers without end, each from a server of its own, that begin one after the
//! other: it shows what they come to. Here it is how they begin that counts. All clients are at one address,
//! with a port each, as behind a NAT, and are served by [one server or by one each](Servers): a server knows
//! of the crowd that it serves. Nothing computes in virtual time, but a server's program gives its block a
//! moment after the request, as programs do: what it says before has gone by then.
//!
//! * `hosts`: the two ends of haulier/1;
//! * `tcp`: those of TCP, with its handshake.

mod hosts;
mod tcp;

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, Fate, HostId, Rng, SegmentId, Sight, Stage, World, address};

use crate::share::jain;
pub(crate) use hosts::Client;
use hosts::Server;
use tcp::{TcpClient, TcpServer};

/// How often the run looks which joins are done.
const LOOK: Duration = Duration::from_millis(10);

/// The sender of all joins of a rush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sender {
    /// haulier/1 with a token that says where the client is: the server may send at once.
    Token,
    /// haulier/1 with a ticket: three times what was received, until the client has answered.
    Ticket,
    /// A model of TCP BBR.
    Bbr,
    /// A model of TCP CUBIC.
    Cubic,
}

impl Sender {
    /// All of them: ours, then the others.
    pub const ALL: [Self; 4] = [Self::Token, Self::Ticket, Self::Bbr, Self::Cubic];

    /// Its name, in words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Ticket => "ticket",
            Self::Bbr => "tcp_bbr",
            Self::Cubic => "tcp_cubic",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sender| sender.name() == name)
    }

    /// Whether it is haulier/1.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Token | Self::Ticket)
    }
}

/// How many servers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Servers {
    /// One for all, which sees the whole crowd.
    #[default]
    One,
    /// One for each, which sees one join: nothing is shared but the link.
    Each,
}

/// Several joins over one access.
#[derive(Clone, Debug)]
pub struct Rush {
    /// The access of all clients; its downlink is the bottleneck.
    pub access: Access,
    /// When each begins.
    pub begins: Vec<Duration>,
    /// Whether one server serves all clients, or each client has its own.
    pub servers: Servers,
    /// After the last has begun, the run is over by then.
    pub patience: Duration,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RushReport {
    /// How long each took from its beginning until it had its block; `None` if it never had.
    pub times: Vec<Option<Duration>>,
    /// Packets that the bottleneck was offered, until the last was done.
    pub offered: u64,
    /// Packets of these that its queue, or the queue's manager, dropped.
    pub dropped: u64,
    /// Of the dropped packets, those of joins whose server had received only requests until then: the losses
    /// of first flights. For haulier/1 only.
    pub dropped_blind: u64,
    /// Bytes that the bottleneck was offered, headers included.
    pub offered_bytes: u64,
    /// Why the first connection ended that ended without its block. Others that failed took too long.
    pub why: Option<String>,
}

impl RushReport {
    /// Joins that did not get their block.
    pub fn failures(&self) -> usize {
        self.times.iter().filter(|time| time.is_none()).count()
    }

    /// The part of the packets that was dropped.
    pub fn dropped_part(&self) -> f64 {
        self.dropped as f64 / self.offered.max(1) as f64
    }

    /// The part of the packets that was dropped before the first feedback of their join.
    pub fn dropped_blind_part(&self) -> f64 {
        self.dropped_blind as f64 / self.offered.max(1) as f64
    }

    /// The time of the slowest; `None` if one failed.
    pub fn last(&self) -> Option<Duration> {
        self.times.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// The mean time; `None` if one failed.
    pub fn mean(&self) -> Option<Duration> {
        let times: Vec<Duration> = self.times.iter().copied().collect::<Option<_>>()?;
        Some(times.iter().sum::<Duration>() / times.len().max(1) as u32)
    }

    /// Jain's index of the mean rates of those that got their block.
    pub fn jain(&self) -> f64 {
        let rates: Vec<f64> =
            self.times.iter().flatten().map(|time| 1.0 / time.as_secs_f64()).collect();
        jain(&rates)
    }
}

/// The client of a join.
enum Flow {
    Haulier(HostId<Client>),
    Tcp(HostId<TcpClient>),
}

/// The servers of all joins.
enum Serving {
    Haulier(Vec<HostId<Server>>),
    Tcp,
}

impl Rush {
    /// Runs it until all have their block, or patience is over. Equal seeds give equal runs.
    pub fn run(&self, sender: Sender, block: &Block, seed: u64) -> RushReport {
        let world = World::new(seed).for_measuring();
        let mut world = if sender.is_ours() { world.watched() } else { world };
        let home = world.add_segment(&self.access);
        let serving = self.add_servers(&mut world, sender, block, seed);
        let flows: Vec<Flow> = (0..self.begins.len())
            .map(|n| self.add_client(&mut world, home, (sender, n), block, seed))
            .collect();
        let last = self.begins.iter().max().copied().unwrap_or_default();
        let end = Instant::ZERO + last + self.patience;
        let mut dropped_blind = 0;
        while world.now() < end {
            world.run_to((world.now() + LOOK).min(end));
            let sights = world.take_sights();
            dropped_blind += self.blind_drops(&world, &serving, &sights);
            if flows.iter().all(|flow| flow.is_over(&world)) {
                break;
            }
        }
        let stats = world.links(home).1.stats();
        RushReport {
            times: flows
                .iter()
                .zip(&self.begins)
                .map(|(flow, &at)| flow.took(&world, at))
                .collect(),
            offered: stats.offered,
            dropped: stats.queue_full + stats.managed + stats.policed,
            dropped_blind,
            offered_bytes: stats.offered_bytes,
            why: flows.iter().find_map(|flow| flow.why(&world).map(Into::into)),
        }
    }

    fn add_servers(&self, world: &mut World, sender: Sender, block: &Block, seed: u64) -> Serving {
        let count = match self.servers {
            Servers::One => 1,
            Servers::Each => self.begins.len(),
        };
        let nothing = Access::default();
        if !sender.is_ours() {
            // A TCP server knows each connection alone: one for each is the same.
            return Serving::Tcp;
        }
        let add = |n: usize| {
            let seed = Rng::stream(seed, 1_000 + n as u64).key();
            let host = Server::new(block.clone(), server_at(n), seed);
            world.add(host, server_at(n), &nothing)
        };
        Serving::Haulier((0..count).map(add).collect())
    }

    fn add_client(
        &self,
        world: &mut World,
        home: SegmentId,
        (sender, n): (Sender, usize),
        block: &Block,
        seed: u64,
    ) -> Flow {
        let begins = Instant::ZERO + self.begins[n];
        let (at_client, bytes) = (client_at(n), block.data().len() as u64);
        if sender.is_ours() {
            let server = match self.servers {
                Servers::One => server_at(0),
                Servers::Each => server_at(n),
            };
            let seed = Rng::stream(seed, 10_000 + n as u64).key();
            let client = Client::new(sender, (at_client, server), bytes, begins, seed);
            return Flow::Haulier(world.add_behind(client, at_client, home));
        }
        let server =
            TcpServer::new(sender, at_client, bytes, Rng::stream(seed, 50 + n as u64).next_u64());
        world.add(server, server_at(n), &Access::default());
        let client = TcpClient::new(server_at(n), bytes, begins);
        Flow::Tcp(world.add_behind(client, at_client, home))
    }

    /// Drops of datagrams that servers sent to clients from which they had nothing but requests.
    fn blind_drops(&self, world: &World, serving: &Serving, sights: &[Sight]) -> u64 {
        let Serving::Haulier(servers) = serving else { return 0 };
        let is_blind = |sight: &&Sight| {
            let is_dropped = matches!(
                sight.stage,
                Stage::Offered(Fate::QueueFull | Fate::Managed | Fate::Policed)
            );
            // Clients are added after the servers, in order.
            let Some(client) = sight.host.checked_sub(servers.len()).filter(|_| is_dropped) else {
                return false;
            };
            let server = servers[client.min(servers.len() - 1)];
            world.host(server).heard(client_at(client)).is_none_or(|at| sight.at < at)
        };
        sights.iter().filter(is_blind).count() as u64
    }
}

impl Flow {
    fn done_at(&self, world: &World) -> Option<Instant> {
        match *self {
            Self::Haulier(client) => world.host(client).done_at,
            Self::Tcp(client) => world.host(client).done_at,
        }
    }

    fn is_over(&self, world: &World) -> bool {
        match *self {
            Self::Haulier(client) => world.host(client).is_over(),
            Self::Tcp(client) => world.host(client).done_at.is_some(),
        }
    }

    fn why<'w>(&self, world: &'w World) -> Option<&'w str> {
        match *self {
            Self::Haulier(client) => world.host(client).why.as_deref(),
            Self::Tcp(_) => None,
        }
    }

    fn took(&self, world: &World, begins: Duration) -> Option<Duration> {
        self.done_at(world).map(|at| at.since(Instant::ZERO + begins))
    }
}

fn server_at(n: usize) -> SocketAddr {
    address(1 + n as u32)
}

/// All clients are at one address, and have a port each.
fn client_at(n: usize) -> SocketAddr {
    SocketAddr::new(address(1 << 20).ip(), 10_000 + n as u16)
}

#[cfg(test)]
mod tests {
    use haulier_sim::LinkConfig;

    use super::*;

    fn rush(begins: &[u64]) -> Rush {
        let link = LinkConfig::new(10_000_000, Duration::from_millis(25)).with_queue(64 << 10);
        Rush {
            access: link.into(),
            begins: begins.iter().map(|&ms| Duration::from_millis(ms)).collect(),
            servers: Servers::One,
            patience: Duration::from_secs(60),
        }
    }

    fn block(bytes: usize) -> Block {
        Block::new(1, Rng::stream(1, 92).bytes(bytes))
    }

    /// By hand: 256 KiB at 10 Mbit/s are 215 ms with headers, after a round trip of 50 ms, or two.
    #[test]
    fn one_alone_is_near_the_limit() {
        let block = block(256 << 10);
        let took = |sender| {
            let report = rush(&[500]).run(sender, &block, 1);
            assert!(report.offered > 180, "{report:?}");
            report.last().unwrap().as_secs_f64() * 1e3
        };
        let times = Sender::ALL.map(took);
        for (sender, (least, most)) in Sender::ALL.into_iter().zip([
            (260.0, 320.0),
            (270.0, 380.0),
            (330.0, 500.0),
            (330.0, 500.0),
        ]) {
            let at = Sender::ALL.iter().position(|&other| other == sender).unwrap();
            assert!((least..most).contains(&times[at]), "{}: {times:?} ms", sender.name());
        }
    }

    /// A flow that is done leaves the link to the others: all together need what the link needs.
    #[test]
    fn each_gets_its_block_and_leaves() {
        // A new one for each run: one that was sent has its repair encoded.
        let block = || block(128 << 10);
        for sender in Sender::ALL {
            for servers in [Servers::One, Servers::Each] {
                let rush = Rush { servers, ..rush(&[0, 0, 200, 400]) };
                let report = rush.run(sender, &block(), 1);
                assert_eq!(report.failures(), 0, "{}: {report:?}", sender.name());
                let last = report.last().unwrap();
                assert!((250..2_500).contains(&last.as_millis()), "{}: {last:?}", sender.name());
                assert_eq!(report, rush.run(sender, &block(), 1), "a seed is a run");
                assert!(report.dropped_blind <= report.dropped);
            }
        }
    }

    #[test]
    fn a_report_is_of_its_times() {
        let seconds = |seconds: &[u64]| RushReport {
            times: seconds.iter().map(|&s| (s > 0).then(|| Duration::from_secs(s))).collect(),
            offered: 10,
            dropped: 4,
            dropped_blind: 1,
            ..RushReport::default()
        };
        let all = seconds(&[1, 3]);
        assert_eq!(
            (all.last(), all.mean()),
            (Some(Duration::from_secs(3)), Some(Duration::from_secs(2)))
        );
        // Rates of 3 and 1: 16 over 20.
        assert!((all.jain() - 0.8).abs() < 1e-9);
        assert!(
            (all.dropped_part() - 0.4).abs() < 1e-9
                && (all.dropped_blind_part() - 0.1).abs() < 1e-9
        );
        let one = seconds(&[1, 0]);
        assert_eq!((one.failures(), one.last(), one.mean()), (1, None, None));
    }
}
