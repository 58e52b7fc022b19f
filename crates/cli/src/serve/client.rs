//! One client of a server: what it is answered, and what became of that.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use haulier::{CloseCode, ConnectionId, Server, TokenClaims};
use haulier_files::giver::GiverEvent;
use haulier_files::offer::Entry;
use haulier_files::reason::Fault;
use haulier_files::session::{Giving, Inbox, ServerLink, Upload};
use haulier_shell::report::Report;
use haulier_shell::units::{count, in_millis, show_bytes, show_words};
use serde_json::json;

use super::host::MAX_SILENCE;
use crate::silence::Silence;

/// Whose files they are: what a quota counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// The client id in its token.
    Client([u8; 8]),
    /// Its address. All clients behind one address count as one sender.
    Address(IpAddr),
}

impl Sender {
    pub(super) fn new(token: Option<&TokenClaims>, addr: Option<SocketAddr>) -> Self {
        if let Some(token) = token.filter(|token| token.client_id != [0; 8]) {
            return Self::Client(token.client_id);
        }
        Self::Address(match addr.map(|addr| addr.ip().to_canonical()) {
            // One subscriber has all of it.
            Some(IpAddr::V6(ip)) => {
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)))
            }
            Some(ip) => ip,
            None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        })
    }
}

/// What a client is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Files(Box<Giving>),
    Inbox(Box<Upload<Sender>>),
    /// Reported to the client once its address is validated.
    No(CloseCode, String),
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: u64,
    pub(super) answer: Answer,
    /// All of it at once, and not first the list.
    pub(super) is_get: bool,
    pub(super) addr: Option<SocketAddr>,
    pub(super) since: Instant,
    /// Files that it has, or has sent, and their bytes.
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Of these files, empty directories: people do not count them.
    pub(super) directories: u64,
    /// Of those that it sent: how many were here, and could not be had, the first with why.
    pub(super) here: u32,
    pub(super) failed: u32,
    pub(super) first_failure: Option<(u32, Fault)>,
    /// Whether all that it sent is here, or known not to come.
    pub(super) is_done: bool,
    /// Datagrams that came from it, and since when there are no more.
    pub(super) heard: (u64, Instant),
    /// The silence of a client that owes an answer, for people.
    pub(super) silence: Silence,
    /// Since when it waits for another one that sends the same.
    pub(super) waits_since: Option<Instant>,
}

impl Client {
    pub(super) fn new(number: u64, answer: Answer, is_get: bool) -> Self {
        let since = Instant::now();
        Self {
            number,
            answer,
            is_get,
            addr: None,
            since,
            files: 0,
            bytes: 0,
            directories: 0,
            here: 0,
            failed: 0,
            first_failure: None,
            is_done: false,
            heard: (0, since),
            silence: Silence::new(MAX_SILENCE),
            waits_since: None,
        }
    }

    pub(super) const fn upload(&self) -> Option<&Upload<Sender>> {
        match &self.answer {
            Answer::Inbox(upload) => Some(upload),
            _ => None,
        }
    }

    pub(super) fn go_on(
        &mut self,
        server: &Server,
        id: ConnectionId,
        inbox: Option<&mut Inbox<Sender>>,
    ) {
        let link = ServerLink(server, id);
        match (&mut self.answer, inbox) {
            (Answer::Files(giving), _) => giving.turn(&link),
            (Answer::Inbox(upload), Some(inbox)) => upload.turn(inbox, &link),
            _ => {}
        }
    }

    /// What became of the files that it asked for, as far as it said so.
    pub(super) fn report_given(&mut self, report: &Report) {
        let Answer::Files(giving) = &mut self.answer else { return };
        let (number, elapsed) = (self.number, self.since.elapsed());
        while let Some(event) = giving.poll_event() {
            match event {
                GiverEvent::Stored { file } => {
                    let Some(entry) = giving.offer().entry(file) else { continue };
                    // Of a pipe it is known at its end.
                    let size = entry.size().or_else(|| Some(giving.root_of(file)?.0));
                    self.files += 1;
                    self.directories += u64::from(entry.is_directory());
                    self.bytes += size.unwrap_or(0);
                    report_sent(report, number, (entry, size.unwrap_or(0)), elapsed);
                }
                GiverEvent::Failed { file, fault } => {
                    let name = giving.offer().entry(file).map(|entry| entry.path.to_string());
                    report.warning(&format!(
                        "client {number} does not get {}: {}",
                        name.unwrap_or_default(),
                        show_words(&fault.to_string())
                    ));
                }
                _ => {}
            }
        }
    }
}

impl Client {
    /// How it ended, in words: what it has, or has sent; or why it has not.
    pub(super) fn in_words(&self, is_over: bool, words: &str) -> String {
        let (offer, verb) = match &self.answer {
            Answer::Files(giving) => (giving.offer(), "has"),
            Answer::Inbox(upload) => (upload.taking().offer(), "has sent"),
            Answer::No(..) => return format!(": {words}"),
        };
        // Those that it had before are among them.
        let is_any = self.files > 0 || self.here > 0;
        let files = self.files + u64::from(self.here) - self.directories;
        let what = match offer.entries() {
            [entry] if is_any => show_words(entry.path.as_str()),
            _ => count(files),
        };
        let here =
            if self.here > 0 { format!(", {} of them here before", self.here) } else { "".into() };
        let bytes = show_bytes(self.bytes);
        match (is_over, is_any) {
            (true, false) => format!(": {words}"),
            (true, _) if self.failed > 0 => {
                format!(" {verb} {what} ({bytes}{here}), and {} not", count(self.failed.into()))
            }
            (true, _) => {
                let seconds = self.since.elapsed().as_secs_f64();
                format!(" {verb} {what} ({bytes}{here}) after {seconds:.3} s")
            }
            (false, false) => format!(": {words}"),
            (false, _) => format!(" {verb} {what} ({bytes}{here}), and no more: {words}"),
        }
    }
}

/// Of a directory these are many: as text it is one line a client, at the end.
pub(super) fn report_sent(
    report: &Report,
    number: u64,
    (entry, bytes): (&Entry, u64),
    elapsed: Duration,
) {
    let name = entry.path.as_str();
    let text = format!(
        "client {number} has {} ({}) after {:.3} s",
        show_words(name),
        show_bytes(bytes),
        elapsed.as_secs_f64()
    );
    let fields = json!({
        "client": number, "name": name, "bytes": bytes, "ms": in_millis(elapsed),
    });
    report.each("sent", fields, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_one_sender() {
        let at = |text: &str| Sender::new(None, Some(text.parse().unwrap()));
        assert_eq!(at("192.0.2.1:1"), at("192.0.2.1:2"));
        assert_eq!(at("192.0.2.1:1"), at("[::ffff:192.0.2.1]:1"));
        assert_ne!(at("192.0.2.1:1"), at("192.0.2.2:1"));
        assert_eq!(at("[2001:db8:1:2:3::4]:1"), at("[2001:db8:1:2:ffff::1]:9"));
        assert_ne!(at("[2001:db8:1:2::]:1"), at("[2001:db8:1:3::]:1"));
    }
}
