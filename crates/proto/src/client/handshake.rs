//! A client before it is welcome: requests, again and again, until a response verifies.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{ClientConfig, ClientError, Credentials};
use crate::connection::{CloseReason, Connection, Parameters, Protection};
use crate::crypto::{COOKIE_BYTES, Entropy, Initiator, RequestKeys, Suites, equal, open_check};
use crate::wire::answer::{Refusal, RefusalCode, Retry};
use crate::wire::hello::WELCOME_BYTES;
use crate::wire::request::{CHECKED_BYTES, Source};
use crate::wire::{Hello, Mode, RequestParts, ResponseHeader, Role, VERSION, Welcome, WireId};
use crate::{DatagramBuffer, DropReason, FourTuple, Instant, Platform};

/// When the request is sent again the first time; 1.5 times as long each time after.
const FIRST_RESEND: Duration = Duration::from_millis(250);

/// The longest time between two requests.
const LAST_RESEND: Duration = Duration::from_secs(2);

/// How long a refusal that cannot be verified is doubted.
const DOUBT: Duration = Duration::from_secs(1);

/// Cookies that a client accepts: they age, but a server that asks for ever is none.
const MAX_RETRIES: u8 = 4;

/// The most copies sent at once.
const MAX_COPIES: u8 = 10;

/// Bytes of Noise message 2 beside its payload: an ephemeral key and a tag.
const NOISE_BYTES: usize = 32 + 16;

/// Whether a handshake goes on.
#[derive(Debug)]
pub(super) enum Verdict {
    GoesOn,
    Over(CloseReason),
}

/// What proves and protects the handshake, but in mode `open`.
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
    keys: Option<Keys>,
    cookie: Option<[u8; COOKIE_BYTES]>,
    retries: u8,
    copies_left: u8,
    next_at: Instant,
    interval: Duration,
    began: Instant,
    /// A refusal that could not be verified, and when it came.
    hint: Option<(RefusalCode, Instant)>,
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
        let hello = hello(&config, suites);
        let mut keys = None;
        let mut hello_message = hello;
        if let Some(secret) = secret {
            let request = RequestKeys::new(secret, config.protocol_id);
            let prologue = RequestParts::prologue(mode, local);
            let (initiator, message) = Initiator::new(
                request.noise_psk(),
                identity,
                &prologue,
                entropy.bytes(),
                &hello_message,
            )
            .map_err(|_| ClientError::Handshake)?;
            hello_message = message;
            keys = Some(Keys { request, initiator });
        }
        Ok(Self {
            copies_left: config.copies.clamp(1, MAX_COPIES),
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
            interval: FIRST_RESEND,
            began: now,
            hint: None,
        })
    }

    /// The bytes of the welcome message of every response to this client.
    pub(super) fn welcome_bytes(&self) -> usize {
        WELCOME_BYTES + if self.keys.is_some() { NOISE_BYTES } else { 0 }
    }

    /// Verifies a response's welcome, and makes the connection of it.
    pub(super) fn on_response(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<(Connection, Option<[u8; 16]>), DropReason> {
        let header = ResponseHeader::read(datagram, self.welcome_bytes())?;
        if header.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        let (welcome, protection) = match &mut self.keys {
            Some(keys) => {
                let (welcome, secrets) = keys
                    .initiator
                    .finish(header.welcome_message)
                    .map_err(|_| DropReason::BadHandshake)?;
                let welcome = Welcome::read(&welcome)?;
                let suite = welcome.suite;
                if !self.suites.contains(suite) {
                    return Err(DropReason::BadHandshake);
                }
                let sealed = Protection::sealed(now, Role::Client, suite, secrets);
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
            role: Role::Client,
            local: self.local,
            remote: welcome.server_id,
            protection,
            idle_timeout: config.agreed_idle_timeout(welcome.idle_timeout),
            config,
            largest_block: welcome.largest_block,
            entropy: Entropy::new(self.entropy.bytes()),
            address: FourTuple::new(self.config.server),
            address_proven: true,
            welcome_message: Vec::new(),
        };
        let reset_token = self.keys.as_ref().map(|_| welcome.reset_token);
        Ok((Connection::new(now, parameters), reset_token))
    }

    pub(super) fn on_retry(&mut self, now: Instant, retry: &Retry) -> Result<(), DropReason> {
        if retry.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        // Each copy of a request brings one; only the first of them counts.
        let is_new = self.copies_left == 0 && self.cookie != Some(retry.cookie);
        if !is_new || self.retries >= MAX_RETRIES {
            return Err(DropReason::NotNow);
        }
        self.retries += 1;
        self.cookie = Some(retry.cookie);
        self.copies_left = 1;
        self.next_at = now;
        Ok(())
    }

    pub(super) fn on_refusal(
        &mut self,
        now: Instant,
        refusal: &Refusal<'_>,
    ) -> Result<Verdict, DropReason> {
        if refusal.to != self.local {
            return Err(DropReason::UnknownConnection);
        }
        if refusal.code.is_verified() {
            let right = match &self.keys {
                Some(keys) => keys.request.check(refusal.checked),
                None => open_check(self.config.protocol_id, refusal.checked),
            };
            if !equal(&right, &refusal.check) {
                return Err(DropReason::BadCheckValue);
            }
            return Ok(Verdict::Over(CloseReason::Refused(refusal.code)));
        }
        if refusal.check != [0; 16] {
            return Err(DropReason::BadCheckValue);
        }
        self.hint.get_or_insert((refusal.code, now));
        Ok(Verdict::GoesOn)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Verdict {
        let deadline = self.began + self.config.connection.handshake_timeout;
        if let Some((code, at)) = self.hint
            && (now.since(at) >= DOUBT || now >= deadline)
        {
            return Verdict::Over(CloseReason::Refused(code));
        }
        if now >= deadline {
            return Verdict::Over(CloseReason::NoAnswer);
        }
        Verdict::GoesOn
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut DatagramBuffer<'_>) -> bool {
        if self.copies_left == 0 {
            if now < self.next_at {
                return false;
            }
            self.copies_left = 1;
        }
        self.copies_left -= 1;
        if self.copies_left == 0 {
            self.next_at = now + self.interval;
            self.interval = (self.interval * 3 / 2).min(LAST_RESEND);
        }
        self.write_request(out)
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
        let deadline = self.began + self.config.connection.handshake_timeout;
        let doubted = self.hint.map_or(deadline, |(_, at)| at + DOUBT);
        let next = if self.copies_left > 0 { Instant::ZERO } else { self.next_at };
        next.min(doubted).min(deadline)
    }
}

fn hello(config: &ClientConfig, suites: Suites) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello {
        versions: &[VERSION],
        suites,
        idle_timeout: config.connection.idle_timeout,
        largest_block: config.connection.largest_block,
        request: &config.request,
    }
    .write(&mut bytes);
    bytes
}
