//! `haulier send`: files and directories to a `haulier recv`, or to the inbox of a `haulier serve`.
//!
//! It ends when the other end has said of each file that it is verified and stored, not when the last byte is
//! acknowledged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haulier::file::Digest;
use haulier::{Client, CloseCode, CloseReason, ConnectionConfig, Event};
use haulier_files::giver::{GiverConfig, GiverEvent, Start};
use haulier_files::messages::Request;
use haulier_files::offer::Entry;
use haulier_files::reason::{Fault, INTERRUPTED, NOT_ADMITTED, OVER_QUOTA, Reason};
use haulier_files::session::{ClientLink, Giving, Library};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::look::{self, Look};
use haulier_shell::report::Report;
use haulier_shell::units::{count, in_millis, show_bytes, show_words};
use serde_json::json;
use zeroize::Zeroizing;

use crate::access::{self, Access};
use crate::args::SendArgs;
use crate::asking;
use crate::details;
use crate::fetch::outcome::{below, has_pipe, pace, share, show_wire};
use crate::files;
use crate::lan;
use crate::library;
use crate::silence::{self, Silence};
use crate::trace::Traces;

/// What should run at the other end.
const PEER: &str = "`haulier recv` or `haulier serve --inbox`";

/// How long saying goodbye may take: three times a second apart, and some of it for a busy machine.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &SendArgs, report: &Report) -> Result<(), Failure> {
    look::check(&args.look, false, report)?;
    let (paths, ticket) = split(args)?;
    if args.connect.lan.lan == Some(None) {
        let what = "to which server? --lan=NAME says it, and `haulier fetch --lan` lists them";
        return Err(Failure::Usage(what.into()));
    }
    if args.name.is_some() && paths.len() != 1 {
        return Err(Failure::Usage("--name is for one file: there are several".into()));
    }
    let library = Arc::new(library::load(&paths, args.name.as_deref(), args.checksum, report)?);
    let mut access = match &args.connect.lan.lan {
        Some(Some(server)) => lan::find(server, &args.connect, PEER, report)?,
        _ => access::find(&ticket, &args.connect, PEER, report)?,
    };
    access.connect.request = Request::Put.to_bytes();
    access.connect.copies = args.connect.copies;
    access.connect.max_time_in_line = args.connect.max_wait;
    access.connect.connection = ConnectionConfig::default()
        .with_handshake_timeout(args.connect.answer())
        .with_idle_timeout(args.connect.patience())
        .with_max_rate_bps(args.rate.unwrap_or(u64::MAX))
        .with_urgency(args.urgency.into())
        .with_max_block_bytes(0);
    Traces::of_client(&args.connect.trace, &mut access.connect, report)?;
    let Some(failure) = attempt(args, &access, &library, report)? else { return Ok(()) };
    // A pipe can be read once.
    if has_pipe(&library.offer()) {
        return Err(failure);
    }
    report.warning(
        "a file is not what it was when it was hashed: it is sent once more, as it is now",
    );
    match attempt(args, &access, &library, report) {
        Ok(None) => Ok(()),
        Err(Failure::Paused) => Err(Failure::Paused),
        // As of a token that was used: why there was a second time says more.
        Ok(Some(_)) | Err(_) => Err(failure),
    }
}

/// Sends all of it. Comes back with a failure if a file has changed meanwhile: the library has looked at it
/// again, so that another attempt may end otherwise.
fn attempt(
    args: &SendArgs,
    access: &Access,
    library: &Arc<Library>,
    report: &Report,
) -> Result<Option<Failure>, Failure> {
    let started = Instant::now();
    details::request(access, report);
    let client = asking::join_patiently(access, args.connect.answer(), report)?;
    let connect = started.elapsed();
    let pool = files::disk_pool(client.waker())?;
    let (addr, connect_ms) = (client.server().to_string(), in_millis(connect));
    let fields = json!({ "addr": addr, "connect_ms": connect_ms });
    report.status("connected", fields, &format!("connected with {addr} in {connect_ms:.0} ms"));
    details::connected(&client, report);
    let _look =
        Look::start(&args.look, client.clone(), format!("to {addr}").as_str().into(), report)?;
    let Some(giving) = Giving::new(library, pool.handle(), GiverConfig::new(Start::WhenAsked), "")
    else {
        return Err(Failure::Usage("nothing in there can be sent".into()));
    };
    let patience = args.connect.patience();
    let mut send = Sending {
        client: &client,
        giving,
        patience,
        silence: Silence::new(patience),
        report,
        stored: 0,
        failed: 0,
        first_failure: None,
        has_changed: false,
    };
    let outcome = send.until_done();
    let times = (connect, started.elapsed());
    report.finish_bar();
    details::ended(&client, &send.giving.progress(&ClientLink(&client)), report);
    send.say_goodbye();
    match outcome {
        Err(failure) if send.has_changed => Ok(Some(failure)),
        Err(failure) => Err(failure),
        Ok(()) => send.conclude(times).map(|()| None),
    }
}

/// What to send, and where.
fn split(args: &SendArgs) -> Result<(Vec<PathBuf>, Zeroizing<String>), Failure> {
    let (last, others) = match args.what.split_last() {
        Some((last, others)) if access::is_source(last) => (Some(last), others),
        _ => (None, &args.what[..]),
    };
    let is_named = args.connect.lan.lan.is_some();
    let ticket = match (last, &args.connect.ticket_file) {
        (Some(_), _) if is_named => {
            let what = "with --lan=NAME there are only files, and no TICKET: --ticket-file has one";
            return Err(Failure::Usage(what.into()));
        }
        (None, _) if is_named => String::new().into(),
        (Some(_), Some(_)) => {
            let what = "with --ticket-file there are only files, and no TICKET";
            return Err(Failure::Usage(what.into()));
        }
        (Some(last), None) => last.clone().into(),
        (None, _) => access::elsewhere(&args.connect)?.ok_or_else(|| access::no_ticket(PEER))?,
    };
    if others.is_empty() {
        return Err(Failure::Usage(
            "there is nothing to send: name files before the ticket".into(),
        ));
    }
    Ok((others.iter().map(PathBuf::from).collect(), ticket))
}

struct Sending<'a> {
    client: &'a Client,
    giving: Giving,
    patience: Duration,
    silence: Silence,
    report: &'a Report,
    /// Files that are there, and that are not, the first with why.
    stored: u32,
    failed: u32,
    first_failure: Option<(u32, Fault)>,
    has_changed: bool,
}

impl Sending<'_> {
    /// Gives what is wanted, until nothing is.
    fn until_done(&mut self) -> Result<(), Failure> {
        let link = ClientLink(self.client);
        let mut quiet_since = Instant::now();
        loop {
            if interrupt::requested() {
                self.giving.close(&link, INTERRUPTED, "");
                return Err(Failure::Paused);
            }
            match self.client.wait(files::TURN)? {
                Some(Event::Closed(reason)) => {
                    self.giving.handle_event(&link, &Event::Closed(reason.clone()));
                    return Err(self.ended(&reason));
                }
                Some(event) => {
                    quiet_since = Instant::now();
                    self.giving.handle_event(&link, &event);
                }
                None => self.giving.turn(&link),
            }
            if self.is_over()? {
                return Ok(());
            }
            if quiet_since.elapsed() > files::LOOK_FOR_NETWORK {
                quiet_since = Instant::now();
                // Without a network the old socket is kept.
                let _moved = self.client.rebind_if_moved();
            }
            self.show(&link);
        }
    }

    fn show(&mut self, link: &ClientLink<'_>) {
        let (client, silence) = (self.client, &mut self.silence);
        silence.look(|| client.with_connection(silence::state));
        let progress = self.giving.progress(link);
        let has_pipe = has_pipe(self.giving.offer());
        let fields = || {
            let mut fields = json!({});
            silence.add_to(&mut fields);
            fields
        };
        let share = share(&progress, has_pipe);
        self.report.transfer(share, fields, || pace(&progress, has_pipe, silence));
    }

    /// What became of files; whether that was the last.
    fn is_over(&mut self) -> Result<bool, Failure> {
        while let Some(event) = self.giving.poll_event() {
            match event {
                GiverEvent::Stored { file } => {
                    let entry = self.giving.offer().entry(file);
                    self.stored += u32::from(entry.is_some_and(|it| !it.is_directory()));
                }
                GiverEvent::Refused { file, fault } | GiverEvent::Failed { file, fault } => {
                    self.failed += 1;
                    self.has_changed |= fault.reason == Reason::Changed;
                    self.first_failure.get_or_insert((file, fault));
                }
                GiverEvent::Done => {
                    return match self.first_failure.take() {
                        Some((file, fault)) => Err(self.not_there(file, &fault)),
                        None => Ok(true),
                    };
                }
                GiverEvent::Ended { reason, .. } => {
                    let what = format!("the other end broke the rules ({})", show_words(&reason));
                    return Err(Failure::Verification(what));
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Some files are not there: why the first of them.
    fn not_there(&self, file: u32, fault: &Fault) -> Failure {
        let name = self.giving.offer().entry(file).map(|entry| entry.path.to_string());
        let name = name.unwrap_or_default();
        let words = match fault.reason {
            Reason::Taken => format!(
                "{name}: another file has this name there, which is kept (--force there), or is being sent"
            ),
            Reason::NoRoom => format!("{name}: the disk there has no room for it"),
            Reason::Quota => format!("{name}: it is more than is taken there"),
            _ => format!("{name}: {}", show_words(&fault.to_string())),
        };
        let text = match self.giving.offer().len() {
            0 | 1 => words,
            files => format!("{} of {files} files are not there: {words}", self.failed),
        };
        match fault.reason {
            Reason::WrongRoot => Failure::Verification(text),
            _ => Failure::Io(text),
        }
    }

    fn ended(&self, reason: &CloseReason) -> Failure {
        let (CloseReason::There { code, reason }, to) = (reason, self.client.server()) else {
            let seconds = self.patience.as_secs_f64();
            let text = format!(
                "{} stopped answering: nothing came for {seconds} s; send again: what is there is kept",
                self.client.server()
            );
            return Failure::peer(reason.kind(), text);
        };
        let words = show_words(reason);
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let text = match *code {
            NOT_ADMITTED => format!("{to} takes no files{said}"),
            OVER_QUOTA => format!("{to} does not take that much{said}"),
            CloseCode::SHUTTING_DOWN | INTERRUPTED => format!(
                "{to} was stopped before all was there{said}; what has arrived is kept, and the same \
                 command goes on from there"
            ),
            code => match files::meaning(code) {
                Some(meaning) => format!("{to} has ended it: {meaning}{said}"),
                None => format!("{to} closed the connection: {code}{said}"),
            },
        };
        Failure::closed(*code, text)
    }

    /// Lets the other end know how it ended: it is sent three times, and needs no answer.
    fn say_goodbye(&mut self) {
        let started = Instant::now();
        while !self.client.is_closed() && started.elapsed() < LAST_WORDS {
            if self.client.wait(files::TURN).is_err() {
                return;
            }
        }
    }

    fn conclude(self, (connect, total): (Duration, Duration)) -> Result<(), Failure> {
        let wire = self.client.wire_bytes();
        let rtt = in_millis(self.client.stats().and_then(|stats| stats.rtt).unwrap_or_default());
        let offer = self.giving.offer();
        let only = (offer.len() == 1).then(|| self.giving.root_of(0)).flatten();
        let offered = offer.entries().iter().filter_map(Entry::size).sum();
        let bytes = only.map_or(offered, |(length, _)| length);
        let mut fields = json!({
            "ok": true,
            "files": self.stored,
            "bytes": bytes,
            "connect_ms": in_millis(connect),
            "total_ms": in_millis(total),
            "rtt_ms": rtt,
            "wire_bytes_in": wire.received,
            "wire_bytes_out": wire.sent,
        });
        let mut digest = String::new();
        if let Some((_, root)) = only {
            let hex = Digest::from_bytes(root).to_hex();
            fields["blake3"] = json!(hex.as_str());
            digest = format!("\nblake3 {hex}");
        }
        let what = match offer.entries() {
            [entry] => entry.path.to_string(),
            _ => count(offer.files().into()),
        };
        let text = format!(
            "sent {what} ({}) in {:.3} s: verified and stored there{}{digest}",
            show_bytes(bytes),
            total.as_secs_f64(),
            below(&show_wire(wire, rtt)),
        );
        self.report.done(fields, &text);
        Ok(())
    }
}
