//! The native part of haulier for Python: clients, servers and what they take, as classes.
//!
//! A face decides nothing: each method is one of `haulier`'s, under its name. What this crate adds is what
//! Python needs. Whatever waits releases the interpreter's lock and looks for Ctrl-C ten times a second
//! (`waiting`); what a network thread wakes is an event loop's file descriptor, so that no thread of haulier
//! ever waits for the interpreter (`operation`). Events, settings and errors are classes written in Python,
//! in `python/haulier`, and made here by calling them (`classes`).

mod bytes;
mod classes;
mod client;
mod config;
mod credentials;
mod failure;
mod fetch_failure;
mod file_server;
mod files;
mod names;
mod operation;
mod released;
mod server;
mod soak;
mod waiting;

use pyo3::pymodule;

/// The native part of `haulier`.
#[pymodule]
mod _haulier {
    #[pymodule_export]
    use crate::bytes::Block;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::credentials::{ConnectToken, Ticket, TokenKey, issue_token, random_secret};
    #[pymodule_export]
    use crate::file_server::{FileServer, recv, serve};
    #[pymodule_export]
    use crate::files::{fetch, send};
    #[pymodule_export]
    use crate::names::{BlockHandle, BlockNumber, ConnectionId, is_newer};
    #[pymodule_export]
    use crate::operation::{Operation, Wakeups};
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::soak::soak;
}
