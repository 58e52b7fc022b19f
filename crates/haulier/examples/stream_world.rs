//! A level that opens while it loads: the tiles ahead of the player come first, and are walked on before the
//! rest of the level is here. Run it: `cargo run --example stream_world`.

use haulier::{Block, Client, CloseCode, Connect, ConnectionConfig, Delivery, Event};
use haulier::{Server, ServerConfig, ServerCredentials, ServerEvent};
use std::{collections::HashMap, error::Error, thread, time::Duration};

const TILE: u64 = 256 << 10; // one chunk, which is handed out as soon as it is verified
const TILES: u8 = 64;
const SPAWN: u8 = 40;
const WAIT: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(1, credentials))?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    thread::spawn(move || serve(&server).expect("a server that sends a level"));
    let chunks = ConnectionConfig::default().with_delivery(Delivery::Chunks);
    let connect = Connect::from(&ticket).with_connection(chunks).with_request([SPAWN]);
    let client = Client::connect(connect)?;
    let (mut loaded, mut next) = (Vec::new(), SPAWN);
    while loaded.len() < usize::from(TILES) {
        match client.wait(WAIT)?.ok_or("nothing for 20 s")? {
            Event::Chunk { offset, data, .. } => {
                assert!(data.iter().all(|byte| u64::from(*byte) == offset / TILE));
                loaded.push((offset / TILE) as u8);
                while next < TILES && loaded.contains(&next) {
                    println!("on tile {next} while {} of {TILES} are here", loaded.len());
                    next += 1; // the player walks east, as far as there is a level
                    client.send_message(vec![next])?;
                    assert!(next < TILES || loaded.len() < 40, "late: {loaded:?}");
                }
            }
            Event::Closed(reason) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    Ok(client.finish(WAIT).map(drop)?)
}

fn serve(server: &Server) -> Result<(), Box<dyn Error>> {
    let level: Vec<u8> = (0..TILES).flat_map(|tile| vec![tile; TILE as usize]).collect();
    let (level, mut players) = (Block::new(1, level), HashMap::new());
    while let Some((id, event)) = server.wait(WAIT)? {
        let place = match event {
            ServerEvent::Connecting { request, .. } => {
                server.set_max_rate_bps(id, 200_000_000); // some 0.7 s for all of it
                let Ok(block) = server.send_block(id, &level) else {
                    server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our level");
                    continue;
                };
                players.insert(id, block);
                request
            }
            ServerEvent::Connection(Event::Message { data, .. }) => data,
            _ => continue,
        };
        if let (Some(block), Some(tile)) = (players.get(&id), place.first()) {
            server.prefer_range(id, *block, u64::from(*tile) * TILE..u64::from(TILES) * TILE);
        }
    }
    Ok(())
}
