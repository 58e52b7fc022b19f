//! Speaks only the bare article wire: the slices and acks of one chunk, with no name, size or hash in
//! front. For interoperation with the 2016 original built with 256 slices a chunk, or with anything else
//! that follows STANDARD §1 to §7.
//!
//!     cargo run --example article_peer -- recv 127.0.0.1:4016 world.bin
//!     cargo run --example article_peer -- send 127.0.0.1:4016 world.bin
//!
//! A file of 1 byte to 256 KiB. Options behind these: `--protocol-id ID` (default 0x11223344, the
//! original's), `--rate BITS` per second (default 1000000), `--no-burst`, `--chunk-id N` (default 0).
//! A sender gives up after 15 s without progress; a receiver waits without end and overwrites FILE.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::{ChunkId, ChunkSenderEvent};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent, PeerMachine, ProtocolId};

const USAGE: &str = "usage: article_peer send|recv ADDR FILE [--protocol-id ID] [--rate BITS] \
                     [--no-burst] [--chunk-id N]";

/// How long a receiver stays to ack late slices. Its completing ack may be lost, and a sender that never
/// hears another would hang (the third hang of the article).
const LINGER: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("article_peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, addr, file, options @ ..] = &args[..] else { return Err(USAGE.into()) };
    let addr: SocketAddr = addr.parse().map_err(|_| format!("{addr} is no address\n{USAGE}"))?;
    let peer = ArticlePeer::new(config(options)?);
    match mode.as_str() {
        "send" => send(runner(PeerMachine::connected(peer, addr), Socket::connect(addr)?), file),
        "recv" => receive(runner(PeerMachine::new(peer), Socket::bind(addr)?), file),
        _ => Err(USAGE.into()),
    }
}

type End = Runner<PeerMachine>;

fn runner(machine: PeerMachine, socket: Socket) -> End {
    Runner::new(machine, socket, Clock::start())
}

fn send(mut end: End, file: &str) -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let started = Instant::now();
    end.machine.peer.send_chunk(bytes)?;
    loop {
        end.turn(Duration::from_millis(20))?;
        match end.machine.peer.poll_event() {
            Some(PeerEvent::Sender(ChunkSenderEvent::Sent { .. })) => break,
            Some(PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. })) => {
                return Err(format!("not delivered: {reason:?}").into());
            }
            _ => {}
        }
    }
    let stats = end.machine.peer.sender().stats();
    println!(
        "sent in {:?}: {} slices, {} again",
        started.elapsed(),
        stats.slices_sent,
        stats.slices_resent
    );
    Ok(())
}

fn receive(mut end: End, file: &str) -> Result<(), Box<dyn Error>> {
    println!("listening on {}", end.carrier().local_addr());
    let chunk = loop {
        end.turn(Duration::from_millis(20))?;
        if let Some(chunk) = end.machine.peer.pop_chunk() {
            break chunk;
        }
    };
    std::fs::write(file, &chunk).map_err(|error| format!("{file}: {error}"))?;
    let from = end.machine.remote().map_or(String::new(), |remote| format!(" from {remote}"));
    println!("received {} bytes{from}", chunk.len());
    let mut quiet_since = Instant::now();
    let mut heard = end.stats().received;
    while quiet_since.elapsed() < LINGER {
        end.turn(Duration::from_millis(20))?;
        if end.stats().received != heard {
            heard = end.stats().received;
            quiet_since = Instant::now();
        }
    }
    Ok(())
}

fn config(options: &[String]) -> Result<ArticleConfig, Box<dyn Error>> {
    let mut config = ArticleConfig::default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut number = || -> Result<u64, Box<dyn Error>> {
            let text = options.next().ok_or_else(|| format!("{option} needs a number"))?;
            let parsed = match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => text.parse(),
            };
            parsed.map_err(|_| format!("{option}: {text} is no number").into())
        };
        match option.as_str() {
            "--protocol-id" => config.protocol_id = ProtocolId(u32::try_from(number()?)?),
            "--rate" => config.sender.rate_bps = number()?,
            "--no-burst" => config.sender.burst = false,
            "--chunk-id" => {
                let id = ChunkId::new(u16::try_from(number()?)?);
                (config.sender.first_chunk_id, config.receiver.first_chunk_id) = (id, id);
            }
            other => return Err(format!("unknown option {other}\n{USAGE}").into()),
        }
    }
    Ok(config)
}
