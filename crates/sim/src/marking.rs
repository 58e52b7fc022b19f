//! What a link does to the size and the ECN field of packets: carries them, or does not, or lies.

use haulier_core::Ecn;
use haulier_proto::Instant;

/// The largest packet that a link carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mtu {
    /// From when on, and bytes with the headers of UDP and IP; in order of time. Before the first, any size.
    pub changes: Vec<(Instant, u64)>,
}

impl Mtu {
    /// These sizes, and from the time `at` on another one.
    #[must_use]
    pub fn then(mut self, at: Instant, bytes: u64) -> Self {
        self.changes.push((at, bytes));
        self
    }

    /// The largest packet at this time; `None` for any size.
    #[must_use]
    pub fn at(&self, now: Instant) -> Option<u64> {
        self.changes.iter().rev().find(|(at, _)| *at <= now).map(|(_, bytes)| *bytes)
    }
}

impl From<u64> for Mtu {
    fn from(bytes: u64) -> Self {
        Self { changes: vec![(Instant::ZERO, bytes)] }
    }
}

/// What a link does to the ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnPath {
    /// It clears it, as many do. So most simulations are without ECN.
    #[default]
    Bleached,
    /// It leaves it as it is.
    Carried,
    /// It turns ECT(0) into ECT(1).
    Remarked,
    /// It marks every packet that is ECN-capable, whatever its queue.
    AlwaysMarked,
}

impl EcnPath {
    pub(crate) const fn pass(self, ecn: Ecn) -> Ecn {
        match (self, ecn) {
            (Self::Bleached, _) | (_, Ecn::NotEct) => Ecn::NotEct,
            (Self::Remarked, Ecn::Ect0) => Ecn::Ect1,
            (Self::AlwaysMarked, _) => Ecn::Ce,
            (Self::Carried | Self::Remarked, ecn) => ecn,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Fate, Link, LinkConfig};

    #[test]
    fn a_packet_that_is_too_large_vanishes() {
        let ms = Instant::from_millis;
        let mtu = Mtu::from(1500).then(ms(10), 1280);
        let mut link = Link::new(LinkConfig::default().with_mtu(mtu), 1);
        let fates = [(9, 1472), (9, 1473), (10, 1253), (10, 1252)]
            .map(|(at, bytes)| link.offer(ms(at), &vec![0; bytes]));
        assert_eq!(fates, [Fate::Carried, Fate::TooLarge, Fate::TooLarge, Fate::Carried]);
        link.check_conservation();
    }

    /// 1000 bytes are a millisecond.
    #[test]
    fn a_long_queue_marks_what_is_capable() {
        let link = LinkConfig::new(8_000_000, Duration::ZERO).marking_above(2_000);
        let mut link = Link::new(link, 1);
        let sent = [Ecn::Ect0, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1];
        for ecn in sent {
            assert_eq!(link.offer_marked(Instant::ZERO, &[0; 972], 7, ecn), Fate::Carried);
        }
        let mut datagram = Vec::new();
        let end = Instant::from_millis(10);
        let marks: Vec<_> = std::iter::from_fn(|| link.poll_marked(end, &mut datagram)).collect();
        let expected = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct, Ecn::Ce].map(|ecn| (7, ecn));
        assert_eq!((&marks[..], link.stats().marked), (&expected[..], 2));
    }
}
