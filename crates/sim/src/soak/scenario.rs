//! One scenario: everything in it is drawn from its seed, then it runs to its end.

use std::time::Duration;

use bytes::Bytes;
use haulier_article::chunk::{ChunkId, MAX_CHUNK_BYTES, ResendDelay, SLICE_BYTES};
use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::EndpointConfig;
use haulier_article::fragment::FragmentPoolConfig;
use haulier_article::{ArticleConfig, Instant, ProtocolId};

use super::chunk_end::{ChunkEnd, Reader};
use super::packets::{broken_promise, draw_traffic, missing};
use crate::hosts::ArticleHost;
use crate::hosts::game::{GamePackets, Traffic};
use crate::{HostId, LinkConfig, Loss, Probability, Rng, World, address};

/// Virtual time in which no chunk finishes, after the faults have stopped, that counts as a hang. The
/// slowest honest chunk is 256 KiB at 256 kbit/s, with some retransmissions: about 10 s. New slices do not
/// count: ends that start over repeatedly hang as well, and look busy.
const HANG: Duration = Duration::from_secs(120);

/// Once the chunks are done: how long datagrams in flight and in queues may take to arrive, how long packets
/// are then checked, and the longest wait for an ack.
const SETTLE: Duration = Duration::from_secs(5);
const WATCH: Duration = Duration::from_secs(2);
const MARGIN: Duration = Duration::from_secs(1);

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    /// One link for each direction.
    links: [LinkConfig; 2],
    /// When the faults of the links end.
    faults_until: Instant,
    config: ArticleConfig,
    /// Sizes of the chunks that each end sends.
    sizes: [Vec<usize>; 2],
    readers: [Reader; 2],
    /// A game's packets beside the chunks, in each direction.
    packets: Option<[Traffic; 2]>,
}

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every chunk arrived, unchanged and in order, and both ends know.
    Finished,
    /// Something never finished.
    Hang(String),
    /// Something was wrong.
    Mismatch(String),
}

/// The outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// Chunks that arrived unchanged.
    pub transfers: u64,
    /// Packets that were accepted at the other end.
    pub packets: u64,
    /// Sessions started again.
    pub restarts: u64,
    /// Virtual time.
    pub virtual_time: Duration,
    /// Hash of the trace.
    pub trace_hash: u64,
}

impl Scenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let faults = Duration::from_millis(rng.between(500, 20_000));
        let protocol_id = ProtocolId(rng.next_u64() as u32);
        let mut config = ArticleConfig::default().with_protocol_id(protocol_id);
        config.sender.rate_bps = *rng.pick(&[256_000, 1_000_000, 8_000_000, 50_000_000]);
        config.sender.burst = rng.chance(Probability::percent(50));
        if rng.chance(Probability::percent(30)) {
            config.sender.resend_delay = ResendDelay::Fixed(Duration::from_millis(100));
        }
        config.receiver.ack_interval = Duration::from_millis(rng.between(50, 100));
        config.sender.peer_ack_interval = config.receiver.ack_interval;
        config.receiver.max_unread = *rng.pick(&[1, 1, 2, 4]);
        // A third of the scenarios start close enough to the wrap to cross it.
        let first_id =
            if rng.chance(Probability::percent(33)) { 65_533 } else { rng.below(65_536) };
        config.sender.first_chunk_id = ChunkId::new(first_id as u16);
        config.receiver.first_chunk_id = config.sender.first_chunk_id;
        // A quarter of the scenarios give up and abandon, in whichever order, and start over then.
        let impatient = rng.chance(Probability::percent(25));
        let times = [rng.between(4_000, 12_000), rng.between(4_000, 12_000)];
        let [give_up, abandon] = times.map(|ms| impatient.then(|| Duration::from_millis(ms)));
        config.sender.give_up_after = give_up;
        config.receiver.abandon_after = abandon;
        let links = [draw_link(&mut rng, faults), draw_link(&mut rng, faults)];
        let faults_until = Instant::ZERO + faults;
        let there = draw_sizes(&mut rng, 1);
        let back =
            if rng.chance(Probability::percent(50)) { draw_sizes(&mut rng, 1) } else { vec![] };
        let readers = [draw_reader(&mut rng, faults), draw_reader(&mut rng, faults)];
        Self { seed, links, faults_until, config, sizes: [there, back], readers, packets: None }
    }

    /// This scenario with a game's packets beside the chunks, on the same links.
    #[must_use]
    pub fn with_packets(mut self) -> Self {
        let mut rng = Rng::stream(self.seed, 700);
        let pool = FragmentPoolConfig::default();
        self.packets =
            Some([0, 1].map(|way: usize| draw_traffic(&mut rng, &self.links[way], &pool)));
        self
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let mut run = Run::new(self);
        let verdict = match run.until_the_end() {
            Verdict::Finished => run.judge_packets(),
            other => other,
        };
        let hosts = run.ends.map(|end| run.world.host(end));
        let packets = hosts.iter().filter_map(|host| host.packets.as_ref());
        Outcome {
            verdict,
            transfers: hosts.iter().map(|host| host.app.received).sum(),
            packets: packets.map(|game| game.received.len() as u64).sum(),
            restarts: run.restarts.into(),
            virtual_time: run.world.now().since(Instant::ZERO),
            trace_hash: run.world.trace().hash(),
        }
    }
}

struct Run<'s> {
    scenario: &'s Scenario,
    world: World,
    ends: [HostId<ArticleHost<ChunkEnd>>; 2],
    healed: bool,
    restarts: u32,
}

/// A later time always exists, until there are no more events.
const FOR_EVER: Instant = Instant::from_nanos(u64::MAX);

impl<'s> Run<'s> {
    fn new(scenario: &'s Scenario) -> Self {
        let mut data = Rng::stream(scenario.seed, 77);
        let mut chunks = |sizes: &[usize]| -> Vec<Bytes> {
            sizes.iter().map(|&size| Bytes::from(data.bytes(size))).collect()
        };
        let chunks = [chunks(&scenario.sizes[0]), chunks(&scenario.sizes[1])];
        let end = |way: usize| {
            let (to_send, expected) = (chunks[way].clone(), chunks[1 - way].clone());
            let app = ChunkEnd::new(scenario.readers[way], to_send, expected);
            let other = address(2 - way as u32);
            let mut host = ArticleHost::of_soak(scenario.config.clone(), other, app);
            host.packets = scenario.packets.as_ref().map(|t| game(scenario, &t[way], way));
            host
        };
        let mut world = World::new(scenario.seed);
        let [there, back] = scenario.links.clone();
        let ends = world.pair(end(0), end(1), there, back).into();
        Self { scenario, world, ends, healed: false, restarts: 0 }
    }

    fn hosts(&self) -> [&ArticleHost<ChunkEnd>; 2] {
        self.ends.map(|end| self.world.host(end))
    }

    fn until_the_end(&mut self) -> Verdict {
        let mut unfinished = self.unfinished();
        let mut last_progress = self.world.now();
        loop {
            if let Some(what) = self.wrong() {
                return Verdict::Mismatch(what);
            }
            if self.unfinished() == 0 {
                return Verdict::Finished;
            }
            if self.restart_if_broken() {
                continue;
            }
            self.inform_ends();
            let stepped = self.step();
            if !self.healed && (self.world.now() >= self.scenario.faults_until || !stepped) {
                self.heal();
                last_progress = self.world.now();
                continue;
            }
            if self.unfinished() != unfinished {
                unfinished = self.unfinished();
                last_progress = self.world.now();
            }
            if self.healed
                && self.unfinished() > 0
                && (!stepped || self.world.now() - last_progress > HANG)
            {
                return Verdict::Hang(self.describe());
            }
        }
    }

    /// Runs the work that is due now, and advances to the next event. Returns whether there is one.
    fn step(&mut self) -> bool {
        self.world.run_to(self.world.now());
        let stepped = self.world.step(FOR_EVER);
        self.world.run_to(self.world.now());
        stepped
    }

    /// The chunks are done. The game continues for a while on the healthy link, and all its packets must get
    /// their fates.
    fn judge_packets(&mut self) -> Verdict {
        if self.scenario.packets.is_none() {
            return Verdict::Finished;
        }
        // Chunks may finish before the faults are over.
        if !self.healed {
            self.heal();
        }
        let from = self.world.now() + SETTLE;
        let to = from + WATCH;
        for end in self.ends {
            self.world.act(end, |host, _| host.game_mut().end_at(to + MARGIN));
        }
        self.world.run_to(to + 3 * MARGIN);
        let [a, b] = self.hosts().map(ArticleHost::game);
        for (sender, receiver) in [(a, b), (b, a)] {
            if let Some(what) = broken_promise(sender, receiver, Duration::ZERO) {
                return Verdict::Mismatch(what);
            }
            if let Some(what) = missing(sender, receiver, from..to) {
                return Verdict::Hang(what);
            }
        }
        Verdict::Finished
    }

    /// Informs each end, outside the link, how many of the chunks it expects the other end knows to be sent.
    fn inform_ends(&mut self) {
        let sent = self.hosts().map(|host| host.app.sent_in_session);
        for (end, sent_there) in self.ends.into_iter().zip([sent[1], sent[0]]) {
            if self.world.host(end).app.known_there != sent_there {
                self.world.act(end, |host, _| host.app.known_there = sent_there);
            }
        }
    }

    /// The faults stop: a slow link without faults remains.
    fn heal(&mut self) {
        self.healed = true;
        let now = self.scenario.faults_until.max(self.world.now());
        self.world.run_to(now);
        for link in self.world.links_mut(self.world.segment_of(self.ends[0])) {
            link.set_config(link.config().healed());
        }
    }

    /// After a timeout neither end knows which chunk the other is at; both start a new session, and learn in
    /// another way (in a game, from the connection) what has arrived.
    fn restart_if_broken(&mut self) -> bool {
        if self.hosts().iter().all(|host| host.app.broken.is_none()) {
            return false;
        }
        for end in self.ends {
            self.world.act(end, |host, _| host.read_rest());
        }
        let [a, b] = self.hosts().map(|host| (host.app.to_send.len(), host.app.expected.len()));
        self.restarts += 1;
        let mut config = self.scenario.config.clone();
        config.protocol_id = ProtocolId(config.protocol_id.0.wrapping_add(self.restarts));
        for (end, (unsent, unreceived)) in self.ends.into_iter().zip([(a.0, b.1), (b.0, a.1)]) {
            let arrived = unsent.saturating_sub(unreceived);
            self.world.act(end, |host, _| host.restart(config.clone(), arrived));
        }
        true
    }

    fn wrong(&self) -> Option<String> {
        let [a, b] = self.hosts();
        for (from, to) in [(a, b), (b, a)] {
            // Chunks completed there in this session.
            if from.app.sent_in_session > to.peer().receiver().stats().chunks_received {
                return Some("a chunk was reported as sent and has not arrived".into());
            }
        }
        a.app.wrong.clone().or_else(|| b.app.wrong.clone())
    }

    fn unfinished(&self) -> usize {
        self.hosts().iter().map(|host| host.app.unfinished()).sum()
    }

    fn describe(&self) -> String {
        let config = &self.scenario.config;
        let [a, b] = self.hosts().map(|host| {
            let (sender, receiver) = (host.peer().sender(), host.peer().receiver());
            format!(
                "sender {:?} {:?}, receiver {:?} unread {}",
                sender.state(),
                sender.progress(),
                receiver.state(),
                receiver.unread(),
            )
        });
        let times = (config.sender.give_up_after, config.receiver.abandon_after);
        let at = self.world.now().since(Instant::ZERO);
        format!("after {at:?}, timeouts {times:?}: {a}; {b}")
    }
}

/// The packets of a game, of another protocol than the chunks.
fn game(scenario: &Scenario, traffic: &Traffic, way: usize) -> GamePackets {
    let protocol_id = ProtocolId(!scenario.config.protocol_id.0);
    let config = EndpointConfig::default().with_protocol_id(protocol_id);
    let seed = Rng::stream(scenario.seed, 800 + way as u64).next_u64();
    let (modes, pool) = (GoodBadConfig::default(), FragmentPoolConfig::default());
    GamePackets::new(config, modes, pool, traffic.clone(), seed)
}

/// A link with a mixture of faults. Its outages begin within the time `faults`, after which the caller heals
/// the link. Each fault is often off, so that many scenarios have just one or two.
pub fn draw_link(rng: &mut Rng, faults: Duration) -> LinkConfig {
    let often = Probability::percent(50);
    let seldom = Probability::percent(25);
    let rate_bps = *rng.pick(&[500_000, 2_000_000, 20_000_000, 1_000_000_000]);
    let mut link = LinkConfig {
        rate_bps: Some(rate_bps),
        // At most a second's worth: budgets far above the rate keep it full of duplicates, and timeouts of
        // seconds do not work behind a queue of minutes.
        queue_bytes: Some(rng.between(4 * 1024, (512 * 1024).min(rate_bps / 8))),
        delay: Duration::from_micros(rng.between(100, 300_000)),
        ..LinkConfig::default()
    };
    if rng.chance(often) {
        let mean = Probability::percent(*rng.pick(&[1, 5, 20, 50, 70, 90]));
        link.loss = Loss::Independent(mean);
        if rng.chance(seldom) {
            link.loss = Loss::Bursts { mean, length: rng.between(2, 40) as u32 };
        }
    }
    if rng.chance(often) {
        link.jitter = Duration::from_millis(rng.between(1, 250));
        link.reorder = rng.chance(often);
    }
    if rng.chance(seldom) {
        link.duplicate = Probability::percent(rng.between(1, 50));
        link.duplicate_delay = Duration::from_millis(rng.between(0, 1_000));
    }
    if rng.chance(seldom) {
        link.corrupt = Probability::percent(rng.between(1, 20));
    }
    if rng.chance(seldom) {
        link.truncate = Probability::percent(rng.between(1, 20));
    }
    if rng.chance(seldom) {
        for _ in 0..rng.between(1, 3) {
            let start = Duration::from_nanos(rng.below(faults.as_nanos() as u64));
            let length = Duration::from_millis(rng.between(50, 12_000));
            link.cut_outs.push(Instant::ZERO + start..Instant::ZERO + start + length);
        }
    }
    link
}

/// One to eight chunks, with more small ones and edge cases than a uniform choice.
fn draw_sizes(rng: &mut Rng, at_least: u64) -> Vec<usize> {
    (0..rng.between(at_least, 8)).map(|_| draw_size(rng)).collect()
}

fn draw_size(rng: &mut Rng) -> usize {
    let slices = rng.between(1, 256) as usize * SLICE_BYTES;
    match rng.below(10) {
        0..=3 => rng.between(1, 4_096) as usize,
        4 => slices,
        5 => slices - 1,
        6 => (slices + 1).min(MAX_CHUNK_BYTES),
        7 => *rng.pick(&[1, MAX_CHUNK_BYTES]),
        _ => rng.between(1, MAX_CHUNK_BYTES as u64) as usize,
    }
}

fn draw_reader(rng: &mut Rng, faults: Duration) -> Reader {
    match rng.below(5) {
        0 => Reader::Slow(Duration::from_millis(rng.between(1, 5_000))),
        1 => {
            let until = Duration::from_nanos(rng.below(faults.as_nanos() as u64));
            Reader::StoppedUntil(Instant::ZERO + until)
        }
        2 => Reader::WhenKnown,
        _ => Reader::Prompt,
    }
}
