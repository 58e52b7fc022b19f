//! The clients of a server: what each asked for, what it got, and how it ended. What they send is in
//! `uploads`.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use haulier::proto::connection::Connection;
use haulier::{
    CloseCode, CloseReason, ConnectionId, Event, Server, ServerEvent, TokenClaims, TokenRate,
};
use haulier_files::giver::{GiverConfig, Start};
use haulier_files::messages::Request;
use haulier_files::pool::{PoolHandle, Wake};
use haulier_files::reason::{NO_SUCH_FILE, NOT_ADMITTED, NOT_UNDERSTOOD};
use haulier_files::session::{Giving, ServerLink, Upload};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::{count, in_millis, show_bytes, show_words};
use haulier_view::Names;
use serde_json::json;

use super::Host;
use super::client::{Answer, Client, Sender, report_sent};
use super::uploads::{Overlaps, Received};
use crate::files;

/// All clients, those there are and the sum of those there were.
pub(super) struct Clients<'a> {
    pub(super) server: &'a Server,
    pub(super) host: Host<'a>,
    pub(super) pool: &'a PoolHandle,
    /// What they are called where people look.
    names: &'a Names,
    pub(super) report: &'a Report,
    pub(super) here: HashMap<ConnectionId, Client>,
    /// Which of those that send, send the same.
    pub(super) overlaps: Overlaps,
    /// Uploads that have ended, until their unfinished files on the disk are counted.
    pub(super) settling: Vec<(ConnectionId, Upload<Sender>)>,
    numbers: u64,
    /// Clients whose address was proven, files that arrived, and their bytes.
    clients: u64,
    files: u64,
    /// Of these files, empty directories: people do not count them.
    directories: u64,
    bytes: u64,
    /// What was received.
    pub(super) received: Received,
    cut_off: u64,
    /// Clients for whom the disk has answered something.
    answered: Arc<Mutex<HashSet<ConnectionId>>>,
    /// When all of them were looked at.
    went_on: Instant,
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        server: &'a Server,
        host: Host<'a>,
        pool: &'a PoolHandle,
        names: &'a Names,
        report: &'a Report,
    ) -> Self {
        let (numbers, clients, files, directories, bytes, cut_off) = (0, 0, 0, 0, 0, 0);
        Self {
            server,
            host,
            pool,
            names,
            report,
            here: HashMap::new(),
            overlaps: Overlaps::default(),
            settling: Vec::new(),
            numbers,
            clients,
            files,
            directories,
            bytes,
            received: Received::default(),
            cut_off,
            answered: Arc::default(),
            went_on: Instant::now(),
        }
    }

    /// Whether one was enough, and has got what it wanted.
    pub(super) fn is_enough(&self) -> bool {
        self.host.is_once && (self.files > 0 || self.received.is_any_done())
    }

    /// Takes in what happened.
    pub(super) fn on_event(&mut self, id: ConnectionId, event: ServerEvent) {
        match event {
            ServerEvent::Connecting { request, token } => {
                self.on_request(id, &request, token.as_ref());
            }
            ServerEvent::Connection(event) => {
                self.hand_over(id, &event);
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

    fn hand_over(&mut self, id: ConnectionId, event: &Event) {
        let Some(client) = self.here.get_mut(&id) else { return };
        let link = ServerLink(self.server, id);
        match (&mut client.answer, &mut self.host.inbox) {
            // A client that asks for files may not send any.
            (Answer::Files(_) | Answer::No(..), _)
                if matches!(event, Event::BlockAnnounced { .. }) =>
            {
                self.server.close(id, NOT_UNDERSTOOD, "a block that nobody waits for");
            }
            (Answer::Files(giving), _) => giving.handle_event(&link, event),
            (Answer::Inbox(upload), Some(inbox)) => {
                upload.handle_event(inbox, &link, event.clone());
            }
            _ => {}
        }
    }

    /// Whether the disk has enough to do with the uploads.
    pub(super) fn are_full(&self) -> bool {
        self.here.values().filter_map(Client::upload).any(Upload::is_full)
    }

    /// Does what the disk has made possible: for those for whom it answered, and once in a while for all.
    pub(super) fn go_on(&mut self) {
        let answered = mem::take(&mut *lock(&self.answered));
        let are_all = answered.is_empty() || self.went_on.elapsed() > files::TURN;
        let ids: Vec<ConnectionId> = if are_all {
            self.here.keys().copied().collect()
        } else {
            answered.into_iter().collect()
        };
        for id in ids {
            if let Some(client) = self.here.get_mut(&id) {
                client.go_on(self.server, id, self.host.inbox.as_mut());
            }
            self.report_files(id);
        }
        if are_all {
            self.admit_uploads();
            self.settle_uploads();
            self.show_progress();
            self.went_on = Instant::now();
        }
    }

    fn on_request(&mut self, id: ConnectionId, request: &Bytes, token: Option<&TokenClaims>) {
        self.set_rate(id, token);
        let mut is_get = false;
        let asked = Request::read(request);
        let wrong = asked.as_ref().ok().and_then(|asked| self.wrong_ticket(id, asked, token));
        let answer = match (asked, wrong) {
            (_, Some(why)) => Answer::No(NOT_ADMITTED, why.into()),
            (Ok(Request::Get { name, accepts_packed }), _) => {
                is_get = true;
                self.give(id, Start::AtOnce, &name, accepts_packed)
            }
            (Ok(Request::Open { name, accepts_packed }), _) => {
                self.give(id, Start::Offer, &name, accepts_packed)
            }
            (Ok(Request::Put), _) => self.take(id, token),
            (Err(_), _) => Answer::No(NOT_UNDERSTOOD, "this is haulier, version 2".into()),
        };
        self.numbers += 1;
        self.here.insert(id, Client::new(self.numbers, answer, is_get));
    }

    /// Why the client's ticket does not let it do what it asks for. A token lets it do all.
    fn wrong_ticket(
        &self,
        id: ConnectionId,
        asked: &Request,
        token: Option<&TokenClaims>,
    ) -> Option<&'static str> {
        if self.host.sending.is_none() || token.is_some() {
            return None;
        }
        let may_send = self.server.with_connection(id, Connection::has_other_secret);
        match (asked, may_send.unwrap_or(false)) {
            (Request::Put, false) => {
                Some("this ticket is for fetching, and it has another to send")
            }
            (Request::Get { .. } | Request::Open { .. }, true) => {
                Some("this ticket is for sending, and it has another to fetch")
            }
            _ => None,
        }
    }

    /// The pool, so that its answers to this client are known.
    fn pool_for(&self, id: ConnectionId) -> PoolHandle {
        let (answered, pool) = (Arc::clone(&self.answered), self.pool.clone());
        self.pool.with_wake(Wake::new(move || {
            lock(&answered).insert(id);
            pool.wake();
        }))
    }

    fn give(&self, id: ConnectionId, start: Start, name: &str, accepts_packed: bool) -> Answer {
        let Some(library) = &self.host.library else {
            return Answer::No(NO_SUCH_FILE, "it takes files, and gives none".into());
        };
        let config = GiverConfig::new(start).with_packing(self.host.packing, accepts_packed);
        match Giving::new(library, &self.pool_for(id), config, name) {
            Some(mut giving) => {
                giving.turn(&ServerLink(self.server, id));
                Answer::Files(Box::new(giving))
            }
            None => Answer::No(NO_SUCH_FILE, "there is nothing of this name".into()),
        }
    }

    fn take(&mut self, id: ConnectionId, token: Option<&TokenClaims>) -> Answer {
        let pool = self.pool_for(id);
        let Some(inbox) = &mut self.host.inbox else {
            return Answer::No(NOT_ADMITTED, "it was started without --inbox".into());
        };
        let addr = self.server.with_connection(id, Connection::address);
        let mut upload = Upload::new(inbox, &pool, Sender::new(token, addr));
        upload.turn(inbox, &ServerLink(self.server, id));
        Answer::Inbox(Box::new(upload))
    }

    /// The limit: what the arguments say, within what the token says.
    fn set_rate(&self, id: ConnectionId, token: Option<&TokenClaims>) {
        let min = token.and_then(|token| token.min_rate).map_or(0, TokenRate::bps);
        let max = token.and_then(|token| token.max_rate).map_or(u64::MAX, TokenRate::bps);
        self.server.set_max_rate_bps(id, self.host.traffic.max_rate_bps.max(min).min(max));
    }

    fn on_connected(&mut self, id: ConnectionId) {
        let addr = self.server.with_connection(id, Connection::address);
        let (Some(client), Some(addr)) = (self.here.get_mut(&id), addr) else { return };
        client.addr = Some(addr);
        self.clients += 1;
        let wants = match &client.answer {
            Answer::Files(_) if !client.is_get => "asks for the list".into(),
            Answer::Files(giving) => match giving.offer().entries() {
                [entry] => format!("asks for {}", entry.path),
                _ => format!("asks for {}", count(giving.offer().files().into())),
            },
            Answer::Inbox(_) => "has files to send".into(),
            Answer::No(code, words) => {
                self.server.close(id, *code, words);
                format!("is turned away: {words}")
            }
        };
        let number = client.number;
        self.names.set(id, &format!("client {number} {wants}"));
        let text = format!("client {number} at {addr} {}", show_words(&wants));
        let fields = json!({ "client": number, "addr": addr.to_string() });
        self.report.event("connected", fields, &text);
    }

    /// What became of the files of a client.
    fn report_files(&mut self, id: ConnectionId) {
        // An address that was never validated is not logged: it may be spoofed.
        if let Some(client) = self.here.get_mut(&id).filter(|client| client.addr.is_some()) {
            client.report_given(self.report);
            self.report_received(id);
        }
    }

    fn on_closed(&mut self, id: ConnectionId, reason: &CloseReason) {
        let Some(mut client) = self.here.remove(&id) else { return };
        let is_done = matches!(reason, CloseReason::There { code: CloseCode::DONE, .. });
        let elapsed = client.since.elapsed();
        let mut bytes = client.bytes;
        if let Answer::Files(giving) = &client.answer {
            if let (true, true, 0, [entry]) =
                (is_done, client.is_get, client.files, giving.offer().entries())
            {
                // Its close may be faster than what it said last.
                let size = entry.size().or_else(|| Some(giving.root_of(0)?.0));
                (client.files, bytes) = (1, size.unwrap_or(0));
                report_sent(self.report, client.number, (entry, bytes), elapsed);
            }
            if is_done {
                self.files += client.files;
                self.directories += client.directories;
                self.bytes += bytes;
                client.bytes = bytes;
            } else {
                let on_its_way = self.server.sending(id).map_or(0, |progress| progress.done);
                bytes = bytes.max(giving.delivered_bytes() + on_its_way);
            }
        }
        // An address that was never validated is not logged: it may be spoofed.
        if let Some(addr) = client.addr {
            let is_over = is_done || client.is_done;
            if !is_over && *reason == CloseReason::Here(CloseCode::SHUTTING_DOWN) {
                self.cut_off += 1;
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
            let text = format!("client {}{}", client.number, client.in_words(is_over, &words));
            self.report.event("closed", fields, &text);
        }
        self.end_upload(id, client);
    }

    /// The last line. Being interrupted is how serving ends, a failure only if a client was cut off.
    pub(super) fn conclude(self) -> Result<(), Failure> {
        if interrupt::requested() && self.cut_off > 0 {
            return Err(match (&self.host.inbox, self.host.target) {
                (None, _) => Failure::CutOff(self.cut_off),
                (_, Some(target)) if !target.keeps_unfinished() => Failure::Interrupted,
                _ => Failure::Paused,
            });
        }
        if let Some(target) = self.host.target {
            return self.received.conclude(target, self.host.is_once, self.report);
        }
        let mut fields = json!({
            "ok": true,
            "clients": self.clients,
            "files": self.files - self.directories,
            "bytes": self.bytes,
        });
        let mut text = String::new();
        if self.host.library.is_some() {
            text += &format!(
                "{} fetched ({}); ",
                count(self.files - self.directories),
                show_bytes(self.bytes)
            );
        }
        if self.host.inbox.is_some() {
            let (files, bytes) = (self.received.files, self.received.bytes);
            fields["received_files"] = json!(files);
            fields["received_bytes"] = json!(bytes);
            text += &format!("{} received ({}); ", count(files), show_bytes(bytes));
        }
        self.report.done(fields, &format!("{text}clients in all: {}", self.clients));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How it ended, in words.
fn words(reason: &CloseReason) -> String {
    let known = match reason {
        CloseReason::Here(code) | CloseReason::There { code, .. } => files::meaning(*code),
        _ => None,
    };
    known.map_or_else(|| show_words(&reason.to_string()), str::to_owned)
}
