//! A game's packets beside a block: how late they come, and how many do not.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::hosts::Game;

use super::percentile;

/// Packets on frames, from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameStream {
    /// What is sent.
    pub game: Game,
    /// Counted are the packets sent from here,
    pub from: Instant,
    /// to here.
    pub to: Instant,
}

impl GameStream {
    /// 60 packets of 100 bytes a second; blocks begin at `from`, and from then to `to` is counted.
    pub const fn new(from: Instant, to: Instant) -> Self {
        let interval = Duration::from_nanos(16_666_667);
        Self { game: Game { interval, bytes: 100, blocks_from: from }, from, to }
    }
}

/// What a game felt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GameReport {
    /// Packets that counted.
    pub sent: usize,
    /// Of them, those that did not come.
    pub missing: usize,
    /// How long half of them took at most, from the game's call on one side to that on the other.
    pub p50: Duration,
    /// The same for 95 %.
    pub p95: Duration,
}

impl GameReport {
    /// The share of packets that did not come.
    pub fn loss(&self) -> f64 {
        self.missing as f64 / self.sent.max(1) as f64
    }

    /// What a game felt whose packets were `sent` then, and `received` if sent then, after so long.
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
