//! What a connection or a block is called in events: made by haulier, compared and used as a key by programs.

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
