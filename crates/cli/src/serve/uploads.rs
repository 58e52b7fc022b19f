//! The files that clients send: which clients may send, which files have come, and what is reported of them.
//!
//! Files are locked while they are written, so of two clients that send the same name the second is refused
//! that file. But a sender that vanished and came back may go on with its own files: its new connection waits
//! until the old one that sends the same files is silent, and takes its place. Whether two connections send
//! the same is found once for each pair, on the pool: their lists may be long.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use haulier::{CloseCode, ConnectionId};
use haulier_files::pool::PoolHandle;
use haulier_files::reason::{DONE, INTERRUPTED, NOT_ADMITTED, NOT_STORED};
use haulier_files::session::{ServerLink, Upload};
use haulier_files::taker::TakerEvent;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::{count, in_millis, show_bytes, show_words};
use serde_json::json;

use super::client::{Answer, Client, Sender};
use super::clients::Clients;
use super::show;
use crate::fetch::outcome::{has_pipe, pace, share, show_shares};
use crate::files;
use crate::silence;
use crate::target::{Target, show_path};

/// A connection from which nothing came for this long is taken for gone if its sender is here again with the
/// same files.
const SILENCE: Duration = Duration::from_secs(6);

/// The maximum wait of a new connection for an older one of its sender that has not been silent.
const MAX_WAIT: Duration = Duration::from_secs(9);

/// What has come in all, and what of the last sender is needed at the end.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Senders that are done.
    senders: u64,
    last: Option<Last>,
    /// The time since which no client sends.
    lonely_since: Option<Instant>,
}

/// A sender that is done.
#[derive(Debug)]
struct Last {
    upload: Box<Upload<Sender>>,
    here: u32,
    failure: Option<Failure>,
    elapsed: Duration,
}

/// Which two connections send a file of the same name, as far as it was looked at.
#[derive(Debug, Default)]
pub(super) struct Overlaps(HashMap<(ConnectionId, ConnectionId), Arc<OnceLock<bool>>>);

impl Overlaps {
    /// Whether these do; `None` while it is looked at.
    fn find(
        &mut self,
        pool: &PoolHandle,
        (a, first): (ConnectionId, &Upload<Sender>),
        (b, second): (ConnectionId, &Upload<Sender>),
    ) -> Option<bool> {
        let pair = (a.min(b), a.max(b));
        if let Some(found) = self.0.get(&pair) {
            // A look that panicked is over and has found nothing.
            let is_over = Arc::strong_count(found) == 1;
            return found.get().copied().or(is_over.then_some(false));
        }
        let found = Arc::new(OnceLock::new());
        self.0.insert(pair, Arc::clone(&found));
        let lists = [first, second].map(|it| it.taking().shared_offer());
        let wake = pool.clone();
        pool.run(move || {
            let [first, second] = &lists;
            let _first = found.set(first.shares_path(second));
            wake.wake();
        });
        None
    }

    /// One of them is gone.
    fn forget(&mut self, id: ConnectionId) {
        self.0.retain(|(a, b), _| *a != id && *b != id);
    }
}

/// Whether a client may send now.
enum Verdict {
    Yes,
    /// Another one sends the same.
    Wait,
    /// That one is gone.
    Replace(ConnectionId),
    No(CloseCode, &'static str),
}

impl Clients<'_> {
    /// The time for which no client has sent files.
    pub(super) fn lonely_for(&mut self) -> Duration {
        if self.here.values().filter_map(Client::upload).any(Upload::is_admitted) {
            self.received.lonely_since = None;
            return Duration::ZERO;
        }
        self.received.lonely_since.get_or_insert_with(Instant::now).elapsed()
    }

    /// Lets the waiting clients send that no longer have to wait.
    pub(super) fn admit_uploads(&mut self) {
        for (id, client) in &mut self.here {
            if client.upload().is_some() {
                let stats = self.server.connection_stats(*id);
                let heard = stats.map_or(0, |stats| stats.datagrams_received);
                if heard != client.heard.0 {
                    client.heard = (heard, Instant::now());
                }
            }
        }
        let waits = |client: &Client| client.upload().is_some_and(Upload::wants_admission);
        let waiting: Vec<ConnectionId> =
            self.here.iter().filter(|(_, it)| waits(it)).map(|(id, _)| *id).collect();
        for id in waiting {
            let verdict = self.judge(id);
            let (Some(inbox), Some(client)) = (&self.host.inbox, self.here.get_mut(&id)) else {
                return;
            };
            let Answer::Inbox(upload) = &mut client.answer else { continue };
            client.waits_since.get_or_insert_with(Instant::now);
            match verdict {
                Verdict::Yes => upload.admit(inbox),
                Verdict::Wait => {}
                Verdict::Replace(other) => {
                    self.server.close(other, INTERRUPTED, "its files are sent again");
                }
                Verdict::No(code, why) => {
                    upload.close(&ServerLink(self.server, id), code, why);
                    let text = format!("client {} may not send: {why}", client.number);
                    self.report.warning(&text);
                }
            }
        }
    }

    fn judge(&mut self, id: ConnectionId) -> Verdict {
        let (here, overlaps) = (&self.here, &mut self.overlaps);
        let Some((client, upload)) = here.get(&id).and_then(|it| Some((it, it.upload()?))) else {
            return Verdict::Wait;
        };
        let is_one_at_a_time = self.host.target.is_some() && self.host.is_once;
        if self.host.target.is_some_and(Target::is_one_file) && upload.taking().offer().len() > 1 {
            return Verdict::No(NOT_STORED, "there is room for one file: -o names no directory");
        }
        if is_one_at_a_time && self.received.is_any_done() {
            return Verdict::No(NOT_ADMITTED, "it has what it waited for");
        }
        let others = here.iter().filter(|(other, _)| **other != id);
        let others = others.filter_map(|(other, it)| Some((*other, it, it.upload()?)));
        for (other, it, their) in others.filter(|(.., their)| their.is_admitted()) {
            let is_same_sender = their.client() == upload.client();
            if !is_same_sender && is_one_at_a_time {
                return Verdict::No(
                    NOT_ADMITTED,
                    "it takes from one sender, and another one is sending",
                );
            }
            if !is_same_sender {
                continue;
            }
            let is_same = is_one_at_a_time
                || match overlaps.find(self.pool, (id, upload), (other, their)) {
                    Some(is_same) => is_same,
                    None => return Verdict::Wait,
                };
            if is_same {
                let waited = client.waits_since.map_or(Duration::ZERO, |since| since.elapsed());
                return match it.heard.1.elapsed() > SILENCE {
                    true => Verdict::Replace(other),
                    false if waited < MAX_WAIT => Verdict::Wait,
                    false if is_one_at_a_time => Verdict::No(
                        NOT_ADMITTED,
                        "it takes from one sender, and another one is sending",
                    ),
                    false => Verdict::Yes,
                };
            }
        }
        Verdict::Yes
    }

    /// What became of the files that a client sends.
    pub(super) fn report_received(&mut self, id: ConnectionId) {
        let Some(client) = self.here.get_mut(&id) else { return };
        let Answer::Inbox(upload) = &mut client.answer else { return };
        let (number, elapsed) = (client.number, client.since.elapsed());
        while let Some(event) = upload.poll_event() {
            let taking = upload.taking();
            match event {
                TakerEvent::Offered => {
                    let bytes: u64 =
                        taking.offer().entries().iter().filter_map(|it| it.size()).sum();
                    let fields = json!({
                        "client": number, "files": taking.offer().files(), "bytes": bytes,
                    });
                    let what = show_words(&show(taking.offer()));
                    self.report.event("offered", fields, &format!("client {number} sends {what}"));
                }
                TakerEvent::Here { .. } => client.here += 1,
                TakerEvent::Stored { file } => {
                    let Some(entry) = taking.offer().entry(file) else { continue };
                    let (bytes, root) = taking.root_of(file).unwrap_or_default();
                    let (bytes, name) = (entry.size().unwrap_or(bytes), entry.path.as_str());
                    client.files += 1;
                    client.directories += u64::from(entry.is_directory());
                    client.bytes += bytes;
                    self.received.files += u64::from(!entry.is_directory());
                    self.received.bytes += bytes;
                    let text = format!(
                        "client {number}: {} is here ({}) after {:.3} s",
                        show_words(name),
                        show_bytes(bytes),
                        elapsed.as_secs_f64()
                    );
                    let path = taking.path_of(file).unwrap_or_default();
                    let fields = json!({
                        "client": number,
                        "name": name,
                        "file": show_path(&path),
                        "bytes": bytes,
                        "blake3": blake3::Hash::from_bytes(root).to_hex().as_str(),
                        "ms": in_millis(elapsed),
                    });
                    self.report.each("received", fields, &text);
                }
                TakerEvent::Again { .. } => {
                    self.report.warning("what was put together is wrong, and comes whole");
                }
                TakerEvent::Failed { file, fault } => {
                    let name = taking.offer().entry(file).map(|it| it.path.to_string());
                    let words =
                        taking.words_of(file).map_or_else(|| fault.to_string(), str::to_owned);
                    let name = show_words(&name.unwrap_or_default());
                    let text =
                        format!("client {number}: {name} is not here: {}", show_words(&words));
                    self.report.warning(&text);
                    client.failed += 1;
                    client.first_failure.get_or_insert((file, fault));
                }
                TakerEvent::Done { .. } => client.is_done = true,
                TakerEvent::Ended { reason, .. } => {
                    let text = format!("client {number} may not send: {}", show_words(&reason));
                    self.report.warning(&text);
                }
                _ => {}
            }
        }
    }

    /// The connection has ended: its unfinished files are counted, and it may have been the last connection.
    pub(super) fn end_upload(&mut self, id: ConnectionId, mut client: Client) {
        self.overlaps.forget(id);
        let no_files = Answer::No(DONE, String::new());
        let Answer::Inbox(upload) = mem::replace(&mut client.answer, no_files) else { return };
        if !client.is_done {
            return self.settling.push((id, *upload));
        }
        self.received.senders += 1;
        if self.host.target.is_none() || !self.host.is_once {
            return self.settling.push((id, *upload));
        }
        let failure = client.first_failure.as_ref();
        let failure = failure
            .map(|(file, fault)| files::not_here(upload.taking(), client.failed, *file, fault));
        let (here, elapsed) = (client.here, client.since.elapsed());
        self.received.last = Some(Last { upload, here, failure, elapsed });
    }

    pub(super) fn settle_uploads(&mut self) {
        let Some(inbox) = &mut self.host.inbox else { return };
        for (id, upload) in &mut self.settling {
            upload.turn(inbox, &ServerLink(self.server, *id));
        }
        self.settling.retain(|(_, upload)| !upload.is_over());
    }

    /// Of one sender at a time.
    pub(super) fn show_progress(&mut self) {
        if self.host.target.is_none() || !self.host.is_once {
            return;
        }
        for (id, client) in &mut self.here {
            if let Answer::Inbox(upload) = &mut client.answer
                && upload.is_admitted()
            {
                let (server, silence) = (self.server, &mut client.silence);
                silence.look(|| server.with_connection(*id, silence::state));
                let progress = upload.progress();
                let has_pipe = has_pipe(upload.taking().offer());
                let fields = || {
                    let mut fields = json!({ "bytes": progress.verified_bytes });
                    silence.add_to(&mut fields);
                    fields
                };
                let share = share(&progress, has_pipe);
                self.report.transfer(share, fields, || pace(&progress, has_pipe, silence));
            }
        }
    }
}

impl Received {
    /// Whether a sender has had all of its files taken.
    pub(super) const fn is_any_done(&self) -> bool {
        self.senders > 0
    }

    /// The last line of `recv`.
    pub(super) fn conclude(
        self,
        target: &Target,
        is_once: bool,
        report: &Report,
    ) -> Result<(), Failure> {
        let Some(Last { mut upload, here, failure, elapsed }) = self.last else {
            if is_once {
                return Err(Failure::Interrupted);
            }
            let fields = json!({
                "ok": true, "files": self.files, "bytes": self.bytes, "senders": self.senders,
            });
            let (files, bytes) = (count(self.files), show_bytes(self.bytes));
            report.done(fields, &format!("{files} received ({bytes}); senders: {}", self.senders));
            return Ok(());
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        target.commit(report)?;
        let progress = upload.progress();
        let mut fields = json!({
            "ok": true,
            "total_ms": in_millis(elapsed),
            "bytes": progress.wanted_bytes,
            "here_bytes": progress.here_bytes,
            "resumed_bytes": progress.resumed_bytes,
            "copied_bytes": progress.copied_bytes,
        });
        let (what, digest) = target.describe(upload.taking(), here, &mut fields);
        let shares = show_shares(&progress);
        let shares = if shares.is_empty() { shares } else { format!("\n{shares}") };
        let bytes = show_bytes(progress.wanted_bytes);
        let seconds = elapsed.as_secs_f64();
        let text =
            format!("received {bytes} in {seconds:.3} s and verified: {what}{shares}{digest}");
        report.done(fields, &text);
        Ok(())
    }
}
