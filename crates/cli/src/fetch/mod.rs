//! `haulier fetch`: files from a `haulier serve`, verified as they come; bytes that are here are not fetched.

use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::look::{self, Look};
use haulier_shell::report::Report;
use haulier_shell::units::in_millis;

pub(crate) mod outcome;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use haulier::{Client, CloseCode, CloseReason, ConnectionConfig, Delivery, ErrorKind, Event};
use haulier_files::Only;
use haulier_files::offer::Content;
use haulier_files::pool::PoolHandle;
use haulier_files::reason::{self, Fault, INTERRUPTED, NOT_STORED, Reason};
use haulier_files::session::{ClientLink, Place, Taking};
use haulier_files::taker::{Ask, TakerConfig, TakerEvent};
use haulier_files::writer::Replace;
use serde_json::json;
use zeroize::Zeroizing;

use self::outcome::Kept;
use crate::access::{self, Access};
use crate::args::{FetchArgs, PackArg};
use crate::asking;
use crate::details;
use crate::files::{self, MAX_BLOCK_BYTES, MAX_NAME_BYTES};
use crate::keys;
use crate::lan;
use crate::silence::{self, Silence};
use crate::target::Target;
use crate::trace::Traces;

/// How long saying so may take: three times a second apart, and some of it for a busy machine. The file is
/// here already.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often it looks whether all that it said was acknowledged, of which there is no event.
const FAREWELL_TURN: Duration = Duration::from_millis(1);

pub(crate) fn run(args: &FetchArgs, report: &Report) -> Result<(), Failure> {
    if args.connect.lan.lan == Some(None) {
        return lan::list(args, report);
    }
    look::check(&args.look, args.output.as_os_str() == "-", report)?;
    // What cannot be stored is reported before a request is sent.
    let target = if args.list { None } else { Some(Target::find(&args.output)?) };
    let (mut access, name) = find(args, report)?;
    if args.list && name.is_some() {
        return Err(Failure::Usage("--list lists all files: leave out the NAME".into()));
    }
    if name.as_ref().is_some_and(|name| !(1..=MAX_NAME_BYTES).contains(&name.len())) {
        return Err(Failure::Usage(format!("a file's name has 1 to {MAX_NAME_BYTES} bytes")));
    }
    // As --list shows a directory.
    let name = name.unwrap_or_default().trim_end_matches('/').to_owned();
    access.connect.copies = args.connect.copies;
    access.connect.max_time_in_line = args.connect.max_wait;
    access.connect.connection = ConnectionConfig::default()
        .with_handshake_timeout(args.connect.answer())
        .with_idle_timeout(args.connect.patience())
        .with_delivery(Delivery::Chunks)
        .with_max_block_bytes(MAX_BLOCK_BYTES);
    Traces::of_client(&args.connect.trace, &mut access.connect, report)?;
    attempts(args, &mut access, target.as_ref(), &name, report)
}

/// Fetches all of it: once more if a file changed while it was served, and as often as a server that was
/// started again sends more of it.
fn attempts(
    args: &FetchArgs,
    access: &mut Access,
    target: Option<&Target>,
    name: &str,
    report: &Report,
) -> Result<(), Failure> {
    let mut last_data_at = Instant::now();
    let (mut is_again, mut has_changed, mut first) = (false, false, None);
    loop {
        let Err(Failed { failure, cause }) = attempt(args, access, target, name, is_again, report)
        else {
            return Ok(());
        };
        match cause {
            Cause::Restarted { has_data } => {
                if has_data {
                    last_data_at = Instant::now();
                }
                if last_data_at.elapsed() > args.connect.patience() {
                    return Err(failure);
                }
                is_again = true;
                first.get_or_insert(failure);
                let text = "the server was started again: joining anew, with what is here";
                report.status("again", json!({ "message": text }), text);
            }
            Cause::Changed if !has_changed => {
                let text =
                    "a file changed while it was served: it is fetched once more, as it is now";
                report.warning(text);
                has_changed = true;
                first.get_or_insert(failure);
            }
            Cause::Changed | Cause::Other => {
                let was_stopped = matches!(failure, Failure::Paused | Failure::Interrupted);
                // The first failure says more than that of a token that is used a second time.
                return Err(first.filter(|_| !was_stopped).unwrap_or(failure));
            }
        }
    }
}

/// How an attempt failed.
struct Failed {
    failure: Failure,
    cause: Cause,
}

/// Whether another attempt may end otherwise.
enum Cause {
    /// The server does not have the connection any more. `has_data` if this attempt received any.
    Restarted {
        has_data: bool,
    },
    /// A file changed while the server sent it, which then hashes it again.
    Changed,
    Other,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self { failure, cause: Cause::Other }
    }
}

/// Joins, and fetches what is not here. `is_again` if a connection before this one was lost.
fn attempt(
    args: &FetchArgs,
    access: &mut Access,
    target: Option<&Target>,
    name: &str,
    is_again: bool,
    report: &Report,
) -> Result<(), Failed> {
    let config = config(args, access, target, name, is_again)?;
    access.connect.request = config.request().map_or_else(Vec::new, |request| request.to_bytes());
    let started = Instant::now();
    details::request(access, report);
    report.detail(match config.ask {
        Ask::Get => "asks for the files outright: nothing of them is here",
        _ => "asks for the list first: some may be here, or are not wanted",
    });
    let client = match is_again {
        true => asking::join_patiently(access, args.connect.patience(), report)?,
        false => asking::join(access, report)?,
    };
    let connect = started.elapsed();
    let pool = files::disk_pool(client.waker())?;
    let (addr, connect_ms) = (client.server().to_string(), in_millis(connect));
    let fields = json!({ "addr": addr, "connect_ms": connect_ms });
    report.status("connected", fields, &format!("connected with {addr} in {connect_ms:.0} ms"));
    details::connected(&client, report);
    let _look =
        Look::start(&args.look, client.clone(), format!("from {addr}").as_str().into(), report)?;
    let is_stream = matches!(target, Some(Target::Stream(..)));
    let replace = if args.force || is_stream { Replace::File } else { Replace::Never };
    let mut fetch = Fetch::new(&client, pool.handle(), config, target, replace, args, report);
    let outcome = fetch.until_done();
    let times = (connect, started.elapsed());
    report.finish_bar();
    details::ended(&client, &fetch.taking.progress(), report);
    fetch.say_goodbye(outcome.is_err());
    match outcome {
        Err(failure) => Err(Failed { failure, cause: fetch.cause(access.digest.is_some()) }),
        Ok(()) => Ok(fetch.conclude(times)?),
    }
}

/// What should run at the other end.
const PEER: &str = "`haulier serve`";

/// What lets the client in, and the name of what is wanted.
fn find(args: &FetchArgs, report: &Report) -> Result<(Access, Option<String>), Failure> {
    let Some(Some(server)) = &args.connect.lan.lan else {
        let (source, name) = source(args)?;
        return Ok((access::find(&source, &args.connect, PEER, report)?, name));
    };
    if args.name.is_some() || args.source.as_deref().is_some_and(access::is_source) {
        let what = "with --lan=NAME there can only be the name of a file, and no TICKET";
        return Err(Failure::Usage(what.into()));
    }
    Ok((lan::find(server, &args.connect, PEER, report)?, args.source.clone()))
}

/// The text that says where to go, and the name of what is wanted.
fn source(args: &FetchArgs) -> Result<(Zeroizing<String>, Option<String>), Failure> {
    let (first, second) = (args.source.clone(), args.name.clone());
    if args.connect.ticket_file.is_some() && second.is_some() {
        let what = "with --ticket-file there can only be a NAME, and no TICKET";
        return Err(Failure::Usage(what.into()));
    }
    let is_name = |first: &String| {
        args.connect.ticket_file.is_some()
            || first != "-" && second.is_none() && !access::is_source(first)
    };
    match first {
        Some(first) if is_name(&first) => match access::elsewhere(&args.connect)? {
            Some(ticket) => Ok((ticket, Some(first))),
            None => Ok((first.into(), None)),
        },
        Some(first) if first == "-" => {
            let text = access::not_empty(keys::read_stdin()?, "standard input is empty")?;
            // As a `serve` with an inbox prints it.
            Ok((text.strip_prefix("fetch ").unwrap_or(&text).to_owned().into(), second))
        }
        Some(first) => Ok((first.into(), second)),
        None => match access::elsewhere(&args.connect)? {
            Some(ticket) => Ok((ticket, None)),
            None => Err(access::no_ticket(PEER)),
        },
    }
}

fn config(
    args: &FetchArgs,
    access: &Access,
    target: Option<&Target>,
    name: &str,
    is_again: bool,
) -> Result<TakerConfig, Failure> {
    let only = Only::new(args.only.iter().map(String::as_str));
    let only = only.map_err(|error| Failure::Usage(format!("--only: {error}")))?;
    // What may be here, or is not wanted, is not sent unasked.
    let is_get = target.is_some_and(|target| target.may_come_unasked(name, args.force))
        && only.is_everything()
        && !is_again;
    let ask = if is_get { Ask::Get } else { Ask::Open };
    let mut config = TakerConfig::new(ask).with_name(name).with_only(only);
    if args.pack != PackArg::Never {
        config = config.with_packed();
    }
    Ok(match access.digest {
        Some(digest) if target.is_some() => config.with_expected_root(digest),
        _ => config,
    })
}

struct Fetch<'a> {
    client: &'a Client,
    taking: Taking,
    /// None if only the list is wanted.
    target: Option<&'a Target>,
    name: String,
    patience: Duration,
    report: &'a Report,
    /// Files that were here, and that could not be had, the first with why.
    here: u32,
    failed: u32,
    first_failure: Option<(u32, Fault)>,
    has_pipe: bool,
    /// A file changed while the server sent it.
    has_changed: bool,
    /// The server does not have the connection any more.
    is_forgotten: bool,
    silence: Silence,
    started: Instant,
}

impl<'a> Fetch<'a> {
    fn new(
        client: &'a Client,
        pool: &PoolHandle,
        config: TakerConfig,
        target: Option<&'a Target>,
        replace: Replace,
        args: &FetchArgs,
        report: &'a Report,
    ) -> Self {
        let name = config.name.clone();
        let nowhere = || Place::Folder(PathBuf::new());
        let place = target.map_or_else(nowhere, Target::place);
        let taking = Taking::new(pool, config, place, replace);
        let taking = if args.no_attributes { taking.without_attributes() } else { taking };
        let (patience, here, failed, first_failure, has_pipe) =
            (args.connect.patience(), 0, 0, None, false);
        Self {
            client,
            taking,
            target,
            name,
            patience,
            report,
            here,
            failed,
            first_failure,
            has_pipe,
            has_changed: false,
            is_forgotten: false,
            silence: Silence::new(patience),
            started: Instant::now(),
        }
    }

    /// Takes what comes, until all of it is here.
    fn until_done(&mut self) -> Result<(), Failure> {
        let link = ClientLink(self.client);
        let mut last_progress = Instant::now();
        let mut quiet_since = last_progress;
        loop {
            if interrupt::requested() {
                self.taking.close(&link, INTERRUPTED, "");
                let keeps = self.kept() == Kept::Here;
                return Err(if keeps { Failure::Paused } else { Failure::Interrupted });
            }
            if self.taking.is_full() {
                files::wait_for_disk();
                self.taking.turn(&link);
                last_progress = Instant::now();
            } else {
                match self.client.wait(files::TURN)? {
                    Some(Event::Closed(reason)) => return Err(self.on_closed(&reason)),
                    Some(event) => {
                        quiet_since = Instant::now();
                        if matches!(event, Event::BlockProgress { .. } | Event::Chunk { .. }) {
                            last_progress = Instant::now();
                        }
                        self.taking.handle_event(&link, event);
                    }
                    None => self.taking.turn(&link),
                }
            }
            if self.taking.wants_admission() {
                if self.target.is_none() {
                    return Ok(());
                }
                self.admit()?;
            }
            if self.is_over()? {
                return Ok(());
            }
            // Whoever fills a pipe may take its time, and so may a server that hashes its file because one
            // like it is here. That the server is there, its pings say.
            if self.taking.is_busy() || self.has_pipe || self.taking.awaits_root() {
                last_progress = Instant::now();
            }
            self.show();
            if quiet_since.elapsed() > files::LOOK_FOR_NETWORK {
                quiet_since = Instant::now();
                // Without a network the old socket is kept.
                let _moved = self.client.rebind_if_moved();
            }
            if last_progress.elapsed() > self.patience {
                self.taking.close(&link, CloseCode::NO_PROGRESS, "");
                return Err(self.stopped());
            }
        }
    }

    /// The list is here: whether it fits where it is to go.
    fn admit(&mut self) -> Result<(), Failure> {
        let link = ClientLink(self.client);
        let wanted = self.taking.wanted().count();
        if wanted == 0 {
            self.taking.close(&link, reason::DONE, "");
            let what = "no file there is called what --only says; --list says which there are";
            return Err(Failure::Usage(what.into()));
        }
        let place = self.target.map(|target| target.place_for(&self.taking, wanted)).transpose();
        let place = place.inspect_err(|_| self.taking.close(&link, NOT_STORED, ""))?;
        let entry = |file| self.taking.offer().entry(file);
        self.has_pipe =
            self.taking.wanted().filter_map(entry).any(|entry| entry.content == Content::Stream);
        self.taking.admit(&link, place, MAX_BLOCK_BYTES);
        Ok(())
    }

    /// What became of files; whether that was the last.
    fn is_over(&mut self) -> Result<bool, Failure> {
        while let Some(event) = self.taking.poll_event() {
            match event {
                TakerEvent::Here { .. } => self.here += 1,
                TakerEvent::Failed { file, fault } => {
                    self.failed += 1;
                    self.has_changed |= fault.reason == Reason::Changed;
                    self.first_failure.get_or_insert((file, fault));
                }
                TakerEvent::Again { .. } => {
                    self.report.warning("what was put together is wrong, and is fetched whole");
                }
                TakerEvent::Ended { code, reason } => return Err(outcome::ended(code, &reason)),
                TakerEvent::Done { .. } => {
                    return match self.first_failure.take() {
                        Some((file, fault)) => {
                            Err(files::not_here(&self.taking, self.failed, file, &fault))
                        }
                        None => Ok(true),
                    };
                }
                _ => {}
            }
        }
        Ok(false)
    }

    fn on_closed(&mut self, reason: &CloseReason) -> Failure {
        self.taking.handle_event(&ClientLink(self.client), Event::Closed(reason.clone()));
        self.is_forgotten = *reason == CloseReason::ConnectionUnknown;
        match reason {
            CloseReason::There { code, reason } => {
                outcome::refused(*code, reason, &self.name, self.kept())
            }
            CloseReason::Here(code) => outcome::broken(*code, self.kept()),
            CloseReason::ConnectionUnknown => {
                let what = "the server does not have this connection any more: it was restarted, or it \
                            ended it; fetch again";
                Failure::peer(ErrorKind::Lost, format!("{what}{}", self.kept().as_reason()))
            }
            _ => self.stopped(),
        }
    }

    /// Why it failed, as far as another attempt depends on it. A ticket that has the BLAKE3 is for the file
    /// that was there, and no other. A stream has one try: its reader waits.
    fn cause(&mut self, has_digest: bool) -> Cause {
        let is_stream = matches!(self.target, Some(Target::Stream(..)));
        if self.is_forgotten {
            Cause::Restarted { has_data: self.taking.progress().wire_bytes > 0 }
        } else if self.has_changed && !is_stream && !has_digest {
            Cause::Changed
        } else {
            Cause::Other
        }
    }

    fn stopped(&self) -> Failure {
        Failure::late(format!(
            "{} stopped answering: nothing new for {} s; fetch again{}",
            self.client.server(),
            self.patience.as_secs_f64(),
            self.kept().as_reason(),
        ))
    }

    fn kept(&self) -> Kept {
        match self.target.is_some_and(Target::keeps_unfinished) {
            true => Kept::Here,
            false => Kept::Nothing,
        }
    }

    fn show(&mut self) {
        let (client, silence) = (self.client, &mut self.silence);
        silence.look(|| client.with_connection(silence::state));
        if self.taking.offer().is_empty() || self.target.is_none() {
            if let Some(text) = silence.in_words() {
                let mut fields = json!({});
                silence.add_to(&mut fields);
                self.report.silence(fields, &text);
            }
            return;
        }
        let progress = self.taking.progress();
        let has_pipe = self.has_pipe;
        let fields =
            || outcome::progress_fields(&progress, has_pipe, self.started.elapsed(), silence);
        let share = outcome::share(&progress, has_pipe);
        self.report.transfer(share, fields, || outcome::pace(&progress, has_pipe, silence));
    }

    /// Lets the server know how it ended: it is sent three times, and needs no answer.
    fn say_goodbye(&mut self, is_failed: bool) {
        let link = ClientLink(self.client);
        if self.target.is_none() && !is_failed {
            self.taking.close(&link, reason::DONE, "");
        }
        let started = Instant::now();
        while !self.client.is_closed() && started.elapsed() < LAST_WORDS {
            match self.client.wait(FAREWELL_TURN) {
                Ok(Some(event)) => self.taking.handle_event(&link, event),
                Ok(None) => self.taking.turn(&link),
                Err(_) => return,
            }
        }
    }
}
