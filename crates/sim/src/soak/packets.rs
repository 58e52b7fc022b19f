//! Soak of the packet layer: packets both ways under drawn faults, 99 % loss and 10 s of latency among
//! them, and programs that crash and come back with other numbers.
//!
//! While the faults last, safety: a packet is delivered as it was sent, at most once, and only one that the
//! other end accepted is reported as acked. Then the faults stop, and liveness: what is sent on the healthy
//! link arrives and is known to have arrived, and every packet ever sent has met its fate.

use std::time::Duration;

use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::EndpointConfig;
use haulier_article::fragment::{FRAGMENT_BYTES, FragmentPoolConfig};
use haulier_article::packet::numbered::NUMBERED_HEADER_BYTES;
use haulier_article::{ArticleConfig, Instant, ProtocolId, Sequence};

use super::scenario::draw_link;
use super::{Outcome, Verdict};
use crate::hosts::ArticleHost;
use crate::hosts::game::{GamePackets, Told, Traffic};
use crate::{LinkConfig, Loss, Probability, Rng, World, address};

/// How long the healthy link runs before what is sent on it must arrive: longer than the slowest packet
/// of the faults was under way, and than an end needs to find that the other started over.
const SETTLE: Duration = Duration::from_secs(13);

/// How long packets are then watched, and how long their acks are waited for.
const WATCH: Duration = Duration::from_secs(3);
const LOSS_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay of a link that has healed: a packet of ten seconds ago would be waited for.
const MAX_HEALED_DELAY: Duration = Duration::from_millis(300);

/// What a scenario of the packet layer is made of.
#[derive(Clone, Debug)]
pub struct PacketScenario {
    seed: u64,
    links: [LinkConfig; 2],
    faults_until: Instant,
    endpoint: EndpointConfig,
    pool: FragmentPoolConfig,
    traffic: [Traffic; 2],
    /// When an end crashes, which one, and for how long it is down.
    crashes: Vec<(Instant, usize, Duration)>,
}

impl PacketScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 500);
        let faults = Duration::from_millis(rng.between(2_000, 60_000));
        let links = [draw_packet_link(&mut rng, faults), draw_packet_link(&mut rng, faults)];
        let endpoint = EndpointConfig {
            protocol_id: ProtocolId(rng.next_u64() as u32),
            // A third of the scenarios start close enough to the wrap to cross it.
            first_sequence: Sequence::new(if rng.chance(Probability::percent(33)) {
                65_400
            } else {
                rng.below(65_536) as u16
            }),
            max_datagram_bytes: rng.between(1_033, 1_200) as usize,
            ack_interval: rng.chance(Probability::percent(75)).then_some(Duration::from_millis(50)),
            ..EndpointConfig::default()
        };
        // A quarter have little memory, so that packets must make room for each other.
        let mut pool = FragmentPoolConfig::default();
        if rng.chance(Probability::percent(25)) {
            pool.max_fragments = 16;
            pool.max_bytes_per_peer = 40_000;
            pool.max_bytes = 40_000;
        }
        let traffic = [0, 1].map(|way: usize| draw_traffic(&mut rng, &links[way], &pool));
        let mut crashes = Vec::new();
        if rng.chance(Probability::percent(30)) {
            for _ in 0..rng.between(1, 2) {
                let at = Duration::from_nanos(rng.below(faults.as_nanos() as u64));
                // No program is back before its peer has called lost what it sent to the old one.
                let down = Duration::from_millis(rng.between(1_100, 5_000));
                crashes.push((Instant::ZERO + at, rng.below(2) as usize, down));
            }
            crashes.sort_unstable();
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
        for &(at, which, down) in &self.crashes {
            world.run_to(at);
            world.act(ends[which], |host, _| host.game_mut().crash(at + down));
        }
        world.run_to(self.faults_until);
        for link in world.links_mut(world.segment_of(ends[0])) {
            let healed = link.config().healed();
            let delay = healed.delay.min(MAX_HEALED_DELAY);
            link.set_config(LinkConfig { delay, ..healed });
        }
        let watched_from = world.now() + SETTLE;
        let watched_to = watched_from + WATCH;
        for end in ends {
            world.act(end, |host, _| host.game_mut().end_at(watched_to + LOSS_TIMEOUT));
        }
        world.run_to(watched_to + 3 * LOSS_TIMEOUT);
        let games = ends.map(|end| world.host(end).game());
        let verdict = judge(games, watched_from..watched_to);
        Outcome {
            verdict,
            transfers: 0,
            packets: games.iter().map(|game| game.received.len() as u64).sum(),
            restarts: self.crashes.len() as u64,
            virtual_time: world.now().since(Instant::ZERO),
            trace_hash: world.trace().hash(),
        }
    }
}

fn judge([a, b]: [&GamePackets; 2], watched: std::ops::Range<Instant>) -> Verdict {
    for (name, from, to) in [("a", a, b), ("b", b, a)] {
        if let Some(what) = broken_promise(from, to) {
            return Verdict::Mismatch(format!("{name}: {what}"));
        }
        if let Some(what) = missing(from, to, watched.clone()) {
            return Verdict::Hang(format!("{name}: {what}"));
        }
        to.pool.check_invariants();
    }
    Verdict::Finished
}

/// What must not be, at any time.
pub(super) fn broken_promise(from: &GamePackets, to: &GamePackets) -> Option<String> {
    if let Some(what) = from.wrong.as_ref().or(to.wrong.as_ref()) {
        return Some(what.clone());
    }
    let believed = |(number, record): (usize, &crate::hosts::game::SentRecord)| {
        record.told == Told::Acked && !to.has_accepted(number)
    };
    let number = from.sent.iter().enumerate().position(believed)?;
    Some(format!("packet {number} was reported as acked and never accepted"))
}

/// What must be, once the link is healthy: all packets sent in a stretch of time have arrived and are known
/// to, and every packet has met its fate.
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

/// Often the extremes that the article names: almost everything lost, ten seconds of latency.
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

/// Packets that take up to a third of the link, and now and then a large one.
pub(super) fn draw_traffic(rng: &mut Rng, link: &LinkConfig, pool: &FragmentPoolConfig) -> Traffic {
    let hertz = *rng.pick(&[60, 60, 30, 20, 10]);
    let budget = link.rate_bps.unwrap_or(u64::MAX) / 8 / 3 / hertz;
    let most = budget.saturating_sub(100).clamp(50, 4_000);
    let large_most = pool.max_fragments * FRAGMENT_BYTES - NUMBERED_HEADER_BYTES;
    // What a third of the link carries in half a second, and the queue takes at once.
    let room = link.queue_bytes.unwrap_or(u64::MAX).min(budget.saturating_mul(hertz / 2)) / 2;
    let large_most = large_most.min((room as usize).max(1_400));
    // Nor may an ordinary packet be more than a healthy queue takes.
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
