//! What `serve`, `fetch`, `send` and `recv` write down about their connections: opens the files, and says
//! what is dangerous about them, before anything is sent.

use std::fs::File;
use std::io;
use std::path::Path;

use haulier::trace::KeyLog;
use haulier::{Connect, ConnectionConfig, Listen};

use crate::args::TraceArgs;
use crate::failure::Failure;
use crate::report::Report;

/// The sinks that are asked for.
pub(crate) struct Traces {
    key_log: Option<KeyLog<File>>,
}

impl Traces {
    pub(crate) fn open(args: &TraceArgs, report: &Report) -> Result<Self, Failure> {
        let key_log = args.keylog.as_deref().map(open_key_log).transpose()?;
        if let (Some(path), Some(_)) = (&args.keylog, &key_log) {
            let path = path.display();
            report.warning(&format!(
                "{path} gets the keys of these connections: whoever has it can read all of them"
            ));
        }
        Ok(Self { key_log })
    }

    /// The settings of connections whose trace has what the sinks are for.
    pub(crate) fn settings(&self, connection: ConnectionConfig) -> ConnectionConfig {
        connection.with_trace_secrets(self.key_log.is_some())
    }

    pub(crate) fn of_client(self, connect: &mut Connect) {
        connect.connection = self.settings(connect.connection);
        if let Some(sink) = self.key_log {
            *connect = connect.clone().with_trace_sink(sink);
        }
    }

    pub(crate) fn of_server(self, listen: Listen) -> Listen {
        match self.key_log {
            Some(sink) => listen.with_trace_sink(sink),
            None => listen,
        }
    }
}

fn open_key_log(path: &Path) -> Result<KeyLog<File>, Failure> {
    KeyLog::append(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            Failure::Exposed(format!("{}: {error}", path.display()))
        }
        _ => Failure::file(path, &error),
    })
}
