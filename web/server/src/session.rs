//! One session of a browser: its datagrams in, and the machine's out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haulier::{Gateway, GatewayPeer, GatewayPeerConfig, Heard};
use tokio::time::{Instant, timeout, timeout_at};
use wtransport::endpoint::IncomingSession;
use wtransport::error::SendDatagramError;
use wtransport::{Connection, VarInt};

use crate::limits::{Place, WebLimits};
use crate::server::Origins;

/// The maximum size of a datagram of haulier here.
const DATAGRAM_BYTES: usize = 1200;

/// Why a session was closed, for the reader of a browser's log.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The browser closed it, or fell silent.
    ByBrowser,
    /// No verified datagram of haulier came for a while.
    Idle,
    /// The server has stopped.
    ServerStopped,
    /// Its datagrams have fewer than 1200 bytes.
    TooSmall,
}

/// The counters of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// Runs a session from its first packet to its end.
pub(crate) async fn run(
    incoming: IncomingSession,
    gateway: Gateway,
    limits: WebLimits,
    origins: Origins,
    counts: Arc<Counts>,
    mut place: Place,
) {
    let opened = timeout(limits.handshake, async {
        let Ok(request) = incoming.await else {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // QUIC's handshake has shown that the browser is where it says.
        place.prove();
        if !origins(request.origin()) {
            request.forbidden().await;
            counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let connection = request.accept().await.ok();
        counts.failed.fetch_add(u64::from(connection.is_none()), Ordering::Relaxed);
        connection
    });
    let connection = match opened.await {
        Ok(Some(connection)) => connection,
        Ok(None) => return,
        Err(_) => {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
    };
    counts.accepted.fetch_add(1, Ordering::Relaxed);
    let (code, reason): (u32, &[u8]) = match carry(&connection, &gateway, &limits, &counts).await {
        End::ByBrowser => return,
        End::Idle => (0, b"idle"),
        End::ServerStopped => (1, b"the server has stopped"),
        End::TooSmall => (2, b"haulier needs datagrams of 1200 bytes"),
    };
    connection.close(VarInt::from_u32(code), reason);
}

async fn carry(
    connection: &Connection,
    gateway: &Gateway,
    limits: &WebLimits,
    counts: &Counts,
) -> End {
    if connection.max_datagram_size().is_none_or(|bytes| bytes < DATAGRAM_BYTES) {
        return End::TooSmall;
    }
    let mut config = GatewayPeerConfig::new(connection.remote_address()).with_proven_address();
    if let Some(local) = connection.quic_connection().local_ip() {
        config = config.with_local(local);
    }
    let Ok(peer) = gateway.open(config) else { return End::ServerStopped };
    tokio::select! {
        end = receive(connection, &peer, limits) => end,
        end = send(connection, &peer, counts) => end,
    }
}

async fn receive(connection: &Connection, peer: &GatewayPeer, limits: &WebLimits) -> End {
    let mut ends_at = Instant::now() + limits.idle;
    loop {
        match timeout_at(ends_at, connection.receive_datagram()).await {
            Ok(Ok(datagram)) => match peer.handle_datagram(&mut datagram.to_vec()) {
                Ok(Heard::Verified) => ends_at = Instant::now() + limits.idle,
                // Anybody can send junk: no session is kept for it.
                Ok(_) => {}
                Err(_) => return End::ServerStopped,
            },
            Ok(Err(_)) => return End::ByBrowser,
            Err(_) => return End::Idle,
        }
    }
}

async fn send(connection: &Connection, peer: &GatewayPeer, counts: &Counts) -> End {
    while let Some(datagram) = peer.next_datagram().await {
        match connection.send_datagram(datagram) {
            Ok(()) => {}
            Err(SendDatagramError::NotConnected) => return End::ByBrowser,
            // The path has become narrower than QUIC promises: a loss like any other.
            Err(_) => drop(counts.lost.fetch_add(1, Ordering::Relaxed)),
        }
    }
    End::ServerStopped
}
