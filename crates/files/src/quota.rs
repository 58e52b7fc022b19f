//! What an inbox takes: `--most` in all, and for each client.
//!
//! The invariant: nothing is reserved beyond either limit. A transfer reserves the size of its offer before a
//! byte comes, and more for a pipe as its parts come; what it did not store is given back.

use std::collections::BTreeMap;

/// How much an inbox takes and has taken. `K` tells clients apart, by what the program trusts: an address,
/// or the id in a token.
#[derive(Clone, Debug)]
pub struct InboxQuota<K> {
    max_bytes: u64,
    max_client_bytes: u64,
    taken_bytes: u64,
    clients: BTreeMap<K, u64>,
}

impl<K: Ord + Clone> InboxQuota<K> {
    /// So many bytes in all, and of one client.
    #[must_use]
    pub const fn new(max_bytes: u64, max_client_bytes: u64) -> Self {
        Self { max_bytes, max_client_bytes, taken_bytes: 0, clients: BTreeMap::new() }
    }

    /// The limit of all together, and that of each client.
    #[must_use]
    pub const fn limits(&self) -> (u64, u64) {
        (self.max_bytes, self.max_client_bytes)
    }

    /// Whether there is any limit.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.max_bytes < u64::MAX || self.max_client_bytes < u64::MAX
    }

    /// What all together may still send.
    #[must_use]
    pub const fn left_in_all_bytes(&self) -> u64 {
        self.max_bytes.saturating_sub(self.taken_bytes)
    }

    /// What is there was counted anew: files were taken out of the inbox, or put there by others. What
    /// clients have sent is theirs still.
    pub const fn set_taken_bytes(&mut self, bytes: u64) {
        self.taken_bytes = bytes;
    }

    /// What this client may still send.
    #[must_use]
    pub fn left_bytes(&self, client: &K) -> u64 {
        let of_client = self.clients.get(client).copied().unwrap_or(0);
        self.left_in_all_bytes().min(self.max_client_bytes.saturating_sub(of_client))
    }

    /// Takes up so many bytes for this client, or says how many there would have been.
    ///
    /// # Errors
    /// The bytes that are left, if they are fewer; nothing is taken up then.
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
        quota.set_taken_bytes(0);
        assert_eq!((quota.left_bytes(&"a"), quota.left_bytes(&"b")), (0, 60));
        quota.release(&"a", 60);
        assert_eq!(quota.left_in_all_bytes(), 100);
    }
}
