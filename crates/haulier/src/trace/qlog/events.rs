//! The events of a trace as qlog has them: a name, and the data that belongs to it.

use haulier_proto::connection::trace::{LossReason, TraceEvent, TraceMeasures, TraceParameters};
use haulier_proto::connection::{CloseCode, CloseReason, ConnectionState};
use serde_json::{Value, json};

use super::frames::{numbered, packet, stream_of};
use super::{VantagePoint, millis};

/// The record of an event; `None` for a secret.
pub(super) fn record(vantage: VantagePoint, event: &TraceEvent) -> Option<(&'static str, Value)> {
    let is_client = vantage == VantagePoint::Client;
    Some(match event {
        TraceEvent::Started { peer, client_id, .. } => {
            let version = if peer.is_ipv4() { "v4" } else { "v6" };
            let (ip, port) = (peer.ip().to_string(), peer.port());
            let mut data = json!({ "ip_version": version, "protocol": "HAULIER1" });
            let [ip_key, port_key] =
                if is_client { ["dst_ip", "dst_port"] } else { ["src_ip", "src_port"] };
            (data[ip_key], data[port_key]) = (json!(ip), json!(port));
            data["src_cid"] = json!(hex(client_id));
            ("connectivity:connection_started", data)
        }
        TraceEvent::Agreed { server_id, suite, .. } => {
            let suite = suite.map(|suite| format!("{suite:?}"));
            ("haulier:agreed", json!({ "server_id": hex(server_id), "suite": suite }))
        }
        TraceEvent::StateChanged(state) => {
            ("connectivity:connection_state_updated", json!({ "new": state_name(*state) }))
        }
        TraceEvent::AddressChanged(peer) => {
            ("haulier:address_changed", json!({ "ip": peer.ip().to_string(), "port": peer.port() }))
        }
        TraceEvent::DatagramSizeChanged(bytes) => {
            ("connectivity:mtu_updated", json!({ "new": bytes }))
        }
        TraceEvent::KeyUpdated { is_here, updates } => {
            let is_clients = *is_here == is_client;
            let key = if is_clients { "client_1rtt_secret" } else { "server_1rtt_secret" };
            let trigger = if *is_here { "local_update" } else { "remote_update" };
            (
                "security:key_updated",
                json!({
                    "key_type": key, "generation": updates, "trigger": trigger,
                }),
            )
        }
        TraceEvent::DatagramSent(it) => ("transport:packet_sent", packet(it, is_client)),
        TraceEvent::DatagramReceived(it) => ("transport:packet_received", packet(it, !is_client)),
        TraceEvent::DatagramDropped { reason, bytes } => (
            "transport:packet_dropped",
            json!({ "raw": { "length": bytes }, "trigger": reason.name() }),
        ),
        TraceEvent::DatagramAcked { number } => (
            "transport:packets_acked",
            json!({ "packet_number_space": "application_data", "packet_numbers": [number] }),
        ),
        TraceEvent::DatagramLost { number, why } => (
            "recovery:packet_lost",
            json!({ "header": numbered(*number), "trigger": loss_name(*why) }),
        ),
        TraceEvent::Measured(measures) => ("recovery:metrics_updated", metrics(measures)),
        TraceEvent::BlockAnnounced { is_here, number, tag, length } => {
            let sender = match *is_here == is_client {
                true => VantagePoint::Client,
                false => VantagePoint::Server,
            };
            let owner = if *is_here { "local" } else { "remote" };
            (
                "haulier:block_announced",
                json!({
                    "owner": owner, "stream_id": stream_of(*number, sender), "tag": tag, "length": length,
                }),
            )
        }
        TraceEvent::BlockSent { .. } => ("haulier:block_sent", json!({})),
        TraceEvent::BlockReceived { tag } => ("haulier:block_received", json!({ "tag": tag })),
        TraceEvent::Closed(reason) => ("connectivity:connection_closed", closed(reason)),
        _ => return None,
    })
}

/// What an end says of itself, as far as QUIC has a name for it.
pub(super) fn parameters(owner: &str, parameters: &TraceParameters) -> Value {
    json!({
        "owner": owner,
        "max_idle_timeout": millis(parameters.idle_timeout),
        "max_udp_payload_size": parameters.max_datagram_bytes,
        "max_ack_delay": millis(parameters.max_ack_delay),
        "haulier_max_block_bytes": parameters.max_block_bytes,
        "haulier_credit": parameters.credit,
        "haulier_receive_buffer_bytes": parameters.receive_buffer_bytes,
        "haulier_channels": parameters.channels,
        "haulier_channel_bytes": parameters.channel_bytes,
    })
}

fn metrics(measures: &TraceMeasures) -> Value {
    let mut data = json!({
        "bytes_in_flight": measures.bytes_in_flight,
        "packets_in_flight": measures.datagrams_in_flight,
    });
    let times = [
        ("latest_rtt", measures.latest_rtt),
        ("min_rtt", measures.min_rtt),
        ("smoothed_rtt", measures.smoothed_rtt),
        ("rtt_variance", measures.rtt_variation),
    ];
    for (name, time) in times.into_iter().filter_map(|(name, time)| Some((name, time?))) {
        data[name] = json!(millis(time));
    }
    let numbers = [
        ("congestion_window", measures.window_bytes),
        ("pacing_rate", measures.pacing_rate_bps),
        ("haulier_bandwidth", measures.bandwidth_bps),
    ];
    for (name, number) in numbers.into_iter().filter_map(|(name, number)| Some((name, number?))) {
        data[name] = json!(number);
    }
    data
}

const fn state_name(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Responding => "handshake_started",
        ConnectionState::Confirming => "handshake_complete",
        ConnectionState::Connected => "handshake_confirmed",
        ConnectionState::Closing => "closing",
        _ => "closed",
    }
}

const fn loss_name(why: LossReason) -> &'static str {
    match why {
        LossReason::Overtaken => "reordering_threshold",
        LossReason::TimedOut => "time_threshold",
        _ => "no_room",
    }
}

fn closed(reason: &CloseReason) -> Value {
    let by = |owner: &str, code: CloseCode, words: &str| {
        let key = if code.is_application() { "application_code" } else { "connection_code" };
        let mut data = json!({ "owner": owner, "reason": words });
        data[key] = json!(code.0);
        data
    };
    match reason {
        CloseReason::Here(code) => by("local", *code, &code.to_string()),
        CloseReason::There { code, reason } => by("remote", *code, reason),
        CloseReason::TimedOut => json!({ "owner": "local", "trigger": "idle_timeout" }),
        CloseReason::ConnectionUnknown => {
            json!({ "owner": "remote", "trigger": "stateless_reset" })
        }
        other => json!({ "owner": "local", "trigger": "error", "reason": other.to_string() }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
