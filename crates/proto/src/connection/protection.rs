//! Encrypting and decrypting datagrams, and key updates (STANDARD-1, 2.3).
//!
//! The invariant: no packet number is sealed twice with one key, and no key seals more than its limit.

use alloc::boxed::Box;
use core::time::Duration;

use crate::crypto::{
    AeadKey, KeyError, SplitSecrets, Suite, TAG_BYTES, TrafficSecret, open_tag, verify_open_tag,
};
use crate::wire::{OPEN_TAG_BYTES, Role, WireId};
use crate::{DatagramBuffer, DropReason, Instant};

/// Datagrams that AES-GCM may seal with one key (RFC 9001, 6.6). Keys are updated long before.
const MAX_SEALED_PER_KEY: u64 = 1 << 23;

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

    /// Encrypts `datagram` after its header and appends the tag. Returns `false` if the key has reached its
    /// limit; the datagram must not be sent then.
    #[must_use]
    pub(crate) fn seal(
        &mut self,
        number: u64,
        header_bytes: usize,
        datagram: &mut DatagramBuffer<'_>,
    ) -> bool {
        match self {
            Self::Sealed(sealed) => {
                let send = &mut sealed.send;
                // A peer that never acknowledges this key is sent nothing more.
                if send.sealed >= MAX_SEALED_PER_KEY {
                    return false;
                }
                send.sealed += 1;
                let Some((header, plaintext)) = datagram.split_at_mut_checked(header_bytes) else {
                    return false;
                };
                match send.key.seal(number, header, plaintext) {
                    Ok(tag) => datagram.vec().extend_from_slice(&tag),
                    Err(_) => return false,
                }
            }
            Self::Open { protocol_id, local, .. } => {
                let tag = open_tag(*protocol_id, local.0, datagram);
                datagram.vec().extend_from_slice(&tag);
            }
        }
        true
    }

    /// Verifies a datagram and decrypts it in place. Returns its plaintext. If the peer has updated its key,
    /// the previous one is kept for `keep_previous`.
    pub(crate) fn open<'a>(
        &mut self,
        now: Instant,
        number: u64,
        phase: bool,
        header_bytes: usize,
        datagram: &'a mut [u8],
        keep_previous: Duration,
    ) -> Result<&'a [u8], DropReason> {
        match self {
            Self::Sealed(sealed) => {
                sealed.open(now, number, phase, header_bytes, datagram, keep_previous)
            }
            Self::Open { protocol_id, remote, .. } => {
                let (covered, tag) =
                    datagram.split_last_chunk::<OPEN_TAG_BYTES>().ok_or(DropReason::Truncated)?;
                let is_right = !phase && verify_open_tag(*protocol_id, remote.0, covered, tag);
                let plaintext = covered.get(header_bytes..).ok_or(DropReason::Truncated)?;
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

    /// Updates of the sending key.
    pub(crate) fn key_updates(&self) -> u64 {
        match self {
            Self::Sealed(sealed) => sealed.send.phase,
            Self::Open { .. } => 0,
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
        number: u64,
        phase: bool,
        header_bytes: usize,
        datagram: &'a mut [u8],
        keep_previous: Duration,
    ) -> Result<&'a [u8], DropReason> {
        let receive = &mut self.receive;
        if receive.previous.as_ref().is_some_and(|(_, until)| *until <= now) {
            receive.previous = None;
        }
        let (covered, tag) =
            datagram.split_last_chunk_mut::<TAG_BYTES>().ok_or(DropReason::Truncated)?;
        let (header, text) =
            covered.split_at_mut_checked(header_bytes).ok_or(DropReason::Truncated)?;
        if phase == (receive.phase & 1 != 0) {
            receive.key.open(number, header, text, tag).map_err(|_| DropReason::BadTag)?;
            receive.first_number = receive.first_number.min(number);
            return Ok(text);
        }
        if let Some((previous, _)) = &receive.previous
            && number < receive.first_number
        {
            previous.open(number, header, text, tag).map_err(|_| DropReason::BadTag)?;
            return Ok(text);
        }
        // The other phase, and not late: the peer has updated its key, if the next one opens it.
        let secret = receive.secret.next();
        let key = secret.key(self.suite).map_err(|_| DropReason::BadTag)?;
        key.open(number, header, text, tag).map_err(|_| DropReason::BadTag)?;
        let previous = core::mem::replace(&mut receive.key, key);
        receive.secret = secret;
        receive.phase += 1;
        receive.first_number = number;
        receive.previous = Some((previous, now + keep_previous));
        if self.send.phase < receive.phase {
            self.send.is_update_due = true;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::Secret;

    /// H-2.3a: without an ack there is no key update, and the key seals no more datagrams than its limit.
    #[test]
    fn a_key_at_its_limit_seals_nothing() {
        let secret = || TrafficSecret::new(Secret::from_bytes([1; 32]));
        let secrets = SplitSecrets { client_to_server: secret(), server_to_client: secret() };
        let suite = Suite::ChaCha20Poly1305;
        let sealed = Protection::sealed(Instant::ZERO, Role::Client, suite, secrets);
        let mut protection = sealed.unwrap_or(Protection::Open {
            protocol_id: 0,
            local: WireId::default(),
            remote: WireId::default(),
        });
        let Protection::Sealed(sealed) = &mut protection else { unreachable!() };
        sealed.send.sealed = MAX_SEALED_PER_KEY - 1;
        let mut seal = |number| {
            let mut bytes = alloc::vec::Vec::new();
            let mut datagram = DatagramBuffer::behind(&mut bytes);
            datagram.vec().resize(20, 0);
            protection.seal(number, 13, &mut datagram)
        };
        assert!(seal(1));
        assert!(!seal(2));
    }
}
