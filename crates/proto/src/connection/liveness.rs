//! Silence: when a connection ends because nothing arrives, when a ping keeps it alive, and when the peer has
//! stopped answering (STANDARD-1, 4.2 and 5.1).
//!
//! The invariant: `unanswered_since` is unset from every verified datagram to the next ack-eliciting one
//! sent.

use core::time::Duration;

use super::ConnectionState;
use crate::Instant;

/// Silence in the middle of a block after which its receiver sends a ping: several round trips, and short
/// enough that a player hardly notices.
const BLOCK_SILENCE: Duration = Duration::from_millis(500);

/// How often an end that only receives measures the round trip: often enough for its timeouts.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// A connection without a datagram of the peer for this time is at rest: a game sends many in that time.
const REST: Duration = Duration::from_secs(1);

/// The peer counts as silent after this time, or after three probe timeouts if that is longer.
const PEER_SILENCE: Duration = Duration::from_secs(1);

/// When the two ends last heard from each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    created: Instant,
    /// The last verified datagram arrived.
    last_received: Instant,
    /// The last ack-eliciting datagram was sent.
    last_ack_eliciting: Instant,
    /// The first ack-eliciting datagram was sent since the peer was last heard.
    unanswered_since: Option<Instant>,
    idle_timeout: Duration,
    handshake_timeout: Duration,
}

impl Liveness {
    pub(super) const fn new(
        now: Instant,
        idle_timeout: Duration,
        handshake_timeout: Duration,
    ) -> Self {
        Self {
            created: now,
            last_received: now,
            last_ack_eliciting: now,
            unanswered_since: None,
            idle_timeout,
            handshake_timeout,
        }
    }

    /// The idle timeout of both ends.
    pub(super) const fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Since when there is the connection.
    pub(super) const fn created(&self) -> Instant {
        self.created
    }

    /// Whether the peer was heard last so long ago that nothing is going on.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        now.since(self.last_received) >= REST
    }

    /// A datagram was verified.
    pub(super) const fn on_received(&mut self, now: Instant) {
        self.last_received = now;
        self.unanswered_since = None;
    }

    /// An ack-eliciting datagram was sent; `in_flight` datagrams are in flight, including it.
    pub(super) const fn on_ack_eliciting_sent(&mut self, now: Instant, in_flight: u32) {
        self.last_ack_eliciting = now;
        // If nothing else is in flight, the peer owes no older answer.
        if self.unanswered_since.is_none() || in_flight <= 1 {
            self.unanswered_since = Some(now);
        }
    }

    /// A ping was queued because a keep-alive was due.
    pub(super) const fn on_keep_alive(&mut self, now: Instant) {
        self.last_ack_eliciting = now;
    }

    /// A block is sent after an idle period: the peer's silence is counted from now on.
    pub(super) const fn forget_unanswered(&mut self) {
        self.unanswered_since = None;
    }

    /// When silence ends the connection. A clock that jumped back only makes this later.
    pub(super) fn ends_at(&self, state: ConnectionState) -> Instant {
        match state {
            ConnectionState::Responding => self.created + self.handshake_timeout,
            _ => self.last_received + self.idle_timeout,
        }
    }

    /// The longest time for which a peer that receives nothing keeps its connection.
    pub(super) fn max_silence(&self) -> Duration {
        self.idle_timeout.max(self.handshake_timeout)
    }

    /// When a ping is due. A peer that only receives sends nothing on its own; when its NAT mapping expires,
    /// the sender's datagrams no longer reach it. So it also sends a ping when a block stands still.
    pub(super) fn keep_alive_at(&self, is_receiving_block: bool) -> Instant {
        let idle = self.last_ack_eliciting + self.idle_timeout / 3;
        match is_receiving_block {
            true => idle.min(self.last_ack_eliciting.max(self.last_received) + BLOCK_SILENCE),
            false => idle,
        }
    }

    /// Whether an end that sends nothing ack-eliciting should do so, to measure the round trip.
    pub(super) fn is_sample_due(&self, now: Instant) -> bool {
        now.since(self.last_ack_eliciting) >= SAMPLE_INTERVAL
    }

    /// Whether the peer has not answered for so long that slices stop (H-4.5b).
    pub(super) fn is_peer_silent(&self, now: Instant, probe_timeout: Duration) -> bool {
        let limit = probe_timeout.saturating_mul(3).max(PEER_SILENCE);
        self.unanswered_since.is_some_and(|since| now.since(since) > limit)
    }
}
