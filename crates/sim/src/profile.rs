//! Named links: the ten on which haulier and other transports are measured.

use std::time::Duration;

use crate::link::UDP_IP_OVERHEAD;
use crate::{LinkConfig, Loss, Probability};

/// A named link. Both directions have the same rate, delay, loss and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Rate in Mbit/s at IP level.
    pub rate_mbit: u64,
    /// Round trip without queueing, in ms, half each way.
    pub rtt_ms: u64,
    /// Droptail queue in KiB, each way.
    pub queue_kib: u64,
    /// Mean loss each way, in parts of a thousand.
    pub loss_permille: u64,
    /// Mean length of runs of lost packets; 0 is independent loss.
    pub burst_length: u32,
    /// Extra delay each way, uniform from 0 up to this, in ms; it may reorder packets.
    pub jitter_ms: u64,
}

const BASE: Profile = Profile {
    name: "",
    rate_mbit: 0,
    rtt_ms: 0,
    queue_kib: 256,
    loss_permille: 0,
    burst_length: 0,
    jitter_ms: 0,
};

impl Profile {
    /// The profiles, from good to bad links.
    pub const ALL: [Self; 10] = [
        Self { name: "fiber", rate_mbit: 100, rtt_ms: 20, ..BASE },
        Self { name: "cable", rate_mbit: 50, rtt_ms: 40, loss_permille: 1, ..BASE },
        Self { name: "wifi", rate_mbit: 20, rtt_ms: 50, loss_permille: 20, jitter_ms: 5, ..BASE },
        Self { name: "mobile", rate_mbit: 10, rtt_ms: 100, loss_permille: 50, ..BASE },
        Self {
            name: "ocean",
            rate_mbit: 50,
            rtt_ms: 200,
            queue_kib: 512,
            loss_permille: 10,
            ..BASE
        },
        Self { name: "bad", rate_mbit: 5, rtt_ms: 150, queue_kib: 128, loss_permille: 100, ..BASE },
        Self {
            name: "awful",
            rate_mbit: 2,
            rtt_ms: 250,
            queue_kib: 128,
            loss_permille: 200,
            ..BASE
        },
        Self { name: "bloat", rate_mbit: 2, rtt_ms: 50, queue_kib: 512, ..BASE },
        Self { name: "shallow", rate_mbit: 10, rtt_ms: 80, queue_kib: 32, ..BASE },
        Self {
            name: "burst",
            rate_mbit: 20,
            rtt_ms: 80,
            loss_permille: 50,
            burst_length: 8,
            ..BASE
        },
    ];

    /// The profile with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|profile| profile.name == name)
    }

    /// One direction of the link.
    #[must_use]
    pub fn link(&self) -> LinkConfig {
        let mean = Probability::ratio(self.loss_permille, 1_000);
        LinkConfig {
            rate_bps: Some(self.rate_mbit * 1_000_000),
            queue_bytes: Some(self.queue_kib * 1024),
            delay: Duration::from_micros(self.rtt_ms * 500),
            jitter: Duration::from_millis(self.jitter_ms),
            reorder: self.jitter_ms > 0,
            loss: match (self.loss_permille, self.burst_length) {
                (0, _) => Loss::None,
                (_, 0) => Loss::Independent(mean),
                (_, length) => Loss::Bursts { mean, length },
            },
            ..LinkConfig::default()
        }
    }
}

/// L, the physical limit of a transfer: the propagation delay, and the time that `bytes` in full
/// 1200-byte packets need on the link, lost ones sent again. Results are compared with it:
/// `delay + 8 N (1 + 28/1200) / (rate (1 - loss))`. A run with fewer losses than the mean can be slightly
/// below it.
#[must_use]
pub fn physical_limit(link: &LinkConfig, bytes: u64) -> Duration {
    const PACKET: f64 = 1200.0;
    let overhead = 1.0 + UDP_IP_OVERHEAD as f64 / PACKET;
    let Some(rate) = link.rate_bps else { return link.delay };
    let through = rate as f64 * (1.0 - link.loss.mean().as_f64());
    let seconds = bytes as f64 * 8.0 * overhead / through;
    link.delay + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The physical limit of a cold join: as [`physical_limit`], and one more propagation delay for the
/// request that asks for the bytes.
#[must_use]
pub fn join_limit(link: &LinkConfig, bytes: u64) -> Duration {
    link.delay + physical_limit(link, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for profile in &Profile::ALL {
            assert_eq!(Profile::named(profile.name), Some(profile));
        }
        assert_eq!(Profile::named("perfect"), None);
    }

    /// The L row of the baseline table of other transports, in ms.
    #[test]
    fn the_limit_is_that_of_the_baseline_table() {
        let expected = [41, 83, 159, 326, 243, 627, 1591, 1123, 295, 193];
        for (profile, expected) in Profile::ALL.iter().zip(expected) {
            let limit = join_limit(&profile.link(), 256 * 1024).as_secs_f64() * 1e3;
            assert!((limit - f64::from(expected)).abs() <= 1.0, "{}: {limit}", profile.name);
        }
    }
}
