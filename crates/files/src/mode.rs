//! The permissions in an offer to read, write and run a file.
//!
//! A mode only removes permissions from those that are allowed where the file is stored, and never adds one.
//! So a stored file has no permission that it lacked at its giver, and none that its taker's umask removes.

use std::fmt;

/// What is taken away by bits 1 to 5: writing of the owner; reading and writing of the group; of others. The
/// owner may always read, or could not resume.
const TAKEN: [u32; 5] = [0o200, 0o040, 0o020, 0o004, 0o002];

/// What a file has of which nothing is taken away.
const OPEN: u32 = 0o666;

/// The permissions to read, write and run a file, in the six bits of the wire. The default removes no
/// permission, and the file cannot be run.
///
/// # Examples
/// ```
/// use haulier_files::Mode;
///
/// let private = Mode::of_unix(0o700);
/// assert!(private.is_executable());
/// assert_eq!(private.within(0o644), 0o700, "who may read it may run it: its owner alone");
/// assert_eq!(Mode::of_unix(0o644).within(0o640), 0o640, "the umask of the taker said so");
/// assert_eq!(Mode::default().to_string(), "0666");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mode(u8);

impl Mode {
    /// Converts the mode of a Unix file. Set-user-id and the like are left out, and whether the file can be
    /// run depends on the owner's bit alone.
    pub const fn of_unix(mode: u32) -> Self {
        let mut bits = (mode & 0o100 != 0) as u8;
        let mut place = 0;
        while place < TAKEN.len() {
            if mode & TAKEN[place] == 0 {
                bits |= 2 << place;
            }
            place += 1;
        }
        Self(bits)
    }

    /// From the six bits of the wire: every value is one. The two above them are left out.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x3f)
    }

    /// The six bits of the wire.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Whether its owner may run it.
    pub const fn is_executable(self) -> bool {
        self.0 & 1 != 0
    }

    /// The mode of a stored file whose maximum is `allowed`: if it can be run, every class of users that may
    /// still read it may run it.
    pub const fn within(self, allowed: u32) -> u32 {
        let mode = allowed & !self.taken() & OPEN;
        if self.is_executable() { mode | (mode & 0o444) >> 2 } else { mode }
    }

    /// What may be done with the file while it is written, by the same measure.
    pub(crate) const fn unfinished(self, allowed: u32) -> u32 {
        allowed & (!self.taken() | 0o200)
    }

    const fn taken(self) -> u32 {
        let (mut taken, mut place) = (0, 0);
        while place < TAKEN.len() {
            if self.0 & (2 << place) != 0 {
                taken |= TAKEN[place];
            }
            place += 1;
        }
        taken
    }
}

/// As chmod has it, with four digits of base 8.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.within(OPEN))
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mode({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_modes_are_kept_as_they_are() {
        for mode in [0o644, 0o640, 0o600, 0o444, 0o400, 0o664, 0o666, 0o755, 0o750, 0o700, 0o555] {
            assert_eq!(Mode::of_unix(mode).within(OPEN), mode, "{mode:o}");
            assert_eq!(Mode::of_unix(mode).to_string(), format!("0{mode:o}"));
        }
    }

    #[test]
    fn nothing_is_given_that_either_end_withholds() {
        for mode in 0..0o10000 {
            let given = Mode::of_unix(mode);
            assert_eq!(Mode::from_bits(given.bits()), given);
            for umask in [0o000, 0o022, 0o027, 0o077] {
                let stored = given.within(OPEN & !umask);
                assert_eq!(stored & (!mode | umask) & 0o266, 0, "{mode:o} by {umask:o}");
                assert_eq!(stored & 0o400, 0o400, "its owner reads it");
                assert_eq!(stored & 0o100 != 0, mode & 0o100 != 0);
                // A class of users that may run it may read it.
                assert_eq!(stored & 0o111 & !(stored >> 2), 0);
            }
        }
    }
}
