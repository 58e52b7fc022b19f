//! What a trace costs: a block from a server to a client in memory, with the trace off, at each level, and
//! with each sink.
//!
//! `cargo bench -p haulier --features qlog,tracing --bench trace`. The time is that of both ends, with all of
//! their cryptography; a cell is the median of runs that take turns, as a ratio to the trace off, so that a
//! busy machine slows all alike. `-- --once` runs the first cell once, for `valgrind --tool=callgrind`.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

use std::hint::black_box;
use std::io::sink;
use std::net::SocketAddr;
use std::time::{Duration, Instant as StdInstant};

use haulier::proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier::proto::server::{ServerConfig, ServerCredentials, ServerEvent, ServerMachine};
use haulier::proto::{Machine as _, Platform};
use haulier::trace::{Qlog, Spans, TraceLevel, TraceSink, Traced, VantagePoint};
use haulier::{Block, ConnectionConfig, ConnectionId, Event};
use haulier_core::Instant;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

const BYTES: usize = 8 << 20;
const RUNS: usize = 15;

/// Takes events and drops them.
struct Nowhere;

impl TraceSink for Nowhere {
    fn write(&mut self, of: Option<ConnectionId>, traced: &Traced) {
        black_box((of, traced));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum To {
    Nowhere,
    Qlog,
    Spans(Option<tracing::Level>),
}

const CELLS: [(&str, TraceLevel, To); 8] = [
    ("off", TraceLevel::Off, To::Nowhere),
    ("life, dropped", TraceLevel::Life, To::Nowhere),
    ("path, dropped", TraceLevel::Path, To::Nowhere),
    ("datagrams, dropped", TraceLevel::Datagrams, To::Nowhere),
    ("qlog", TraceLevel::Datagrams, To::Qlog),
    ("tracing, no subscriber", TraceLevel::Off, To::Spans(None)),
    ("tracing, info", TraceLevel::Life, To::Spans(Some(tracing::Level::INFO))),
    ("tracing, trace", TraceLevel::Datagrams, To::Spans(Some(tracing::Level::TRACE))),
];

fn main() {
    let world = Block::new(1, vec![7; BYTES]);
    if std::env::args().any(|arg| arg == "--once") {
        println!("{} datagrams", run(&world, CELLS[0].1, CELLS[0].2).1);
        return;
    }
    let mut times = [const { Vec::new() }; CELLS.len()];
    let mut datagrams = 0;
    for _ in 0..RUNS {
        for ((_, level, to), times) in CELLS.into_iter().zip(&mut times) {
            let (time, count) = run(&world, level, to);
            times.push(time);
            datagrams = count;
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times[RUNS / 2]
    });
    println!("{datagrams} datagrams, {:.1} ms with the trace off", medians[0].as_secs_f64() * 1e3);
    for ((name, ..), median) in CELLS.into_iter().zip(medians) {
        println!("{name:24} {:.3}", median.as_secs_f64() / medians[0].as_secs_f64());
    }
}

fn run(world: &Block, level: TraceLevel, to: To) -> (Duration, u64) {
    match to {
        To::Spans(Some(most)) => {
            let filter = tracing_subscriber::filter::Targets::new().with_default(most);
            let lines = tracing_subscriber::fmt::layer().with_writer(sink).with_filter(filter);
            let subscriber = tracing_subscriber::registry().with(lines);
            tracing::subscriber::with_default(subscriber, || join(world, level, to))
        }
        _ => join(world, level, to),
    }
}

/// The time for the block, and the datagrams that crossed.
fn join(world: &Block, level: TraceLevel, to: To) -> (Duration, u64) {
    let sinks = || -> Box<dyn TraceSink> {
        match to {
            To::Nowhere => Box::new(Nowhere),
            To::Qlog => Box::new(Qlog::new(sink(), VantagePoint::Server).unwrap()),
            To::Spans(_) => Box::new(Spans::new()),
        }
    };
    let (mut up, mut down) = (sinks(), sinks());
    let (at, home): (SocketAddr, SocketAddr) =
        ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
    let config = ConnectionConfig::default().with_trace(level);
    let secret = haulier::Secret::from_bytes([7; 32]);
    let credentials = ServerCredentials::default().with_secret(secret.clone());
    let server_config = ServerConfig::new(7, credentials).with_connection(config);
    let aes = haulier::proto::AesSupport::Hardware;
    let mut now = Instant::ZERO;
    let mut server =
        ServerMachine::new(now, 0, server_config, Platform::new([1; 32], aes)).unwrap();
    let credentials = Credentials::Secret { secret, identity: None };
    let client_config = ClientConfig::new(at, 7, credentials).with_connection(config);
    let mut client = ClientMachine::new(now, client_config, Platform::new([2; 32], aes)).unwrap();
    let (mut buffer, mut datagrams, mut is_here) = (Vec::with_capacity(2_000), 0, false);
    let begun = StdInstant::now();
    while !is_here {
        now = now + Duration::from_micros(500);
        server.handle_timeout(now);
        client.handle_timeout(now);
        while client.poll_datagram(now, &mut buffer).is_some() {
            let _counted = server.handle_datagram(now, home, &mut buffer);
            datagrams += 1;
        }
        while let Some((id, event)) = server.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                server.connection_mut(id).unwrap().send_block(now, world).unwrap();
            }
        }
        while server.poll_datagram(now, &mut buffer).is_some() {
            let _counted = client.handle_datagram(now, at, &mut buffer);
            datagrams += 1;
        }
        while let Some(event) = client.poll_event(now) {
            is_here |= matches!(event, Event::Block { .. });
        }
        while let Some(traced) = client.poll_trace() {
            down.write(None, &traced);
        }
        while let Some((id, traced)) = server.poll_trace() {
            up.write(Some(id), &traced);
        }
    }
    (begun.elapsed(), datagrams)
}
