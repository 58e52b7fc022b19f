//! The Rust of `beside_rust.py`: the server for both clients, and the client that Python is compared with.
//!
//! ```text
//! peer serve          prints a ticket; a world for each that joins, and each message back
//! peer client TICKET  for each line of its input that work, and a line once it is done
//! ```

#![allow(clippy::unwrap_used, reason = "a bench program")]

use std::io::BufRead as _;
use std::time::Duration;

use bytes::Bytes;
use haulier::{
    Block, Client, Connect, Credentials, Event, Secret, Server, ServerConfig, ServerCredentials,
    ServerEvent,
};

const WORLD_BYTES: usize = 64 << 20;
const MESSAGE: [u8; 64] = [7; 64];
const MESSAGES: usize = 20_000;
/// Messages that are sent before their answers are read.
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["serve"] => serve(),
        ["client", address] => {
            println!("ready");
            for line in std::io::stdin().lock().lines() {
                match line.unwrap().as_str() {
                    "world" => take_world(address),
                    "messages" => exchange_messages(address),
                    other => panic!("{other:?} is nothing to do"),
                }
                println!("done");
            }
        }
        _ => panic!("serve, or: client ADDRESS"),
    }
}

fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

fn serve() {
    let config = ServerConfig::new(7, ServerCredentials::default().with_secret(secret()));
    let server = Server::bind("127.0.0.1:0", config).unwrap();
    let world = Block::new(1, vec![7; WORLD_BYTES]);
    println!("{}", server.local_addr());
    loop {
        match server.wait(PATIENCE).unwrap() {
            Some((id, ServerEvent::Connecting { request, .. })) if request[..] == *b"world" => {
                server.send_block(id, &world).unwrap();
            }
            Some((id, ServerEvent::Connection(Event::Message { data, .. }))) => {
                server.send_message(id, data).unwrap();
            }
            _ => {}
        }
    }
}

fn connect(address: &str, request: &[u8]) -> Client {
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    let mut connect = Connect::new(address.parse().unwrap(), 7, credentials);
    connect.request = request.to_vec();
    Client::connect(connect).unwrap()
}

fn take_world(address: &str) {
    let client = connect(address, b"world");
    loop {
        if let Event::Block { data, .. } = client.wait(PATIENCE).unwrap().unwrap() {
            assert_eq!(data.len(), WORLD_BYTES);
            return client.close(haulier::CloseCode::DONE, "");
        }
    }
}

fn exchange_messages(address: &str) {
    let client = connect(address, b"");
    while client.wait(PATIENCE).unwrap().unwrap() != Event::Connected {}
    let mut received = 0;
    for sent in 1..=MESSAGES {
        client.send_message(Bytes::from_static(&MESSAGE)).unwrap();
        while (sent % AT_ONCE == 0 || sent == MESSAGES) && received < sent {
            if let Event::Message { data, .. } = client.wait(PATIENCE).unwrap().unwrap() {
                assert_eq!(data, MESSAGE[..]);
                received += 1;
            }
        }
    }
    client.close(haulier::CloseCode::DONE, "");
}
