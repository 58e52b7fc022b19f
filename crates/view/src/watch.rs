//! One look after the other: what needs two of them, such as a rate, is found here.
//!
//! The invariant: what is remembered is of connections that the last look had, so it is bounded as a look is.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use haulier::ConnectionState;

use crate::names::Names;
use crate::snapshot::{Amounts, ConnectionSnapshot, Histogram, Snapshot};
use crate::subject::{Look, Subject, rate_bps};

/// Makes snapshots of a server or a client, one when asked.
///
/// ```
/// # use haulier::{Server, ServerConfig, ServerCredentials};
/// # let credentials = ServerCredentials::default().with_open_access();
/// # let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
/// let mut watch = haulier_view::Watch::new(server.clone());
/// let snapshot = watch.snapshot();
/// assert_eq!((snapshot.totals.connections, snapshot.sent_bps), (0, 0));
/// println!("{}", snapshot.to_json());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    subject: Subject,
    names: Names,
    started: Instant,
    past: Past,
}

impl Watch {
    /// Watches from now on.
    #[must_use]
    pub fn new(subject: impl Into<Subject>) -> Self {
        Self {
            subject: subject.into(),
            names: Names::new(),
            started: Instant::now(),
            past: Past::new(),
        }
    }

    /// With the names that the application gives to its clients.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// What it looks like now. Rates are those of the last second, 0 in the first call.
    pub fn snapshot(&mut self) -> Snapshot {
        let look = self.subject.look(&self.names);
        self.past.digest(self.started.elapsed(), look)
    }
}

/// The time over which a rate is measured: of a slow sender one look sees a datagram, and the next sees no
/// datagram.
const RATE_SPAN: Duration = Duration::from_secs(1);

/// Looks that are kept for that.
const MAX_MARKS: usize = 8;

/// The numbers of bytes sent and received at some earlier looks, the first of them about a second ago.
#[derive(Clone, Debug, Default)]
struct Marks(VecDeque<(Duration, u64, u64)>);

impl Marks {
    /// Adds this look; the bits per second sent and received since the first mark.
    fn rates_bps(&mut self, at: Duration, sent: u64, received: u64) -> (u64, u64) {
        while self.0.len() >= MAX_MARKS
            || self.0.get(1).is_some_and(|mark| at.saturating_sub(mark.0) >= RATE_SPAN)
        {
            self.0.pop_front();
        }
        let first = self.0.front().copied();
        self.0.push_back((at, sent, received));
        first.map_or((0, 0), |(then, out, home)| {
            let elapsed = at.saturating_sub(then);
            (rate_bps(out, sent, elapsed), rate_bps(home, received, elapsed))
        })
    }
}

/// What earlier looks have shown.
#[derive(Debug)]
pub(crate) struct Past {
    marks: Marks,
    connections: BTreeMap<u64, Known>,
    amounts: Amounts,
    join_seconds: Histogram,
    rtt_seconds: Histogram,
}

/// What is remembered of a connection.
#[derive(Clone, Debug)]
struct Known {
    /// When it began, in the time of the looks: before them if it was there at the first.
    began: Duration,
    /// How old it was when watching began, if it is older than that.
    older: Duration,
    marks: Marks,
    amounts: Amounts,
    has_begun_block: bool,
    has_joined: bool,
    has_rtt: bool,
}

impl Past {
    pub(crate) const fn new() -> Self {
        Self {
            marks: Marks(VecDeque::new()),
            connections: BTreeMap::new(),
            amounts: Amounts {
                datagrams_lost: 0,
                slices_sent: 0,
                slices_resent: 0,
                repair_slices_sent: 0,
            },
            join_seconds: Histogram::new(),
            rtt_seconds: Histogram::new(),
        }
    }

    /// Adds to this look what the earlier looks show.
    pub(crate) fn digest(&mut self, at: Duration, look: Look) -> Snapshot {
        let (sent, received) = (look.totals.bytes_sent, look.totals.bytes_received);
        let (sent_bps, received_bps) = self.marks.rates_bps(at, sent, received);
        self.join_seconds.news.clear();
        self.rtt_seconds.news.clear();
        let mut before = std::mem::take(&mut self.connections);
        let mut connections = look.connections;
        for connection in &mut connections {
            let known = before.remove(&connection.id);
            let known = self.follow(at, known, connection);
            self.connections.insert(connection.id, known);
        }
        Snapshot {
            at,
            end: look.end,
            address: look.address,
            totals: look.totals,
            amounts: self.amounts,
            sent_bps,
            received_bps,
            drops: look.drops,
            join_seconds: self.join_seconds.clone(),
            rtt_seconds: self.rtt_seconds.clone(),
            connections,
            unlisted: look.unlisted,
        }
    }

    fn follow(
        &mut self,
        at: Duration,
        known: Option<Known>,
        connection: &mut ConnectionSnapshot,
    ) -> Known {
        let stats = &connection.stats;
        let (sent, received) = (stats.bytes_sent, stats.bytes_received);
        let age = connection.age;
        let mut now = known.unwrap_or_else(|| Known {
            began: at.saturating_sub(age),
            older: age.saturating_sub(at),
            marks: Marks::default(),
            amounts: Amounts::default(),
            has_begun_block: false,
            has_joined: false,
            has_rtt: false,
        });
        // The machine says how old it was when it last had something to do.
        connection.age = (at.saturating_sub(now.began) + now.older).max(age);
        let amounts = Amounts::of(stats);
        self.amounts.add(&now.amounts, &amounts);
        now.amounts = amounts;
        (connection.sent_bps, connection.received_bps) = now.marks.rates_bps(at, sent, received);
        if let Some(rtt) = stats.rtt.filter(|_| !now.has_rtt) {
            now.has_rtt = true;
            self.rtt_seconds.record(rtt.as_secs_f64());
        }
        let has_block = connection.block().is_some();
        now.has_begun_block |= has_block || stats.slices_sent > 0;
        let is_done = now.has_begun_block && !has_block;
        if is_done && !now.has_joined && connection.state == ConnectionState::Connected {
            now.has_joined = true;
            self.join_seconds.record(connection.age.as_secs_f64());
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate that jumped with each datagram of a slow sender could not be read.
    #[test]
    fn a_rate_is_that_of_the_last_second() {
        let (mut marks, mut seen) = (Marks::default(), Vec::new());
        // A kilobyte each half second, looked at four times a second; then nothing.
        for look in 0..20_u32 {
            let sent = 1000 * u64::from(look.min(11) / 2);
            seen.push(marks.rates_bps(look * Duration::from_millis(250), sent, 0).0);
        }
        assert_eq!(seen[0], 0, "there is nothing to compare with");
        assert!(seen[4..12].iter().all(|&rate| rate == 16_000), "{seen:?}");
        assert!(seen[16..].iter().all(|&rate| rate == 0), "{seen:?}");
        assert!(marks.0.len() <= MAX_MARKS);
    }
}
