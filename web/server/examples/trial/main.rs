//! What the tests of the page and the measurements have at the other end: a server for both kinds of players,
//! each kind over an emulated link, and a native player to compare with.
//!
//! `trial PAGE_DIRECTORY LINK BYTES [SEED [cubic|one-seat]]` prints a line of JSON with all that a page
//! needs. LINK is a profile of the simulator (`cable`, `mobile`, ...), or `none`. Commands come as
//! lines: `native` joins natively, `native-up` sends something after that, `close` ends all connections
//! with a reason, `renew` makes a new certificate, `restart` has the sessions of browsers broken and a
//! new server for them, `heard` says how much of what is counted has come, `gone` ends the program
//! without a word.

#[path = "../world/http.rs"]
mod http;
#[path = "../../../../crates/lab-cli/src/relay.rs"]
#[allow(dead_code, reason = "the command line's own demo counts what a link did")]
mod relay;

use std::error::Error;
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use haulier::{
    Block, Client, CloseCode, Connect, Event, Order, Secret, Server, ServerConfig,
    ServerCredentials, ServerEvent, Ticket, TicketAccess, TokenClaims, TokenKey, TokenServers,
};
use haulier_sim::Profile;
use haulier_sim::profile::join_limit;
use haulier_web::{Certificate, WebLimits, WebServer};

use relay::Relay;

const PROTOCOL_ID: u64 = 7;

/// The messages of a player that are measured: their channel, number and size.
const UP: u8 = 9;
const MESSAGES: u32 = 64;
const MESSAGE_BYTES: usize = 16 << 10;

/// What the last one begins with.
const LAST: u8 = 255;

/// A block of a player with this tag is declined, with this code; others come back.
const UNWANTED: (u64, u32) = (13, 4);

/// The emulated link to this server, or none.
fn over(
    profile: Option<&Profile>,
    seed: u64,
    to: SocketAddr,
) -> Result<SocketAddr, Box<dyn Error>> {
    let Some(profile) = profile else { return Ok(to) };
    let relay = Relay::start(&profile.link(), seed)?;
    relay.set_receiver(to);
    let near = relay.near();
    // It runs until the program ends.
    std::mem::forget(relay);
    Ok(near)
}

/// The bytes that the test computes too.
fn world(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [page, link, bytes, rest @ ..] = &args[..] else {
        return Err("trial PAGE_DIRECTORY LINK BYTES [SEED [cubic|one-seat]]".into());
    };
    let seed = rest.first().map_or(Ok(1), |seed| seed.parse())?;
    let profile = match link.as_str() {
        "none" => None,
        name => Some(Profile::named(name).ok_or("no such profile")?),
    };
    let world = Block::new(1, world(bytes.parse()?));

    let key = TokenKey { id: 1, key: haulier::random_secret()? };
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let mut config = ServerConfig::new(PROTOCOL_ID, credentials.with_token_key(key.clone()))
        .with_first_block(Some(world.clone()));
    let asked = rest.get(1).map(String::as_str);
    if asked == Some("one-seat") {
        config.limits.connections = 1;
    }
    let server = Server::bind("127.0.0.1:0", config)?;
    let certificate = || Certificate::self_signed(["localhost", "127.0.0.1"]);
    let mut limits = WebLimits::default();
    // To measure the cost of QUIC's own congestion control beneath ours.
    limits.has_quic_congestion_control = asked == Some("cubic");
    let web = WebServer::start_with("127.0.0.1:0", certificate(), &server, limits)?;
    let near = over(profile, seed, server.local_addr())?;
    let url = format!("https://{}/", over(profile, seed, web.local_addr())?);

    let ticket = server.ticket(&[near])?.ok_or("the server has a secret")?;
    let wrong = TicketAccess::Secret(Secret::from_bytes([7; 32]));
    let wrong = Ticket::new(vec![near], PROTOCOL_ID, wrong)?.to_text();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let token = |issued, expiry| {
        let claims = TokenClaims::new(issued, expiry, TokenServers::Every);
        haulier::issue_token(&key, PROTOCOL_ID, &claims).map(|token| token.to_text())
    };
    let (token, expired) = (token(now, now + 600)?, token(now - 60, now - 1)?);

    let (said, commands) = mpsc::channel();
    let waker = server.waker();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _over = said.send(line);
            waker.wake_by_ref();
        }
        std::process::exit(0);
    });
    let text = ticket.to_text();
    let limit =
        profile.map_or(Duration::ZERO, |it| join_limit(&it.link(), world.data().len() as u64));
    let (hashes, invited) = (web.certificate_hashes(), text.clone());
    let line = http::invitation(&url, &hashes, &text);
    let at = web.local_addr();
    let web = Arc::new(Mutex::new(Some(web)));
    let of_site = Arc::clone(&web);
    let hashes = move || with(&of_site, WebServer::certificate_hashes).unwrap_or_default();
    let invite = move || http::invitation(&url, &hashes(), &invited);
    let site = http::serve(0, page.into(), invite)?;
    println!(
        r#"{{"site":"http://{site}/","invitation":{line},"wrong":"{wrong}","token":"{token}","expired":"{expired}","limit_ms":{:.1}}}"#,
        limit.as_secs_f64() * 1e3
    );
    let mut heard_bytes = 0;
    loop {
        if let Some((id, event)) = server.wait(Duration::from_secs(3600))? {
            match event {
                // Messages on this channel are counted, and the last one is answered.
                ServerEvent::Connection(Event::Message { data, channel: UP })
                    if data.first() == Some(&LAST) =>
                {
                    let _gone = server.send_message(id, &b"got it all"[..]);
                }
                ServerEvent::Connection(Event::Message { channel: UP, data }) => {
                    heard_bytes += data.len();
                }
                ServerEvent::Connection(Event::BlockAnnounced { block, tag, .. })
                    if tag == UNWANTED.0 =>
                {
                    server.decline_block(id, block, UNWANTED.1);
                }
                ServerEvent::Connection(Event::Block { tag, data }) => {
                    let _gone = server.send_block(id, &Block::new(tag, data));
                }
                ServerEvent::Connection(Event::BlockDeclined { code, .. }) => {
                    println!(r#"{{"declined":{code}}}"#);
                }
                // What one says, all hear. A packet comes back.
                ServerEvent::Connection(Event::Message { data, channel }) => {
                    for other in server.connections() {
                        let _gone =
                            server.send_message_on(other, channel, Order::Ordered, data.clone());
                    }
                }
                ServerEvent::Connection(Event::Packet { data, .. }) => {
                    let _gone = server.send_packet(id, data);
                }
                _ => {}
            }
        }
        for command in commands.try_iter() {
            match command.as_str() {
                "native" | "native-up" => drop(thread::spawn({
                    let (text, world, is_up) =
                        (text.clone(), world.clone(), command == "native-up");
                    move || match native(&text, &world, is_up) {
                        Ok(took) => println!(r#"{{"native_ms":{:.1}}}"#, took.as_secs_f64() * 1e3),
                        Err(error) => println!(r#"{{"error":"{error}"}}"#),
                    }
                })),
                "close" => {
                    for id in server.connections() {
                        server.close(id, CloseCode(300), "kicked");
                    }
                }
                "renew" => drop(with(&web, WebServer::renew_certificate)),
                "restart" => {
                    let mut front = web.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(front.take());
                    *front = Some(WebServer::start_with(at, certificate(), &server, limits)?);
                    println!(r#"{{"restarted":true}}"#);
                }
                "heard" => println!(r#"{{"heard_bytes":{heard_bytes}}}"#),
                "gone" => std::process::exit(0),
                "stats" => println!(
                    r#"{{"stats":"{:?} {:?} {:?}"}}"#,
                    with(&web, WebServer::stats),
                    server.gateway().stats(),
                    server
                        .connections()
                        .iter()
                        .map(|&id| server.connection_stats(id))
                        .collect::<Vec<_>>()
                ),
                other => println!(r#"{{"error":"no such command: {other}"}}"#),
            }
        }
    }
}

/// Asks the server for browsers; `None` between two.
fn with<T>(web: &Mutex<Option<WebServer>>, ask: impl FnOnce(&WebServer) -> T) -> Option<T> {
    web.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ask)
}

/// Joins natively, and says how long it took from the first call to the whole block; or, after that, until
/// the server had all of a megabyte of messages.
fn native(
    ticket: &str,
    world: &Block,
    is_up: bool,
) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    let mut began = Instant::now();
    let mut left = 0;
    let client = Client::connect(Connect::try_from(ticket)?)?;
    while let Some(event) = client.wait(Duration::from_secs(60))? {
        match event {
            Event::Block { data, .. } if data == world.data() && !is_up => {
                return Ok(began.elapsed());
            }
            Event::Block { .. } => (began, left) = (Instant::now(), MESSAGES),
            Event::Message { data, .. } if &data[..] == b"got it all" => return Ok(began.elapsed()),
            Event::Closed(reason) => return Err(reason.to_string().into()),
            _ => {}
        }
        while left > 0 {
            let message = vec![if left == 1 { LAST } else { 0 }; MESSAGE_BYTES];
            match client.send_message_on(UP, Order::Ordered, message) {
                Ok(_number) => left -= 1,
                // An event says when there is room again.
                Err(_full) => break,
            }
        }
    }
    Err("nothing came for a minute".into())
}
