//! The handshake of a client: it repeats its request until a response is verified.
//!
//! The invariant: every copy of the request has the same id and hello message, so that the server sees one.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use zeroize::Zeroizing;

use super::{ClientConfig, ClientError, Credentials};
use crate::connection::trace::TraceEvent;
use crate::connection::{
    AddressProof, CloseReason, Connection, Ends, Parameters, Protection, Trace,
};
use crate::crypto::{
    COOKIE_BYTES, Entropy, Initiator, RequestKeys, Suites, address_bytes, equal, open_check,
};
use crate::wire::answer::{InLine, Refusal, RefusalCode, Retry};
use crate::wire::request::{CHECKED_BYTES, Source};
use crate::wire::{
    Grease, Hello, Mode, RequestParts, ResponseHeader, Role, Versions, Welcome, WireId,
};
use crate::{DatagramBuffer, DropReason, FourTuple, Instant, Platform};

/// The time between two requests (H-3.3a). Where losses come in runs of eight packets in the mean, seven of
/// eight requests that follow a lost one are lost too: with intervals that grew to 2 s, and so 12 requests in
/// 10 s, one client of ninety gave up on such a link; with 43 it is one of six thousand.
const INTERVAL: Duration = Duration::from_millis(250);

/// How long the client continues after a refusal that cannot be verified (H-3.6b).
const HINT_TIMEOUT: Duration = Duration::from_secs(1);

/// Retries that a client follows at most. Cookies expire, so more than one can be honest; a loop is not.
const MAX_RETRIES: u8 = 4;

/// The maximum of copies sent at once (3.5).
const MAX_COPIES: u8 = 10;

/// The minimum time that a client in line waits for its next answer, in multiples of the server's interval.
const INTERVALS_TO_GIVE_UP: u32 = 3;

/// A client that was called does not follow another call before this.
const MIN_CALL_INTERVAL: Duration = Duration::from_secs(1);

/// Clients that have the same time for their next question spread over a fifth of it before and after.
const SPREAD: f64 = 0.2;

/// The server's last report about the line.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// The place and the estimate that the application has not heard of.
    news: Option<(Option<u32>, Option<Duration>)>,
    told: Option<Option<u32>>,
    /// When it was called last.
    called: Option<Instant>,
}

/// Whether a handshake continues.
#[derive(Debug)]
pub(super) enum Progress {
    Continues,
    Failed(CloseReason),
}

/// The keys of the handshake, except in mode `open`.
#[derive(Debug)]
struct Keys {
    request: RequestKeys,
    initiator: Initiator,
}

#[derive(Debug)]
pub(super) struct Handshake {
    config: ClientConfig,
    entropy: Entropy,
    suites: Suites,
    mode: Mode,
    local: WireId,
    hello_message: Vec<u8>,
    /// In a box, because a client is moved to where it stays, and leaves a copy behind, which nothing wipes.
    keys: Option<Box<Keys>>,
    cookie: Option<[u8; COOKIE_BYTES]>,
    retries: u8,
    copies_due: u8,
    next_at: Instant,
    deadline: Instant,
    /// A refusal that cannot be verified, and when it is reported.
    hint: Option<(RefusalCode, Instant)>,
    /// In a box, because an empty place would be filled with what was on the stack before, a key for example.
    in_line: Option<Box<Waiting>>,
    pub(super) trace: Option<Box<Trace>>,
}

impl Handshake {
    pub(super) fn new(
        now: Instant,
        config: ClientConfig,
        platform: Platform,
    ) -> Result<Self, ClientError> {
        let mut entropy = Entropy::new(platform.seed);
        let local = WireId(entropy.bytes());
        let (source, secret, identity) = match &config.credentials {
            Credentials::Open => (Source::Open, None, None),
            Credentials::Secret { secret, identity } => {
                (Source::Secret, Some(secret), identity.as_ref())
            }
            Credentials::Token(token) => (Source::Token, Some(token.secret()), token.identity()),
        };
        let mode = Mode { source, identity: identity.is_some() };
        let suites = Suites::available(platform.has_aes);
        let grease = config.connection.grease.then(|| Grease(entropy.bytes()));
        let hello = hello(&config, suites, grease);
        let mut keys = None;
        let mut hello_message = hello;
        if let Some(secret) = secret {
            let request = RequestKeys::new(secret, config.protocol_id);
            let prologue = RequestParts::prologue(mode, local);
            let (moment, to) = (now.as_nanos().to_le_bytes(), address_bytes(config.server));
            let (initiator, message) = Initiator::new(
                request.noise_psk(),
                identity,
                &prologue,
                entropy.hedged(&[secret.as_bytes(), &moment, &to]),
                &hello_message,
            )
            .map_err(|_| ClientError::Handshake)?;
            hello_message = message;
            keys = Some(Box::new(Keys { request, initiator }));
        }
        let mut trace = Trace::new(&config.connection);
        if let Some(trace) = &mut trace {
            let (peer, client_id) = (config.server, local.0);
            trace.push(now, TraceEvent::Started { is_client: true, peer, client_id });
            if let Some(key) = keys.as_ref().and_then(|keys| keys.initiator.message_key()) {
                trace.message_key(now, local, true, &key);
            }
        }
        Ok(Self {
            trace,
            copies_due: config.copies.clamp(1, MAX_COPIES),
            deadline: now + config.connection.handshake_timeout,
            config,
            entropy,
            suites,
            mode,
            local,
            hello_message,
            keys,
            cookie: None,
            retries: 0,
            next_at: now,
            hint: None,
            in_line: None,
        })
    }

    /// Whether the welcome is authenticated: except in mode `open`.
    pub(super) const fn is_authenticated(&self) -> bool {
        self.keys.is_some()
    }

    /// Verifies the welcome of a response, and creates the connection.
    pub(super) fn on_response(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<Connection, DropReason> {
        let header = ResponseHeader::read(datagram)?;
        if header.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        let (welcome, protection) = match &mut self.keys {
            Some(keys) => {
                let (trace, local) = (&mut self.trace, self.local);
                let (welcome, secrets) = keys
                    .initiator
                    .finish_seen(header.welcome_message, |key| {
                        trace.iter_mut().for_each(|it| it.message_key(now, local, false, key));
                    })
                    .map_err(|_| DropReason::BadHandshake)?;
                let welcome = Welcome::read(&Zeroizing::new(welcome))?;
                let suite = welcome.suite;
                if !self.suites.contains(suite) {
                    return Err(DropReason::BadHandshake);
                }
                let ids = (local, welcome.server_id);
                trace.iter_mut().for_each(|it| it.traffic_secrets(now, ids, suite, &secrets));
                let sealed =
                    Protection::sealed(now, Role::Client, suite, secrets, &self.config.connection);
                (welcome, sealed.map_err(|_| DropReason::BadHandshake)?)
            }
            None => {
                let welcome = Welcome::read(header.welcome_message)?;
                let protection = Protection::Open {
                    protocol_id: self.config.protocol_id,
                    local: self.local,
                    remote: welcome.server_id,
                };
                (welcome, protection)
            }
        };
        let config = Arc::new(self.config.connection);
        let parameters = Parameters {
            ends: Ends {
                role: Role::Client,
                local: self.local,
                remote: welcome.server_id,
                has_other_secret: false,
            },
            protection,
            idle_timeout: config.agreed_idle_timeout(welcome.end.idle_timeout),
            config,
            peer: welcome.end,
            entropy: Entropy::new(self.entropy.bytes()),
            address: FourTuple::new(self.config.server),
            address_proof: AddressProof::Validated,
            welcome_message: Vec::new(),
            reset_token: None,
            trace: self.trace.take(),
        };
        Ok(Connection::new(now, parameters))
    }

    pub(super) fn on_retry(&mut self, now: Instant, retry: &Retry) -> Result<(), DropReason> {
        if retry.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        // Each copy of a request can cause one; only the first counts.
        let is_new = self.copies_due == 0 && self.cookie != Some(retry.cookie);
        if !is_new || self.retries >= MAX_RETRIES {
            return Err(DropReason::NotNow);
        }
        self.retries += 1;
        self.cookie = Some(retry.cookie);
        // As many as at first: the server has forgotten those.
        self.copies_due = self.config.copies.clamp(1, MAX_COPIES);
        self.next_at = now;
        Ok(())
    }

    pub(super) fn on_refusal(
        &mut self,
        now: Instant,
        refusal: &Refusal<'_>,
    ) -> Result<Progress, DropReason> {
        if refusal.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        if refusal.code.is_verified() {
            let expected = match &self.keys {
                Some(keys) => keys.request.check(refusal.checked),
                None => open_check(self.config.protocol_id, refusal.checked),
            };
            if !equal(&expected, &refusal.check) {
                return Err(DropReason::BadCheckValue);
            }
            return Ok(Progress::Failed(CloseReason::Refused(refusal.code)));
        }
        if refusal.check != [0; 16] {
            return Err(DropReason::BadCheckValue);
        }
        self.hint.get_or_insert((refusal.code, self.deadline.min(now + HINT_TIMEOUT)));
        Ok(Progress::Continues)
    }

    /// There is no seat yet: asks again when the server says, and lives until then.
    pub(super) fn on_in_line(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<Progress, DropReason> {
        let (answer, checked, check) = InLine::read(datagram)?;
        if answer.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        let expected = match &self.keys {
            Some(keys) => keys.request.check(checked),
            None => open_check(self.config.protocol_id, checked),
        };
        if !equal(&expected, &check) {
            return Err(DropReason::BadCheckValue);
        }
        let waiting = self.in_line.get_or_insert_with(|| {
            Box::new(Waiting { since: now, news: None, told: None, called: None })
        });
        let patience = self.config.max_time_in_line;
        if now.since(waiting.since) >= patience {
            return Ok(Progress::Failed(CloseReason::Refused(RefusalCode::Full)));
        }
        if answer.place == Some(0) {
            // A copy of it must not make a client ask again and again.
            let is_copy = waiting.called.is_some_and(|at| now.since(at) < MIN_CALL_INTERVAL);
            if is_copy {
                return Err(DropReason::NotNow);
            }
            waiting.called = Some(now);
        } else if waiting.told != Some(answer.place) {
            waiting.told = Some(answer.place);
            waiting.news = Some((answer.place, answer.estimate));
        }
        let [draw, ..] = self.entropy.bytes::<4>();
        let spread = 1.0 + SPREAD * (f64::from(draw) / 127.5 - 1.0);
        let again = answer.again.min(patience).mul_f64(spread);
        let timeout = self.config.connection.handshake_timeout;
        self.next_at = now + again;
        self.deadline = now + again + (answer.again * INTERVALS_TO_GIVE_UP).max(timeout);
        (self.retries, self.copies_due) = (0, 0);
        Ok(Progress::Continues)
    }

    /// The place in line and an estimate, if they are another one than the application has heard.
    pub(super) fn poll_place(&mut self) -> Option<(Option<u32>, Option<Duration>)> {
        self.in_line.as_mut()?.news.take()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Progress {
        match self.hint {
            Some((code, at)) if at <= now => Progress::Failed(CloseReason::Refused(code)),
            _ if self.deadline <= now => Progress::Failed(CloseReason::NoAnswer),
            _ => Progress::Continues,
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut DatagramBuffer<'_>) -> bool {
        if self.copies_due == 0 {
            if now < self.next_at {
                return false;
            }
            self.copies_due = 1;
        }
        self.copies_due -= 1;
        if self.copies_due == 0 {
            self.next_at = now + INTERVAL;
        }
        let is_written = self.write_request(out);
        if let Some(trace) = self.trace.as_mut().filter(|_| is_written) {
            let request = trace.next_request(out.len());
            trace.push(now, TraceEvent::DatagramSent(request));
        }
        is_written
    }

    fn write_request(&mut self, out: &mut DatagramBuffer<'_>) -> bool {
        let token = match &self.config.credentials {
            Credentials::Token(token) => token.sealed(),
            _ => &[],
        };
        let parts = RequestParts {
            mode: self.mode,
            client_id: self.local,
            cookie: self.cookie,
            token,
            hello_message: &self.hello_message,
            checked: &[],
            check: [0; 16],
        };
        if !parts.write(out.vec(), |padding| self.entropy.fill(padding)) {
            return false;
        }
        debug_assert_eq!(out.len(), CHECKED_BYTES);
        let check = match &self.keys {
            Some(keys) => keys.request.check(out),
            None => open_check(self.config.protocol_id, out),
        };
        out.vec().extend_from_slice(&check);
        true
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        let next = if self.copies_due > 0 { Instant::ZERO } else { self.next_at };
        next.min(self.hint.map_or(self.deadline, |(_, at)| at))
    }
}

fn hello(config: &ClientConfig, suites: Suites, grease: Option<Grease>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello {
        versions: Versions::OURS,
        suites,
        end: config.connection.end_parameters(),
        roots: &[],
        request: &config.request,
    }
    .write_with(grease, &mut bytes);
    bytes
}
