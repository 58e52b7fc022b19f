//! Encrypting and decrypting datagrams, and key updates (STANDARD-1, 2.3).
//!
//! The invariants: no packet number is sealed twice with one key, no key seals more than its limit, and after
//! as many failed openings as its suite endures a connection opens nothing more. A datagram costs one
//! opening, in whichever phase it claims to be: the next key is made once.

use alloc::boxed::Box;
use core::time::Duration;

use super::ConnectionConfig;
use crate::crypto::{
    AeadKey, KeyError, SplitSecrets, Suite, TAG_BYTES, TrafficSecret, open_tag, verify_open_tag,
};
use crate::wire::{OPEN_TAG_BYTES, Role, WireId};
use crate::{DatagramBuffer, DropReason, Instant};

/// Datagrams that may be sealed with one key: the confidentiality limit of AES-GCM (RFC 9001, 6.6), which
/// holds for datagrams of up to 2^16 bytes. ChaCha20-Poly1305 has none. Keys are updated long before.
const MAX_SEALED_PER_KEY: u64 = 1 << 23;

/// Datagrams that may fail to open in the life of a connection, with all its keys: the integrity limit of
/// the suite (RFC 9001, 6.6). That of AES-GCM holds for datagrams of up to 2^16 bytes, that of
/// ChaCha20-Poly1305 for up to 2^14, and ours have at most 9000.
const fn max_failed(suite: Suite) -> u64 {
    match suite {
        Suite::ChaCha20Poly1305 => 1 << 36,
        Suite::Aes256Gcm => 1 << 52,
    }
}

/// What protects the datagrams of a connection.
#[derive(Debug)]
pub(crate) enum Protection {
    /// Encrypted.
    Sealed(Box<Sealed>),
    /// Mode `open`: an id and a crc32.
    Open { protocol_id: u64, local: WireId, remote: WireId },
}

#[derive(Debug)]
pub(crate) struct Sealed {
    suite: Suite,
    send: Sending,
    receive: Receiving,
}

#[derive(Debug)]
struct Sending {
    secret: TrafficSecret,
    key: AeadKey,
    phase: u64,
    /// Datagrams sealed with this key.
    sealed: u64,
    since: Instant,
    /// The first packet number sealed with this key.
    first_number: u64,
    /// A datagram sealed with this key was acknowledged.
    is_confirmed: bool,
    /// The peer has started a key update: update this key too (H-2.3b).
    is_update_due: bool,
}

#[derive(Debug)]
struct Receiving {
    secret: TrafficSecret,
    key: AeadKey,
    phase: u64,
    /// The lowest packet number opened with this key.
    first_number: u64,
    /// The previous key for late datagrams, and until when it is kept.
    previous: Option<(AeadKey, Instant)>,
    /// The next key: made for the first datagram that claims to be of the next phase and kept, whether it
    /// opens or not. Made any earlier, it would be a sixth of the memory of an idle connection.
    next: Option<AeadKey>,
    /// Datagrams that failed to open, with any key.
    failed: u64,
    /// The number of those at which nothing more is opened.
    max_failed: u64,
}

/// What the head of a datagram says of how to open it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) number: u64,
    /// The phase of its key.
    pub(crate) phase: bool,
    /// Bytes before what is encrypted.
    pub(crate) bytes: usize,
}

/// When a key is updated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLimits {
    pub(crate) datagrams: u64,
    pub(crate) lifetime: Duration,
}

impl Protection {
    pub(crate) fn sealed(
        now: Instant,
        role: Role,
        suite: Suite,
        secrets: SplitSecrets,
        config: &ConnectionConfig,
    ) -> Result<Self, KeyError> {
        let (ours, theirs) = match role {
            Role::Client => (secrets.client_to_server, secrets.server_to_client),
            Role::Server => (secrets.server_to_client, secrets.client_to_server),
        };
        Ok(Self::Sealed(Box::new(Sealed {
            suite,
            send: Sending {
                key: ours.key(suite)?,
                secret: ours,
                phase: 0,
                sealed: 0,
                since: now,
                first_number: 0,
                is_confirmed: false,
                is_update_due: false,
            },
            receive: Receiving {
                key: theirs.key(suite)?,
                secret: theirs,
                phase: 0,
                first_number: 0,
                previous: None,
                next: None,
                failed: 0,
                max_failed: config.max_failed_openings.min(max_failed(suite)),
            },
        })))
    }

    /// The key phase for the header of the next datagram. Updates the key if that is due.
    pub(crate) fn send_phase(&mut self, now: Instant, number: u64, limits: KeyLimits) -> bool {
        let Self::Sealed(sealed) = self else { return false };
        let send = &sealed.send;
        let is_old = send.sealed >= limits.datagrams || now.since(send.since) >= limits.lifetime;
        if send.is_update_due || (is_old && send.is_confirmed) {
            sealed.send.update(now, number, sealed.suite);
        }
        sealed.send.phase & 1 != 0
    }

    /// Encrypts `datagram` after its header, behind it `rest`, which is elsewhere, and appends the tag.
    /// Returns `false` if the key has reached its limit; the datagram must not be sent then.
    #[must_use]
    pub(crate) fn seal(
        &mut self,
        number: u64,
        header_bytes: usize,
        datagram: &mut DatagramBuffer<'_>,
        rest: &[u8],
    ) -> bool {
        match self {
            Self::Sealed(sealed) => {
                let send = &mut sealed.send;
                // A peer that never acknowledges this key is sent nothing more.
                if send.sealed >= MAX_SEALED_PER_KEY {
                    return false;
                }
                send.sealed += 1;
                let out = datagram.vec();
                out.resize(out.len() + rest.len() + TAG_BYTES, 0);
                let Some((header, text)) = datagram.split_at_mut_checked(header_bytes) else {
                    return false;
                };
                if send.key.seal_from(number, header, text, rest).is_err() {
                    return false;
                }
            }
            Self::Open { protocol_id, local, .. } => {
                datagram.vec().extend_from_slice(rest);
                let tag = open_tag(*protocol_id, local.0, datagram);
                datagram.vec().extend_from_slice(&tag);
            }
        }
        true
    }

    /// Verifies a datagram and decrypts it in place. Returns its plaintext. If the peer has updated its key,
    /// the previous one is kept for `keep_previous`, which is asked then.
    pub(crate) fn open<'a>(
        &mut self,
        now: Instant,
        head: Head,
        datagram: &'a mut [u8],
        keep_previous: impl FnOnce() -> Duration,
    ) -> Result<&'a [u8], DropReason> {
        match self {
            Self::Sealed(sealed) => sealed.open(now, head, datagram, keep_previous),
            Self::Open { protocol_id, remote, .. } => {
                let (covered, tag) =
                    datagram.split_last_chunk::<OPEN_TAG_BYTES>().ok_or(DropReason::Truncated)?;
                let is_right = !head.phase && verify_open_tag(*protocol_id, remote.0, covered, tag);
                let plaintext = covered.get(head.bytes..).ok_or(DropReason::Truncated)?;
                if is_right { Ok(plaintext) } else { Err(DropReason::BadTag) }
            }
        }
    }

    /// A datagram that this end sent was acknowledged.
    pub(crate) fn on_acked(&mut self, number: u64) {
        if let Self::Sealed(sealed) = self
            && number >= sealed.send.first_number
        {
            sealed.send.is_confirmed = true;
        }
    }

    /// Whether so many datagrams failed to open that nothing more is opened: the connection must be closed.
    pub(crate) fn is_used_up(&self) -> bool {
        match self {
            Self::Sealed(sealed) => sealed.receive.failed >= sealed.receive.max_failed,
            Self::Open { .. } => false,
        }
    }

    /// Updates of the sending and of the receiving key.
    pub(crate) fn updates(&self) -> (u64, u64) {
        match self {
            Self::Sealed(sealed) => (sealed.send.phase, sealed.receive.phase),
            Self::Open { .. } => (0, 0),
        }
    }

    /// The cipher suite; `None` in mode `open`.
    pub(crate) fn suite(&self) -> Option<Suite> {
        match self {
            Self::Sealed(sealed) => Some(sealed.suite),
            Self::Open { .. } => None,
        }
    }
}

impl Sending {
    fn update(&mut self, now: Instant, number: u64, suite: Suite) {
        let next = self.secret.next();
        // It cannot fail, because the same suite has given a key before. Otherwise the old key would go on.
        let Ok(key) = next.key(suite) else { return };
        self.secret = next;
        self.key = key;
        self.phase += 1;
        self.sealed = 0;
        self.since = now;
        self.first_number = number;
        self.is_confirmed = false;
        self.is_update_due = false;
    }
}

impl Sealed {
    fn open<'a>(
        &mut self,
        now: Instant,
        Head { number, phase, bytes }: Head,
        datagram: &'a mut [u8],
        keep_previous: impl FnOnce() -> Duration,
    ) -> Result<&'a [u8], DropReason> {
        let receive = &mut self.receive;
        if receive.failed >= receive.max_failed {
            return Err(DropReason::NotNow);
        }
        if receive.previous.as_ref().is_some_and(|(_, until)| *until <= now) {
            receive.previous = None;
        }
        let (covered, tag) =
            datagram.split_last_chunk_mut::<TAG_BYTES>().ok_or(DropReason::Truncated)?;
        let (header, text) = covered.split_at_mut_checked(bytes).ok_or(DropReason::Truncated)?;
        let age = receive.age(number, phase);
        if age == Age::Next {
            receive.prepare(self.suite);
        }
        let key = match (age, &receive.previous, &receive.next) {
            (Age::Present, ..) => &receive.key,
            (Age::Previous, Some((previous, _)), _) => previous,
            (Age::Next, _, Some(next)) => next,
            // `age` says nothing else.
            _ => return Err(DropReason::BadTag),
        };
        if key.open(number, header, text, tag).is_err() {
            receive.failed += 1;
            return Err(DropReason::BadTag);
        }
        if age == Age::Next {
            receive.update(number, now + keep_previous());
            self.send.is_update_due |= self.send.phase < receive.phase;
        } else if age == Age::Present {
            receive.first_number = receive.first_number.min(number);
        }
        Ok(text)
    }
}

/// Which key a datagram is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Previous,
    Present,
    Next,
}

impl Receiving {
    /// Which key a datagram is for, by its phase, and its number if the phase is the other one.
    const fn age(&self, number: u64, phase: bool) -> Age {
        if phase == (self.phase & 1 != 0) {
            return Age::Present;
        }
        if self.previous.is_some() && number < self.first_number {
            return Age::Previous;
        }
        Age::Next
    }

    /// Makes the next key, if it is not made yet.
    fn prepare(&mut self, suite: Suite) {
        if self.next.is_none() {
            // It cannot fail, because the same suite has given a key before.
            self.next = self.secret.next().key(suite).ok();
        }
    }

    /// The peer has updated its key: a datagram with this number was opened with the next one.
    fn update(&mut self, number: u64, keep_until: Instant) {
        let Some(key) = self.next.take() else { return };
        let previous = core::mem::replace(&mut self.key, key);
        self.secret = self.secret.next();
        self.phase += 1;
        self.first_number = number;
        self.previous = Some((previous, keep_until));
    }
}

#[cfg(test)]
mod tests;
