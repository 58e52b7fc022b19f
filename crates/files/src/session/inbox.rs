//! Where a server stores what clients send, and how much of it.
//!
//! The invariant: the stored bytes, and those that may still come of the admitted uploads, are together at
//! most the quota. The stored bytes are counted when no upload is under way, so that files that were taken
//! out of the inbox make room.

use super::Place;
use super::costs::{Taken, taken_in_folder};
use crate::quota::InboxQuota;
use crate::reason::{Fault, Reason};
use crate::writer::Replace;

/// A place for what clients send. `K` tells clients apart.
#[derive(Debug)]
pub struct Inbox<K> {
    pub(super) place: Place,
    pub(super) replace: Replace,
    pub(super) keeps_attributes: bool,
    pub(super) quota: InboxQuota<K>,
    /// Uploads that have reserved something.
    pub(super) uploads: usize,
}

impl<K: Ord + Clone> Inbox<K> {
    /// Stores files in this place. It counts the files there, which takes as long as listing them.
    #[must_use]
    pub fn new(place: Place, replace: Replace, mut quota: InboxQuota<K>) -> Self {
        if quota.is_limited() {
            let taken = taken_in(&place);
            quota.set_taken(taken.bytes, taken.files);
        }
        Self { place, replace, keeps_attributes: true, quota, uploads: 0 }
    }

    /// Files get no mode and no time of change from their giver.
    #[must_use]
    pub fn without_attributes(mut self) -> Self {
        self.keeps_attributes = false;
        self
    }

    /// What may come, and has come.
    #[must_use]
    pub const fn quota(&self) -> &InboxQuota<K> {
        &self.quota
    }

    /// Takes up what an upload needs, or says in words what is missing.
    pub(super) fn reserve(&mut self, client: &K, costs: Taken) -> Result<(), Fault> {
        let Taken { bytes, files } = costs;
        self.quota.reserve_files(files).map_err(|left| {
            let text = format!("{files} files and directories, and {left} more are taken");
            Fault::new(Reason::Quota, &text)
        })?;
        self.quota.reserve(client, bytes).map_err(|left| {
            self.quota.release_files(files);
            let (in_all, of_client) = self.quota.limits();
            let (of_whom, max) = match left < self.quota.left_in_all_bytes() {
                true => ("for each client", of_client),
                false => ("for all clients together", in_all),
            };
            let tenths = |bytes: u64| u128::from(bytes) * 10;
            let needed = show_mib(tenths(bytes).div_ceil(MIB));
            let (left, max) = (show_mib(tenths(left) / MIB), show_mib(tenths(max) / MIB));
            let text = format!("{needed} MiB, and {left} are left of {max} MiB {of_whom}");
            Fault::new(Reason::Quota, &text)
        })
    }
}

/// What is counted before an upload, if none is under way.
pub(super) fn taken_in(place: &Place) -> Taken {
    match place {
        Place::Folder(folder) => taken_in_folder(folder),
        Place::File(_) => Taken::default(),
    }
}

/// Bytes of 1 MiB.
const MIB: u128 = 1 << 20;

fn show_mib(tenths: u128) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_missing_and_of_which_limit() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), vec![0; 5 << 20]).unwrap();
        let quota = InboxQuota::new(20 << 20, 10 << 20);
        let quota = quota.with_max_files(100);
        let mut inbox = Inbox::new(Place::Folder(dir.path().into()), Replace::Never, quota);
        assert_eq!(inbox.quota().left_in_all_bytes(), 15 << 20);
        let words = |fault: Result<(), Fault>| fault.unwrap_err().text;
        let cost = |bytes, files| Taken { bytes, files };
        assert_eq!(
            words(inbox.reserve(&1, cost(11 << 20, 9))),
            "11.0 MiB, and 10.0 are left of 10.0 MiB for each client"
        );
        inbox.reserve(&1, cost(10 << 20, 9)).unwrap();
        let files = words(inbox.reserve(&2, cost(4096, 91)));
        assert_eq!(files, "91 files and directories, and 90 more are taken");
        let all = words(inbox.reserve(&2, cost(6 << 20, 90)));
        assert_eq!(all, "6.0 MiB, and 5.0 are left of 20.0 MiB for all clients together");
    }
}
