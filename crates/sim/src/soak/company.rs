//! Who else is there: liars behind the addresses of honest clients, clocks that step, and a server whose
//! program stalls.
//!
//! Drawn from a stream of its own, so that a scenario with and without company has the same links and
//! faults. Lies whose fault is known are left out. The invariant: all of it is over when the faults are.

use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::credentials::Secret;

use crate::attack::Attacker;
use crate::oracle::{Lie, LyingClient, is_known};
use crate::{Access, Probability, Rng, World, address};

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

/// Who and what else is in a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Company {
    liars: Vec<Companion>,
    /// When the server's clock steps, and what it is ahead of the true time then.
    pub(super) steps: Vec<(Instant, Duration)>,
    /// When the server's program stalls, and for how long.
    pub(super) stall: Option<(Instant, Duration)>,
}

impl Company {
    /// Half of all scenarios have liars, a quarter have steps of the clock, and a quarter a stall.
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
        if rng.chance(Probability::percent(25)) {
            let at = Instant::ZERO + Duration::from_nanos(rng.below(nanos));
            company.stall = Some((at, Duration::from_millis(rng.between(100, 3_000))));
        }
        company
    }

    /// Puts the liars into the world, until the faults are over.
    pub(super) fn join(&self, world: &mut World, secret: Option<&Secret>, until: Instant) {
        for (number, companion) in (0..).zip(&self.liars) {
            let Companion { lie, behind, every, at_once, from } = *companion;
            let mut own = address(10 + behind);
            own.set_port(LIARS_PORT + number);
            let seed = u64::from(number);
            let secret = secret.cloned();
            let liar =
                LyingClient { lie, server: address(1), secret, every, at_once, from, until, seed };
            world.add(Attacker::new(liar.mind()), own, &Access::default());
        }
    }
}
