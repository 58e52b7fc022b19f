//! Ready-made hosts: the two ends of haulier/1 and a peer of the article's wire, each with an application.
//!
//! An [`App`] is what happens on one connection, seen from either end; [`Script`] is the one that most tests
//! need. [`ArticleHost`] has chunks, and beside them a game's packets.

mod article;
mod client;
pub mod game;
mod meter;
mod script;
mod server;

pub use article::{ArticleApp, ArticleHost};
pub use client::{ClientHost, Start};
pub use meter::AmplificationMeter;
pub use script::{Events, Game, Listener, Script};
pub use server::{ServerHost, UNIX_TIME};

use haulier_core::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Connection, ConnectionConfig, Event};
use haulier_proto::credentials::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};

use crate::address;

/// The protocol id of everything simulated.
pub const PROTOCOL_ID: u64 = 0x6861_756c_6965_7231;

/// How a server and its clients know each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    /// Not at all, and nothing is encrypted.
    Open,
    /// By [`secret`].
    Secret,
}

/// The secret of everybody who has one.
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
    let server = ServerConfig::new(PROTOCOL_ID, server).with_connection(connection);
    let client = ClientConfig::new(address(1), PROTOCOL_ID, client);
    (server, client.with_connection(connection))
}

/// What happens on a connection, at one of its ends.
pub trait App: 'static {
    /// A client begins: the first time, or [again](Self::begins_again).
    fn begin(&mut self, _now: Instant, _start: &mut Start) {}

    /// Something happened.
    fn hear(&mut self, now: Instant, event: Event);

    /// When it has something to do on its connection, if nothing happens before.
    fn wakes_at(&self) -> Option<Instant> {
        None
    }

    /// Whether it has something to do now. A server touches no connection without being asked.
    fn is_due(&self, now: Instant) -> bool {
        self.wakes_at().is_some_and(|at| at <= now)
    }

    /// Does it. The connection is open.
    fn act(&mut self, _now: Instant, _connection: &mut Connection) {}

    /// When a client whose connection is over begins another.
    fn begins_again(&self, _now: Instant) -> Option<Instant> {
        None
    }
}
