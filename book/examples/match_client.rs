//! A player: asks the matchmaker for a token, and joins the server that is in it.
//!
//! `cargo run --example match_client -- MATCHMAKER SESSION`

use haulier::{Client, Event};
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let matchmaker = args.next().ok_or("the address of the matchmaker?")?;
    let session = args.next().ok_or("your session?")?;
    let token = ask(&matchmaker, &session)?;
    let client = Client::connect(token.as_str())?;
    while let Some(event) = client.wait(Duration::from_secs(20))? {
        match event {
            Event::Block { data, .. } => {
                println!("the world is here: {} bytes", data.len());
                client.send_message("ready")?;
                client.finish(Duration::from_secs(5))?;
                return Ok(());
            }
            Event::Queued { place, .. } => println!("in line, at {place:?}"),
            Event::Closed(reason) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    Err("nothing for 20 s".into())
}

/// The least of HTTP. Yours has TLS.
fn ask(matchmaker: &str, session: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(matchmaker)?;
    write!(
        stream,
        "POST /join HTTP/1.1\r\nhost: {matchmaker}\r\nauthorization: Bearer {session}\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("this was no HTTP")?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("the matchmaker says: {body}").into());
    }
    Ok(body.to_owned())
}
