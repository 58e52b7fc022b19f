//! `haulier serve`: files and directories for all clients with the ticket, and an inbox for what they send,
//! until interrupted. `haulier recv` is the same with an inbox alone.
//!
//! The answer to a request is queued the moment the request is verified, so that it begins to arrive in the
//! first round trip. A client is logged after its address is validated, so that spoofed addresses
//! do not fill the log.

mod addresses;
mod client;
mod clients;
mod host;
mod resets;
mod uploads;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haulier::Ticket;
use haulier_files::InboxQuota;
use haulier_files::offer::{Content, Entry, Offer};
use haulier_files::packing::Packing;
use haulier_files::session::{Inbox, Library, Place};
use haulier_files::writer::{Replace, check_folder};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::look::{self, Look, LookArgs};
use haulier_shell::report::Report;
use haulier_shell::units::{count, show_bytes};
use serde_json::{Value, json};

pub(crate) use self::client::Sender;
use self::clients::Clients;
use self::host::Started;
pub(crate) use self::host::{SendTicket, Traffic};
use crate::args::{ListenArgs, ServeArgs};
use crate::files;
use crate::keys;
use crate::lan::{Announced, LetsIn, Record};
use crate::library;
use crate::qr;
use crate::target::{Target, no_folder, show_path};

/// The first client may have the disk for itself this long: one that waits for the ticket is there by then,
/// and what it is sent is hashed with that.
const HASH_DELAY: Duration = Duration::from_secs(2);

/// What a server does for its clients, and until when.
pub(crate) struct Host<'a> {
    pub(crate) listen: &'a ListenArgs,
    pub(crate) look: &'a LookArgs,
    pub(crate) traffic: Traffic,
    /// Of one that gives files and takes some.
    pub(crate) sending: Option<SendTicket<'a>>,
    pub(crate) library: Option<Arc<Library>>,
    pub(crate) inbox: Option<Inbox<Sender>>,
    pub(crate) packing: Packing,
    /// Whether it ends after the first client that got what it wanted.
    pub(crate) is_once: bool,
    /// Of `recv`: where files go.
    pub(crate) target: Option<&'a Target>,
    /// Of `recv`: the maximum time without a sender.
    pub(crate) timeout: Option<Duration>,
}

pub(crate) fn run(args: &ServeArgs, report: &Report) -> Result<(), Failure> {
    if args.name.is_some() && args.files.len() != 1 {
        return Err(Failure::Usage("--name is for one file: there are several".into()));
    }
    let library = match args.files.is_empty() {
        true => None,
        false => {
            Some(Arc::new(library::load(&args.files, args.name.as_deref(), args.checksum, report)?))
        }
    };
    let replace = if args.force { Replace::File } else { Replace::Never };
    let most = args.most.unwrap_or(u64::MAX);
    let quota = InboxQuota::new(most, args.most_each.unwrap_or(most));
    let inbox = args.inbox.as_deref().map(|folder| {
        check_inbox(folder)?;
        let inbox = Inbox::new(Place::Folder(folder.to_owned()), replace, quota);
        Ok::<_, Failure>(if args.no_attributes { inbox.without_attributes() } else { inbox })
    });
    let host = Host {
        listen: &args.listen,
        look: &args.look,
        traffic: Traffic {
            max_rate_bps: args.rate.unwrap_or(u64::MAX),
            uplink: args.uplink,
            urgency: args.urgency.into(),
            has_inbox: inbox.is_some(),
        },
        sending: (inbox.is_some() && library.is_some() && !args.listen.open).then_some(
            SendTicket {
                secret_file: args.send_secret_file.as_deref(),
                out: args.send_ticket_out.as_deref(),
            },
        ),
        library,
        inbox: inbox.transpose()?,
        packing: args.pack.into(),
        is_once: args.once,
        target: None,
        timeout: None,
    };
    host.run(report)
}

fn check_inbox(folder: &Path) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(no_folder(folder));
    }
    check_folder(folder, 0).map_err(|error| Failure::Io(error.to_string()))
}

impl Host<'_> {
    /// Until it is interrupted, or done.
    pub(crate) fn run(self, report: &Report) -> Result<(), Failure> {
        look::check(self.look, matches!(self.target, Some(Target::Stream(..))), report)?;
        qr::check(&self.listen.qr, report)?;
        let Started { server, local, ticket, send_ticket, mapping } =
            host::start(self.listen, self.traffic, self.sending, report)?;
        let pool = files::disk_pool(server.waker())?;
        let is_ticket = ticket.is_some();
        self.announce(local, [ticket, send_ticket], report)?;
        let mut announced = match &self.listen.announce.lan {
            Some(name) => {
                let record = self.record(is_ticket)?;
                Some(Announced::start(name.as_deref(), local, record, report)?)
            }
            None => None,
        };
        let look =
            Look::start(self.look, server.clone(), format!("at {local}").as_str().into(), report)?;
        self.library.iter().for_each(hash_later);
        let timeout = self.timeout;
        let mut clients = Clients::new(&server, self, pool.handle(), look.names(), report);
        while !interrupt::requested() && !clients.is_enough() {
            mapping.iter().for_each(|mapping| mapping.say_news(report));
            announced.iter_mut().for_each(|announced| announced.say_news(report));
            if clients.are_full() {
                files::wait_for_disk();
                clients.go_on();
                continue;
            }
            match server.wait(files::TURN)? {
                Some((id, event)) => clients.on_event(id, event),
                None => clients.go_on(),
            }
            if timeout.is_some_and(|timeout| clients.lonely_for() > timeout) {
                let seconds = timeout.unwrap_or_default().as_secs_f64();
                return Err(Failure::late(format!("no sender came within {seconds} s")));
            }
        }
        // A client in the middle of a file gets a close, and waits no longer.
        server.shut_down();
        loop {
            let is_shut_down = server.is_shut_down();
            match server.wait(files::TURN)? {
                Some((id, event)) => clients.on_event(id, event),
                None if is_shut_down => return clients.conclude(),
                None => {}
            }
        }
    }

    /// The announcement of it on the local network.
    fn record(&self, has_ticket: bool) -> Result<Record, Failure> {
        let lets_in = match (self.listen.open, has_ticket, self.listen.token_key.is_empty()) {
            (true, ..) => LetsIn::Everybody,
            (_, true, true) => LetsIn::Tickets,
            (_, true, false) => LetsIn::TicketsAndTokens,
            (_, false, _) => LetsIn::Tokens,
        };
        let files = self.library.as_ref().map_or(0, |library| library.offer().files());
        let record = Record {
            version: Some(Record::VERSION),
            lets_in: Some(lets_in),
            files: Some(files),
            takes_files: self.inbox.is_some(),
            identity: None,
        };
        Ok(match &self.listen.identity_file {
            Some(path) => record.with_identity(&keys::read_public(path, self.listen.key_files)?),
            None => record,
        })
    }

    fn announce(
        &self,
        local: SocketAddr,
        [ticket, send_ticket]: [Option<Ticket>; 2],
        report: &Report,
    ) -> Result<(), Failure> {
        let offer = self.library.as_ref().map(|library| library.offer());
        let root = offer.as_deref().and_then(only).and_then(Entry::root);
        let has_two = send_ticket.is_some();
        let ticket = ticket.map(|ticket| match root {
            // A client that sends has another file, so a ticket for sending has no digest.
            Some(root) if self.inbox.is_none() || has_two => ticket.with_digest(*root),
            _ => ticket,
        });
        let [ticket, send_ticket] =
            [ticket, send_ticket].map(|ticket| ticket.as_ref().map(Ticket::to_text));
        let ticket_out = self.listen.ticket_out.as_deref();
        if ticket_out.is_some() && ticket.is_none() {
            let what = "--ticket-out: there is no ticket, for connect tokens let in; with --secret-file \
                        there is one, too";
            return Err(Failure::Usage(what.into()));
        }
        let send_out = self.sending.and_then(|sending| sending.out);
        if send_out.is_some() && send_ticket.is_none() {
            let what = "--send-ticket-out: there is no ticket, for connect tokens let in; with \
                        --send-secret-file there is one, too";
            return Err(Failure::Usage(what.into()));
        }
        let mut fields = json!({ "addr": local.to_string() });
        announce_ticket(("ticket", "ticket_file"), ticket.as_ref(), ticket_out, &mut fields)?;
        if send_ticket.is_some() {
            let names = ("send_ticket", "send_ticket_file");
            announce_ticket(names, send_ticket.as_ref(), send_out, &mut fields)?;
        }
        let text = self.in_words(local, [ticket.is_some(), has_two], offer.as_deref());
        report.event("listening", fields, &text);
        match &ticket {
            Some(ticket) => qr::show(&self.listen.qr, ticket, report)?,
            None if self.listen.qr.is_wanted() => report.warning(
                "there is no ticket to draw: with --open the address is enough, and connect tokens are made \
                 by `haulier token issue --qr`",
            ),
            None => {}
        }
        if report.is_json() {
            return Ok(());
        }
        // What serving is for: with it others can come.
        let label = |word| if has_two { word } else { "" };
        let lines =
            [(label("fetch "), ticket, ticket_out), (label("send "), send_ticket, send_out)];
        for (label, ticket, out) in lines {
            let Some(ticket) = ticket.filter(|_| out.is_none()) else { continue };
            let line = format!("{label}{ticket}");
            match self.target.is_some_and(Target::is_stdout) {
                true => report.print(&line),
                false => keys::write_private(None, &line)?,
            }
        }
        Ok(())
    }

    /// What it does, and what lets clients in.
    fn in_words(
        &self,
        local: SocketAddr,
        [has_ticket, has_two]: [bool; 2],
        offer: Option<&Offer>,
    ) -> String {
        let with = match (self.listen.open, has_ticket) {
            (true, _) => "as you like, without encryption",
            (_, true) => "with the ticket",
            (_, false) => "with connect tokens",
        };
        let room = |inbox: &Inbox<Sender>| show_bytes(inbox.quota().left_in_all_bytes());
        match (offer, &self.inbox, self.target) {
            (_, _, Some(target)) => {
                format!("waiting at {local} for files to {target}: send {with}")
            }
            (Some(offer), None, _) => format!("serving {} at {local}: fetch {with}", show(offer)),
            (Some(offer), Some(inbox), _) => {
                let (offer, room) = (show(offer), room(inbox));
                let how = match has_two {
                    true => format!("fetch {with}, send with the other one"),
                    false => format!("fetch and send {with}"),
                };
                format!("serving {offer}, and taking up to {room} at {local}: {how}")
            }
            (None, inbox, _) => {
                let room = inbox.as_ref().map_or_else(|| show_bytes(0), room);
                format!("taking up to {room} at {local}: send {with}")
            }
        }
    }
}

/// Puts a ticket into its file, if it has one, or else into the event.
fn announce_ticket(
    (name, file_name): (&str, &str),
    ticket: Option<&String>,
    out: Option<&Path>,
    fields: &mut Value,
) -> Result<(), Failure> {
    fields[name] = json!(ticket);
    if let (Some(ticket), Some(path)) = (ticket, out) {
        keys::replace_private(path, ticket)?;
        (fields[name], fields[file_name]) = (Value::Null, json!(show_path(path)));
    }
    Ok(())
}

/// Large files are hashed beside the serving. The program does not wait for this thread at its end: the tree
/// of a file is kept as soon as all of the file is hashed.
fn hash_later(library: &Arc<Library>) {
    let library = Arc::clone(library);
    thread::spawn(move || {
        thread::sleep(HASH_DELAY);
        library.hash_rest();
    });
}

/// The file, if there is but one.
fn only(offer: &Offer) -> Option<&Entry> {
    match offer.entries() {
        [entry] => Some(entry),
        _ => None,
    }
}

/// What there is, in words.
pub(super) fn show(offer: &Offer) -> String {
    let (mut files, mut bytes, mut is_any_pipe) = (0, 0_u64, false);
    for entry in offer.entries() {
        files += u64::from(!entry.is_directory());
        bytes = bytes.saturating_add(entry.size().unwrap_or(0));
        is_any_pipe |= entry.content == Content::Stream;
    }
    let size = match (bytes, is_any_pipe) {
        _ if files == 0 => "an empty directory".into(),
        (0, true) => "a pipe".into(),
        (_, true) => format!("{} and a pipe", show_bytes(bytes)),
        (_, false) => show_bytes(bytes),
    };
    match only(offer) {
        Some(entry) => format!("{} ({size})", entry.path),
        None => format!("{} ({size})", count(files)),
    }
}
