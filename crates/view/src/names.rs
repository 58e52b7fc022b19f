//! What the application calls its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haulier::ConnectionId;

/// The longest name that is kept, in characters: as much as a row of a table has room for.
const MAX_CHARS: usize = 64;

/// The names of connections, for people who look: the library knows addresses alone. Cheap to clone; all
/// clones are the same names.
///
/// A name is shown as it is given, as text and never as markup, so it may come from the client.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<BTreeMap<u64, String>>>);

impl Names {
    /// No names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a connection this name, of up to 64 characters, without those that move a cursor. The name is
    /// forgotten when the connection is gone.
    pub fn set(&self, id: ConnectionId, name: &str) {
        let plain = name.chars().filter(|char| !char.is_control()).take(MAX_CHARS);
        self.lock().insert(number(id), plain.collect());
    }

    pub(crate) fn of(&self, id: u64) -> String {
        self.lock().get(&id).cloned().unwrap_or_default()
    }

    /// The connections that have names.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.lock().keys().copied().collect()
    }

    /// Forgets that of a connection that is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number that a connection prints as.
pub(crate) fn number(id: ConnectionId) -> u64 {
    id.to_string().parse().unwrap_or_default()
}
