//! What a connection counts.

use crate::crypto::Suite;

/// Counters of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// What it is encrypted with; `None` in mode `open`.
    pub suite: Option<Suite>,
}
