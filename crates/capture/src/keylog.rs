//! The key log: the secrets of connections, a line each (VIEWS, "The trace of a connection").

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};

use haulier_proto::connection::Suite;
use haulier_proto::credentials::Secret;
use haulier_proto::internals::{TrafficSecret, WireId};

/// The maximum number of lines that are read. A connection has four.
pub const MAX_LINES: usize = 1 << 20;

/// The longest line, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// The maximum number of keys that are kept for one id. An id has several if a server and a client, or two
/// servers that got the same request, have written to one file.
const MAX_KEYS: usize = 8;

/// Why a key log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// A line is not one of the four kinds, or is not written as its kind requires.
    #[error("line {line} of the key log {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It has more than [`MAX_LINES`].
    #[error("the key log has more than {MAX_LINES} lines")]
    TooLong,
    /// It could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The key of one of the two messages of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageKey {
    pub(crate) key: Secret,
    pub(crate) associated: Vec<u8>,
}

/// The first secret of one direction of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectionKey {
    pub(crate) client: WireId,
    pub(crate) server: WireId,
    pub(crate) suite: Suite,
    pub(crate) first: TrafficSecret,
}

/// The secrets of connections.
#[derive(Debug, Default)]
pub struct KeyLog {
    /// By the client's id.
    pub(crate) hellos: HashMap<WireId, Vec<MessageKey>>,
    pub(crate) welcomes: HashMap<WireId, Vec<MessageKey>>,
    /// By the receiver's id, which is the one on the wire.
    pub(crate) to_server: HashMap<WireId, Vec<DirectionKey>>,
    pub(crate) to_client: HashMap<WireId, Vec<DirectionKey>>,
}

impl KeyLog {
    /// Reads all of it. A last line without a line end is read too: the log may still be being written.
    ///
    /// # Errors
    /// [`KeyLogError`], with the number of the line.
    pub fn read(from: impl BufRead) -> Result<Self, KeyLogError> {
        let (mut log, mut from) = (Self::default(), from);
        for number in 1.. {
            let mut line = Vec::new();
            if from.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if number > MAX_LINES {
                return Err(KeyLogError::TooLong);
            }
            if line.len() as u64 > MAX_LINE_BYTES {
                return Err(KeyLogError::Line { line: number, what: "is longer than 1024 bytes" });
            }
            log.take_in(&line).map_err(|what| KeyLogError::Line { line: number, what })?;
        }
        Ok(log)
    }

    /// Whether it has no secret at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let messages = self.hellos.len() + self.welcomes.len();
        messages + self.to_server.len() + self.to_client.len() == 0
    }

    fn take_in(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "is no text")?.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let fields: Vec<&str> = line.split(' ').collect();
        match *fields.as_slice() {
            [kind @ ("HELLO" | "WELCOME"), client, key, associated] => {
                let key = MessageKey { key: secret(key)?, associated: bytes(associated)? };
                let keys = if kind == "HELLO" { &mut self.hellos } else { &mut self.welcomes };
                keep(keys, id(client)?, key);
            }
            [kind @ ("CLIENT" | "SERVER"), client, server, suite, first] => {
                let (client, server) = (id(client)?, id(server)?);
                let suite = suite.parse().ok().and_then(Suite::from_u8);
                let suite = suite.filter(|suite| suite.is_built_in());
                let suite = suite.ok_or("has an unknown cipher suite: there are 0 and 1")?;
                let first = TrafficSecret::new(secret(first)?);
                let key = DirectionKey { client, server, suite, first };
                match kind {
                    "CLIENT" => keep(&mut self.to_server, server, key),
                    _ => keep(&mut self.to_client, client, key),
                }
            }
            ["HELLO" | "WELCOME" | "CLIENT" | "SERVER", ..] => {
                return Err("has too few or too many fields");
            }
            _ => return Err("begins with none of HELLO, WELCOME, CLIENT, SERVER and #"),
        }
        Ok(())
    }
}

fn keep<K: PartialEq>(keys: &mut HashMap<WireId, Vec<K>>, id: WireId, key: K) {
    let keys = keys.entry(id).or_default();
    if keys.len() < MAX_KEYS && !keys.contains(&key) {
        keys.push(key);
    }
}

fn id(hex: &str) -> Result<WireId, &'static str> {
    array(hex, "has an id that is not 8 bytes in hex").map(WireId)
}

fn secret(hex: &str) -> Result<Secret, &'static str> {
    array(hex, "has a secret that is not 32 bytes in hex").map(Secret::from_bytes)
}

fn array<const N: usize>(hex: &str, what: &'static str) -> Result<[u8; N], &'static str> {
    bytes(hex).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(what)
}

fn bytes(hex: &str) -> Result<Vec<u8>, &'static str> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err("has half a byte in hex");
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    pairs.iter().map(byte).collect::<Option<_>>().ok_or("has bytes that are not in hex")
}

#[cfg(test)]
mod tests;
