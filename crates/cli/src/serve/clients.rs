//! The clients of a `serve`: what each asked for, what it got, and how it ended.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use haulier::proto::connection::Connection;
use haulier::{
    Block, CloseCode, CloseReason, ConnectionId, Event, Server, ServerEvent, TokenClaims, TokenRate,
};
use serde_json::json;

use super::library::Library;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::files::{self, NAME_ONE, NO_SUCH_FILE, NOT_UNDERSTOOD, Request};
use crate::interrupt;
use crate::report::Report;
use crate::units::{in_millis, show_bytes, show_words};

/// What a client is answered.
#[derive(Debug)]
enum Answer {
    File {
        name: String,
        bytes: u64,
    },
    List,
    /// Reported to the client once its address is validated.
    No(CloseCode, String),
}

#[derive(Debug)]
struct Client {
    number: u64,
    answer: Answer,
    addr: Option<SocketAddr>,
    since: Instant,
    is_sent: bool,
}

/// All clients, those there are and the sum of those there were.
pub(super) struct Clients<'a> {
    server: &'a Server,
    library: &'a Library,
    args: &'a ServeArgs,
    report: &'a Report,
    here: HashMap<ConnectionId, Client>,
    numbers: u64,
    /// Clients whose address was proven, files that arrived, and their bytes.
    clients: u64,
    files: u64,
    bytes: u64,
    cut_off: u64,
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        server: &'a Server,
        library: &'a Library,
        args: &'a ServeArgs,
        report: &'a Report,
    ) -> Self {
        let here = HashMap::new();
        let (numbers, clients, files, bytes, cut_off) = (0, 0, 0, 0, 0);
        Self { server, library, args, report, here, numbers, clients, files, bytes, cut_off }
    }

    /// Whether `--once` is fulfilled.
    pub(super) const fn is_enough(&self) -> bool {
        self.args.once && self.files > 0
    }

    /// Takes in what happened.
    pub(super) fn on_event(&mut self, id: ConnectionId, event: ServerEvent) {
        match event {
            ServerEvent::Connecting { request, token } => {
                self.on_request(id, &request, token.as_ref());
            }
            ServerEvent::Connection(Event::Connected) => self.on_connected(id),
            ServerEvent::Connection(Event::BlockSent { .. }) => self.on_sent(id),
            ServerEvent::Connection(Event::AddressChanged) => {
                if let Some(client) = self.here.get_mut(&id) {
                    client.addr = self.server.with_connection(id, Connection::address);
                }
            }
            ServerEvent::Connection(Event::Closed(reason)) => self.on_closed(id, &reason),
            // Clients have nothing to say but their request.
            _ => {}
        }
    }

    fn on_request(&mut self, id: ConnectionId, request: &Bytes, token: Option<&TokenClaims>) {
        self.set_rate(id, token);
        let library = self.library;
        let answer = match Request::read(request) {
            Some(Request::List) => self.send(id, Answer::List, None, library.list()),
            Some(Request::Get(Some(name))) => match library.file(&name) {
                Some(file) => self.send_file(id, file),
                None => Answer::No(NO_SUCH_FILE, "there is no file of this name".into()),
            },
            Some(Request::Get(None)) => match library.only() {
                Some(file) => self.send_file(id, file),
                None => Answer::No(NAME_ONE, format!("there are {} files", library.len())),
            },
            None => Answer::No(NOT_UNDERSTOOD, "this is haulier serve, version 1".into()),
        };
        self.numbers += 1;
        let number = self.numbers;
        let since = Instant::now();
        self.here.insert(id, Client { number, answer, addr: None, since, is_sent: false });
    }

    fn send_file(&self, id: ConnectionId, (name, block): (&str, &Block)) -> Answer {
        let answer = Answer::File { name: name.into(), bytes: block.data().len() as u64 };
        self.send(id, answer, Some(name), block)
    }

    /// Queues an answer: a refusal when the client takes no blocks of this size.
    fn send(&self, id: ConnectionId, answer: Answer, name: Option<&str>, block: &Block) -> Answer {
        let message = name.map(files::name_message);
        let named = message.map_or(Ok(()), |message| self.server.send_message(id, message));
        match named.and_then(|()| self.server.send_block(id, block)) {
            Ok(_) => answer,
            Err(error) => Answer::No(CloseCode::BLOCK_TOO_LARGE, format!("the file is {error}")),
        }
    }

    /// The limit: what the arguments say, within what the token says.
    fn set_rate(&self, id: ConnectionId, token: Option<&TokenClaims>) {
        let min = token.and_then(|token| token.min_rate).map_or(0, TokenRate::bps);
        let max = token.and_then(|token| token.max_rate).map_or(u64::MAX, TokenRate::bps);
        self.server.set_max_rate_bps(id, self.args.rate.unwrap_or(u64::MAX).max(min).min(max));
    }

    fn on_connected(&mut self, id: ConnectionId) {
        let addr = self.server.with_connection(id, Connection::address);
        let (Some(client), Some(addr)) = (self.here.get_mut(&id), addr) else { return };
        client.addr = Some(addr);
        self.clients += 1;
        let wants = match &client.answer {
            Answer::File { name, .. } => name.clone(),
            Answer::List => "the list".into(),
            Answer::No(code, words) => {
                self.server.close(id, *code, words);
                "what there is not".into()
            }
        };
        let number = client.number;
        let text = format!("client {number} at {addr} asks for {}", show_words(&wants));
        let fields = json!({ "client": number, "addr": addr.to_string() });
        self.report.event("connected", fields, &text);
    }

    fn on_sent(&mut self, id: ConnectionId) {
        let Some(client) = self.here.get_mut(&id).filter(|client| !client.is_sent) else { return };
        client.is_sent = true;
        let Answer::File { name, bytes } = &client.answer else { return };
        let (number, elapsed) = (client.number, client.since.elapsed());
        let text = format!(
            "client {number} has {} ({}) after {:.3} s",
            show_words(name),
            show_bytes(*bytes),
            elapsed.as_secs_f64()
        );
        let fields = json!({
            "client": number, "name": name, "bytes": bytes, "ms": in_millis(elapsed),
        });
        self.report.event("sent", fields, &text);
    }

    fn on_closed(&mut self, id: ConnectionId, reason: &CloseReason) {
        let is_done = matches!(reason, CloseReason::There { code: CloseCode::DONE, .. });
        if is_done {
            // Its close may be faster than its last ack.
            self.on_sent(id);
        }
        let Some(client) = self.here.remove(&id) else { return };
        // An address that was never validated is not logged: it may be spoofed.
        let Some(addr) = client.addr else { return };
        let through = self.server.sending(id).map_or(0, |progress| progress.done);
        let bytes = match &client.answer {
            Answer::File { bytes, .. } if client.is_sent => *bytes,
            Answer::File { .. } => through,
            _ => 0,
        };
        if let (true, Answer::File { .. }) = (is_done, &client.answer) {
            self.files += 1;
            self.bytes += bytes;
        }
        let is_cut_off = matches!(client.answer, Answer::File { .. }) && !client.is_sent;
        if is_cut_off && *reason == CloseReason::Here(CloseCode::SHUTTING_DOWN) {
            self.cut_off += 1;
        }
        let elapsed = client.since.elapsed();
        let words = words(reason);
        let code = match reason {
            CloseReason::Here(code) | CloseReason::There { code, .. } => Some(code.0),
            _ => None,
        };
        let fields = json!({
            "client": client.number,
            "addr": addr.to_string(),
            "code": code,
            "reason": words,
            "bytes": bytes,
            "ms": in_millis(elapsed),
        });
        self.report.event("closed", fields, &format!("client {}: {words}", client.number));
    }

    /// The last line. Being interrupted is how serving ends, a failure only if a client was cut off.
    pub(super) fn conclude(self) -> Result<(), Failure> {
        if self.cut_off > 0 && interrupt::requested() {
            return Err(Failure::Interrupted);
        }
        let fields = json!({
            "ok": true, "clients": self.clients, "files": self.files, "bytes": self.bytes,
        });
        let what = if self.files == 1 { "file" } else { "files" };
        let text = format!(
            "{} {what} fetched ({}); clients in all: {}",
            self.files,
            show_bytes(self.bytes),
            self.clients
        );
        self.report.done(fields, &text);
        Ok(())
    }
}

/// How it ended, in words.
fn words(reason: &CloseReason) -> String {
    let known = match reason {
        CloseReason::Here(code) | CloseReason::There { code, .. } => files::meaning(*code),
        _ => None,
    };
    known.map_or_else(|| show_words(&reason.to_string()), str::to_owned)
}
