//! The clients of a `serve`: what each asked for, what it got, and how it ended.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::proto::connection::Connection;
use haulier::{
    CloseCode, CloseReason, ConnectionId, Event, Server, ServerEvent, TokenClaims, TokenRate,
};
use haulier_files::giver::{GiverConfig, GiverEvent, Start};
use haulier_files::messages::Request;
use haulier_files::offer::Entry;
use haulier_files::pool::{PoolHandle, Wake};
use haulier_files::reason::{NO_SUCH_FILE, NOT_ADMITTED, NOT_UNDERSTOOD};
use haulier_files::session::{Giving, Library, ServerLink};
use serde_json::json;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::files;
use crate::interrupt;
use crate::report::Report;
use crate::units::{in_millis, show_bytes, show_words};

/// What a client is answered.
#[derive(Debug)]
enum Answer {
    Files(Box<Giving>),
    /// Reported to the client once its address is validated.
    No(CloseCode, String),
}

#[derive(Debug)]
struct Client {
    number: u64,
    answer: Answer,
    /// All of it at once, and not first the list.
    is_get: bool,
    addr: Option<SocketAddr>,
    since: Instant,
    /// Files that it has, and their bytes.
    files: u64,
    bytes: u64,
}

impl Client {
    fn go_on(&mut self, server: &Server, id: ConnectionId) {
        if let Answer::Files(giving) = &mut self.answer {
            giving.turn(&ServerLink(server, id));
        }
    }
}

/// All clients, those there are and the sum of those there were.
pub(super) struct Clients<'a> {
    server: &'a Server,
    library: &'a Arc<Library>,
    pool: &'a PoolHandle,
    args: &'a ServeArgs,
    report: &'a Report,
    here: HashMap<ConnectionId, Client>,
    numbers: u64,
    /// Clients whose address was proven, files that arrived, and their bytes.
    clients: u64,
    files: u64,
    bytes: u64,
    cut_off: u64,
    /// Clients for whom the disk has answered something.
    answered: Arc<Mutex<HashSet<ConnectionId>>>,
    /// When all of them were looked at.
    went_on: Instant,
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        server: &'a Server,
        library: &'a Arc<Library>,
        pool: &'a PoolHandle,
        args: &'a ServeArgs,
        report: &'a Report,
    ) -> Self {
        let here = HashMap::new();
        let (numbers, clients, files, bytes, cut_off) = (0, 0, 0, 0, 0);
        let (answered, went_on) = (Arc::default(), Instant::now());
        Self {
            server,
            library,
            pool,
            args,
            report,
            here,
            numbers,
            clients,
            files,
            bytes,
            cut_off,
            answered,
            went_on,
        }
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
            ServerEvent::Connection(event) => {
                let link = ServerLink(self.server, id);
                if let Some(Client { answer: Answer::Files(giving), .. }) = self.here.get_mut(&id) {
                    giving.handle_event(&link, &event);
                }
                self.report_files(id);
                match event {
                    Event::Connected => {
                        self.on_connected(id);
                        self.report_files(id);
                    }
                    Event::AddressChanged => {
                        if let Some(client) = self.here.get_mut(&id) {
                            client.addr = self.server.with_connection(id, Connection::address);
                        }
                    }
                    Event::Closed(reason) => self.on_closed(id, &reason),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Does what the disk has made possible: for those for whom it answered, and once in a while for all.
    pub(super) fn go_on(&mut self) {
        let answered = mem::take(&mut *lock(&self.answered));
        if answered.is_empty() || self.went_on.elapsed() > files::TURN {
            self.here.iter_mut().for_each(|(id, client)| client.go_on(self.server, *id));
            self.went_on = Instant::now();
            return;
        }
        for id in answered {
            if let Some(client) = self.here.get_mut(&id) {
                client.go_on(self.server, id);
            }
        }
    }

    fn on_request(&mut self, id: ConnectionId, request: &Bytes, token: Option<&TokenClaims>) {
        self.set_rate(id, token);
        let mut is_get = false;
        let answer = match Request::read(request) {
            Ok(Request::Get { name, accepts_packed: _ }) => {
                is_get = true;
                self.give(id, Start::AtOnce, &name)
            }
            Ok(Request::Open { name, accepts_packed: _ }) => self.give(id, Start::Offer, &name),
            Ok(Request::Put) => Answer::No(NOT_ADMITTED, "this is haulier serve".into()),
            Err(_) => Answer::No(NOT_UNDERSTOOD, "this is haulier serve, version 2".into()),
        };
        self.numbers += 1;
        let (number, since) = (self.numbers, Instant::now());
        let (addr, files, bytes) = (None, 0, 0);
        self.here.insert(id, Client { number, answer, is_get, addr, since, files, bytes });
    }

    fn give(&self, id: ConnectionId, start: Start, name: &str) -> Answer {
        let (answered, pool) = (Arc::clone(&self.answered), self.pool.clone());
        let pool = self.pool.with_wake(Wake::new(move || {
            lock(&answered).insert(id);
            pool.wake();
        }));
        match Giving::new(self.library, &pool, GiverConfig::new(start), name) {
            Some(mut giving) => {
                giving.turn(&ServerLink(self.server, id));
                Answer::Files(Box::new(giving))
            }
            None => Answer::No(NO_SUCH_FILE, "there is nothing of this name".into()),
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
            Answer::Files(_) if !client.is_get => "the list".into(),
            Answer::Files(giving) => match giving.offer().entries() {
                [entry] => entry.path.to_string(),
                entries => format!("{} files", entries.len()),
            },
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

    /// What became of the files of a client, as far as it said so.
    fn report_files(&mut self, id: ConnectionId) {
        // An address that was never validated is not logged: it may be spoofed.
        let Some(client) = self.here.get_mut(&id).filter(|client| client.addr.is_some()) else {
            return;
        };
        let Answer::Files(giving) = &mut client.answer else { return };
        let (number, elapsed) = (client.number, client.since.elapsed());
        while let Some(event) = giving.poll_event() {
            match event {
                GiverEvent::Stored { file } => {
                    let Some(entry) = giving.offer().entry(file) else { continue };
                    client.files += 1;
                    client.bytes += entry.size().unwrap_or(0);
                    report_stored(self.report, number, entry, elapsed);
                }
                GiverEvent::Failed { file, fault } => {
                    let name = giving.offer().entry(file).map(|entry| entry.path.to_string());
                    self.report.warning(&format!(
                        "client {number} does not get {}: {}",
                        name.unwrap_or_default(),
                        show_words(&fault.to_string())
                    ));
                }
                _ => {}
            }
        }
    }

    fn on_closed(&mut self, id: ConnectionId, reason: &CloseReason) {
        let Some(mut client) = self.here.remove(&id) else { return };
        // An address that was never validated is not logged: it may be spoofed.
        let Some(addr) = client.addr else { return };
        let is_done = matches!(reason, CloseReason::There { code: CloseCode::DONE, .. });
        let elapsed = client.since.elapsed();
        let mut bytes = client.bytes;
        if let Answer::Files(giving) = &client.answer {
            if let (true, true, 0, [entry]) =
                (is_done, client.is_get, client.files, giving.offer().entries())
            {
                // Its close may be faster than what it said last.
                (client.files, bytes) = (1, entry.size().unwrap_or(0));
                report_stored(self.report, client.number, entry, elapsed);
            }
            if is_done {
                self.files += client.files;
                self.bytes += bytes;
            } else {
                let on_its_way = self.server.sending(id).map_or(0, |progress| progress.done);
                bytes = bytes.max(giving.delivered_bytes() + on_its_way);
            }
            if !is_done && *reason == CloseReason::Here(CloseCode::SHUTTING_DOWN) {
                self.cut_off += 1;
            }
        }
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn report_stored(report: &Report, number: u64, entry: &Entry, elapsed: Duration) {
    let (name, bytes) = (entry.path.as_str(), entry.size().unwrap_or(0));
    let text = format!(
        "client {number} has {} ({}) after {:.3} s",
        show_words(name),
        show_bytes(bytes),
        elapsed.as_secs_f64()
    );
    let fields = json!({
        "client": number, "name": name, "bytes": bytes, "ms": in_millis(elapsed),
    });
    report.event("sent", fields, &text);
}

/// How it ended, in words.
fn words(reason: &CloseReason) -> String {
    let known = match reason {
        CloseReason::Here(code) | CloseReason::There { code, .. } => files::meaning(*code),
        _ => None,
    };
    known.map_or_else(|| show_words(&reason.to_string()), str::to_owned)
}
