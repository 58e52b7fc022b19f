//! What a connection, a block or a packet is called in events: made by haulier, compared and used as a key by
//! programs.

use haulier::Sequence;
use pyo3::prelude::*;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[pyclass(module = "haulier", frozen, eq, hash)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) struct $name(pub(crate) haulier::$name);

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                format!("<{} {:x}>", stringify!($name), self.0.to_bits())
            }
        }
    )*};
}

names! {
    /// Which client of a server.
    ConnectionId;
    /// Which block that this end sends.
    BlockHandle;
    /// Which block that this end receives.
    BlockNumber;
}

/// Whether packet `a` was sent after packet `b`, by their sequences. These wrap: after 65,535 comes 0, within
/// an hour at 20 a second, and then `a > b` is wrong.
#[pyfunction]
pub(crate) const fn is_newer(a: u16, b: u16) -> bool {
    Sequence::new(a).is_newer_than(Sequence::new(b))
}
