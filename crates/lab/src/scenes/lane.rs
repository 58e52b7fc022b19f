//! A lane: one sender and its client on a link of their own, watched from the request to the end.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::trace::TraceSecret;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_sim::hosts::{Keyed, configs};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Access, Fate, HostId, Rng, Sight, Stage, World, address};

use super::article::Article;
use super::fault::Mute;
use super::fragments::{self, Fragments};
use super::reading::{self, Content};
use super::{Capture, Captured, Fault, Kind, Outcome, Row, Scene, Sender, Take};
use crate::ends::{Ends as _, Haulier, Homes, Reading, addresses};
use crate::rivals::cubic::CubicSender;
use crate::rivals::{MSS, TcpReceiver};

/// What is watched after the end: the last acks on their way.
const AFTERMATH: Duration = Duration::from_millis(50);

/// The numbers of the two hosts in a world.
const SERVER: usize = 0;
const CLIENT: usize = 1;

/// Runs a lane to its end.
pub(super) fn play(scene: &Scene, sender: Sender) -> Take {
    run(scene, sender, Keyed::Open).0
}

/// The datagrams of a lane that its client sends, and those that reach it; its connection is of this mode.
pub(super) fn capture(scene: &Scene, sender: Sender, keyed: Keyed) -> Capture {
    let (_, sights, secrets) = run(scene, sender, keyed);
    let at_client = sights.into_iter().filter(|sight| sight.host == CLIENT);
    let captured = at_client.filter_map(|sight| {
        let is_down = match sight.stage {
            Stage::Sent(_) => false,
            Stage::Arrived => true,
            Stage::Offered(_) => return None,
        };
        Some(Captured { at: sight.at.since(Instant::ZERO), is_down, datagram: sight.datagram })
    });
    Capture { datagrams: captured.collect(), secrets }
}

fn run(scene: &Scene, sender: Sender, keyed: Keyed) -> (Take, Vec<Sight>, Vec<TraceSecret>) {
    let mut world = World::new(scene.seed).watched();
    let access = Access::from(scene.link());
    let homes = Homes::new(&mut world, &Access::default(), &access);
    let block = Rng::stream(scene.seed, 120).bytes(scene.bytes as usize);
    let ends = Ends::new(&mut world, homes, (scene, sender, keyed), block);
    let mut log = Log::new(sender, scene);
    let (mut whole, mut over) = (None, None);
    let end = Instant::ZERO + scene.lasts();
    world.run_until(end, |world| {
        whole = whole.or_else(|| ends.whole(world));
        over = over.or_else(|| ends.is_over(world).then(|| world.now()));
        over.is_some() || (whole.is_some() && !ends.have_an_end())
    });
    world.run_to(end.min(world.now() + AFTERMATH));
    let sights = world.take_sights();
    sights.iter().for_each(|sight| log.note(sight));
    if sender == Sender::SlowStart {
        log.forget_beyond(scene.bytes.div_ceil(MSS) as u32);
    }
    let since_start = |at: Instant| at.since(Instant::ZERO);
    let take = Take {
        sender,
        slices: log.slices(),
        rows: log.rows,
        whole: whole.map(since_start),
        over: over.map(since_start),
        hash: world.trace().hash(),
    };
    (take, sights, ends.take_secrets(&mut world))
}

/// The two ends, of any wire.
enum Ends {
    Haulier(Box<Haulier>),
    Article(Article),
    Fragments(Fragments),
    Tcp(HostId<TcpReceiver>, u64),
}

impl Ends {
    fn new(
        world: &mut World,
        homes: Homes,
        (scene, sender, keyed): (&Scene, Sender, Keyed),
        block: Vec<u8>,
    ) -> Self {
        match sender {
            Sender::Haulier => {
                let has_secrets = keyed == Keyed::Secret;
                let connection = ConnectionConfig::default().with_trace_secrets(has_secrets);
                let keys = [78, 77].map(|purpose| Rng::stream(scene.seed, purpose).key());
                let configs = configs(keyed, connection);
                let once = (Reading::default(), scene.seed);
                let block = Block::new(1, block);
                let ends = Haulier::new(world, homes, (configs, keys), &block, once);
                if scene.without == Some(Fault::Repair) {
                    let mute = world.add(Mute, address(3), &Access::default());
                    world.observe(mute);
                }
                Self::Haulier(Box::new(ends))
            }
            Sender::Article | Sender::ArticlePaced => {
                Self::Article(Article::new(world, homes, scene, sender, &block))
            }
            Sender::Fragments => Self::Fragments(Fragments::new(world, homes, scene, &block)),
            Sender::SlowStart => {
                let (at_server, at_client) = addresses();
                // The server has the request after the handshake: a round trip and a half.
                let starts = Instant::ZERO + scene.link().delay * 3;
                let sender = CubicSender::new(at_client, starts);
                world.add_behind(sender, at_server, homes.server);
                let receiver = TcpReceiver::new(at_server);
                Self::Tcp(world.add_behind(receiver, at_client, homes.client), scene.bytes)
            }
        }
    }

    fn take_secrets(&self, world: &mut World) -> Vec<TraceSecret> {
        match self {
            Self::Haulier(ends) => ends.take_secrets(world),
            _ => Vec::new(),
        }
    }

    /// When the client had the block.
    fn whole(&self, world: &World) -> Option<Instant> {
        match self {
            Self::Haulier(ends) => {
                let (blocks, at) = ends.received(world);
                (blocks > 0).then_some(at)
            }
            Self::Article(ends) => ends.whole(world),
            Self::Fragments(ends) => ends.whole(world),
            Self::Tcp(receiver, bytes) => {
                let has_all = world.host(*receiver).in_order_bytes() >= *bytes;
                has_all.then(|| world.now())
            }
        }
    }

    /// Whether the server knows that.
    fn is_over(&self, world: &World) -> bool {
        match self {
            Self::Haulier(ends) => ends.is_done(world),
            Self::Article(ends) => ends.is_over(world),
            Self::Fragments(ends) => ends.is_over(world),
            Self::Tcp(..) => false,
        }
    }

    /// The model of TCP sends without end.
    const fn have_an_end(&self) -> bool {
        !matches!(self, Self::Tcp(..))
    }
}

/// The rows of a lane, as its datagrams are seen.
struct Log {
    sender: Sender,
    delay: Duration,
    rows: Vec<Row>,
    /// The rows of datagrams with these bytes that have not arrived, the oldest first.
    under_way: HashMap<(bool, Vec<u8>), VecDeque<usize>>,
    /// How often each source slice was sent, and the slices of each chunk.
    sent: BTreeMap<(u32, u32), u32>,
    slices: BTreeMap<u32, u32>,
    /// Of fragments: the packets of the block. Those behind them are sent again.
    packets: u32,
}

impl Log {
    fn new(sender: Sender, scene: &Scene) -> Self {
        let (under_way, sent, slices) = (HashMap::new(), BTreeMap::new(), BTreeMap::new());
        let packets = match sender {
            Sender::Fragments => fragments::packets(scene.bytes as usize) as u32,
            _ => u32::MAX,
        };
        let delay = scene.link().delay;
        Self { sender, delay, rows: Vec::new(), under_way, sent, slices, packets }
    }

    /// The link of a lane is the client's access: what it sends goes into the way up, what it gets into the
    /// way down. The server's own access is perfect.
    fn note(&mut self, sight: &Sight) {
        match (sight.stage, sight.host) {
            (Stage::Offered(fate), CLIENT) => self.sent(sight, fate, true),
            (Stage::Sent(fate), CLIENT) => self.sent(sight, fate, false),
            (Stage::Arrived, CLIENT) => self.arrived(sight, true),
            (Stage::Arrived, SERVER) => self.arrived(sight, false),
            _ => {}
        }
    }

    fn sent(&mut self, sight: &Sight, fate: Fate, is_down: bool) {
        let content = reading::read(self.sender, is_down, &sight.datagram);
        let (sent, waited) = (sight.at.since(Instant::ZERO), Duration::from_nanos(sight.waits_ns));
        let outcome = match fate {
            Fate::Carried => Outcome::UnderWay,
            Fate::Lost | Fate::CutOut => Outcome::Lost,
            _ => Outcome::Dropped,
        };
        let ends = if outcome == Outcome::Dropped { sent } else { sent + waited + self.delay };
        if outcome == Outcome::UnderWay {
            let key = (is_down, sight.datagram.clone());
            self.under_way.entry(key).or_default().push_back(self.rows.len());
        }
        let kind = self.kind(&content, is_down);
        let Content { chunk, index, .. } = content;
        self.rows.push(Row {
            sent,
            ends,
            outcome,
            kind,
            is_down,
            chunk,
            index,
            bytes: (sight.datagram.len() as u64 + UDP_IP_OVERHEAD) as u32,
            waited,
        });
    }

    /// A source slice that was sent before is sent again.
    fn kind(&mut self, content: &Content, is_down: bool) -> Kind {
        if content.kind != Kind::Slice || !is_down {
            return content.kind;
        }
        let slices = self.slices.entry(content.chunk).or_default();
        *slices = (*slices).max(content.index + 1);
        let times = self.sent.entry((content.chunk, content.index)).or_default();
        *times += 1;
        if *times > 1 || content.chunk >= self.packets { Kind::Again } else { Kind::Slice }
    }

    fn arrived(&mut self, sight: &Sight, is_down: bool) {
        let key = (is_down, sight.datagram.clone());
        let Some(row) = self.under_way.get_mut(&key).and_then(VecDeque::pop_front) else { return };
        let row = &mut self.rows[row];
        (row.ends, row.outcome) = (sight.at.since(Instant::ZERO), Outcome::Arrived);
    }

    /// The model of TCP sends without end: what is beyond the block is of no interest.
    fn forget_beyond(&mut self, segments: u32) {
        self.rows.retain(|row| !row.is_down || row.index < segments);
        self.slices.values_mut().for_each(|slices| *slices = segments.min(*slices));
    }

    fn slices(&self) -> Vec<u32> {
        self.slices.values().copied().collect()
    }
}
