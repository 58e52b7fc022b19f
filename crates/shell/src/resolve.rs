//! Host names: HOST:PORT, all its addresses, and what is said if it has none.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::failure::{Failure, plain};
use crate::interrupt;
use crate::report::Report;

/// How often a wait for an answer checks for Ctrl-C; after the first of these it is said what is waited for.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Addresses of a name that are tried: a ticket has no more.
const MAX_ADDRESSES: usize = 8;

/// Why a text is no address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not HOST:PORT.
    #[error("{0} is no address: write HOST:PORT, 127.0.0.1:4016")]
    Form(String),
    /// The host has no address.
    #[error(
        "the name {name} does not resolve ({why}): is it spelled right, and is there a network? An address \
         does as well, as in 192.0.2.7:4016"
    )]
    Name {
        /// The host.
        name: String,
        /// In the system's words.
        why: String,
    },
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        match error {
            AddressError::Form(_) => Self::Usage(error.to_string()),
            AddressError::Name { .. } => Self::Name(error.to_string()),
        }
    }
}

/// An address with a port: `127.0.0.1:4016`, `[::1]:4016`, `localhost:4016`; the first that the name has.
pub fn address(text: &str) -> Result<SocketAddr, AddressError> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let name = name_of(text).ok_or_else(|| AddressError::Form(text.to_owned()))?;
    Ok(addresses(text, name)?[0])
}

/// All addresses of HOST:PORT, the likeliest first; `None` if this is not what the text looks like. The
/// system may take long: what is waited for is said, and Ctrl-C ends it.
pub fn place(text: &str, report: &Report) -> Result<Option<Vec<SocketAddr>>, Failure> {
    if let Ok(address) = text.parse() {
        return Ok(Some(vec![address]));
    }
    let Some(name) = name_of(text) else { return Ok(None) };
    let (sender, answer) = mpsc::sync_channel(1);
    let (asked, asked_name) = (text.to_owned(), name.to_owned());
    thread::spawn(move || {
        // After Ctrl-C the receiver is gone.
        let _gone = sender.send(addresses(&asked, &asked_name));
    });
    let mut is_said = false;
    loop {
        interrupt::check()?;
        match answer.recv_timeout(LOOK_UP) {
            Ok(found) => {
                report.finish_bar();
                let found = found?;
                let all: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
                report.detail(&format!("{name} is at {}", all.join(", ")));
                return Ok(Some(found));
            }
            Err(RecvTimeoutError::Timeout) if !is_said => {
                is_said = true;
                report.status("resolving", json!({ "name": name }), &format!("looking up {name}"));
            }
            Err(RecvTimeoutError::Timeout) => report.waiting(&format!("looking up {name}")),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Internal("the thread that looks up names broke down".into()));
            }
        }
    }
}

/// The host of HOST:PORT, if the text may be one.
fn name_of(text: &str) -> Option<&str> {
    let (name, port) = text.rsplit_once(':')?;
    let is_port = port.parse::<u16>().is_ok();
    let is_name = !name.is_empty() && !name.contains(|c: char| c == ':' || c.is_whitespace());
    (is_port && is_name).then_some(name)
}

/// At least one address, each of them once.
fn addresses(text: &str, name: &str) -> Result<Vec<SocketAddr>, AddressError> {
    let error = |why: String| AddressError::Name { name: name.to_owned(), why };
    let found = text.to_socket_addrs().map_err(|cause| error(words(&cause)))?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !all.contains(&address) && all.len() < MAX_ADDRESSES {
            all.push(address);
        }
    }
    if all.is_empty() { Err(error("it has no address".into())) } else { Ok(all) }
}

/// What the system says of a name.
fn words(error: &io::Error) -> String {
    let words = plain(error);
    words.rsplit_once(": ").map_or_else(|| words.clone(), |(_, why)| why.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for bad in
            ["nonsense", "127.0.0.1", "1.2.3.4:99999", ":4016", "a b:1", "::1:4016:x", "[::1]"]
        {
            assert!(matches!(address(bad), Err(AddressError::Form(_))), "{bad}");
        }
        assert_eq!(address("[::1]:4016").unwrap(), "[::1]:4016".parse().unwrap());
        assert!(address("localhost:4016").unwrap().ip().is_loopback());
    }

    #[test]
    fn a_name_without_an_address_is_named() {
        let text = address("no-such-host.invalid:4016").unwrap_err().to_string();
        assert!(text.starts_with("the name no-such-host.invalid does not resolve ("), "{text}");
    }
}
