//! How many sessions there may be, and how many from one source.
//!
//! A session costs a handshake of TLS and some 50 KB before haulier has seen anything of it, so it is counted
//! from the first packet on. The invariant: the sum of all sources is the number of sessions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a [`WebServer`](crate::WebServer) admits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WebLimits {
    /// Sessions at a time. Default 4096.
    pub sessions: usize,
    /// Sessions from one source (an IPv4 address, an IPv6 /64). Default 256, as haulier's own limit.
    pub sessions_per_prefix: usize,
    /// The time in which a session must be open. Default 10 s.
    pub handshake: Duration,
    /// A session over which the player sends nothing of haulier's for so long is closed: its connection has
    /// ended. Default 30 s, twice the idle timeout of a connection.
    pub idle: Duration,
    /// QUIC's own congestion control holds datagrams back, beneath haulier's: to be measured. Default false.
    #[doc(hidden)]
    pub has_quic_congestion_control: bool,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            sessions: 4096,
            sessions_per_prefix: 256,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            has_quic_congestion_control: false,
        }
    }
}

impl WebLimits {
    /// Sessions at a time.
    #[must_use]
    pub const fn with_sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sessions from one source.
    #[must_use]
    pub const fn with_sessions_per_prefix(mut self, sessions: usize) -> Self {
        self.sessions_per_prefix = sessions;
        self
    }

    /// The time in which a session must be open.
    #[must_use]
    pub const fn with_handshake(mut self, handshake: Duration) -> Self {
        self.handshake = handshake;
        self
    }

    /// The time after which a silent session is closed.
    #[must_use]
    pub const fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }
}

/// Counts the sessions of each source.
#[derive(Debug, Default)]
pub(crate) struct Sources(Mutex<BTreeMap<u64, usize>>);

/// A place among them, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    sources: Arc<Sources>,
    prefix: u64,
}

impl Sources {
    /// A place for a session from there; `None` if there is none.
    pub(crate) fn take(self: &Arc<Self>, from: IpAddr, limits: &WebLimits) -> Option<Place> {
        let (mut counts, prefix) = (self.lock(), prefix_of(from));
        let all: usize = counts.values().sum();
        // Whoever is refused leaves no entry behind.
        let here = counts.get(&prefix).copied().unwrap_or_default();
        if all >= limits.sessions || here >= limits.sessions_per_prefix {
            return None;
        }
        counts.insert(prefix, here + 1);
        Some(Place { sources: Arc::clone(self), prefix })
    }

    /// All sessions.
    pub(crate) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.sources.lock();
        if let Some(here) = counts.get_mut(&self.prefix) {
            *here -= 1;
            if *here == 0 {
                counts.remove(&self.prefix);
            }
        }
    }
}

/// An IPv4 address, or the first 64 bits of an IPv6 address. No routed /64 looks like the former.
fn prefix_of(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(v4) => 0xffff_0000_0000 | u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_and_all_of_them_have_as_many_places_as_they_may() {
        let limits = WebLimits::default().with_sessions(3).with_sessions_per_prefix(2);
        let sources = Arc::new(Sources::default());
        let take = |ip: &str| sources.take(ip.parse().unwrap_or([0; 4].into()), &limits);
        let first = [take("192.0.2.1"), take("::ffff:192.0.2.1")];
        assert!(first.iter().all(Option::is_some));
        assert!(take("192.0.2.1").is_none(), "two of one address");
        let other = take("2001:db8::1");
        assert!(other.is_some() && take("2001:db8:1::1").is_none(), "three of all");
        drop(first);
        let second = [take("2001:db8::2"), take("2001:db8::3")];
        assert!(second[0].is_some() && second[1].is_none(), "one /64 is one source");
        assert_eq!(sources.count(), 2);
        drop((other, second));
        assert!(sources.lock().is_empty());
    }
}
