//! Whether an honest client gets in, whatever others do at the door.
//!
//! A scenario is a server with few seats, clients that hold most of them, and gangs of hostile clients with
//! everything that lets a client in. An honest client comes during the attack: it must have a seat within
//! [`DoorScenario::bound`], which docs/CROWDS.md states. Then they stop from one moment to the next, and
//! another comes, which must have a seat within `AFTER`. The server has one worker or several, and its
//! program may refuse every client of the gangs.

mod run;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::credentials::{Secret, TokenKey};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerLimits};

use super::scenario::{Outcome, Verdict};
use crate::hosts::{PROTOCOL_ID, secret};
use crate::{Rng, address};
use run::Run;

/// A client that comes when all others have stopped is in after this time.
const AFTER: Duration = Duration::from_secs(30);

/// What a client of a gang does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Asks from addresses that are not its own.
    Spoofs,
    /// Takes a place in line and never sends again.
    Leaves,
    /// Keeps its place, and leaves when it is called.
    Holds,
    /// Comes when it is called, and completes no handshake.
    Halts,
    /// Comes when it is called, as late as it may, and completes no handshake.
    Dawdles,
    /// Joins, and leaves at once.
    Joins,
    /// Joins, and is silent.
    Sits,
}

impl Plan {
    const ALL: [Self; 7] = [
        Self::Spoofs,
        Self::Leaves,
        Self::Holds,
        Self::Halts,
        Self::Dawdles,
        Self::Joins,
        Self::Sits,
    ];

    /// The delay that a network of such clients causes for those behind it; `None` if it has no end. CROWDS
    /// says why.
    const fn costs(self) -> Option<Duration> {
        match self {
            Self::Spoofs => Some(Duration::ZERO),
            Self::Leaves | Self::Holds => Some(Duration::from_millis(300)),
            Self::Joins => Some(Duration::from_secs(1)),
            Self::Halts => Some(Duration::from_millis(4_500)),
            Self::Dawdles => Some(Duration::from_millis(7_500)),
            Self::Sits => None,
        }
    }
}

/// Hostile clients of one kind.
#[derive(Clone, Debug)]
struct Gang {
    plan: Plan,
    /// The number of networks that they come from, and of sources in each.
    networks: u32,
    sources: u32,
    is_v6: bool,
    /// The time between two that come, and the largest number of them at a time.
    every: Duration,
    most: usize,
}

/// The kind of credentials that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    Secret,
    Token,
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct DoorScenario {
    seed: u64,
    way: Way,
    workers: usize,
    /// Seats that are free, and those that are taken.
    free: usize,
    taken: usize,
    /// Places in line.
    line: usize,
    /// Handshakes in progress above which a request needs a cookie.
    without_cookie: usize,
    /// The program refuses every client of the gangs.
    refuses: bool,
    gangs: Vec<Gang>,
    /// When the honest client comes, and its delay each way.
    comes: Instant,
    delay: Duration,
}

impl DoorScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let gangs = (0..rng.between(1, 3)).map(|_| Gang::draw(&mut rng)).collect();
        Self {
            seed,
            way: *rng.pick(&[Way::Open, Way::Open, Way::Secret, Way::Token]),
            workers: *rng.pick(&[1, 1, 2, 4]),
            free: *rng.pick(&[1, 1, 2, 4]),
            taken: rng.between(0, 4) as usize,
            line: *rng.pick(&[8, 32, 128, 128, 1_024]),
            without_cookie: *rng.pick(&[0, 2, 1_024]),
            refuses: rng.below(4) == 0,
            gangs,
            comes: Instant::from_millis(rng.between(2_000, 12_000)),
            delay: Duration::from_millis(rng.between(5, 150)),
        }
    }

    /// The maximum wait of an honest client during the attack; `None` if the gangs may keep it out: they have
    /// joined and hold all seats, or have as many networks as the line has places.
    #[must_use]
    pub fn bound(&self) -> Option<Duration> {
        let networks: u32 = self.gangs.iter().map(|gang| gang.networks).sum();
        if 2 * networks as usize + 8 > self.line {
            return None;
        }
        let mut bound = Duration::from_secs(8);
        let mut most = Duration::ZERO;
        for gang in &self.gangs {
            let costs = gang.plan.costs()?;
            bound += costs * gang.networks;
            most = most.max(costs);
        }
        // Called before it came, and heard of since: four networks in a second, for three seconds.
        Some(bound + 3 * networks.min(4) * most)
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let mut run = Run::new(self);
        let verdict = match run.play() {
            Ok(()) => Verdict::Finished,
            Err(verdict) => verdict,
        };
        Outcome {
            verdict,
            transfers: run.joined,
            packets: 0,
            restarts: 0,
            virtual_time: run.now.since(Instant::ZERO),
            trace_hash: run.trace.hash(),
        }
    }

    fn server(&self) -> ServerConfig {
        let credentials = match self.way {
            Way::Open => ServerCredentials::default().with_open_access(),
            Way::Secret => ServerCredentials::default().with_secret(secret()),
            Way::Token => ServerCredentials::default().with_token_key(token_key()),
        };
        let limits = ServerLimits::default()
            .with_connections(self.free + self.taken)
            .with_line(self.line)
            .with_handshakes_without_cookie(self.without_cookie);
        ServerConfig::new(PROTOCOL_ID, credentials)
            .with_addresses(vec![address(1)])
            .with_limits(limits)
    }
}

impl Gang {
    fn draw(rng: &mut Rng) -> Self {
        let plan = *rng.pick(&Plan::ALL);
        let networks = match plan {
            Plan::Leaves | Plan::Holds => *rng.pick(&[1, 4, 40]),
            _ => *rng.pick(&[1, 2, 8]),
        };
        Self {
            plan,
            networks,
            sources: *rng.pick(&[1, 1, 4, 64]),
            is_v6: rng.below(2) == 0,
            every: Duration::from_millis(*rng.pick(&[5, 20, 100])),
            most: rng.between(1, 200) as usize,
        }
    }

    /// The address of its `n`th client.
    fn address(&self, gang: u8, n: u32) -> SocketAddr {
        let (network, source) = (n % self.networks, n / self.networks % self.sources);
        let port = 1024 + (n / self.networks / self.sources % 60_000) as u16;
        if self.is_v6 {
            let groups = [0x2001, 0xdb8 + u16::from(gang), network as u16, source as u16];
            let [a, b, c, d] = groups;
            return (Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1), port).into();
        }
        (Ipv4Addr::new(10, gang, network as u8, source as u8), port).into()
    }
}

fn token_key() -> TokenKey {
    TokenKey { id: 1, key: Secret::from_bytes([8; 32]) }
}
