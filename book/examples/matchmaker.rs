//! A matchmaker: players who are logged in ask it by HTTP, and get a connect token for a server.
//!
//! `cargo run --example matchmaker -- match.key SERVER [ADDR]`

use haulier::{Secret, TokenClaims, TokenKey, TokenServers, issue_token};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

const GAME: u64 = 0x6d79_6761_6d65; // the same in the server
const TOKEN_LASTS_S: u64 = 60; // from the answer to the last request of the client

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let key = read_key(&args.next().ok_or("the file with the token key?")?)?;
    let server: SocketAddr = args.next().ok_or("the address of the server?")?.parse()?;
    let listener = TcpListener::bind(args.next().as_deref().unwrap_or("127.0.0.1:0"))?;
    println!("{}", listener.local_addr()?);
    for player in listener.incoming() {
        // What is wrong with one player is no reason to end.
        if let Err(error) =
            player.map_err(Into::into).and_then(|player| answer(player, &key, server))
        {
            eprintln!("{error}");
        }
    }
    Ok(())
}

/// One request, one answer. In front of this there is TLS: a token is a password.
fn answer(mut player: TcpStream, key: &TokenKey, server: SocketAddr) -> Result<(), Box<dyn Error>> {
    player.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut session = None;
    // A stranger must not make this hold more than a small request.
    for line in BufReader::new((&player).take(8192)).lines() {
        let line = line?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                session = value.strip_prefix("Bearer ").map(str::to_owned);
            }
            None if line.is_empty() => break,
            _ => {}
        }
    }
    let (status, body) = match session.as_deref().and_then(player_of) {
        Some((id, name)) => ("200 OK", token(key, server, player.peer_addr()?, id, name)?),
        None => ("401 Unauthorized", "log in first".to_owned()),
    };
    let length = body.len();
    write!(
        player,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    Ok(())
}

/// Yours: who has this session. The number is the player's for as long as the account exists.
fn player_of(session: &str) -> Option<(u64, &'static str)> {
    [("alices-session", (42, "alice")), ("bobs-session", (43, "bob"))]
        .into_iter()
        .find_map(|(known, player)| (known == session).then_some(player))
}

/// One admission, of one player, to one server, within a minute.
fn token(
    key: &TokenKey,
    server: SocketAddr,
    player: SocketAddr,
    id: u64,
    name: &str,
) -> Result<String, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let claims = TokenClaims::new(now, now + TOKEN_LASTS_S, TokenServers::One(server))
        .with_client_id(id.to_le_bytes())
        .with_client_address(Some(player)) // saves a round trip: see below
        .with_user_data(name.into());
    Ok(issue_token(key, GAME, &claims)?.to_text())
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
