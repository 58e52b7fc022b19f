//! Whether a verified request is accepted: the rules of the desk (STANDARD-1, H-3.1b; decision 0017).
//!
//! A worker has verified the request and its cookie before (`requests.rs`). The invariant: each question is
//! answered from memory, in a time that no client can lengthen; an accepted request is remembered and has its
//! seat before the next question.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use haulier_control::Known;

use super::desk::Desk;
use super::line::Turn;
use super::memory::{RequestName, TokenName, TokenUse};
use super::{ConnectionId, EarlierTokens, TokenAudience};
use crate::connection::AddressProof;
use crate::credentials::TokenClaims;
use crate::crypto::COOKIE_UNIT_SECONDS;
use crate::wire::answer::RefusalCode;
use crate::{DropReason, FourTuple, Instant};

/// The refusal to send, if any, and the reason to count.
pub(super) type Refused = (Option<RefusalCode>, DropReason);

/// A token that was opened.
pub(super) struct OpenToken {
    pub(super) name: TokenName,
    pub(super) claims: TokenClaims,
}

/// A worker's question to the desk about a verified request.
pub(super) struct Question<'a> {
    /// The worker that asks.
    pub(super) worker: u8,
    pub(super) path: FourTuple,
    pub(super) name: RequestName,
    pub(super) token: Option<&'a OpenToken>,
    /// It has a cookie that proves its address.
    pub(super) by_cookie: bool,
    /// The latest time of day of the worker, and the one when it was started.
    pub(super) unix_time: u64,
    pub(super) started_unix: u64,
    /// The datagram that is sent when the request is called in the line.
    pub(super) call: &'a [u8],
}

/// The desk's answer.
pub(super) enum Verdict {
    /// A copy of the request of this connection, of the worker that asks.
    Copy(ConnectionId),
    /// A copy of a request that this worker has.
    Elsewhere(usize),
    /// The client has to repeat the request with a cookie.
    Retry,
    /// The client has to wait: its place in line, an estimate, and when to ask again.
    InLine {
        place: Option<u32>,
        estimate: Option<Duration>,
        again: Duration,
        /// A handshake that is to be ended, because it keeps a seat from the clients in line.
        ends: Option<ConnectionId>,
    },
    Refused(Refused),
    Accepted(Seat),
}

/// A request may become a connection.
pub(super) struct Seat {
    pub(super) address_proof: AddressProof,
    /// The values to assume for its path.
    pub(super) known: Known,
    /// A handshake that is to be ended to make room.
    pub(super) ends: Option<ConnectionId>,
}

/// Names a client, as its token does.
pub(super) type ClientName = [u8; 8];

/// The maximum number of handshakes of one prefix that have the larger credit of an address in their token at
/// a time. A handshake that is never completed lasts 10 s, so spoofed ones make the server send 1.5 MiB in
/// that time to a victim, however many tokens there are. Those of an honest address last a round trip.
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

    /// The network that it is in: the /24 of an IPv4 address, the /48 of an IPv6 /64. Whoever has many
    /// addresses has most of them in a few of these.
    pub(super) const fn network(self) -> Self {
        let Self([a, b, c, d, e, f, g, _]) = self;
        match [a, b, c, d] {
            [0, 0, 0xff, 0xff] => Self([a, b, c, d, e, f, g, 0]),
            _ => Self([a, b, c, d, e, f, 0, 0]),
        }
    }
}

impl Desk {
    /// Decides about a request whose check is verified.
    pub(super) fn judge(&mut self, now: Instant, question: &Question<'_>) -> Verdict {
        self.ended.forget_old(now);
        self.line.forget_old(now);
        let worker = usize::from(question.worker);
        match self.seats.get(&question.name) {
            Some(&id) if id.worker() == worker => return Verdict::Copy(id),
            Some(id) => return Verdict::Elsewhere(id.worker()),
            None => {}
        }
        if let Some(other) = self.ended.worker_of(&question.name).filter(|&other| other != worker) {
            return Verdict::Elsewhere(other);
        }
        self.asked_at = now;
        self.unix_time = self.unix_time.max(question.unix_time);
        if self.started_unix == 0 {
            self.started_unix = question.started_unix;
        }
        self.memory.forget_expired(self.unix_time, cookie_time(now));
        self.admit(now, question).unwrap_or_else(Verdict::Refused)
    }

    /// Checks replays, cookies and limits.
    fn admit(&mut self, now: Instant, question: &Question<'_>) -> Result<Verdict, Refused> {
        let Question { path, name, token, by_cookie, .. } = question;
        match token {
            Some(token) => self.check_token(*path, token, name)?,
            None if self.memory.knows(name) => return Err((None, DropReason::Replayed)),
            None => {}
        }
        if self.is_shutting_down {
            return Err((Some(RefusalCode::ShuttingDown), DropReason::NoSlot));
        }
        let limits = self.rules.config.limits;
        let is_known = self.line.knows(name, *path);
        let has_cookie = *by_cookie || is_known;
        // The handshake of a transport may prove the address too. But it cannot replace a cookie where the
        // memory needs one: the requests that the memory has forgotten have an old cookie.
        let is_proven = has_cookie || path.carried.is_some_and(|carried| carried.is_proven);
        // Each token is remembered, and takes one place at most: a flood needs one token for each place.
        let is_busy = self.handshakes.len() >= limits.handshakes_without_cookie;
        let needs_cookie = token.is_none() && (is_busy || self.memory.needs_cookie());
        let queues = self.line.is_before(name, self.free_seats());
        if (needs_cookie && !has_cookie) || (queues && !is_proven) {
            return Ok(Verdict::Retry);
        }
        let has_room = match token {
            Some(_) => self.memory.has_room_for_token(),
            None => self.memory.has_room(),
        };
        let prefix = Prefix::of(path.remote);
        let of_prefix = self.prefixes.get(&prefix).copied().unwrap_or_default();
        let is_full = self.free_seats() == 0 && !queues;
        if !has_room || is_full || of_prefix >= limits.connections_per_prefix {
            return Err((Some(RefusalCode::Full), DropReason::NoSlot));
        }
        if queues
            && let Turn::Waits { place, estimate, again } =
                self.line.ask(now, *name, *path, self.free_seats(), question.call)
        {
            let ends = self.end_overdue(now, question.worker);
            return Ok(Verdict::InLine { place, estimate, again, ends });
        }
        // No refusal here: handshakes are short, and the client repeats its request.
        let of_prefix = self.handshakes.of(prefix);
        if of_prefix.handshakes >= limits.handshakes_per_prefix {
            return Err((None, DropReason::NoSlot));
        }
        let is_crowded = self.handshakes.len() >= limits.handshakes;
        let ends = if is_crowded { self.make_room(now, prefix, question.worker) } else { None };
        if self.handshakes.len() >= limits.handshakes {
            return Err((None, DropReason::NoSlot));
        }
        // The matchmaker has exchanged data with someone at this address, but this request may be from
        // elsewhere: whoever has the token can name that source.
        let in_token = token.is_some_and(|token| token.claims.is_at(path.remote))
            && of_prefix.credited < MAX_CREDITED_PER_PREFIX;
        let address_proof = match (is_proven, in_token) {
            (true, _) => AddressProof::Validated,
            (false, true) => AddressProof::InToken,
            (false, false) => AddressProof::None,
        };
        Ok(Verdict::Accepted(self.give_seat(now, question, address_proof, ends)))
    }

    /// Whether the token is for this server and was not used, as far as this server can know.
    fn check_token(
        &self,
        path: FourTuple,
        token: &OpenToken,
        name: &RequestName,
    ) -> Result<(), Refused> {
        let config = &self.rules.config;
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
        // A token that has expired by the clock of another worker may be forgotten already. A client that
        // has waited in line since its token was valid keeps its place.
        if token.claims.expiry_unix <= self.unix_time && !self.line.knows(name, path) {
            return Err((Some(RefusalCode::TokenExpired), DropReason::TokenExpired));
        }
        // An earlier run of this server may have accepted it.
        let is_earlier = token.claims.issued_unix < self.started_unix;
        if is_earlier && config.earlier_tokens == EarlierTokens::Refused {
            return Err((Some(RefusalCode::TokenUsed), DropReason::TokenUsed));
        }
        Ok(())
    }

    /// Remembers the request and counts its connection.
    fn give_seat(
        &mut self,
        now: Instant,
        question: &Question<'_>,
        address_proof: AddressProof,
        ends: Option<ConnectionId>,
    ) -> Seat {
        let Question { path, name, token, .. } = question;
        match token {
            Some(token) => {
                self.memory.remember_token(token.name, *name, token.claims.expiry_unix);
            }
            None => self.memory.remember(*name),
        }
        self.line.leave(name);
        let prefix = Prefix::of(path.remote);
        let has_credit = address_proof == AddressProof::InToken;
        *self.prefixes.entry(prefix).or_default() += 1;
        self.handshakes.begin(now, *name, prefix, has_credit);
        self.seats.insert(*name, ConnectionId::coming(question.worker));
        let client = token.and_then(|token| token.claims.client());
        Seat { address_proof, known: self.paths.recall(now, path.remote.ip(), client), ends }
    }
}

/// The time of cookies, in their unit.
pub(super) fn cookie_time(now: Instant) -> u32 {
    let seconds = now.since(Instant::ZERO).as_secs() / u64::from(COOKIE_UNIT_SECONDS);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
