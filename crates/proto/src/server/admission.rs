//! From a stranger's request to a connection, the cheapest check first (STANDARD-1, H-3.1b).
//!
//! Nothing is allocated, and nothing but a counter changes, before the request's check is verified. That
//! costs one pass of BLAKE3 over the datagram and, with a token, one small decryption. Key agreement comes
//! last.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use zeroize::Zeroizing;

use super::memory::{RequestName, TokenName, TokenUse};
use super::{ConnectionId, EarlierTokens, ServerMachine, TokenAudience};
use crate::connection::{AddressProof, Connection, Parameters, Protection};
use crate::credentials::{TokenClaims, TokenError};
use crate::crypto::{
    COOKIE_UNIT_SECONDS, Entropy, RequestKeys, Responder, address_bytes, equal, open_check, respond,
};
use crate::wire::answer::{Refusal, RefusalCode, Retry};
use crate::wire::request::{AnyVersion, Source};
use crate::wire::{Grease, Hello, RequestParts, Role, SPOKEN, VERSION, Welcome, WireId};
use crate::{DropReason, FourTuple, Instant};

/// Room for a welcome, more than it has: it holds a secret, and would leave it behind if it grew.
const MAX_WELCOME_BYTES: usize = 512;

/// The refusal to send, if any, and the reason to count.
type Refused = (Option<RefusalCode>, DropReason);

/// The keys of a verified request, and its token.
struct Verified {
    keys: Option<RequestKeys>,
    token: Option<OpenToken>,
}

struct OpenToken {
    name: TokenName,
    claims: TokenClaims,
}

/// A request whose check is verified.
struct Request<'a> {
    name: RequestName,
    parts: RequestParts<'a>,
    verified: Verified,
    bytes: usize,
}

/// A request that may become a connection.
struct Admitted {
    address_proof: AddressProof,
}

/// Names a client, as its token does.
pub(super) type ClientName = [u8; 8];

/// The handshakes of one prefix that may have the larger credit of an address in their token at a time. A
/// handshake that is never completed lasts 10 s, so that spoofed ones send 1.5 MiB in that time to a victim,
/// however many tokens there are. Those of an honest address last a round trip.
const MAX_CREDITED_PER_PREFIX: usize = 4;

/// The part of a source address that limits are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix([u8; 8]);

impl Prefix {
    /// An IPv4 address, or the first 64 bits of an IPv6 address: what a provider gives one customer.
    pub(super) fn of(address: SocketAddr) -> Self {
        let mut prefix = [0; 8];
        let octets = match address.ip().to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => {
                prefix.iter_mut().zip(v6.octets()).for_each(|(to, octet)| *to = octet);
                return Self(prefix);
            }
        };
        // The last 8 bytes of ::ffff:a.b.c.d. No routed IPv6 /64 starts like that.
        prefix.iter_mut().zip(octets.into_iter().skip(8)).for_each(|(to, octet)| *to = octet);
        Self(prefix)
    }
}

impl ServerMachine {
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let client_id = AnyVersion::read(datagram)?.client_id;
        self.work.requests += 1;
        // Read here, so that it is never earlier in what follows.
        let unix_time = self.unix_clock.read(now);
        let (parts, verified) = match self.verify_request(unix_time, datagram) {
            Ok(verified) => verified,
            Err((code, reason)) => {
                if let Some(code) = code {
                    self.refuse(now, path, client_id, code, None);
                }
                return Err(reason);
            }
        };
        let request = Request { name: name_of(&parts), parts, verified, bytes: datagram.len() };
        if let Some(id) = self.lingering.of_request(&request.name, path) {
            self.on_late(now, id, path, request.bytes);
            return Err(DropReason::Replayed);
        }
        if let Some(&id) = self.by_request.get(&request.name) {
            return self.on_copy(now, path, id, request.bytes);
        }
        self.memory.forget_expired(self.unix_clock.latest(), cookie_time(now));
        let admitted = match self.admit(now, path, &request) {
            Ok(admitted) => admitted,
            Err((code, reason)) => {
                if let Some(code) = code {
                    self.refuse(now, path, client_id, code, request.verified.keys.as_ref());
                }
                return Err(reason);
            }
        };
        self.accept(now, path, &request, admitted)
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
        let credentials = &self.config.credentials;
        let no_such_mode = (Some(RefusalCode::Key), DropReason::WrongMode);
        if parts.mode.identity && credentials.identity.is_none() {
            return Err(no_such_mode);
        }
        let verified = match parts.mode.source {
            Source::Open if credentials.open => Verified { keys: None, token: None },
            Source::Secret => {
                let keys = self.request_keys.as_deref().cloned().ok_or(no_such_mode)?;
                Verified { keys: Some(keys), token: None }
            }
            Source::Token if !credentials.token_keys.is_empty() => {
                self.open_token(unix_time, parts.token)?
            }
            Source::Open | Source::Token => return Err(no_such_mode),
        };
        let expected = match &verified.keys {
            Some(keys) => keys.check(parts.checked),
            None => open_check(self.config.protocol_id, parts.checked),
        };
        if !equal(&expected, &parts.check) {
            return Err((Some(RefusalCode::Key), DropReason::BadCheckValue));
        }
        Ok((parts, verified))
    }

    fn open_token(&self, unix_time: Option<u64>, sealed: &[u8]) -> Result<Verified, Refused> {
        let protocol_id = self.config.protocol_id;
        // Without a time of day a token may have expired long ago.
        let no_time = (Some(RefusalCode::TokenExpired), DropReason::NoTimeOfDay);
        let unix_time = unix_time.ok_or(no_time)?;
        let mut last = (Some(RefusalCode::Key), DropReason::BadToken);
        for key in &self.config.credentials.token_keys {
            match key.open(protocol_id, sealed, unix_time) {
                Ok(opened) => {
                    let keys = RequestKeys::new(&opened.secret, protocol_id);
                    let token = OpenToken { name: opened.nonce, claims: opened.claims };
                    return Ok(Verified { keys: Some(keys), token: Some(token) });
                }
                Err(TokenError::Expired) => {
                    last = (Some(RefusalCode::TokenExpired), DropReason::TokenExpired);
                }
                Err(_) => {}
            }
        }
        Err(last)
    }

    /// A further copy of a request that has become a connection.
    fn on_copy(
        &mut self,
        now: Instant,
        path: FourTuple,
        id: ConnectionId,
        bytes: usize,
    ) -> Result<(), DropReason> {
        let Some(connection) = self.slots.connection_mut(id) else {
            return Err(DropReason::Replayed);
        };
        if !path.has_remote(connection.address()) {
            return Err(DropReason::Replayed);
        }
        connection.on_request(now, bytes);
        self.refresh(id);
        Ok(())
    }

    /// Checks replays, cookies and limits.
    fn admit(
        &mut self,
        now: Instant,
        path: FourTuple,
        request: &Request<'_>,
    ) -> Result<Admitted, Refused> {
        let Request { parts, verified, name, .. } = request;
        match &verified.token {
            Some(token) => self.check_token(path, token, name)?,
            None if self.memory.knows(name) => return Err((None, DropReason::Replayed)),
            None => {}
        }
        if self.shutting_down {
            return Err((Some(RefusalCode::ShuttingDown), DropReason::NoSlot));
        }
        let by_cookie = parts.cookie.is_some_and(|cookie| {
            self.cookie_key.verify(cookie_time(now), parts.client_id.0, path.remote, &cookie)
        });
        let limits = self.config.limits;
        let is_busy = self.handshakes >= limits.handshakes_without_cookie;
        // A token is remembered for itself.
        let may_be_replayed = verified.token.is_none() && self.memory.needs_cookie();
        if (is_busy || may_be_replayed) && !by_cookie {
            let cookie = self.cookie_key.make(cookie_time(now), parts.client_id.0, path.remote);
            let mut out = Vec::new();
            Retry { to: parts.client_id, cookie }.write(&mut out);
            self.answer(path, out);
            return Err((None, DropReason::NoCookie));
        }
        let has_room = match verified.token {
            Some(_) => self.memory.has_room_for_token(),
            None => self.memory.has_room(),
        };
        let share = self.prefixes.get(&Prefix::of(path.remote)).copied().unwrap_or_default();
        if !has_room
            || self.slots.len() >= limits.connections
            || share.connections >= limits.connections_per_prefix
        {
            return Err((Some(RefusalCode::Full), DropReason::NoSlot));
        }
        // No refusal here: handshakes are short, and the client repeats its request.
        if share.handshakes >= limits.handshakes_per_prefix {
            return Err((None, DropReason::NoSlot));
        }
        if self.handshakes >= limits.handshakes {
            self.make_room(now, Prefix::of(path.remote));
        }
        if self.handshakes >= limits.handshakes {
            return Err((None, DropReason::NoSlot));
        }
        // The matchmaker has exchanged data with someone at this address, but this request may be from
        // elsewhere: whoever has the token can name that source.
        let in_token = verified.token.as_ref().is_some_and(|token| token.claims.is_at(path.remote))
            && share.credited < MAX_CREDITED_PER_PREFIX;
        let address_proof = match (by_cookie, in_token) {
            (true, _) => AddressProof::Validated,
            (false, true) => AddressProof::InToken,
            (false, false) => AddressProof::None,
        };
        Ok(Admitted { address_proof })
    }

    /// Whether the token is for this server and was not used, as far as this server can know.
    fn check_token(
        &self,
        path: FourTuple,
        token: &OpenToken,
        name: &RequestName,
    ) -> Result<(), Refused> {
        let config = &self.config;
        let is_for_any = config.token_audience == TokenAudience::Any;
        if !is_for_any && !token.claims.is_for(&config.addresses, path.local) {
            return Err((Some(RefusalCode::WrongServer), DropReason::WrongServer));
        }
        match self.memory.token_use(&token.name, name) {
            TokenUse::New => {}
            TokenUse::SameRequest => return Err((None, DropReason::Replayed)),
            TokenUse::OtherRequest => {
                return Err((Some(RefusalCode::TokenUsed), DropReason::TokenUsed));
            }
        }
        // An earlier run of this server may have accepted it.
        let is_earlier = token.claims.issued_unix < self.unix_clock.started();
        if is_earlier && config.earlier_tokens == EarlierTokens::Refused {
            return Err((Some(RefusalCode::TokenUsed), DropReason::TokenUsed));
        }
        Ok(())
    }

    /// Agrees on keys and creates the connection.
    fn accept(
        &mut self,
        now: Instant,
        path: FourTuple,
        request: &Request<'_>,
        admitted: Admitted,
    ) -> Result<(), DropReason> {
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
            let keys = request.verified.keys.as_ref();
            self.refuse(now, path, client_id, RefusalCode::Downgrade, keys);
            return Err(DropReason::WrongVersion);
        }
        let server_id = self.new_id(&context);
        let config = Arc::clone(&self.connection_config);
        let welcome = Welcome {
            server_id,
            suite: self.suites.choose(hello.suites),
            end: config.end_parameters(),
        };
        let idle_timeout = config.agreed_idle_timeout(hello.end.idle_timeout);
        let grease = config.grease.then(|| Grease(self.entropy.bytes()));
        let app_request = Bytes::copy_from_slice(hello.request);
        let peer = hello.end;
        let mut plain = Zeroizing::new(Vec::with_capacity(MAX_WELCOME_BYTES));
        welcome.write_with(grease, &mut plain);
        // Without keys, anyone who watches could use it.
        let reset_token = responder.as_ref().map(|_| self.reset_key.reset_token(server_id.0));
        let reset_token = reset_token.map(|token| Box::new(Zeroizing::new(token)));
        let (welcome_message, protection) = match responder {
            Some((ephemeral, responder)) => {
                let answered = responder.answer(&ephemeral, &plain);
                let (message, secrets) = answered.map_err(|_| DropReason::BadHandshake)?;
                let sealed = Protection::sealed(now, Role::Server, welcome.suite, secrets, &config);
                (message, sealed.map_err(|_| DropReason::BadHandshake)?)
            }
            None => {
                let protocol_id = self.config.protocol_id;
                let open = Protection::Open { protocol_id, local: server_id, remote: client_id };
                (plain.to_vec(), open)
            }
        };
        let mut connection = Connection::new(
            now,
            Parameters {
                role: Role::Server,
                local: server_id,
                remote: client_id,
                protection,
                config,
                idle_timeout,
                peer,
                entropy: Entropy::new(self.entropy.bytes()),
                address: path,
                address_proof: admitted.address_proof,
                welcome_message,
                reset_token,
            },
        );
        let token = request.verified.token.as_ref();
        match token.map(|token| (token.name, token.claims.expiry_unix)) {
            Some((token, expiry)) => self.memory.remember_token(token, request.name, expiry),
            None => self.memory.remember(request.name),
        }
        let claims = token.map(|token| {
            if let Some(max_rate) = token.claims.max_rate {
                connection.cap_rate_bps(max_rate.bps());
            }
            token.claims.clone()
        });
        let has_credit = admitted.address_proof == AddressProof::InToken;
        let named = (request.name, request.bytes);
        self.insert(now, connection, named, app_request, claims, has_credit);
        Ok(())
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
        let identity = self.config.credentials.identity.as_ref();
        let identity = identity.filter(|_| parts.mode.identity);
        let prologue = RequestParts::prologue(parts.mode, parts.client_id);
        respond(keys.noise_psk(), identity, &prologue, parts.hello_message)
            .map_err(|_| DropReason::BadHandshake)
    }

    /// Queues a refusal, if the rate of answers allows it.
    fn refuse(
        &mut self,
        now: Instant,
        path: FourTuple,
        client_id: WireId,
        code: RefusalCode,
        keys: Option<&RequestKeys>,
    ) {
        if !self.may_answer(now) {
            return;
        }
        let mut out = Vec::new();
        Refusal::write(client_id, code, &mut out);
        let check = match keys {
            Some(keys) => keys.check(&out),
            None if code.is_verified() => open_check(self.config.protocol_id, &out),
            None => [0; 16],
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

fn cookie_time(now: Instant) -> u32 {
    let seconds = now.since(Instant::ZERO).as_secs() / u64::from(COOKIE_UNIT_SECONDS);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
