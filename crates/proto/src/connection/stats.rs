//! What a connection counts.

use core::time::Duration;

use super::Connection;
use crate::crypto::Suite;
use crate::work::Work;

/// Counters of one end of a connection, and its measurements of the path.
///
/// # Examples
/// ```
/// use haulier_proto::connection::ConnectionStats;
///
/// /// A line for a status screen.
/// fn line(stats: &ConnectionStats) -> String {
///     let rtt_ms = stats.rtt.map_or(0, |rtt| rtt.as_millis());
///     let mbps = stats.bandwidth_bps.map_or(0, |bps| bps / 1_000_000);
///     format!("{rtt_ms} ms, {mbps} Mbit/s, {:.1} % lost", 100.0 * stats.loss)
/// }
/// # let _ = line;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_sent: u64,
    /// Datagrams received and verified.
    pub datagrams_received: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_received: u64,
    /// Bytes of the sent datagrams that contained only acks.
    pub ack_bytes_sent: u64,
    /// Datagrams received that could not be verified, were duplicates, or violated a rule of the wire.
    pub datagrams_refused: u64,
    /// Datagrams sent and declared lost.
    pub datagrams_lost: u64,
    /// Slices sent: source slices, repair slices, and retransmissions.
    pub slices_sent: u64,
    /// Repair slices among them.
    pub repair_slices_sent: u64,
    /// Slices sent for the second or a later time.
    pub slices_resent: u64,
    /// Packets received and dropped because the application did not read them.
    pub packets_dropped: u64,
    /// Datagrams sent that were marked as ECN-capable.
    pub datagrams_marked: u64,
    /// Acks that reported congestion by ECN.
    pub congestion_marks: u64,
    /// How often the path stopped carrying datagrams of more than 1200 bytes.
    pub black_holes: u64,
    /// Updates of the sending key.
    pub key_updates: u64,
    /// The bandwidth of the path to the peer, in bits per second including UDP and IP headers; `None` while
    /// it is not known.
    pub bandwidth_bps: Option<u64>,
    /// The fraction of datagrams lost on that path, 0 to 0.6, as the block sender estimates it: 0.02 before
    /// anything was measured.
    pub loss: f64,
    /// The smoothed round trip, as in RFC 9002; `None` before it was measured, as the two below.
    pub rtt: Option<Duration>,
    /// The shortest round trip.
    pub min_rtt: Option<Duration>,
    /// The variation of the round trip.
    pub rtt_variation: Option<Duration>,
    /// The largest datagram that the path is known to carry, in bytes of UDP payload: 1200 before anything
    /// was found.
    pub max_datagram_bytes: u16,
    /// Ack-eliciting datagrams in flight.
    pub datagrams_in_flight: u64,
    /// The cipher suite; `None` in mode `open`.
    pub suite: Option<Suite>,
}

/// What a connection counts by itself; the rest is counted where it happens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) bytes_received: u64,
    pub(super) ack_bytes_sent: u64,
    pub(super) datagrams_refused: u64,
    pub(super) congestion_marks: u64,
    pub(super) black_holes: u64,
    /// The part of [`Work`] that is counted nowhere else.
    pub(super) steps: u64,
}

impl Connection {
    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let slices = self.outbound.transfer().stats();
        let known = self.path.blocks.known();
        let counters = self.counters;
        ConnectionStats {
            datagrams_sent: counters.datagrams_sent,
            bytes_sent: counters.bytes_sent,
            datagrams_received: counters.datagrams_received,
            bytes_received: counters.bytes_received,
            ack_bytes_sent: counters.ack_bytes_sent,
            datagrams_refused: counters.datagrams_refused,
            congestion_marks: counters.congestion_marks,
            black_holes: counters.black_holes,
            datagrams_lost: self.recovery.ledger().lost(),
            slices_sent: slices.slices,
            slices_resent: slices.resent,
            repair_slices_sent: slices.repairs,
            packets_dropped: self.inbound.packets_dropped(),
            key_updates: self.agreement.key_updates().0,
            suite: self.agreement.suite(),
            bandwidth_bps: known.bandwidth_bps(),
            loss: known.loss.share(),
            rtt: self.path.timing.rtt().smoothed_rtt(),
            min_rtt: self.path.timing.rtt().min_rtt(),
            rtt_variation: self.path.timing.rtt().rttvar(),
            datagrams_marked: self.path.ecn.sent(),
            max_datagram_bytes: self.path.max_datagram_bytes(),
            datagrams_in_flight: self.recovery.in_flight().into(),
        }
    }

    /// The work that it has done since it began.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> Work {
        Work {
            opens: self.counters.datagrams_received + self.counters.datagrams_refused,
            seals: self.counters.datagrams_sent,
            steps: self.counters.steps,
            ..self.inbound.work()
        }
    }
}
