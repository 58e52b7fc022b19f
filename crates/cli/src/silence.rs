//! How long the other end has not answered: said after seconds, long before the patience of the program is
//! over, so that a path that went dark does not look like a program that hangs.

use std::time::{Duration, Instant};

use haulier::proto::connection::Connection;
use serde_json::{Value, json};

/// The shortest silence that is reported. Pauses of a radio are shorter, and an end that waits for an answer
/// asks again each second.
const REPORTED: Duration = Duration::from_secs(3);

/// How often the connection is asked.
const LOOK: Duration = Duration::from_millis(100);

/// What is known of the other end's silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// The silence that ends the connection.
    patience: Duration,
    /// Datagrams that came, and since when there are no more.
    heard: u64,
    since: Instant,
    /// Whether an answer is due: an end that has nothing to say is silent for longer.
    is_answer_due: bool,
    looked_at: Option<Instant>,
}

impl Silence {
    pub(crate) fn new(patience: Duration) -> Self {
        let since = Instant::now();
        Self { patience, heard: 0, since, is_answer_due: false, looked_at: None }
    }

    /// Asks the connection, if that was long enough ago: [`state`] gives the answer.
    pub(crate) fn look(&mut self, ask: impl FnOnce() -> Option<(u64, bool)>) {
        let now = Instant::now();
        if self.looked_at.is_none_or(|at| now.duration_since(at) >= LOOK) {
            self.looked_at = Some(now);
            if let Some((heard, is_answer_due)) = ask() {
                self.take(now, heard, is_answer_due);
            }
        }
    }

    fn take(&mut self, now: Instant, heard: u64, is_answer_due: bool) {
        if heard != self.heard || !is_answer_due || !self.is_answer_due {
            (self.heard, self.since) = (heard, now);
        }
        self.is_answer_due = is_answer_due;
    }

    /// Its length, if it is long enough to be reported.
    fn length(&self, now: Instant) -> Option<Duration> {
        Some(now.duration_since(self.since)).filter(|it| *it >= REPORTED && self.is_answer_due)
    }

    /// The sentence for a person.
    pub(crate) fn in_words(&self) -> Option<String> {
        self.length(Instant::now()).map(|length| self.words(length))
    }

    fn words(&self, length: Duration) -> String {
        let (seconds, most) = (length.as_secs(), self.patience.as_secs_f64());
        format!("no answer for {seconds} s, giving up at {most} s")
    }

    /// Adds the same to a line of JSON.
    pub(crate) fn add_to(&self, fields: &mut Value) {
        if let Some(length) = self.length(Instant::now()) {
            fields["no_answer_s"] = json!(length.as_secs());
            fields["gives_up_s"] = json!(self.patience.as_secs_f64());
        }
    }
}

/// How many datagrams came on a connection, and whether an answer of the other end is due.
pub(crate) fn state(connection: &Connection) -> (u64, bool) {
    let is_due = connection.receiving().is_some() || !connection.all_acked();
    (connection.stats().datagrams_received, is_due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_said_after_seconds_and_only_where_an_answer_is_due() {
        let mut silence = Silence::new(Duration::from_secs(60));
        let start = silence.since;
        let at = |seconds| start + Duration::from_secs(seconds);
        silence.take(at(1), 5, true);
        assert_eq!(silence.length(at(3)), None);
        silence.take(at(5), 5, true);
        assert_eq!(silence.length(at(13)), Some(Duration::from_secs(12)));
        let words = silence.words(Duration::from_secs(12));
        assert_eq!(words, "no answer for 12 s, giving up at 60 s");
        silence.take(at(13), 6, true);
        assert_eq!(silence.length(at(14)), None, "it was heard");
        // A producer has nothing for the pipe, or a server hashes.
        silence.take(at(20), 6, false);
        assert_eq!(silence.length(at(30)), None);
        silence.take(at(30), 6, true);
        assert_eq!(silence.length(at(32)), None, "asked two seconds ago");
        assert!(silence.length(at(33)).is_some());
    }
}
