//! One direction of a connection: the keys that follow from its first secret, and its packet numbers.

use haulier_proto::connection::Suite;
use haulier_proto::internals::{AeadKey, TAG_BYTES, TrafficSecret, WireId, expand_number};

use crate::keylog::DirectionKey;

/// Keys that are tried beyond the newest one that fitted. A key lasts two minutes, so this is a pause, or a
/// capture that began late, of two hours.
const AHEAD: u64 = 64;

/// The maximum number of datagrams that are tried with all of these keys: forged ones cause no more work than
/// that.
const MAX_SEARCHES: u32 = 32;

/// A key of a direction, and the secret that it and the next one come from.
struct Generation {
    number: u64,
    secret: TrafficSecret,
    key: AeadKey,
}

impl Generation {
    fn new(number: u64, secret: TrafficSecret, suite: Suite) -> Option<Self> {
        let key = secret.key(suite).ok()?;
        Some(Self { number, secret, key })
    }

    fn next(&self, suite: Suite) -> Option<Self> {
        Self::new(self.number + 1, self.secret.next(), suite)
    }

    const fn has_phase(&self, phase: bool) -> bool {
        (self.number & 1 == 1) == phase
    }
}

/// The ciphertext of a datagram, and what else its seal depends on.
#[derive(Clone, Copy)]
pub(crate) struct Ciphertext<'a> {
    pub(crate) number: u32,
    pub(crate) phase: bool,
    pub(crate) associated: &'a [u8],
    pub(crate) text: &'a [u8],
    pub(crate) tag: &'a [u8; TAG_BYTES],
}

/// The content of an opened datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plaintext {
    /// The whole packet number.
    pub(crate) number: u64,
    /// The number of keys before this one.
    pub(crate) key_updates: u64,
    pub(crate) frames: Vec<u8>,
}

/// The receiving half of a connection, as a program has it that only listens.
pub(crate) struct Direction {
    pub(crate) client: WireId,
    pub(crate) server: WireId,
    suite: Suite,
    previous: Option<Generation>,
    current: Option<Generation>,
    /// The number after the largest one that was opened.
    pub(crate) expected: u64,
    searches: u32,
}

impl Direction {
    pub(crate) fn new(key: DirectionKey) -> Self {
        let DirectionKey { client, server, suite, first } = key;
        Self {
            client,
            server,
            suite,
            previous: None,
            current: Generation::new(0, first, suite),
            expected: 0,
            searches: 0,
        }
    }

    /// Opens a datagram with the key of its phase: the newest that fitted, the one before, or a later one.
    pub(crate) fn open(&mut self, sealed: Ciphertext<'_>) -> Option<Plaintext> {
        let number = expand_number(sealed.number, self.expected);
        let known = [&self.current, &self.previous].into_iter().flatten();
        let fitting = known.filter(|known| known.has_phase(sealed.phase));
        let opened = fitting.map(|known| (known.number, open(&known.key, number, sealed)));
        let opened = opened.filter_map(|(updates, frames)| Some((updates, frames?))).next();
        let (key_updates, frames) = opened.or_else(|| self.search(number, sealed))?;
        self.expected = self.expected.max(number.saturating_add(1));
        Some(Plaintext { number, key_updates, frames })
    }

    /// Opens it with a later key, which is then the newest. The next key alone costs no search.
    fn search(&mut self, number: u64, sealed: Ciphertext<'_>) -> Option<(u64, Vec<u8>)> {
        let last_opened = self.current.as_ref()?.number;
        let may_search = self.searches < MAX_SEARCHES;
        let ahead = if may_search { AHEAD } else { 1 };
        let mut before = None;
        let mut candidate = self.current.as_ref()?.next(self.suite)?;
        while candidate.number <= last_opened + ahead {
            if candidate.has_phase(sealed.phase)
                && let Some(frames) = open(&candidate.key, number, sealed)
            {
                let updates = candidate.number;
                let current = self.current.replace(candidate);
                self.previous = before.or(current);
                return Some((updates, frames));
            }
            let next = candidate.next(self.suite)?;
            before = Some(std::mem::replace(&mut candidate, next));
        }
        self.searches += u32::from(may_search);
        None
    }
}

fn open(key: &AeadKey, number: u64, sealed: Ciphertext<'_>) -> Option<Vec<u8>> {
    let mut text = sealed.text.to_vec();
    key.open(number, sealed.associated, &mut text, sealed.tag).ok()?;
    Some(text)
}
