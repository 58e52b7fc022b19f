//! The server of docs/FIRST-JOIN.md: it prints a ticket, and gives its world to whoever joins with it.
//!
//!     cargo run --example first_join_server

use haulier::{Block, Event, Server, ServerConfig, ServerCredentials, ServerEvent};
use std::time::Duration;

fn main() {
    if let Err(error) = serve() {
        eprintln!("no server: {error}");
        std::process::exit(1);
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let world = Block::new(1, vec![b'w'; 500_000]); // hashed once, whoever gets it
    let config = ServerConfig::new(1, credentials).with_first_block(Some(world));
    let server = Server::bind("127.0.0.1:0", config)?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    println!("{}", ticket.to_text());
    loop {
        while let Some((_, event)) = server.wait(Duration::from_secs(60))? {
            if let ServerEvent::Connection(Event::Message { data, .. }) = event {
                println!("a client says {}", String::from_utf8_lossy(&data));
            }
        }
    }
}
