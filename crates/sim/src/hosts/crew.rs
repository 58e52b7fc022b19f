//! A server of several workers, in one thread: the steering between them, in any interleaving.
//!
//! Each worker has a socket, and runs a round when its thread would have woken up. A seed decides how late
//! that is, how many of the waiting datagrams it takes, in which order with the others it runs, and whether
//! it reports to the desk at the end or in a later round. Whatever happens between two calls of a worker in a
//! real server (it has another thread's answer from the desk, and not its stray) happens here between two
//! rounds, because a worker asks the desk once in a call, and reports the rest in its report.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use haulier_core::time::earliest;
use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::connection::{Block, Event};
use haulier_proto::server::{
    ConnectionId, Desk, Handled, ServerConfig, ServerEvent, ServerStats, Stray, Strays, Worker,
};

use super::UNIX_TIME;
use crate::{Host, Rng};

/// The maximum delay with which a thread of a worker wakes up.
const MAX_LATE: Duration = Duration::from_millis(1);

/// Datagrams that a round takes at most.
const MAX_TAKEN: u64 = 8;

/// One worker, and what its thread has.
struct Seat {
    worker: Worker,
    socket: VecDeque<(FourTuple, Ecn, Vec<u8>)>,
    strays: Strays,
    /// When its thread runs, if it was woken.
    wakes_at: Option<Instant>,
    /// It has not yet reported to the desk what it did last.
    owes_report: bool,
}

/// A server of several workers, which sends its block to every client.
pub struct Crew {
    desk: Desk,
    seats: Vec<Seat>,
    config: ServerConfig,
    block: Block,
    /// Of this many datagrams one reaches any worker, whatever its address: 0 for none.
    pub scatters: u64,
    /// What clients sent, by their address: the blocks that are complete.
    pub received: BTreeMap<ConnectionId, Vec<bytes::Bytes>>,
    /// Connections of the present run that were reported, in their order.
    pub joined: Vec<ConnectionId>,
    outbox: VecDeque<(FourTuple, Vec<u8>)>,
    rng: Rng,
}

impl Crew {
    /// A server of `workers` workers.
    #[must_use]
    pub fn new(workers: usize, block: Block, config: ServerConfig, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 79);
        let (desk, seats) = open(Instant::ZERO, workers, &config, &mut rng);
        let (received, joined, outbox) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Self { desk, seats, config, block, scatters: 0, received, joined, outbox, rng }
    }

    /// The program crashed and restarted, perhaps on a machine with more cores.
    pub fn restart(&mut self, now: Instant, workers: usize) {
        (self.desk, self.seats) = open(now, workers, &self.config, &mut self.rng);
        self.joined.clear();
        self.outbox.clear();
    }

    /// Its counters, of all workers.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        let mut all = ServerStats::default();
        self.seats.iter().for_each(|seat| all += seat.worker.stats());
        self.desk.complete(all)
    }

    /// Connections of each worker.
    #[must_use]
    pub fn shares(&self) -> Vec<usize> {
        self.seats.iter().map(|seat| seat.worker.connections().count()).collect()
    }

    /// Bytes that each worker has sent.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        self.seats.iter().map(|seat| seat.worker.stats().bytes_sent).collect()
    }

    /// Bytes that each worker's connections make it hold.
    #[must_use]
    pub fn held(&self) -> Vec<usize> {
        self.seats.iter().map(|seat| seat.worker.stats().memory_bytes).collect()
    }

    /// What the system does: all datagrams of an address go to one socket.
    fn socket_of(&mut self, path: FourTuple) -> usize {
        let workers = self.seats.len() as u64;
        if self.scatters > 0 && self.rng.below(self.scatters) == 0 {
            return self.rng.below(workers) as usize;
        }
        let port = u64::from(path.remote.port());
        let ip = match path.remote.ip() {
            std::net::IpAddr::V4(ip) => u64::from(ip.to_bits()),
            std::net::IpAddr::V6(ip) => ip.to_bits() as u64,
        };
        ((ip << 16 | port).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % self.seats.len()
    }

    fn wake(&mut self, now: Instant, number: usize) {
        let late = Duration::from_nanos(self.rng.below(MAX_LATE.as_nanos() as u64));
        let seat = &mut self.seats[number];
        seat.wakes_at = earliest(seat.wakes_at, Some(now + late));
    }

    /// Some of a round of one worker.
    fn run(&mut self, now: Instant, number: usize) {
        self.seats[number].wakes_at = None;
        for mut stray in self.seats[number].strays.take() {
            let _counted = self.seats[number].worker.handle_stray(&mut self.desk, &mut stray);
        }
        for _ in 0..=self.rng.below(MAX_TAKEN) {
            let Some((path, ecn, mut datagram)) = self.seats[number].socket.pop_front() else {
                break;
            };
            let worker = &mut self.seats[number].worker;
            worker.mix_entropy(&mut self.desk, &self.rng.key());
            let outcome = worker.handle_datagram(now, &mut self.desk, path, ecn, &mut datagram);
            if let Ok(Handled::ForWorker(other)) = outcome {
                if !self.seats[other].strays.push(Stray { at: now, path, ecn, datagram }) {
                    self.seats[number].worker.lose_stray();
                }
                self.wake(now, other);
            }
        }
        self.seats[number].worker.handle_timeout(now);
        self.hear(now, number);
        self.send(now, number);
        self.seats[number].owes_report = self.rng.below(2) == 0;
        if !self.seats[number].owes_report {
            self.seats[number].worker.report(now, &mut self.desk);
        }
        if self.seats[number].worker.takes_call() {
            (0..self.seats.len()).for_each(|other| self.wake(now, other));
        }
        if self.seats[number].owes_report || !self.seats[number].socket.is_empty() {
            self.wake(now, number);
        }
    }

    fn hear(&mut self, now: Instant, number: usize) {
        let worker = &mut self.seats[number].worker;
        while let Some((id, event)) = worker.poll_event(now) {
            assert_eq!(id.worker(), number, "an event of another worker");
            match event {
                ServerEvent::Connecting { .. } => {
                    self.joined.push(id);
                    let connection = worker.connection_mut(id).expect("it was just made");
                    connection.send_block(now, &self.block).expect("there is room for one");
                }
                ServerEvent::Connection(Event::Block { data, .. }) => {
                    self.received.entry(id).or_default().push(data);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, now: Instant, number: usize) {
        let mut batch = Batch::new(16);
        loop {
            self.seats[number].worker.poll_transmit(now, &mut batch);
            self.outbox.extend(batch.iter().map(|(to, bytes)| (to, bytes.to_vec())));
            if !batch.is_full() {
                return;
            }
            batch.clear();
        }
    }

    fn deadline_of(seat: &Seat) -> Option<Instant> {
        earliest(seat.wakes_at, seat.worker.poll_timeout())
    }
}

fn open(now: Instant, workers: usize, config: &ServerConfig, rng: &mut Rng) -> (Desk, Vec<Seat>) {
    let unix_time = UNIX_TIME + now.since(Instant::ZERO).as_secs();
    let seeds: Vec<_> = (0..workers).map(|_| rng.key()).collect();
    let opened = Desk::open(now, unix_time, config.clone(), seeds);
    let (desk, workers) = opened.expect("a configuration that works");
    let seat = |worker| Seat {
        worker,
        socket: VecDeque::new(),
        strays: Strays::default(),
        wakes_at: None,
        owes_report: false,
    };
    (desk, workers.into_iter().map(seat).collect())
}

impl Machine for Crew {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let number = self.socket_of(path);
        self.seats[number].socket.push_back((path, ecn, datagram.to_vec()));
        self.wake(now, number);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let is_due = |seat: &Seat| Self::deadline_of(seat).is_some_and(|at| at <= now);
        let mut due: Vec<_> = (0..self.seats.len()).filter(|&n| is_due(&self.seats[n])).collect();
        while !due.is_empty() {
            let at = self.rng.below(due.len() as u64) as usize;
            self.run(now, due.swap_remove(at));
        }
    }

    fn poll_transmit(&mut self, _now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some((to, bytes)) = self.outbox.pop_front()
        {
            batch.push(to, &bytes);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.outbox.is_empty() {
            return Some(Instant::ZERO);
        }
        self.seats.iter().map(Self::deadline_of).fold(None, earliest)
    }
}

impl Host for Crew {
    /// Whatever the order: no limit is exceeded, and what was reported agrees.
    fn check_invariants(&self) {
        let (stats, limits) = (self.stats(), self.config.limits);
        assert!(stats.connections <= limits.seats(), "{} connections", stats.connections);
        assert!(stats.handshakes <= limits.handshakes, "{} handshakes", stats.handshakes);
        if self.seats.iter().all(|seat| !seat.owes_report) {
            self.desk.check_invariants(self.seats.iter().map(|seat| &seat.worker));
        }
    }
}
