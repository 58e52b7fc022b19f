//! Hello and welcome: the payloads of the two handshake messages (STANDARD-1, 3.1, 3.2 and 3.4).

use alloc::vec::Vec;

use super::parameters::{self, EndParameters, Grease, id};
use super::{VERSION, WireId};
use crate::DropReason;
use crate::crypto::{Suite, Suites};

/// The longest request of an application, in bytes: it shares the first datagram with a token.
pub(crate) const MAX_REQUEST_BYTES: usize = 400;

/// The longest welcome message, in bytes: every response repeats it.
pub(crate) const MAX_WELCOME_MESSAGE_BYTES: usize = 256;

/// The maximum of versions that a hello or a welcome lists.
const MAX_VERSIONS: usize = 8;

/// The maximum of roots that a hello lists.
const MAX_ROOTS: usize = 16;

/// Versions of the wire, 4 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions<'a>(&'a [[u8; 4]]);

impl<'a> Versions<'a> {
    /// The versions of this crate.
    pub const OURS: Versions<'static> = Versions(&[VERSION.to_le_bytes()]);

    /// Reads 1 to 8 versions.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, DropReason> {
        let (versions, rest) = bytes.as_chunks();
        if !rest.is_empty() || versions.is_empty() || versions.len() > MAX_VERSIONS {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self(versions))
    }

    /// The same, or none at all.
    pub(super) fn read_any(bytes: &'a [u8]) -> Result<Self, DropReason> {
        if bytes.is_empty() { Ok(Self(&[])) } else { Self::read(bytes) }
    }

    /// Them as on the wire.
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }

    /// Them, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.0.iter().map(|version| u32::from_le_bytes(*version))
    }

    /// The one of `spoken`, best first, that is in the list.
    #[must_use]
    pub fn best_of(&self, spoken: &[u32]) -> Option<u32> {
        spoken.iter().copied().find(|ours| self.iter().any(|version| version == *ours))
    }
}

/// What a client says about itself in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The versions it speaks.
    pub versions: Versions<'a>,
    /// The suites it can use.
    pub suites: Suites,
    /// What both ends say.
    pub end: EndParameters,
    /// The roots of blocks that it has.
    pub roots: &'a [[u8; 32]],
    /// The application's request.
    pub request: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(None, out);
    }

    /// Appends it, with grease.
    pub(crate) fn write_with(&self, grease: Option<Grease>, out: &mut Vec<u8>) {
        let mut versions = self.versions.bytes().to_vec();
        versions.extend(grease.iter().flat_map(|grease| grease.version().to_le_bytes()));
        parameters::put(id::VERSIONS, &versions, out);
        if self.suites != Suites::default() {
            parameters::put(id::SUITES, &[self.suites.bits()], out);
        }
        self.end.write(out);
        if !self.roots.is_empty() {
            parameters::put(id::ROOTS_HERE, self.roots.as_flattened(), out);
        }
        if !self.request.is_empty() {
            parameters::put(id::REQUEST, self.request, out);
        }
        grease.iter().for_each(|grease| grease.write(out));
    }

    /// Reads all of `bytes`.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], [`DropReason::OutOfRange`], [`DropReason::RepeatedFrame`],
    /// [`DropReason::WrongVersion`] if the version of this crate is not among them.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DropReason> {
        let mut hello = Self {
            versions: Versions(&[]),
            suites: Suites::default(),
            end: EndParameters::default(),
            roots: &[],
            request: &[],
        };
        parameters::read(bytes, |parameter| {
            match parameter.id {
                id::VERSIONS => hello.versions = Versions::read(parameter.value)?,
                id::SUITES => hello.suites = suites(parameter.value)?,
                id::ROOTS_HERE => hello.roots = roots(parameter.value)?,
                id::REQUEST if parameter.value.len() > MAX_REQUEST_BYTES => {
                    return Err(DropReason::OutOfRange);
                }
                id::REQUEST => hello.request = parameter.value,
                _ => {
                    hello.end.read(&parameter)?;
                }
            }
            Ok(())
        })?;
        let speaks_ours = hello.versions.iter().any(|version| version == VERSION);
        if speaks_ours { Ok(hello) } else { Err(DropReason::WrongVersion) }
    }
}

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Its id for the connection.
    pub server_id: WireId,
    /// The suite it chose.
    pub suite: Suite,
    /// What both ends say.
    pub end: EndParameters,
}

impl Welcome {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(None, out);
    }

    /// Appends it, with grease.
    pub(crate) fn write_with(&self, grease: Option<Grease>, out: &mut Vec<u8>) {
        parameters::put(id::SERVER_ID, &self.server_id.0, out);
        if self.suite as u8 != 0 {
            parameters::put(id::SUITES, &[self.suite as u8], out);
        }
        self.end.write(out);
        grease.iter().for_each(|grease| grease.write(out));
    }

    /// Reads all of `bytes`.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], [`DropReason::OutOfRange`], [`DropReason::RepeatedFrame`].
    pub fn read(bytes: &[u8]) -> Result<Self, DropReason> {
        let (mut server_id, mut suite) = (None, 0);
        let mut end = EndParameters::default();
        parameters::read(bytes, |parameter| {
            match parameter.id {
                id::SERVER_ID => {
                    let id = parameter.value.try_into().map_err(|_| DropReason::OutOfRange)?;
                    server_id = Some(WireId(id));
                }
                id::SUITES => match *parameter.value {
                    [chosen] => suite = chosen,
                    _ => return Err(DropReason::OutOfRange),
                },
                id::SERVER_VERSIONS => {
                    Versions::read(parameter.value)?;
                }
                _ => {
                    end.read(&parameter)?;
                }
            }
            Ok(())
        })?;
        Ok(Self {
            server_id: server_id.ok_or(DropReason::OutOfRange)?,
            suite: Suite::from_u8(suite).ok_or(DropReason::OutOfRange)?,
            end,
        })
    }
}

fn suites(value: &[u8]) -> Result<Suites, DropReason> {
    let bits = match value {
        [bits] => Suites::from_bits(*bits),
        _ => None,
    };
    bits.ok_or(DropReason::OutOfRange)
}

fn roots(value: &[u8]) -> Result<&[[u8; 32]], DropReason> {
    let (roots, rest) = value.as_chunks();
    let fits = rest.is_empty() && (1..=MAX_ROOTS).contains(&roots.len());
    if fits { Ok(roots) } else { Err(DropReason::OutOfRange) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relay that strikes versions from what it forwards cannot: the list is in the verified hello.
    #[test]
    fn the_best_common_version_is_found() {
        let bytes: Vec<u8> =
            [0x1a2a_3a4a_u32, 1, 2].into_iter().flat_map(u32::to_le_bytes).collect();
        let versions = Versions::read(&bytes).unwrap();
        assert_eq!(versions.best_of(&[3, 2, 1]), Some(2));
        assert_eq!(versions.best_of(&[1]), Some(1));
        assert_eq!(versions.best_of(&[7]), None);
        assert_eq!(Versions::read(&bytes[1..]), Err(DropReason::OutOfRange));
        assert_eq!(Versions::read(&[0; 36]), Err(DropReason::OutOfRange), "nine");
    }

    #[test]
    fn hello_and_welcome_come_back() {
        let end = EndParameters { max_block_bytes: 64 << 20, ..EndParameters::default() };
        let roots = &[[1; 32], [2; 32]];
        let suites = Suites::available(true);
        let hello = Hello { versions: Versions::OURS, suites, end, roots, request: b"join" };
        let mut bytes = Vec::new();
        hello.write(&mut bytes);
        assert_eq!(Hello::read(&bytes), Ok(hello));
        let mut greased = Vec::new();
        hello.write_with(Some(Grease([0x55; 10])), &mut greased);
        let read = Hello::read(&greased).unwrap();
        assert!(read.versions.iter().eq([1, 0x5a5a_5a5a]), "{:?}", read.versions);
        assert_eq!(Hello { versions: Versions::OURS, ..read }, hello);
        let welcome = Welcome { server_id: WireId([3; 8]), suite: Suite::Aes256Gcm, end };
        let mut bytes = Vec::new();
        welcome.write_with(Some(Grease([9; 10])), &mut bytes);
        assert_eq!(Welcome::read(&bytes), Ok(welcome));
        assert_eq!(Welcome::read(&bytes[10..]), Err(DropReason::OutOfRange), "without its id");
    }
}
