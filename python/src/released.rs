//! What must not be dropped while the interpreter's lock is held.

use pyo3::prelude::*;

/// A handle of haulier. Dropping the last one waits for its network thread, a second at most: other threads
/// of Python run meanwhile.
pub(crate) struct Released<T: Send>(Option<T>);

impl<T: Send> Released<T> {
    pub(crate) const fn new(handle: T) -> Self {
        Self(Some(handle))
    }

    pub(crate) const fn get(&self) -> &T {
        match &self.0 {
            Some(handle) => handle,
            None => unreachable!(), // it is taken by `drop` alone
        }
    }
}

impl<T: Send> Drop for Released<T> {
    fn drop(&mut self) {
        let handle = &mut self.0;
        // While the interpreter ends, attaching fails: then no other thread of Python runs.
        Python::try_attach(|py| py.detach(|| drop(handle.take())));
    }
}
