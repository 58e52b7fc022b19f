//! The settings of an endpoint, and which of them cannot work.

use core::time::Duration;

use haulier_core::fragment::{FRAGMENT_BYTES, MAX_FRAGMENTED_BYTES};

use thiserror::Error;

use crate::packet::fragment::FRAGMENT_HEADER_BYTES;
use crate::{MAX_PACKET_BYTES, ProtocolId, Sequence};

/// How an [`Endpoint`](super::Endpoint) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The number that both ends must share. Default [`ProtocolId::PACKETS`].
    pub protocol_id: ProtocolId,
    /// The number of the first packet. Default 0. A random one is better: a peer that remembers an earlier
    /// run takes packets with the same numbers for duplicates, for up to three seconds.
    pub first_sequence: Sequence,
    /// The largest datagram, in bytes of UDP payload, 1033 to 1200. A larger packet is cut into fragments,
    /// of 1033 bytes each whatever this setting is. Default 1200.
    pub max_datagram_bytes: usize,
    /// A packet without an ack for longer than this is lost, and one received longer ago is no longer
    /// acknowledged. Must be the same at both ends. Default 1 s; a link with a longer round trip needs more.
    pub loss_timeout: Duration,
    /// The minimum time between ack packets. Default 50 ms: an end that only receives sends at most 20 a
    /// second. A packet that arrives alone is acknowledged at once, so that its round trip contains no
    /// delay; only if this end has sent something within the interval it waits 20 ms for the next packet, so
    /// that an end that sends every frame needs no ack packets. `None` sends none at all, as in the article:
    /// acks then go only with the application's own packets.
    pub ack_interval: Option<Duration>,
    /// Bytes of packets that may wait for [`poll_transmit`](super::Endpoint::poll_transmit), at least
    /// 256 KiB. Default 1 MiB: four of the largest.
    pub max_queued_bytes: usize,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            protocol_id: ProtocolId::PACKETS,
            first_sequence: Sequence::new(0),
            max_datagram_bytes: MAX_PACKET_BYTES,
            loss_timeout: Duration::from_secs(1),
            ack_interval: Some(Duration::from_millis(50)),
            max_queued_bytes: 4 * MAX_FRAGMENTED_BYTES,
        }
    }
}

/// A configuration that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndpointConfigError {
    /// `max_datagram_bytes` is not from 1033 to 1200.
    #[error("max_datagram_bytes must be from 1033, a full fragment, to 1200, the conservative MTU")]
    MaxDatagramBytes,
    /// `max_queued_bytes` does not hold a packet of 256 KiB.
    #[error("max_queued_bytes must be at least 262144, the largest packet")]
    MaxQueuedBytes,
    /// `loss_timeout` is not longer than `ack_interval`, so that acks would come too late.
    #[error("loss_timeout must be longer than ack_interval")]
    LossTimeout,
}

impl EndpointConfig {
    pub(super) fn check(&self) -> Result<(), EndpointConfigError> {
        let datagrams = FRAGMENT_HEADER_BYTES + FRAGMENT_BYTES..=MAX_PACKET_BYTES;
        if !datagrams.contains(&self.max_datagram_bytes) {
            return Err(EndpointConfigError::MaxDatagramBytes);
        }
        if self.max_queued_bytes < MAX_FRAGMENTED_BYTES {
            return Err(EndpointConfigError::MaxQueuedBytes);
        }
        if self.loss_timeout <= self.ack_interval.unwrap_or(Duration::ZERO) {
            return Err(EndpointConfigError::LossTimeout);
        }
        Ok(())
    }
}
