//! Settings from Python: the classes of `haulier.types`, whose fields have haulier's default if they are
//! None.

use haulier::{BlockOptions, ConnectionConfig, Delivery, Urgency};
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};
use crate::waiting::duration;

/// The fields of `haulier.ConnectionConfig`.
#[derive(FromPyObject)]
pub(crate) struct Settings {
    max_rate_bps: Option<u64>,
    urgency: Option<String>,
    min_rate_bps: Option<u64>,
    idle_timeout_s: Option<f64>,
    handshake_timeout_s: Option<f64>,
    max_block_bytes: Option<u64>,
    delivery: Option<String>,
    max_unread_block_bytes: Option<u64>,
    max_unread_packet_bytes: Option<usize>,
    max_queued_blocks: Option<usize>,
    max_queued_packet_bytes: Option<usize>,
    max_queued_message_bytes: Option<u32>,
    max_channels: Option<u16>,
    max_channel_bytes: Option<u64>,
    no_progress_timeout_s: Option<f64>,
    min_block_rate_bps: Option<u64>,
    max_datagram_bytes: Option<u16>,
    ecn: Option<bool>,
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// The settings of connections; haulier's own for `None`.
pub(crate) fn connection(settings: Option<Settings>) -> Outcome<ConnectionConfig> {
    let mut config = ConnectionConfig::default();
    let Some(it) = settings else { return Ok(config) };
    set(&mut config.max_rate_bps, it.max_rate_bps);
    set(&mut config.urgency, it.urgency.as_deref().map(urgency).transpose()?);
    set(&mut config.min_rate_bps, it.min_rate_bps);
    set(&mut config.idle_timeout, it.idle_timeout_s.map(duration).transpose()?);
    set(&mut config.handshake_timeout, it.handshake_timeout_s.map(duration).transpose()?);
    set(&mut config.max_block_bytes, it.max_block_bytes);
    set(&mut config.delivery, it.delivery.as_deref().map(delivery).transpose()?);
    set(&mut config.max_unread_block_bytes, it.max_unread_block_bytes);
    set(&mut config.max_unread_packet_bytes, it.max_unread_packet_bytes);
    set(&mut config.max_queued_blocks, it.max_queued_blocks);
    set(&mut config.max_queued_packet_bytes, it.max_queued_packet_bytes);
    set(&mut config.max_queued_message_bytes, it.max_queued_message_bytes);
    set(&mut config.max_channels, it.max_channels);
    set(&mut config.max_channel_bytes, it.max_channel_bytes);
    set(&mut config.no_progress_timeout, it.no_progress_timeout_s.map(duration).transpose()?);
    set(&mut config.min_block_rate_bps, it.min_block_rate_bps);
    set(&mut config.max_datagram_bytes, it.max_datagram_bytes);
    set(&mut config.ecn, it.ecn);
    Ok(config)
}

/// The urgency of this name: the part of the link that a block may take.
pub(crate) fn urgency(name: &str) -> Outcome<Urgency> {
    match name {
        "load-screen" => Ok(Urgency::LoadScreen),
        "during-play" => Ok(Urgency::DuringPlay),
        _ => Err(unknown("urgency", name, "load-screen or during-play")),
    }
}

fn delivery(name: &str) -> Outcome<Delivery> {
    match name {
        "blocks" => Ok(Delivery::Blocks),
        "chunks" => Ok(Delivery::Chunks),
        "in-order" => Ok(Delivery::InOrder),
        _ => Err(unknown("delivery", name, "blocks, chunks or in-order")),
    }
}

fn unknown(what: &str, name: &str, known: &str) -> Failure {
    Failure::usage(format!("{name:?} is no {what}: it is {known}"))
}

/// The options of a block: its order and share beside other blocks.
pub(crate) fn options(priority: u8, weight: u16, of: Option<&str>) -> Outcome<BlockOptions> {
    let mut options = BlockOptions::default().with_priority(priority).with_weight(weight);
    options.urgency = of.map(urgency).transpose()?;
    Ok(options)
}
