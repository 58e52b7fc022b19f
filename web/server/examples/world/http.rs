//! The least web server: the files of one directory, and `invitation.json`. For examples and tests; a game
//! has a site already.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What a page needs to join, as JSON.
pub(crate) fn invitation(url: &str, hashes: &[[u8; 32]], ticket: &str) -> String {
    let hex = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hashes: Vec<_> = hashes.iter().map(|hash| format!("\"{}\"", hex(hash))).collect();
    let hashes = hashes.join(",");
    format!(r#"{{"url":"{url}","certificateHashes":[{hashes}],"ticket":"{ticket}"}}"#)
}

/// Serves until the program ends. The invitation is made for each who asks, because the certificate changes.
pub(crate) fn serve(
    port: u16,
    directory: PathBuf,
    invitation: impl Fn() -> String + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let at = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever asks for nothing would keep the others waiting.
            let _set = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let _gone = answer(stream, &directory, &invitation);
        }
    });
    Ok(at)
}

fn answer(
    mut stream: TcpStream,
    directory: &Path,
    invitation: &impl Fn() -> String,
) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let name = path.split('?').next().unwrap_or_default().trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        Some("css") => "text/css",
        _ => "application/json",
    };
    let is_plain = name.chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it));
    let body = match name {
        "invitation.json" => Some(invitation().into_bytes()),
        name if is_plain && !name.starts_with('.') => fs::read(directory.join(name)).ok(),
        _ => None,
    };
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}
