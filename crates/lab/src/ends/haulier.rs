//! The machines of haulier/1: a server that sends its client a block, and more on request.

use haulier_proto::Instant;
use haulier_proto::client::ClientConfig;
use haulier_proto::connection::trace::{TraceEvent, TraceSecret};
use haulier_proto::connection::{Block, CloseReason, Connection, Event};
use haulier_proto::server::ServerConfig;
use haulier_sim::hosts::{ClientHost, Listener, Script, ServerHost};
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

/// A server and its client.
pub(crate) struct Haulier {
    server: HostId<ServerHost<Script<Ending>>>,
    client: HostId<Framed<ClientHost<Script<Ending>>>>,
}

impl Haulier {
    /// A server and a client with these configurations and seeds. The server sends the block to every
    /// client.
    pub(crate) fn new(
        world: &mut World,
        homes: Homes,
        ((server, client), keys): ((ServerConfig, ClientConfig), [[u8; 32]; 2]),
        block: &Block,
        reading: (Reading, u64),
    ) -> Self {
        Self::beginning(world, homes, ((server, client), keys), block, reading, Instant::ZERO)
    }

    /// A server and a client as in [`new`](Self::new), but the client begins at `begins`.
    pub(crate) fn beginning(
        world: &mut World,
        homes: Homes,
        ((server, client), keys): ((ServerConfig, ClientConfig), [[u8; 32]; 2]),
        block: &Block,
        (reading, seed): (Reading, u64),
        begins: Instant,
    ) -> Self {
        let (at_server, at_client) = addresses();
        let script = Script::default().sending(block.clone(), 1);
        let server = ServerHost::with_seed(move |_, _| script.clone(), server, keys[0]);
        let server = world.add_behind(server, at_server, homes.server);
        let mut client = ClientHost::new(Script::default(), client, begins, 0);
        client.start.seed = keys[1];
        let client = world.add_behind(reading.socket(client, seed), at_client, homes.client);
        Self { server, client }
    }

    /// The client's secrets, if its connection hands them out: once.
    pub(crate) fn take_secrets(&self, world: &mut World) -> Vec<TraceSecret> {
        world.act(self.client, |host, _| {
            let client = host.inner.client.iter_mut();
            let events = client.flat_map(|client| std::iter::from_fn(|| client.poll_trace()));
            let secrets = events.filter_map(|traced| match traced.event {
                TraceEvent::Secret(secret) => Some(secret),
                _ => None,
            });
            secrets.collect()
        })
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
