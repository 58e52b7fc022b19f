//! What a file gets beside its bytes: its mode, and its time of change.
//!
//! The rule: what is allowed here, by the umask or by the file that is replaced, is the most; the giver takes
//! away of it, and says whether the file can be run. Owners, set-user-id and the like are not on the wire.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;

use crate::folder::Found;
use crate::mode::Mode;

/// The permission bits to read, write and run a file.
const MODE: u32 = 0o777;

/// What the owner does with every file here, unless the giver says otherwise.
const OWNERS: u32 = 0o600;

/// Without it no later transfer could continue the unfinished file.
const OWNERS_WRITING: u32 = 0o200;

/// What is kept of the giver's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// The permissions to read, write and run it; `None` if this machine alone decides them.
    pub(crate) mode: Option<Mode>,
    /// Its time of change, in nanoseconds since 1970; `None` if it keeps the time of its last write here.
    pub(crate) modified_ns: Option<i64>,
}

impl Attributes {
    /// Gives them to a file. `replaced` is the file whose name it gets: it hands on its mode, if it has the
    /// same owner. A file system that has no such thing is no reason to fail.
    pub(crate) fn set(self, file: &File, replaced: Option<&Found>) -> io::Result<()> {
        let mode = self.prepare(file, replaced)?;
        settle(file, mode)
    }

    /// As [`set`](Self::set), but that the owner can still write the file, for it has no name yet, and may
    /// get none. Returns what is to be [`settle`]d with the name.
    pub(super) fn prepare(self, file: &File, replaced: Option<&Found>) -> io::Result<u32> {
        let metadata = file.metadata()?;
        let here = of_same_owner(replaced, &metadata).unwrap_or(metadata.mode() & MODE);
        let mode = self.mode.map_or(here, |mode| mode.within(here | OWNERS));
        set_mode(file, &metadata, mode | OWNERS_WRITING)?;
        if let Some(nanoseconds) = self.modified_ns.filter(|it| *it != of(&metadata))
            && let Some(time) = time(nanoseconds)
        {
            tolerate(file.set_modified(time))?;
        }
        Ok(mode)
    }

    /// A user that may not read the finished file may not read the unfinished one.
    pub(super) fn hide(self, file: &File, replaced: Option<&Found>) -> io::Result<()> {
        let metadata = file.metadata()?;
        let here = of_same_owner(replaced, &metadata).unwrap_or(MODE) | OWNERS;
        let most = self.mode.map_or(here, |mode| mode.unfinished(here));
        set_mode(file, &metadata, metadata.mode() & most)
    }
}

/// Gives a file with a name the mode that was [`prepare`](Attributes::prepare)d.
pub(super) fn settle(file: &File, mode: u32) -> io::Result<()> {
    set_mode(file, &file.metadata()?, mode)
}

/// The mode that the file which is replaced hands on.
fn of_same_owner(replaced: Option<&Found>, file: &Metadata) -> Option<u32> {
    let is_alike = |it: &&Found| it.kind == FileType::RegularFile && it.owner == file.uid();
    Some(replaced.filter(is_alike)?.mode & MODE)
}

fn set_mode(file: &File, metadata: &Metadata, mode: u32) -> io::Result<()> {
    match mode == metadata.mode() & MODE {
        true => Ok(()),
        false => tolerate(file.set_permissions(PermissionsExt::from_mode(mode))),
    }
}

fn of(metadata: &Metadata) -> i64 {
    let nanoseconds =
        i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    i64::try_from(nanoseconds).unwrap_or_default()
}

fn time(nanoseconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    match nanoseconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    }
}

/// FAT has no modes, others no such times, and some let only root change them.
fn tolerate(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::InvalidInput
            ) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(file: &File) -> u32 {
        file.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn the_giver_takes_away_and_who_may_read_may_run() {
        let file = tempfile::tempfile().unwrap();
        for (before, given, after) in [
            (0o644, Some(0o755), 0o755),
            (0o640, Some(0o755), 0o750),
            (0o600, Some(0o755), 0o700),
            (0o755, Some(0o644), 0o644),
            (0o4755, Some(0o644), 0o644),
            (0o644, Some(0o600), 0o600),
            (0o664, Some(0o750), 0o750),
            (0o644, Some(0o400), 0o400),
            (0o400, Some(0o644), 0o600),
            (0o755, None, 0o755),
        ] {
            file.set_permissions(PermissionsExt::from_mode(before)).unwrap();
            let mode_of = given.map(Mode::of_unix);
            Attributes { mode: mode_of, modified_ns: None }.set(&file, None).unwrap();
            assert_eq!(mode(&file), after, "{before:o} {given:?}");
        }
    }

    /// A private file stays private when it is replaced, and no bit beyond the nine is handed on. Until then
    /// the new one is no more open than either.
    #[test]
    fn a_file_that_is_replaced_hands_on_its_mode() {
        let (new, old) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        for (before, given, hidden, after) in [
            (0o600, Some(0o644), 0o600, 0o600),
            (0o4744, Some(0o755), 0o644, 0o755),
            (0o644, Some(0o400), 0o600, 0o400),
            (0o444, Some(0o640), 0o640, 0o640),
            (0o640, None, 0o640, 0o640),
            (0o440, None, 0o640, 0o440),
        ] {
            new.set_permissions(PermissionsExt::from_mode(0o644)).unwrap();
            old.set_permissions(PermissionsExt::from_mode(before)).unwrap();
            let attributes = Attributes { mode: given.map(Mode::of_unix), modified_ns: None };
            let replaced = Found::of(&old.metadata().unwrap());
            attributes.hide(&new, Some(&replaced)).unwrap();
            assert_eq!(mode(&new), hidden, "{before:o} {given:?}");
            attributes.set(&new, Some(&replaced)).unwrap();
            assert_eq!(mode(&new), after, "{before:o} {given:?}");
        }
    }

    /// What the wire can say, some 290 years before and after 1970, is a time of the system.
    #[test]
    fn no_time_fails() {
        let file = tempfile::tempfile().unwrap();
        for nanoseconds in [i64::MIN, -1, 0, 1, 1_700_000_000_123_456_789, i64::MAX] {
            let attributes = Attributes { mode: None, modified_ns: Some(nanoseconds) };
            attributes.set(&file, None).unwrap();
        }
        let attributes = Attributes { mode: None, modified_ns: Some(-2_000_000_001) };
        attributes.set(&file, None).unwrap();
        assert_eq!(of(&file.metadata().unwrap()), -2_000_000_001);
    }
}
