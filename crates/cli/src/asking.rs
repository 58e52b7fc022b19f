//! Asking a server for a connection, and saying what is waited for: each address as it is tried, what became
//! of it, and for how long there was no answer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use haulier::{Attempt, Client, ErrorKind, Event};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::json;

use crate::access::Access;
use crate::files::TURN;

/// Silence that a person begins to wonder about.
const WONDER: Duration = Duration::from_millis(500);

/// How long after a closed port the next try is.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns a connected client. It reports the server's address once that is known, and what it waits for.
pub(crate) fn join(access: &Access, report: &Report) -> Result<Client, Failure> {
    Asking::new(access, report).join()
}

/// Joins a server that may start later than this client: a port at which no server listens yet is tried again
/// until `patience` is over.
pub(crate) fn join_patiently(
    access: &Access,
    patience: Duration,
    report: &Report,
) -> Result<Client, Failure> {
    let mut asking = Asking::new(access, report);
    let mut is_said = false;
    loop {
        let failure = match asking.join() {
            Err(failure) if failure.is_unreachable() => failure,
            joined => return joined,
        };
        let waited = asking.started.elapsed();
        if waited > patience {
            return Err(failure);
        }
        let seconds = patience.as_secs_f64();
        if !is_said {
            let text = format!("nobody listens there yet: trying again for up to {seconds} s");
            report.status("waiting", json!({ "message": text, "seconds": seconds }), &text);
            is_said = true;
        }
        asking.is_again = true;
        report.waiting(&format!("nobody listens there yet: {} of {seconds} s", waited.as_secs()));
        thread::sleep(PAUSE);
        interrupt::check()?;
    }
}

struct Asking<'a> {
    access: &'a Access,
    report: &'a Report,
    /// What was said of each address.
    said: HashMap<SocketAddr, Said>,
    started: Instant,
    /// All of this was said before.
    is_again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Tried,
    Failed,
}

impl<'a> Asking<'a> {
    fn new(access: &'a Access, report: &'a Report) -> Self {
        let (said, started) = (HashMap::new(), Instant::now());
        Self { access, report, said, started, is_again: false }
    }

    fn join(&mut self) -> Result<Client, Failure> {
        let asked = Instant::now();
        let connect = self.access.connect.clone();
        let client = Client::connect(connect).map_err(|error| self.access.not_begun(&error))?;
        let mut is_in_line = false;
        loop {
            interrupt::check()?;
            self.say(&client.attempts());
            match client.wait(TURN)? {
                Some(Event::Closed(_)) => {
                    let attempts = client.attempts();
                    self.say(&attempts);
                    return Err(self.access.not_connected(&attempts));
                }
                Some(Event::Queued { place, estimate }) => {
                    is_in_line = true;
                    say_place(place, estimate, self.report);
                }
                Some(_) => {
                    self.report.finish_bar();
                    return Ok(client);
                }
                None => {}
            }
            if asked.elapsed() > WONDER && !is_in_line && !self.is_again {
                self.wonder(asked.elapsed(), &client.attempts());
            }
        }
    }

    /// What became of the addresses since the last time.
    fn say(&mut self, attempts: &[Attempt]) {
        if self.is_again {
            return;
        }
        let seconds = self.access.connect.connection.handshake_timeout.as_secs_f64();
        for Attempt { server, error, .. } in attempts {
            if !self.said.contains_key(server) {
                let text = match self.said.is_empty() {
                    true => format!("asking {server}, for up to {seconds} s"),
                    false => format!("asking {server}, too"),
                };
                let fields = json!({ "addr": server.to_string(), "seconds": seconds });
                self.report.status("asking", fields, &text);
                self.said.insert(*server, Said::Tried);
            }
            let Some(error) = error else { continue };
            if self.said.insert(*server, Said::Failed) == Some(Said::Failed) {
                continue;
            }
            let kind = error.kind();
            let fields = json!({
                "addr": server.to_string(), "kind": kind.name(), "message": error.to_string(),
            });
            // Of the only address, the end says it.
            let is_only = self.access.connect.servers.len() == 1;
            let words = if kind == ErrorKind::Unreachable { "nobody listens there" } else { "" };
            let words = if words.is_empty() { error.to_string() } else { words.to_owned() };
            let text = if is_only { String::new() } else { format!("{server}: {words}") };
            self.report.status("failed", fields, &text);
        }
    }

    /// A server that does not answer is no blank screen.
    fn wonder(&self, asked: Duration, attempts: &[Attempt]) {
        let open = attempts.iter().filter(|attempt| attempt.error.is_none());
        let open: Vec<String> = open.map(|attempt| attempt.server.to_string()).collect();
        let most = self.access.connect.connection.handshake_timeout.as_secs_f64();
        let text =
            format!("no answer from {} yet: {} of {most} s", open.join(" and "), asked.as_secs());
        self.report.waiting(&text);
    }
}

/// Says how long the line is.
fn say_place(place: Option<u32>, estimate: Option<Duration>, report: &Report) {
    let text = match (place, estimate.map(|time| time.as_secs_f64().ceil())) {
        (None, _) => "the server is full, and so is its line: asking again now and then".into(),
        (Some(place), None) => format!("in line: place {place}"),
        (Some(place), Some(seconds)) => format!("in line: place {place}, some {seconds} s"),
    };
    let estimate_s = estimate.map(|time| time.as_secs_f64());
    report.status("queued", json!({ "place": place, "estimate_s": estimate_s }), &text);
}
