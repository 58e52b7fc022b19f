//! The seventeen links: ten with a rate, a delay, a queue and losses, and seven of a second kind, which are
//! what misleads a sender that learns from arrivals.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::profile::join_limit;
use haulier_sim::{
    Access, Excess, LinkConfig, Loss, Probability, Profile, Recorded, Rng, TokenBucket,
};

use crate::recorded::RecordedLink;

/// How much faster than its policer a policed line is.
const POLICED_LINE: u64 = 5;

/// A named link.
#[derive(Clone, Debug)]
pub struct JoinLink {
    /// Its name.
    pub name: &'static str,
    /// Its rate, its round trip, and what is special about it.
    pub notes: Vec<String>,
    access: Access,
    /// The rate of the limit, in bits per second; none for a record.
    rate_bps: Option<u64>,
}

impl JoinLink {
    /// The number of links.
    pub const COUNT: usize = 17;
    /// The number of plain links, which come first.
    pub const FIRST_KIND: usize = Profile::ALL.len();

    /// All of them: the ten first.
    pub fn all() -> Vec<Self> {
        let mut links: Vec<Self> = Profile::ALL.iter().map(of_profile).collect();
        links.extend(["lte", "evdo"].into_iter().filter_map(recorded));
        let (loss, ms) = (
            |permille| Loss::Independent(Probability::ratio(permille, 1_000)),
            Duration::from_millis,
        );
        links.push(plain("airtime", [30, 25, 256], &["1% loss", "bunches"], |link| LinkConfig {
            aggregation: ms(8),
            loss: loss(10),
            ..link
        }));
        links.push(plain("policer", [20, 60, 256], &["64 KiB"], |link| {
            let rate_bps = link.rate_bps.unwrap_or_default();
            let (burst_bytes, excess) = (64 << 10, Excess::Dropped);
            let bucket = Some(TokenBucket { rate_bps, burst_bytes, excess });
            LinkConfig { rate_bps: Some(rate_bps * POLICED_LINE), bucket, ..link }
        }));
        links.push(plain("ethernet", [500, 1, 512], &[], |link| link));
        links.push(plain("roaming", [12, 45, 128], &["1% loss", "reorders"], |link| LinkConfig {
            jitter: ms(20),
            reorder: true,
            loss: loss(10),
            ..link
        }));
        links.push(plain("mess", [40, 20, 256], &["reorders", "1% twice"], |link| LinkConfig {
            jitter: ms(8),
            reorder: true,
            duplicate: Probability::percent(1),
            duplicate_delay: ms(8),
            ..link
        }));
        links
    }

    /// The link with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|link| link.name == name)
    }

    /// A link of any other kind, of which the limit is that of its rate or of its record.
    pub fn of(name: &'static str, access: impl Into<Access>) -> Self {
        let access = access.into();
        let rate_bps = access.down.rate_bps;
        Self { name, notes: Vec::new(), access, rate_bps }
    }

    /// Its access: a record begins anywhere, by the seed.
    pub(super) fn access(&self, seed: u64) -> Access {
        let Access { up, down } = &self.access;
        let skip = |link: &LinkConfig| {
            let record = link.record.clone().map(|Recorded { record, .. }| {
                let length_ms = record.lasts().as_millis() as u64;
                let skipped = Duration::from_millis(Rng::stream(seed, 75).below(length_ms));
                Recorded { record, skipped }
            });
            LinkConfig { record, ..link.clone() }
        };
        Access { up: skip(up), down: skip(down) }
    }

    /// L: a round trip, and the bytes in full datagrams at the rate, lost ones sent again. Without jitter,
    /// bunches, or a policer's first burst. On a record: the opportunities from the moment on at which the
    /// request is there.
    pub(super) fn limit(&self, access: &Access, begins: Instant, bytes: u64) -> Duration {
        let down = &access.down;
        let Some(recorded) = &down.record else {
            return join_limit(&LinkConfig { rate_bps: self.rate_bps, ..down.clone() }, bytes);
        };
        let wire_bytes = bytes + bytes.div_ceil(1200) * UDP_IP_OVERHEAD;
        let passed = recorded.passed(begins + access.up.delay, wire_bytes);
        (passed + down.delay).since(begins)
    }
}

fn of_profile(profile: &Profile) -> JoinLink {
    let loss = profile.loss_permille as f64 / 10.0;
    let note = match profile.name {
        "wifi" => "reorders",
        "bloat" => "deep queue",
        "shallow" => "short queue",
        "burst" => "in bursts",
        _ => "",
    };
    let mut notes = vec![format!("{} Mbit/s", profile.rate_mbit), format!("{} ms", profile.rtt_ms)];
    notes.extend((loss > 0.0).then(|| format!("{loss}% loss")));
    notes.extend((!note.is_empty()).then(|| note.to_owned()));
    let link = profile.link();
    JoinLink { name: profile.name, notes, rate_bps: link.rate_bps, access: link.into() }
}

/// A link of this rate in Mbit/s, round trip in ms, and queue in KiB, with something special.
fn plain(
    name: &'static str,
    [mbit, rtt_ms, queue_kib]: [u64; 3],
    special: &[&str],
    change: impl Fn(LinkConfig) -> LinkConfig,
) -> JoinLink {
    let rate_bps = mbit * 1_000_000;
    let link = LinkConfig::new(rate_bps, Duration::from_micros(rtt_ms * 500));
    let access = change(link.with_queue(queue_kib << 10)).into();
    let mut notes = vec![format!("{mbit} Mbit/s"), format!("{rtt_ms} ms")];
    notes.extend(special.iter().map(|&note| note.to_owned()));
    JoinLink { name, notes, access, rate_bps: Some(rate_bps) }
}

/// One of the records that come with the simulator.
fn recorded(name: &'static str) -> Option<JoinLink> {
    let link = RecordedLink::named(&format!("{name}-like"))?;
    let delay = link.rtt / 2;
    let Access { up, down } = link.access(Duration::ZERO);
    let [up, down] = [up, down].map(|way| LinkConfig { delay, ..way });
    let mbit = link.down.mean_bps() as f64 / 1e6;
    let mbit = if mbit < 10.0 { format!("{mbit:.1}") } else { format!("{mbit:.0}") };
    let notes =
        vec![format!("{mbit} Mbit/s"), format!("{} ms", link.rtt.as_millis()), "recorded".into()];
    Some(JoinLink { name, notes, access: Access { up, down }, rate_bps: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_ten_and_seven_with_names_of_their_own() {
        let links = JoinLink::all();
        assert_eq!(links.len(), JoinLink::COUNT);
        for link in &links {
            assert_eq!(JoinLink::named(link.name).unwrap().notes, link.notes);
        }
        assert!(
            links[..JoinLink::FIRST_KIND]
                .iter()
                .map(|link| link.name)
                .eq(Profile::ALL.iter().map(|p| p.name))
        );
    }

    /// As the lab has it, for 256 KiB, in ms.
    #[test]
    fn the_limit_is_that_of_the_lab() {
        let expected =
            [("airtime", 97), ("policer", 167), ("ethernet", 5), ("roaming", 226), ("mess", 74)];
        for (name, expected) in expected {
            let link = JoinLink::named(name).unwrap();
            let limit = link.limit(&link.access(1), Instant::ZERO, 256 << 10).as_micros();
            assert!(limit.abs_diff(expected * 1_000) < 600, "{name}: {limit}");
        }
        let lte = JoinLink::named("lte").unwrap();
        let limits: Vec<u128> = (0..20)
            .map(|seed| lte.limit(&lte.access(seed), Instant::ZERO, 256 << 10).as_millis())
            .collect();
        assert!(limits.iter().all(|limit| (100..6_000).contains(limit)), "{limits:?}");
    }
}
