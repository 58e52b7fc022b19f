//! The configuration of QUIC: it carries haulier's datagrams, and does not control the rate itself.
//!
//! haulier decides the rate itself, by what arrives and when. A second controller beneath it would hold
//! datagrams in a queue that the first takes for the link's, so [`OutOfTheWay`] holds nothing back. That is
//! no more than UDP players are sent: blocks go at haulier's pace, and QUIC sends what is put into it. What
//! QUIC sends of its own is little: acks, and the headers of a session.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wtransport::quinn::congestion::{Controller, ControllerFactory};
use wtransport::quinn::{IdleTimeout, TransportConfig, VarInt};

/// Bytes of a UDP datagram: as Chromium sends itself, so that no path that it can use is too narrow. A
/// datagram of haulier has 1200, and QUIC puts up to 49 round it: flags, connection id, packet number, tag,
/// frame, session.
const DATAGRAM_BYTES: u16 = 1250;

/// Bytes that may wait for the thread of QUIC: the queue of a carried peer.
const SEND_BUFFER_BYTES: usize = 512 << 10;

/// The silence after which a connection of QUIC is over. Chromium's own limit is 30 s.
const IDLE: Duration = Duration::from_secs(30);

pub(crate) fn config(has_own_control: bool) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .initial_mtu(DATAGRAM_BYTES)
        .min_mtu(DATAGRAM_BYTES)
        // More is never asked for, and a probe costs bandwidth that a join waits for.
        .mtu_discovery_config(None)
        .datagram_send_buffer_size(SEND_BUFFER_BYTES)
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        // HTTP/3 has three streams each way, and a session one. A page has no use for more.
        .max_concurrent_bidi_streams(VarInt::from_u32(2))
        .max_concurrent_uni_streams(VarInt::from_u32(4));
    if !has_own_control {
        config.congestion_controller_factory(Arc::new(Factory));
    }
    config
}

#[derive(Debug)]
struct Factory;

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(OutOfTheWay)
    }
}

/// A controller that lets everything through.
#[derive(Clone, Copy, Debug)]
struct OutOfTheWay;

impl OutOfTheWay {
    /// More than ever is in flight. Above 2^32 QUIC does not pace either.
    const WINDOW: u64 = 1 << 40;
}

impl Controller for OutOfTheWay {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        Self::WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        Self::WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
