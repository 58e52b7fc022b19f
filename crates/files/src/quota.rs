//! What an inbox takes: `--most` in all, a limit for each client, and a number of files.
//!
//! The invariant: nothing is reserved beyond a limit. A transfer reserves what its offer costs before a byte
//! comes, and more for a pipe as its parts come; what it did not store is given back.

use std::collections::BTreeMap;

/// What a file or directory costs at least, and what the others are rounded up to, in bytes: a block of a
/// disk. A file without bytes has a name and an inode.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The default maximum of files and directories in an inbox, which is also the maximum of an offer. With
/// more, listing, copying or saving a directory takes minutes.
pub const DEFAULT_MAX_FILES: u64 = 1_000_000;

/// What a file of this size costs.
pub(crate) const fn cost_of(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(BLOCK_BYTES);
    (if blocks == 0 { 1 } else { blocks }).saturating_mul(BLOCK_BYTES)
}

/// How much an inbox takes and has taken. `K` tells clients apart, by what the program trusts: an address,
/// or the id in a token.
#[derive(Clone, Debug)]
pub struct InboxQuota<K> {
    max_bytes: u64,
    max_client_bytes: u64,
    taken_bytes: u64,
    max_files: u64,
    taken_files: u64,
    clients: BTreeMap<K, u64>,
}

impl<K: Ord + Clone> InboxQuota<K> {
    /// At most `max_bytes` of all clients together, and at most `max_client_bytes` of one client.
    #[must_use]
    pub const fn new(max_bytes: u64, max_client_bytes: u64) -> Self {
        Self {
            max_bytes,
            max_client_bytes,
            taken_bytes: 0,
            max_files: DEFAULT_MAX_FILES,
            taken_files: 0,
            clients: BTreeMap::new(),
        }
    }

    /// Limits the number of files and directories in all; [`DEFAULT_MAX_FILES`] by default.
    #[must_use]
    pub const fn with_max_files(mut self, files: u64) -> Self {
        self.max_files = files;
        self
    }

    /// The limit of all together, and that of each client.
    #[must_use]
    pub const fn limits(&self) -> (u64, u64) {
        (self.max_bytes, self.max_client_bytes)
    }

    /// The number of files and directories that may still come.
    #[must_use]
    pub const fn left_files(&self) -> u64 {
        self.max_files.saturating_sub(self.taken_files)
    }

    /// Reserves this number of files, if the limit allows it.
    ///
    /// # Errors
    /// The number that is left, if it is smaller; nothing is reserved then.
    pub const fn reserve_files(&mut self, files: u64) -> Result<(), u64> {
        if files > self.left_files() {
            return Err(self.left_files());
        }
        self.taken_files += files;
        Ok(())
    }

    /// Gives back files that were reserved and not stored.
    pub const fn release_files(&mut self, files: u64) {
        self.taken_files = self.taken_files.saturating_sub(files);
    }

    /// Whether the bytes have a limit, so that the files in the folder have to be counted.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.max_bytes < u64::MAX || self.max_client_bytes < u64::MAX
    }

    /// What all together may still send.
    #[must_use]
    pub const fn left_in_all_bytes(&self) -> u64 {
        self.max_bytes.saturating_sub(self.taken_bytes)
    }

    /// Sets the counted content of the inbox: files were taken out of it, or put there by others. The bytes
    /// that clients have sent still count for each of them.
    pub const fn set_taken(&mut self, bytes: u64, files: u64) {
        (self.taken_bytes, self.taken_files) = (bytes, files);
    }

    /// What this client may still send.
    #[must_use]
    pub fn left_bytes(&self, client: &K) -> u64 {
        let of_client = self.clients.get(client).copied().unwrap_or(0);
        self.left_in_all_bytes().min(self.max_client_bytes.saturating_sub(of_client))
    }

    /// Reserves `bytes` for this client, or returns the number of bytes that are left for it.
    ///
    /// # Errors
    /// The bytes that are left, if they are fewer; nothing is reserved then.
    pub fn reserve(&mut self, client: &K, bytes: u64) -> Result<(), u64> {
        let left = self.left_bytes(client);
        if bytes > left {
            return Err(left);
        }
        if bytes > 0 {
            self.taken_bytes = self.taken_bytes.saturating_add(bytes);
            *self.clients.entry(client.clone()).or_default() += bytes;
        }
        Ok(())
    }

    /// Gives back what was reserved and not stored.
    pub fn release(&mut self, client: &K, bytes: u64) {
        let Some(of_client) = self.clients.get_mut(client) else { return };
        let bytes = bytes.min(*of_client);
        *of_client -= bytes;
        self.taken_bytes = self.taken_bytes.saturating_sub(bytes);
        if *of_client == 0 {
            self.clients.remove(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_limit_is_exceeded_and_what_is_given_back_can_be_taken() {
        let mut quota = InboxQuota::new(100, 60);
        assert_eq!(quota.reserve(&"a", 61), Err(60));
        assert_eq!(quota.reserve(&"a", 60), Ok(()));
        assert_eq!((quota.left_bytes(&"a"), quota.left_bytes(&"b")), (0, 40));
        assert_eq!(quota.reserve(&"b", 41), Err(40));
        quota.release(&"a", 50);
        assert_eq!((quota.left_bytes(&"a"), quota.left_bytes(&"b")), (50, 60));
        quota.release(&"b", 9);
        quota.release(&"a", u64::MAX);
        assert_eq!((quota.left_bytes(&"a"), quota.clients.len()), (60, 0));
        assert_eq!(quota.reserve(&"a", 60), Ok(()));
        quota.set_taken(0, 0);
        assert_eq!((quota.left_bytes(&"a"), quota.left_bytes(&"b")), (0, 60));
        quota.release(&"a", 60);
        assert_eq!(quota.left_in_all_bytes(), 100);
    }

    #[test]
    fn files_have_a_bound_of_their_own() {
        let mut quota = InboxQuota::<u8>::new(u64::MAX, u64::MAX).with_max_files(5);
        assert_eq!((quota.reserve_files(3), quota.reserve_files(3)), (Ok(()), Err(2)));
        quota.release_files(1);
        assert_eq!((quota.reserve_files(3), quota.left_files()), (Ok(()), 0));
        quota.set_taken(0, 4);
        assert_eq!(quota.left_files(), 1);
    }
}
