//! A game's packets beside a block: their delay and loss.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::hosts::Game;

use super::percentile;

/// Packets on frames, from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameStream {
    /// The interval and size of the packets, and when blocks start.
    pub game: Game,
    /// Packets sent from this time on count,
    pub from: Instant,
    /// up to this time.
    pub to: Instant,
}

impl GameStream {
    /// 60 packets of 100 bytes a second; blocks start at `from`, and packets count from then to `to`.
    pub const fn new(from: Instant, to: Instant) -> Self {
        let interval = Duration::from_nanos(16_666_667);
        Self { game: Game { interval, bytes: 100, blocks_from: from }, from, to }
    }
}

/// The results of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GameReport {
    /// Packets that counted.
    pub sent: usize,
    /// Those of them that did not arrive.
    pub missing: usize,
    /// The median delay, from the game's call on one side to that on the other.
    pub p50: Duration,
    /// The 95th percentile of the delay.
    pub p95: Duration,
}

impl GameReport {
    /// The share of packets that did not arrive.
    pub fn loss(&self) -> f64 {
        self.missing as f64 / self.sent.max(1) as f64
    }

    /// The results of a game, from the send times of its packets, and the send times and delays of those
    /// received.
    pub(super) fn of(
        stream: &GameStream,
        sent: &[Instant],
        received: &[(Instant, Duration)],
    ) -> Self {
        let counts = |at: Instant| (stream.from..stream.to).contains(&at);
        let sent = sent.iter().filter(|at| counts(**at)).count();
        let received = received.iter().filter(|(at, _)| counts(*at));
        let mut delays: Vec<Duration> = received.map(|&(_, delay)| delay).collect();
        let missing = sent.saturating_sub(delays.len());
        let (p50, p95) = (percentile(&mut delays, 50), percentile(&mut delays, 95));
        Self { sent, missing, p50, p95 }
    }
}
