//! What `serve`, `fetch`, `send` and `recv` write down about their connections: opens the files, and says
//! what is dangerous about them, before anything is sent.

use std::fs::File;
use std::io;
use std::path::Path;

use haulier::trace::{KeyLog, Qlog, TraceLevel, VantagePoint};
use haulier::{Connect, ConnectionConfig, Listen};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use tracing_subscriber::Layer as _;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::TraceArgs;

/// The sinks that are asked for.
pub(crate) struct Traces {
    key_log: Option<KeyLog<File>>,
    qlog: Option<Qlog<File>>,
}

impl Traces {
    /// Of a client.
    pub(crate) fn of_client(
        args: &TraceArgs,
        connect: &mut Connect,
        report: &Report,
    ) -> Result<(), Failure> {
        let traces = Self::open(args, VantagePoint::Client, report)?;
        let mut traced = connect.clone().with_connection(traces.settings(connect.connection));
        if let Some(sink) = traces.key_log {
            traced = traced.with_trace_sink(sink);
        }
        if let Some(sink) = traces.qlog {
            traced = traced.with_trace_sink(sink);
        }
        *connect = traced;
        Ok(())
    }

    /// Of a server, with the settings of its connections.
    pub(crate) fn of_server(
        args: &TraceArgs,
        mut listen: Listen,
        connection: &mut ConnectionConfig,
        report: &Report,
    ) -> Result<Listen, Failure> {
        let traces = Self::open(args, VantagePoint::Server, report)?;
        *connection = traces.settings(*connection);
        if let Some(sink) = traces.key_log {
            listen = listen.with_trace_sink(sink);
        }
        if let Some(sink) = traces.qlog {
            listen = listen.with_trace_sink(sink);
        }
        Ok(listen)
    }

    fn open(args: &TraceArgs, vantage: VantagePoint, report: &Report) -> Result<Self, Failure> {
        if let Some(filter) = &args.log {
            // What cannot be written there cannot be complained about there.
            let lines = layer().with_writer(io::stderr).log_internal_errors(false);
            let lines = lines.with_filter(filter.clone());
            // A program has one.
            let _first = tracing_subscriber::registry().with(lines).try_init();
        }
        let key_log = args.keylog.as_deref().map(open_key_log).transpose()?;
        if let Some(path) = &args.keylog {
            let path = path.display();
            report.warning(&format!(
                "{path} gets the keys of these connections: whoever has it can read all of them"
            ));
        }
        let qlog = args
            .qlog
            .as_deref()
            .map(|path| Qlog::create(path, vantage).map_err(|error| Failure::file(path, &error)));
        Ok(Self { key_log, qlog: qlog.transpose()? })
    }

    /// The settings of connections whose trace has what the sinks are for.
    fn settings(&self, connection: ConnectionConfig) -> ConnectionConfig {
        let level = if self.qlog.is_some() { TraceLevel::Datagrams } else { TraceLevel::Off };
        connection.with_trace(level).with_trace_secrets(self.key_log.is_some())
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
