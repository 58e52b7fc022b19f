//! `haulier fetch`: a file from a `haulier serve`, verified, and stored only then.

mod access;

use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::file::{Digest, Header, Sink as _};
use haulier::{Client, CloseCode, CloseReason, ConnectionConfig, Event};
use serde_json::json;

use self::access::Access;
use crate::args::FetchArgs;
use crate::failure::{Failure, plain};
use crate::files::{
    self, ANOTHER_FILE, Entry, FILE_TAG, LIST_TAG, MAX_NAME_BYTES, NAME_ONE, NO_SUCH_FILE,
    NOT_STORED, NOT_UNDERSTOOD, Request,
};
use crate::interrupt;
use crate::output::Output;
use crate::report::Report;
use crate::send::show_path;
use crate::units::{in_millis, show_bytes, show_words};

/// The longest wait for an event: how soon Ctrl-C is noticed.
const TURN: Duration = Duration::from_millis(20);

/// The largest block taken: what `serve` holds.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// The shortest silence that ends a connection, by the wire.
const MIN_IDLE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &FetchArgs, report: &Report) -> Result<(), Failure> {
    let stored = |error: std::io::Error| Failure::Io(plain(&error));
    // What cannot be stored is reported before a request is sent.
    let output = Output::new(&args.output, args.force);
    if !args.list {
        output.check().map_err(stored)?;
    }
    let (mut access, name) = access::find(args)?;
    let request = match (args.list, name) {
        (true, None) => Request::List,
        (true, Some(_)) => {
            return Err(Failure::Usage("--list lists all files: leave out the NAME".into()));
        }
        (false, name) => Request::Get(name),
    };
    if let Request::Get(Some(name)) = &request {
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) {
            return Err(Failure::Usage("a file's name has 1 to 255 bytes".into()));
        }
        output.check_name(name).map_err(stored)?;
    }
    access.connect.request = request.to_bytes();
    access.connect.copies = args.copies;
    access.connect.connection = ConnectionConfig::default()
        .with_handshake_timeout(args.timeout)
        .with_idle_timeout(args.timeout.max(MIN_IDLE))
        .with_max_block_bytes(MAX_BLOCK_BYTES);
    let started = Instant::now();
    let client = join(&access)?;
    let connect = started.elapsed();
    let (addr, connect_ms) = (client.server().to_string(), in_millis(connect));
    let fields = json!({ "addr": addr, "connect_ms": connect_ms });
    report.event("connected", fields, &format!("connected with {addr} in {connect_ms:.0} ms"));
    let mut fetch = Fetch {
        client,
        request,
        digest: access.digest,
        output,
        name: None,
        timeout: args.timeout,
        report,
    };
    let got = fetch.until_answer();
    let total = started.elapsed();
    let outcome = got.and_then(|got| fetch.store(got));
    report.finish_bar();
    fetch.close(outcome.as_ref().err());
    fetch.conclude(outcome?, connect, total)
}

/// A client that is connected.
fn join(access: &Access) -> Result<Client, Failure> {
    let client =
        Client::connect(access.connect.clone()).map_err(|error| access.not_begun(&error))?;
    loop {
        interrupt::check()?;
        match client.wait(TURN)? {
            Some(Event::Closed(_)) => return Err(access.not_connected(&client.attempts())),
            Some(_) => return Ok(client),
            None => {}
        }
    }
}

/// How long saying so may take: three times a second apart, and some of it for a busy machine. The file is
/// here already.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the server answered.
enum Got {
    File(String, Bytes),
    List(Vec<Entry>),
}

/// What is done with it.
enum Stored {
    File { bytes: u64, digest: Digest },
    List(Vec<Entry>),
}

/// Why there is nothing to show: the error for the user, and the close code for the server.
struct Failed(Failure, CloseCode);

struct Fetch<'a> {
    client: Client,
    request: Request,
    digest: Option<[u8; 32]>,
    output: Output,
    /// What the server calls the file, once it has said so.
    name: Option<String>,
    timeout: Duration,
    report: &'a Report,
}

impl Fetch<'_> {
    /// Listens until the answer is whole.
    fn until_answer(&mut self) -> Result<Got, Failed> {
        let mut block: Option<(u64, Bytes)> = None;
        let mut last_progress = Instant::now();
        loop {
            if interrupt::requested() {
                return Err(Failed(Failure::Interrupted, CloseCode::SHUTTING_DOWN));
            }
            let event = self.client.wait(TURN);
            match event.map_err(|error| Failed(error.into(), CloseCode::SHUTTING_DOWN))? {
                Some(Event::Message { data, .. }) => self.on_message(&data)?,
                Some(Event::BlockProgress { .. }) => last_progress = Instant::now(),
                Some(Event::Block { tag, data }) if block.is_none() => block = Some((tag, data)),
                Some(Event::Block { .. }) => return Err(foreign("two answers")),
                Some(Event::Closed(reason)) => return Err(self.on_closed(&reason)),
                _ => {}
            }
            match (&self.request, &block, &self.name) {
                (Request::List, Some((LIST_TAG, list)), _) => {
                    let list = files::read_list(list).ok_or_else(|| foreign("no list"))?;
                    return Ok(Got::List(list));
                }
                (Request::Get(_), Some((FILE_TAG, data)), Some(name)) => {
                    return Ok(Got::File(name.clone(), data.clone()));
                }
                // The name may come after its file: they cross the wire each for itself.
                (Request::Get(_), Some((FILE_TAG, _)) | None, _) | (Request::List, None, _) => {}
                _ => return Err(foreign("something else")),
            }
            self.show();
            if last_progress.elapsed() > self.timeout.max(Duration::from_secs(1)) {
                return Err(self.stopped());
            }
        }
    }

    fn on_message(&mut self, message: &[u8]) -> Result<(), Failed> {
        let name = files::read_name_message(message).ok_or_else(|| foreign("no name"))?;
        let is_other = match &self.request {
            Request::Get(asked) => asked.as_ref().is_some_and(|asked| *asked != name),
            Request::List => true,
        };
        if is_other || self.name.is_some() {
            return Err(foreign("another file"));
        }
        // Before it comes, not after: there may be a file of this name.
        let free = self.output.check_name(&name);
        free.map_err(|error| Failed(Failure::Io(plain(&error)), NOT_STORED))?;
        self.name = Some(name);
        Ok(())
    }

    fn on_closed(&self, reason: &CloseReason) -> Failed {
        let failure = match reason {
            CloseReason::There { code, reason } => self.refused(*code, reason),
            CloseReason::Here(CloseCode::BLOCK_DAMAGED) => Failure::Verification(
                "what arrived is not what the server announced: its BLAKE3 differs; nothing was \
                 stored"
                    .into(),
            ),
            CloseReason::Here(CloseCode::BLOCK_TOO_LARGE) => Failure::Verification(
                "the server announced more than a fetch takes, 1 GiB; nothing was stored".into(),
            ),
            CloseReason::Here(code) => Failure::Verification(format!(
                "the server broke the rules of the wire ({code}); nothing was stored"
            )),
            CloseReason::ConnectionUnknown => {
                let what = "the server does not have this connection any more: it was restarted, or it \
                            ended it; nothing was stored: fetch again";
                Failure::TimeOut(what.into())
            }
            _ => return self.stopped(),
        };
        Failed(failure, CloseCode::DONE)
    }

    /// The server closed: what it means for the user.
    fn refused(&self, code: CloseCode, reason: &str) -> Failure {
        let words = show_words(reason);
        let said = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let why = match code {
            NO_SUCH_FILE => match &self.request {
                Request::Get(Some(name)) => {
                    format!("there is no file {name:?} there; --list says which there are")
                }
                _ => "there is no such file; --list says which there are".into(),
            },
            NAME_ONE => format!("say which file you want{said}; --list says which there are"),
            NOT_UNDERSTOOD => format!("the server does not understand the request{said}"),
            CloseCode::SHUTTING_DOWN => {
                "the server was shut down before the file was here; nothing was stored".into()
            }
            CloseCode::NO_PROGRESS => {
                "the server gave up: nothing got through for too long; nothing was stored".into()
            }
            CloseCode::BLOCK_TOO_LARGE => format!("the file is too large to fetch{said}"),
            _ => format!("the server closed the connection: {code}{said}; nothing was stored"),
        };
        Failure::TimeOut(why)
    }

    fn stopped(&self) -> Failed {
        let text = format!(
            "{} stopped answering: nothing new for {} s; nothing was stored",
            self.client.server(),
            self.timeout.as_secs_f64().max(1.0),
        );
        Failed(Failure::TimeOut(text), CloseCode::NO_PROGRESS)
    }

    fn show(&self) {
        if let Some(progress) = self.client.receiving()
            && progress.tag == FILE_TAG
        {
            self.report.progress(progress.done, Some(progress.length), String::new);
        }
    }

    fn store(&mut self, got: Got) -> Result<Stored, Failed> {
        let (name, data) = match got {
            Got::File(name, data) => (name, data),
            Got::List(list) => return Ok(Stored::List(list)),
        };
        let digest = blake3::hash(&data);
        if self.digest.is_some_and(|expected| digest != expected) {
            let what = "the server's file is not the one of the ticket: their BLAKE3 differ; nothing \
                        was stored";
            return Err(Failed(Failure::Verification(what.into()), ANOTHER_FILE));
        }
        let bytes = data.len() as u64;
        let header = Header { name, size: Some(bytes) };
        let written = self.output.begin(&header).and_then(|()| self.output.write(&data));
        written.and_then(|()| self.output.commit()).map_err(|error| {
            let (text, path) = (plain(&error), show_path(self.output.path()));
            let what = if text.contains(&path) { text } else { format!("{path}: {text}") };
            Failed(Failure::Io(what), NOT_STORED)
        })?;
        Ok(Stored::File { bytes, digest })
    }

    /// Reports to the server how it ended. It is sent three times, and needs no answer.
    fn close(&mut self, failed: Option<&Failed>) {
        let code = failed.map_or(CloseCode::DONE, |Failed(_, code)| *code);
        self.client.close(code, "");
        let started = Instant::now();
        while !self.client.is_closed() && started.elapsed() < LAST_WORDS {
            if self.client.wait(TURN).is_err() {
                return;
            }
        }
    }

    fn conclude(self, stored: Stored, connect: Duration, total: Duration) -> Result<(), Failure> {
        let wire = self.client.wire_bytes();
        let rtt = in_millis(self.client.stats().and_then(|stats| stats.rtt).unwrap_or_default());
        let mut fields = json!({
            "ok": true,
            "connect_ms": in_millis(connect),
            "total_ms": in_millis(total),
            "rtt_ms": rtt,
            "wire_bytes_in": wire.received,
            "wire_bytes_out": wire.sent,
        });
        let text = match stored {
            Stored::File { bytes, digest } => {
                let file = show_path(self.output.path());
                fields["file"] = json!(file);
                fields["bytes"] = json!(bytes);
                fields["blake3"] = json!(digest.to_hex().as_str());
                format!(
                    "fetched {} in {:.3} s and verified: {file}{}\n{} crossed the wire, with a round \
                     trip of {rtt:.0} ms\nblake3 {}",
                    show_bytes(bytes),
                    total.as_secs_f64(),
                    self.output.show_rename(),
                    show_bytes(wire.received + wire.sent),
                    digest.to_hex(),
                )
            }
            Stored::List(list) => {
                let entry = |entry: &Entry| {
                    json!({
                        "name": entry.name,
                        "bytes": entry.bytes,
                        "blake3": Digest::from_bytes(entry.digest).to_hex().as_str(),
                    })
                };
                fields["files"] = list.iter().map(entry).collect();
                let line = |entry: &Entry| {
                    format!("{:>10}  {}", show_bytes(entry.bytes), show_words(&entry.name))
                };
                list.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        };
        self.report.done(fields, &text);
        Ok(())
    }
}

impl From<Failed> for Failure {
    fn from(Failed(failure, _): Failed) -> Self {
        failure
    }
}

/// Not what `serve` answers.
fn foreign(what: &str) -> Failed {
    let text = format!("the server answered {what}: is it `haulier serve`? Nothing was stored");
    Failed(Failure::Verification(text), NOT_UNDERSTOOD)
}
