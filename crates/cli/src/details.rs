//! What `--verbose` says of a connection: what was chosen at its beginning, and what was found at its end.

use std::net::SocketAddr;

use haulier::{Client, Credentials, Suite};
use haulier_files::Progress;
use haulier_shell::report::Report;
use haulier_shell::units::{in_millis, show_bytes};

use crate::access::Access;

/// Before a request is sent.
pub(crate) fn request(access: &Access, report: &Report) {
    if !report.is_verbose() {
        return;
    }
    let connect = &access.connect;
    let to: Vec<String> = connect.servers.iter().map(SocketAddr::to_string).collect();
    let with = match &connect.credentials {
        Credentials::Open => "nothing: everybody is let in, and nothing is encrypted",
        Credentials::Secret { identity: Some(_), .. } => "a secret, and the server's identity",
        Credentials::Secret { .. } => "a secret",
        Credentials::Token(_) => "a connect token",
        _ => "other credentials",
    };
    report.detail(&format!("addresses to try: {}", to.join(", ")));
    report.detail(&format!("let in by {with}; protocol id {:#x}", connect.protocol_id));
    report.detail(&format!(
        "{} copies of the request, with {} bytes about the files",
        connect.copies,
        connect.request.len()
    ));
}

/// Once there is a connection.
pub(crate) fn connected(client: &Client, report: &Report) {
    if !report.is_verbose() {
        return;
    }
    let Some(stats) = client.stats() else { return };
    let suite = match stats.suite {
        Some(Suite::Aes256Gcm) => "AES-256-GCM",
        Some(_) => "ChaCha20-Poly1305",
        None => "no encryption (open)",
    };
    report.detail(&format!(
        "from {} with {suite}; datagrams of up to {} bytes for now; round trip {:.1} ms",
        client.local_addr(),
        stats.max_datagram_bytes,
        in_millis(stats.rtt.unwrap_or_default()),
    ));
}

/// Once all is done.
pub(crate) fn ended(client: &Client, progress: &Progress, report: &Report) {
    if !report.is_verbose() {
        return;
    }
    let Some(stats) = client.stats() else { return };
    let wire = client.wire_bytes();
    let rate = match stats.bandwidth_bps {
        Some(bps) => format!("{:.1} Mbit/s", bps as f64 / 1e6),
        None => "not found, too little was sent from here".into(),
    };
    report.detail(&format!(
        "found on the way: datagrams of up to {} bytes; rate of what was sent {rate}; round trip {:.1} to \
         {:.1} ms",
        stats.max_datagram_bytes,
        in_millis(stats.min_rtt.unwrap_or_default()),
        in_millis(stats.rtt.unwrap_or_default()),
    ));
    report.detail(&format!(
        "datagrams: {} sent ({}, with the handshake), {} received ({}), {} of those sent lost; {} key \
         updates; moved to smaller datagrams {} times",
        stats.datagrams_sent,
        show_bytes(wire.sent),
        stats.datagrams_received,
        show_bytes(wire.received),
        stats.datagrams_lost,
        stats.key_updates,
        stats.black_holes,
    ));
    report.detail(&format!(
        "files: {} wanted, {} here already, {} resumed, {} copied from older versions (delta), {} came, {} \
         of that packed, which saved {}",
        show_bytes(progress.wanted_bytes),
        show_bytes(progress.here_bytes),
        show_bytes(progress.resumed_bytes),
        show_bytes(progress.copied_bytes),
        show_bytes(progress.wire_bytes),
        show_bytes(progress.packed_bytes),
        show_bytes(progress.saved_bytes),
    ));
}
