//! The settings of an endpoint, and which of them cannot work.

use core::time::Duration;

use haulier_core::fragment::{FRAGMENT_BYTES, MAX_FRAGMENTED_BYTES};

use thiserror::Error;

use crate::packet::fragment::FRAGMENT_HEADER_BYTES;
use crate::settings;
use crate::{MAX_PACKET_BYTES, ProtocolId, Sequence};

settings! {
    /// How an [`Endpoint`](super::Endpoint) behaves.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EndpointConfig {
        /// The number that both ends must share. Default [`ProtocolId::PACKETS`].
        protocol_id: ProtocolId = ProtocolId::PACKETS, with_protocol_id;
        /// The number of the first packet. Default 0. A random one is better: a peer that remembers an
        /// earlier run takes packets with the same numbers for duplicates, for up to three seconds.
        first_sequence: Sequence = Sequence::new(0), with_first_sequence;
        /// The largest datagram, in bytes of UDP payload, 1033 to 1200. A larger packet is cut into
        /// fragments, of 1033 bytes each whatever this setting is. Default 1200.
        max_datagram_bytes: usize = MAX_PACKET_BYTES, with_max_datagram_bytes;
        /// A packet without an ack for longer than this is lost, and one received longer ago is no longer
        /// acknowledged. Must be the same at both ends. Default 1 s; a link with a longer round trip needs
        /// more.
        loss_timeout: Duration = Duration::from_secs(1), with_loss_timeout;
        /// The minimum time between ack packets. Default 50 ms: an end that only receives sends at most 20 a
        /// second. A packet that arrives alone is acknowledged at once, so that its round trip contains no
        /// delay; only if this end has sent something within the interval it waits 20 ms for the next packet,
        /// so that an end that sends every frame needs no ack packets. `None` sends none at all, as in the
        /// article: acks then go only with the application's own packets.
        ack_interval: Option<Duration> = Some(Duration::from_millis(50)), with_ack_interval;
        /// Bytes of packets that may wait for [`poll_transmit`](super::Endpoint::poll_transmit), at least
        /// 256 KiB. Default 1 MiB: four of the largest.
        max_queued_bytes: usize = 4 * MAX_FRAGMENTED_BYTES, with_max_queued_bytes;
    }
}

/// A configuration that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
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
