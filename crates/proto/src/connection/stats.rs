//! What a connection counts.

use crate::crypto::Suite;

/// Counters of one end of a connection, and what it knows of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Datagrams handed out.
    pub datagrams_sent: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_sent: u64,
    /// Datagrams verified.
    pub datagrams_received: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_received: u64,
    /// Bytes of the datagrams sent that held acks and nothing else.
    pub ack_bytes_sent: u64,
    /// Datagrams that did not verify, came before, or broke a rule.
    pub datagrams_refused: u64,
    /// Datagrams sent that were not acknowledged in time.
    pub datagrams_lost: u64,
    /// Slices sent: sources, repair slices, and those sent again.
    pub slices_sent: u64,
    /// Repair slices among them.
    pub repair_slices_sent: u64,
    /// Slices sent for the second or a later time.
    pub slices_resent: u64,
    /// Received packets that were dropped because the application did not take them.
    pub packets_dropped: u64,
    /// Times the sending key was changed.
    pub key_updates: u64,
    /// The bandwidth of the bottleneck on the way to the peer, in bits per second, UDP and IP counted; `None`
    /// while it is not known.
    pub bandwidth_bps: Option<u64>,
    /// The share of datagrams lost on that way, 0 to 0.6, as the sender of blocks estimates it: 2 % before
    /// anything was measured.
    pub loss: f64,
    /// Datagrams in flight that ask for an ack.
    pub datagrams_in_flight: u64,
    /// What it is encrypted with; `None` in mode `open`.
    pub suite: Option<Suite>,
}
