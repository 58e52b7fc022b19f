//! The demo over haulier/1: a player with a connect token joins a server, and gets the world.
//!
//! Three threads, besides those of the library: the relay that is the link, the server's application, and
//! here the client's with the screen. The token
//! holds the client's address, as a matchmaker knows it, so the world begins with the first response.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::{
    Block, Client, CloseCode, CloseReason, Connect, ConnectToken, ConnectionConfig,
    ConnectionStats, Credentials, Event, Server, ServerConfig, ServerCredentials, TokenClaims,
    TokenKey, TokenServers, WireBytes,
};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::look::{Look, Title};
use haulier_shell::report::{Pace, Report};
use haulier_shell::units::{in_millis, show_bytes};
use haulier_sim::LinkConfig;
use haulier_sim::profile::join_limit;
use serde_json::json;

use super::relay::{LinkCounts, Relay};
use super::{LAST_ACKS, TURN, map};
use crate::args::DemoArgs;
use crate::tokens::{new_secret, new_token};

/// What shows it beside others: a program that has the demonstration alone was run from a clone.
const COMPARED: &str = if cfg!(feature = "measure") {
    "haulier-lab demo --slow"
} else {
    "cargo run --release -- demo --slow"
};

/// "hauldemo".
const PROTOCOL_ID: u64 = 0x6861_756c_6465_6d6f;

/// The shortest silence that ends a connection, by the wire.
const MIN_IDLE: Duration = Duration::from_secs(1);

pub(super) fn run(
    args: &DemoArgs,
    link: &LinkConfig,
    data: &Bytes,
    report: &Report,
) -> Result<(), Failure> {
    let relay = Relay::start(link, args.seed).map_err(|e| Failure::socket("relay", &e))?;
    let stop = Arc::new(AtomicBool::new(false));
    let key = TokenKey { id: 1, key: new_secret()? };
    let token = token(&key)?;
    let world = Block::new(0, data.clone());
    let (served, server) = spawn_server(&relay, key, &world, config(args, data.len()), &stop)?;
    let look = Look::start(
        &args.look,
        served.clone(),
        Title { text: args.link.name, stays: true },
        report,
    )?;
    let joined = join(args, &relay, token, &world, &served, report);
    if joined.is_ok() {
        look.wait();
    }
    drop(look);
    stop.store(true, Ordering::Relaxed);
    let served = server.join().unwrap_or_else(|_| Err("the server broke down".into()));
    let counts = relay.stop();
    report.finish_bar();
    let joined = joined?;
    let served = served.map_err(Failure::Io)?;
    conclude(link, data.len(), &joined, &served, &counts, report)
}

/// What a matchmaker would hand to the player, whose server is started after that.
fn token(key: &TokenKey) -> Result<ConnectToken, Failure> {
    let claims = TokenClaims::new(u64::MAX - 1, u64::MAX, TokenServers::Every)
        .with_client_address(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
    new_token(key, PROTOCOL_ID, &claims)
}

/// Both ends.
fn config(args: &DemoArgs, bytes: usize) -> ConnectionConfig {
    ConnectionConfig::default()
        .with_max_rate_bps(args.budget.unwrap_or(u64::MAX))
        .with_handshake_timeout(args.timeout)
        .with_idle_timeout(args.timeout.max(MIN_IDLE))
        .with_no_progress_timeout(args.timeout)
        .with_max_block_bytes(bytes as u64)
}

/// The server, in a thread of its own. It ends when asked to, and returns what it sent to its client.
fn spawn_server(
    relay: &Relay,
    key: TokenKey,
    world: &Block,
    connection: ConnectionConfig,
    stop: &Arc<AtomicBool>,
) -> Result<(Server, JoinHandle<Result<ConnectionStats, String>>), Failure> {
    let credentials = ServerCredentials::default().with_token_key(key);
    let config = ServerConfig::new(PROTOCOL_ID, credentials)
        .with_first_block(Some(world.clone()))
        .with_connection(connection);
    let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config)?;
    relay.set_receiver(server.local_addr());
    let (stop, looked_at) = (Arc::clone(stop), server.clone());
    let served = thread::spawn(move || {
        let mut stats = ConnectionStats::default();
        while !stop.load(Ordering::Relaxed) {
            let event = server.wait(TURN).map_err(|error| error.to_string())?;
            let Some((id, _)) = event else { continue };
            stats = server.connection_stats(id).unwrap_or(stats);
        }
        Ok(stats)
    });
    Ok((looked_at, served))
}

/// What the player saw.
struct Joined {
    connect: Duration,
    total: Duration,
    rtt: Duration,
    wire: WireBytes,
    data: Bytes,
}

/// The client: asks, and waits for the world.
fn join(
    args: &DemoArgs,
    relay: &Relay,
    token: ConnectToken,
    world: &Block,
    server: &Server,
    report: &Report,
) -> Result<Joined, Failure> {
    let mut connect = Connect::new(relay.near(), PROTOCOL_ID, Credentials::Token(token));
    connect.connection = config(args, world.data().len());
    let started = Instant::now();
    let client = Client::connect(connect).map_err(|error| Failure::Io(error.to_string()))?;
    if let Some(warning) = client.buffer_warning() {
        report.warning(&warning);
    }
    let mut connect = Duration::ZERO;
    loop {
        interrupt::check()?;
        match client.wait(TURN)? {
            Some(Event::Connected) => connect = started.elapsed(),
            Some(Event::Block { data, .. }) => {
                let total = started.elapsed();
                leave(&client, relay);
                let rtt = client.stats().and_then(|stats| stats.rtt).unwrap_or_default();
                let wire = client.wire_bytes();
                return Ok(Joined { connect, total, rtt, wire, data });
            }
            Some(Event::Closed(reason)) => return Err(gave_up(args, &reason)),
            _ => {}
        }
        let done = client.receiving().map_or(0, |progress| progress.done);
        report.progress(done, Some(world.data().len() as u64), || Pace {
            above: sending_map(server),
            ..Pace::default()
        });
    }
}

/// What the server knows of the world's slices; nothing before it sends and after all is there.
fn sending_map(server: &Server) -> String {
    let id = server.connections().first().copied();
    let map = id.and_then(|id| server.with_connection(id, |it| it.sending_map(1))).flatten();
    map.as_ref().map_or_else(String::new, map::draw_sending)
}

/// Closes, and lets the link empty itself, so that its counts are those of all of it.
fn leave(client: &Client, relay: &Relay) {
    client.close(CloseCode::DONE, "");
    let started = Instant::now();
    let is_over = || client.is_closed() && relay.is_quiet();
    while !is_over() && started.elapsed() < LAST_ACKS && !interrupt::requested() {
        thread::sleep(TURN);
    }
}

fn gave_up(args: &DemoArgs, reason: &CloseReason) -> Failure {
    let timeout = args.timeout.as_secs_f64();
    let no_progress = CloseCode::NO_PROGRESS;
    let text = match reason {
        CloseReason::TimedOut | CloseReason::NoAnswer => format!(
            "nothing got through for {timeout} s: the link is too bad for this budget, or --timeout"
        ),
        CloseReason::There { code, .. } | CloseReason::Here(code) if *code == no_progress => {
            format!(
                "nothing got through for {timeout} s: the link is too bad for this budget, or \
                 --timeout"
            )
        }
        other => format!("the transfer ended: {other}"),
    };
    Failure::peer(reason.kind(), text)
}

fn conclude(
    link: &LinkConfig,
    bytes: usize,
    joined: &Joined,
    served: &ConnectionStats,
    counts: &LinkCounts,
    report: &Report,
) -> Result<(), Failure> {
    // The connection has compared its BLAKE3 with the one announced.
    let digest = blake3::hash(&joined.data);
    let limit = join_limit(link, bytes as u64);
    let ratio = joined.total.as_secs_f64() / limit.as_secs_f64();
    let wire_bytes = counts.there.offered_bytes + counts.back.offered_bytes;
    let (lost, full) =
        (counts.there.lost + counts.back.lost, counts.there.queue_full + counts.back.queue_full);
    let fields = json!({
        "ok": true,
        "bytes": joined.data.len(),
        "blake3": digest.to_hex().as_str(),
        "connect_ms": in_millis(joined.connect),
        "total_ms": in_millis(joined.total),
        "limit_ms": in_millis(limit),
        "ratio": (ratio * 1e3).round() / 1e3,
        "rtt_ms": in_millis(joined.rtt),
        "slices_sent": served.slices_sent,
        "repair_slices_sent": served.repair_slices_sent,
        "slices_resent": served.slices_resent,
        "black_holes": served.black_holes,
        "wire_bytes": wire_bytes,
        "wire_bytes_in": joined.wire.received,
        "wire_bytes_out": joined.wire.sent,
        "lost": lost,
        "queue_full": full,
    });
    let text = format!(
        "joined after {:.0} ms, delivered and verified in {:.0} ms\n\
         the physical limit of this link is {:.0} ms, with the time of the request: {ratio:.2} x\n\
         {} slices were sent, {} of them repair slices and {} again\n\
         {lost} datagrams were lost on the way, {full} at the full queue\n\
         {} crossed the link, both ways, headers included\nblake3 {}\n\
         beside two other senders, in slow motion: {COMPARED}",
        in_millis(joined.connect),
        in_millis(joined.total),
        in_millis(limit),
        served.slices_sent,
        served.repair_slices_sent,
        served.slices_resent,
        show_bytes(wire_bytes),
        digest.to_hex(),
    );
    report.done(fields, &text);
    Ok(())
}
