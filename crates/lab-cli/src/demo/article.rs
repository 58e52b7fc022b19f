//! The demo over the article wire: a bare run of chunks, so that 256 KiB are exactly the article's one chunk
//! of 256 slices, of which there is a map.
//!
//! Three threads: the relay that is the link, the receiver, and here the sender with the screen.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use bytes::Bytes;
use haulier::file::Digest;
use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::{
    ChunkReceiverStats, ChunkSenderEvent, MAX_CHUNK_BYTES, SLICE_BYTES, SendFailure,
};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent, PeerMachine};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::{Pace, Report};
use haulier_shell::units::{in_millis, show_bytes};
use haulier_sim::LinkConfig;
use haulier_sim::profile::physical_limit;
use serde_json::json;

use super::relay::{LinkCounts, Relay};
use super::{LAST_ACKS, TURN, budget, bursts, map};
use crate::args::DemoArgs;

pub(super) fn run(
    args: &DemoArgs,
    link: &LinkConfig,
    data: &Bytes,
    report: &Report,
) -> Result<(), Failure> {
    let relay = Relay::start(link, args.seed).map_err(|e| Failure::socket("relay", &e))?;
    let stop = Arc::new(AtomicBool::new(false));
    let receiver = spawn_receiver(&relay, data.len(), args, &stop)?;
    let started = Instant::now();
    let sent = send(args, link, &relay, data, &receiver, report);
    stop.store(true, Ordering::Relaxed);
    let received = receiver.join().unwrap_or_else(|_| Err("the receiver broke down".into()));
    let counts = relay.stop();
    report.finish_bar();
    let driver = sent?;
    let received = received.map_err(Failure::late)?;
    conclude(data, link, started, &driver, &received, &counts, report)
}

/// What the receiving thread found.
struct Got {
    digest: Digest,
    bytes: u64,
    at: Instant,
    stats: ChunkReceiverStats,
}

/// The receiving end, in a thread of its own. It ends some time after the last byte, when asked to.
fn spawn_receiver(
    relay: &Relay,
    bytes: usize,
    args: &DemoArgs,
    stop: &Arc<AtomicBool>,
) -> Result<JoinHandle<Result<Got, String>>, Failure> {
    let fail = |error: std::io::Error| Failure::socket("receiver", &error);
    let mut config = ArticleConfig::default();
    config.receiver.abandon_after = Some(args.timeout);
    let socket = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(fail)?;
    let machine = PeerMachine::new(ArticlePeer::new(config));
    let mut driver = Runner::new(machine, socket, Clock::start());
    relay.set_receiver(driver.carrier().local_addr());
    let stop = Arc::clone(stop);
    Ok(thread::spawn(move || {
        let mut hasher = blake3::Hasher::new();
        let (mut received, mut finished) = (0, None);
        while !stop.load(Ordering::Relaxed) {
            driver.turn(TURN).map_err(|error| error.to_string())?;
            while let Some(chunk) = driver.machine.peer.pop_chunk() {
                hasher.update(&chunk);
                received += chunk.len();
                if received >= bytes {
                    finished = Some((hasher.finalize(), Instant::now()));
                }
            }
        }
        let stats = *driver.machine.peer.receiver().stats();
        match finished {
            Some((digest, at)) => Ok(Got { digest, bytes: received as u64, at, stats }),
            None => Err("the receiver did not get everything".into()),
        }
    }))
}

/// The sending end: everything as a run of chunks, until the last is acked.
fn send(
    args: &DemoArgs,
    link: &LinkConfig,
    relay: &Relay,
    data: &Bytes,
    receiver: &JoinHandle<Result<Got, String>>,
    report: &Report,
) -> Result<Runner<PeerMachine>, Failure> {
    let fail = |error: std::io::Error| Failure::socket("sender", &error);
    let mut config = ArticleConfig::default();
    config.sender.rate_bps = budget(args, link, data.len());
    config.sender.burst = bursts(args, data.len());
    config.sender.give_up_after = Some(args.timeout);
    let chunks = data.len().div_ceil(MAX_CHUNK_BYTES);
    config.sender.max_queued = chunks;
    let socket = Socket::connect(relay.near()).map_err(fail)?;
    if let Some(warning) = socket.buffers().warning() {
        report.warning(&warning);
    }
    let machine = PeerMachine::connected(ArticlePeer::new(config), relay.near());
    let mut driver = Runner::new(machine, socket, Clock::start());
    for start in (0..data.len()).step_by(MAX_CHUNK_BYTES) {
        let chunk = data.slice(start..data.len().min(start + MAX_CHUNK_BYTES));
        driver.machine.peer.send_chunk(chunk).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let mut sent = 0;
    while sent < chunks {
        interrupt::check()?;
        if receiver.is_finished() {
            return Err(Failure::Internal("the receiver broke down".into()));
        }
        driver.turn(TURN).map_err(fail)?;
        while let Some(event) = driver.machine.peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => sent += 1,
                PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. }) => {
                    return Err(gave_up(args, reason));
                }
                _ => {}
            }
        }
        show(&driver, sent, chunks, data.len(), report);
    }
    linger(&mut driver, relay);
    Ok(driver)
}

/// Lets the link empty itself, so that its counts are those of the whole transfer.
fn linger(driver: &mut Runner<PeerMachine>, relay: &Relay) {
    let started = Instant::now();
    while !relay.is_quiet() && started.elapsed() < LAST_ACKS && !interrupt::requested() {
        if driver.turn(TURN).is_err() {
            return;
        }
    }
}

fn show(driver: &Runner<PeerMachine>, sent: usize, chunks: usize, bytes: usize, report: &Report) {
    let current = driver.machine.peer.sender().progress();
    let slices = current.map_or(0, |progress| (progress.acked * SLICE_BYTES).min(progress.bytes));
    let done = (sent * MAX_CHUNK_BYTES + slices).min(bytes);
    report.progress(done as u64, Some(bytes as u64), || Pace {
        above: map::draw(driver.machine.peer.sender(), sent, chunks),
        ..Pace::default()
    });
}

fn gave_up(args: &DemoArgs, reason: SendFailure) -> Failure {
    let timeout = args.timeout.as_secs_f64();
    Failure::late(match reason {
        SendFailure::NoProgress => {
            format!(
                "nothing got through for {timeout} s: the link is too bad for this budget, or --timeout"
            )
        }
        other => format!("the transfer ended: {other:?}"),
    })
}

fn conclude(
    data: &Bytes,
    link: &LinkConfig,
    started: Instant,
    driver: &Runner<PeerMachine>,
    received: &Got,
    counts: &LinkCounts,
    report: &Report,
) -> Result<(), Failure> {
    if received.digest != blake3::hash(data) {
        let what = "the receiver has other bytes than were sent: their BLAKE3 differ";
        return Err(Failure::Verification(what.into()));
    }
    let total = received.at - started;
    let limit = physical_limit(link, data.len() as u64);
    let ratio = total.as_secs_f64() / limit.as_secs_f64();
    let stats = driver.machine.peer.sender().stats();
    let wire_bytes = counts.there.offered_bytes + counts.back.offered_bytes;
    let fields = json!({
        "ok": true,
        "bytes": received.bytes,
        "blake3": received.digest.to_hex().as_str(),
        "total_ms": in_millis(total),
        "limit_ms": in_millis(limit),
        "ratio": (ratio * 1e3).round() / 1e3,
        "slices_sent": stats.slices_sent,
        "slices_resent": stats.slices_resent,
        "acks_sent": received.stats.acks_sent,
        "wire_bytes": wire_bytes,
        "lost": counts.there.lost + counts.back.lost,
        "queue_full": counts.there.queue_full + counts.back.queue_full,
    });
    let text = format!(
        "delivered and verified in {:.0} ms\n\
         the physical limit of this link is {:.0} ms: {ratio:.2} x\n\
         {} slices were sent, {} of them again, and {} acks\n\
         {} datagrams were lost on the way, {} at the full queue\n\
         {} crossed the link, both ways, headers included\nblake3 {}",
        in_millis(total),
        in_millis(limit),
        stats.slices_sent,
        stats.slices_resent,
        received.stats.acks_sent,
        counts.there.lost + counts.back.lost,
        counts.there.queue_full + counts.back.queue_full,
        show_bytes(wire_bytes),
        received.digest.to_hex(),
    );
    report.done(fields, &text);
    Ok(())
}
