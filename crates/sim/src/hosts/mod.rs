//! Ready-made hosts: the two ends of haulier/1 and a peer of the article's wire, each with an application.
//!
//! An [`App`] is the application at one end of a connection; [`Script`] is the one that most tests use.
//! [`ArticleHost`] has chunks, and a game's packets beside them. In [`stream`] a block goes from disk to
//! disk.

mod article;
mod client;
mod crew;
pub mod game;
mod meter;
mod script;
mod server;
pub mod stream;

pub use article::{ArticleApp, ArticleHost};
pub use client::{ClientHost, Start};
pub use crew::Crew;
pub use meter::AmplificationMeter;
pub use script::{Events, Game, Listener, Script};
pub use server::{ServerHost, UNIX_TIME};

use haulier_core::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Connection, ConnectionConfig, Event};
use haulier_proto::credentials::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};

use crate::address;

/// The protocol id of every simulation.
pub const PROTOCOL_ID: u64 = 0x6861_756c_6965_7231;

/// The credentials of a server and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    /// Mode `open`, without encryption.
    Open,
    /// The shared [`secret`].
    Secret,
}

/// The secret of all hosts in mode `secret`.
#[must_use]
pub fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

/// The configurations of a server at the first [`address`](crate::address()) and of its clients.
#[must_use]
pub fn configs(keyed: Keyed, connection: ConnectionConfig) -> (ServerConfig, ClientConfig) {
    let (mut server, client) = match keyed {
        Keyed::Open => (ServerCredentials::default(), Credentials::Open),
        Keyed::Secret => (
            ServerCredentials::default().with_secret(secret()),
            Credentials::Secret { secret: secret(), identity: None },
        ),
    };
    server.open = keyed == Keyed::Open;
    let server = ServerConfig::new(PROTOCOL_ID, server)
        .with_addresses(vec![address(1)])
        .with_connection(connection);
    let client = ClientConfig::new(address(1), PROTOCOL_ID, client);
    (server, client.with_connection(connection))
}

/// The application at one end of a connection.
pub trait App: 'static {
    /// A client starts: for the first time, or [again](Self::begins_again).
    fn begin(&mut self, _now: Instant, _start: &mut Start) {}

    /// The connection has an event.
    fn hear(&mut self, now: Instant, event: Event);

    /// Its next deadline.
    fn wakes_at(&self) -> Option<Instant> {
        None
    }

    /// Its next deadline while the connection is closed: only [`work`](Self::work) is called then.
    fn works_at(&self) -> Option<Instant> {
        self.wakes_at()
    }

    /// Whether it has something to do now. A server accesses a connection only then.
    fn is_due(&self, now: Instant) -> bool {
        self.wakes_at().is_some_and(|at| at <= now)
    }

    /// Whether it takes no more events for now: they wait in the connection, and its credit limits the peer.
    /// A full application is due again at the time when it will no longer be full.
    fn is_full(&self) -> bool {
        false
    }

    /// Does the work that is due and does not need the connection, which may be closed.
    fn work(&mut self, _now: Instant) {}

    /// Acts on the connection, which is open.
    fn act(&mut self, _now: Instant, _connection: &mut Connection) {}

    /// Bytes that it holds, and that it gave the connection to send: no peer makes the machine hold them.
    fn own_bytes(&self) -> u64 {
        0
    }

    /// When a client whose connection has ended starts another.
    fn begins_again(&self, _now: Instant) -> Option<Instant> {
        None
    }
}
