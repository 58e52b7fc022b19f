//! Cold joins over seventeen links, in virtual time: from before the first datagram to the whole block.
//!
//! A [`Joiner`] is haulier/1 with a token or with a ticket, the article's sender, or a model of TCP; a
//! [`JoinLink`] is one of ten that are plain and seven that are not. A [`Join`] compares the time with L, the
//! physical limit. Machines take no time to compute here, and nothing but the link delays a datagram: on real
//! sockets and fast links there is more, which the lab measures (`docs/PERFORMANCE.md`).
//!
//! TCP has the handshake of TCP, and none of TLS. It sends without end, so that it never waits for the loss
//! of its last segments to be found; a real one does.

mod link;

pub use link::JoinLink;

use std::time::Duration;

use haulier_article::ArticleConfig;
use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, HostId, LinkStats, Rng, World};

use crate::ends::{Article, Ends, First, Haulier, Homes, Reading, addresses};
use crate::grid::connection::{by_secret, by_token};
use crate::rivals::TcpReceiver;
use crate::rivals::bbr::BbrSender;
use crate::rivals::cubic::CubicSender;

/// A join that takes longer than `PATIENCE` plus `PATIENCE_LIMITS` times the limit hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_LIMITS: u32 = 5;

/// Bytes that the server sends within this time after the block is complete are counted too.
const AFTERMATH: Duration = Duration::from_millis(500);

/// The client begins within this time, so that bunches fall differently in each run.
const PHASE: Duration = Duration::from_millis(100);

/// The largest block of the article's sender: one chunk.
const MAX_ARTICLE_BYTES: u64 = 256 << 10;

/// A way to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Joiner {
    /// haulier/1 with a token that says where the client is.
    Token,
    /// haulier/1 with a ticket: the server is careful until the client has answered.
    Ticket,
    /// The article's sender: a burst, then 1 Mbit/s. One chunk at most.
    Article,
    /// A model of TCP BBR.
    Bbr,
    /// A model of TCP CUBIC.
    Cubic,
}

/// One join.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Join {
    /// From the request until the client has the block; `None` if it hangs.
    pub time: Option<Duration>,
    /// The physical limit.
    pub limit: Duration,
    /// Bytes that the server sent, with headers, over those of the block; none for TCP, which does not end.
    pub wire: Option<f64>,
    /// Bytes that queue and policer dropped on the way down, over those of the block.
    pub dropped: f64,
}

impl Joiner {
    /// All of them: ours, then the others.
    pub const ALL: [Self; 5] = [Self::Token, Self::Ticket, Self::Article, Self::Bbr, Self::Cubic];

    /// Its name, in words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Ticket => "ticket",
            Self::Article => "article",
            Self::Bbr => "tcp_bbr",
            Self::Cubic => "tcp_cubic",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|joiner| joiner.name() == name)
    }

    /// Whether it is one of haulier/1.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Token | Self::Ticket)
    }

    /// Whether it can send a block of `bytes` bytes.
    pub const fn can_send(self, bytes: u64) -> bool {
        !matches!(self, Self::Article) || bytes <= MAX_ARTICLE_BYTES
    }
}

impl Join {
    /// The time in L.
    pub fn in_limits(&self) -> f64 {
        self.time.map_or(f64::INFINITY, |time| time.as_secs_f64() / self.limit.as_secs_f64())
    }
}

/// One join for this block. Equal seeds give equal runs.
pub fn join(link: &JoinLink, joiner: Joiner, block: &Block, seed: u64) -> Join {
    let begins = Instant::from_nanos(Rng::stream(seed, 76).below(PHASE.as_nanos() as u64));
    let (access, bytes) = (link.access(seed), block.data().len() as u64);
    let limit = link.limit(&access, begins, bytes);
    let mut world = World::new(seed).for_measuring();
    let homes = Homes::new(&mut world, &Access::default(), &access);
    let (mut ends, aftermath) = match joiner {
        Joiner::Token | Joiner::Ticket | Joiner::Article => {
            (machines(&mut world, homes, (joiner, block), begins, seed), Some(AFTERMATH))
        }
        Joiner::Bbr | Joiner::Cubic => {
            let rtt = access.up.delay + access.down.delay;
            // The server has the request after the handshake.
            let starts = begins + rtt * 3 / 2;
            (tcp(&mut world, homes, (joiner, bytes), starts, seed), None)
        }
    };
    let end = begins + PATIENCE + limit * PATIENCE_LIMITS;
    let is_done = world.run_until(end, |world| ends(world));
    let time = is_done.then(|| world.now().since(begins));
    world.run_to(world.now() + aftermath.unwrap_or_default());
    let sent = world.links(homes.server).0.stats().offered_bytes;
    let LinkStats { dropped_bytes, .. } = world.links(homes.client).1.stats();
    let over = |sum: u64| sum as f64 / bytes as f64;
    Join { time, limit, wire: aftermath.map(|_| over(sent)), dropped: over(*dropped_bytes) }
}

/// Whether the client has the block.
type IsDone = Box<dyn FnMut(&World) -> bool>;

fn machines(
    world: &mut World,
    homes: Homes,
    (joiner, block): (Joiner, &Block),
    begins: Instant,
    seed: u64,
) -> IsDone {
    let keys = [78, 77].map(|purpose| Rng::stream(seed, purpose).key());
    let once = (Reading::default(), seed);
    if joiner == Joiner::Article {
        // Its client begins at once.
        world.run_to(begins);
        let (config, first) = (ArticleConfig::default(), (First::Asked, block));
        let ends = Article::new(world, homes, &config, first, once);
        return Box::new(move |world| ends.received(world).0 > 0);
    }
    let configs = if joiner == Joiner::Token { by_token() } else { by_secret() };
    let ends = Haulier::beginning(world, homes, (configs, keys), block, once, begins);
    Box::new(move |world| ends.received(world).0 > 0)
}

fn tcp(
    world: &mut World,
    homes: Homes,
    (joiner, bytes): (Joiner, u64),
    starts: Instant,
    seed: u64,
) -> IsDone {
    let (at_server, at_client) = addresses();
    if joiner == Joiner::Bbr {
        let sender = BbrSender::new(at_client, starts, seed);
        world.add_behind(sender, at_server, homes.server);
    } else {
        world.add_behind(CubicSender::new(at_client, starts), at_server, homes.server);
    }
    let receiver: HostId<TcpReceiver> =
        world.add_behind(TcpReceiver::new(at_server), at_client, homes.client);
    Box::new(move |world| world.host(receiver).in_order_bytes() >= bytes)
}

/// The value that this part of the joins does not exceed; infinite if `joins` is empty. The median of an even
/// number of joins is the lower of the middle two.
pub fn percentile(joins: &[Join], part: f64, of: impl Fn(&Join) -> f64) -> f64 {
    let mut values: Vec<f64> = joins.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * part).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Block {
        Block::new(1, Rng::stream(1, 92).bytes(bytes))
    }

    fn ratio(name: &str, joiner: Joiner, block: &Block) -> f64 {
        let link = JoinLink::named(name).unwrap();
        let join = join(&link, joiner, block, 1);
        println!("{name}, {}: {:.2} L, wire {:?}", joiner.name(), join.in_limits(), join.wire);
        assert!(join.wire.is_none_or(|wire| wire > 1.0), "{join:?}");
        join.in_limits()
    }

    /// By hand: TCP has two round trips before its first data, and doubles from ten segments on; in 40 ms
    /// more than 256 KiB are out.
    #[test]
    fn who_joins_how_fast_is_as_known() {
        let block = block(256 << 10);
        assert!((1.0..1.3).contains(&ratio("fiber", Joiner::Token, &block)));
        assert!((1.2..1.8).contains(&ratio("fiber", Joiner::Ticket, &block)));
        // The lab: 3.0.
        assert!((2.5..3.5).contains(&ratio("fiber", Joiner::Cubic, &block)));
        assert!((2.5..3.5).contains(&ratio("fiber", Joiner::Bbr, &block)));
        assert!((1.0..1.1).contains(&ratio("bloat", Joiner::Article, &block)));
        assert!((1.0..1.1).contains(&ratio("bloat", Joiner::Cubic, &block)));
    }

    #[test]
    fn a_long_block_is_near_the_limit_and_the_article_has_none() {
        let block = block(16 << 20);
        assert!((1.0..1.2).contains(&ratio("fiber", Joiner::Cubic, &block)));
        assert!((1.0..1.2).contains(&ratio("fiber", Joiner::Token, &block)));
        assert!(!Joiner::Article.can_send(16 << 20) && Joiner::Article.can_send(256 << 10));
    }

    #[test]
    fn a_seed_is_a_run() {
        let (link, block) = (JoinLink::named("lte").unwrap(), block(100_000));
        for joiner in Joiner::ALL {
            let run = |seed| join(&link, joiner, &block, seed);
            assert_eq!(run(1), run(1));
            assert_ne!(run(1).limit, run(2).limit);
        }
    }

    #[test]
    fn the_percentile_of_a_few_is_one_of_them() {
        let joins = [1, 2, 3, 4].map(|ms| Join {
            time: (ms < 4).then(|| Duration::from_millis(ms)),
            limit: Duration::from_millis(1),
            ..Join::default()
        });
        let of = |part| percentile(&joins, part, Join::in_limits).round();
        assert_eq!((of(0.5), of(0.75), of(0.95)), (2.0, 3.0, f64::INFINITY));
    }
}
