//! Requests and tokens that a server has seen, so that replaying a recorded one has no effect.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// Names a request, whatever its cookie and padding: the client's id and the start of its ephemeral key, both
/// random.
pub(super) type RequestName = [u8; 16];

/// Names a token: its nonce.
pub(super) type TokenName = [u8; 24];

/// Requests seen and tokens used. Bounded: the oldest request makes room for a new one, and a token is only
/// forgotten once it has expired.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    capacity: usize,
    requests: BTreeSet<RequestName>,
    order: VecDeque<RequestName>,
    tokens: BTreeMap<TokenName, RequestName>,
    by_expiry: BTreeSet<(u64, TokenName)>,
}

impl Memory {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            requests: BTreeSet::new(),
            order: VecDeque::new(),
            tokens: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
        }
    }

    /// Whether this request was seen.
    pub(super) fn knows(&self, request: &RequestName) -> bool {
        self.requests.contains(request)
    }

    /// Whether this token was used for another request.
    pub(super) fn is_used(&self, token: &TokenName, request: &RequestName) -> bool {
        self.tokens.get(token).is_some_and(|used_by| used_by != request)
    }

    /// Whether one more token can be remembered.
    pub(super) fn has_room(&self) -> bool {
        self.tokens.len() < self.capacity
    }

    /// Forgets tokens that have expired by `now`, in Unix seconds: they are refused for that reason.
    pub(super) fn forget_expired(&mut self, now: u64) {
        while let Some(&(expiry, token)) = self.by_expiry.first()
            && expiry < now
        {
            self.by_expiry.pop_first();
            self.tokens.remove(&token);
        }
    }

    pub(super) fn remember(&mut self, request: RequestName) {
        if self.order.len() >= self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.requests.remove(&oldest);
        }
        if self.requests.insert(request) {
            self.order.push_back(request);
        }
    }

    pub(super) fn remember_token(&mut self, token: TokenName, request: RequestName, expiry: u64) {
        if self.has_room() {
            self.tokens.insert(token, request);
            self.by_expiry.insert((expiry, token));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len() + self.tokens.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_request_makes_room_and_an_expired_token_does() {
        let mut memory = Memory::new(2);
        (0..3).for_each(|i| memory.remember([i; 16]));
        assert!(!memory.knows(&[0; 16]) && memory.knows(&[1; 16]) && memory.knows(&[2; 16]));
        memory.remember_token([1; 24], [1; 16], 10);
        memory.remember_token([2; 24], [2; 16], 20);
        assert!(!memory.has_room());
        assert!(memory.is_used(&[1; 24], &[9; 16]) && !memory.is_used(&[1; 24], &[1; 16]));
        memory.forget_expired(11);
        assert!(memory.has_room() && !memory.is_used(&[1; 24], &[9; 16]));
        assert!(memory.is_used(&[2; 24], &[9; 16]));
    }

    #[test]
    fn a_million_of_each_are_bounded_by_the_capacity() {
        let mut memory = Memory::new(1000);
        for i in 0..1_000_000u64 {
            let mut name = [0; 16];
            name[..8].copy_from_slice(&i.to_le_bytes());
            memory.remember(name);
            let mut token = [0; 24];
            token[..8].copy_from_slice(&i.to_le_bytes());
            memory.forget_expired(i);
            memory.remember_token(token, name, i + 60);
        }
        assert!(memory.len() <= 2000);
    }
}
