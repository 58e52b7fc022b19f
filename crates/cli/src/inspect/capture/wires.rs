//! Which wire a captured datagram is of, and what it says.
//!
//! The article's checksum fits by chance one time in 2^32. haulier/1 says what it is in its first byte, and
//! other protocols have such bytes too; so a datagram of it counts only if its connection is known: by its
//! request, by a tag of mode `open` that fits, by an id in the key log, or because its port was asked for.

use std::collections::HashSet;
use std::net::SocketAddr;

use haulier::DropReason;
use haulier::proto::internals::{
    Kind, OPEN_TAG_BYTES, RequestParts, Role, Source, open_check, open_tag,
};
use haulier_article::PacketDropReason;
use haulier_capture::layers::UdpDatagram;
use haulier_capture::{KeyLog, Opener, Sealed};
use haulier_shell::failure::Failure;
use serde_json::{Value, json};

use super::super::haulier1::{self, Fields};
use super::super::refusal::Refusal;
use super::super::{Packet, Reading, preview, read, readings};
use crate::args::{FILES_PROTOCOL_ID, InspectArgs, Wire};

/// The protocol id of the connections that the program simulates: "haulier1".
const SIMULATED_PROTOCOL_ID: u64 = 0x6861_756c_6965_7231;

/// Connections of which is known that they are haulier/1's. Whoever fills a capture with more requests than
/// this makes others unknown, and no more memory used.
const MAX_FLOWS: usize = 1 << 16;

/// Reads the datagrams of a capture, in their order.
pub(super) struct Wires {
    article: Vec<Reading>,
    /// Protocol ids of haulier/1 that are tried; none, if this wire is not asked for.
    ids: Vec<u64>,
    opener: Option<Opener>,
    has_ports: bool,
    flows: HashSet<(SocketAddr, SocketAddr)>,
    /// The servers' ids of known connections: a client keeps its connection under another address.
    servers: HashSet<[u8; 8]>,
}

/// What was found.
pub(super) enum Said {
    Haulier1 { fields: Fields, opened: Option<Vec<u8>>, keys: Keys },
    Haulier1Refused(DropReason),
    Article { packet: &'static str, json: Value, words: String },
    ArticleRefused { json: Value, words: String, reason: PacketDropReason },
    Neither,
}

/// What became of what is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// There is nothing sealed, or no key log.
    Unused,
    Opened,
    Missing,
    Wrong,
}

impl Wires {
    pub(super) fn new(args: &InspectArgs, keys: Option<KeyLog>) -> Result<Self, Failure> {
        let is_wanted = |wire| args.wire.is_none_or(|only| only == wire);
        let id_is_wide = args.protocol_id.is_some_and(|id| u32::try_from(id).is_err());
        // An id of 64 bits is that of haulier/1 alone.
        let article = match is_wanted(Wire::Article) && !(args.wire.is_none() && id_is_wide) {
            true => readings(args)?,
            false => Vec::new(),
        };
        let ids = match (is_wanted(Wire::Haulier1), args.protocol_id) {
            (false, _) => Vec::new(),
            (true, Some(id)) => vec![id],
            (true, None) => vec![FILES_PROTOCOL_ID, SIMULATED_PROTOCOL_ID],
        };
        let opener = keys.map(|keys| Opener::new(keys, ids.first().copied().unwrap_or_default()));
        let has_ports = !args.port.is_empty();
        let (flows, servers) = (HashSet::new(), HashSet::new());
        Ok(Self { article, ids, opener, has_ports, flows, servers })
    }

    /// What a datagram is.
    pub(super) fn read(&mut self, datagram: &UdpDatagram<'_>) -> Said {
        let payload = datagram.payload;
        match read(&self.article, payload) {
            Ok(packet) => return article(&packet, payload),
            Err(refusal) if refusal.by.is_some() => return self.article_refused(&refusal, payload),
            Err(_) => {}
        }
        if self.ids.is_empty() || !self.is_haulier1(datagram) {
            return Said::Neither;
        }
        self.haulier1(payload)
    }

    fn article_refused(&self, refusal: &Refusal, payload: &[u8]) -> Said {
        Said::ArticleRefused {
            json: refusal.in_json(&self.article),
            words: refusal.in_words(&self.article, payload.len()),
            reason: refusal.reason,
        }
    }

    fn is_haulier1(&mut self, datagram: &UdpDatagram<'_>) -> bool {
        let UdpDatagram { source, destination, payload, .. } = *datagram;
        let Ok(kind) = Kind::of(payload) else { return false };
        let flow = (source.min(destination), source.max(destination));
        let to: Option<[u8; 8]> = payload.get(1..9).and_then(|id| id.try_into().ok());
        let is_sure = match kind {
            Kind::Request => RequestParts::read(payload).is_ok(),
            Kind::Response | Kind::Data { .. } => {
                open_id(&self.ids, payload).is_some()
                    || self.opener.as_ref().is_some_and(|opener| opener.knows(payload))
            }
            _ => false,
        };
        if is_sure && self.flows.len() < MAX_FLOWS {
            self.flows.insert(flow);
        }
        let is_known_flow = self.flows.contains(&flow);
        let from_client = matches!(kind, Kind::Data { from: Role::Client, .. });
        if from_client && is_known_flow && self.servers.len() < MAX_FLOWS {
            self.servers.extend(to);
        }
        let is_known_id = from_client && to.is_some_and(|to| self.servers.contains(&to));
        if is_known_id && self.flows.len() < MAX_FLOWS {
            self.flows.insert(flow);
        }
        is_sure || is_known_flow || is_known_id || self.has_ports
    }

    fn haulier1(&mut self, payload: &[u8]) -> Said {
        let id = open_id(&self.ids, payload).or(self.ids.first().copied()).unwrap_or_default();
        let mut fields = match haulier1::read(id, payload) {
            Ok(fields) => fields,
            Err(reason) => return Said::Haulier1Refused(reason),
        };
        let unopened = |fields, keys| Said::Haulier1 { fields, opened: None, keys };
        if fields.field("sealed_bytes").is_none() {
            return unopened(fields, Keys::Unused);
        }
        let Some(opener) = &mut self.opener else { return unopened(fields, Keys::Unused) };
        let opened = match opener.open(payload) {
            Ok(opened) => opened,
            Err(sealed) => {
                let keys = if sealed == Sealed::WrongKey { Keys::Wrong } else { Keys::Missing };
                fields.push("key", json!(if keys == Keys::Wrong { "wrong" } else { "missing" }));
                return unopened(fields, keys);
            }
        };
        let id = self.ids.first().copied().unwrap_or_default();
        match haulier1::read(id, &opened.datagram) {
            Ok(open) => fields.take_over(open),
            Err(reason) => return Said::Haulier1Refused(reason),
        }
        fields.push("key", json!("opened"));
        if let Some(number) = opened.number {
            fields.push("whole_number", json!(number));
            fields.push("key_updates", json!(opened.key_updates));
        }
        Said::Haulier1 { fields, opened: Some(opened.datagram), keys: Keys::Opened }
    }
}

/// The first of these ids with which a tag or check of mode `open` fits.
fn open_id(ids: &[u64], payload: &[u8]) -> Option<u64> {
    let mut ids = ids.iter().copied();
    match Kind::of(payload).ok()? {
        Kind::Request => {
            let parts = RequestParts::read(payload).ok()?;
            let is_open = parts.mode.source == Source::Open;
            ids.find(|&id| is_open && open_check(id, parts.checked) == parts.check)
        }
        Kind::Refusal => {
            let (checked, check) = payload.split_last_chunk::<16>()?;
            ids.find(|&id| open_check(id, checked) == *check)
        }
        _ => {
            let (before, tag) = payload.split_last_chunk::<OPEN_TAG_BYTES>()?;
            ids.find(|&id| open_tag(id, *tag.first_chunk().unwrap_or(&[0; 8]), before) == *tag)
        }
    }
}

fn article(packet: &Packet<'_>, payload: &[u8]) -> Said {
    let (mut json, words) = (packet.in_json(), packet.in_words(payload));
    json["wire"] = json!("article");
    let name = crate::args::KINDS.into_iter().find(|kind| json["packet"] == *kind);
    Said::Article { packet: name.unwrap_or_default(), json, words }
}

impl Said {
    /// The kind of datagram; "malformed" if it was refused, `None` if it is of neither wire.
    pub(super) fn packet(&self) -> Option<&'static str> {
        match self {
            Self::Haulier1 { fields, .. } => Some(fields.packet()),
            Self::Article { packet, .. } => Some(packet),
            Self::Haulier1Refused(_) | Self::ArticleRefused { .. } => Some("malformed"),
            Self::Neither => None,
        }
    }

    /// Whether the client or the server sent it; `None` on a wire that does not say so.
    pub(super) fn direction(&self) -> Option<&'static str> {
        let Self::Haulier1 { fields, .. } = self else { return None };
        Some(match fields.packet() {
            "request" => "from client",
            "data" if fields.field("from").is_some_and(|from| from == "client") => "from client",
            _ => "from server",
        })
    }

    /// The datagram as mode `open` would have it, if it was opened.
    pub(super) fn opened(&self) -> Option<&[u8]> {
        match self {
            Self::Haulier1 { opened, .. } => opened.as_deref(),
            _ => None,
        }
    }

    pub(super) fn in_json(&self) -> Value {
        match self {
            Self::Haulier1 { fields, .. } => fields.in_json(),
            Self::Haulier1Refused(reason) => haulier1::refusal_in_json(*reason),
            Self::Article { json, .. } | Self::ArticleRefused { json, .. } => json.clone(),
            Self::Neither => json!({ "ok": false, "wire": null }),
        }
    }

    pub(super) fn in_words(&self, payload: &[u8]) -> String {
        match self {
            Self::Haulier1 { fields, .. } => fields.in_words(payload.len()),
            Self::Haulier1Refused(reason) => haulier1::refusal_in_words(*reason, payload.len()),
            Self::Article { words, .. } | Self::ArticleRefused { words, .. } => words.clone(),
            Self::Neither => format!("of neither wire, {}", preview(payload)),
        }
    }
}
