//! From a stranger's request to a connection, the cheapest check first (STANDARD-1, H-3.1b).
//!
//! Nothing is allocated, and nothing but a counter changes, before the request's check is verified. That
//! costs one pass of BLAKE3 over the datagram and, with a token, one small decryption. Then the desk is
//! asked, once; key agreement comes last, when it has said yes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::ConnectionId;
use super::admission::{OpenToken, Prefix, Question, Refused, Seat, Verdict, cookie_time};
use super::desk::{AtDesk, Note};
use super::memory::RequestName;
use super::worker::{Handled, Worker};
use crate::connection::{CloseCode, CloseReason, Connection, Ends, Parameters, Protection, Trace};
use crate::credentials::{OpenedToken, TokenError};
use crate::crypto::{Entropy, RequestKeys, Responder, address_bytes, equal, open_check, respond};
use crate::wire::answer::{InLine, Refusal, RefusalCode, Retry};
use crate::wire::request::{AnyVersion, Source};
use crate::wire::{Grease, Hello, RequestParts, Role, SPOKEN, VERSION, Welcome, WireId};
use crate::{DropReason, FourTuple, Instant};

/// Room for a welcome, more than it has: it holds a secret, and would leave it behind if it grew.
const MAX_WELCOME_BYTES: usize = 512;

/// For how long the token of somebody in line is opened after it has expired.
const MAX_SECONDS_IN_LINE: u64 = 3_600;

/// The keys of a verified request, and its token.
struct Verified {
    keys: Option<Arc<RequestKeys>>,
    token: Option<OpenToken>,
    /// They are of the server's other secret.
    is_other: bool,
}

/// A request whose check is verified.
struct Request<'a> {
    name: RequestName,
    parts: RequestParts<'a>,
    verified: Verified,
    bytes: usize,
    /// The first bytes of its check, which differ in each copy (H-3.1c).
    check: u32,
}

/// A new connection, and the application's request.
struct Agreed {
    connection: Connection,
    app_request: Bytes,
}

/// Why a request does not become a connection.
enum NotAgreed {
    Dropped(DropReason),
    /// The client speaks this version, and reports that it speaks a better one.
    Downgrade,
}

impl From<DropReason> for NotAgreed {
    fn from(reason: DropReason) -> Self {
        Self::Dropped(reason)
    }
}

impl Worker {
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        datagram: &[u8],
    ) -> Result<Handled, DropReason> {
        let client_id = AnyVersion::read(datagram)?.client_id;
        self.work.requests += 1;
        // Read here, so that it is never earlier in what follows.
        let unix_time = self.unix_clock.read(now);
        let (parts, verified) = match self.verify_request(unix_time, datagram) {
            Ok(verified) => verified,
            Err((code, reason)) => {
                self.refuse(now, desk, path, client_id, code, None);
                return Err(reason);
            }
        };
        let [a, b, c, d, ..] = parts.check;
        let check = u32::from_le_bytes([a, b, c, d]);
        let bytes = datagram.len();
        let request = Request { name: name_of(&parts), parts, verified, bytes, check };
        if let Some(id) = self.lingering.of_request(&request.name, path) {
            self.on_late(now, id, path, request.bytes);
            return Err(DropReason::Replayed);
        }
        match self.ask_about(now, desk, path, &request) {
            Verdict::InLine { place, estimate, again, ends } => {
                self.end_for_others(now, ends);
                let in_line = InLine { to: client_id, place, estimate, again };
                self.answer(path, self.checked(&in_line, request.verified.keys.as_deref()));
                Err(DropReason::NoSlot)
            }
            Verdict::Copy(id) => self.on_copy(now, path, id, (request.bytes, request.check)),
            Verdict::Elsewhere(worker) => return Ok(Handled::ForWorker(worker)),
            Verdict::Retry => {
                let cookie = self.rules.cookie_key.make(cookie_time(now), client_id.0, path.remote);
                let mut out = Vec::new();
                Retry { to: client_id, cookie }.write(&mut out);
                self.answer(path, out);
                Err(DropReason::NoCookie)
            }
            Verdict::Refused((code, reason)) => {
                self.refuse(now, desk, path, client_id, code, request.verified.keys.as_deref());
                Err(reason)
            }
            Verdict::Accepted(seat) => self.accept(now, desk, path, &request, &seat),
        }
        .map(|()| Handled::Here)
    }

    /// The checks that need no memory: version, mode, lengths, token, check.
    fn verify_request<'a>(
        &self,
        unix_time: Option<u64>,
        datagram: &'a [u8],
    ) -> Result<(RequestParts<'a>, Verified), Refused> {
        let parts = RequestParts::read(datagram).map_err(|reason| match reason {
            DropReason::WrongVersion => (Some(RefusalCode::Version), reason),
            _ => (None, reason),
        })?;
        let credentials = &self.rules.config.credentials;
        let no_such_mode = (Some(RefusalCode::Key), DropReason::WrongMode);
        if parts.mode.identity && credentials.identity.is_none() {
            return Err(no_such_mode);
        }
        let verified = match parts.mode.source {
            Source::Open if credentials.open => {
                Verified { keys: None, token: None, is_other: false }
            }
            Source::Secret => self.by_secret(&parts).ok_or(no_such_mode)?,
            Source::Token if !credentials.token_keys.is_empty() => {
                self.open_token(unix_time, parts.token)?
            }
            Source::Open | Source::Token => return Err(no_such_mode),
        };
        let expected = match &verified.keys {
            Some(keys) => keys.check(parts.checked),
            None => open_check(self.rules.config.protocol_id, parts.checked),
        };
        if !equal(&expected, &parts.check) {
            return Err((Some(RefusalCode::Key), DropReason::BadCheckValue));
        }
        Ok((parts, verified))
    }

    /// The keys of the first secret, or of the other one if the check says so.
    fn by_secret(&self, parts: &RequestParts<'_>) -> Option<Verified> {
        let (first, other) = (self.rules.request_keys.as_ref(), self.rules.other_keys.as_ref());
        let other =
            other.filter(|keys| first.is_none() || equal(&keys.check(parts.checked), &parts.check));
        let keys = other.or(first)?;
        Some(Verified { keys: Some(Arc::clone(keys)), token: None, is_other: other.is_some() })
    }

    fn open_token(&self, unix_time: Option<u64>, sealed: &[u8]) -> Result<Verified, Refused> {
        let protocol_id = self.rules.config.protocol_id;
        // Without a time of day a token may have expired long ago.
        let no_time = (Some(RefusalCode::TokenExpired), DropReason::NoTimeOfDay);
        let unix_time = unix_time.ok_or(no_time)?;
        let mut last = (Some(RefusalCode::Key), DropReason::BadToken);
        let mut late = None;
        let verified = |opened: OpenedToken| {
            let keys = Arc::new(RequestKeys::new(&opened.secret, protocol_id));
            let token = OpenToken { name: opened.nonce, claims: opened.claims };
            Verified { keys: Some(keys), token: Some(token), is_other: false }
        };
        for key in &self.rules.config.credentials.token_keys {
            match key.open(protocol_id, sealed, unix_time) {
                Ok(opened) => return Ok(verified(opened)),
                Err(TokenError::Expired) => {
                    last = (Some(RefusalCode::TokenExpired), DropReason::TokenExpired);
                    late = Some(key);
                }
                Err(_) => {}
            }
        }
        // The desk knows whether it has waited in line since it was valid.
        let since = unix_time.saturating_sub(MAX_SECONDS_IN_LINE);
        match late.and_then(|key| key.open(protocol_id, sealed, since).ok()) {
            Some(opened) => Ok(verified(opened)),
            None => Err(last),
        }
    }

    /// Asks the desk, which has heard first what this worker has to report.
    fn ask_about(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        request: &Request<'_>,
    ) -> Verdict {
        let parts = &request.parts;
        let by_cookie = parts.cookie.is_some_and(|cookie| {
            let key = &self.rules.cookie_key;
            key.verify(cookie_time(now), parts.client_id.0, path.remote, &cookie)
        });
        let call =
            InLine { to: parts.client_id, place: Some(0), estimate: None, again: Duration::ZERO };
        let call = self.checked(&call, request.verified.keys.as_deref());
        let question = Question {
            worker: self.number,
            path,
            name: request.name,
            token: request.verified.token.as_ref(),
            by_cookie,
            unix_time: self.unix_clock.latest(),
            started_unix: self.unix_clock.started(),
            call: &call,
        };
        let Self { notes, answers, reset_key: key, .. } = self;
        desk.ask(|desk| {
            desk.hear(notes);
            let verdict = desk.judge(now, &question);
            Self::take_calls(answers, desk);
            // While a connection has a seat, the key is not replaced: no id outlives its key.
            self.reset_keys = desk.update_reset_key(self.reset_keys, key);
            verdict
        })
    }

    /// The answer to a client in line, with its check.
    fn checked(&self, in_line: &InLine, keys: Option<&RequestKeys>) -> Vec<u8> {
        let mut out = Vec::new();
        in_line.write(&mut out);
        let check = match keys {
            Some(keys) => keys.check(&out),
            None => open_check(self.rules.config.protocol_id, &out),
        };
        out.extend_from_slice(&check);
        out
    }

    /// A further copy of a request that has become a connection.
    fn on_copy(
        &mut self,
        now: Instant,
        path: FourTuple,
        id: ConnectionId,
        (bytes, check): (usize, u32),
    ) -> Result<(), DropReason> {
        let Some(connection) = self.slots.connection_mut(id) else {
            return Err(DropReason::Replayed);
        };
        if !path.has_remote_of(connection.path()) {
            return Err(DropReason::Replayed);
        }
        connection.on_request(now, bytes, check);
        self.refresh(id);
        Ok(())
    }

    /// Agrees on keys and creates the connection that the desk has a seat for.
    fn accept(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        request: &Request<'_>,
        seat: &Seat,
    ) -> Result<(), DropReason> {
        self.end_for_others(now, seat.ends);
        let (name, token) = (request.name, request.verified.token.as_ref());
        match self.agree(now, path, request, seat) {
            Ok(Agreed { mut connection, app_request }) => {
                let claims = token.map(|token| {
                    if let Some(max_rate) = token.claims.max_rate {
                        connection.cap_rate_bps(max_rate.bps());
                    }
                    token.claims.clone()
                });
                connection.on_request(now, request.bytes, request.check);
                connection.set_known_path(seat.known);
                if let Some(block) = &self.rules.config.first_block
                    && connection.send_block(now, block).is_err()
                {
                    // The settings were checked: it is too large for this client.
                    let why = "the first block is larger than your max_block_bytes";
                    connection.close(now, CloseCode::NOT_ACCEPTED, why);
                }
                self.insert(connection, name, app_request, claims);
                Ok(())
            }
            Err(why) => {
                let token = token.map(|token| (token.name, token.claims.expiry_unix));
                let prefix = Prefix::of(path.remote);
                self.notes.push(Note::Withdrawn { name, token, prefix });
                match why {
                    NotAgreed::Dropped(reason) => Err(reason),
                    NotAgreed::Downgrade => {
                        let (id, keys) =
                            (request.parts.client_id, request.verified.keys.as_deref());
                        self.refuse(now, desk, path, id, Some(RefusalCode::Downgrade), keys);
                        Err(DropReason::WrongVersion)
                    }
                }
            }
        }
    }

    /// Ends a handshake, or has its worker end it, to make room.
    fn end_for_others(&mut self, now: Instant, handshake: Option<ConnectionId>) {
        match handshake {
            Some(id) if id.worker() != usize::from(self.number) => self.calls_others = true,
            Some(id) => self.end_handshake(now, id),
            None => {}
        }
    }

    /// Ends a handshake, to make room for another.
    pub(super) fn end_handshake(&mut self, now: Instant, id: ConnectionId) {
        // Another worker asked for this one, and it may have been completed since.
        if !self.slots.get(id).is_some_and(|slot| slot.is_handshake) {
            return;
        }
        if let Some(connection) = self.slots.connection_mut(id) {
            connection.end_silently(now, CloseReason::NoAnswer, CloseCode::RESOURCES);
        }
        self.linger(now, id);
        self.refresh(id);
        // The desk has ended it already.
        if let Some(slot) = self.slots.get_mut(id) {
            slot.is_handshake = false;
        }
    }

    fn agree(
        &mut self,
        now: Instant,
        path: FourTuple,
        request: &Request<'_>,
        seat: &Seat,
    ) -> Result<Agreed, NotAgreed> {
        self.work.agreements += u64::from(request.verified.keys.is_some());
        let moment = self.moment(now, path.remote);
        let context = [&moment[..], &request.parts.client_id.0, request.parts.hello_message];
        let responder = match &request.verified.keys {
            Some(keys) => {
                Some((self.entropy.hedged(&context), self.read_hello(&request.parts, keys)?))
            }
            None => None,
        };
        let hello = responder.as_ref().map(|(_, responder)| responder.hello());
        let bytes = hello.unwrap_or(request.parts.hello_message);
        let hello = Hello::read(bytes)?;
        let client_id = request.parts.client_id;
        if hello.versions.best_of(&SPOKEN) != Some(VERSION) {
            return Err(NotAgreed::Downgrade);
        }
        let server_id = self.new_id(&context);
        let config = Arc::clone(&self.rules.connection);
        let welcome = Welcome {
            server_id,
            suite: self.rules.suites.choose(hello.suites),
            end: config.end_parameters(),
        };
        let idle_timeout = config.agreed_idle_timeout(hello.end.idle_timeout);
        let grease = config.grease.then(|| Grease(self.entropy.bytes()));
        let app_request = Bytes::copy_from_slice(hello.request);
        let peer = hello.end;
        let mut plain = Zeroizing::new(Vec::with_capacity(MAX_WELCOME_BYTES));
        welcome.write_with(grease, &mut plain);
        // Without keys, anyone who watches could use it.
        let reset_token = responder.as_ref().map(|_| {
            let mut token = Box::<Zeroizing<[u8; 16]>>::default();
            token.copy_from_slice(&*Zeroizing::new(self.reset_key.reset_token(server_id.0)));
            token
        });
        let mut trace = Trace::new(&config);
        let (welcome_message, protection) = match responder {
            Some((ephemeral, responder)) => {
                let hello = responder.message_key();
                trace.iter_mut().for_each(|it| it.message_key(now, client_id, true, &hello));
                let answered = responder.answer_seen(&ephemeral, &plain, |key| {
                    trace.iter_mut().for_each(|it| it.message_key(now, client_id, false, key));
                });
                let (message, secrets) = answered.map_err(|_| DropReason::BadHandshake)?;
                let (ids, suite) = ((client_id, server_id), welcome.suite);
                trace.iter_mut().for_each(|it| it.traffic_secrets(now, ids, suite, &secrets));
                let sealed = Protection::sealed(now, Role::Server, welcome.suite, secrets, &config);
                (message, sealed.map_err(|_| DropReason::BadHandshake)?)
            }
            None => {
                let protocol_id = self.rules.config.protocol_id;
                let open = Protection::Open { protocol_id, local: server_id, remote: client_id };
                (plain.to_vec(), open)
            }
        };
        let ends = Ends {
            role: Role::Server,
            local: server_id,
            remote: client_id,
            has_other_secret: request.verified.is_other,
        };
        let connection = Connection::new(
            now,
            Parameters {
                ends,
                protection,
                config,
                idle_timeout,
                peer,
                entropy: Entropy::new(self.entropy.bytes()),
                address: path,
                address_proof: seat.address_proof,
                welcome_message,
                reset_token,
                trace,
            },
        );
        Ok(Agreed { connection, app_request })
    }

    /// When and from where a request came: what a handshake's keys depend on besides the generator and the
    /// request, so that two copies of this server, from one snapshot, do not use the same.
    fn moment(&self, now: Instant, from: SocketAddr) -> [u8; 34] {
        let mut moment = [0; 34];
        let times =
            [now.as_nanos(), self.unix_clock.latest()].into_iter().flat_map(u64::to_le_bytes);
        let all = times.chain(address_bytes(from));
        moment.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        moment
    }

    fn read_hello(
        &self,
        parts: &RequestParts<'_>,
        keys: &RequestKeys,
    ) -> Result<Responder, DropReason> {
        let identity = self.rules.config.credentials.identity.as_ref();
        let identity = identity.filter(|_| parts.mode.identity);
        let prologue = RequestParts::prologue(parts.mode, parts.client_id);
        respond(keys.noise_psk(), identity, &prologue, parts.hello_message)
            .map_err(|_| DropReason::BadHandshake)
    }

    /// Queues a refusal, if there is one and the rate of answers allows it.
    fn refuse(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        path: FourTuple,
        client_id: WireId,
        code: Option<RefusalCode>,
        keys: Option<&RequestKeys>,
    ) {
        let Some(code) = code else { return };
        if !self.may_answer(now, desk) {
            return;
        }
        let mut out = Vec::new();
        Refusal::write(client_id, code, &mut out);
        let check = match keys {
            Some(keys) if code.is_verified() => keys.check(&out),
            None if code.is_verified() => open_check(self.rules.config.protocol_id, &out),
            _ => [0; 16],
        };
        out.extend_from_slice(&check);
        self.stats.refused += 1;
        self.answer(path, out);
    }
}

/// The id of the client and the start of its ephemeral key.
fn name_of(parts: &RequestParts<'_>) -> RequestName {
    let mut name = [0; 16];
    let bytes = parts.client_id.0.iter().chain(parts.hello_message);
    name.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    name
}
