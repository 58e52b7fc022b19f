//! How much one core sends over loopback: sealed datagrams from a connection to the socket, one by one and
//! in batches.
//!
//! `cargo bench -p haulier-udp --features haulier-proto/aws-lc --bench line_rate`. The receiver has a thread
//! of its own; what counts is the sending thread's CPU time, so the other may be slower, and the machine may
//! have other work. On loopback the sender's CPU does the receiving kernel's work too, while no interface
//! and no segmentation in software stand in the way; the row "into a plain socket" has the latter.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

/// Only Linux has the clock of a thread, and can be told to send alone or in batches.
#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod bench {
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::{Duration, Instant};

    use haulier_proto::client::{ClientConfig, Credentials};
    use haulier_proto::connection::{Block, CloseCode, ConnectionConfig, Event};
    use haulier_proto::crypto::{Secret, Suite, TrafficSecret};
    use haulier_proto::server::{ConnectionId, ServerConfig, ServerCredentials, ServerEvent};
    use haulier_udp::{
        ClientDriver, Clock, Inbox, Outbox, Received, ServerDriver, Socket, SocketStats, has_aes,
    };
    use rustix::time::{ClockId, clock_gettime};

    /// What the block has: long enough for thousands of batches, and below the default limit of 64 MiB.
    const BLOCK_BYTES: usize = 48 << 20;

    /// Datagrams of each other run: 1.2 GB.
    const DATAGRAMS: u64 = 1_000_000;

    /// Two do not fit one datagram.
    static PACKET: [u8; 1024] = [7; 1024];

    pub(super) fn main() {
        println!("AES-256-GCM of the machine: {}", has_aes());
        println!(
            "{:<42} {:>9} {:>9} {:>9} {:>9}",
            "", "Gbit/s of", "Gbit/s", "CPU ns a", "datagrams"
        );
        println!("{:<42} {:>9} {:>9} {:>9} {:>9}", "", "CPU time", "", "datagram", "a batch");
        // Its hash is no work of the sender's.
        let world = Block::new(1, vec![7; BLOCK_BYTES]);
        for (name, segments) in [("one by one", 1), ("in batches", usize::MAX)] {
            row(&format!("a block of 48 MiB, {name}"), || block(&world, segments));
            row(&format!("packets of 1 KiB, {name}"), || packets(segments));
            row(&format!("sealed 1200 bytes, {name}"), || sealed(segments, false));
            row(&format!("  into a plain socket, {name}"), || sealed(segments, true));
        }
    }

    fn row(name: &str, run: impl FnOnce() -> SocketStats) {
        let (wall, cpu) = (Instant::now(), cpu());
        let stats = run();
        let (wall, cpu) = (wall.elapsed(), self::cpu() - cpu);
        let gbit = |time: Duration| stats.sent_bytes as f64 * 8e-9 / time.as_secs_f64();
        let each = cpu.as_nanos() as f64 / stats.sent as f64;
        let batch = stats.sent as f64 / stats.batches.max(1) as f64;
        let batch = if stats.batches == 0 { 1.0 } else { batch };
        println!("{name:<42} {:>9.2} {:>9.2} {each:>9.0} {batch:>9.1}", gbit(cpu), gbit(wall));
    }

    /// What the calling thread has used of its core.
    fn cpu() -> Duration {
        clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
    }

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    /// A socket that sends so many with one call.
    fn socket(segments: usize) -> Socket {
        let mut socket = Socket::bind(loopback()).unwrap();
        socket.limit_segments(segments);
        socket
    }

    /// Runs `serve` with a client that has joined, and reads all there is in a thread of its own.
    fn joined(
        segments: usize,
        mut serve: impl FnMut(&mut ServerDriver, ConnectionId) -> bool,
    ) -> SocketStats {
        let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
        let connection = ConnectionConfig { ..ConnectionConfig::default() };
        let config = ServerConfig { connection, ..ServerConfig::new(7, credentials) };
        let mut server = ServerDriver::with_socket(socket(segments), config).unwrap();
        let config = ClientConfig::new(server.local_addr().unwrap(), 7, Credentials::Open);
        let client = thread::spawn(move || client(config));
        let mut id = None;
        while id.is_none() {
            server.turn(Duration::from_millis(1)).unwrap();
            while let Some((at, event)) = server.server.poll_event(server.clock().now()) {
                if let ServerEvent::Connecting { .. } = event {
                    id = Some(at);
                }
            }
        }
        let id = id.unwrap();
        while serve(&mut server, id) {
            while server.server.poll_event(server.clock().now()).is_some() {}
        }
        let stats = *server.socket().stats();
        server.server.connection_mut(id).unwrap().close(
            haulier_proto::Instant::ZERO,
            CloseCode::DONE,
            "",
        );
        server.flush().unwrap();
        client.join().unwrap();
        stats
    }

    /// Takes everything until the server is gone.
    fn client(config: ClientConfig) {
        let mut client = ClientDriver::connect(config).unwrap();
        loop {
            client.turn(Duration::from_millis(10)).unwrap();
            while let Some(event) = client.client.poll_event(client.clock().now()) {
                if let Event::Closed { .. } = event {
                    return;
                }
            }
        }
    }

    /// The machine as it is: blocks, their acks, their pauses.
    fn block(block: &Block, segments: usize) -> SocketStats {
        let mut begun = false;
        joined(segments, |server, id| {
            let now = server.clock().now();
            let connection = server.server.connection_mut(id).unwrap();
            if !begun {
                connection.send_block(now, block).unwrap();
                begun = true;
            }
            let done = connection.sending().is_none() && connection.all_acked();
            server.turn(Duration::from_millis(1)).unwrap();
            !done
        })
    }

    /// What a connection composes, seals and sends if nothing holds it back.
    fn packets(segments: usize) -> SocketStats {
        joined(segments, |server, id| {
            let connection = server.server.connection_mut(id).unwrap();
            // Until the queue is full.
            while connection.send_packet(&PACKET[..]).is_ok() {}
            server.round().unwrap();
            server.socket().stats().sent < DATAGRAMS
        })
    }

    /// What the seal and the socket leave for a connection to compose in.
    fn sealed(segments: usize, is_plain: bool) -> SocketStats {
        let mut sender = socket(segments);
        let stop = Arc::new(AtomicBool::new(false));
        let (to, sink) = sink(is_plain, Arc::clone(&stop));
        let key = TrafficSecret::new(Secret::from_bytes([1; 32])).key(Suite::Aes256Gcm).unwrap();
        let (mut outbox, mut number) = (Outbox::new(), 0);
        while number < DATAGRAMS {
            let begun = number;
            let poll = |datagram: &mut Vec<u8>| {
                datagram.clear();
                datagram.resize(1184, 7);
                let (head, body) = datagram.split_at_mut(13);
                let tag = key.seal(number, head, body).unwrap();
                datagram.extend_from_slice(&tag);
                number += 1;
                (number <= begun + 1024).then_some(to)
            };
            sender.transmit(&mut outbox, 1024, poll).unwrap();
        }
        stop.store(true, Relaxed);
        sink.join().unwrap();
        *sender.stats()
    }

    /// A thread that reads and forgets: through a socket that joins datagrams, or one that does not.
    fn sink(is_plain: bool, stop: Arc<AtomicBool>) -> (SocketAddr, thread::JoinHandle<()>) {
        if is_plain {
            let socket = UdpSocket::bind(loopback()).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            let to = socket.local_addr().unwrap();
            let run = move || {
                while !stop.load(Relaxed) {
                    let _read = socket.recv(&mut [0; 2048]);
                }
            };
            return (to, thread::spawn(run));
        }
        let mut socket = Socket::bind(loopback()).unwrap();
        let to = socket.local_addr().unwrap();
        let run = move || {
            let (clock, mut inbox) = (Clock::start(), Inbox::new());
            while !stop.load(Relaxed) {
                if socket.receive(&mut inbox).unwrap() == Received::Nothing {
                    socket.wait(Duration::from_millis(10)).unwrap();
                }
                inbox.drain(&clock, |_, _, _| {});
            }
        };
        (to, thread::spawn(run))
    }
}
