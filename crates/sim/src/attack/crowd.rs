//! A server, honest clients that join it, and hostile ones that try to prevent this.
//!
//! Two runs with one seed, with and without the hostile clients, show what these cost the honest ones.

use std::fmt;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::server::ServerLimits;

use super::{Attacker, Hostile, HostileKind};
use crate::hosts::{ClientHost, Keyed, Script, ServerHost, configs, secret};
use crate::{Access, LinkConfig, Rng, World, address};

/// The number of clients of each kind, and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Honest clients.
    pub honest: u32,
    /// Hostile clients, of all kinds in turn.
    pub hostile: u32,
    /// The seed of every random choice.
    pub seed: u64,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrowdReport {
    /// Honest clients.
    pub honest: usize,
    /// Those of them that got their block.
    pub joined: usize,
    /// The join time of each; `None` for one that never got its block.
    pub times: Vec<Option<Duration>>,
    /// The maximum ratio of bytes sent to bytes received, over all times and addresses not validated.
    pub worst_bytes: f64,
    /// The maximum ratio of datagrams sent to datagrams received, over all times and addresses not validated.
    pub worst_datagrams: f64,
    /// Datagrams that reached the server.
    pub datagrams: u64,
}

/// How much slower joins were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowDown {
    /// For the 95th of 100 clients.
    pub p95: f64,
    /// For the client slowed most.
    pub worst: f64,
}

impl fmt::Display for CrowdReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} honest clients joined; {} datagrams at the server; the worst prefix of an address \
             not proven: {:.3} bytes and {:.3} datagrams out for one in",
            self.joined, self.honest, self.datagrams, self.worst_bytes, self.worst_datagrams
        )
    }
}

impl CrowdReport {
    /// Compared with a run without the hostile clients.
    #[must_use]
    pub fn slow_down(&self, quiet: &Self) -> SlowDown {
        let pairs = self.times.iter().zip(&quiet.times);
        let mut factors: Vec<f64> = pairs
            .map(|(slow, quick)| match (slow, quick) {
                (Some(slow), Some(quick)) => slow.as_secs_f64() / quick.as_secs_f64(),
                _ => f64::INFINITY,
            })
            .collect();
        factors.sort_by(f64::total_cmp);
        let at = |share: usize| factors.get((factors.len() * share / 100).min(factors.len() - 1));
        SlowDown {
            p95: at(95).copied().unwrap_or(1.0),
            worst: factors.last().copied().unwrap_or(1.0),
        }
    }
}

/// When hostile clients stop.
const END: Instant = Instant::from_millis(15_000);

impl Crowd {
    /// Runs it: honest clients start within five seconds, hostile ones are active all the time.
    #[must_use]
    pub fn run(&self) -> CrowdReport {
        let mut world = World::new(self.seed);
        let connection = ConnectionConfig::default().with_max_rate_bps(2_000_000);
        let (server, client) = configs(Keyed::Secret, connection);
        let limits = ServerLimits::default().with_connections(4096);
        let server = server.with_limits(limits);
        let mut rng = Rng::stream(self.seed, 5);
        let block = Block::new(1, rng.bytes(rng_size(&mut Rng::stream(self.seed, 6))));
        let host = ServerHost::giving(block, server, self.seed);
        let server = world.add(host, address(1), &Access::default());
        let honest: Vec<_> = (0..self.honest)
            .map(|n| {
                let config = client.clone();
                let begins = Instant::from_millis(1_000 + rng.below(4_000));
                let host = ClientHost::new(
                    Script::idle().leaving_after(1),
                    config,
                    begins,
                    rng.next_u64(),
                );
                let rate = *rng.pick(&[2_000_000, 5_000_000, 20_000_000]);
                let link = LinkConfig::new(rate, Duration::from_millis(rng.between(5, 80)));
                world.add(host, address(10 + n), &link.into())
            })
            .collect();
        for n in 0..self.hostile {
            let kind = HostileKind::ALL[n as usize % HostileKind::ALL.len()];
            let every = Duration::from_millis(rng.between(100, 1000));
            let seed = rng.next_u64();
            let mind = Hostile::new(kind, address(1), secret(), seed, every, END);
            let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
            world.add(Attacker::new(mind), address(100_000 + n), &link.into());
        }
        world.run_until(END, |world| {
            world.steps() % 512 == 0
                && honest.iter().all(|&id| world.host(id).app.joined_after().is_some())
        });
        let times: Vec<_> = honest.iter().map(|&id| world.host(id).app.joined_after()).collect();
        let host = world.host(server);
        CrowdReport {
            honest: times.len(),
            joined: times.iter().flatten().count(),
            times,
            worst_bytes: host.meter.worst_bytes(),
            worst_datagrams: host.meter.worst_datagrams(),
            datagrams: host.server.stats().datagrams_received,
        }
    }
}

/// 64 to 256 KiB.
fn rng_size(rng: &mut Rng) -> usize {
    rng.between(64 << 10, 256 << 10) as usize
}
