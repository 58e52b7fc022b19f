//! The verdict of loss: one pure function for all that waits for a datagram (RFC 9002, 6.1; RFC 8985, 6.2).
//!
//! Callers differ in their patience only. Any other slice can replace a slice, and a late ack corrects the
//! count, so one later datagram is enough for it. A packet is reported as lost once, and a message is sent
//! again, so these wait as RFC 9002 says. Both wait as long as datagrams of the path were seen to overtake
//! each other.

use core::time::Duration;

use super::datagram::{Datagram, LossReason};
use crate::Instant;

/// How many later datagrams must have been sent, up to one that is acknowledged, before one is lost (RFC
/// 9002, 6.1.1). The receiver acknowledges at once what shows that.
pub(super) const PACKET_THRESHOLD: u64 = 3;

/// How long a datagram is waited for, once one is acknowledged that was sent later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// It is lost once this number of later ones were sent, up to and including the acknowledged one,
    pub(super) datagrams: u64,
    /// and the acknowledged one was sent at least this much later;
    pub(super) reordering: Duration,
    /// or once this time has passed since it was sent. `None`: time alone never makes it lost.
    pub(super) timeout: Option<Duration>,
}

/// What is to be thought of a datagram that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Lost(LossReason),
    /// It is lost at this time; `None` if only an ack can show that it is lost.
    NotLostYet {
        at: Option<Instant>,
    },
}

/// Judges a datagram at `now` by the newest one that is acknowledged. `later` counts the datagrams that were
/// sent after the first number up to the second; it is asked only if the count may decide.
#[inline]
pub(super) fn detect(
    now: Instant,
    sent: &Datagram,
    newest: Option<(u64, Instant)>,
    patience: Patience,
    later: impl FnOnce(u64, u64) -> u64,
) -> Verdict {
    let Some((newest, newest_sent_at)) = newest.filter(|&(newest, _)| newest > sent.number) else {
        return Verdict::NotLostYet { at: None };
    };
    let Patience { datagrams, reordering, timeout } = patience;
    let is_overtaken = newest_sent_at.since(sent.sent_at) >= reordering;
    if is_overtaken && (datagrams <= 1 || later(sent.number, newest) >= datagrams) {
        return Verdict::Lost(LossReason::Overtaken);
    }
    match timeout.map(|timeout| sent.sent_at + timeout) {
        Some(at) if at <= now => Verdict::Lost(LossReason::TimedOut),
        at => Verdict::NotLostYet { at },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_control::PathId;

    use crate::transit::datagram::Outgoing;
    use crate::transit::items::Items;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The verdict at 50 ms on number 10 that was sent at 10 ms.
    fn verdict(newest: Option<(u64, u64)>, patience: Patience) -> Verdict {
        let sent = Datagram::new(at(10), PathId::FIRST, Outgoing::probe(10), Items::new().commit());
        let newest = newest.map(|(number, millis)| (number, at(millis)));
        detect(at(50), &sent, newest, patience, |from, to| to - from)
    }

    #[test]
    fn only_patience_differs() {
        let slice = Patience { datagrams: 1, reordering: ms(0), timeout: None };
        let packet = Patience { datagrams: 3, timeout: Some(ms(45)), ..slice };
        let (overtaken, waits) =
            (Verdict::Lost(LossReason::Overtaken), |at| Verdict::NotLostYet { at });
        for newest in [None, Some((9, 9)), Some((10, 10))] {
            assert_eq!(verdict(newest, slice), waits(None));
            assert_eq!(verdict(newest, packet), waits(None), "nothing later has arrived");
        }
        let later = [11, 12, 13].map(|number| Some((number, 12)));
        assert_eq!(later.map(|newest| verdict(newest, slice)), [overtaken; 3]);
        let wait = waits(Some(at(55)));
        assert_eq!(later.map(|newest| verdict(newest, packet)), [wait, wait, overtaken]);
        let late = Patience { timeout: Some(ms(40)), ..packet };
        assert_eq!(verdict(later[0], late), Verdict::Lost(LossReason::TimedOut));
        assert_eq!(verdict(None, late), waits(None), "a probe comes first");
    }

    #[test]
    fn what_is_seen_to_overtake_is_waited_for() {
        let slice = Patience { datagrams: 1, reordering: ms(5), timeout: None };
        let packet = Patience { datagrams: 3, reordering: ms(5), timeout: Some(ms(60)) };
        for patience in [slice, packet] {
            let wait = Verdict::NotLostYet { at: patience.timeout.map(|timeout| at(10) + timeout) };
            assert_eq!(verdict(Some((40, 14)), patience), wait);
            assert_eq!(verdict(Some((40, 15)), patience), Verdict::Lost(LossReason::Overtaken));
        }
    }
}
