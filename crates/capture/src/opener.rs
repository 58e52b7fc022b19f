//! Opens what haulier/1 seals, with the secrets of a key log, and writes it as mode `open` would have.

use std::collections::HashMap;

use haulier_proto::connection::Suite;
use haulier_proto::internals::{
    AeadKey, DATA_HEADER_BYTES, DataHeader, Kind, Mode, RequestParts, ResponseHeader, Role, Source,
    TAG_BYTES, WireId, open_check, open_tag,
};

use crate::direction::{Ciphertext, Direction, Plaintext};
use crate::keylog::{KeyLog, MessageKey};

/// Bytes of an ephemeral public key, before what a message of the handshake seals.
const EPHEMERAL_BYTES: usize = 32;

/// The least bytes of a response (STANDARD-1, H-3.2a).
const MIN_RESPONSE_BYTES: usize = 64;

/// What was sealed in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The datagram as it would be in mode `open`.
    pub datagram: Vec<u8>,
    /// Its whole packet number; a request has none.
    pub number: Option<u64>,
    /// The key updates before it.
    pub key_updates: u64,
}

/// Why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// There is nothing sealed in it: it is of a kind that has all in the clear, of mode `open`, or not of
    /// haulier/1.
    Nothing,
    /// The key log has no key for its id.
    NoKey,
    /// The keys for its id do not open it: it is forged, damaged, or of another connection.
    WrongKey,
}

/// Follows the connections of a capture.
pub struct Opener {
    protocol_id: u64,
    log: KeyLog,
    /// By the id on the wire, which is the receiver's.
    to_server: HashMap<WireId, Vec<Direction>>,
    to_client: HashMap<WireId, Vec<Direction>>,
}

impl Opener {
    /// With these secrets. What is opened gets checks and tags of mode `open` with this protocol id.
    #[must_use]
    pub fn new(mut log: KeyLog, protocol_id: u64) -> Self {
        let directions = |keys: HashMap<WireId, Vec<_>>| {
            let directions = |keys: Vec<_>| keys.into_iter().map(Direction::new).collect();
            keys.into_iter().map(|(id, keys)| (id, directions(keys))).collect()
        };
        let to_server = directions(std::mem::take(&mut log.to_server));
        let to_client = directions(std::mem::take(&mut log.to_client));
        Self { protocol_id, log, to_server, to_client }
    }

    /// Whether the log has a key for the connection that this datagram names by its id.
    #[must_use]
    pub fn knows(&self, datagram: &[u8]) -> bool {
        let Some(id) = datagram.get(1..9).and_then(|id| id.try_into().ok()).map(WireId) else {
            return false;
        };
        match Kind::of(datagram) {
            Ok(Kind::Data { from: Role::Client, .. }) => self.to_server.contains_key(&id),
            Ok(Kind::Data { from: Role::Server, .. } | Kind::Response) => {
                self.to_client.contains_key(&id)
            }
            _ => false,
        }
    }

    /// Opens a datagram.
    ///
    /// # Errors
    /// [`Sealed`] if nothing was opened.
    pub fn open(&mut self, datagram: &[u8]) -> Result<Opened, Sealed> {
        match Kind::of(datagram) {
            Ok(Kind::Request) => self.request(datagram),
            Ok(Kind::Response) => self.response(datagram),
            Ok(Kind::Data { .. }) => self.data(datagram),
            _ => Err(Sealed::Nothing),
        }
    }

    fn request(&self, datagram: &[u8]) -> Result<Opened, Sealed> {
        let parts = RequestParts::read(datagram).map_err(|_| Sealed::Nothing)?;
        if parts.mode.source == Source::Open {
            return Err(Sealed::Nothing);
        }
        let hello = message(self.log.hellos.get(&parts.client_id), parts.hello_message)?;
        let mode = Mode { source: Source::Open, identity: false };
        let open = RequestParts { mode, token: &[], hello_message: &hello, ..parts };
        let mut written = Vec::new();
        // The open request is shorter. Random bytes fill the difference: those of the message and its
        // padding.
        let fits = open.write(&mut written, |padding| {
            let from = parts.checked.len().saturating_sub(padding.len());
            padding.copy_from_slice(&parts.checked[from..]);
        });
        if !fits {
            return Err(Sealed::WrongKey);
        }
        written.extend(open_check(self.protocol_id, &written));
        Ok(Opened { datagram: written, number: None, key_updates: 0 })
    }

    fn response(&mut self, datagram: &[u8]) -> Result<Opened, Sealed> {
        let header = ResponseHeader::read(datagram).map_err(|_| Sealed::Nothing)?;
        let header_bytes = ResponseHeader::bytes(header.welcome_message.len());
        let (associated, text, tag) = parts(datagram, header_bytes).ok_or(Sealed::Nothing)?;
        if self.is_open(datagram) {
            return Err(Sealed::Nothing);
        }
        let welcome = message(self.log.welcomes.get(&header.to), header.welcome_message)?;
        let sealed = Ciphertext { number: header.number, phase: false, associated, text, tag };
        let (plain, server) = open_any(self.to_client.get_mut(&header.to), sealed, |d| d.server)?;
        let mut written = Vec::new();
        ResponseHeader { welcome_message: &welcome, ..header }.write(&mut written);
        // A response of mode `open` is filled up in the same way.
        let bytes = written.len() + plain.frames.len() + size_of_val(&open_tag(0, [0; 8], &[]));
        written.resize(written.len() + MIN_RESPONSE_BYTES.saturating_sub(bytes), 0);
        Ok(self.opened(written, plain, server))
    }

    fn data(&mut self, datagram: &[u8]) -> Result<Opened, Sealed> {
        let header = DataHeader::read(datagram).map_err(|_| Sealed::Nothing)?;
        let (associated, text, tag) = parts(datagram, DATA_HEADER_BYTES).ok_or(Sealed::Nothing)?;
        if self.is_open(datagram) {
            return Err(Sealed::Nothing);
        }
        let sealed =
            Ciphertext { number: header.number, phase: header.phase, associated, text, tag };
        let (plain, sender) = match header.from {
            Role::Client => open_any(self.to_server.get_mut(&header.to), sealed, |d| d.client)?,
            Role::Server => open_any(self.to_client.get_mut(&header.to), sealed, |d| d.server)?,
        };
        let mut written = Vec::new();
        DataHeader { phase: false, ..header }.write(&mut written);
        Ok(self.opened(written, plain, sender))
    }

    /// Appends the frames and the tag of mode `open`.
    fn opened(&self, mut written: Vec<u8>, plain: Plaintext, sender: WireId) -> Opened {
        written.extend(plain.frames);
        let tag = open_tag(self.protocol_id, sender.0, &written);
        written.extend(tag);
        let Plaintext { number, key_updates, .. } = plain;
        Opened { datagram: written, number: Some(number), key_updates }
    }

    /// Whether it has the right tag of mode `open`.
    fn is_open(&self, datagram: &[u8]) -> bool {
        is_open(self.protocol_id, datagram)
    }
}

/// Whether a response or data has the right tag of mode `open` with this protocol id.
#[must_use]
pub(crate) fn is_open(protocol_id: u64, datagram: &[u8]) -> bool {
    let Some((before, tag)) = datagram.split_last_chunk::<12>() else { return false };
    let sender = tag.first_chunk::<8>().copied().unwrap_or_default();
    open_tag(protocol_id, sender, before) == *tag
}

/// What is before the frames, the frames, and the tag.
fn parts(datagram: &[u8], header_bytes: usize) -> Option<(&[u8], &[u8], &[u8; TAG_BYTES])> {
    let (before, tag) = datagram.split_last_chunk::<TAG_BYTES>()?;
    let (associated, text) = before.split_at_checked(header_bytes)?;
    Some((associated, text, tag))
}

/// The payload of a message of the handshake: an ephemeral key, then what is sealed.
fn message(keys: Option<&Vec<MessageKey>>, message: &[u8]) -> Result<Vec<u8>, Sealed> {
    let keys = keys.ok_or(Sealed::NoKey)?;
    let opened = keys.iter().find_map(|MessageKey { key, associated }| {
        let (text, tag) = message.get(EPHEMERAL_BYTES..)?.split_last_chunk()?;
        let mut text = text.to_vec();
        // Noise seals with ChaCha20-Poly1305, each key once, with nonce 0.
        let key = AeadKey::new(key, Suite::ChaCha20Poly1305).ok()?;
        key.open(0, associated, &mut text, tag).ok()?;
        Some(text)
    });
    opened.ok_or(Sealed::WrongKey)
}

fn open_any(
    directions: Option<&mut Vec<Direction>>,
    sealed: Ciphertext<'_>,
    sender: impl Fn(&Direction) -> WireId,
) -> Result<(Plaintext, WireId), Sealed> {
    let directions = directions.ok_or(Sealed::NoKey)?;
    let mut tried = directions.iter_mut();
    let opened = tried.find_map(|direction| {
        let plain = direction.open(sealed)?;
        Some((plain, sender(direction)))
    });
    opened.ok_or(Sealed::WrongKey)
}

#[cfg(test)]
mod tests;
