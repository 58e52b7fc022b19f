//! The ends of a join over the article's wire. It has no way to ask, so the client sends a chunk of one byte,
//! and the server sends the block, as a run of chunks, in answer: each in a burst, then at 1 Mbit/s.
//!
//! A driver speaks with one remote, so there is one client at a time.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::{ChunkSenderEvent, MAX_CHUNK_BYTES};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent, PeerMachine};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;

use super::{Joined, TURN, took_too_long};

/// What the client says.
const HELLO: &[u8] = b"?";

/// For this time a client that was served does not count as a new one: copies of its hello may be in flight.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Gives the block to one client after the other, while `goes_on`.
pub(in crate::bench) fn serve(
    socket: Socket,
    data: &Bytes,
    goes_on: impl Fn() -> bool,
) -> io::Result<()> {
    let chunks = data.len().div_ceil(MAX_CHUNK_BYTES);
    let mut driver = Runner::new(PeerMachine::new(peer(chunks)), socket, Clock::start());
    let (mut sent, mut served_at, mut strangers) = (0, None, 0);
    while goes_on() {
        driver.turn(TURN)?;
        if driver.machine.peer.pop_chunk().is_some() {
            for start in (0..data.len()).step_by(MAX_CHUNK_BYTES) {
                let chunk = data.slice(start..data.len().min(start + MAX_CHUNK_BYTES));
                driver.machine.peer.send_chunk(chunk).map_err(io::Error::other)?;
            }
        }
        let mut is_gone = false;
        while let Some(event) = driver.machine.peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => sent += 1,
                PeerEvent::Sender(ChunkSenderEvent::Failed { .. }) => is_gone = true,
                _ => {}
            }
        }
        if sent >= chunks && served_at.is_none() {
            (served_at, strangers) = (Some(Instant::now()), driver.machine.strangers());
        }
        let is_next = served_at
            .is_some_and(|at| at.elapsed() > AFTERWARDS || driver.machine.strangers() > strangers);
        if is_gone || is_next {
            driver.machine.replace_peer(peer(chunks));
            (sent, served_at) = (0, None);
        }
    }
    Ok(())
}

/// The article's sender with its usual budget, and a queue for the whole block.
fn peer(chunks: usize) -> ArticlePeer {
    let mut config = ArticleConfig::default();
    config.sender.max_queued = chunks.max(1);
    ArticlePeer::new(config)
}

/// Joins once, and verifies. A client that joined goes on while `lingers`, so that the server gets its acks.
pub(in crate::bench) fn fetch(
    server: SocketAddr,
    expected: &Bytes,
    timeout: Duration,
    lingers: impl Fn() -> bool,
) -> Result<Joined, Failure> {
    let fail = |error: io::Error| Failure::socket("client", &error);
    let digest = blake3::hash(expected);
    let mut hasher = blake3::Hasher::new();
    let started = Instant::now();
    let socket = Socket::connect(server).map_err(fail)?;
    let machine = PeerMachine::connected(peer(1), server);
    let mut driver = Runner::new(machine, socket, Clock::start());
    driver.machine.peer.send_chunk(HELLO).map_err(|error| Failure::Usage(error.to_string()))?;
    let (mut received, mut connect) = (0, None);
    while started.elapsed() < timeout {
        interrupt::check()?;
        driver.turn(TURN).map_err(fail)?;
        while let Some(event) = driver.machine.peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => {
                    connect = Some(started.elapsed());
                }
                PeerEvent::Sender(ChunkSenderEvent::Failed { .. }) => {
                    return Err(Failure::late("nobody answers"));
                }
                _ => {}
            }
        }
        while let Some(chunk) = driver.machine.peer.pop_chunk() {
            hasher.update(&chunk);
            received += chunk.len();
        }
        if received < expected.len() {
            continue;
        }
        let is_right = hasher.finalize() == digest;
        let total = started.elapsed();
        if !is_right {
            return Err(Failure::Verification("this is another block".into()));
        }
        // A turn of its own for the last ack, which the server waits for.
        driver.turn(Duration::ZERO).map_err(fail)?;
        while lingers() {
            driver.turn(TURN).map_err(fail)?;
        }
        return Ok(Joined { connect: connect.unwrap_or(total), total });
    }
    Err(took_too_long(timeout))
}
