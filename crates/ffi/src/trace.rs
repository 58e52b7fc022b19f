//! The traces that settings ask for: files that the network thread writes.

use core::ffi::c_char;
use std::fs::File;

use haulier::ConnectionConfig;
use haulier::trace::{KeyLog, Qlog, TraceLevel, VantagePoint};

use crate::memory::text;
use crate::result::{Failure, haulier_result};

/// What is to be written.
pub(crate) struct Traces {
    pub(crate) qlog: Option<Qlog<File>>,
    pub(crate) key_log: Option<KeyLog<File>>,
}

impl Traces {
    /// Opens the files, if there are to be some.
    ///
    /// # Safety
    /// Both are null, or text with a 0.
    pub(crate) unsafe fn open(
        qlog: *const c_char,
        key_log: *const c_char,
        vantage: VantagePoint,
    ) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        let qlog = unsafe { opened(qlog, "qlog_path", |path| Qlog::create(path, vantage)) }?;
        // SAFETY: and again.
        let key_log = unsafe { opened(key_log, "key_log_path", |path| KeyLog::append(path)) }?;
        Ok(Self { qlog, key_log })
    }

    /// The settings of connections that write down what is asked for.
    pub(crate) fn settings(&self, connection: ConnectionConfig) -> ConnectionConfig {
        let level = if self.qlog.is_some() { TraceLevel::Datagrams } else { TraceLevel::Off };
        connection.with_trace(level).with_trace_secrets(self.key_log.is_some())
    }
}

/// # Safety
/// `path` is null, or text with a 0.
unsafe fn opened<T>(
    path: *const c_char,
    name: &str,
    open: impl FnOnce(&str) -> std::io::Result<T>,
) -> Result<Option<T>, Failure> {
    if path.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let path = unsafe { text(path, name) }?;
    open(path).map(Some).map_err(|error| {
        let what = format!("`{name}` is \"{path}\", which cannot be written: {error}");
        Failure::new(haulier_result::HAULIER_ERROR_IO, what)
    })
}
