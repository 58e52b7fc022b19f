//! A server and a client, the events of both in one thread; ends that vanish; and an executor.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use haulier::proto::client::ClientConfig;
use haulier::udp::{Clock, Runner, Socket};
use haulier::{
    Client, CloseReason, ConnectionId, Credentials, Event, Secret, Server, ServerConfig,
    ServerCredentials, ServerEvent,
};
use haulier_proto::server::ServerMachine;

/// After this a test has failed, however slow the machine is.
pub(crate) const MAX: Duration = Duration::from_secs(60);

pub(crate) const PROTOCOL_ID: u64 = 7;

pub(crate) fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

pub(crate) fn with_secret() -> ServerConfig {
    let credentials = ServerCredentials::default().with_secret(secret());
    ServerConfig::new(PROTOCOL_ID, credentials)
}

pub(crate) fn bind(config: ServerConfig) -> Server {
    Server::bind("127.0.0.1:0", config).unwrap()
}

/// Bytes that are not all alike, the same each time.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}

/// What a client with the secret asks of this server. Its blocks may use all of loopback.
pub(crate) fn config_for(server: &Server) -> ClientConfig {
    config_at(server.local_addr())
}

/// What a client with the secret asks of the server at this address. Its blocks may use all of loopback.
pub(crate) fn config_at(server: SocketAddr) -> ClientConfig {
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    let mut config = ClientConfig::new(server, PROTOCOL_ID, credentials);
    config.connection.max_rate_bps = 200_000_000;
    config
}

/// A server that can be killed: dropped, it says nothing.
pub(crate) fn mortal_server(config: ServerConfig) -> (Runner<ServerMachine>, SocketAddr) {
    let (clock, socket) = (Clock::start(), Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let address = socket.local_addr();
    let machine = ServerMachine::new(clock.now(), 0, config, [5; 32]).unwrap();
    (Runner::new(machine, socket, clock), address)
}

/// The least executor: polls in this thread, and sleeps until it is woken.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut future, began) = (pin!(future), Instant::now());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(began.elapsed() < MAX, "it was not woken");
        thread::park_timeout(MAX);
    }
}

/// A server and a client of it.
pub(crate) struct Pair {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) at_server: Vec<(ConnectionId, ServerEvent)>,
    pub(crate) at_client: Vec<Event>,
}

impl Pair {
    pub(crate) fn new(server: Server, client: Client) -> Self {
        Self { server, client, at_server: Vec::new(), at_client: Vec::new() }
    }

    /// A client with the secret, connected on both sides.
    pub(crate) fn connected(config: ServerConfig) -> Self {
        let server = bind(config);
        let client = Client::connect(config_for(&server)).unwrap();
        let mut pair = Self::new(server, client);
        pair.until(|pair| pair.has_connected());
        pair
    }

    /// Takes the events of both until it is so.
    ///
    /// # Panics
    /// If that takes longer than [`MAX`].
    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let (server, client) = (&self.at_server, &self.at_client);
            assert!(began.elapsed() < MAX, "server: {server:?}, client: {client:?}");
            self.turn();
        }
    }

    pub(crate) fn turn(&mut self) {
        while let Some(event) = self.server.poll().unwrap() {
            self.at_server.push(event);
        }
        while let Some(event) = self.client.wait(Duration::from_millis(1)).unwrap() {
            self.at_client.push(event);
        }
    }

    pub(crate) fn has_connected(&self) -> bool {
        let at_server = |(_, event): &(_, ServerEvent)| {
            matches!(event, ServerEvent::Connection(Event::Connected))
        };
        self.at_client.contains(&Event::Connected) && self.at_server.iter().any(at_server)
    }

    /// The server's name for its one client.
    pub(crate) fn id(&self) -> ConnectionId {
        self.at_server[0].0
    }

    /// Why the client is at its end, once it is.
    pub(crate) fn client_end(&self) -> Option<&CloseReason> {
        self.at_client.iter().find_map(end_of)
    }

    /// Why the connection is at its end, at the server.
    pub(crate) fn server_end(&self) -> Option<&CloseReason> {
        self.at_server.iter().find_map(|(_, event)| match event {
            ServerEvent::Connection(event) => end_of(event),
            _ => None,
        })
    }

    /// How many such events the client had.
    pub(crate) fn client_count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.at_client.iter().filter(|event| is_it(event)).count()
    }

    /// How many such events the server had from connections.
    pub(crate) fn server_count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        let is_it = |event: &ServerEvent| match event {
            ServerEvent::Connection(event) => is_it(event),
            _ => false,
        };
        self.at_server.iter().filter(|(_, event)| is_it(event)).count()
    }
}

fn end_of(event: &Event) -> Option<&CloseReason> {
    match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    }
}
