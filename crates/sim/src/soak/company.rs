//! The company of honest clients: liars behind their addresses, clocks that step, a server whose program
//! stalls, and another server that takes no blocks and is sent some.
//!
//! It is drawn from a random stream of its own, so that a scenario with and without company has the same
//! links and faults. Lies whose fault is known are left out. The invariant: all of it is over when the faults
//! are.

use std::time::Duration;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::credentials::Secret;
use haulier_proto::server::ServerConfig;

use super::connection_ends::Session;
use crate::attack::Attacker;
use crate::hosts::ServerHost;
use crate::oracle::{Lie, LyingClient, Watch, is_known};
use crate::{Access, HostId, Probability, Rng, World, address};

/// What the server's clock is ahead of the true time at first, so that it can be set back.
pub(super) const AHEAD: Duration = Duration::from_secs(10);

/// The first port of liars. Honest clients begin at 4000, and move up by one.
const LIARS_PORT: u16 = 5_000;

/// A liar behind the address of an honest client.
#[derive(Clone, Debug)]
struct Companion {
    lie: Lie,
    behind: u32,
    every: Duration,
    at_once: u32,
    from: Instant,
}

/// The liars, steps of the clock, and stalls of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Company {
    liars: Vec<Companion>,
    /// When the server's clock steps, and what it is ahead of the true time then.
    pub(super) steps: Vec<(Instant, Duration)>,
    /// When the server's program stalls, and for how long.
    pub(super) stall: Option<(Instant, Duration)>,
    /// Liars at a server that takes no blocks; empty if the scenario has no such server.
    refused: Vec<Companion>,
}

/// The lies for a server that takes no blocks.
const REFUSED: [Lie; 3] = [Lie::UnannouncedSlices, Lie::UnannouncedBombs, Lie::UnannouncedPages];

/// The number of its address.
const REFUSING: u32 = 2;

impl Company {
    /// Half of all scenarios have liars, a quarter have steps of the clock, a quarter a stall, and a tenth a
    /// server that takes no blocks. Unread data takes memory only while the server's program stalls, so a
    /// scenario with liars that rely on that has a stall.
    pub(super) fn draw(seed: u64, clients: usize, faults: Duration) -> Self {
        let mut rng = Rng::stream(seed, 950);
        let lies: Vec<_> =
            Lie::ALL.into_iter().filter(|lie| !lie.fault().is_some_and(is_known)).collect();
        let mut company = Self::default();
        let nanos = faults.as_nanos() as u64;
        if rng.chance(Probability::percent(50)) && !lies.is_empty() {
            for _ in 0..rng.between(1, 3) {
                company.liars.push(Companion {
                    lie: *rng.pick(&lies),
                    behind: rng.below(clients as u64) as u32,
                    every: Duration::from_millis(rng.between(1, 20)),
                    at_once: rng.between(1, 8) as u32,
                    from: Instant::ZERO + Duration::from_nanos(rng.below(nanos)),
                });
            }
        }
        if rng.chance(Probability::percent(25)) {
            let times = (0..rng.between(1, 3)).map(|_| rng.below(nanos));
            let mut times: Vec<_> = times.collect();
            times.sort_unstable();
            let mut ahead = AHEAD;
            for time in times {
                ahead = match rng.below(3) {
                    // A suspended machine; a correction; set back.
                    0 => ahead + Duration::from_secs(rng.between(60, 3_600)),
                    1 => ahead + Duration::from_millis(rng.below(3_000)),
                    _ => ahead - Duration::from_millis(rng.below(1_000)),
                };
                company.steps.push((Instant::ZERO + Duration::from_nanos(time), ahead));
            }
        }
        let is_unread = company.liars.iter().any(|liar| liar.lie.is_unread());
        if rng.chance(Probability::percent(25)) || is_unread {
            let at = Instant::ZERO + Duration::from_nanos(rng.below(nanos));
            company.stall = Some((at, Duration::from_millis(rng.between(100, 3_000))));
        }
        if rng.chance(Probability::percent(10)) {
            for _ in 0..rng.between(1, 3) {
                company.refused.push(Companion {
                    lie: *rng.pick(&REFUSED),
                    behind: rng.below(clients as u64) as u32,
                    every: Duration::from_millis(rng.between(1, 5)),
                    at_once: rng.between(1, 8) as u32,
                    from: Instant::ZERO,
                });
            }
        }
        company
    }

    /// Puts the liars into the world, until the faults are over.
    pub(super) fn join(&self, world: &mut World, secret: Option<&Secret>, until: Instant) {
        let liars = self.liars.iter().map(|liar| (1, liar));
        let refused = self.refused.iter().map(|liar| (REFUSING, liar));
        for (number, (server, companion)) in (0..).zip(liars.chain(refused)) {
            let Companion { lie, behind, every, at_once, from } = *companion;
            let mut own = address(10 + behind);
            own.set_port(LIARS_PORT + number);
            let (seed, server) = (u64::from(number), address(server));
            let secret = secret.cloned();
            let liar = LyingClient { lie, server, secret, every, at_once, from, until, seed };
            world.add(Attacker::new(liar.mind()), own, &Access::default());
        }
    }

    /// Puts the server that takes no blocks into the world, if there is one.
    pub(super) fn add_refusing(
        &self,
        world: &mut World,
        config: ServerConfig,
        seed: u64,
    ) -> Option<HostId<ServerHost<Session>>> {
        if self.refused.is_empty() {
            return None;
        }
        let connection = config.connection.with_max_block_bytes(0);
        let accept = move |now, request: &Bytes| Session::of_request(seed, request, now);
        let config = config.with_connection(connection);
        let mut host = ServerHost::new(accept, config, seed);
        host.is_checked = true;
        host.watch = Some(Watch::admitting_nothing());
        Some(world.add(host, address(REFUSING), &Access::default()))
    }
}
