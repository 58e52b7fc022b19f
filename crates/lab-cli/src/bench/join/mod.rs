//! `haulier-lab bench join`: joins over real sockets through emulated links, against the physical limit.
//!
//! A join is three threads: the link, the server and the client. Joins run side by side on all cores, and
//! each has a server of its own, so that no join finds what another has left behind.

mod table;

use std::cell::{Cell, OnceCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::Listen;
use haulier::udp::Socket;
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::word;
use haulier_sim::profile::join_limit;
use haulier_sim::{LinkStats, Profile};
use serde_json::{Map, Value, json};

use super::ends::{self, Joined, article, haulier1};
use super::on_every_core;
use crate::args::{CallArgs, JoinArgs, JoinKind};
use crate::relay::Relay;

/// How long a client stays after its join at most, until the link is empty: what is still sent counts.
const LAST_PACKETS: Duration = Duration::from_secs(5);

/// How long nothing may be on the link before it counts as empty: a datagram may be on its way to the link.
const QUIET: Duration = Duration::from_millis(30);

/// One join.
#[derive(Clone, Debug)]
struct Run {
    profile: &'static Profile,
    kind: JoinKind,
    seed: u64,
}

/// What became of one join: how long it took, or why there is no block; and what the server sent.
#[derive(Clone, Debug)]
struct Outcome {
    joined: Result<Joined, String>,
    down: LinkStats,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { joined: Err("not run".into()), down: LinkStats::default() }
    }
}

/// All joins of one kind over one link.
struct Joins {
    profile: &'static Profile,
    kind: JoinKind,
    limit: Duration,
    outcomes: Vec<Outcome>,
}

pub(super) fn run(args: &JoinArgs, report: &Report) -> Result<(), Failure> {
    let data = ends::block(args.bytes)?;
    let (profiles, kinds) = (args.profiles(), args.kinds());
    let cells: Vec<(&'static Profile, JoinKind)> = profiles
        .iter()
        .flat_map(|&profile| kinds.iter().map(move |&kind| (profile, kind)))
        .collect();
    // Seeds in the outer loop: when something else keeps the machine busy, it is not one cell that pays.
    let runs: Vec<Run> = (1..=args.seeds)
        .flat_map(|seed| cells.iter().map(move |&(profile, kind)| Run { profile, kind, seed }))
        .collect();
    let outcomes = on_every_core(&runs, "joins", report, |run| measure(run, &data, args.timeout));
    interrupt::check()?;
    report.finish_bar();
    let cells: Vec<Joins> = cells
        .iter()
        .enumerate()
        .map(|(at, &(profile, kind))| Joins {
            profile,
            kind,
            limit: join_limit(&profile.link(), args.bytes),
            outcomes: outcomes.iter().skip(at).step_by(cells.len()).cloned().collect(),
        })
        .collect();
    table::print(&cells, args, report);
    conclude(&cells, args, report)
}

/// One join with all that belongs to it. A failure is a result.
fn measure(run: &Run, data: &Bytes, timeout: Duration) -> Outcome {
    match try_measure(run, data, timeout) {
        Ok(outcome) => outcome,
        Err(error) => Outcome { joined: Err(error.to_string()), down: LinkStats::default() },
    }
}

fn try_measure(run: &Run, data: &Bytes, timeout: Duration) -> Result<Outcome, Failure> {
    let fail = |error: std::io::Error| Failure::socket("join", &error);
    // Twice, for the link back has the odd number beside it.
    let relay = Relay::start(&run.profile.link(), 2 * run.seed).map_err(fail)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let stop = &AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed);
    let joined = thread::scope(|scope| {
        let server = if run.kind == JoinKind::Article {
            let socket = Socket::bind(local).map_err(fail)?;
            relay.set_receiver(socket.local_addr());
            let fail = |error: std::io::Error| Failure::socket("server", &error);
            scope.spawn(move || article::serve(socket, data, goes_on).map_err(fail))
        } else {
            let listen = Listen::bind(local).map_err(fail)?;
            relay.set_receiver(listen.local_addr());
            let server = haulier1::start(listen, data, CallArgs::default())?;
            scope.spawn(move || haulier1::serve(&server, CallArgs::default(), goes_on))
        };
        let joined = fetch(run.kind, &relay, data, timeout);
        stop.store(true, Ordering::Relaxed);
        let broke_down = || Err(Failure::Io("server: broke down".into()));
        server.join().unwrap_or_else(|_| broke_down()).and(joined)
    });
    Ok(Outcome { joined: joined.map_err(|failure| failure.to_string()), down: relay.stop().back })
}

fn fetch(
    kind: JoinKind,
    relay: &Relay,
    data: &Bytes,
    timeout: Duration,
) -> Result<Joined, Failure> {
    let server = relay.near();
    let joined = OnceCell::new();
    let last_busy = Cell::new(None::<Instant>);
    let lingers = || {
        let now = Instant::now();
        let busy = if relay.is_quiet() { last_busy.get().unwrap_or(now) } else { now };
        last_busy.set(Some(busy));
        let is_over = now - busy > QUIET || now - *joined.get_or_init(|| now) > LAST_PACKETS;
        !is_over && !interrupt::requested()
    };
    let credentials = match kind {
        JoinKind::Article => return article::fetch(server, data, timeout, lingers),
        // Where the server sees the relay.
        JoinKind::Token => haulier1::token(Ipv4Addr::LOCALHOST.into())?,
        JoinKind::Ticket => haulier1::ticket(),
    };
    haulier1::fetch(server, credentials, data, timeout, CallArgs::default(), lingers)
}

fn conclude(cells: &[Joins], args: &JoinArgs, report: &Report) -> Result<(), Failure> {
    let runs: usize = cells.iter().map(|cell| cell.outcomes.len()).sum();
    let failed: usize = cells.iter().map(Joins::failed).sum();
    let mut joins = Map::new();
    for cell in cells {
        let profile = joins.entry(cell.profile.name).or_insert_with(|| json!({}));
        profile[word(&cell.kind)] = table::fields(cell, args.bytes);
    }
    let fields = json!({
        "bytes": args.bytes,
        "seeds": args.seeds,
        "runs": runs,
        "failed": failed,
        "joins": Value::Object(joins),
    });
    let (text, what) = (format!("{runs} joins"), format!("{failed} of {runs} joins failed"));
    report.verdict(failed == 0, fields, &text, &what)
}

impl Joins {
    fn failed(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.joined.is_err()).count()
    }
}
