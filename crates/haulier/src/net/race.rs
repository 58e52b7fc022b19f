//! Selects the next server address to try: RFC 8305 (Happy Eyeballs), without a clock and without sockets.
//!
//! The invariant: until an attempt has won, an attempt is running, or an address can be tried now, or the
//! race is lost. A closed port counts after the second refusal (docs/RUNNER.md, "Which address").

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::CloseReason;

/// How long to wait for an address before the next one is tried too: the value of RFC 8305 for TCP.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// Refusals after which a port counts as closed; a single one may be forged.
const MAX_REFUSALS: u8 = 2;

/// A server address that was tried, and the result.
///
/// # Examples
/// ```
/// use haulier::Client;
///
/// /// For a screen that says "trying ..." behind each address.
/// fn tried(client: &Client) -> Vec<String> {
///     let line = |attempt: &haulier::Attempt| match &attempt.error {
///         Some(error) => format!("{}: {error}", attempt.server),
///         None => format!("{}: trying", attempt.server),
///     };
///     client.attempts().iter().map(line).collect()
/// }
/// # let _ = tried;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The address.
    pub server: SocketAddr,
    /// Why there is no connection to it; `None` while it is tried, and if it succeeded.
    pub error: Option<AttemptError>,
}

/// Why there is no connection to a server address.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptError {
    /// The host answered that no program listens at this port.
    #[error("nobody listens there: is the server running, and is this its port?")]
    NobodyListens,
    /// This machine has no route to it.
    #[error("no route to it from this machine: {0}")]
    NoRoute(Arc<io::Error>),
    /// The handshake ended: no answer, or a refusal.
    #[error("{0}")]
    Closed(CloseReason),
}

/// Identifies an attempt; another attempt at the same address has another key.
pub(crate) type Key = u32;

#[derive(Debug)]
struct Entrant<M> {
    key: Key,
    server: SocketAddr,
    refusals: u8,
    machine: M,
}

/// The addresses of a server, and a machine for each attempt.
#[derive(Debug)]
pub(crate) struct Race<M> {
    /// Addresses to try, with the refusals so far.
    left: VecDeque<(SocketAddr, u8)>,
    running: Vec<Entrant<M>>,
    attempts: Vec<Attempt>,
    /// When the next address may be tried although attempts are running.
    next_at: Instant,
    next_key: Key,
    is_won: bool,
}

impl<M> Race<M> {
    /// A race between these addresses, the likeliest first. IPv6 and IPv4 alternate, each in its given
    /// order.
    pub(crate) fn new(servers: &[SocketAddr]) -> Self {
        let mut unique: Vec<SocketAddr> = Vec::new();
        for server in servers {
            if !unique.contains(server) {
                unique.push(*server);
            }
        }
        let first_is_v6 = unique.first().is_some_and(SocketAddr::is_ipv6);
        let (same, other): (Vec<_>, Vec<_>) =
            unique.iter().partition(|server| server.is_ipv6() == first_is_v6);
        let (mut same, mut other) = (same.into_iter(), other.into_iter());
        let mut left = VecDeque::new();
        while left.len() < unique.len() {
            left.extend(same.next().into_iter().chain(other.next()).map(|server| (server, 0)));
        }
        let (running, attempts, next_at) = (Vec::new(), Vec::new(), Instant::ZERO);
        Self { left, running, attempts, next_at, next_key: 0, is_won: false }
    }

    /// Starts an attempt at the next address, with the machine from `make`, if it is due. Call it until it
    /// returns `None`.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        make: impl FnOnce(SocketAddr) -> Option<M>,
    ) -> Option<(Key, SocketAddr)> {
        if self.is_won || !self.running.is_empty() && now < self.next_at {
            return None;
        }
        let (server, refusals) = self.left.pop_front()?;
        if refusals == 0 {
            self.attempts.push(Attempt { server, error: None });
        }
        let (key, machine) = (self.next_key, make(server)?);
        self.next_key += 1;
        self.running.push(Entrant { key, server, refusals, machine });
        self.next_at = now + NEXT_AFTER;
        Some((key, server))
    }

    /// When to try the next address.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let is_waiting = !self.is_won && !self.left.is_empty();
        is_waiting.then_some(if self.running.is_empty() { Instant::ZERO } else { self.next_at })
    }

    /// The host answered that no program listens at this port. Returns the machine of the attempt.
    pub(crate) fn refused(&mut self, now: Instant, key: Key) -> Option<M> {
        let entrant = self.remove(key)?;
        let refusals = entrant.refusals + 1;
        if refusals < MAX_REFUSALS {
            self.left.push_front((entrant.server, refusals));
            self.next_at = now;
        } else {
            self.record(now, entrant.server, AttemptError::NobodyListens);
        }
        Some(entrant.machine)
    }

    /// An attempt failed: the next address may be tried at once. Returns the machine of the attempt.
    pub(crate) fn failed(&mut self, now: Instant, key: Key, error: AttemptError) -> Option<M> {
        let entrant = self.remove(key)?;
        self.record(now, entrant.server, error);
        Some(entrant.machine)
    }

    /// An attempt succeeded: the others end. Returns their machines.
    pub(crate) fn won(&mut self, key: Key) -> Vec<M> {
        self.is_won = true;
        self.only(key)
    }

    /// The server has answered an attempt and lets it wait in line: it is the only one from now on. Returns
    /// the machines of the others, each of which would have a place of its own.
    pub(crate) fn only(&mut self, key: Key) -> Vec<M> {
        self.left.clear();
        let running = std::mem::take(&mut self.running).into_iter();
        let (one, others): (Vec<_>, Vec<_>) = running.partition(|entrant| entrant.key == key);
        self.running = one;
        others.into_iter().map(|entrant| entrant.machine).collect()
    }

    /// The next address may be tried at once.
    pub(crate) const fn hurry(&mut self, now: Instant) {
        self.next_at = now;
    }

    /// Ends all attempts. Returns their machines.
    pub(crate) fn give_up(&mut self) -> Vec<M> {
        self.left.clear();
        self.running.drain(..).map(|entrant| entrant.machine).collect()
    }

    /// The server's address, or that of the oldest running or last attempt.
    pub(crate) fn server(&self) -> Option<SocketAddr> {
        let running = self.running.first().map(|entrant| entrant.server);
        running.or_else(|| self.attempts.last().map(|attempt| attempt.server))
    }

    /// The machine of the winner.
    pub(crate) fn winner(&self) -> Option<&M> {
        self.machines().next().filter(|_| self.is_won).map(|(_, machine)| machine)
    }

    pub(crate) fn winner_mut(&mut self) -> Option<&mut M> {
        let is_won = self.is_won;
        self.machines_mut().next().filter(|_| is_won).map(|(_, machine)| machine)
    }

    /// The machines of the running attempts, or of the winner.
    pub(crate) fn machines(&self) -> impl Iterator<Item = (Key, &M)> {
        self.running.iter().map(|entrant| (entrant.key, &entrant.machine))
    }

    pub(crate) fn machines_mut(&mut self) -> impl Iterator<Item = (Key, &mut M)> {
        self.running.iter_mut().map(|entrant| (entrant.key, &mut entrant.machine))
    }

    pub(crate) const fn is_won(&self) -> bool {
        self.is_won
    }

    /// Whether no attempt is running and no address is left.
    pub(crate) fn is_lost(&self) -> bool {
        self.running.is_empty() && self.left.is_empty()
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Why the race was lost: a refusal takes precedence over a closed port, and that over no answer.
    pub(crate) fn verdict(&self) -> CloseReason {
        let errors = || self.attempts.iter().filter_map(|attempt| attempt.error.as_ref());
        let refusal = errors().find_map(|error| match error {
            AttemptError::Closed(reason) if *reason != CloseReason::NoAnswer => Some(reason),
            _ => None,
        });
        let is_closed_port = |error| matches!(error, &AttemptError::NobodyListens);
        match refusal {
            Some(reason) => reason.clone(),
            None if errors().any(is_closed_port) => CloseReason::Unreachable,
            None => CloseReason::NoAnswer,
        }
    }

    fn record(&mut self, now: Instant, server: SocketAddr, error: AttemptError) {
        let attempt = self.attempts.iter_mut().find(|attempt| attempt.server == server);
        if let Some(attempt) = attempt {
            attempt.error = Some(error);
        }
        self.next_at = now;
    }

    fn remove(&mut self, key: Key) -> Option<Entrant<M>> {
        let at = self.running.iter().position(|entrant| entrant.key == key)?;
        Some(self.running.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn servers(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Starts all attempts that are due.
    fn starts(race: &mut Race<SocketAddr>, now: Instant) -> Vec<Key> {
        std::iter::from_fn(|| race.start(now, Some)).map(|(key, _)| key).collect()
    }

    #[test]
    fn address_families_alternate_without_duplicates() {
        let all = servers(&["[::1]:1", "[::2]:1", "[::1]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        let mut race = Race::new(&all);
        let mut order = Vec::new();
        for step in 0..10 {
            order.extend(race.start(MS(250 * step), Some).map(|(_, server)| server));
        }
        assert_eq!(order, servers(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]));
    }

    #[test]
    fn the_next_address_is_tried_after_a_delay_or_a_failure() {
        let mut race = Race::new(&servers(&["1.0.0.1:1", "1.0.0.2:1", "1.0.0.3:1", "1.0.0.4:1"]));
        assert_eq!(starts(&mut race, MS(0)), [0]);
        assert_eq!(race.poll_timeout(), Some(MS(250)));
        assert!(starts(&mut race, MS(249)).is_empty());
        assert_eq!(starts(&mut race, MS(250)), [1]);
        race.failed(MS(300), 0, AttemptError::Closed(CloseReason::NoAnswer));
        assert_eq!(race.poll_timeout(), Some(MS(300)));
        assert_eq!(starts(&mut race, MS(300)), [2], "although another attempt is running");
        race.won(1);
        assert_eq!(race.server(), Some("1.0.0.2:1".parse().unwrap()));
        assert_eq!((race.poll_timeout(), starts(&mut race, MS(900))), (None, vec![]));
        race.failed(MS(900), 2, AttemptError::NobodyListens);
        assert!(race.is_won() && !race.is_lost() && race.attempts()[2].error.is_none());
    }

    #[test]
    fn a_port_is_closed_after_two_refusals_without_delaying_others() {
        let mut race = Race::new(&servers(&["1.0.0.1:1", "1.0.0.2:1"]));
        assert_eq!(starts(&mut race, MS(0)), [0]);
        race.refused(MS(2), 0);
        assert_eq!(race.poll_timeout(), Some(Instant::ZERO));
        assert_eq!(
            race.start(MS(2), Some),
            Some((1, "1.0.0.1:1".parse().unwrap())),
            "from a new port"
        );
        race.refused(MS(4), 0);
        assert!(!race.is_lost(), "a refusal of the old attempt has no effect");
        race.refused(MS(4), 1);
        assert_eq!(race.start(MS(4), Some), Some((2, "1.0.0.2:1".parse().unwrap())));
        race.failed(MS(5), 2, AttemptError::Closed(CloseReason::NoAnswer));
        assert!(race.is_lost());
        assert_eq!(race.verdict(), CloseReason::Unreachable);
        let failed: Vec<_> =
            race.attempts().iter().map(|attempt| attempt.error.is_some()).collect();
        assert_eq!(failed, [true, true]);
    }

    #[test]
    fn a_forged_refusal_costs_one_more_attempt() {
        let mut race = Race::new(&servers(&["1.0.0.1:1"]));
        assert_eq!(starts(&mut race, MS(0)), [0]);
        race.refused(MS(1), 0);
        assert_eq!(starts(&mut race, MS(1)), [1]);
        race.won(1);
        assert!(race.is_won());
    }
}
