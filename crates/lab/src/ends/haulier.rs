//! The machines of haulier/1: a server that gives its client a block, and more when it is told to.

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, CloseReason, Connection, ConnectionConfig, Event};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::hosts::{ClientHost, Listener, PROTOCOL_ID, Script, ServerHost};
use haulier_sim::{Framed, HostId, World};

use super::{Ends, Homes, Reading, addresses};

/// How a connection ended, if it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending(Option<CloseReason>);

impl Listener for Ending {
    fn on_event(&mut self, _now: Instant, event: Event) {
        if let Event::Closed(reason) = event {
            self.0 = Some(reason);
        }
    }
}

/// What the two begin with.
pub(crate) struct Setup {
    pub(crate) credentials: (ServerCredentials, Credentials),
    pub(crate) connection: ConnectionConfig,
    /// For the client that asks.
    pub(crate) block: Block,
    /// Where the randomness of the server comes from, and of the client.
    pub(crate) keys: [[u8; 32]; 2],
    pub(crate) reading: Reading,
    pub(crate) seed: u64,
}

/// A server and its client.
pub(crate) struct Haulier {
    server: HostId<ServerHost<Script<Ending>>>,
    client: HostId<Framed<ClientHost<Script<Ending>>>>,
}

impl Haulier {
    pub(crate) fn new(world: &mut World, homes: Homes, setup: Setup) -> Self {
        let (at_server, at_client) = addresses();
        let Setup { credentials, connection, block, keys, reading, seed } = setup;
        let config = ServerConfig::new(PROTOCOL_ID, credentials.0);
        let config = ServerConfig { connection, ..config };
        let accept = move |_, _: &_| {
            let mut script = Script::heard_by(Ending::default());
            script.blocks = Some((block.clone(), 1));
            script
        };
        let server = ServerHost::with_seed(accept, config, keys[0]);
        let server = world.add_behind(server, at_server, homes.server);
        let config = ClientConfig::new(at_server, PROTOCOL_ID, credentials.1);
        let config = ClientConfig { connection, ..config };
        let script = Script::heard_by(Ending::default());
        let mut client = ClientHost::new(script, config, Instant::ZERO, 0);
        client.start.seed = keys[1];
        let client = world.add_behind(reading.socket(client, seed), at_client, homes.client);
        Self { server, client }
    }

    fn connection<'w>(&self, world: &'w World) -> Option<&'w Connection> {
        world.host(self.server).connection()
    }
}

impl Ends for Haulier {
    fn received(&self, world: &World) -> (usize, Instant) {
        let received = &world.host(self.client).inner.app.received;
        (received.len(), received.last().copied().unwrap_or_default())
    }

    fn slices_sent(&self, world: &World) -> u64 {
        self.connection(world).map_or(0, |connection| connection.stats().slices_sent)
    }

    fn is_done(&self, world: &World) -> bool {
        self.connection(world).is_some_and(Connection::all_acked)
    }

    fn failure(&self, world: &World) -> Option<String> {
        let of_server = world.host(self.server).past.last().and_then(|app| app.heard.0.as_ref());
        let of_client = world.host(self.client).inner.app.heard.0.as_ref();
        let of_client = of_client.map(|reason| format!("the client: {reason}"));
        of_client.or_else(|| of_server.map(|reason| format!("the server: {reason}")))
    }

    fn send(&self, world: &mut World, block: &Block) {
        world.act(self.server, |host, now| {
            if let Some(connection) = host.connection_mut() {
                connection.send_block(now, block).expect("room for one block");
            }
        });
    }

    fn dropped_bytes(&self, world: &World) -> u64 {
        world.host(self.client).dropped_bytes
    }
}
