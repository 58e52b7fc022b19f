//! How much one core sends over loopback: sealed datagrams from a connection to the socket, one by one and
//! in batches.
//!
//! `cargo bench -p haulier-udp --bench line_rate`. The receiver has a thread
//! of its own; what counts is the sending thread's CPU time, so the other may be slower, and the machine may
//! have other work. On loopback the sender's CPU does the receiving kernel's work too, while no interface
//! and no segmentation in software stand in the way; the row "into a plain socket" has the latter.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

/// Only Linux has the clock of a thread, and can be set to send alone or in batches.
#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod bench {
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::{Duration, Instant};

    use haulier_core::{Batch, FourTuple, Instant as Moment, Machine};
    use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
    use haulier_proto::connection::{Block, CloseCode, Event, Suite};
    use haulier_proto::credentials::Secret;
    use haulier_proto::internals::{AeadKey, TrafficSecret};
    use haulier_proto::server::{
        ConnectionId, ServerConfig, ServerCredentials, ServerEvent, ServerMachine,
    };
    use haulier_proto::{AesSupport, Platform};
    use haulier_udp::{Carrier as _, Clock, Runner, RunnerStats, Socket, has_aes, seed};
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

    fn row(name: &str, run: impl FnOnce() -> RunnerStats) {
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

    /// A socket that sends at most `segments` datagrams with one call.
    fn socket(segments: usize) -> Socket {
        let mut socket = Socket::bind(loopback()).unwrap();
        socket.limit_segments(segments);
        socket
    }

    fn platform() -> Platform {
        let aes = if has_aes() { AesSupport::Hardware } else { AesSupport::Software };
        Platform::new(seed().unwrap(), aes)
    }

    type Server = Runner<ServerMachine>;

    /// Runs `serve` with a client that has joined, and reads all there is in a thread of its own.
    fn joined(
        segments: usize,
        mut serve: impl FnMut(&mut Server, ConnectionId) -> bool,
    ) -> RunnerStats {
        let credentials = ServerCredentials::default().with_open_access();
        let (clock, config) = (Clock::start(), ServerConfig::new(7, credentials));
        let machine = ServerMachine::new(clock.now(), 0, config, platform()).unwrap();
        let mut server = Runner::new(machine, socket(segments), clock);
        let to = server.carrier().local_addr();
        let config = ClientConfig::new(to, 7, Credentials::Open);
        let client = thread::spawn(move || client(config));
        let mut id = None;
        while id.is_none() {
            server.turn(Duration::from_millis(1)).unwrap();
            while let Some((at, event)) = server.machine.poll_event(clock.now()) {
                if let ServerEvent::Connecting { .. } = event {
                    id = Some(at);
                }
            }
        }
        let id = id.unwrap();
        while serve(&mut server, id) {
            while server.machine.poll_event(clock.now()).is_some() {}
        }
        let stats = *server.stats();
        server.machine.connection_mut(id).unwrap().close(clock.now(), CloseCode::DONE, "");
        server.transmit().unwrap();
        client.join().unwrap();
        stats
    }

    /// Takes everything until the server is gone.
    fn client(config: ClientConfig) {
        let (clock, socket) = (Clock::start(), Socket::connect(config.server).unwrap());
        let machine = ClientMachine::new(clock.now(), config, platform()).unwrap();
        let mut client = Runner::new(machine, socket, clock);
        loop {
            client.turn(Duration::from_millis(10)).unwrap();
            while let Some(event) = client.machine.poll_event(clock.now()) {
                if let Event::Closed { .. } = event {
                    return;
                }
            }
        }
    }

    /// The machine as it is: blocks, their acks, their pauses.
    fn block(block: &Block, segments: usize) -> RunnerStats {
        let mut begun = false;
        joined(segments, |server, id| {
            let now = server.clock().now();
            let connection = server.machine.connection_mut(id).unwrap();
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
    fn packets(segments: usize) -> RunnerStats {
        joined(segments, |server, id| {
            let connection = server.machine.connection_mut(id).unwrap();
            // Until the queue is full.
            while connection.send_packet(&PACKET[..]).is_ok() {}
            server.round().unwrap();
            server.stats().sent < DATAGRAMS
        })
    }

    /// Seals and sends the `left` datagrams; ignores what it receives.
    struct Sealer {
        key: Option<AeadKey>,
        to: FourTuple,
        left: u64,
    }

    impl Machine for Sealer {
        fn handle_datagram(&mut self, _: Moment, _: FourTuple, _: &mut [u8]) {}

        fn handle_timeout(&mut self, _: Moment) {}

        fn poll_transmit(&mut self, _: Moment, batch: &mut Batch) {
            let Some(key) = &self.key else { return };
            while self.left > 0 && !batch.is_full() {
                batch.compose(|datagram| {
                    let (start, bytes) = (datagram.vec().len(), datagram.vec());
                    bytes.resize(start + 1184, 7);
                    let (head, body) = bytes[start..].split_at_mut(13);
                    let tag = key.seal(self.left, head, body).unwrap();
                    bytes.extend_from_slice(&tag);
                    Some(self.to)
                });
                self.left -= 1;
            }
        }

        fn poll_timeout(&self) -> Option<Moment> {
            (self.left > 0).then_some(Moment::ZERO)
        }
    }

    /// What the seal and the socket leave for a connection to compose in.
    fn sealed(segments: usize, is_plain: bool) -> RunnerStats {
        let stop = Arc::new(AtomicBool::new(false));
        let (to, sink) = sink(is_plain, Arc::clone(&stop));
        let key = TrafficSecret::new(Secret::from_bytes([1; 32])).key(Suite::Aes256Gcm).unwrap();
        let machine = Sealer { key: Some(key), to: to.into(), left: DATAGRAMS };
        let mut sender = Runner::new(machine, socket(segments), Clock::start());
        while sender.stats().sent < DATAGRAMS {
            sender.round().unwrap();
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
        let socket = Socket::bind(loopback()).unwrap();
        let to = socket.local_addr();
        let machine = Sealer { key: None, to: to.into(), left: 0 };
        let mut sink = Runner::new(machine, socket, Clock::start());
        let run = move || {
            while !stop.load(Relaxed) {
                sink.turn(Duration::from_millis(10)).unwrap();
            }
        };
        (to, thread::spawn(run))
    }
}
