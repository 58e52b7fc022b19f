//! A game's packets beside a block: how late they come, and how many do not.

use std::time::Duration;

use haulier_proto::Instant;

use super::{Sink, Source, percentile};

/// Packets on frames, from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameStream {
    /// From one packet to the next.
    pub interval: Duration,
    /// Bytes of each.
    pub bytes: usize,
    /// Counted are the packets sent from here,
    pub from: Instant,
    /// to here.
    pub to: Instant,
    /// When blocks begin; before it the game has the connection for itself.
    pub blocks_from: Instant,
}

impl GameStream {
    /// 60 packets of 100 bytes a second; blocks begin at `from`, and from then to `to` is counted.
    #[must_use]
    pub const fn new(from: Instant, to: Instant) -> Self {
        let interval = Duration::from_nanos(16_666_667);
        Self { interval, bytes: 100, from, to, blocks_from: from }
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
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.missing as f64 / self.sent.max(1) as f64
    }

    /// What the game from `source` to `sink` felt, if there is one.
    pub(super) fn of(source: &Source, sink: &Sink) -> Option<Self> {
        let stream = source.game()?;
        let counts = |at: Instant| (stream.from..stream.to).contains(&at);
        let sent = source.game_packets().iter().filter(|at| counts(**at)).count();
        let taken = sink.game_packets().iter().filter(|(at, _)| counts(*at));
        let mut delays: Vec<Duration> = taken.map(|&(_, delay)| delay).collect();
        let missing = sent.saturating_sub(delays.len());
        let (p50, p95) = (percentile(&mut delays, 50), percentile(&mut delays, 95));
        Some(Self { sent, missing, p50, p95 })
    }
}
