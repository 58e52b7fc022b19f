//! A server that lets in who has a token of the matchmaker, and sends each the world.
//!
//! `cargo run --example match_server -- match.key [ADDR]`

use haulier::{Block, CloseCode, Event, Secret, TokenKey};
use haulier::{Listen, ServerConfig, ServerCredentials, ServerEvent};
use std::error::Error;
use std::time::Duration;

const GAME: u64 = 0x6d79_6761_6d65;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let key = read_key(&args.next().ok_or("the file with the token key?")?)?;
    let listen = Listen::bind(args.next().as_deref().unwrap_or("127.0.0.1:0"))?;
    let address = listen.local_addr();
    let credentials = ServerCredentials::default().with_token_key(key);
    // Those that tokens name: behind a router, the router's.
    let config = ServerConfig::new(GAME, credentials).with_addresses(vec![address]);
    let server = listen.start(config)?;
    // Not before: a token that is older than the server's start lets nobody in.
    println!("{address}");
    let world = Block::new(1, vec![b'w'; 500_000]);
    loop {
        while let Some((id, event)) = server.wait(Duration::from_secs(60))? {
            match event {
                ServerEvent::Connecting { token: Some(claims), .. } => {
                    let player = u64::from_le_bytes(claims.client_id);
                    println!("{} is {player}", String::from_utf8_lossy(&claims.user_data));
                    if server.send_block(id, &world).is_err() {
                        server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our world");
                    }
                }
                ServerEvent::Connection(Event::Message { data, .. }) => {
                    println!("{}", String::from_utf8_lossy(&data));
                }
                _ => {}
            }
        }
    }
}

/// What `haulier keygen --token` wrote.
fn read_key(path: &str) -> Result<TokenKey, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let hex = text.trim().strip_prefix("haulier-token-key1:").ok_or("this is no token key")?;
    let mut key = [0; 32];
    for (index, byte) in key.iter_mut().enumerate() {
        let digits = hex.get(2 * index..2 * index + 2).ok_or("the token key is cut off")?;
        *byte = u8::from_str_radix(digits, 16)?;
    }
    Ok(TokenKey { id: 1, key: Secret::from_bytes(key) })
}
