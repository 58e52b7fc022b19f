//! A world for players who join by UDP, with a ticket, and for players who join from a page: one server.
//!
//!     cargo xtask web
//!
//! builds the page and runs this. `world PAGE_DIRECTORY [HTTP_PORT]`.

mod http;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use haulier::{Block, Event, Server, ServerConfig, ServerCredentials, ServerEvent};
use haulier_web::{Certificate, WebServer};

/// A picture of 1024 x 1024 points, which is the world: three bytes for each, some 3 MB.
const SIDE: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let page: PathBuf = args.next().ok_or("world PAGE_DIRECTORY [HTTP_PORT]")?.into();
    let port: u16 = args.next().unwrap_or("8017".into()).parse()?;

    // One server for all players. The ticket is the same for both kinds, and so is the world.
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let world = Block::new(1, picture());
    let config = ServerConfig::new(7, credentials).with_first_block(Some(world));
    let server = Server::bind("127.0.0.1:0", config)?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("the server has a secret")?;

    // Browsers come in here. That is all a game adds.
    let certificate = Certificate::self_signed(["localhost", "127.0.0.1"]);
    let web = WebServer::start("127.0.0.1:0", certificate, &server)?;

    // The page, and what it needs to join: yours comes from your web server.
    let url = format!("https://{}/", web.local_addr());
    let text = ticket.to_text();
    println!("ticket for players by UDP: {text}");
    let site =
        http::serve(port, page, move || http::invitation(&url, &web.certificate_hashes(), &text))?;
    println!("open http://{site}/");

    loop {
        let Some((id, event)) = server.wait(Duration::from_secs(3600))? else { continue };
        match event {
            ServerEvent::Connecting { .. } => {
                println!("a player joins: {} are here", server.connections().len());
            }
            // What fails here concerns one player: a `?` would end the game for all.
            ServerEvent::Connection(Event::Connected) => {
                let welcome = format!("you are one of {}", server.connections().len());
                let _gone = server.send_message(id, welcome);
            }
            // What one says, all hear.
            ServerEvent::Connection(Event::Message { data, .. }) => {
                for other in server.connections() {
                    let _gone = server.send_message(other, data.clone());
                }
            }
            ServerEvent::Connection(Event::Closed(reason)) => {
                println!("a player is gone: {reason}");
            }
            _ => {}
        }
    }
}

/// Hills of some waves.
fn picture() -> Vec<u8> {
    let at = |x: usize, y: usize| {
        let (x, y) = (x as f32 / 80.0, y as f32 / 80.0);
        let height = (x.sin() + y.cos() + (x * 0.7 + y * 1.3).sin()) / 3.0;
        match height {
            deep if deep < -0.2 => [30, 60, (140.0 - deep * 100.0) as u8],
            low if low < 0.0 => [210, 200, 140],
            high => [40, (170.0 - high * 90.0) as u8, 60],
        }
    };
    (0..SIDE * SIDE).flat_map(|n| at(n % SIDE, n / SIDE)).collect()
}
