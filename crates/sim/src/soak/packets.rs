//! Soak of the packet layer: packets in both directions under random faults, up to 99 % loss and 10 s of
//! latency, and programs that crash and restart with other sequences, or with sequences used before.
//!
//! While the faults last, safety: a packet is delivered as it was sent, at most once, and only a packet that
//! the other end accepted is reported as acked, except in the one case of STANDARD §9.4. Then the faults
//! stop, and liveness: packets sent on the healthy link arrive and are acked, and every packet ever sent has
//! its fate.

use std::time::Duration;

use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::EndpointConfig;
use haulier_article::fragment::{FRAGMENT_BYTES, FragmentPoolConfig};
use haulier_article::packet::numbered::NUMBERED_HEADER_BYTES;
use haulier_article::{ArticleConfig, Instant, ProtocolId, Sequence};

use super::scenario::draw_link;
use super::{Outcome, Verdict};
use crate::hosts::ArticleHost;
use crate::hosts::game::{GamePackets, SentRecord, Told, Traffic};
use crate::{LinkConfig, Loss, Probability, Rng, World, address};

/// The minimum time that the healthy link runs before packets sent on it must arrive.
const SETTLE: Duration = Duration::from_secs(13);

/// How long an end needs to detect a restart of the other: three seconds of its packets, the first of which
/// may be late.
const RECOGNITION: Duration = Duration::from_secs(4);

/// How long packets are then checked, and how long their acks may take.
const WATCH: Duration = Duration::from_secs(3);
const LOSS_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay of the healthy link: delayed packets of the faulty one would take ten seconds.
const MAX_HEALED_DELAY: Duration = Duration::from_millis(300);

/// A scenario of the packet layer.
#[derive(Clone, Debug)]
pub struct PacketScenario {
    seed: u64,
    links: [LinkConfig; 2],
    faults_until: Instant,
    endpoint: EndpointConfig,
    pool: FragmentPoolConfig,
    traffic: [Traffic; 2],
    crashes: Vec<Crash>,
}

/// A program that crashes and restarts.
#[derive(Clone, Debug)]
struct Crash {
    at: Instant,
    /// Which end.
    which: usize,
    /// For how long.
    down: Duration,
    /// How many sequences before the next one it restarts; at a random one if `None`.
    back: Option<u16>,
}

impl PacketScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 500);
        let faults = Duration::from_millis(rng.between(2_000, 60_000));
        let links = [draw_packet_link(&mut rng, faults), draw_packet_link(&mut rng, faults)];
        let mut endpoint = EndpointConfig::default();
        endpoint.protocol_id = ProtocolId(rng.next_u64() as u32);
        // A third of the scenarios start close enough to the wrap to cross it.
        let is_near_wrap = rng.chance(Probability::percent(33));
        let first = if is_near_wrap { 65_400 } else { rng.below(65_536) as u16 };
        endpoint.first_sequence = Sequence::new(first);
        endpoint.max_datagram_bytes = rng.between(1_033, 1_200) as usize;
        let acks = rng.chance(Probability::percent(75));
        endpoint.ack_interval = acks.then_some(Duration::from_millis(50));
        // A quarter have little memory, so that packets are evicted.
        let mut pool = FragmentPoolConfig::default();
        if rng.chance(Probability::percent(25)) {
            pool.max_fragments = 16;
            pool.max_bytes_per_peer = 40_000;
            pool.max_bytes = 40_000;
        }
        let traffic = [0, 1].map(|way: usize| draw_traffic(&mut rng, &links[way], &pool));
        let mut crashes = Vec::new();
        if rng.chance(Probability::percent(30)) {
            // Its own stream, chosen so that the seeds which once failed are the scenarios they were.
            let mut numbers = Rng::stream(seed, 549);
            for _ in 0..rng.between(1, 2) {
                let at = Instant::from_nanos(rng.below(faults.as_nanos() as u64));
                // No program is back before its peer has declared lost what it sent to the old one.
                let down = Duration::from_millis(rng.between(1_100, 5_000));
                let which = rng.below(2) as usize;
                // Half of them within the window or just behind it, which is rare at random.
                let is_near = numbers.chance(Probability::percent(50));
                let back = is_near.then(|| numbers.below(400) as u16);
                crashes.push(Crash { at, which, down, back });
            }
            crashes.sort_by_key(|crash| crash.at);
        }
        let faults_until = Instant::ZERO + faults;
        Self { seed, links, faults_until, endpoint, pool, traffic, crashes }
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let mut world = World::new(self.seed);
        let end = |way: usize| {
            let traffic = self.traffic[way].clone();
            let seed = Rng::stream(self.seed, 600 + way as u64).next_u64();
            let modes = GoodBadConfig::default();
            let packets = GamePackets::new(self.endpoint, modes, self.pool, traffic, seed);
            let other = address(2 - way as u32);
            ArticleHost::new(ArticleConfig::default(), other, ()).with_packets(packets)
        };
        let [there, back] = self.links.clone();
        let ends = <[_; 2]>::from(world.pair(end(0), end(1), there, back));
        for &Crash { at, which, down, back } in &self.crashes {
            world.run_to(at);
            world.act(ends[which], |host, _| host.game_mut().crash(at + down, back));
        }
        world.run_to(self.faults_until);
        for link in world.links_mut(world.segment_of(ends[0])) {
            let healed = link.config().healed();
            let delay = healed.delay.min(MAX_HEALED_DELAY);
            link.set_config(LinkConfig { delay, ..healed });
        }
        let watched_from = world.now() + self.settle();
        let watched_to = watched_from + WATCH;
        for end in ends {
            world.act(end, |host, _| host.game_mut().end_at(watched_to + LOSS_TIMEOUT));
        }
        world.run_to(watched_to + 3 * LOSS_TIMEOUT);
        let games = ends.map(|end| world.host(end).game());
        let verdict = self.judge(games, watched_from..watched_to);
        Outcome {
            verdict,
            transfers: 0,
            packets: games.iter().map(|game| game.received.len() as u64).sum(),
            restarts: self.crashes.len() as u64,
            virtual_time: world.now().since(Instant::ZERO),
            trace_hash: world.trace().hash(),
        }
    }

    /// How long the healthy link runs before packets sent on it must arrive: until everything from before
    /// has arrived, incomplete packets are evicted, and a restart is detected.
    fn settle(&self) -> Duration {
        let slowest = self.links.iter().map(longest_transit).fold(Duration::ZERO, Duration::max);
        SETTLE.max(slowest + self.pool.timeout + RECOGNITION)
    }

    fn judge(&self, [a, b]: [&GamePackets; 2], watched: std::ops::Range<Instant>) -> Verdict {
        let [there, back] = &self.links;
        for (name, from, to, way_back) in [("a", a, b, back), ("b", b, a, there)] {
            if let Some(what) = broken_promise(from, to, longest_transit(way_back)) {
                return Verdict::Mismatch(format!("{name}: {what}"));
            }
            if let Some(what) = missing(from, to, watched.clone()) {
                return Verdict::Hang(format!("{name}: {what}"));
            }
            to.pool.check_invariants();
        }
        Verdict::Finished
    }
}

/// Checks safety at any time. `ack_transit` is the longest time that an ack may be in flight.
pub(super) fn broken_promise(
    from: &GamePackets,
    to: &GamePackets,
    ack_transit: Duration,
) -> Option<String> {
    if let Some(what) = from.wrong.as_ref().or(to.wrong.as_ref()) {
        return Some(what.clone());
    }
    let ack_lifetime = from.endpoint.config().loss_timeout + ack_transit;
    let is_false = |(number, record): (usize, &SentRecord)| {
        let namesakes = from.sent.iter().enumerate().filter(|(_, old)| is_namesake(old, record));
        let mut accepted = namesakes.filter_map(|(number, _)| to.accepted_at(number));
        record.told == Told::Acked
            && !to.has_accepted(number)
            && !accepted.any(|at| is_heard_at(record.told_at, at, ack_lifetime))
    };
    let number = from.sent.iter().enumerate().position(is_false)?;
    Some(format!("packet {number} was reported as acked and never accepted"))
}

/// Whether `old` had the number of `new`, before its sender crashed: only then may an ack of it be taken for
/// one of `new` (STANDARD §9.4).
fn is_namesake(old: &SentRecord, new: &SentRecord) -> bool {
    old.crashes < new.crashes && old.sequence == new.sequence
}

/// Whether an ack of a packet accepted at `accepted` may arrive at `at`: it is repeated for a loss timeout,
/// and then in flight.
fn is_heard_at(at: Instant, accepted: Instant, ack_lifetime: Duration) -> bool {
    accepted <= at && at - accepted <= ack_lifetime
}

/// The longest time that a datagram may be in flight on this link.
fn longest_transit(link: &LinkConfig) -> Duration {
    let queue = match (link.queue_bytes, link.rate_bps) {
        (Some(bytes), Some(rate)) => Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64),
        _ => Duration::ZERO,
    };
    queue + link.delay + link.jitter + link.duplicate_delay
}

/// Checks liveness once the link is healthy: all packets sent in a period have arrived and are acked, and
/// every packet has its fate.
pub(super) fn missing(
    from: &GamePackets,
    to: &GamePackets,
    watched: std::ops::Range<Instant>,
) -> Option<String> {
    if from.endpoint.in_flight() > 0 {
        return Some(format!("{} packets have no fate", from.endpoint.in_flight()));
    }
    for (number, record) in from.sent.iter().enumerate() {
        let told = record.told;
        let is_watched = watched.contains(&record.at);
        if told == Told::Nothing
            || (is_watched && (told != Told::Acked || !to.has_accepted(number)))
        {
            let (there, drops) = (to.has_accepted(number), to.endpoint.drops());
            let drops: Vec<String> = drops.iter().map(|(r, n)| format!("{r} {n}")).collect();
            return Some(format!(
                "packet {number} of {}, sent at {:?}: {told:?}, arrived: {there}; drops {drops:?}",
                from.sent.len(),
                record.at,
            ));
        }
    }
    None
}

/// Often the extremes of the article: almost everything lost, ten seconds of latency.
fn draw_packet_link(rng: &mut Rng, faults: Duration) -> LinkConfig {
    let mut link = draw_link(rng, faults);
    if rng.chance(Probability::percent(25)) {
        link.delay = Duration::from_secs(10);
    }
    if rng.chance(Probability::percent(25)) {
        link.loss = Loss::Independent(Probability::percent(99));
    }
    link
}

/// Packets that use up to a third of the link, and sometimes a large one.
pub(super) fn draw_traffic(rng: &mut Rng, link: &LinkConfig, pool: &FragmentPoolConfig) -> Traffic {
    let hertz = *rng.pick(&[60, 60, 30, 20, 10]);
    let budget = link.rate_bps.unwrap_or(u64::MAX) / 8 / 3 / hertz;
    let most = budget.saturating_sub(100).clamp(50, 4_000);
    let large_most = pool.max_fragments * FRAGMENT_BYTES - NUMBERED_HEADER_BYTES;
    // A third of the link's bytes in half a second, and no more than the queue holds.
    let room = link.queue_bytes.unwrap_or(u64::MAX).min(budget.saturating_mul(hertz / 2)) / 2;
    let large_most = large_most.min((room as usize).max(1_400));
    // An ordinary packet must fit the healthy queue, too.
    let most = most.min(room.max(50));
    Traffic {
        interval: Some(Duration::from_nanos(1_000_000_000 / hertz)),
        starts: Instant::from_nanos(rng.below(50_000_000)),
        ends: None,
        bytes: (16, most as usize),
        large: Probability::percent(*rng.pick(&[0, 0, 1, 3])),
        large_bytes: (1_300, large_most),
        refuse: Probability::percent(*rng.pick(&[0, 0, 10])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet sent before a crash is acknowledged, and the ack is in flight for two seconds. In that time
    /// the program restarts with the same sequence, and takes the ack for that of its new packet. The check
    /// allows this only on a link on which an ack can be this late.
    #[test]
    fn only_an_ack_from_before_a_crash_that_can_be_in_flight_is_excused() {
        let at = Instant::from_millis;
        let game = |starts| {
            let traffic = Traffic {
                interval: Some(Duration::from_secs(2)),
                starts,
                ends: None,
                bytes: (16, 16),
                large: Probability::NEVER,
                large_bytes: (1_300, 1_300),
                refuse: Probability::NEVER,
            };
            let (endpoint, modes) = (EndpointConfig::default(), GoodBadConfig::default());
            GamePackets::new(endpoint, modes, FragmentPoolConfig::default(), traffic, 1)
        };
        let (mut a, mut b) = (game(at(0)), game(at(60_000)));
        let (mut packet, mut ack) = (vec![], vec![]);
        a.handle_timeout(at(0));
        assert!(a.endpoint.poll_datagram(at(0), &mut packet));
        b.handle_datagram(at(500), &packet).unwrap();
        assert!(b.endpoint.poll_datagram(at(500), &mut ack));
        a.crash(at(2_000), Some(1));
        a.handle_timeout(at(2_000));
        a.handle_datagram(at(2_500), &ack).unwrap();
        assert_eq!((a.sent[1].told, b.has_accepted(1)), (Told::Acked, false));
        assert_eq!(broken_promise(&a, &b, Duration::from_millis(1_000)), None);
        assert!(broken_promise(&a, &b, Duration::from_millis(999)).is_some());
    }
}
