//! The limits of sessions: of all, and from one source.
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
    /// Handshakes of browsers whose address is not proven yet. With more, a newcomer has to prove its own
    /// first, which costs a round trip (QUIC's retry): otherwise spoofed packets take all places. Default 64;
    /// with 0 all have to.
    pub unproven: usize,
    /// The time in which a session must be open. Default 10 s.
    pub handshake: Duration,
    /// A session over which the server verifies nothing of haulier's for this time is closed: its connection
    /// has ended, or there never was one. Default 30 s, twice the idle timeout of a connection.
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
            unproven: 64,
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

    /// Handshakes of browsers whose address is not proven yet.
    #[must_use]
    pub const fn with_unproven(mut self, handshakes: usize) -> Self {
        self.unproven = handshakes;
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
pub(crate) struct Sources(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    of_prefix: BTreeMap<u64, usize>,
    /// The number of sessions whose address is not proven.
    unproven: usize,
}

/// A place among them, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    sources: Arc<Sources>,
    prefix: u64,
    is_proven: bool,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Too many, of all or of its source.
    Full,
    /// It has to prove its address first.
    Unproven,
}

impl Sources {
    /// A place for a session from there.
    pub(crate) fn take(
        self: &Arc<Self>,
        from: IpAddr,
        is_proven: bool,
        limits: &WebLimits,
    ) -> Result<Place, NoPlace> {
        let (mut counted, prefix) = (self.lock(), prefix_of(from));
        // Beyond this limit an address has to be proven: forged ones would take the places of other sources.
        if !is_proven && counted.unproven >= limits.unproven {
            return Err(NoPlace::Unproven);
        }
        let all: usize = counted.of_prefix.values().sum();
        // A refused session leaves no entry behind.
        let here = counted.of_prefix.get(&prefix).copied().unwrap_or_default();
        if all >= limits.sessions || here >= limits.sessions_per_prefix {
            return Err(NoPlace::Full);
        }
        counted.of_prefix.insert(prefix, here + 1);
        counted.unproven += usize::from(!is_proven);
        Ok(Place { sources: Arc::clone(self), prefix, is_proven })
    }

    /// All sessions.
    pub(crate) fn count(&self) -> usize {
        self.lock().of_prefix.values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Its address is proven.
    pub(crate) fn prove(&mut self) {
        if !self.is_proven {
            self.is_proven = true;
            self.sources.lock().unproven -= 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.prove();
        let of_prefix = &mut self.sources.lock().of_prefix;
        if let Some(here) = of_prefix.get_mut(&self.prefix) {
            *here -= 1;
            if *here == 0 {
                of_prefix.remove(&self.prefix);
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
        let take = |ip: &str| sources.take(ip.parse().unwrap_or([0; 4].into()), true, &limits).ok();
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
        assert!(sources.lock().of_prefix.is_empty());
    }

    /// Packets in the name of others took all places, also those of a source that they named.
    #[test]
    fn few_take_a_place_before_their_address_is_proven() {
        let limits = WebLimits::default().with_unproven(2);
        let sources = Arc::new(Sources::default());
        let take = |host: u8, is_proven| sources.take([192, 0, 2, host].into(), is_proven, &limits);
        let mut spoofed = [take(1, false), take(1, false)].map(Result::ok);
        assert!(spoofed.iter().all(Option::is_some));
        assert_eq!(take(2, false).err(), Some(NoPlace::Unproven));
        let proven = take(2, true);
        assert!(proven.is_ok());
        spoofed[0].iter_mut().for_each(Place::prove);
        let next = take(2, false);
        assert!(next.is_ok() && take(3, false).is_err());
        drop((spoofed, proven, next));
        assert_eq!((sources.count(), sources.lock().unproven), (0, 0));
    }
}
