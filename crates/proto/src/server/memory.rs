//! Requests that a server has accepted, so that a recorded one is not accepted again.
//!
//! The invariant: nothing is forgotten while a copy of it could still be accepted. A token is remembered
//! until it expires. A request without one is remembered for the whole run; when there is no room for more,
//! requests need a cookie from then on, and one that has it is remembered until the cookie is no longer
//! valid. When there is no room for that either, it is refused.

use alloc::collections::{BTreeMap, BTreeSet};

/// Names a request, whatever its cookie and padding: the client's id and the start of its ephemeral key,
/// both random.
pub(super) type RequestName = [u8; 16];

/// Names a token: its nonce.
pub(super) type TokenName = [u8; 24];

/// Whether a token was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenUse {
    /// It was not.
    New,
    /// By a copy of the same request.
    SameRequest,
    /// By another request.
    OtherRequest,
}

/// Requests accepted and tokens used.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    capacity: usize,
    requests: BTreeSet<RequestName>,
    /// Requests accepted by their cookies since there is no more room, and the unit of the cookies' time;
    /// and those of the unit before. A cookie is valid in its unit and the next.
    by_cookie: BTreeSet<RequestName>,
    unit: u32,
    earlier: BTreeSet<RequestName>,
    tokens: BTreeMap<TokenName, RequestName>,
    by_expiry: BTreeSet<(u64, TokenName)>,
}

impl Memory {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            requests: BTreeSet::new(),
            by_cookie: BTreeSet::new(),
            unit: 0,
            earlier: BTreeSet::new(),
            tokens: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
        }
    }

    /// Whether this request, without a token, was accepted.
    pub(super) fn knows(&self, request: &RequestName) -> bool {
        [&self.requests, &self.by_cookie, &self.earlier]
            .into_iter()
            .any(|set| set.contains(request))
    }

    /// Whether a request without a token needs a cookie, because it may be older than what is remembered.
    pub(super) fn needs_cookie(&self) -> bool {
        self.requests.len() >= self.capacity
    }

    /// Whether one more request without a token can be remembered.
    pub(super) fn has_room(&self) -> bool {
        !self.needs_cookie() || self.by_cookie.len() + self.earlier.len() < self.capacity
    }

    /// A request without a token is accepted.
    pub(super) fn remember(&mut self, request: RequestName) {
        let set = if self.needs_cookie() { &mut self.by_cookie } else { &mut self.requests };
        set.insert(request);
    }

    /// Takes back what [`remember`](Self::remember) did: the request came to nothing.
    pub(super) fn forget(&mut self, request: &RequestName) {
        for set in [&mut self.requests, &mut self.by_cookie, &mut self.earlier] {
            set.remove(request);
        }
    }

    /// How this token was used.
    pub(super) fn token_use(&self, token: &TokenName, request: &RequestName) -> TokenUse {
        match self.tokens.get(token) {
            None => TokenUse::New,
            Some(used_by) if used_by == request => TokenUse::SameRequest,
            Some(_) => TokenUse::OtherRequest,
        }
    }

    /// Whether one more token can be remembered.
    pub(super) fn has_room_for_token(&self) -> bool {
        self.tokens.len() < self.capacity
    }

    /// A token is used, by this request.
    pub(super) fn remember_token(&mut self, token: TokenName, request: RequestName, expiry: u64) {
        self.tokens.insert(token, request);
        self.by_expiry.insert((expiry, token));
    }

    /// Takes back what [`remember_token`](Self::remember_token) did: the request came to nothing.
    pub(super) fn forget_token(&mut self, token: &TokenName, expiry: u64) {
        self.tokens.remove(token);
        self.by_expiry.remove(&(expiry, *token));
    }

    /// Forgets what can no longer be accepted at this Unix time and this unit of the cookies' time: neither
    /// goes back.
    pub(super) fn forget_expired(&mut self, unix_time: u64, unit: u32) {
        while let Some(&(expiry, token)) = self.by_expiry.first()
            && expiry <= unix_time
        {
            self.by_expiry.pop_first();
            self.tokens.remove(&token);
        }
        if unit != self.unit {
            let newest = core::mem::take(&mut self.by_cookie);
            let is_next = unit.wrapping_sub(self.unit) == 1;
            self.earlier = if is_next { newest } else { BTreeSet::new() };
            self.unit = unit;
        }
    }

    pub(super) fn len(&self) -> usize {
        let requests = self.requests.len() + self.by_cookie.len() + self.earlier.len();
        requests + self.tokens.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_never_forgotten_and_a_full_memory_says_so() {
        let mut memory = Memory::new(2);
        assert!(!memory.needs_cookie());
        (0..2).for_each(|i| memory.remember([i; 16]));
        assert!(memory.needs_cookie() && memory.has_room());
        (2..4).for_each(|i| memory.remember([i; 16]));
        assert!(!memory.has_room());
        assert!((0..4).all(|i| memory.knows(&[i; 16])));
        memory.forget_expired(0, 1);
        assert!(!memory.has_room() && memory.knows(&[3; 16]), "its cookie is still valid");
        memory.forget_expired(0, 2);
        assert!(memory.needs_cookie() && memory.has_room());
        assert!(memory.knows(&[1; 16]) && !memory.knows(&[3; 16]));
        memory.remember([4; 16]);
        memory.forget_expired(0, 9);
        assert!(!memory.knows(&[4; 16]));
    }

    #[test]
    fn tokens_are_remembered_until_they_expire() {
        let mut memory = Memory::new(2);
        memory.remember_token([1; 24], [1; 16], 10);
        memory.remember_token([2; 24], [2; 16], 20);
        assert!(!memory.has_room_for_token());
        assert_eq!(memory.token_use(&[1; 24], &[1; 16]), TokenUse::SameRequest);
        assert_eq!(memory.token_use(&[1; 24], &[9; 16]), TokenUse::OtherRequest);
        memory.forget_expired(9, 0);
        assert!(!memory.has_room_for_token());
        memory.forget_expired(10, 0);
        assert!(memory.has_room_for_token());
        assert_eq!(memory.token_use(&[1; 24], &[9; 16]), TokenUse::New);
        assert_eq!(memory.token_use(&[2; 24], &[9; 16]), TokenUse::OtherRequest);
    }
}
