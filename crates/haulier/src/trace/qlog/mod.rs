//! qlog: the trace format of the QUIC world, as JSON text sequences (RFC 7464), one record an event.
//!
//! The names are those of qlog 0.3 (draft-ietf-quic-qlog-main-schema-03 and -quic-events-03), because that is
//! what the viewers read: `docs/VIEWS.md` says what is what. Ours are datagrams where QUIC has packets, and
//! blocks where it has streams; the rest is in a namespace of its own, `haulier:`. `frames` has what is in a
//! datagram, `events` all that is around it.

mod events;
mod frames;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::trace::{TraceEvent, Traced};
use haulier_proto::server::ConnectionId;
use serde_json::{Value, json};

use super::TraceSink;

/// The version of qlog whose names are used.
const QLOG_VERSION: &str = "0.3";

/// Between records (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

/// The end that a qlog is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VantagePoint {
    /// A client: the file has one connection.
    Client,
    /// A server: the file has all of its connections, which the `group_id` of each event distinguishes.
    Server,
}

/// A sink that writes traces as qlog.
///
/// What it writes is what the connections write down: draw it with
/// [`TraceLevel::Datagrams`](super::TraceLevel::Datagrams). Secrets are left out, whatever the settings.
///
/// ```
/// use haulier::trace::{Qlog, TraceLevel, VantagePoint};
/// use haulier::{Connect, ConnectionConfig, Credentials};
///
/// # fn run(file: std::fs::File) -> Result<(), Box<dyn std::error::Error>> {
/// let connection = ConnectionConfig::default().with_trace(TraceLevel::Datagrams);
/// let connect = Connect::new("192.0.2.1:4016".parse()?, 7, Credentials::Open)
///     .with_connection(connection)
///     .with_trace_sink(Qlog::new(file, VantagePoint::Client)?);
/// # drop(connect);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Qlog<W: Write> {
    out: BufWriter<W>,
    vantage: VantagePoint,
    /// Whether all records were written: with the first that is not, it stops.
    is_whole: bool,
}

impl Qlog<File> {
    /// A sink that writes a new file; an existing file is replaced.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(path: impl AsRef<Path>, vantage: VantagePoint) -> io::Result<Self> {
        Self::new(File::create(path)?, vantage)
    }
}

impl<W: Write> Qlog<W> {
    /// One that writes there. It begins with the header of the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(out: W, vantage: VantagePoint) -> io::Result<Self> {
        let mut qlog = Self { out: BufWriter::new(out), vantage, is_whole: true };
        let vantage_point = match vantage {
            VantagePoint::Client => "client",
            VantagePoint::Server => "server",
        };
        qlog.write_record(&json!({
            "qlog_version": QLOG_VERSION,
            "qlog_format": "JSON-SEQ",
            "title": "haulier",
            "trace": {
                "vantage_point": { "name": "haulier", "type": vantage_point },
                "common_fields": {
                    "protocol_type": ["HAULIER1"],
                    "time_format": "relative",
                    "reference_time": 0,
                },
            },
        }))?;
        Ok(qlog)
    }

    /// Writes an event `of` a connection of a server, or of a client. Some events become several records, and
    /// a secret becomes no record.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_event(&mut self, of: Option<ConnectionId>, traced: &Traced) -> io::Result<()> {
        if traced.missing > 0 {
            let data = json!({ "count": traced.missing });
            self.write_named(of, traced.at, "haulier:events_missing", &data)?;
        }
        if let TraceEvent::Agreed { here, there, .. } = &traced.event {
            for (owner, parameters) in [("local", here), ("remote", there)] {
                let data = events::parameters(owner, parameters);
                self.write_named(of, traced.at, "transport:parameters_set", &data)?;
            }
        }
        match events::record(self.vantage, &traced.event) {
            Some((name, data)) => self.write_named(of, traced.at, name, &data),
            None => Ok(()),
        }
    }

    /// The writer, with everything in it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }

    /// Hands on what is kept for the next write.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write_named(
        &mut self,
        of: Option<ConnectionId>,
        at: Instant,
        name: &str,
        data: &Value,
    ) -> io::Result<()> {
        let mut record = json!({ "time": millis_at(at), "name": name, "data": data });
        if let Some(id) = of {
            record["group_id"] = json!(id.to_string());
        }
        self.write_record(&record)
    }

    fn write_record(&mut self, record: &Value) -> io::Result<()> {
        self.out.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write + Send> TraceSink for Qlog<W> {
    /// After a record that cannot be written, on a full disk say, there are no more: the connection goes on.
    fn write(&mut self, of: Option<ConnectionId>, traced: &Traced) {
        self.is_whole = self.is_whole && self.write_event(of, traced).is_ok();
    }

    /// A program may end at any time, and what the writer keeps is lost then, in the middle of a record. In a
    /// round are as many datagrams as a call of the system takes, so this is not much.
    fn flush(&mut self) {
        self.is_whole = self.is_whole && self.out.flush().is_ok();
    }
}

/// Milliseconds since the origin of the clock.
fn millis_at(at: Instant) -> f64 {
    millis(at.since(Instant::ZERO))
}

/// As qlog has times: in milliseconds, with their fractions.
fn millis(time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact for a hundred days")]
    let nanos = time.as_nanos() as f64;
    nanos / 1e6
}
