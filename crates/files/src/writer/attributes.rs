//! What a file gets beside its bytes: whether it may be run, and its time of change.
//!
//! The rule: who may read and write it is decided here, by the umask or by the file that it replaces; the
//! giver says only whether it is a program. Owners, set-user-id and the like are not on the wire.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

/// The bits that say who may read, write and run a file.
const MODE: u32 = 0o777;

/// What is kept of the giver's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Whether it may be run; none if that is decided here alone.
    pub(crate) is_executable: Option<bool>,
    /// Its time of change, in nanoseconds since 1970; none if it is that of being written.
    pub(crate) modified_ns: Option<i64>,
}

impl Attributes {
    /// Gives them to a file. `replaced` is the file whose name it gets: it hands on its mode, if it has the
    /// same owner. A file system that has no such thing is no reason to fail.
    pub(crate) fn set(self, file: &File, replaced: Option<&Metadata>) -> io::Result<()> {
        let metadata = file.metadata()?;
        let now = metadata.mode() & MODE;
        let replaced = replaced.filter(|it| it.is_file() && it.uid() == metadata.uid());
        let mode = replaced.map_or(now, |it| it.mode() & MODE);
        let mode = match self.is_executable {
            // Who may read it may run it.
            Some(true) => mode | (mode & 0o444) >> 2,
            Some(false) => mode & !0o111,
            None => mode,
        };
        if mode != now {
            tolerate(file.set_permissions(PermissionsExt::from_mode(mode)))?;
        }
        match self.modified_ns {
            Some(nanoseconds) if nanoseconds != of(&metadata) => {
                time(nanoseconds).map_or(Ok(()), |time| tolerate(file.set_modified(time)))
            }
            _ => Ok(()),
        }
    }
}

/// A file in the making is for nobody who may not read the one that it replaces.
pub(super) fn hide_like(file: &File, replaced: &Metadata) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !replaced.is_file() || replaced.uid() != metadata.uid() {
        return Ok(());
    }
    let mode = metadata.mode() & (replaced.mode() | 0o600) & MODE;
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
    fn who_may_read_it_may_run_it_and_nobody_else() {
        let file = tempfile::tempfile().unwrap();
        let run = |is_executable| Attributes { is_executable, modified_ns: None };
        for (before, executable, after) in [
            (0o644, Some(true), 0o755),
            (0o640, Some(true), 0o750),
            (0o600, Some(true), 0o700),
            (0o755, Some(false), 0o644),
            (0o4755, Some(false), 0o644),
            (0o755, None, 0o755),
        ] {
            file.set_permissions(PermissionsExt::from_mode(before)).unwrap();
            run(executable).set(&file, None).unwrap();
            assert_eq!(mode(&file), after, "{before:o} {executable:?}");
        }
    }

    /// A private file stays private when it is replaced, and no bit beyond the nine is handed on.
    #[test]
    fn a_file_that_is_replaced_hands_on_its_mode() {
        let (new, old) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        for (before, executable, after) in
            [(0o600, Some(false), 0o600), (0o4744, Some(true), 0o755), (0o640, None, 0o640)]
        {
            new.set_permissions(PermissionsExt::from_mode(0o644)).unwrap();
            old.set_permissions(PermissionsExt::from_mode(before)).unwrap();
            let attributes = Attributes { is_executable: executable, modified_ns: None };
            hide_like(&new, &old.metadata().unwrap()).unwrap();
            assert_eq!(mode(&new) & !(before | 0o600), 0, "{before:o}");
            attributes.set(&new, Some(&old.metadata().unwrap())).unwrap();
            assert_eq!(mode(&new), after, "{before:o}");
        }
    }

    /// What the wire can say, some 290 years before and after 1970, is a time of the system.
    #[test]
    fn no_time_fails() {
        let file = tempfile::tempfile().unwrap();
        for nanoseconds in [i64::MIN, -1, 0, 1, 1_700_000_000_123_456_789, i64::MAX] {
            let attributes = Attributes { is_executable: None, modified_ns: Some(nanoseconds) };
            attributes.set(&file, None).unwrap();
        }
        let attributes = Attributes { is_executable: None, modified_ns: Some(-2_000_000_001) };
        attributes.set(&file, None).unwrap();
        assert_eq!(of(&file.metadata().unwrap()), -2_000_000_001);
    }
}
