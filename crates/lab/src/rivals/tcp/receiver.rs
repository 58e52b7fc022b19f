//! The receiving end: which segments were received, and when to ack them.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};

use super::runs::Runs;
use super::{Ack, MSS, SACK_BLOCKS, Segment};
use crate::share::Throughput;
use haulier_sim::Host;

/// How long an ack waits for a second segment: Linux's minimum.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// Receives a bulk transfer and counts it.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    /// Bytes received for the first time, by time.
    pub throughput: Throughput,
    sender: SocketAddr,
    next: u32,
    /// What was received beyond `next`.
    runs: Runs,
    /// A segment of each run that will be reported, the newest first.
    recent: Vec<u32>,
    /// Segments since the last ack, the timestamp of the first, and when the ack is due.
    unacked: u32,
    echo: Instant,
    ack_at: Option<Instant>,
}

impl TcpReceiver {
    /// A receiver for `sender`.
    pub fn new(sender: SocketAddr) -> Self {
        Self {
            throughput: Throughput::default(),
            sender,
            next: 0,
            runs: Runs::default(),
            recent: Vec::new(),
            unacked: 0,
            echo: Instant::ZERO,
            ack_at: None,
        }
    }

    /// Bytes received without a hole.
    pub const fn in_order_bytes(&self) -> u64 {
        self.next as u64 * MSS
    }

    /// Records a segment; returns whether it is new.
    fn note(&mut self, number: u32) -> bool {
        if number < self.next || self.runs.run_of(number).is_some() {
            return false;
        }
        if number == self.next {
            self.next = self.runs.take_from(number + 1).unwrap_or(number + 1);
        } else {
            self.runs.insert(number..number + 1);
        }
        true
    }

    fn sacks(&mut self) -> Vec<(u32, u32)> {
        let mut sacks: Vec<(u32, u32)> = Vec::new();
        let mut recent = std::mem::take(&mut self.recent);
        recent.retain(|&number| {
            let run = self.runs.run_of(number).filter(|run| !sacks.contains(run));
            sacks.extend(run.filter(|_| sacks.len() < SACK_BLOCKS));
            run.is_some()
        });
        recent.truncate(SACK_BLOCKS);
        self.recent = recent;
        sacks
    }
}

impl Machine for TcpReceiver {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let Some(segment) = Segment::read(datagram).filter(|_| path.has_remote(self.sender)) else {
            return;
        };
        let in_order = segment.number == self.next && self.runs.is_empty();
        if self.note(segment.number) {
            self.throughput.add(now, MSS);
        }
        self.recent.insert(0, segment.number);
        if self.unacked == 0 || !in_order {
            self.echo = segment.sent_at;
        }
        self.unacked += 1;
        let waits = in_order && self.unacked < 2;
        let due = if waits { now + DELAYED_ACK } else { now };
        self.ack_at = Some(self.ack_at.map_or(due, |at| at.min(due)));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.ack_at.is_some_and(|at| at <= now) && !batch.is_full() {
            (self.ack_at, self.unacked) = (None, 0);
            let ack = Ack { next: self.next, echo: self.echo, sacks: self.sacks() };
            batch.push(self.sender.into(), &ack.to_bytes());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ack_at
    }
}

impl Host for TcpReceiver {
    fn check_invariants(&self) {
        self.runs.check_invariants(self.next);
    }
}
