//! A `Server` and a `Client`, each with its network thread, and a thread of the application for each.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haulier::{
    Block, Client, Connect, ConnectionConfig, Credentials, Delivery, Event, Secret, Server,
    ServerConfig, ServerCredentials, ServerEvent,
};

use crate::table::{Crossing, cpu_of, spawn};

const PROTOCOL_ID: u64 = 7;

/// No crossing takes as long.
const MAX: Duration = Duration::from_secs(60);

/// A block of `bytes` bytes. Blocks of the same size are hashed once.
fn block(bytes: u64) -> Block {
    static BLOCKS: Mutex<BTreeMap<u64, Block>> = Mutex::new(BTreeMap::new());
    let new = || Block::new(1, vec![7; bytes as usize]);
    BLOCKS.lock().unwrap().entry(bytes).or_insert_with(new).clone()
}

pub(crate) fn run(bytes: u64, is_encrypted: bool, datagram_bytes: u16) -> Crossing {
    let secret = Secret::from_bytes([7; 32]);
    let (at_server, credentials) = match is_encrypted {
        true => (
            ServerCredentials::default().with_secret(secret.clone()),
            Credentials::Secret { secret, identity: None },
        ),
        false => (ServerCredentials::default().with_open_access(), Credentials::Open),
    };
    let connection = ConnectionConfig::default()
        .with_max_block_bytes(bytes)
        .with_max_datagram_bytes(datagram_bytes)
        .with_delivery(Delivery::Chunks);
    let config = ServerConfig::new(PROTOCOL_ID, at_server).with_connection(connection);
    let (block, server) = (block(bytes), Server::bind("127.0.0.1:0", config).unwrap());
    let to = server.local_addr();
    let serving = spawn("line-server", move || serve(&server, &block));
    let begun = Instant::now();
    let mut connect = Connect::new(to, PROTOCOL_ID, credentials);
    connect.connection = connection;
    let client = Client::connect(connect).unwrap();
    let mut left = bytes;
    while left > 0 {
        match client.wait(MAX).unwrap().expect("it goes on") {
            Event::Chunk { data, .. } => left -= data.len() as u64,
            Event::Closed(reason) => panic!("{reason}"),
            _ => {}
        }
    }
    let wall = begun.elapsed();
    let receiver = cpu_of("haulier-client");
    client.finish(MAX).unwrap();
    Crossing { bytes, wall, sender: serving.join().unwrap(), receiver }
}

/// Gives the block to one client. Returns what the network thread used.
fn serve(server: &Server, block: &Block) -> Duration {
    loop {
        let (id, event) = server.wait(MAX).unwrap().expect("it goes on");
        match event {
            ServerEvent::Connecting { .. } => {
                server.send_block(id, block).unwrap();
            }
            ServerEvent::Connection(Event::Closed(_)) => return cpu_of("haulier-server"),
            _ => {}
        }
    }
}
